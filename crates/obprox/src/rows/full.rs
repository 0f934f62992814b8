//! What takes a pass over all rows, wherever they are: in memory, or in shards that are read one after the other.

use std::ops::Range;

use rayon::prelude::*;

use super::pass;
use crate::Result;
use crate::huge::Huge;
use crate::problem::{Point, Problem};

/// Hands out the rows with their numbers: all at once where they are in memory.
fn for_each_part(problem: &Problem, mut each: impl FnMut(Range<usize>, &Problem)) -> Result<()> {
    if !problem.in_shards() {
        each(0..problem.n_rows(), problem);
        return Ok(());
    }
    for shard in problem.read_shards(|_| true) {
        let (rows, shard) = shard?;
        each(rows, &shard);
    }
    Ok(())
}

/// f along x, from what `of` makes of the rows' margins at a point, as many numbers; and those numbers.
fn gradient_at(
    problem: &Problem,
    point: &Point,
    of: impl Fn(&Problem, Vec<f64>) -> Vec<f64>,
) -> Result<(Vec<f64>, Huge<f64>)> {
    if !problem.in_shards() {
        let pulls = of(problem, pass::margins(problem.matrix(), point));
        let gradient = pass::gradient(problem, &pulls);
        return Ok((pulls, gradient));
    }
    let outputs = point.intercept.len();
    let mut pulls = Vec::with_capacity(problem.n_rows() * outputs);
    let mut gradient = Huge::zeros(problem.n_features() * outputs);
    for_each_part(problem, |_, part| {
        let of_part = of(part, pass::margins(part.matrix(), point));
        pass::add_gradient(part, &of_part, &mut gradient);
        pulls.extend(of_part);
    })?;
    let scale = 1.0 / problem.n_rows() as f64;
    gradient.iter_mut().for_each(|sum| *sum *= scale);
    Ok((pulls, gradient))
}

/// What a method keeps of the point that its gradients are measured against.
pub(crate) struct Anchor {
    /// ∇ℓ of each row, K a row.
    pub rows: Vec<f64>,
    /// ∇f along x and along the intercepts.
    pub weights: Huge<f64>,
    pub intercept: Vec<f64>,
}

impl Anchor {
    /// That of a point.
    pub fn at(problem: &Problem, point: &Point) -> Result<Self> {
        let (rows, weights) = gradient_at(problem, point, |part, margins| pass::row_gradients(part, &margins))?;
        let intercept = pass::intercept_gradient(problem, &rows);
        Ok(Self { rows, weights, intercept })
    }
}

/// The largest eigenvalue of (1/N) Σ wᵢ dᵢdᵢᵀ and the largest wᵢ‖dᵢ‖², the intercept's 1 counted in both.
pub(crate) fn smoothness(problem: &Problem) -> Result<(f64, f64)> {
    let n_rows = problem.n_rows();
    let extra = if problem.has_intercept() { 1.0 } else { 0.0 };
    let mut worst = 0.0f64;
    for_each_part(problem, |_, part| {
        let squared_norm = |row: usize| {
            let mut sum = extra;
            part.matrix().for_each(row, |_, value| sum += value * value);
            part.row_weight(row) * sum
        };
        worst = worst.max((0..part.n_rows()).into_par_iter().map(squared_norm).reduce(|| 0.0, f64::max));
    })?;
    // Power iteration on one output; a start without zeros meets every eigenvector, and a slightly low value is
    // lifted by the margin below.
    let start = |at: usize| 1.0 + 0.1 * ((at as f64 * 0.618_033_988_749_895).fract() - 0.5);
    let mut point = Point { weights: (0..problem.n_features()).map(start).collect(), intercept: vec![extra] };
    let mut eigenvalue = 0.0;
    for _ in 0..30 {
        let norm = point.weights.iter().chain(&point.intercept).map(|x| x * x).sum::<f64>().sqrt();
        if norm == 0.0 {
            break;
        }
        point.weights.iter_mut().chain(&mut point.intercept).for_each(|x| *x /= norm);
        let (margins, next) = gradient_at(problem, &point, |_, margins| margins)?;
        let slope = pass::sum_rows(n_rows, |row| problem.row_weight(row) * margins[row]) / n_rows as f64;
        let before = eigenvalue;
        eigenvalue =
            next.iter().zip(&point.weights).map(|(a, b)| a * b).sum::<f64>() + extra * slope * point.intercept[0];
        point = Point { weights: next.to_vec(), intercept: vec![extra * slope] };
        if (eigenvalue - before).abs() <= 1e-3 * eigenvalue {
            break;
        }
    }
    Ok(((1.05 * eigenvalue).min(worst), worst))
}
