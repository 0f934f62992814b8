//! How good a point is: F and its parts, the duality gap, the KKT distance, the gradient mapping.
//!
//! The gap. With θᵢ = ∇ℓ(mᵢ), the intercept at its optimum, c = (1/N) Σ wᵢθᵢdᵢ and s the largest number ≤ 1 with
//! s|c_j| ≤ λ_j for all j, weak duality gives F(z) ≥ D = −(1/N) Σ wᵢℓ*(sθᵢ) − Σ_j p_j*(s·c_j) for every z. With λ₂ > 0
//! the penalty's conjugate is finite everywhere and s = 1.
//!
//! A coordinate without penalty wants c_j = 0: the rows' slopes are corrected until they have that, to rounding (`free.rs`).
//! The gap is widened by what rounding may have hidden of it.
//!
//! The relative gap is relative to |F|, or to f₀/1000 where |F| is less: a fit can be so good that F ≈ 0, and digits of
//! what is left of it are of no use to anyone.

mod free;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use self::free::Feasible;
use crate::penalty::block::Kind;
use crate::penalty::{OnBlocks, Separable, Term};
use crate::problem::{Point, Problem};
use crate::rows::{DualJob, Gradient, Shards};
use crate::{Result, intercept};

/// What is known about a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// F(x, b).
    #[serde(rename = "F")]
    pub objective: f64,
    /// f(x, b), the mean loss.
    #[serde(rename = "f")]
    pub loss: f64,
    /// ‖x‖₁.
    pub l1: f64,
    /// Features (times outputs) whose weight is not zero; the intercept is not counted.
    pub nnz: usize,
    /// The paper's density: nonzeros among all weights, intercept included.
    pub density: f64,
    /// F − D ≥ F − F*, where the loss has a dual.
    pub gap: Option<f64>,
    /// The largest distance of 0 from ∂F over all coordinates.
    pub kkt: f64,
    /// ‖x − prox(x − ∇f(x))‖₂, the gradient mapping at step size 1, intercept included.
    pub gradient_mapping: f64,
    /// The 2-norm of the violations on the zeros: what Prox-SG steps could still win.
    pub violation_on_zeros: f64,
    /// The 2-norm of the violations on the support: what Orthant steps could still win.
    pub violation_on_support: f64,
    /// The least that the gap is measured against.
    #[serde(default)]
    pub least_scale: f64,
}

impl Certificate {
    /// gap / |F|, or against the least scale where |F| is less.
    pub fn relative_gap(&self) -> Option<f64> {
        self.gap.map(|gap| gap / self.objective.abs().max(self.least_scale).max(f64::MIN_POSITIVE))
    }

    /// Whether the point is optimal to a tolerance: on the relative gap, or on the KKT distance where there is no gap.
    pub fn within(&self, tolerance: f64) -> bool {
        self.relative_gap().unwrap_or(self.kkt) <= tolerance
    }
}

/// Computes the certificate of a point: three or four passes over the data, in parallel.
pub fn certify(problem: &Problem, point: &Point) -> Result<Certificate> {
    let rows = &mut *problem.rows();
    rows.place(point)?;
    let mut gradient = rows.gradient()?;
    let mut certificate = figures(problem, point, &gradient);
    if !has_dual(problem) || certificate.objective.is_nan() {
        return Ok(certificate);
    }
    // What the gap would have to allow for the slope left in the intercept; where that is nothing, a pass is saved.
    let slopes = gradient.intercept.iter().filter(|_| problem.has_intercept());
    let allowance = slopes.map(|slope| slope.abs() * problem.margin_unit()).sum::<f64>();
    let mut moved = point.intercept.clone();
    if allowance > 1e-13 * certificate.objective.abs() {
        intercept::centre(rows, &mut moved)?;
        // The old one goes before the new one comes: at a huge n two of them are too many.
        drop(std::mem::take(&mut gradient));
        gradient = rows.gradient()?;
    }
    let intercepts = intercepts(problem, &moved, &gradient);
    let feasible = free::feasible(rows, problem, point, certificate.objective, &intercepts, &gradient.weights)?;
    certificate.gap = Some(gap(rows, problem, certificate.objective, &feasible)?);
    Ok(certificate)
}

/// The same of the point that the rows are placed at, with the gradient there at hand and the intercept where it is. With
/// the largest entry of each column at hand the slope that it has costs no pass over the data; at its optimum, or next
/// to it, the proof is better without them.
pub(crate) fn certify_placed(
    rows: &mut dyn Shards,
    problem: &Problem,
    point: &Point,
    gradient: &Gradient,
    largest: Option<&[f64]>,
) -> Result<Certificate> {
    let mut certificate = figures(problem, point, gradient);
    if !has_dual(problem) || certificate.objective.is_nan() {
        return Ok(certificate);
    }
    rows.dual(DualJob::Begin)?;
    let intercepts = intercepts(problem, &point.intercept, gradient);
    let feasible = match largest {
        Some(largest) => free::without_slope(rows, problem, &intercepts, &gradient.weights, largest)?,
        None => None,
    };
    let feasible = match feasible {
        Some(feasible) => feasible,
        None => free::feasible(rows, problem, point, certificate.objective, &intercepts, &gradient.weights)?,
    };
    certificate.gap = Some(gap(rows, problem, certificate.objective, &feasible)?);
    Ok(certificate)
}

fn intercepts(problem: &Problem, at: &[f64], gradient: &Gradient) -> Vec<Intercept> {
    if !problem.has_intercept() {
        return Vec::new();
    }
    at.iter().zip(&gradient.intercept).map(|(&at, &slope)| Intercept { at, slope }).collect()
}

/// Whether the loss has a conjugate, and so the problem a dual. Where weights are bounded from one side and not penalised,
/// no multiple of a dual point is feasible, and nothing is proved by it.
pub(crate) fn has_dual(problem: &Problem) -> bool {
    let is_half_free = |penalty: OnBlocks| (0..penalty.blocks.len()).any(|block| penalty.kind(block) == Kind::HalfFree);
    !problem.regularization().on_blocks().is_some_and(is_half_free)
        && problem.loss().conjugate(&vec![0.0; problem.outputs()], problem.targets()[0]).is_some()
}

/// An intercept: its value and its slope.
#[derive(Clone, Copy)]
struct Intercept {
    at: f64,
    slope: f64,
}

/// All but the gap.
fn figures(problem: &Problem, point: &Point, gradient: &Gradient) -> Certificate {
    let (outputs, regularization) = (problem.outputs(), problem.regularization());
    let (loss, intercepts) = (gradient.loss, intercepts(problem, &point.intercept, gradient));
    let parts: Vec<Sums> = match regularization.on_blocks() {
        Some(penalty) => {
            let of = |block: usize| Sums::of_block(penalty, block, &point.weights, &gradient.weights);
            let blocks: Vec<usize> = (0..penalty.blocks.len()).step_by(BLOCK).collect();
            let range = |&first: &usize| (first..(first + BLOCK).min(penalty.blocks.len())).map(of);
            blocks.par_iter().map(|first| range(first).fold(Sums::default(), Sums::plus)).collect()
        }
        None => point
            .weights
            .par_chunks(BLOCK)
            .zip(gradient.weights.par_chunks(BLOCK))
            .enumerate()
            .map(|(block, (weights, gradient))| {
                Sums::of(weights, gradient, |at| regularization.term((block * BLOCK + at) / outputs))
            })
            .collect(),
    };
    let Sums { l1, penalty, nnz, mut kkt, mut mapping, zeros, mut support } =
        parts.into_iter().fold(Sums::default(), Sums::plus);
    let mut filled = nnz;
    for Intercept { at, slope } in intercepts {
        kkt = larger(kkt, slope.abs());
        mapping += square(slope);
        support += square(slope);
        // One that changes nothing is no weight of the model.
        filled += usize::from(at != 0.0 && problem.coupled().is_none());
    }
    Certificate {
        objective: loss + penalty,
        loss,
        l1,
        nnz,
        density: filled as f64 / problem.n_coordinates().max(1) as f64,
        gap: None,
        kkt,
        gradient_mapping: f64::sqrt(mapping),
        violation_on_zeros: f64::sqrt(zeros),
        violation_on_support: f64::sqrt(support),
        least_scale: problem.least_scale(),
    }
}

/// Coordinates in one fixed block of the sums.
const BLOCK: usize = 1 << 14;

/// What the certificate adds up over the coordinates.
#[derive(Default)]
struct Sums {
    l1: f64,
    penalty: f64,
    nnz: usize,
    kkt: f64,
    mapping: f64,
    zeros: f64,
    support: f64,
}

impl Sums {
    fn of<T: Term>(weights: &[f64], gradient: &[f64], term: impl Fn(usize) -> T) -> Self {
        let mut sums = Self::default();
        for (at, (&x, &g)) in weights.iter().zip(gradient).enumerate() {
            let term = term(at);
            let violation = term.violation(x, g);
            sums.kkt = larger(sums.kkt, violation);
            sums.mapping += square(x - term.prox(x - g, 1.0));
            // A NaN weight is not a zero: it must be seen in every figure.
            if x == 0.0 {
                sums.zeros += square(violation);
            } else {
                sums.support += square(violation);
                sums.nnz += 1;
                sums.l1 += x.abs();
                sums.penalty += term.value(x);
            }
        }
        sums
    }

    fn of_block(penalty: OnBlocks, block: usize, weights: &[f64], gradient: &[f64]) -> Self {
        let (x, g) = (penalty.gather(block, weights), penalty.gather(block, gradient));
        let mut to: Vec<f64> = x.iter().zip(&g).map(|(x, g)| x - g).collect();
        penalty.prox(block, 1.0, &mut to);
        let violation = penalty.violation(block, &x, &g);
        let is_zero = x.iter().all(|&x| x == 0.0);
        let (zeros, support) = if is_zero { (square(violation), 0.0) } else { (0.0, square(violation)) };
        Self {
            l1: x.iter().map(|x| x.abs()).sum(),
            penalty: if is_zero { 0.0 } else { penalty.value(block, &x) },
            nnz: x.iter().filter(|x| **x != 0.0).count(),
            kkt: violation,
            mapping: x.iter().zip(to).map(|(x, to)| square(x - to)).sum(),
            zeros,
            support,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            l1: self.l1 + other.l1,
            penalty: self.penalty + other.penalty,
            nnz: self.nnz + other.nnz,
            kkt: larger(self.kkt, other.kkt),
            mapping: self.mapping + other.mapping,
            zeros: self.zeros + other.zeros,
            support: self.support + other.support,
        }
    }
}

/// What the sums that a gap is made of may be off by, relative to their size: they are sums of many terms.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// F less the dual value of a feasible point and what unpenalised coordinates leave open.
fn gap(rows: &mut dyn Shards, problem: &Problem, objective: f64, feasible: &Feasible) -> Result<f64> {
    let (outputs, regularization) = (problem.outputs(), problem.regularization());
    if let Some(penalty) = regularization.on_blocks() {
        return gap_on_blocks(rows, problem, penalty, objective, feasible);
    }
    let Feasible { gradient, off, open } = feasible;
    let slope = |at: usize| gradient[at].abs() + off.as_ref().map_or(0.0, |off| off[at]);
    let room = |at: usize| {
        let (term, slope) = (regularization.term(at / outputs), slope(at));
        if term.kink() > 0.0 && term.l2 == 0.0 && slope > term.kink() { term.kink() / slope } else { 1.0 }
    };
    let coordinates = (0..gradient.len()).into_par_iter().with_min_len(BLOCK);
    let scale = coordinates.map(room).reduce(|| 1.0, f64::min);
    // Without λ₂ there is nothing to add up: s has put every slope within its domain.
    let with_l2 = if regularization.l2 == 0.0 { 0 } else { gradient.len() };
    let of = |at: usize| {
        let term = regularization.term(at / outputs);
        if term.l2 > 0.0 { term.conjugate(scale * slope(at)) } else { 0.0 }
    };
    let conjugate: f64 = (0..with_l2).map(of).sum();
    let mean = rows.dual(DualJob::Value(scale))?[0];
    Ok(widened(problem, objective, mean, conjugate, scale * open))
}

/// The same with a penalty on blocks.
fn gap_on_blocks(
    rows: &mut dyn Shards,
    problem: &Problem,
    penalty: OnBlocks,
    objective: f64,
    feasible: &Feasible,
) -> Result<f64> {
    let blocks: Vec<usize> =
        (0..penalty.blocks.len()).into_par_iter().filter(|&block| penalty.kind(block) == Kind::Penalised).collect();
    let dual = |block: usize, scale: f64| {
        let of = |&at: &u32| -scale * feasible.gradient[at as usize];
        penalty.blocks.coordinates(block).iter().map(of).collect::<Vec<f64>>()
    };
    let room = |&block: &usize| penalty.room(block, &dual(block, 1.0));
    // A border that was rounded the wrong way is still one to stay behind.
    let scale = blocks.par_iter().map(room).reduce(|| 1.0, f64::min);
    let scale = if scale < 1.0 { scale * (1.0 - 4.0 * f64::EPSILON) } else { scale };
    let conjugates: Vec<f64> = blocks.par_iter().map(|&block| penalty.conjugate(block, &dual(block, scale))).collect();
    let mean = rows.dual(DualJob::Value(scale))?[0];
    Ok(widened(problem, objective, mean, conjugates.iter().sum(), scale * feasible.open))
}

/// F less the dual value and what is open, by what rounding may have hidden of it more.
fn widened(problem: &Problem, objective: f64, mean: f64, conjugate: f64, open: f64) -> f64 {
    // Terms of a sum may be much larger than the sum: about as large as the loss at x = 0.
    let rounding = ROUNDING * (objective.abs() + mean.abs() + conjugate + 1e3 * problem.least_scale());
    let gap = objective + mean + conjugate + open;
    // A dual that is not finite proves nothing; it must not pass for a loss without a dual. F − F* is never negative.
    if gap.is_nan() { f64::INFINITY } else { gap.max(0.0) + rounding }
}

fn square(x: f64) -> f64 {
    x * x
}

/// The larger of two numbers; a NaN wins, so that it cannot hide.
fn larger(a: f64, b: f64) -> f64 {
    if a >= b || a.is_nan() { a } else { b }
}
