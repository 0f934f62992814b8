//! `obprox net`: sparse networks. Training and measuring F need Burn, and so the cargo feature `net`.

mod before_after;
mod bench;
mod commands;
mod compress;
#[cfg(feature = "net")]
mod eval;
mod expand;
mod export;
#[cfg(feature = "net")]
mod flags;
mod images;
mod import;
mod infer;
#[cfg(feature = "net")]
mod log;
mod normalize;
#[cfg(feature = "net")]
mod progress;
#[cfg(feature = "net")]
mod show;
#[cfg(feature = "net")]
mod train;
mod values;

pub use commands::Net;
#[cfg(feature = "net")]
pub use images::images;
#[cfg(feature = "net")]
pub use log::{Log, Origin};
#[cfg(feature = "net")]
pub use progress::Bar;
