//! Run logs: one JSON object a line, from `{"event":"start", …}` to `{"event":"end", …}`.

pub mod event;
mod read;
mod run;

pub use read::{read, read_file};
pub use run::{Ending, Run};
