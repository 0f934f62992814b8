//! Vectors read and written without a question for each: whoever calls has asked once for all of them.
#![allow(unsafe_code, reason = "a question for each vector costs a tenth to a third of a kernel's time")]

use pulp::Simd;

/// The vector at a place.
///
/// # Safety
///
/// `at + S::F32_LANES` is at most the length of `values`.
#[inline(always)]
pub unsafe fn load<S: Simd>(values: &[f32], at: usize) -> S::f32s {
    debug_assert!(at + S::F32_LANES <= values.len(), "a vector lies within its slice");
    // SAFETY: the caller's promise; a vector of floats has no invalid bits and needs no alignment to be read so.
    unsafe { values.as_ptr().add(at).cast::<S::f32s>().read_unaligned() }
}

/// Writes the vector at a place.
///
/// # Safety
///
/// `at + S::F32_LANES` is at most the length of `values`.
#[inline(always)]
pub unsafe fn store<S: Simd>(values: &mut [f32], at: usize, vector: S::f32s) {
    debug_assert!(at + S::F32_LANES <= values.len(), "a vector lies within its slice");
    // SAFETY: the caller's promise, as above.
    unsafe { values.as_mut_ptr().add(at).cast::<S::f32s>().write_unaligned(vector) }
}
