//! Images for training: changed a little each time, dealt in batches by a thread of its own.

mod augment;
mod loader;

pub use augment::Augment;
pub use loader::{Batch, Feed, Loader};
