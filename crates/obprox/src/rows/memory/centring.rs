//! How the rows pull at the intercepts when those move and nothing else does.

use rayon::prelude::*;

use super::pass::BLOCK;
use crate::intercept;
use crate::problem::Problem;

/// Rows that look alike, as one row each with the weight of all.
pub(super) struct Alike {
    margins: Vec<f64>,
    targets: Vec<f64>,
    weights: Vec<f64>,
}

impl Alike {
    /// At x = 0 all rows of a class are alike: a handful of rows stands for all. Nothing where margins differ, or where
    /// there are many targets.
    pub fn of(problem: &Problem, margins: &[f64]) -> Option<Self> {
        const MOST: usize = 256;
        let (first, outputs) = (margins.get(..problem.outputs())?, problem.outputs());
        if margins.chunks_exact(outputs).any(|row| row != first) {
            return None;
        }
        let mut known: Vec<(f64, f64)> = Vec::new();
        for (row, &target) in problem.targets().iter().enumerate() {
            // Most often there are two.
            match known.iter().position(|(other, _)| *other == target) {
                Some(at) => known[at].1 += problem.row_weight(row),
                None if known.len() == MOST => return None,
                None => known.push((target, problem.row_weight(row))),
            }
        }
        known.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (targets, weights): (Vec<f64>, Vec<f64>) = known.into_iter().unzip();
        Some(Self { margins: first.repeat(targets.len()), targets, weights })
    }
}

/// (1/N) Σ wᵢℓ′ of each output, then of ℓ″, if the intercepts moved by so much; nothing where the loss has no ℓ″ to give.
pub(super) fn pulls(problem: &Problem, margins: &[f64], alike: Option<&Alike>, shift: &[f64]) -> Option<Vec<f64>> {
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
pub(super) fn centre(problem: &Problem, margins: &mut [f64], intercept: &mut [f64]) {
    let alike = Alike::of(problem, margins);
    let found = intercept::optimum(problem.outputs(), |shift| {
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
