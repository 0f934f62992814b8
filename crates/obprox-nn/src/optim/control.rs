//! A module kept to the plan of its density, step by step.
//!
//! An optimizer sees one parameter at a time, and which weights have to go is decided among all of them. So a step has
//! two halves: the optimizer takes it without λ ([`PhaseCell::set_trial`](super::PhaseCell::set_trial)), and
//! [`DensityControl::project`] ends it with the λ_k of the [`Plan`]: x ← S(z, αλ_k) in the Prox phase, in the Orthant phase
//! x ← Proj(z − αλ_k sign x), which zeroes what would leave the orthant of x. Both are those of the paper, with a λ that
//! follows the density still to be lost.

use std::collections::BTreeMap;

use burn::module::{Module, ParamId};
use obprox::switch::Phase;
use obprox::{Error, Result};

use super::density::{Begun, Plan, Trial, size, thresholds};
use super::params::{put, values};

/// Keeps a module to a plan.
#[derive(Clone, Debug)]
pub struct DensityControl {
    plan: Plan,
    steps: u64,
    /// λ of each penalised parameter, relative to the largest.
    weights: BTreeMap<ParamId, f64>,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Controlled {
    /// αλ_k of the layers with the largest λ.
    pub threshold: f64,
    /// Weights that are not zero.
    pub nonzero: usize,
    /// All penalised weights.
    pub size: usize,
    /// Whether no more are left than were asked for.
    pub reached: bool,
}

impl DensityControl {
    /// For a run of `steps` steps, and parameters with these λ; those without one are left alone.
    pub fn new<M: Module>(
        plan: Plan,
        steps: u64,
        module: &M,
        lambdas: impl IntoIterator<Item = (ParamId, f64)>,
    ) -> Result<Self> {
        plan.check()?;
        let mut weights: BTreeMap<ParamId, f64> = lambdas.into_iter().filter(|(_, lambda)| *lambda > 0.0).collect();
        let most = weights.values().copied().fold(0.0, f64::max);
        weights.values_mut().for_each(|lambda| *lambda /= most);
        let control = Self { plan, steps, weights };
        let values = control.values(module);
        plan.check_sizes(&values.values().map(Vec::len).collect::<Vec<_>>())?;
        match values.values().any(|values| values.iter().all(|value| *value == 0.0)) {
            true => Err(Error::parameter("target-density", "a layer of the network is all zeros from the start")),
            false => Ok(control),
        }
    }

    /// What is penalised, and what of it is not zero.
    pub fn count<M: Module>(&self, module: &M) -> (usize, usize) {
        let values = self.values(module);
        let all = values.values().flatten();
        (all.clone().filter(|value| **value != 0.0).count(), all.count())
    }

    /// Whether the descent has to begin after `done` steps, whatever the switch says.
    pub fn has_to_begin(&self, done: u64) -> bool {
        self.plan.has_to_begin(done, self.steps)
    }

    /// Ends step number `done` of a module, counted from 1, which went from `before` to `trial` without λ.
    pub fn project<M: Module>(&self, before: &M, trial: M, phase: Phase, begun: Begun, done: u64) -> (M, Controlled) {
        let (old, mut new) = (self.values(before), self.values(&trial));
        let sizes: Vec<Vec<f32>> =
            new.iter().map(|(id, new)| new.iter().zip(&old[id]).map(|(&z, &x)| size(x, z, phase)).collect()).collect();
        let trials: Vec<Trial> = new
            .keys()
            .zip(&sizes)
            .map(|(id, sizes)| Trial { sizes, weight: self.weights[id], least: self.plan.least(sizes.len()) })
            .collect();
        let all = sizes.iter().map(Vec::len).sum();
        let planned = self.plan.density(begun, done, self.steps);
        let thresholds = thresholds(&trials, Plan::keep(planned, all));
        let mut controlled = Controlled { threshold: 0.0, nonzero: 0, size: all, reached: false };
        for ((id, values), (sizes, threshold)) in new.iter_mut().zip(sizes.iter().zip(thresholds)) {
            controlled.threshold = controlled.threshold.max(f64::from(threshold) / self.weights[id]);
            for (z, size) in values.iter_mut().zip(sizes) {
                // Written so that NaN, which is no zero, goes through.
                *z = if *size <= threshold { 0.0 } else { *z - threshold.copysign(*z) };
                controlled.nonzero += usize::from(*z != 0.0);
            }
        }
        controlled.reached = controlled.nonzero <= Plan::keep(self.plan.target, all);
        (put(trial, new), controlled)
    }

    /// The penalised parameters.
    fn values<M: Module>(&self, module: &M) -> BTreeMap<ParamId, Vec<f32>> {
        let found = values(module, |id| self.weights.contains_key(id));
        found.into_iter().map(|(id, (_, values))| (id, values)).collect()
    }
}
