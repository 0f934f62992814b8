//! Images for training: found in a directory, brought to one size, dealt in batches by a thread of its own.

mod augment;
mod loader;
mod source;

pub use augment::Augment;
pub use loader::{Batch, Feed, Loader};
pub use source::{Data, read};
