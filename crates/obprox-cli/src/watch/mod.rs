//! Who watches a run: the progress bar, the log, and Ctrl-C.

pub mod interrupt;
mod lines;
mod log;
mod path;
mod progress;
#[cfg(feature = "paper")]
mod transfer;

#[cfg(feature = "net")]
pub use lines::JsonLines;
#[cfg(feature = "net")]
pub use log::command;
pub use log::{Log, Origin};
pub use path::{FoldsBar, PathBar};
pub use progress::{Bar, waiting};
#[cfg(feature = "net")]
pub use progress::{styled, visible};
#[cfg(feature = "paper")]
pub use transfer::Transfer;
