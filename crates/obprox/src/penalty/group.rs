//! p(x) = λ Σ_g ((1 − r) w_g ‖x_g‖₂ + r ‖x_g‖₁): the group lasso, and with a share r of l1 the sparse group lasso.
//!
//! A group is some features in all outputs; it is zero as a whole, or not.
//! Citations: Yuan and Lin, Model selection and estimation in regression with grouped variables, 2006; Simon, Friedman,
//! Hastie and Tibshirani, A sparse-group lasso, 2013; Chen et al., Half-space proximal stochastic gradient method for
//! group-sparsity regularized problem, 2020.

use super::block::{Block, Blocks, Penalty, Smooth, dot, least_lambda};
use super::shrink::shrink;
use crate::{Error, Result};

/// Groups of features that are zero together.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The group of each feature; none where each feature is one.
    of: Option<Vec<u32>>,
    /// w_g; the root of a group's number of weights where they are not given.
    weights: Option<Vec<f64>>,
    l1_share: f64,
}

impl Groups {
    /// The weights of each feature in all outputs are a group.
    pub fn each() -> Self {
        Self { of: None, weights: None, l1_share: 0.0 }
    }

    /// The group of each feature is given, numbered from 0 without gaps.
    pub fn new(of: Vec<u32>) -> Result<Self> {
        let count = of.iter().max().map_or(0, |&last| last as usize + 1);
        let mut has = vec![false; count.min(of.len() + 1)];
        of.iter().for_each(|&group| has.get_mut(group as usize).into_iter().for_each(|has| *has = true));
        if count > of.len() || has.contains(&false) {
            return Err(Error::parameter("groups", "they are numbered from 0 without gaps"));
        }
        Ok(Self { of: Some(of), weights: None, l1_share: 0.0 })
    }

    /// With a weight for each group, 0 for none at all.
    pub fn with_weights(self, weights: Vec<f64>) -> Result<Self> {
        if let Some(at) = weights.iter().position(|weight| !(weight.is_finite() && *weight >= 0.0)) {
            let message = format!("number {} is {}; weights are finite and not negative", at + 1, weights[at]);
            return Err(Error::parameter("group weights", message));
        }
        Ok(Self { weights: Some(weights), ..self })
    }

    /// With a share r of l1: features of a group that is not zero may be.
    pub fn with_l1_share(self, l1_share: f64) -> Result<Self> {
        match (0.0..=1.0).contains(&l1_share) {
            true => Ok(Self { l1_share, ..self }),
            false => Err(Error::parameter("l1 share", format!("{l1_share} must lie between 0 and 1"))),
        }
    }

    /// λ(1 − r)w_g and λr.
    fn of(&self, block: Block) -> (f64, f64) {
        let weight = match &self.weights {
            Some(weights) => weights[block.number],
            None => (block.coordinates.len() as f64).sqrt(),
        };
        // A group of no weight is free of l1 too.
        let l1 = if weight == 0.0 { 0.0 } else { block.lambda * self.l1_share };
        (block.lambda * (1.0 - self.l1_share) * weight, l1)
    }
}

fn norm(x: &[f64]) -> f64 {
    // Squares of sizes that have none are scaled first.
    let largest = x.iter().fold(0.0, |most: f64, x| if x.is_nan() { f64::NAN } else { most.max(x.abs()) });
    if largest > 1e-140 && largest < 1e140 {
        return dot(x, x).sqrt();
    }
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    x.iter().map(|x| x / largest * (x / largest)).sum::<f64>().sqrt() * largest
}

impl Penalty for Groups {
    fn name(&self) -> &str {
        if self.l1_share > 0.0 { "sparse group" } else { "group" }
    }

    fn blocks(&self, features: usize, outputs: usize) -> Result<Blocks> {
        let given = self.of.as_ref().map_or(features, Vec::len);
        if given != features {
            let message = format!("there are those of {given} features, the data has {features}");
            return Err(Error::parameter("groups", message));
        }
        let blocks = match &self.of {
            Some(of) => Blocks::groups(of, outputs),
            None => Blocks::rows(features, outputs),
        };
        match &self.weights {
            Some(weights) if weights.len() != blocks.len() => {
                let message = format!("{} weights for {} groups", weights.len(), blocks.len());
                Err(Error::parameter("group weights", message))
            }
            _ => Ok(blocks),
        }
    }

    fn value(&self, block: Block, x: &[f64]) -> f64 {
        let (l2, l1) = self.of(block);
        let sum = if l1 > 0.0 { l1 * x.iter().map(|x| x.abs()).sum::<f64>() } else { 0.0 };
        sum + l2 * norm(x)
    }

    fn change(&self, block: Block, x: &[f64], to: &[f64]) -> f64 {
        let (l2, l1) = self.of(block);
        let sizes = norm(x) + norm(to);
        // ‖y‖ − ‖x‖ = (y − x)·(y + x)/(‖y‖ + ‖x‖).
        let square = |(x, to): (&f64, &f64)| (to - x) * ((to + x) / sizes);
        let longer = if sizes > 0.0 { x.iter().zip(to).map(square).sum() } else { 0.0 };
        let l1 = if l1 > 0.0 { l1 * x.iter().zip(to).map(|(x, to)| to.abs() - x.abs()).sum::<f64>() } else { 0.0 };
        l1 + l2 * longer
    }

    fn prox(&self, block: Block, step: f64, z: &mut [f64]) {
        let (l2, l1) = self.of(block);
        if l1 > 0.0 {
            z.iter_mut().for_each(|z| *z = shrink(*z, step * l1));
        }
        let size = norm(z);
        let share = 1.0 - step * l2 / size;
        // Written so that a NaN stays one.
        if size == 0.0 || share <= 0.0 {
            z.fill(0.0);
        } else if l2 > 0.0 {
            z.iter_mut().for_each(|z| *z *= share);
        }
    }

    fn violation(&self, block: Block, x: &[f64], gradient: &[f64]) -> f64 {
        let (l2, l1) = self.of(block);
        let size = norm(x);
        if size == 0.0 {
            let left: Vec<f64> = gradient.iter().map(|&g| shrink(g, l1)).collect();
            let left = norm(&left);
            return if left <= l2 { 0.0 } else { left - l2 };
        }
        let of = |(&x, &g): (&f64, &f64)| match x {
            0.0 => shrink(g, l1),
            x => g + l1.copysign(x) + l2 * (x / size),
        };
        norm(&x.iter().zip(gradient).map(of).collect::<Vec<f64>>())
    }

    fn conjugate(&self, block: Block, dual: &[f64]) -> f64 {
        let (l2, l1) = self.of(block);
        let beyond = norm(&dual.iter().map(|&u| shrink(u, l1)).collect::<Vec<f64>>());
        // A point on the border is inside, however its norm was rounded.
        if beyond <= l2 * (1.0 + 4.0 * f64::EPSILON) { 0.0 } else { f64::INFINITY }
    }

    fn smooth(&self, block: Block, x: &[f64], at: Smooth) -> bool {
        let ((l2, l1), size) = (self.of(block), norm(x));
        let Smooth { free, gradient, hessian } = at;
        if size == 0.0 && (l2 > 0.0 || l1 > 0.0) {
            return false;
        }
        for (at, &x) in x.iter().enumerate() {
            free[at] = x != 0.0 || l1 == 0.0;
            gradient[at] = match x {
                0.0 => 0.0,
                x => l1.copysign(x) + l2 * (x / size),
            };
        }
        if let (Some(hessian), true) = (hessian, l2 > 0.0) {
            let count = x.len();
            for (row, &a) in x.iter().enumerate().filter(|(row, _)| free[*row]) {
                for (column, &b) in x.iter().enumerate().filter(|(column, _)| free[*column]) {
                    let identity = f64::from(u8::from(row == column));
                    hessian[row * count + column] = l2 / size * (identity - a / size * (b / size));
                }
            }
        }
        true
    }

    fn on_face(&self, block: Block, x: &[f64], trial: &mut [f64]) {
        let (l2, l1) = self.of(block);
        if l1 > 0.0 {
            trial.iter_mut().zip(x).for_each(|(trial, &x)| *trial = super::shrink::on_face(*trial, x));
        }
        if l2 > 0.0 && dot(x, trial) <= 0.0 {
            trial.fill(0.0);
        }
    }

    fn least_lambda(&self, block: Block, gradient: &[f64]) -> f64 {
        let (weight, l1) = self.of(Block { lambda: 1.0, ..block });
        let (size, largest) = (norm(gradient), gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs())));
        match (size, weight, l1) {
            (0.0, ..) => 0.0,
            (_, 0.0, 0.0) => f64::INFINITY,
            (size, weight, 0.0) => size / weight,
            (_, 0.0, l1) => largest / l1,
            // ‖S(g, λr)‖ falls and λ(1 − r)w rises.
            _ => least_lambda(gradient, |lambda| {
                let left: Vec<f64> = gradient.iter().map(|&g| shrink(g, lambda * l1)).collect();
                norm(&left) <= lambda * weight
            }),
        }
    }

    fn room(&self, block: Block, dual: &[f64]) -> f64 {
        let (l2, l1) = self.of(block);
        if l1 == 0.0 {
            return (l2 / norm(dual)).min(1.0);
        }
        // s·u is inside at λ where u is at λ/s.
        let least = self.least_lambda(block, dual);
        if least <= block.lambda { 1.0 } else { block.lambda / least }
    }
}
