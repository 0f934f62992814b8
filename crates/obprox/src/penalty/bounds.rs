//! p(x) = λ Σ w_j|x_j| where l_j ≤ x_j ≤ h_j, infinite elsewhere; l_j ≤ 0 ≤ h_j.

use std::sync::Arc;

use super::block::{Block, Blocks, Penalty, Smooth};
use super::shrink::{on_face, shrink};
use crate::{Error, Result};

/// The l1 penalty with weights that must not leave their bounds.
#[derive(Clone, Debug)]
pub struct Bounds {
    low: Vec<f64>,
    high: Vec<f64>,
    weights: Option<Vec<f64>>,
}

impl Bounds {
    /// No weight is negative.
    pub fn positive(features: usize) -> Self {
        Self { low: vec![0.0; features], high: vec![f64::INFINITY; features], weights: None }
    }

    /// Each weight lies between its two bounds, which have 0 between them.
    pub fn new(low: Vec<f64>, high: Vec<f64>) -> Result<Self> {
        if low.len() != high.len() {
            let message = format!("{} lower and {} upper ones: there are two for each feature", low.len(), high.len());
            return Err(Error::parameter("bounds", message));
        }
        let is_wrong = |(low, high): (&f64, &f64)| !(*low <= 0.0 && *high >= 0.0);
        if let Some(at) = low.iter().zip(&high).position(is_wrong) {
            let message = format!("feature {}: {} and {} do not have 0 between them", at + 1, low[at], high[at]);
            return Err(Error::parameter("bounds", message));
        }
        Ok(Self { low, high, weights: None })
    }

    /// With weights of λ, one a feature.
    pub fn with_weights(self, weights: Option<Vec<f64>>) -> Self {
        Self { weights, ..self }
    }

    /// λ_j, l_j and h_j of a block, which is one coordinate.
    fn of(&self, block: Block) -> (f64, f64, f64) {
        let feature = block.feature(0);
        let weight = self.weights.as_ref().map_or(1.0, |weights| weights[feature]);
        (block.lambda * weight, self.low[feature], self.high[feature])
    }
}

impl Penalty for Bounds {
    fn name(&self) -> &str {
        if self.low.iter().all(|&low| low == 0.0) && self.high.iter().all(|high| high.is_infinite()) {
            "positive"
        } else {
            "bounds"
        }
    }

    fn blocks(&self, features: usize, outputs: usize) -> Result<Blocks> {
        let given = self.weights.as_ref().map_or(self.low.len(), Vec::len);
        if self.low.len() != features || given != features {
            let given = if given == features { self.low.len() } else { given };
            return Err(Error::parameter(
                "bounds",
                format!("there are those of {given} features, the data has {features}"),
            ));
        }
        Ok(Blocks::single(features, outputs))
    }

    fn value(&self, block: Block, x: &[f64]) -> f64 {
        let (l1, low, high) = self.of(block);
        // A NaN is in no domain, and must not pass for a value that is.
        if x[0] >= low && x[0] <= high { l1 * x[0].abs() } else { f64::INFINITY }
    }

    fn change(&self, block: Block, x: &[f64], to: &[f64]) -> f64 {
        self.of(block).0 * (to[0].abs() - x[0].abs())
    }

    fn prox(&self, block: Block, step: f64, z: &mut [f64]) {
        let (l1, low, high) = self.of(block);
        z[0] = shrink(z[0], step * l1).clamp(low, high) + 0.0;
    }

    fn violation(&self, block: Block, x: &[f64], gradient: &[f64]) -> f64 {
        let (l1, low, high) = self.of(block);
        let (x, g) = (x[0], gradient[0]);
        // What F changes by to the right and to the left; a bound lets it go nowhere.
        let right = if x >= high { f64::INFINITY } else { g + if x < 0.0 { -l1 } else { l1 } };
        let left = if x <= low { f64::INFINITY } else { -g + if x > 0.0 { -l1 } else { l1 } };
        let least = right.min(left);
        if least.is_nan() || g.is_nan() { f64::NAN } else { (-least).max(0.0) }
    }

    fn conjugate(&self, block: Block, dual: &[f64]) -> f64 {
        let (l1, low, high) = self.of(block);
        let beyond = shrink(dual[0], l1);
        match beyond {
            0.0 => 0.0,
            up if up > 0.0 => up * high,
            down => down * low,
        }
    }

    fn smooth(&self, block: Block, x: &[f64], at: Smooth) -> bool {
        let (l1, low, high) = self.of(block);
        at.free[0] = x[0] > low && x[0] < high && (x[0] != 0.0 || l1 == 0.0);
        at.gradient[0] = if at.free[0] && l1 > 0.0 { l1.copysign(x[0]) } else { 0.0 };
        true
    }

    fn on_face(&self, block: Block, x: &[f64], trial: &mut [f64]) {
        let (l1, low, high) = self.of(block);
        let kept = if l1 == 0.0 { trial[0] } else { on_face(trial[0], x[0]) };
        trial[0] = kept.clamp(low, high);
    }

    fn least_lambda(&self, block: Block, gradient: &[f64]) -> f64 {
        let (weight, low, high) = self.of(Block { lambda: 1.0, ..block });
        let pull = if gradient[0] > 0.0 && low == 0.0 || gradient[0] < 0.0 && high == 0.0 { 0.0 } else { gradient[0] };
        match (pull.abs(), weight) {
            (0.0, _) => 0.0,
            (_, 0.0) => f64::INFINITY,
            (pull, weight) => pull / weight,
        }
    }

    fn room(&self, block: Block, dual: &[f64]) -> f64 {
        let (l1, low, high) = self.of(block);
        let is_open = if dual[0] > 0.0 { high == f64::INFINITY } else { low == f64::NEG_INFINITY };
        if is_open && dual[0].abs() > l1 { l1 / dual[0].abs() * (1.0 - f64::EPSILON) } else { 1.0 }
    }

    fn in_units(&self, scales: &[f64]) -> Option<Arc<dyn Penalty>> {
        let scaled = |bounds: &[f64]| bounds.iter().zip(scales).map(|(bound, scale)| bound * scale).collect();
        Some(Arc::new(Self { low: scaled(&self.low), high: scaled(&self.high), weights: self.weights.clone() }))
    }
}
