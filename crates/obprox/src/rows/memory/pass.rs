//! The passes over the data that everything else is made of: margins, losses, gradients.
//!
//! Bits never depend on the number of threads: margins are independent by row; sums over rows are folded in fixed
//! blocks; each thread of the gradient owns a range of columns and adds up the rows in their order.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;

use super::scatter::{FAR, add_rows, by_columns};
use crate::data::{Matrix, Rows, with_rows};
use crate::huge::Huge;
use crate::prefetch::prefetch;
use crate::problem::{Point, Problem};
use crate::tuning::FEW;

/// Rows in one fixed block of a sum.
pub(crate) const BLOCK: usize = 1024;

/// Features that one task adds up.
const FEATURES: usize = 64;

/// The margins m = x·d + b of all rows, K a row.
pub(crate) fn margins(matrix: &Matrix, point: &Point) -> Vec<f64> {
    let outputs = point.intercept.len();
    let mut margins = vec![0.0; matrix.n_rows() * outputs];
    with_rows!(matrix, |rows| margins.par_chunks_mut(BLOCK * outputs).enumerate().for_each(|(block, chunk)| {
        let first = block * BLOCK;
        if outputs == 1 {
            let weights = &point.weights[..rows.n_cols()];
            for (offset, margin) in chunk.iter_mut().enumerate() {
                let mut sum = point.intercept[0];
                if weights.len() > FAR {
                    let soon = |column: usize| prefetch(weights, column);
                    rows.for_each_ahead(first + offset, soon, |column, value| sum += value * weights[column]);
                } else {
                    rows.for_each(first + offset, |column, value| sum += value * weights[column]);
                }
                *margin = sum;
            }
        } else {
            for (offset, margin) in chunk.chunks_exact_mut(outputs).enumerate() {
                margin.copy_from_slice(&point.intercept);
                rows.for_each(first + offset, |column, value| {
                    let weights = &point.weights[column * outputs..(column + 1) * outputs];
                    margin.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += value * weight);
                });
            }
        }
    }));
    margins
}

/// Σ over rows of `of(row)`, in fixed blocks.
pub(crate) fn sum_rows(n_rows: usize, of: impl Fn(usize) -> f64 + Sync) -> f64 {
    let blocks = n_rows.div_ceil(BLOCK);
    let partial: Vec<f64> = (0..blocks)
        .into_par_iter()
        .map(|block| (block * BLOCK..((block + 1) * BLOCK).min(n_rows)).map(&of).sum())
        .collect();
    partial.iter().sum()
}

/// A row's weight times a figure of it; nothing at weight 0, since a row that does not count may well have an infinite
/// loss.
pub(crate) fn weighted(weight: f64, value: impl FnOnce() -> f64) -> f64 {
    if weight == 0.0 { 0.0 } else { weight * value() }
}

/// f: the weighted mean loss at given margins.
pub(crate) fn mean_loss(problem: &Problem, margins: &[f64]) -> f64 {
    if let Some(coupled) = problem.coupled() {
        return coupled.total(margins, problem.row_weights()) / problem.total_rows() as f64;
    }
    let (loss, outputs, targets) = (problem.loss(), problem.outputs(), problem.targets());
    let sum = match problem.row_weights() {
        Some(weights) => sum_rows(problem.n_rows(), |row| {
            weighted(weights[row], || loss.value(&margins[row * outputs..(row + 1) * outputs], targets[row]))
        }),
        None => {
            let blocks = margins.par_chunks(BLOCK * outputs).zip(targets.par_chunks(BLOCK));
            let partial: Vec<f64> = blocks.map(|(margins, targets)| loss.total(margins, targets)).collect();
            partial.iter().sum()
        }
    };
    sum / problem.total_rows() as f64
}

/// The weighted mean of ℓ* at a multiple of the rows' gradients; infinite where there is none.
pub(crate) fn mean_conjugate(problem: &Problem, scale: f64, row_gradients: &[f64]) -> f64 {
    let (loss, outputs, targets) = (problem.loss(), problem.outputs(), problem.targets());
    let total = |duals: &[f64], targets: &[f64]| loss.total_conjugate(scale, duals, targets).unwrap_or(f64::INFINITY);
    let sum = match problem.row_weights() {
        Some(weights) => sum_rows(problem.n_rows(), |row| {
            weighted(weights[row], || total(&row_gradients[row * outputs..(row + 1) * outputs], &targets[row..row + 1]))
        }),
        None => {
            let blocks = row_gradients.par_chunks(BLOCK * outputs).zip(targets.par_chunks(BLOCK));
            blocks.map(|(duals, targets)| total(duals, targets)).collect::<Vec<f64>>().iter().sum()
        }
    };
    sum / problem.total_rows() as f64
}

/// ∇ℓ of each row at given margins, K a row: without the row's weight and without 1/N.
pub(crate) fn row_gradients(problem: &Problem, margins: &[f64]) -> Vec<f64> {
    let (loss, outputs) = (problem.loss(), problem.outputs());
    if problem.coupled().is_some() {
        return expand_together(problem, margins).0;
    }
    let mut gradients = vec![0.0; margins.len()];
    gradients
        .par_chunks_mut(BLOCK * outputs)
        .zip(margins.par_chunks(BLOCK * outputs))
        .zip(problem.targets().par_chunks(BLOCK))
        .for_each(|((gradients, margins), targets)| loss.gradients(margins, targets, gradients));
    gradients
}

/// (1/N) Σ wᵢ·gᵢ: the gradient of f with respect to the intercepts.
pub(crate) fn intercept_gradient(problem: &Problem, row_gradients: &[f64]) -> Vec<f64> {
    let outputs = problem.outputs();
    (0..outputs)
        .map(|output| {
            let of = |row: usize| weighted(problem.row_weight(row), || row_gradients[row * outputs + output]);
            sum_rows(problem.n_rows(), of) / problem.total_rows() as f64
        })
        .collect()
}

/// (1/N) Σ wᵢ·gᵢ·dᵢ, as many outputs as `row_gradients` has a row: the gradient of f with respect to x.
pub(crate) fn gradient(problem: &Problem, row_gradients: &[f64]) -> Huge<f64> {
    let outputs = row_gradients.len() / problem.n_rows();
    let scale = 1.0 / problem.total_rows() as f64;
    if problem.columns().is_none() && outputs == 1 && problem.n_features() <= FEW {
        let mut sums = sum_rows_times(problem.matrix(), &pulls(problem, row_gradients));
        sums.iter_mut().for_each(|sum| *sum *= scale);
        return sums.into();
    }
    let mut gradient = Huge::zeros(problem.n_features() * outputs);
    if let Some(columns) = problem.columns() {
        gradient_by_columns(problem, columns, row_gradients, &mut gradient);
        return gradient;
    }
    let pulls = &*pulls(problem, row_gradients);
    by_columns(problem.matrix(), &mut gradient, |columns, part| {
        with_rows!(problem.matrix(), |rows| add_rows(rows, pulls, columns, part));
        part.iter_mut().for_each(|sum| *sum *= scale);
    });
    gradient
}

/// Adds Σ wᵢ·gᵢ·dᵢ of rows that are some of all, without 1/N.
pub(crate) fn add_gradient(problem: &Problem, row_gradients: &[f64], to: &mut [f64]) {
    let pulls = &*pulls(problem, row_gradients);
    by_columns(problem.matrix(), to, |columns, part| {
        with_rows!(problem.matrix(), |rows| add_rows(rows, pulls, columns, part));
    });
}

/// wᵢℓ′/N and wᵢℓ″/N of each row for one output; the curvatures are at least the given ones, where there are some.
pub(crate) fn expand(problem: &Problem, margins: &[f64], least: &[f64], output: usize) -> (Vec<f64>, Vec<f64>) {
    let (loss, outputs, n_rows) = (problem.loss(), problem.outputs(), problem.n_rows());
    let (mut slopes, mut curvatures) = match problem.coupled() {
        Some(_) => expand_together(problem, margins),
        None => (vec![0.0; n_rows], vec![0.0; n_rows]),
    };
    let out = slopes.par_chunks_mut(BLOCK).zip(curvatures.par_chunks_mut(BLOCK));
    out.enumerate().for_each(|(block, (slopes, curvatures))| {
        let first = block * BLOCK;
        let margins = &margins[first * outputs..(first + slopes.len()) * outputs];
        let targets = &problem.targets()[first..first + slopes.len()];
        if problem.coupled().is_some() {
            // They are there.
        } else if outputs == 1 {
            loss.expand(margins, targets, slopes, curvatures);
        } else {
            let (mut all_slopes, mut all_curvatures) = (vec![0.0; margins.len()], vec![0.0; margins.len()]);
            loss.expand(margins, targets, &mut all_slopes, &mut all_curvatures);
            for at in 0..slopes.len() {
                (slopes[at], curvatures[at]) =
                    (all_slopes[at * outputs + output], all_curvatures[at * outputs + output]);
            }
        }
        curvatures.iter_mut().zip(least.iter().skip(first)).for_each(|(h, &least)| *h = h.max(least));
        let n_all = problem.total_rows() as f64;
        let Some(weights) = problem.row_weights() else {
            let share = 1.0 / n_all;
            slopes.iter_mut().chain(curvatures).for_each(|value| *value *= share);
            return;
        };
        for (at, weight) in weights[first..][..slopes.len()].iter().enumerate() {
            // A row that does not count may well have an infinite slope.
            let share = |value: f64| if *weight == 0.0 { 0.0 } else { weight / n_all * value };
            (slopes[at], curvatures[at]) = (share(slopes[at]), share(curvatures[at]));
        }
    });
    (slopes, curvatures)
}

/// The gradients of the rows times their weights; nothing at weight 0, where they may well be infinite.
fn pulls<'a>(problem: &Problem, row_gradients: &'a [f64]) -> Cow<'a, [f64]> {
    let Some(weights) = problem.row_weights() else { return row_gradients.into() };
    let outputs = row_gradients.len() / problem.n_rows();
    let pull = |(at, &pull): (usize, &f64)| weighted(weights[at / outputs], || pull);
    row_gradients.iter().enumerate().map(pull).collect()
}

/// Rows that a task takes which has sums of its own for few columns.
pub(super) fn rows_a_task(n_rows: usize) -> usize {
    const TASKS: usize = 16;
    n_rows.div_ceil(TASKS).max(BLOCK)
}

/// Σ vᵢ dᵢ over the rows, of few columns.
fn sum_rows_times(matrix: &Matrix, values: &[f64]) -> Vec<f64> {
    fold_tasks(values.len(), matrix.n_cols(), |some, sums| {
        with_rows!(matrix, |rows| for row in some {
            rows.add_all_to(row, values[row], sums);
        });
    })
}

/// Sums of so many numbers over the rows: each task's by itself, then all in their order.
fn fold_tasks(n_rows: usize, len: usize, add: impl Fn(Range<usize>, &mut [f64]) + Sync) -> Vec<f64> {
    let share = rows_a_task(n_rows);
    let starts: Vec<usize> = (0..n_rows).step_by(share).collect();
    let part = |first: usize| {
        let mut sums = vec![0.0; len];
        add(first..(first + share).min(n_rows), &mut sums);
        sums
    };
    let parts: Vec<Vec<f64>> = starts.into_par_iter().map(part).collect();
    let mut sums = vec![0.0; len];
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sums
}

/// What f is like at a point, of a loss with one output.
pub(crate) struct Evaluation {
    pub margins: Vec<f64>,
    /// ℓ′ and ℓ″ of each row.
    pub slopes: Vec<f64>,
    pub curvatures: Vec<f64>,
    /// f.
    pub loss: f64,
    /// ∂f/∂x and ∂f/∂b.
    pub gradient: Vec<f64>,
    pub intercept_slope: f64,
}

/// All of it in one pass over rows of few columns: a block of rows is in the nearest caches when its margins have become
/// slopes, which then pull at the columns. How many tasks there are depends on the number of rows alone, and so do the
/// bits. The evaluation may have the memory of another.
pub(crate) fn evaluate(problem: &Problem, point: &Point, spare: Option<Evaluation>) -> Evaluation {
    if problem.coupled().is_some() {
        return evaluate_together(problem, point);
    }
    let (loss, n_rows) = (problem.loss(), problem.n_rows());
    let share = rows_a_task(n_rows);
    let spare = spare.map(|evaluation| (evaluation.margins, evaluation.slopes, evaluation.curvatures));
    let (mut margins, mut slopes, mut curvatures) =
        spare.unwrap_or_else(|| (vec![0.0; n_rows], vec![0.0; n_rows], vec![0.0; n_rows]));
    let tasks = margins.par_chunks_mut(share).zip(slopes.par_chunks_mut(share)).zip(curvatures.par_chunks_mut(share));
    let parts = tasks.enumerate().map(|(task, ((margins, slopes), curvatures))| {
        let (mut totals, mut gradient) = ([0.0; 2], vec![0.0; problem.n_features()]);
        let blocks = margins.chunks_mut(BLOCK).zip(slopes.chunks_mut(BLOCK)).zip(curvatures.chunks_mut(BLOCK));
        for (block, ((margins, slopes), curvatures)) in blocks.enumerate() {
            let first = task * share + block * BLOCK;
            let targets = &problem.targets()[first..first + margins.len()];
            with_rows!(problem.matrix(), |rows| {
                margins.fill(point.intercept[0]);
                rows.dots(first..first + margins.len(), &point.weights, margins);
                if !loss.expand(margins, targets, slopes, curvatures) {
                    loss.gradients(margins, targets, slopes);
                }
                match problem.row_weights() {
                    None => {
                        add_up(&mut totals, [loss.total(margins, targets), slopes.iter().sum()]);
                        rows.add_rows(first..first + slopes.len(), slopes, &mut gradient);
                    }
                    Some(weights) => {
                        for (at, &weight) in weights[first..first + margins.len()].iter().enumerate() {
                            // A row that does not count may well have an infinite loss.
                            if weight != 0.0 {
                                let value = loss.value(&margins[at..at + 1], targets[at]);
                                add_up(&mut totals, [value, slopes[at]].map(|of| weight * of));
                                rows.add_all_to(first + at, weight * slopes[at], &mut gradient);
                            }
                        }
                    }
                }
            });
        }
        (totals, gradient)
    });
    let (mut totals, mut gradient) = ([0.0; 2], vec![0.0; problem.n_features()]);
    for part in parts.collect::<Vec<([f64; 2], Vec<f64>)>>() {
        add_up(&mut totals, part.0);
        gradient.iter_mut().zip(part.1).for_each(|(sum, part)| *sum += part);
    }
    let scale = 1.0 / problem.total_rows() as f64;
    gradient.iter_mut().for_each(|sum| *sum *= scale);
    let [loss, intercept_slope] = totals.map(|total| scale * total);
    Evaluation { margins, slopes, curvatures, loss, gradient, intercept_slope }
}

/// ℓ′ and ℓ″ of each row, of a loss that sees all margins at once.
pub(super) fn expand_together(problem: &Problem, margins: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (mut slopes, mut curvatures) = (vec![0.0; margins.len()], vec![0.0; margins.len()]);
    if let Some(coupled) = problem.coupled() {
        coupled.expand(margins, problem.row_weights(), &mut slopes, &mut curvatures);
    }
    (slopes, curvatures)
}

/// What f is like at a point, of such a loss.
fn evaluate_together(problem: &Problem, point: &Point) -> Evaluation {
    let margins = margins(problem.matrix(), point);
    let (slopes, curvatures) = expand_together(problem, &margins);
    let (loss, gradient) = (mean_loss(problem, &margins), gradient(problem, &slopes).to_vec());
    let intercept_slope = intercept_gradient(problem, &slopes)[0];
    Evaluation { margins, slopes, curvatures, loss, gradient, intercept_slope }
}

fn add_up(totals: &mut [f64; 2], of: [f64; 2]) {
    totals.iter_mut().zip(of).for_each(|(total, of)| *total += of);
}

/// The same, feature by feature.
fn gradient_by_columns(problem: &Problem, columns: &Matrix, row_gradients: &[f64], gradient: &mut [f64]) {
    let (n_rows, scale) = (problem.n_rows(), 1.0 / problem.total_rows() as f64);
    let outputs = row_gradients.len() / n_rows;
    let pulls = &*pulls(problem, row_gradients);
    with_rows!(columns, |columns| gradient.par_chunks_mut(FEATURES * outputs).enumerate().for_each(
        |(block, chunk)| {
            for (at, sums) in chunk.chunks_exact_mut(outputs).enumerate() {
                if let [out] = sums {
                    *out = scale * columns.dot(block * FEATURES + at, pulls);
                } else {
                    sums.fill(0.0);
                    columns.for_each(block * FEATURES + at, |row, value| {
                        let pulls = &pulls[row * outputs..(row + 1) * outputs];
                        sums.iter_mut().zip(pulls).for_each(|(sum, pull)| *sum += value * pull);
                    });
                    sums.iter_mut().for_each(|sum| *sum *= scale);
                }
            }
        }
    ));
}

/// The largest entry of each column, whatever its sign, of few columns.
pub(crate) fn largest_entries(matrix: &Matrix) -> Vec<f64> {
    if let Matrix::Ones(_) = matrix {
        return vec![1.0; matrix.n_cols()];
    }
    let (n_rows, n_cols) = (matrix.n_rows(), matrix.n_cols());
    let share = rows_a_task(n_rows);
    let part = |first: usize| {
        let mut largest = vec![0.0f64; n_cols];
        with_rows!(matrix, |rows| for row in first..(first + share).min(n_rows) {
            rows.for_each(row, |column, value| largest[column] = largest[column].max(value.abs()));
        });
        largest
    };
    let starts: Vec<usize> = (0..n_rows).step_by(share).collect();
    let wider = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a.max(b)).collect();
    starts.into_par_iter().map(part).reduce(|| vec![0.0; n_cols], wider)
}

/// The share of the entries that some columns have, which rise, judged by a sample of the rows.
pub(crate) fn share_of_entries(matrix: &Matrix, columns: &[u32]) -> f64 {
    let sample = with_rows!(matrix, |rows| sample_of_columns(rows));
    let kept = sample.iter().filter(|&&column| columns.binary_search(&(column as u32)).is_ok()).count();
    kept as f64 / sample.len().max(1) as f64
}

/// The columns of the entries of some rows.
pub(super) fn sample_of_columns(matrix: &impl Rows) -> Vec<usize> {
    const ROWS: usize = 64;
    const ENTRIES: usize = 1 << 14;
    let n_rows = matrix.n_rows();
    let mut sample = Vec::new();
    for row in (0..n_rows).step_by((n_rows / ROWS).max(1)) {
        matrix.for_each(row, |column, _| sample.push(column));
        if sample.len() > ENTRIES {
            break;
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::loss::LossKind;
    use crate::problem::Terms;

    fn number(row: usize, column: usize) -> f64 {
        ((row * 31 + column * 17 + row * column) % 23) as f64 / 8.0 - 1.0
    }

    #[test]
    fn a_look_sees_what_the_passes_see() {
        // More rows than a block has, and than all tasks have blocks.
        let (n_rows, n_cols) = (17 * BLOCK + 5, 7);
        let entries = |row: usize| (0..n_cols).filter(move |&column| (row + column * row / 3).is_multiple_of(3));
        let sparse: Vec<Vec<(u32, f64)>> =
            (0..n_rows).map(|row| entries(row).map(|column| (column as u32, number(row, column))).collect()).collect();
        let dense: Vec<f64> = (0..n_rows * n_cols).map(|at| number(at / n_cols, at % n_cols)).collect();
        let point = Point { weights: (0..n_cols).map(|at| (at as f64).sin()).collect(), intercept: vec![0.3] };
        let weights: Vec<f64> = (0..n_rows).map(|row| (row % 3) as f64).collect();
        for matrix in [Matrix::from_rows(n_cols, &sparse), Matrix::from_dense(n_rows, n_cols, &dense)] {
            for (loss, row_weights) in [
                (LossKind::Logistic, None),
                (LossKind::Logistic, Some(weights.clone())),
                (LossKind::Huber(0.5), Some(weights.clone())),
                (LossKind::Poisson, None),
            ] {
                let targets = (0..n_rows).map(|row| f64::from(row % 5 == 0)).collect();
                let data = Dataset::new(matrix.clone(), targets);
                let terms = Terms { row_weights, ..Terms::default() };
                let problem = Problem::new(data, loss.build(2), &terms).unwrap();
                let evaluation = evaluate(&problem, &point, None);
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-13 * (1.0 + b.abs());
                let margins = margins(problem.matrix(), &point);
                let row_gradients = row_gradients(&problem, &margins);
                let gradient = gradient(&problem, &row_gradients);
                assert!(evaluation.margins.iter().zip(&margins).all(|(a, b)| near(*a, *b)), "{loss:?}");
                assert!(evaluation.slopes.iter().zip(&row_gradients).all(|(a, b)| near(*a, *b)), "{loss:?}");
                assert!(evaluation.gradient.iter().zip(&gradient[..]).all(|(a, b)| near(*a, *b)), "{loss:?}");
                assert!(near(evaluation.loss, mean_loss(&problem, &margins)), "{loss:?}");
                assert!(near(evaluation.intercept_slope, intercept_gradient(&problem, &row_gradients)[0]), "{loss:?}");
                let on_one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                let other = super::evaluate(&problem, &Point { intercept: vec![9.0], ..point.clone() }, None);
                let again = on_one_thread.install(|| super::evaluate(&problem, &point, Some(other)));
                assert_eq!(
                    (again.loss.to_bits(), &again.gradient),
                    (evaluation.loss.to_bits(), &evaluation.gradient),
                    "{loss:?}"
                );
            }
        }
    }

    #[test]
    fn a_row_that_does_not_count_may_have_an_infinite_loss() {
        let data = Dataset::new(Matrix::from_dense(3, 1, &[1.0, -1.0, 1e300]), vec![1.0, 2.0, 3.0]);
        let terms = Terms { row_weights: Some(vec![1.0, 1.0, 0.0]), ..Terms::default() };
        let problem = Problem::new(data, LossKind::Poisson.build(2), &terms).unwrap();
        let evaluation = evaluate(&problem, &Point { weights: vec![0.5], intercept: vec![0.0] }, None);
        assert!(evaluation.margins[2] > 1e299 && evaluation.loss.is_finite() && evaluation.gradient[0].is_finite());
    }
}
