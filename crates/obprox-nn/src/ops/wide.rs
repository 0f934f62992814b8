//! Work compiled for the widest vector registers of the machine at hand, which `pulp` finds out.

use pulp::NullaryFnOnce;

/// A closure that `pulp` inlines into a function compiled for wide registers.
///
/// It is called by reference. Called once and for all, as `pulp` calls a closure, it would be reached by way of a shim
/// that is not inlined, and run in the registers of the oldest machine.
pub struct Wide<F>(pub F);

impl<R, F: FnMut() -> R> NullaryFnOnce for Wide<F> {
    type Output = R;

    #[inline(always)]
    fn call(mut self) -> R {
        (self.0)()
    }
}

/// `wide!(arch, expression)`: computes the expression in wide registers. It owns what it captures, as numbers that are
/// looked up behind a reference keep a loop from becoming vectors.
macro_rules! wide {
    ($arch:expr, $work:expr) => {
        $arch.dispatch($crate::ops::wide::Wide(
            #[inline(always)]
            move || $work,
        ))
    };
}
pub(super) use wide;
