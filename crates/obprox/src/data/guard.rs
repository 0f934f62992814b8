//! Decoders of others on files from anywhere: some of them panic where a file is damaged.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Error, Result};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread is about to become an error. A program that has a panic hook of its own can keep silent
/// then.
pub fn panics_are_errors() -> bool {
    GUARDED.get()
}

/// Does some work of a decoder; where it panics, the file is what is wrong.
#[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "the other decoders return their errors"))]
pub(super) fn guarded<T>(file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    GUARDED.set(true);
    // What the work has touched is dropped with its panic.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(false);
    outcome.unwrap_or_else(|_| Err(Error::file(file, "is damaged: get the file again")))
}
