//! How the rows pull at the intercepts when those move and nothing else does.

use rayon::prelude::*;

use super::pass::{BLOCK, weighted};
use crate::loss::Loss;
use crate::problem::Problem;
use crate::rows::Sums;

/// Rows that look alike, as one row each with the weight of all.
pub(crate) struct Alike {
    margins: Vec<f64>,
    targets: Vec<f64>,
    weights: Vec<f64>,
}

impl Alike {
    /// At x = 0 all rows of a class are alike: a handful of rows stands for all. Nothing where margins differ, or where
    /// there are many targets.
    pub fn of(problem: &Problem, margins: &[f64]) -> Option<Self> {
        let (first, outputs) = (margins.get(..problem.outputs())?, problem.outputs());
        if margins.chunks_exact(outputs).any(|row| row != first) {
            return None;
        }
        let (targets, weights): (Vec<f64>, Vec<f64>) = weights_by_target(problem)?.into_iter().unzip();
        Some(Self { margins: first.repeat(targets.len()), targets, weights })
    }

    /// The same at x = 0 of what [`weights_of_targets`] told of all shards.
    pub fn at_zero(told: &Sums, outputs: usize) -> Option<Self> {
        if told.numbers.len() < 2 {
            return None;
        }
        let (targets, weights): (Vec<f64>, Vec<f64>) =
            told.numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).unzip();
        Some(Self { margins: vec![0.0; outputs * targets.len()], targets, weights })
    }

    /// Σ of the losses where the intercepts are moved by so much.
    pub fn loss(&self, loss: &dyn Loss, shift: &[f64]) -> f64 {
        let rows = self.margins.chunks_exact(shift.len()).zip(&self.targets).zip(&self.weights);
        let of = |((margins, &target), &weight): ((&[f64], &f64), &f64)| {
            let moved: Vec<f64> = margins.iter().zip(shift).map(|(margin, shift)| margin + shift).collect();
            weighted(weight, || loss.value(&moved, target))
        };
        rows.map(of).sum()
    }
}

/// So many distinct targets are told apart.
const MOST: usize = 256;

/// The distinct targets, which rise, each with the weight of its rows; nothing where they are many.
fn weights_by_target(problem: &Problem) -> Option<Vec<(f64, f64)>> {
    let mut known: Vec<(f64, f64)> = Vec::new();
    for (row, &target) in problem.targets().iter().enumerate() {
        match known.binary_search_by(|(other, _)| other.total_cmp(&target)) {
            Ok(at) => known[at].1 += problem.row_weight(row),
            Err(_) if known.len() == MOST => return None,
            Err(at) => known.insert(at, (target, problem.row_weight(row))),
        }
    }
    Some(known)
}

/// The same as a shard tells it: pairs of a target and a weight, or one NaN where targets are many.
pub(crate) fn weights_of_targets(problem: &Problem) -> Sums {
    // Targets that are numbers of rows are those of one shard alone.
    let is_of_rows = problem.targets().first().is_some_and(|&target| problem.loss().offset(target).is_some());
    let known = if is_of_rows { None } else { weights_by_target(problem) };
    let pairs = known.map(|known| known.iter().flat_map(|&(a, b)| [a, b]).collect());
    pairs.unwrap_or_else(|| vec![f64::NAN]).into()
}

/// What two shards tell, as one.
pub(crate) fn merge(a: &Sums, b: &Sums) -> Sums {
    if [a, b].iter().any(|sums| sums.numbers.len() == 1) {
        return vec![f64::NAN].into();
    }
    let mut known: Vec<(f64, f64)> = a.numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    for pair in b.numbers.chunks_exact(2) {
        match known.iter().position(|(target, _)| *target == pair[0]) {
            Some(at) => known[at].1 += pair[1],
            None => known.push((pair[0], pair[1])),
        }
    }
    known.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    match known.len() > MOST {
        true => vec![f64::NAN].into(),
        false => known.into_iter().flat_map(|(target, weight)| [target, weight]).collect::<Vec<f64>>().into(),
    }
}

/// (1/N) Σ wᵢℓ′ of each output, then of ℓ″, if the intercepts moved by so much; nothing where the loss has no ℓ″ to give.
pub(crate) fn pulls(problem: &Problem, margins: &[f64], alike: Option<&Alike>, shift: &[f64]) -> Option<Vec<f64>> {
    if let Some(coupled) = problem.coupled() {
        // All margins move by the same, which changes nothing.
        return Some(vec![0.0, coupled.events(problem.row_weights()) as f64 / problem.total_rows() as f64]);
    }
    let (loss, outputs, n_rows) = (problem.loss(), problem.outputs(), problem.total_rows());
    let (margins, targets, weights) = match alike {
        Some(alike) => (&alike.margins[..], &alike.targets[..], Some(&alike.weights[..])),
        None => (margins, problem.targets(), problem.row_weights()),
    };
    // Over fixed blocks, so that the bits do not depend on threads.
    let block = |block: usize| -> Option<Vec<f64>> {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(targets.len());
        let mut moved = margins[rows.start * outputs..rows.end * outputs].to_vec();
        for row in moved.chunks_exact_mut(outputs) {
            row.iter_mut().zip(shift).for_each(|(margin, shift)| *margin += shift);
        }
        let (mut slopes, mut curvatures) = (vec![0.0; moved.len()], vec![0.0; moved.len()]);
        if !loss.expand(&moved, &targets[rows.clone()], &mut slopes, &mut curvatures) {
            return None;
        }
        if outputs == 1 && weights.is_none() {
            return Some(vec![slopes.iter().sum(), curvatures.iter().sum()]);
        }
        let mut sums = vec![0.0; 2 * outputs];
        for (at, row) in rows.enumerate() {
            let weight = weights.map_or(1.0, |weights| weights[row]);
            if weight == 0.0 {
                continue;
            }
            for output in 0..outputs {
                sums[output] += weight * slopes[at * outputs + output];
                sums[outputs + output] += weight * curvatures[at * outputs + output];
            }
        }
        Some(sums)
    };
    let blocks = (0..targets.len().div_ceil(BLOCK)).into_par_iter();
    let partial: Vec<Option<Vec<f64>>> = blocks.map(block).collect();
    let mut sums = vec![0.0; 2 * outputs];
    for block in partial {
        sums.iter_mut().zip(&block?).for_each(|(sum, value)| *sum += value / n_rows as f64);
    }
    Some(sums)
}

/// Moves the intercepts to their optimum, and the margins with them.
#[cfg(test)]
pub(super) fn centre(problem: &Problem, margins: &mut [f64], intercept: &mut [f64]) {
    let alike = Alike::of(problem, margins);
    let found = crate::intercept::optimum(problem.outputs(), |shift| {
        Ok(pulls(problem, margins, alike.as_ref(), shift).unwrap_or_default())
    });
    if let Ok(Some(shift)) = found {
        shift_by(margins, &shift);
        intercept.iter_mut().zip(&shift).for_each(|(value, shift)| *value += shift);
    }
}

/// Adds to the margins of every row.
pub(super) fn shift_by(margins: &mut [f64], shift: &[f64]) {
    for row in margins.chunks_exact_mut(shift.len()) {
        row.iter_mut().zip(shift).for_each(|(margin, shift)| *margin += shift);
    }
}
