//! Half-space steps on groups of channels: whole groups become zero, around any optimizer.
//!
//! Problem: min f(x) + λ Σ √n_g ‖x_g‖ over groups g of n_g parameters, with a share of the groups that is to be zero in the
//! end. The optimizer takes its step without λ, from x to z; a group that leaves the half space of its direction,
//! ⟨z_g, x_g⟩ ≤ αλ√n_g ‖x_g‖, becomes zero and stays so, the others shrink by αλ√n_g along their own direction. Both with one
//! λ, the least that makes as many groups zero as are planned after each step, as a density is ([`Plan`]); steps before,
//! between and after those have none, so that what is left in the end has been trained on f alone, and the F that a run
//! reports has no such term. Citation: Chen et al., Only Train Once: A One-Shot Neural Network Training and Pruning Framework,
//! 2021 (HSPG), whose λ is given, and whose steps go along the penalty's gradient at x.

use std::collections::BTreeMap;

use burn::module::{Module, ParamId};
use obprox::{Error, Result};

use super::density::{Begun, Plan};
use super::params::{Values, put, values};

/// Rows of parameters: a parameter, and an index of its first dimension.
pub type Rows = Vec<(ParamId, usize)>;

/// Keeps a module to a plan of groups. It has no state: a group that is zero before a step is zero after it.
#[derive(Clone, Debug)]
pub struct GroupControl {
    plan: Plan,
    steps: u64,
    target: usize,
    /// √n_g.
    roots: Vec<f32>,
    /// The group of each row of a parameter, in the order in which groups name them: identities are another order in every
    /// process, and sums in another order are not the same to the bit.
    rows: Vec<(ParamId, Vec<Option<usize>>)>,
    /// Groups of the same parameters, and how many of them stay at least.
    layers: Vec<(Vec<usize>, usize)>,
}

/// The share of the steps after which channels begin to go.
const BEGIN: f64 = 0.1;

impl GroupControl {
    /// For a run of `steps` steps that ends with this share of the groups zero, exactly.
    pub fn new<M: Module>(share: f64, steps: u64, module: &M, groups: &[Rows]) -> Result<Self> {
        let wrong = |message: String| Error::parameter("target-group-sparsity", message);
        if !(share > 0.0 && share < 1.0) {
            return Err(wrong(format!("{share} must lie above 0 and below 1")));
        }
        if groups.is_empty() {
            return Err(wrong("this network has no channels that could go".into()));
        }
        let plan = Plan { latest: BEGIN, ..Plan::new(1.0 - share) };
        let target = (share * groups.len() as f64).round() as usize;
        let mut rows: Vec<(ParamId, Vec<Option<usize>>)> = Vec::new();
        let mut layers: BTreeMap<Vec<ParamId>, Vec<usize>> = BTreeMap::new();
        for (number, group) in groups.iter().enumerate() {
            let mut names: Vec<ParamId> = group.iter().map(|(id, _)| *id).collect();
            names.sort();
            names.dedup();
            layers.entry(names).or_default().push(number);
            for &(id, row) in group {
                let at = rows.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
                    rows.push((id, Vec::new()));
                    rows.len() - 1
                });
                let rows = &mut rows[at].1;
                rows.resize(rows.len().max(row + 1), None);
                rows[row] = Some(number);
            }
        }
        let mut sizes = vec![0; groups.len()];
        let found = values(module, |id| rows.iter().any(|(known, _)| known == id));
        for (id, rows) in &mut rows {
            let Some((shape, values)) = found.get(id).filter(|(shape, _)| rows.len() <= shape[0]) else {
                return Err(wrong("the module does not have all parameters of the groups".into()));
            };
            rows.resize(shape[0], None);
            rows.iter().flatten().for_each(|&group| sizes[group] += values.len() / shape[0]);
        }
        let layers: Vec<(Vec<usize>, usize)> = layers
            .into_values()
            .map(|layer| (plan.least(layer.len()), layer))
            .map(|(least, layer)| (layer, least))
            .collect();
        let least: usize = layers.iter().map(|(_, least)| least).sum();
        if least > groups.len() - target {
            return Err(wrong(format!("{least} of {} groups keep their layers alive: ask for less", groups.len())));
        }
        let roots = sizes.into_iter().map(|size| (size as f32).sqrt()).collect();
        Ok(Self { plan, steps, target, roots, rows, layers })
    }

    /// Groups that are zero, and all.
    pub fn count<M: Module>(&self, module: &M) -> (usize, usize) {
        let norms = self.sums(&self.values(module), |_, _, value| value * value);
        (norms.iter().filter(|norm| **norm == 0.0).count(), norms.len())
    }

    /// Ends step number `done` of a module, counted from 1, which went from `before` to `trial`.
    pub fn project<M: Module>(&self, before: &M, trial: M, done: u64) -> M {
        let (old, mut new) = (self.values(before), self.values(&trial));
        let old_norms = self.sums(&old, |_, _, value| value * value);
        let mut zero: Vec<bool> = old_norms.iter().map(|norm| *norm == 0.0).collect();
        let mut factors = vec![1.0f32; zero.len()];
        let planned = self.planned(done);
        if planned > zero.iter().filter(|zero| **zero).count() {
            let inner = self.sums(&new, |id, at, value| value * old[id].1[at]);
            let norms = self.sums(&new, |_, _, value| value * value);
            // How far a step stays on its own side, in units of a weight.
            let size = |group: usize| match zero[group] {
                true => f32::NEG_INFINITY,
                false => inner[group] / old_norms[group].sqrt() / self.roots[group],
            };
            let sizes: Vec<f32> = (0..zero.len()).map(size).collect();
            zero = self.smallest(&sizes, planned);
            let gone = sizes.iter().zip(&zero).filter(|(_, zero)| **zero).map(|(size, _)| *size);
            let threshold = gone.fold(0.0, f32::max);
            for (group, factor) in factors.iter_mut().enumerate().filter(|(group, _)| sizes[*group] > threshold) {
                // What a layer keeps because it has no more is not penalised: it would be zero as well.
                *factor = 1.0 - threshold * self.roots[group] / norms[group].sqrt();
            }
        }
        for (id, rows) in &self.rows {
            let (shape, values) = new.get_mut(id).expect("a step has all parameters");
            let len = values.len() / shape[0];
            for (values, group) in values.chunks_exact_mut(len).zip(rows) {
                match *group {
                    Some(group) if zero[group] => values.fill(0.0),
                    Some(group) => values.iter_mut().for_each(|value| *value *= factors[group]),
                    None => {}
                }
            }
        }
        put(trial, new.into_iter().map(|(id, (_, values))| (id, values)).collect())
    }

    /// How many groups are to be zero after so many steps.
    fn planned(&self, done: u64) -> usize {
        let (total, begun) = (self.steps as f64, (BEGIN * self.steps as f64) as u64);
        if done as f64 >= self.plan.reach * total || done >= self.steps {
            return self.target;
        }
        if done <= begun {
            return 0;
        }
        let density = self.plan.density(Begun { step: begun, density: 1.0 }, done, self.steps);
        self.target.min(((1.0 - density) * self.roots.len() as f64) as usize)
    }

    /// Exactly so many groups, the smallest ones, of which every layer keeps its least.
    fn smallest(&self, sizes: &[f32], count: usize) -> Vec<bool> {
        let mut kept = vec![false; sizes.len()];
        for (layer, least) in &self.layers {
            let mut layer = layer.clone();
            layer.sort_by(|&one, &two| sizes[two].total_cmp(&sizes[one]));
            layer.iter().take(*least).for_each(|&group| kept[group] = true);
        }
        let mut order: Vec<usize> = (0..sizes.len()).filter(|&group| !kept[group]).collect();
        order.sort_by(|&one, &two| sizes[one].total_cmp(&sizes[two]));
        let mut gone = vec![false; sizes.len()];
        order.into_iter().take(count).for_each(|group| gone[group] = true);
        gone
    }

    fn values<M: Module>(&self, module: &M) -> Values {
        values(module, |id| self.rows.iter().any(|(known, _)| known == id))
    }

    /// Sums over the values of each group.
    fn sums(&self, of: &Values, term: impl Fn(&ParamId, usize, f32) -> f32) -> Vec<f32> {
        let mut sums = vec![0.0; self.roots.len()];
        for (id, rows) in &self.rows {
            let (shape, values) = &of[id];
            let len = values.len() / shape[0];
            for (row, group) in rows.iter().enumerate() {
                let Some(group) = *group else { continue };
                sums[group] += (row * len..(row + 1) * len).map(|at| term(id, at, values[at])).sum::<f32>();
            }
        }
        sums
    }
}
