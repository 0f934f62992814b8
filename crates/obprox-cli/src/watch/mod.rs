//! Who watches a run: the progress bar, the log, and Ctrl-C.

pub mod interrupt;
mod log;
mod progress;

pub use log::{Log, Origin};
pub use progress::{Bar, waiting};
