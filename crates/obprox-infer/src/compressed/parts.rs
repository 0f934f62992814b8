//! Runs of bytes as they are or as a zstd frame, whichever is shorter. The reader knows how many bytes a run has, and so
//! which of the two it is.

use std::borrow::Cow;
use std::cell::RefCell;

use obprox::{Error, Result};
use zstd::bulk::Compressor;

use super::Flaw;

/// What `zstd -19` is to be no better than, is used itself.
pub const BEST: i32 = 19;
/// Runs up to here cost nothing worth saving; longer ones gain little by more than a quick look.
const SHORT: usize = 32 << 10;
const QUICK: i32 = 3;
/// No run of fewer bytes is worth a frame's own.
const TINY: usize = 24;

thread_local! {
    /// What zstd works with costs more to make than most runs to compress.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// The shorter of the bytes and their frame.
pub fn pack(bytes: Vec<u8>) -> Result<Vec<u8>> {
    if bytes.len() < TINY {
        return Ok(bytes);
    }
    let frame = if bytes.len() <= SHORT { frame(&bytes, BEST)? } else { frame(&bytes, QUICK)? };
    Ok(if frame.len() < bytes.len() { frame } else { bytes })
}

/// A frame of zstd.
pub fn frame(bytes: &[u8], level: i32) -> Result<Vec<u8>> {
    let compress = |kept: &mut Option<Compressor<'static>>| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => kept.insert(Compressor::new(level)?),
        };
        compressor.set_compression_level(level)?;
        compressor.compress(bytes)
    };
    let frame = COMPRESSOR.with_borrow_mut(compress);
    frame.map_err(|error| Error::Data(format!("zstd fails: {error}")))
}

/// The `full` bytes of a run. Allocates no more than these; the caller has seen to it that this is not too much.
pub fn unpack(stored: &[u8], full: usize) -> std::result::Result<Cow<'_, [u8]>, Flaw> {
    if stored.len() == full {
        return Ok(Cow::Borrowed(stored));
    }
    let bytes = match stored.len() < full {
        true => zstd::bulk::decompress(stored, full).map_err(|_| WRONG_FRAME)?,
        false => return Err(WRONG_SIZE),
    };
    if bytes.len() == full { Ok(Cow::Owned(bytes)) } else { Err(WRONG_SIZE) }
}

pub const WRONG_SIZE: Flaw = "has another size than its header says";
const WRONG_FRAME: Flaw = "has corrupt values";
