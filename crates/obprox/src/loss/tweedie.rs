//! ℓ(m; y) = y·e^(−(p−1)m)/(p−1) + e^((2−p)m)/(2−p), y ≥ 0, 1 < p < 2: half the deviance of the Tweedie distribution with mean
//! e^m and variance in proportion to e^(pm), less what the model has no part in. Amounts that are often exactly 0.

use super::{ScalarLoss, Task};

/// The Tweedie loss of amounts, some of them zero. Its curvature has no bound, so there is no `--step auto` for it.
#[derive(Clone, Copy, Debug)]
pub struct Tweedie {
    /// p, between 1 (counts) and 2 (the gamma distribution).
    pub power: f64,
}

impl Tweedie {
    /// The power where none is given.
    pub const DEFAULT_POWER: f64 = 1.5;

    /// Whether p is one.
    pub fn is_power(power: f64) -> bool {
        power > 1.0 && power < 2.0
    }

    /// The margin at which ℓ′ is u: Newton's method within a bracket, which ℓ′ = 0 at m = ln y gives one end of.
    fn margin_of(&self, slope: f64, target: f64) -> f64 {
        let (a, b) = (2.0 - self.power, self.power - 1.0);
        let (middle, level) = (target.ln(), target.powf(a) + slope.abs());
        let (mut low, mut high) =
            if slope > 0.0 { (middle, level.ln() / a) } else { (-(level / target).ln() / b, middle) };
        let mut margin = if slope > 0.0 { high } else { low };
        for _ in 0..100 {
            let miss = self.derivative(margin, target) - slope;
            *if miss > 0.0 { &mut high } else { &mut low } = margin;
            let curvature = a * (a * margin).exp() + b * target * (-b * margin).exp();
            let newton = margin - miss / curvature;
            let next = if newton > low && newton < high { newton } else { 0.5 * (low + high) };
            if (next - margin).abs() <= f64::EPSILON * (1.0 + margin.abs()) {
                return next;
            }
            margin = next;
        }
        margin
    }
}

impl ScalarLoss for Tweedie {
    fn name(&self) -> &str {
        "tweedie"
    }

    fn task(&self) -> Task {
        Task::Counts
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.power)
    }

    fn refuses(&self, target: f64) -> Option<&'static str> {
        (target < 0.0).then_some("the tweedie loss is for numbers that are not negative")
    }

    #[inline]
    fn value(&self, margin: f64, target: f64) -> f64 {
        let (a, b) = (2.0 - self.power, self.power - 1.0);
        // A target of 0 has no part in it, however small the margin.
        let pull = if target > 0.0 { target * (-b * margin).exp() / b } else { 0.0 };
        pull + (a * margin).exp() / a
    }

    #[inline]
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        let (a, b) = (2.0 - self.power, self.power - 1.0);
        let pull = if target > 0.0 { target * (-b * margin).exp() } else { 0.0 };
        (a * margin).exp() - pull
    }

    #[inline]
    fn curvature(&self, margin: f64, target: f64) -> Option<f64> {
        let (a, b) = (2.0 - self.power, self.power - 1.0);
        let pull = if target > 0.0 { b * target * (-b * margin).exp() } else { 0.0 };
        Some(a * (a * margin).exp() + pull)
    }

    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        if target > 0.0 {
            let margin = self.margin_of(dual, target);
            return Some(dual * margin - self.value(margin, target));
        }
        // e^(am)/a: the supremum is at e^(am) = u.
        let a = 2.0 - self.power;
        Some(match dual {
            dual if dual > 0.0 => dual * (dual.ln() - 1.0) / a,
            dual if dual >= -4.0 * f64::EPSILON => 0.0,
            _ => f64::INFINITY,
        })
    }
}
