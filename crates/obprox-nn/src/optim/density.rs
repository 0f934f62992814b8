//! A density that was asked for: a plan over the steps of a run, and the λ of each step that keeps to it.
//!
//! Problem: min f(x) + λ‖x‖₁ with at most ρ·n of the n penalised weights not zero. No λ is known to give that density
//! in the steps that a run has, so λ is found on the way. The number of steps is known; the share that may be left after
//! each of them is planned, ρ_k = ρ + (ρ_0 − ρ)(1 − u)³ with ρ_0 the density where the descent begins and u the part of
//! the way that is gone; and λ_k is the least λ with which step k leaves so few: a quantile of what the step would make
//! of the weights. It is nothing where the weights are ahead of the plan. Once ρ is reached the zeros are held, and the
//! others recover without a penalty.
//!
//! The cubic is that of Zhu and Gupta, To prune, or not to prune, 2017; that a weight is shrunk on the way to its zero,
//! instead of being cut off, is the Orthant step.

use obprox::switch::Phase;
use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

/// Which density a run is to end with, and when.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// ρ, the share of the penalised weights that may be left.
    pub target: f64,
    /// The share of the run's steps after which the descent begins, where no switch to Orthant steps began it before.
    pub latest: f64,
    /// The share of the run's steps after which the target is reached, and zeros are held.
    pub reach: f64,
    /// The share of ρ that every layer keeps of its own weights, one of them at least: no layer dies by accident.
    pub floor: f64,
}

/// Where the descent began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// Steps that were done.
    pub step: u64,
    /// The density they had left.
    pub density: f64,
}

impl Plan {
    /// The plan for a density, as it was measured to train best: three quarters of the way.
    pub fn new(target: f64) -> Self {
        Self { target, latest: 0.4, reach: 0.75, floor: 0.1 }
    }

    /// Checks the numbers.
    pub fn check(&self) -> Result<()> {
        let wrong = |name, message: String| Err(Error::parameter(name, message));
        if !(self.target > 0.0 && self.target < 1.0) {
            let why = "must lie above 0 (a network of zeros alone predicts nothing) and below 1";
            return wrong("target-density", format!("{} {why}", self.target));
        }
        if !(self.latest >= 0.0 && self.latest < self.reach && self.reach <= 1.0) {
            let (from, reach) = (self.latest, self.reach);
            return wrong("target-density", format!("cannot be approached from {from} to {reach} of the run"));
        }
        match (0.0..=1.0).contains(&self.floor) {
            true => Ok(()),
            false => wrong("target-density", format!("layers cannot keep {} of it at least", self.floor)),
        }
    }

    /// The share that may be left after `done` of `steps` steps.
    pub fn density(&self, begun: Begun, done: u64, steps: u64) -> f64 {
        let (from, reach) = (begun.step as f64, self.reach * steps as f64);
        let left = if reach > from { 1.0 - ((done as f64 - from) / (reach - from)).clamp(0.0, 1.0) } else { 0.0 };
        self.target + (begun.density - self.target).max(0.0) * left.powi(3)
    }

    /// How many of `size` weights a density leaves.
    pub fn keep(density: f64, size: usize) -> usize {
        // A share is taken for exact: 0.3 of 10 are 3, whatever its binary digits say.
        (density * size as f64 * (1.0 + 1e-12)) as usize
    }

    /// Whether the descent has to begin after `done` of `steps` steps, whatever the switch says.
    pub fn has_to_begin(&self, done: u64, steps: u64) -> bool {
        done as f64 >= self.latest * steps as f64
    }

    /// How many weights a layer of `size` keeps at least.
    pub fn least(&self, size: usize) -> usize {
        ((self.floor * self.target * size as f64).ceil() as usize).clamp(1, size.max(1))
    }

    /// Refuses a density that leaves less than every layer has to keep.
    pub fn check_sizes(&self, sizes: &[usize]) -> Result<()> {
        let (all, least) = (sizes.iter().sum::<usize>(), sizes.iter().map(|&size| self.least(size)).sum::<usize>());
        let keep = Self::keep(self.target, all);
        if all == 0 {
            return Err(Error::parameter("target-density", "nothing is penalised, so nothing can become zero"));
        }
        if keep < least {
            let (target, layers) = (self.target, sizes.len());
            let message = format!(
                "{target} leaves {keep} of {all} weights, and {layers} layers need {least} to stay alive: ask for {:.2e} or more",
                least as f64 / all as f64
            );
            return Err(Error::parameter("target-density", message));
        }
        Ok(())
    }
}

/// What a step would make of a layer, before λ.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// How far each weight is on its side of zero; at most 0 where the step makes it a zero with any λ.
    pub sizes: &'a [f32],
    /// λ of the layer, relative to that of the others.
    pub weight: f64,
    /// Weights it keeps at least.
    pub least: usize,
}

/// How far a weight of size `x` is on its side of zero after a trial step to `z`: what the λ of the step works against.
pub fn size(x: f32, z: f32, phase: Phase) -> f32 {
    match phase {
        Phase::Prox | Phase::Newton => z.abs(),
        // A zero stays one, and what changed its side becomes one. NaN goes through: it is no zero.
        Phase::Orthant | Phase::Hold => z * if x == 0.0 { 0.0 } else { x.signum() },
    }
}

/// The least thresholds αλ_k, layer by layer, above which at most `keep` weights are left, and of each layer its least.
pub fn thresholds(layers: &[Trial], keep: usize) -> Vec<f32> {
    let mut own: Vec<Option<f32>> = vec![None; layers.len()];
    loop {
        let free = || layers.iter().zip(&own).filter(|(_, own)| own.is_none()).map(|(layer, _)| layer);
        let fixed: usize = layers
            .iter()
            .zip(&own)
            .filter_map(|(layer, own)| own.map(|own| layer.sizes.iter().filter(|&&size| size > own).count()))
            .sum();
        let relative = |layer: &Trial| (1.0 / layer.weight) as f32;
        let all: Vec<f32> = free().flat_map(|layer| layer.sizes.iter().map(|size| size * relative(layer))).collect();
        let common = beyond(all, keep.saturating_sub(fixed));
        let mut starved = false;
        for (layer, own) in layers.iter().zip(&mut own).filter(|(_, own)| own.is_none()) {
            let alive = |threshold: f32| layer.sizes.iter().filter(|&&size| size * relative(layer) > threshold).count();
            if alive(common) < layer.least.min(alive(0.0)) {
                // It keeps its largest, and the others have to do with what is left.
                *own = Some(beyond(layer.sizes.to_vec(), layer.least));
                starved = true;
            }
        }
        if !starved {
            let threshold = |(layer, own): (&Trial, &Option<f32>)| own.unwrap_or(common * layer.weight as f32);
            return layers.iter().zip(&own).map(threshold).collect();
        }
    }
}

/// The largest value that is not among the `keep` largest, at least 0: so many are above it, or fewer where some are equal.
fn beyond(mut values: Vec<f32>, keep: usize) -> f32 {
    if keep >= values.len() {
        return 0.0;
    }
    let (_, value, _) = values.select_nth_unstable_by(keep, |a, b| b.total_cmp(a));
    // NaN is larger than every number in this order; a run that has one ends as diverged.
    value.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(sizes: &[f32], least: usize) -> Trial<'_> {
        Trial { sizes, weight: 1.0, least }
    }

    fn left(layers: &[Trial], thresholds: &[f32]) -> Vec<usize> {
        let count = |(layer, &threshold): (&Trial, &f32)| layer.sizes.iter().filter(|&&s| s > threshold).count();
        layers.iter().zip(thresholds).map(count).collect()
    }

    #[test]
    fn the_plan_goes_from_all_to_the_target() {
        let plan = Plan::new(0.05);
        let begun = Begun { step: 10, density: 0.9 };
        let densities: Vec<f64> = (10..=100).map(|done| plan.density(begun, done, 100)).collect();
        assert!((densities[0] - 0.9).abs() < 1e-12);
        assert_eq!((densities[65], densities[90]), (0.05, 0.05));
        assert!(densities.windows(2).all(|pair| pair[1] <= pair[0]));
        assert!(!plan.has_to_begin(39, 100) && plan.has_to_begin(40, 100));
        assert_eq!((Plan::keep(0.05, 1000), Plan::keep(0.3, 10)), (50, 3));
        // One that began when it should have ended has no time to lose.
        assert_eq!(plan.density(Begun { step: 90, density: 1.0 }, 91, 100), 0.05);
    }

    #[test]
    fn what_cannot_be_planned_is_refused() {
        for target in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(Plan::new(target).check().is_err(), "{target}");
        }
        assert!(Plan::new(0.02).check().is_ok());
        let message = Plan::new(0.001).check_sizes(&[500, 500, 500]).unwrap_err().to_string();
        assert!(message.contains("3 layers need 3"), "{message}");
        assert!(Plan::new(0.002).check_sizes(&[500, 500, 500]).is_ok());
        assert!(Plan::new(0.5).check_sizes(&[]).is_err());
    }

    #[test]
    fn thresholds_keep_the_largest_of_all_layers() {
        let layers = [trial(&[0.9, 0.1, 0.5, 0.0], 1), trial(&[0.6, 0.2, -0.3], 1)];
        for keep in 2..=5 {
            let thresholds = thresholds(&layers, keep);
            assert_eq!(thresholds[0], thresholds[1]);
            assert_eq!(left(&layers, &thresholds).iter().sum::<usize>(), keep);
        }
        assert_eq!(thresholds(&layers, 7), [0.0, 0.0], "what is sparse enough is not shrunk");
        assert_eq!(thresholds(&[trial(&[0.5; 4], 1)], 2), [0.5], "equals go together, rather than one too many stays");
    }

    #[test]
    fn a_layer_keeps_its_least_and_the_others_pay_for_it() {
        let layers = [trial(&[0.9, 0.8, 0.7, 0.6], 1), trial(&[0.03, 0.02, 0.01], 2)];
        let thresholds = thresholds(&layers, 4);
        assert_eq!(left(&layers, &thresholds), [2, 2]);
        assert!(thresholds[0] == 0.7 && thresholds[1] == 0.01);
        // One that has less than its least keeps what it has.
        let poor = [trial(&[0.9, 0.8], 1), trial(&[0.01, 0.0], 2)];
        assert_eq!(left(&poor, &super::thresholds(&poor, 2)), [1, 1]);
    }

    #[test]
    fn a_layer_with_a_larger_lambda_gives_more() {
        let layers = [trial(&[0.4, 0.3, 0.2, 0.1], 1), Trial { weight: 2.0, ..trial(&[0.4, 0.3, 0.2, 0.1], 1) }];
        let thresholds = thresholds(&layers, 4);
        assert_eq!(thresholds[1], 2.0 * thresholds[0]);
        assert_eq!(left(&layers, &thresholds), [3, 1]);
    }
}
