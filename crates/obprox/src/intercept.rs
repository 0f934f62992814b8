//! The intercepts by themselves: their optimum with the weights held.

use rayon::prelude::*;

use crate::pass::BLOCK;
use crate::problem::Problem;

/// Moves the intercepts to their optimum with x held, and the margins with them.
///
/// One output: Newton within a bracket, since the derivative of a convex function rises. Several: Newton on the
/// diagonal, halved whenever it does not help. Nothing moves where the loss has no curvature to give.
pub(crate) fn centre(problem: &Problem, margins: &mut [f64], intercept: &mut [f64]) {
    let (loss, outputs) = (problem.loss(), problem.outputs());
    let n_rows = problem.n_rows();
    let alike = alike(problem, margins);
    let (still, targets) = match &alike {
        Some(alike) => (&alike.margins[..], &alike.targets[..]),
        None => (&*margins, problem.targets()),
    };
    let weights = alike.as_ref().map_or_else(|| problem.row_weights(), |alike| Some(&alike.weights[..]));
    // The 2K sums, gradient and curvature, over fixed blocks.
    let block_sums = |block: usize, shift: &[f64]| -> Option<Vec<f64>> {
        let rows = block * BLOCK..((block + 1) * BLOCK).min(targets.len());
        let mut moved = still[rows.start * outputs..rows.end * outputs].to_vec();
        for row in moved.chunks_exact_mut(outputs) {
            row.iter_mut().zip(shift).for_each(|(margin, shift)| *margin += shift);
        }
        let (mut slopes, mut curvatures) = (vec![0.0; moved.len()], vec![0.0; moved.len()]);
        if !loss.expand(&moved, &targets[rows.clone()], &mut slopes, &mut curvatures) {
            return None;
        }
        let mut sums = vec![0.0; 2 * outputs];
        if outputs == 1 && weights.is_none() {
            sums = vec![slopes.iter().sum(), curvatures.iter().sum()];
            return Some(sums);
        }
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
    let slope_at = |shift: &[f64]| -> Option<(Vec<f64>, Vec<f64>)> {
        let blocks = (0..targets.len().div_ceil(BLOCK)).into_par_iter();
        let partial: Vec<Option<Vec<f64>>> = blocks.map(|block| block_sums(block, shift)).collect();
        let mut sums = vec![0.0; 2 * outputs];
        for block in partial {
            sums.iter_mut().zip(&block?).for_each(|(sum, value)| *sum += value / n_rows as f64);
        }
        let curvature = sums.split_off(outputs);
        Some((sums, curvature))
    };
    let mut shift = vec![0.0; outputs];
    let Some((mut slope, mut curvature)) = slope_at(&shift) else { return };
    let size = |slope: &[f64]| slope.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    // A mean of terms of this size has no more digits than that.
    let small_enough = 4e-15 * size(&slope).max(1.0);
    if outputs == 1 {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut reach = 1.0;
        for _ in 0..200 {
            if slope[0].abs() <= small_enough {
                break;
            }
            if slope[0] > 0.0 {
                high = shift[0]
            } else {
                low = shift[0]
            }
            let mut next = shift[0] - slope[0] / curvature[0];
            if !(next > low && next < high) || (next - shift[0]).abs() > reach {
                // Newton left the bracket or would leap: halve the bracket, or reach out while it is open.
                reach *= 4.0;
                next = match (low.is_finite(), high.is_finite()) {
                    (true, true) => 0.5 * (low + high),
                    _ => shift[0] - reach.copysign(slope[0]),
                };
            }
            if next == shift[0] {
                break;
            }
            shift[0] = next;
            (slope, curvature) = slope_at(&shift).expect("the loss gave its curvature before");
        }
    } else {
        let mut factor = 1.0;
        for _ in 0..60 {
            if size(&slope) <= small_enough || factor < 1e-3 {
                break;
            }
            let trial: Vec<f64> = (0..outputs)
                .map(|k| shift[k] - factor * (slope[k] / curvature[k].max(1e-300)).clamp(-4.0, 4.0))
                .collect();
            let (trial_slope, trial_curvature) = slope_at(&trial).expect("the loss gave its curvature before");
            if size(&trial_slope) < size(&slope) {
                (shift, slope, curvature) = (trial, trial_slope, trial_curvature);
            } else {
                factor *= 0.5;
            }
        }
    }
    if shift.iter().all(|value| value.is_finite()) {
        for row in margins.chunks_exact_mut(outputs) {
            row.iter_mut().zip(&shift).for_each(|(margin, shift)| *margin += shift);
        }
        intercept.iter_mut().zip(&shift).for_each(|(value, shift)| *value += shift);
    }
}

/// Rows that look alike, as one row each with the weight of all.
struct Alike {
    margins: Vec<f64>,
    targets: Vec<f64>,
    weights: Vec<f64>,
}

/// At x = 0 all rows of a class are alike: a handful of rows stands for all. Nothing where margins differ, or where
/// there are many targets.
fn alike(problem: &Problem, margins: &[f64]) -> Option<Alike> {
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
    Some(Alike { margins: first.repeat(targets.len()), targets, weights })
}
