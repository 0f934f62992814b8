//! `obprox net`: sparse networks. Compiled with the cargo feature `net`; without it the command says how to get it.

#[cfg(feature = "net")]
mod before_after;
#[cfg(feature = "net")]
mod bench;
#[cfg(feature = "net")]
mod commands;
#[cfg(feature = "net")]
mod compress;
#[cfg(feature = "net")]
mod eval;
#[cfg(feature = "net")]
mod expand;
#[cfg(feature = "net")]
mod export;
#[cfg(feature = "net")]
mod flags;
#[cfg(feature = "net")]
mod import;
#[cfg(feature = "net")]
mod infer;
#[cfg(feature = "net")]
mod log;
#[cfg(not(feature = "net"))]
mod missing;
#[cfg(feature = "net")]
mod normalize;
#[cfg(feature = "net")]
mod progress;
#[cfg(feature = "net")]
mod show;
#[cfg(feature = "net")]
mod train;
#[cfg(feature = "net")]
mod values;

#[cfg(feature = "net")]
pub use commands::Net;
#[cfg(feature = "net")]
pub use flags::images;
#[cfg(feature = "net")]
pub use log::{Log, Origin};
#[cfg(not(feature = "net"))]
pub use missing::Net;
#[cfg(feature = "net")]
pub use progress::Bar;
