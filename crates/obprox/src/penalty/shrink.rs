//! The pure scalar operators that every method is made of.
//!
//! S(x, t) = sign(x)·max(|x| − t, 0). Comparisons are written so that a NaN goes through: a coordinate that is not a
//! number must never be taken for a zero.

/// S(x, t): towards zero by t ≥ 0, and no further.
#[inline]
pub fn shrink(x: f64, t: f64) -> f64 {
    // Without a branch: whether a weight is zero is a coin toss no predictor wins. The sum turns −0 into 0.
    let kept = x.abs() - t;
    let kept = if kept <= 0.0 { 0.0 } else { kept };
    kept.copysign(x) + 0.0
}

/// The projection of a trial point on the orthant face of x: itself where it kept the sign of x, else 0.
#[inline]
pub fn on_face(trial: f64, x: f64) -> f64 {
    // `|` and not `||`: one condition to select by, no branch to guess.
    let dropped = (x == 0.0) | (trial * 1f64.copysign(x) <= 0.0);
    if dropped { 0.0 } else { trial }
}

/// k proximal steps x ← S(x − αg, αλ)/(1 + αλ₂) with the same α and g, in closed form.
#[inline]
pub fn drift(x: f64, g: f64, l1: f64, pace: Pace, k: u64) -> f64 {
    let mut end = x;
    walk(x, g, l1, pace, k, |from, pull, steps| {
        end = pace.end(from, pull, steps);
        end
    });
    end
}

/// The same, with the sum of the k iterates.
pub fn drift_sum(x: f64, g: f64, l1: f64, pace: Pace, k: u64) -> (f64, f64) {
    let (mut end, mut sum) = (x, 0.0);
    walk(x, g, l1, pace, k, |from, pull, steps| {
        end = pace.end(from, pull, steps);
        sum += pace.sum(from, pull, steps);
        end
    });
    (end, sum)
}

/// The step size α and the quadratic weight λ₂ of a row of equal steps.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// α.
    pub step: f64,
    /// λ₂.
    pub l2: f64,
}

impl Pace {
    /// k steps x ← ρ(x − α·pull) with ρ = 1/(1 + αλ₂): ρᵏx − pull·(1 − ρᵏ)/λ₂, or x − kα·pull where λ₂ = 0.
    #[inline]
    fn end(self, x: f64, pull: f64, k: u64) -> f64 {
        if self.l2 == 0.0 {
            return x - k as f64 * (self.step * pull);
        }
        let exponent = -(k as f64) * (self.step * self.l2).ln_1p();
        x * exponent.exp() + pull * (exponent.exp_m1() / self.l2)
    }

    /// The sum of those k iterates.
    fn sum(self, x: f64, pull: f64, k: u64) -> f64 {
        if self.l2 == 0.0 {
            let k = k as f64;
            return k * x - self.step * pull * (0.5 * k * (k + 1.0));
        }
        // The closed form cancels badly for small αλ₂. Doubling the number of steps adds positive terms only:
        // powers = ρᵏ, sum_powers = Σρⁱ, time = (1 − ρᵏ)/λ₂, sum_time = Σ(1 − ρⁱ)/λ₂.
        let one = {
            let rho = 1.0 / (1.0 + self.step * self.l2);
            [rho, rho, rho * self.step, rho * self.step]
        };
        let join =
            |a: [f64; 4], b: [f64; 4]| [a[0] * b[0], a[1] + a[0] * b[1], b[2] + b[0] * a[2], a[3] + b[3] + b[1] * a[2]];
        let (mut total, mut power, mut left) = ([1.0, 0.0, 0.0, 0.0], one, k);
        while left > 0 {
            if left & 1 == 1 {
                total = join(total, power);
            }
            power = join(power, power);
            left >>= 1;
        }
        x * total[1] - pull * total[3]
    }

    /// How many of the steps leave x > 0 positive under a pull > 0; the caller knows that fewer than k do.
    fn steps_above_zero(self, x: f64, pull: f64, k: u64) -> u64 {
        let crossing = if self.l2 == 0.0 {
            x / (self.step * pull)
        } else {
            (x * self.l2 / pull).ln_1p() / (self.step * self.l2).ln_1p()
        };
        let mut m = (crossing.ceil() as u64).saturating_sub(1).min(k - 1);
        // The division rounds: repair by looking at the steps themselves.
        while m > 0 && self.end(x, pull, m) <= 0.0 {
            m -= 1;
        }
        while m + 1 < k && self.end(x, pull, m + 1) > 0.0 {
            m += 1;
        }
        m
    }
}

/// The path of k equal proximal steps as at most three straight pieces, given to `piece(from, pull, steps)`.
///
/// While x is positive it is pulled by g + λ, while it is negative by g − λ. So a path runs to zero, and from there
/// stays (|g| ≤ λ) or goes on along the other line.
#[inline]
fn walk(x: f64, g: f64, l1: f64, pace: Pace, k: u64, mut piece: impl FnMut(f64, f64, u64) -> f64) {
    if k == 0 {
        return;
    }
    let sign = if x == 0.0 { -g.signum() } else { x.signum() };
    let (x, g) = (x * sign, g * sign);
    let mut piece = |from: f64, pull: f64, steps: u64| piece(from * sign, pull * sign, steps) * sign;
    // From here on x ≥ 0, and x = 0 only with g ≤ 0: the start is on the positive side, or about to enter it.
    let pull = g + l1;
    if x == 0.0 && pull >= 0.0 {
        piece(0.0, 0.0, k);
        return;
    }
    let end = pace.end(x, pull, k);
    if end > 0.0 || end.is_nan() {
        piece(x, pull, k);
        return;
    }
    let above = pace.steps_above_zero(x, pull, k);
    let before = if above > 0 { piece(x, pull, above) } else { x };
    let left = k - above;
    // The step that crosses lands at ρ·min(0, before − α(g − λ)).
    let landing = before - pace.step * (g - l1);
    if g <= l1 || landing >= 0.0 {
        piece(0.0, 0.0, 1);
        if g > l1 && left > 1 {
            piece(0.0, g - l1, left - 1);
        } else if left > 1 {
            piece(0.0, 0.0, left - 1);
        }
    } else {
        piece(before, g - l1, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stepped(x: f64, g: f64, l1: f64, pace: Pace, k: u64) -> (f64, f64) {
        let (mut x, mut sum) = (x, 0.0);
        for _ in 0..k {
            x = shrink(x - pace.step * g, pace.step * l1) / (1.0 + pace.step * pace.l2);
            sum += x;
        }
        (x, sum)
    }

    fn close(a: f64, b: f64, scale: f64) -> bool {
        (a - b).abs() <= 1e-11 * (1.0 + scale)
    }

    proptest! {
        #[test]
        fn a_drift_is_its_steps(
            x in prop_oneof![Just(0.0), -3.0..3.0f64],
            g in prop_oneof![Just(0.0), -2.0..2.0f64],
            l1 in prop_oneof![Just(0.0), 0.0..2.0f64],
            l2 in prop_oneof![Just(0.0), Just(1e-9), 0.0..2.0f64],
            step in 1e-3..0.7f64,
            k in 0u64..60,
        ) {
            let pace = Pace { step, l2 };
            let (end, sum) = stepped(x, g, l1, pace, k);
            let scale = 150.0;
            prop_assert!(close(drift(x, g, l1, pace, k), end, scale));
            let (closed_end, closed_sum) = drift_sum(x, g, l1, pace, k);
            prop_assert!(close(closed_end, end, scale));
            prop_assert!(close(closed_sum, sum, scale * 60.0));
        }
    }

    #[test]
    fn nan_is_never_a_zero() {
        let pace = Pace { step: 0.1, l2: 0.0 };
        assert!(shrink(f64::NAN, 1.0).is_nan());
        assert!(shrink(1.0, f64::NAN).is_nan());
        assert!(on_face(f64::NAN, 1.0).is_nan());
        for k in [1, 5] {
            assert!(drift(f64::NAN, 0.5, 0.1, pace, k).is_nan());
            assert!(drift(1.0, f64::NAN, 0.1, pace, k).is_nan());
            assert!(drift(0.0, f64::NAN, 0.1, pace, k).is_nan());
        }
    }

    #[test]
    fn infinities_do_not_loop_for_ever() {
        let pace = Pace { step: 0.1, l2: 0.0 };
        assert_eq!(drift(f64::INFINITY, 1.0, 0.1, pace, 3), f64::INFINITY);
        assert_eq!(drift(1.0, f64::INFINITY, 0.1, pace, 3), f64::NEG_INFINITY);
    }

    #[test]
    fn the_projection_keeps_the_sign() {
        assert_eq!(on_face(0.5, 2.0), 0.5);
        assert_eq!(on_face(-0.5, 2.0), 0.0);
        assert_eq!(on_face(-0.5, -2.0), -0.5);
        assert_eq!(on_face(0.0, -2.0), 0.0);
        assert_eq!(on_face(0.5, 0.0), 0.0);
        assert_eq!(on_face(-0.5, -0.0), 0.0);
        assert_eq!(on_face(1e-300, 1e-300), 1e-300);
    }
}
