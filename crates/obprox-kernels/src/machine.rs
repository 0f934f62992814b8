//! The vector instructions of the machine at hand, found out by `pulp`.

use pulp::{Arch, Simd, WithSimd};

/// Runs work compiled for the widest registers.
pub fn dispatch<W: WithSimd>(work: W) -> W::Output {
    Arch::new().dispatch(work)
}

/// Runs work compiled for registers of at most eight floats, for code whose memory is laid out for those.
pub fn dispatch_to_eight<W: WithSimd>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return Simd::vectorize(simd, work);
    }
    dispatch(work)
}

/// Floats in a register.
pub fn vector() -> usize {
    struct Width;

    impl WithSimd for Width {
        type Output = usize;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> usize {
            S::F32_LANES
        }
    }

    dispatch(Width)
}
