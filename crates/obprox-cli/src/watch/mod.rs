//! Who watches a run: the progress bar, the log, and Ctrl-C.

pub mod interrupt;
mod log;
mod path;
mod progress;

pub use log::{Log, Origin};
pub use path::{FoldsBar, PathBar};
pub use progress::{Bar, Transfer, waiting};
