//! A dual point that is feasible where there is no penalty.
//!
//! Weak duality wants Aᵀθ = 0 for the columns A of the unpenalised coordinates, the intercept's ones among them. The
//! slopes θ of the losses at a point have that only at the optimum, so they are corrected: θ′ = θ − H·Aδ with
//! (AᵀHA)δ = Aᵀθ, H being the curvatures of the losses. That is what a Newton step of the unpenalised coordinates would
//! do to θ, and near the optimum it is next to nothing. A row whose θ′ would leave the domain of ℓ* keeps its θ.
//!
//! Rounding leaves some c = Aᵀθ′. Over all z whose unpenalised coordinates make margins of at most M in quadratic mean,
//! |c·z| ≤ √(cᵀG⁻¹c)·M with G = AᵀA: columns may have any units. M is twice what they make here and [`FAR`] times what
//! the margins would have to move by to undo the loss at x = 0. Of columns that are nearly the same G shows too little,
//! so one that hardly differs from a sum of others is replaced by the difference, which spans the same.

use std::borrow::Cow;

use super::Intercept;
use crate::Result;
use crate::penalty::block::Kind;
use crate::penalty::{Separable, Term};
use crate::problem::{Point, Problem};
use crate::rows::{DualJob, Job, Shards};

/// How far the margins may lie from here at the optimum, in units of [`Problem::margin_unit`].
const FAR: f64 = 1e3;
/// Coordinates without penalty that are corrected for; beyond them the factor would cost more than the fit.
const MOST: usize = 1024;
/// Corrections: the first takes θ there, the others remove what rounding and rows at the edge of their domain left.
const CORRECTIONS: usize = 8;
/// What c may leave open, relative to F, before it is worth another correction.
const NEGLIGIBLE: f64 = 1e-14;
/// The same before an intercept alone is: another pass over the data for its sake must be worth it.
const LITTLE: f64 = 1e-6;
/// A pivot below this share of its diagonal is that of a column which depends on those before it.
const DEPENDENT: f64 = 1e-11;

/// The gradient of a dual point that is feasible but for what is `open`.
pub(super) struct Feasible<'a> {
    pub gradient: Cow<'a, [f64]>,
    /// How far the true gradient may be from that.
    pub off: Option<Vec<f64>>,
    /// What has to be added to the gap, for slopes that are not scaled.
    pub open: f64,
}

/// The dual point without the slope of the intercept, if nothing else is without penalty: θ′ = θ − h·c_b/Σh. No pass over
/// the data is needed, since that moves the slope of a column by no more than |c_b| times its largest entry.
pub(super) fn without_slope<'a>(
    rows: &mut dyn Shards,
    problem: &Problem,
    intercepts: &[Intercept],
    gradient: &'a [f64],
    largest: &[f64],
) -> Result<Option<Feasible<'a>>> {
    let &[Intercept { at, slope }] = intercepts else { return Ok(None) };
    if has_free_features(problem) {
        return Ok(None);
    }
    let step = slope / rows.dual(DualJob::Curvature)?[0];
    if !step.is_finite() {
        return Ok(None);
    }
    let left = rows.dual(DualJob::Move(step))?[0];
    let open = left.abs() * (FAR * problem.margin_unit() + 2.0 * at.abs());
    let off = Some(largest.iter().map(|largest| slope.abs() * largest).collect());
    Ok(Some(Feasible { gradient: gradient.into(), off, open }))
}

/// Whether there may be features without penalty: with the same l1 penalty on all, only the intercept has none.
fn has_free_features(problem: &Problem) -> bool {
    let regularization = problem.regularization();
    regularization.blocks.is_some()
        || regularization.l1 == 0.0
        || regularization.weights.as_ref().is_some_and(|weights| weights.contains(&0.0))
}

/// Corrects the dual point of placed rows, whose gradient is at hand.
pub(super) fn feasible<'a>(
    rows: &mut dyn Shards,
    problem: &Problem,
    point: &Point,
    objective: f64,
    intercepts: &[Intercept],
    gradient: &'a [f64],
) -> Result<Feasible<'a>> {
    let (outputs, regularization) = (problem.outputs(), problem.regularization());
    let is_free = |feature: &u32| match regularization.on_blocks() {
        // All outputs of a feature are free, or none.
        Some(penalty) => penalty.kind(penalty.blocks.of(*feature as usize * outputs)) == Kind::Free,
        None => {
            let term = regularization.term(*feature as usize);
            term.kink() == 0.0 && term.l2 == 0.0
        }
    };
    let some = if has_free_features(problem) { problem.n_features() as u32 } else { 0 };
    let features: Vec<u32> = (0..some).filter(is_free).collect();
    let far = FAR * problem.margin_unit();
    if features.is_empty() {
        // An intercept by itself has G = 1, and was moved to its optimum before: as far as the rounding of margins allows.
        let square = |of: fn(&Intercept) -> f64| intercepts.iter().map(|b| of(b) * of(b)).sum::<f64>().sqrt();
        let open = square(|b| b.slope) * (far + 2.0 * square(|b| b.at));
        if open <= LITTLE * objective.abs() {
            return Ok(Feasible { gradient: gradient.into(), off: None, open });
        }
    }
    let squares = rows.dual(DualJob::Free(&features))?;
    let of = |&feature: &u32| &point.weights[feature as usize * outputs..][..outputs];
    let x: Vec<f64> = features.iter().flat_map(of).copied().chain(intercepts.iter().map(|b| b.at)).collect();
    let far = far + 2.0 * rows.dual(DualJob::FreeMargins(&x))?[0].sqrt();
    if x.len() > MOST {
        let c = rows.dual(DualJob::FreeSlopes)?;
        let open = |at: usize| c[at].abs() * far / squares[at / outputs].sqrt();
        let open = (0..c.len()).filter(|&at| c[at] != 0.0).map(open).sum();
        return Ok(Feasible { gradient: gradient.into(), off: None, open });
    }
    let gram = orthogonalise(rows, squares.len())?;
    let left = |c: &[f64]| {
        let of_output = |k: usize| {
            let c: Vec<f64> = c.iter().skip(k).step_by(outputs).copied().collect();
            c.iter().zip(gram.solve(&c)).map(|(c, z)| c * z).sum::<f64>()
        };
        (0..outputs).map(of_output).sum::<f64>().max(0.0).sqrt() * far
    };
    let mut c = rows.dual(DualJob::FreeSlopes)?;
    let mut hessian: Option<Factor> = None;
    for _ in 0..CORRECTIONS {
        if left(&c) <= NEGLIGIBLE * objective.abs() {
            break;
        }
        let factor = match hessian.take() {
            Some(factor) => factor,
            None => Factor::of(c.len(), rows.dual(DualJob::FreeHessian)?),
        };
        let held = rows.dual(DualJob::FreeCorrect(&factor.solve(&c)))?[0];
        hessian = Some(factor).filter(|_| held == 0.0);
        c = rows.dual(DualJob::FreeSlopes)?;
    }
    let gradient = rows.array(&Job::Dual(DualJob::Gradient))?.to_vec();
    Ok(Feasible { gradient: gradient.into(), off: None, open: left(&c) })
}

/// Replaces what hardly differs from a sum of the columns before it by the difference; the factor of G = AᵀA.
fn orthogonalise(rows: &mut dyn Shards, size: usize) -> Result<Factor> {
    let mut gram = rows.dual(DualJob::FreeGram)?;
    let factor = Factor::of(size, gram.clone());
    if factor.depends.iter().all(|depends| !depends) {
        return Ok(factor);
    }
    for row in 0..size {
        (0..row).for_each(|column| gram[column * size + row] = gram[row * size + column]);
    }
    let share = |index: usize| (index, factor.solve(&gram[index * size..][..size]));
    let replaced: Vec<(usize, Vec<f64>)> = (0..size).filter(|&index| factor.depends[index]).map(share).collect();
    rows.dual(DualJob::FreeReplace(&replaced))?;
    Ok(Factor::of(size, rows.dual(DualJob::FreeGram)?))
}

/// A Cholesky factor that passes over the columns which depend on those before them.
struct Factor {
    size: usize,
    lower: Vec<f64>,
    depends: Vec<bool>,
}

impl Factor {
    /// Factors a matrix of which the lower triangle is given.
    fn of(size: usize, mut lower: Vec<f64>) -> Self {
        let mut depends = vec![false; size];
        for row in 0..size {
            let (above, line) = lower.split_at_mut(row * size);
            for column in 0..row {
                if !depends[column] {
                    let other = &above[column * size..][..=column];
                    let sum: f64 = line[..column].iter().zip(other).map(|(a, b)| a * b).sum();
                    line[column] = (line[column] - sum) / other[column];
                } else {
                    line[column] = 0.0;
                }
            }
            let square: f64 = line[..row].iter().map(|a| a * a).sum();
            let pivot = line[row] - square;
            depends[row] = pivot.is_nan() || pivot <= DEPENDENT * line[row].abs();
            line[row] = if depends[row] { 0.0 } else { pivot.sqrt() };
        }
        Self { size, lower, depends }
    }

    /// The solution, zero where a column depends on others.
    fn solve(&self, b: &[f64]) -> Vec<f64> {
        let mut y = b.to_vec();
        for row in 0..self.size {
            let line = &self.lower[row * self.size..][..=row];
            let sum: f64 = line[..row].iter().zip(&y).map(|(a, y)| a * y).sum();
            y[row] = if self.depends[row] { 0.0 } else { (y[row] - sum) / line[row] };
        }
        for row in (0..self.size).rev().filter(|&row| !self.depends[row]) {
            let line = &self.lower[row * self.size..][..=row];
            y[row] /= line[row];
            let value = y[row];
            y[..row].iter_mut().zip(line).for_each(|(y, a)| *y -= value * a);
        }
        y
    }
}
