//! The Hessian that steps are made by, for as long as it serves.

use std::io::{self, Read, Write};
use std::ops::Range;

use super::blockwise;
use super::expansion::Expansion;
use super::quadratic::Quadratic;
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::huge::Huge;
use crate::tuning::cached::NO_DAMPING;

/// The Hessian of a step, and what it was made for.
pub(super) struct CachedHessian {
    pub quadratic: Quadratic,
    /// The indices of the working set in the order of the Hessian.
    pub order: Vec<usize>,
    /// Whether each index of the working set is among them.
    pub holds: Vec<bool>,
    pub outputs: Range<usize>,
    pub damping: f64,
    /// The λ whose optimum it was made at, about, where that is known.
    pub near: Option<f64>,
}

impl CachedHessian {
    pub fn new(hessian: Huge<f64>, order: Vec<usize>, indices: usize, outputs: Range<usize>, damping: f64) -> Self {
        let mut holds = vec![false; indices];
        order.iter().for_each(|&at| holds[at] = true);
        Self { quadratic: Quadratic::new(order.len(), hessian), order, holds, outputs, damping, near: None }
    }

    /// Whether it is damped by so much, or by a like amount that makes no difference.
    pub fn is_damped_by(&self, damping: f64) -> bool {
        self.damping == damping || self.damping.max(damping) <= NO_DAMPING
    }

    /// What it has of the indices of the working set.
    fn of(&self, all: &[f64]) -> Vec<f64> {
        self.order.iter().map(|&at| all[at]).collect()
    }

    /// The minimum of the model around an expansion.
    pub fn minimum(&mut self, at: &Expansion, tolerance: f64) -> Vec<f64> {
        let Expansion { terms, x, u, blocks } = at;
        if let Some(blocks) = blocks {
            return blockwise::minimum(&self.quadratic, &self.order, at, blocks, tolerance);
        }
        let l1: Vec<f64> = self.order.iter().map(|&at| terms[at].l1).collect();
        let (mut ordered, mut slopes) = (self.of(x), self.of(u));
        self.quadratic.solve(&l1, &mut ordered, &mut slopes, tolerance);
        let mut z = x.clone();
        self.order.iter().zip(ordered).for_each(|(&at, value)| z[at] = value);
        z
    }

    /// An expansion after the intercept, the coordinate behind the features, has gone to its optimum by this Hessian.
    pub fn centred(&self, expansion: &Expansion, features: usize) -> Expansion {
        let Expansion { terms, mut x, mut u, blocks } = expansion.clone();
        if let Some(at) = self.order.iter().position(|&at| at == features) {
            let line = self.quadratic.row(at);
            let delta = -u[features] / line[at];
            x[features] += delta;
            self.order.iter().zip(line).for_each(|(&at, h)| u[at] += h * delta);
        }
        Expansion { terms, x, u, blocks }
    }

    /// Goes with its features to a set that has more of them.
    pub fn move_to(&mut self, from: &[u32], to: &[u32]) {
        let index = |&at: &usize| match from.get(at) {
            Some(feature) => to.binary_search(feature).expect("a set that has all of them"),
            None => to.len() + at - from.len(),
        };
        self.order = self.order.iter().map(index).collect();
        self.holds = vec![false; self.holds.len() + to.len() - from.len()];
        self.order.iter().for_each(|&at| self.holds[at] = true);
    }

    /// Takes in some more indices, whose lines over all indices of the set are given.
    pub fn extend(&mut self, indices: &[usize], lines: &[Vec<f64>]) {
        self.order.extend(indices);
        indices.iter().for_each(|&at| self.holds[at] = true);
        let lines = lines.iter().map(|line| self.order.iter().map(|&at| line[at]).collect()).collect::<Vec<Vec<f64>>>();
        self.quadratic.extend(&lines);
    }
}

/// Writes what is cached; a Hessian formed anew would be another one.
pub(super) fn save(cached: Option<&CachedHessian>, out: &mut dyn Write) -> io::Result<()> {
    let none: [f64; 0] = [];
    let made_for = cached.map(|cached| [cached.outputs.start as f64, cached.outputs.end as f64, cached.damping]);
    write_array(out, &made_for.unwrap_or_default())?;
    write_array(out, &cached.map_or(vec![], |cached| cached.order.iter().map(|&at| at as u32).collect()))?;
    write_array(out, cached.map_or(&none[..], |cached| cached.quadratic.hessian()))?;
    write_array(out, &cached.map_or(vec![], |cached| cached.quadratic.factored().iter().map(|&at| at as u32).collect()))
}

/// Reads it back, for a working set of that many coordinates an output.
pub(super) fn load(width: usize, outputs: usize, input: &mut dyn Read) -> io::Result<Option<CachedHessian>> {
    let mut made_for = [0.0; 3];
    read_exactly(input, &mut made_for)?;
    let [start, end] = [made_for[0] as usize, (made_for[1] as usize).min(outputs)];
    let size = width * end.saturating_sub(start);
    let order: Vec<u32> = read_array(input, size)?;
    let hessian: Huge<f64> = read_array(input, size * size)?.into();
    let factored: Vec<u32> = read_array(input, size)?;
    let is_face = factored.is_sorted_by(|a, b| a < b) && factored.last().is_none_or(|&at| (at as usize) < order.len());
    let mut indices = order.clone();
    indices.sort_unstable();
    let are_indices = indices.is_sorted_by(|a, b| a < b) && indices.last().is_none_or(|&at| (at as usize) < size);
    if hessian.len() != order.len() * order.len() || !are_indices || !is_face {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a Hessian of another working set"));
    }
    let order: Vec<usize> = order.into_iter().map(|at| at as usize).collect();
    let damping = made_for[2];
    Ok((!order.is_empty()).then(|| {
        let mut cached = CachedHessian::new(hessian, order, size, start..end, damping);
        cached.quadratic.factor_again(factored.into_iter().map(|at| at as usize).collect());
        cached
    }))
}
