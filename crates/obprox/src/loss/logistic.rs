//! ℓ(m; y) = ln(1 + e^(−ym)), y = ±1.
//!
//! Many rows at once go through kernels of their own, which are a good part of the time of a step: one exponential a
//! row, written so that the compiler turns it into vector registers.

use super::{ScalarLoss, Task};
use crate::wide::wide;

/// The logistic loss of two classes.
#[derive(Clone, Copy, Debug)]
pub struct Logistic;

/// u ln u, continued by 0 at 0.
pub(super) fn entropy(u: f64) -> f64 {
    if u == 0.0 { 0.0 } else { u * u.ln() }
}

/// e^x for x ≤ 0, to the last bit or the one before; below the smallest normal number it stays there. NaN stays NaN.
#[inline(always)]
fn exp_of_negative(x: f64) -> f64 {
    // x = k ln 2 + r with |r| ≤ ½ ln 2; adding 1.5·2⁵² rounds to whole numbers and leaves k in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = if x < -708.0 { -708.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    // Taylor's series to r¹³, whose next term is below 2⁻⁵⁷.
    let mut sum = 1.0 / 6_227_020_800.0;
    for factorial in [479_001_600.0, 39_916_800.0, 3_628_800.0, 362_880.0, 40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0] {
        sum = sum * r + 1.0 / factorial;
    }
    let power = (r * r) * (sum * r + 0.5) + r + 1.0;
    power * f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52)
}

/// ln x for 0 < x ≤ 1, to a bit or two; something finite for 0.
#[inline(always)]
fn ln_of_share(x: f64) -> f64 {
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    // x = 2ᵏ·m with m near 1, between the roots of ½ and 2; k comes out as a double by way of the bits of 2⁵² + k.
    let bits = x.to_bits();
    let m = f64::from_bits(bits & 0x000F_FFFF_FFFF_FFFF | 0x3FF0_0000_0000_0000);
    let above = m > std::f64::consts::SQRT_2;
    let m = if above { 0.5 * m } else { m };
    let k =
        f64::from_bits(bits >> 52 | 0x4330_0000_0000_0000) - 4_503_599_627_371_519.0 + if above { 1.0 } else { 0.0 };
    // ln m = 2 artanh s, s = (m − 1)/(m + 1), by its series to s²¹, whose next term is below 2⁻⁵⁸.
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut sum = 1.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        sum = sum * square + 1.0 / odd;
    }
    k * LN_2_HIGH + (2.0 * s + (2.0 * s * (square * sum) + k * LN_2_LOW))
}

wide! {
    /// Σ ℓ*(s·u; y) over many rows: Σ a ln a + (1 − a) ln(1 − a), a = −syu; infinite where an a is not between 0 and 1.
    fn total_conjugate(scale: f64, duals: &[f64], targets: &[f64]) -> f64 {
        let mut sums = [0.0; LANES];
        let mut inside = [true; LANES];
        let (u, y) = (duals.chunks_exact(LANES), targets.chunks_exact(LANES));
        let rest = u.remainder().iter().zip(y.remainder());
        let rest: f64 = rest.map(|(&u, &y)| Logistic.conjugate(scale * u, y).unwrap_or(f64::INFINITY)).sum();
        for (u, y) in u.zip(y) {
            for lane in 0..LANES {
                let a = -y[lane] * (scale * u[lane]);
                inside[lane] &= (0.0..=1.0).contains(&a);
                sums[lane] += a * ln_of_share(a) + (1.0 - a) * ln_of_share(1.0 - a);
            }
        }
        if inside.contains(&false) { f64::INFINITY } else { rest + sums.iter().sum::<f64>() }
    }
}

wide! {
    /// ℓ′ of many rows.
    fn slopes(margins: &[f64], targets: &[f64], slopes: &mut [f64]) {
        for ((slope, &margin), &target) in slopes.iter_mut().zip(margins).zip(targets) {
            let z = target * margin;
            let e = exp_of_negative(-z.abs());
            *slope = -target * (if z < 0.0 { 1.0 } else { e }) / (1.0 + e);
        }
    }
}

wide! {
    /// ℓ′ and ℓ″ of many rows.
    fn slopes_and_curvatures(margins: &[f64], targets: &[f64], slopes: &mut [f64], curvatures: &mut [f64]) {
        let out = slopes.iter_mut().zip(curvatures);
        for (((slope, curvature), &margin), &target) in out.zip(margins).zip(targets) {
            let z = target * margin;
            let e = exp_of_negative(-z.abs());
            let share = 1.0 / (1.0 + e);
            *slope = -target * (if z < 0.0 { share } else { e * share });
            *curvature = e * share * share;
        }
    }
}

/// Running sums and products side by side: as many as keep the vector registers busy.
const LANES: usize = 8;
/// Factors 1 + e ≤ 2 in one product: far fewer than would overflow.
const FACTORS: usize = 64;

wide! {
    /// Σ ℓ over many rows. The logarithms of a lane are taken at once: Σ ln(1 + e) = ln Π(1 + e), and the product less 1
    /// is what is kept, so that sums of tiny losses have all their digits.
    fn total(margins: &[f64], targets: &[f64]) -> f64 {
        let mut sum = 0.0;
        for (margins, targets) in margins.chunks(LANES * FACTORS).zip(targets.chunks(LANES * FACTORS)) {
            let (mut lost, mut products) = ([0.0; LANES], [0.0; LANES]);
            let (m, y) = (margins.chunks_exact(LANES), targets.chunks_exact(LANES));
            let rest = m.remainder().iter().zip(y.remainder()).map(|(&m, &y)| Logistic.value(m, y)).sum::<f64>();
            for (m, y) in m.zip(y) {
                for lane in 0..LANES {
                    let z = y[lane] * m[lane];
                    let e = exp_of_negative(-z.abs());
                    lost[lane] += if z < 0.0 { -z } else { 0.0 };
                    products[lane] += e + products[lane] * e;
                }
            }
            sum += rest + (0..LANES).map(|lane| lost[lane] + products[lane].ln_1p()).sum::<f64>();
        }
        sum
    }
}

impl ScalarLoss for Logistic {
    fn name(&self) -> &str {
        "logistic"
    }

    fn task(&self) -> Task {
        Task::Binary
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        // Written so that neither end overflows: the exponential only ever sees a negative number.
        let z = target * margin;
        (-z.abs()).exp().ln_1p() + if z < 0.0 { -z } else { 0.0 }
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        -target / (1.0 + (target * margin).exp())
    }

    #[inline]
    fn curvature(&self, margin: f64, _target: f64) -> Option<f64> {
        let e = (-margin.abs()).exp();
        Some(e / ((1.0 + e) * (1.0 + e)))
    }

    fn upper_curvature(&self, margin: f64, _target: f64) -> Option<f64> {
        // Jaakkola and Jordan, A variational approach to Bayesian logistic regression, 1997.
        let half = 0.5 * margin.abs();
        Some(if half < 1e-4 { 0.25 } else { 0.25 * half.tanh() / half })
    }

    fn smoothness(&self) -> Option<f64> {
        Some(0.25)
    }

    fn slope_range(&self, target: f64) -> Option<(f64, f64)> {
        Some((-f64::max(target, 0.0), f64::max(-target, 0.0)))
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        let a = -dual * target;
        Some(if (0.0..=1.0).contains(&a) { entropy(a) + entropy(1.0 - a) } else { f64::INFINITY })
    }

    fn derivatives(&self, margins: &[f64], targets: &[f64], derivatives: &mut [f64]) {
        slopes(margins, targets, derivatives);
    }

    fn expand(&self, margins: &[f64], targets: &[f64], slopes: &mut [f64], curvatures: &mut [f64]) -> bool {
        slopes_and_curvatures(margins, targets, slopes, curvatures);
        true
    }

    fn total(&self, margins: &[f64], targets: &[f64]) -> f64 {
        total(margins, targets)
    }

    fn total_conjugate(&self, scale: f64, duals: &[f64], targets: &[f64]) -> Option<f64> {
        Some(total_conjugate(scale, duals, targets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_the_exponential() {
        for step in 0..100_000 {
            let x = -(step as f64) * 0.0071;
            let (fast, slow) = (exp_of_negative(x), x.max(-708.0).exp());
            assert!((fast - slow).abs() <= 3e-16 * slow, "e^{x}: {fast} and {slow}");
        }
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert!(exp_of_negative(f64::NEG_INFINITY) < 1e-300);
        assert!(exp_of_negative(f64::NAN).is_nan());
    }

    #[test]
    fn the_logarithm_is_the_logarithm() {
        for step in 1..100_000 {
            for x in [step as f64 / 1e5, 1.0 - step as f64 * 1e-9, (-(step as f64) * 0.007).exp()] {
                let (fast, slow) = (ln_of_share(x), x.ln());
                assert!((fast - slow).abs() <= 5e-16 * slow.abs(), "ln {x}: {fast} and {slow}");
            }
        }
        assert_eq!((ln_of_share(1.0), 0.0 * ln_of_share(0.0)), (0.0, -0.0));
    }

    #[test]
    fn many_conjugates_are_those_one_by_one() {
        for len in [0, 3, 8, 700] {
            let targets: Vec<f64> = (0..len).map(|row| if row % 3 == 0 { -1.0 } else { 1.0 }).collect();
            // Shares from 0 to 1, both included.
            let duals: Vec<f64> = (0..len).map(|row| -targets[row] * (row % 50) as f64 / 49.0).collect();
            let slow = duals.iter().zip(&targets).map(|(u, &y)| Logistic.conjugate(0.75 * u, y).unwrap()).sum::<f64>();
            let fast = ScalarLoss::total_conjugate(&Logistic, 0.75, &duals, &targets).unwrap();
            assert!((fast - slow).abs() <= 1e-14 * slow.abs(), "{len} rows: {fast} and {slow}");
            if len > 0 {
                for (at, bad) in [(0, 1.5), (len - 1, -1.5), (len / 2, f64::NAN)] {
                    let mut duals = duals.clone();
                    duals[at] = bad * targets[at];
                    // One side of the range or the other, whichever the target has.
                    duals[(at + 1) % len] = -bad * targets[(at + 1) % len];
                    assert_eq!(ScalarLoss::total_conjugate(&Logistic, 0.75, &duals, &targets), Some(f64::INFINITY));
                }
            }
        }
    }

    #[test]
    fn many_rows_are_the_rows_one_by_one() {
        // A length that fills neither lanes nor chunks; losses from far above 1 to far below rounding.
        for (len, scale) in [(0, 1.0), (5, 1.0), (1301, 1.0), (1301, 30.0), (1301, 700.0), (700, 1e-9)] {
            let margins: Vec<f64> = (0..len).map(|row| (row as f64 * 0.7312).sin() * scale).collect();
            let mut targets: Vec<f64> = (0..len).map(|row| if row % 3 == 0 { -1.0 } else { 1.0 }).collect();
            if scale == 30.0 {
                // All rows on the right side: every loss is tiny.
                targets = margins.iter().map(|m| m.signum()).collect();
            }
            let slow: f64 = margins.iter().zip(&targets).map(|(&m, &y)| Logistic.value(m, y)).sum();
            let fast = Logistic.total(&margins, &targets);
            assert!((fast - slow).abs() <= 1e-14 * slow, "{len} rows at {scale}: {fast} and {slow}");
            let (mut slopes, mut curvatures, mut alone) = (vec![0.0; len], vec![0.0; len], vec![0.0; len]);
            assert!(Logistic.expand(&margins, &targets, &mut slopes, &mut curvatures));
            Logistic.derivatives(&margins, &targets, &mut alone);
            for row in 0..len {
                let slope = Logistic.derivative(margins[row], targets[row]);
                let curvature = ScalarLoss::curvature(&Logistic, margins[row], targets[row]).unwrap();
                assert!((slopes[row] - slope).abs() <= 2e-15 * slope.abs() + 1e-300);
                assert!((alone[row] - slope).abs() <= 2e-15 * slope.abs() + 1e-300);
                assert!((curvatures[row] - curvature).abs() <= 2e-15 * curvature + 1e-300);
            }
        }
        assert!(Logistic.total(&[0.0, f64::NAN, 1.0], &[1.0; 3]).is_nan());
        assert!(Logistic.total(&[f64::NAN; 64], &[1.0; 64]).is_nan());
        assert_eq!(Logistic.total(&[f64::NEG_INFINITY; 16], &[1.0; 16]), f64::INFINITY);
    }
}
