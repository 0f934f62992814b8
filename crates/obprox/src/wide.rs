//! Functions compiled twice: for any processor of the kind, and for the wider vector registers most of them have.
//!
//! The text is the same and so is the order of its additions, hence the bits; only the number of lanes differs. Products are
//! never fused with sums, which processors differ in, so a fit has the same bits on all of them.

/// Declares a function that runs its body in the widest registers the processor has.
macro_rules! wide {
    ($(#[$meta:meta])* $visibility:vis fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$meta])*
        $visibility fn $name($($argument: $kind),*) $(-> $result)? {
            #[inline(always)]
            fn body($($argument: $kind),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            if $crate::wide::is_wide() {
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

/// Whether the processor has the wider registers.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn is_wide() -> bool {
    #[cfg(test)]
    if tests::NARROW.load(std::sync::atomic::Ordering::Relaxed) {
        return false;
    }
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::data::{Dataset, Matrix};
    use crate::loss::LossKind;
    use crate::problem::{Lambda, Problem, Terms};
    use crate::{Fit, Run, Settings};

    /// As on a processor without them. Other tests that run meanwhile must not see a difference: that is the point.
    pub(super) static NARROW: AtomicBool = AtomicBool::new(false);

    fn fit(loss: LossKind, n_cols: usize, filled: usize) -> Fit {
        let number = |row: usize, column: usize| ((row * 131 + column * 37 + row * column) % 1009) as f64 / 504.0 - 1.0;
        let present = |row: usize, column: usize| (row * 7 + column * 3) % 10 < filled;
        let row = |row| (0..n_cols).filter(|&at| present(row, at)).map(|at| (at as u32, number(row, at))).collect();
        let rows: Vec<Vec<(u32, f64)>> = (0..400).map(row).collect();
        let target = |row: usize| match loss {
            LossKind::Logistic | LossKind::SquaredHinge => f64::from(number(row, 1) + number(row, 2) > 0.1),
            LossKind::Softmax => (row % 3) as f64,
            _ => (number(row, 1) + 2.0).floor(),
        };
        let data = Dataset::new(Matrix::from_rows(n_cols, &rows), (0..400).map(target).collect());
        let terms = Terms { lambda: Lambda::OfMax(0.03), ..Terms::default() };
        let problem = Problem::new(data, loss.build(3), &terms).unwrap();
        Run::new(&problem, Settings { tolerance: 1e-10, ..Settings::default() }).fit().unwrap()
    }

    #[test]
    fn processors_with_and_without_wide_registers_give_the_same_bits() {
        for loss in
            [LossKind::Logistic, LossKind::Squared, LossKind::Softmax, LossKind::Poisson, LossKind::SquaredHinge]
        {
            for (n_cols, filled) in [(23, 10), (23, 4), (700, 1)] {
                let wide = fit(loss, n_cols, filled);
                NARROW.store(true, Ordering::Relaxed);
                let narrow = fit(loss, n_cols, filled);
                NARROW.store(false, Ordering::Relaxed);
                let bits = |fit: &Fit| fit.point.weights.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
                assert!(bits(&wide) == bits(&narrow), "{loss:?}, {n_cols} columns");
                assert_eq!(wide.certificate, narrow.certificate, "{loss:?}, {n_cols} columns");
            }
        }
    }
}
