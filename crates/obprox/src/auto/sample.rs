//! A start from samples of the rows, each larger than the one before.
//!
//! Far from the optimum a step on all rows is no better than one on some. With few features the optimum of a sample that
//! has many rows a feature lies near that of all, and one sample will do; what it says of weak features is noise, so λ is
//! not too small there. With many features most are rare, and a sample knows little of them: at share s of the rows λ is
//! λ/s, so that a feature has to explain as much in sum as it will have to on all. As samples grow λ falls, and the face
//! grows with it.

use super::plan::{Start, is_quadratic};
use super::{Auto, Fall};
use crate::Result;
use crate::huge::Huge;
use crate::observe::{Control, Progress, Stage};
use crate::problem::{Lambda, Problem};
use crate::solver::{Ended, Solver};
use crate::tuning::sample::{LEAST, LEAST_PART, MOST_PART, NOISE, ROUGHLY, ROUNDS, ROWS_A_FEATURE};
use crate::tuning::{FEW, LEAST_SAMPLE, MANY_ROWS, NEAR_MAX};

/// A sample: one row out of so many, and the λ there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Level {
    pub stride: usize,
    pub lambda: f64,
}

impl Auto<'_> {
    /// The next sample, where the run is still to begin with one.
    pub(super) fn next_sample(&self) -> Option<Level> {
        let Start::Samples(levels) = &self.plan.start else { return None };
        levels.get(self.history.samples as usize).copied()
    }

    /// A round that moves to the optimum of a sample; nothing where that led nowhere. Where `tell` says stop the point so far
    /// will do.
    pub(super) fn round_on_sample(
        &mut self,
        level: Level,
        tell: &mut dyn FnMut(Progress) -> Control,
    ) -> Result<Option<Ended>> {
        self.history.samples += 1;
        let problem = self.given;
        let part = problem.on_rows(&sample(problem.n_rows(), level.stride));
        let Ok(part) = part.and_then(|part| part.with_lambda(Lambda::Value(level.lambda))) else { return Ok(None) };
        let start = (self.history.rounds > 0).then(|| self.point());
        let roughly = (ROUGHLY / level.stride as f64).clamp(0.1, 0.8);
        let mut sample = Auto::new(&part, start.as_ref(), None)?.aiming_at(roughly);
        drop(start);
        let (epoch, mut stop) = (self.history.rounds + 1, false);
        for _ in 0..ROUNDS {
            let ended = sample.epoch(&mut |progress| {
                let said = tell(Progress { epoch, stage: Some(Stage::Identify), ..progress });
                stop |= said == Control::Stop;
                said
            })?;
            let near = sample.certificate.as_ref().is_some_and(|certificate| certificate.within(roughly));
            if stop || near || !matches!(ended, Ended::Epoch) {
                break;
            }
        }
        let (support, steps) = (sample.support(), sample.history.steps);
        // What was made of the sample goes before all rows are looked at.
        drop(sample);
        drop(part);
        if !support.is_finite() {
            return Ok(None);
        }
        self.point = self.reduced.shrink(&support.expand(problem));
        self.fall = Fall { stretch: 1.0, stage: Stage::Identify, at_lambda: level.lambda };
        self.history.steps += steps;
        // What is known is of another point.
        self.gradient = Huge::default();
        self.measure()?;
        if stop {
            return Ok(Some(Ended::Interrupted));
        }
        self.history.rounds += 1;
        Ok(Some(Ended::Epoch))
    }
}

/// The samples to begin with, the smallest first; none where all rows had better be taken, or where one step will do.
pub(super) fn levels(problem: &Problem) -> Vec<Level> {
    if problem.outputs() > 1 || is_quadratic(problem) {
        return Vec::new();
    }
    let (n_rows, n_features) = (problem.n_rows(), problem.n_features());
    if n_features <= FEW {
        let size = (ROWS_A_FEATURE * n_features).max(n_rows / LEAST_PART).max(LEAST);
        let lambda = problem.lambda().max(NOISE * problem.lambda_max());
        return Some(Level { stride: n_rows / size, lambda })
            .filter(|level| level.stride >= MOST_PART)
            .into_iter()
            .collect();
    }
    if n_rows < MANY_ROWS {
        return Vec::new();
    }
    let level = |power: u32| {
        let stride = MOST_PART.pow(power);
        let lambda = problem.lambda() * stride as f64;
        let is_one = n_rows / stride >= LEAST_SAMPLE && lambda <= NEAR_MAX * problem.lambda_max();
        is_one.then_some(Level { stride, lambda })
    };
    let mut levels: Vec<Level> = (1..).map_while(level).collect();
    levels.reverse();
    levels
}

/// One row out of every few, anywhere among them, whatever order they are in.
fn sample(n_rows: usize, stride: usize) -> Vec<u32> {
    let row = |at: usize| (at * stride + (at.wrapping_mul(0x9E37_79B9) >> 7) % stride) as u32;
    (0..n_rows / stride).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Terms;
    use crate::data::{Dataset, Matrix};
    use crate::loss::LossKind;

    #[test]
    fn a_sample_has_rows_from_everywhere() {
        for (n_rows, stride) in [(4 * LEAST, 4), (200_000, 62), (1_000_003, 31)] {
            let rows = sample(n_rows, stride);
            assert!(rows.is_sorted_by(|a, b| a < b) && (rows[rows.len() - 1] as usize) < n_rows);
            assert_eq!(rows.len(), n_rows / stride);
            // Neither a part of the file nor every k-th row.
            let offsets: std::collections::BTreeSet<usize> = rows.iter().map(|&row| row as usize % stride).collect();
            assert_eq!(offsets.len(), stride, "of {n_rows}");
            assert!(n_rows - (rows[rows.len() - 1] as usize) < 2 * stride + rows.len());
        }
    }

    #[test]
    fn samples_grow_as_λ_falls_to_its_value() {
        let data = |n_rows: usize, n_cols: usize| {
            let rows: Vec<Vec<(u32, f64)>> = (0..n_rows).map(|row| vec![((row * 7 % n_cols) as u32, 1.0)]).collect();
            Dataset::new(Matrix::from_rows(n_cols, &rows), (0..n_rows).map(|row| f64::from(row % 14 == 0)).collect())
        };
        let stated = |n_rows: usize, n_cols: usize, lambda: Lambda| {
            let terms = Terms { lambda, ..Terms::default() };
            Problem::new(data(n_rows, n_cols), LossKind::Logistic.build(2), &terms).unwrap()
        };
        let problem = stated(40 * LEAST_SAMPLE, FEW + 1, Lambda::OfMax(1e-3));
        let found = levels(&problem);
        assert_eq!(found.iter().map(|level| level.stride).collect::<Vec<_>>(), [16, 4]);
        assert!(found.iter().all(|level| level.lambda == problem.lambda() * level.stride as f64));
        // Not where λ/s would leave nothing to find, and not where a round on all rows costs little.
        assert!(levels(&stated(40 * LEAST_SAMPLE, FEW + 1, Lambda::OfMax(0.1))).is_empty());
        assert!(levels(&stated(MANY_ROWS - 1, FEW + 1, Lambda::OfMax(1e-3))).is_empty());
        // With few features one sample will do.
        let few = stated(200_000, 100, Lambda::OfMax(1e-3));
        assert_eq!(levels(&few), [Level { stride: 32, lambda: NOISE * few.lambda_max() }]);
        assert!(levels(&stated(4 * LEAST - 1, 3, Lambda::OverN)).is_empty());
    }

    fn problem(loss: LossKind, sorted: bool, row_weights: bool) -> Problem {
        let (n_rows, n_cols) = (40 * LEAST, 6);
        let number =
            |row: usize, column: usize| ((row * 7919 + column * 104_729 + row * column) % 1009) as f64 / 504.0 - 1.0;
        let cells: Vec<f64> = (0..n_rows * n_cols).map(|at| number(at / n_cols, at % n_cols)).collect();
        let signal = |row: usize| number(row, 0) - 0.5 * number(row, 1) + number(row * 31, 7);
        let mut order: Vec<usize> = (0..n_rows).collect();
        if sorted {
            order.sort_by_key(|&row| signal(row) > 0.0);
        }
        let cells: Vec<f64> = order.iter().flat_map(|&row| cells[row * n_cols..(row + 1) * n_cols].to_vec()).collect();
        let targets = order.iter().map(|&row| if signal(row) > 0.0 { 1.0 } else { 0.0 }).collect();
        let weights = row_weights.then(|| (0..n_rows).map(|row| (row % 3) as f64).collect());
        let terms = Terms { lambda: Lambda::OfMax(0.1), row_weights: weights, ..Terms::default() };
        Problem::new(Dataset::new(Matrix::from_dense(n_rows, n_cols, &cells), targets), loss.build(2), &terms).unwrap()
    }

    #[test]
    fn the_optimum_of_a_sample_is_near() {
        for (sorted, weighted) in [(false, false), (true, false), (false, true)] {
            let problem = problem(LossKind::Logistic, sorted, weighted);
            let mut auto = Auto::new(&problem, None, None).unwrap();
            assert!(matches!(auto.epoch(&mut |_| Control::Continue), Ok(Ended::Epoch)));
            assert_eq!(auto.standing().round.unwrap().stage, Stage::Identify);
            let near = auto.certificate().unwrap();
            let optimum = problem.fit().unwrap().certificate;
            let at_zero = crate::certificate::certify(&problem, &crate::problem::Point::zero(&problem)).unwrap();
            let left = (near.objective - optimum.objective) / (at_zero.objective - optimum.objective);
            assert!((-1e-9..0.02).contains(&left), "{left} of the way is left, sorted: {sorted}, weighted: {weighted}");
            assert!(optimum.within(1e-6) && !near.within(1e-9), "the proof is on all rows");
        }
    }

    #[test]
    fn a_parabola_needs_no_sample() {
        for (loss, is) in [(LossKind::Squared, true), (LossKind::Logistic, false), (LossKind::Huber(1.0), false)] {
            let problem = problem(loss, false, false);
            assert_eq!((is_quadratic(&problem), levels(&problem).is_empty()), (is, is), "{loss:?}");
        }
    }
}
