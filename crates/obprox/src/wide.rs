//! Functions compiled twice: for any processor of the kind, and for the wider vector registers most of them have.
//!
//! The text is the same and so is the order of its additions, hence the bits; only the number of lanes differs.

/// Declares a function that runs its body in the widest registers the processor has.
macro_rules! wide {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        $visibility fn $name($($argument: $kind),*) $(-> $result)? {
            #[inline(always)]
            fn body($($argument: $kind),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $kind),*) $(-> $result)? {
                    body($($argument),*)
                }
                // SAFETY: the processor has just said that it has these registers.
                #[allow(unsafe_code)]
                return unsafe { wide($($argument),*) };
            }
            body($($argument),*)
        }
    };
}
pub(crate) use wide;
