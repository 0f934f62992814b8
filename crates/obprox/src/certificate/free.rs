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

use rayon::prelude::*;

use super::Intercept;
use crate::pass::{self, Look};
use crate::penalty::{Penalty, Term};
use crate::problem::{Point, Problem};

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
/// A difference that is smaller than this share of its terms is that of their last bits.
const NOISE: f64 = 1e-14;
/// Tasks that the rows are dealt to: the same number for any number of threads, so that the bits are the same.
const TASKS: usize = 16;

/// Slopes of the rows that are feasible but for what is `open`, and the gradient they have.
pub(super) struct Feasible<'a> {
    pub duals: Cow<'a, [f64]>,
    pub gradient: Cow<'a, [f64]>,
    /// How far the true gradient may be from that.
    pub off: Option<Vec<f64>>,
    /// What has to be added to the gap, for slopes that are not scaled.
    pub open: f64,
}

/// The slopes of a look without that of the intercept, if nothing else is without penalty: θ′ = θ − h·c_b/Σh. No pass over
/// the data is needed, since that moves the slope of a column by no more than |c_b| times its largest entry.
pub(super) fn without_slope<'a>(
    problem: &Problem,
    intercepts: &[Intercept],
    look: &'a Look,
    largest: &[f64],
) -> Option<Feasible<'a>> {
    let &[Intercept { at, slope }] = intercepts else { return None };
    if has_free_features(problem) {
        return None;
    }
    let n_rows = problem.n_rows();
    let mean =
        |of: &[f64]| pass::sum_rows(n_rows, |row| pass::weighted(problem.row_weight(row), || of[row])) / n_rows as f64;
    let step = slope / mean(&look.curvatures);
    let duals: Vec<f64> = look.slopes.iter().zip(&look.curvatures).map(|(dual, h)| dual - step * h).collect();
    let open = mean(&duals).abs() * (FAR * problem.margin_unit() + 2.0 * at.abs());
    let off = Some(largest.iter().map(|largest| slope.abs() * largest).collect());
    step.is_finite().then(|| Feasible { duals: duals.into(), gradient: (&look.gradient[..]).into(), off, open })
}

/// Whether there may be features without penalty: with the same l1 penalty on all, only the intercept has none.
fn has_free_features(problem: &Problem) -> bool {
    let regularization = problem.regularization();
    regularization.l1 == 0.0 || regularization.weights.as_ref().is_some_and(|weights| weights.contains(&0.0))
}

/// Corrects the rows' slopes `duals` at given margins, whose gradient is at hand.
pub(super) fn feasible<'a>(
    problem: &Problem,
    point: &Point,
    objective: f64,
    intercepts: &[Intercept],
    (margins, duals, gradient): (&[f64], &'a [f64], &'a [f64]),
) -> Feasible<'a> {
    let regularization = problem.regularization();
    let is_free = |feature: &u32| {
        let term = regularization.term(*feature as usize);
        term.kink() == 0.0 && term.l2 == 0.0
    };
    let some = if has_free_features(problem) { problem.n_features() as u32 } else { 0 };
    let features: Vec<u32> = (0..some).filter(is_free).collect();
    let far = FAR * problem.margin_unit();
    if features.is_empty() {
        // An intercept by itself has G = 1, and was moved to its optimum before: as far as the rounding of margins allows.
        let square = |of: fn(&Intercept) -> f64| intercepts.iter().map(|b| of(b) * of(b)).sum::<f64>().sqrt();
        let open = square(|b| b.slope) * (far + 2.0 * square(|b| b.at));
        if open <= LITTLE * objective.abs() {
            return Feasible { duals: duals.into(), gradient: gradient.into(), off: None, open };
        }
    }
    let mut columns = FreeColumns::of(problem, &features);
    let far = far + 2.0 * columns.size_of_margins(problem, point, &features, intercepts);
    if columns.size() > MOST {
        let (c, squares) = (columns.slopes(problem, duals), columns.squares(problem));
        let open = |at: usize| c[at].abs() * far / squares[at / columns.outputs].sqrt();
        let open = (0..c.len()).filter(|&at| c[at] != 0.0).map(open).sum();
        return Feasible { duals: duals.into(), gradient: gradient.into(), off: None, open };
    }
    let gram = columns.orthogonalise(problem);
    let left = |c: &[f64]| {
        let of_output = |k: usize| {
            let c: Vec<f64> = c.iter().skip(k).step_by(problem.outputs()).copied().collect();
            c.iter().zip(gram.solve(&c)).map(|(c, z)| c * z).sum::<f64>()
        };
        (0..problem.outputs()).map(of_output).sum::<f64>().max(0.0).sqrt() * far
    };
    let mut corrected = duals.to_vec();
    let mut c = columns.slopes(problem, &corrected);
    let mut is_held = vec![false; problem.n_rows()];
    let mut hessian: Option<Factor> = None;
    for _ in 0..CORRECTIONS {
        if left(&c) <= NEGLIGIBLE * objective.abs() {
            break;
        }
        let factor = hessian.get_or_insert_with(|| columns.hessian(problem, margins, &is_held));
        if columns.correct(problem, margins, &factor.solve(&c), &mut corrected, &mut is_held) {
            hessian = None;
        }
        c = columns.slopes(problem, &corrected);
    }
    let gradient = pass::gradient(problem, &corrected);
    Feasible { duals: corrected.into(), gradient: gradient.into(), off: None, open: left(&c) }
}

/// The columns without penalty, row by row; the intercept's, where there is one, is the last.
struct FreeColumns {
    width: usize,
    outputs: usize,
    rows: Vec<Vec<(u32, f64)>>,
}

impl FreeColumns {
    fn of(problem: &Problem, features: &[u32]) -> Self {
        let one = problem.has_intercept().then_some((features.len() as u32, 1.0));
        let rows = match problem.columns() {
            Some(columns) => {
                let mut rows = vec![Vec::new(); problem.n_rows()];
                for (place, &feature) in features.iter().enumerate() {
                    columns.for_each(feature as usize, |row, value| rows[row].push((place as u32, value)));
                }
                rows.iter_mut().for_each(|row: &mut Vec<_>| row.extend(one));
                rows
            }
            None => {
                let row = |row: usize| {
                    let mut entries = Vec::new();
                    problem.matrix().for_each(row, |column, value| {
                        if let Ok(place) = features.binary_search(&(column as u32)) {
                            entries.push((place as u32, value));
                        }
                    });
                    entries.extend(one);
                    entries
                };
                (0..problem.n_rows()).into_par_iter().map(row).collect()
            }
        };
        Self { width: features.len() + usize::from(problem.has_intercept()), outputs: problem.outputs(), rows }
    }

    /// Where output k of a place is among the coordinates.
    fn at(&self, place: u32, output: usize) -> usize {
        place as usize * self.outputs + output
    }

    fn size(&self) -> usize {
        self.width * self.outputs
    }

    /// What the coordinates of a point add to the margins, in quadratic mean.
    fn size_of_margins(&self, problem: &Problem, point: &Point, features: &[u32], intercepts: &[Intercept]) -> f64 {
        let of = |&feature: &u32| &point.weights[feature as usize * self.outputs..][..self.outputs];
        let weights = features.iter().flat_map(of).copied();
        let x: Vec<f64> = weights.chain(intercepts.iter().map(|intercept| intercept.at)).collect();
        let square = |row: usize, k: usize| {
            let margin: f64 = self.rows[row].iter().map(|&(place, value)| value * x[self.at(place, k)]).sum();
            problem.row_weight(row) * margin * margin
        };
        let sums = self.sum(1, |row, sum| sum[0] += (0..self.outputs).map(|k| square(row, k)).sum::<f64>());
        sums[0].sqrt()
    }

    /// The mean squares of the columns.
    fn squares(&self, problem: &Problem) -> Vec<f64> {
        self.sum(self.width, |row, sums| {
            for &(place, value) in &self.rows[row] {
                sums[place as usize] += problem.row_weight(row) * value * value;
            }
        })
    }

    /// Replaces what hardly differs from a sum of the columns before it by the difference; the factor of G = AᵀA.
    fn orthogonalise(&mut self, problem: &Problem) -> Factor {
        let gram = |columns: &Self| columns.sum_products(problem, 1, |row, entry| entry[0] = problem.row_weight(row));
        let mut first = gram(self);
        let size = self.width;
        let factor = Factor::of(size, first.clone());
        if factor.depends.iter().all(|depends| !depends) {
            return factor;
        }
        for row in 0..size {
            (0..row).for_each(|column| first[column * size + row] = first[row * size + column]);
        }
        for place in (0..size).filter(|&place| factor.depends[place]) {
            let share = factor.solve(&first[place * size..][..size]);
            for row in &mut self.rows {
                let of = |sum: f64, &(other, value): &(u32, f64)| sum + share[other as usize] * value;
                let others: f64 = row.iter().fold(0.0, of);
                let own = row.iter().position(|entry| entry.0 as usize == place);
                let value = own.map_or(0.0, |at| row[at].1);
                // The rest of what is the same to rounding is noise, and not a column.
                let rest = value - others;
                let rest = if rest.abs() <= NOISE * (value.abs() + others.abs()) { 0.0 } else { rest };
                match own {
                    Some(at) => row[at].1 = rest,
                    None if rest != 0.0 => row.push((place as u32, rest)),
                    None => {}
                }
            }
        }
        self.rows.iter_mut().for_each(|row| row.sort_unstable_by_key(|entry| entry.0));
        Factor::of(size, gram(self))
    }

    /// Some numbers a task, added up in the order of the rows.
    fn sum(&self, len: usize, add: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let share = self.rows.len().div_ceil(TASKS).max(1);
        let part = |first: usize| {
            let mut sums = vec![0.0; len];
            (first..(first + share).min(self.rows.len())).for_each(|row| add(row, &mut sums));
            sums
        };
        let starts: Vec<usize> = (0..self.rows.len()).step_by(share).collect();
        let parts: Vec<Vec<f64>> = starts.into_par_iter().map(part).collect();
        let scale = 1.0 / self.rows.len() as f64;
        let mut total = vec![0.0; len];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += scale * part);
        }
        total
    }

    /// c = (1/N) Σ wᵢ Aᵢᵀθᵢ.
    fn slopes(&self, problem: &Problem, duals: &[f64]) -> Vec<f64> {
        self.sum(self.size(), |row, sums| {
            let weight = problem.row_weight(row);
            if weight > 0.0 {
                for &(place, value) in &self.rows[row] {
                    for (k, dual) in duals[row * self.outputs..][..self.outputs].iter().enumerate() {
                        sums[self.at(place, k)] += weight * value * dual;
                    }
                }
            }
        })
    }

    /// (1/N) Σ Aᵢᵀ Bᵢ Aᵢ for so many outputs K, where `block` writes the K × K matrix of a row over zeros.
    fn sum_products(&self, problem: &Problem, outputs: usize, block: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let size = self.width * outputs;
        self.sum(size * size, |row, sums| {
            if problem.row_weight(row) == 0.0 {
                return;
            }
            let mut entries = vec![0.0; outputs * outputs];
            block(row, &mut entries);
            for &(place, value) in &self.rows[row] {
                for &(other, with) in self.rows[row].iter().filter(|(other, _)| *other <= place) {
                    for (at, entry) in entries.iter().enumerate() {
                        let (k, m) = (at / outputs, at % outputs);
                        let (at, other) = (place as usize * outputs + k, other as usize * outputs + m);
                        sums[at * size + other] += value * with * entry;
                    }
                }
            }
        })
    }

    /// AᵀHA at given margins, without the rows that are held.
    fn hessian(&self, problem: &Problem, margins: &[f64], is_held: &[bool]) -> Factor {
        let products = self.sum_products(problem, self.outputs, |row, entries| {
            if !is_held[row] {
                let weight = problem.row_weight(row);
                curvatures(problem, &margins[row * self.outputs..][..self.outputs], row, entries);
                entries.iter_mut().for_each(|entry| *entry *= weight);
            }
        });
        Factor::of(self.size(), products)
    }

    /// θ ← θ − H·Aδ. A row that would leave the domain keeps its θ and is held from now on; whether there is one.
    fn correct(
        &self,
        problem: &Problem,
        margins: &[f64],
        delta: &[f64],
        duals: &mut [f64],
        is_held: &mut [bool],
    ) -> bool {
        let outputs = self.outputs;
        let rows = duals.par_chunks_exact_mut(outputs).zip(is_held.par_iter_mut()).enumerate();
        let leaves = |(row, (duals, is_held)): (usize, (&mut [f64], &mut bool))| {
            if *is_held || problem.row_weight(row) == 0.0 {
                return false;
            }
            let mut shift = vec![0.0; outputs];
            for &(place, value) in &self.rows[row] {
                shift.iter_mut().enumerate().for_each(|(k, shift)| *shift += value * delta[self.at(place, k)]);
            }
            let mut entries = vec![0.0; outputs * outputs];
            curvatures(problem, &margins[row * outputs..][..outputs], row, &mut entries);
            let mut trial = duals.to_vec();
            for (trial, line) in trial.iter_mut().zip(entries.chunks_exact(outputs)) {
                *trial -= line.iter().zip(&shift).map(|(h, shift)| h * shift).sum::<f64>();
            }
            let inside = problem.loss().conjugate(&trial, problem.targets()[row]).is_some_and(f64::is_finite);
            if inside {
                duals.copy_from_slice(&trial);
            }
            *is_held = !inside;
            !inside
        };
        rows.map(leaves).reduce(|| false, |a, b| a | b)
    }
}

/// ∇²ℓ of a row, or as much of it as the loss gives, over zeros.
fn curvatures(problem: &Problem, margins: &[f64], row: usize, entries: &mut [f64]) {
    let (loss, outputs, target) = (problem.loss(), margins.len(), problem.targets()[row]);
    if outputs > 1 && loss.hessian(margins, target, entries) {
        return;
    }
    let mut diagonal = vec![0.0; outputs];
    if loss.curvature(margins, target, &mut diagonal) {
        (0..outputs).for_each(|k| entries[k * outputs + k] = diagonal[k]);
    }
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
