//! Asking for a cache line before it is needed.
//!
//! The processor foresees walks along an array, not jumps into one. Where the jumps are known ahead — the rows of a
//! batch, the features of its entries — a hint a few steps early hides most of the wait.

/// How many jumps ahead to ask: enough to cover a miss, few enough that the line is still there.
pub(crate) const AHEAD: usize = 24;

/// Asks for the line of `array[index]`; an index past the end asks for nothing.
#[inline(always)]
pub(crate) fn prefetch<T>(array: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = array.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that reads and writes nothing the program can see, at any address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (array, index);
}

/// Asks for all lines of a part of an array.
#[inline(always)]
pub(crate) fn prefetch_range<T>(array: &[T], range: std::ops::Range<usize>) {
    let items_per_line = (64 / size_of::<T>().max(1)).max(1);
    range.step_by(items_per_line).for_each(|index| prefetch(array, index));
}
