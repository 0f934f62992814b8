//! `obprox net`: sparse networks. Compiled with the cargo feature `net`; without it the command says how to get it.

#[cfg(feature = "net")]
mod bench;
#[cfg(feature = "net")]
mod commands;
#[cfg(feature = "net")]
mod compress;
#[cfg(feature = "net")]
mod expand;
#[cfg(feature = "net")]
mod infer;
#[cfg(not(feature = "net"))]
mod missing;

#[cfg(feature = "net")]
pub use commands::Net;
#[cfg(not(feature = "net"))]
pub use missing::Net;
