//! A start from a sample of the rows, where there are far more rows than features.
//!
//! Far from the optimum a step on all rows is no better than one on some, and the optimum of a sample that has many rows a
//! feature lies near that of all. What it says of weak features is noise, so λ is not too small there.

use super::Auto;
use super::plan::is_quadratic;
use crate::Result;
use crate::fit::{Ended, Solver};
use crate::observe::{Control, Progress, Stage};
use crate::problem::{Lambda, Problem};
use crate::tuning::FEW;

/// Rows of a sample for each feature.
const ROWS_A_FEATURE: usize = 32;
/// A sample has at least so many rows, and at least this part of them.
const LEAST: usize = 2048;
const LEAST_PART: usize = 32;
/// It is at most this part of the rows: or it would not save much.
const MOST_PART: usize = 4;
/// λ on the sample is at least this share of λ_max.
const NOISE: f64 = 0.03;
/// The relative gap that will do there, about, times the sample's share of the rows: steps on a large one cost nearly as
/// much as those on all. Rounds before it has to do without.
const ROUGHLY: f64 = 4.0;
const ROUNDS: usize = 8;

impl Auto<'_> {
    /// Moves to the optimum of a sample; whether it did. Where `tell` says stop the point so far will do.
    pub(super) fn start_from_a_sample(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Result<bool> {
        let problem = self.whole;
        let Some(rows) = sample(problem.n_rows(), problem.n_features()) else { return Ok(false) };
        let at_lambda = problem.lambda().max(NOISE * problem.lambda_max());
        let part = problem.on_rows(&rows).and_then(|part| part.with_lambda(Lambda::Value(at_lambda)));
        let Ok(part) = part else { return Ok(false) };
        let Ok(sample) = Auto::new(&part, None, None) else { return Ok(false) };
        let roughly = (ROUGHLY * rows.len() as f64 / problem.n_rows() as f64).clamp(0.1, 0.8);
        let mut sample = sample.aiming_at(roughly);
        for _ in 0..ROUNDS {
            let mut stop = false;
            let ended = sample.epoch(&mut |progress| {
                let said = tell(Progress { epoch: 1, stage: Some(Stage::Identify), ..progress });
                stop |= said == Control::Stop;
                said
            })?;
            let near = sample.certificate.as_ref().is_some_and(|certificate| certificate.within(roughly));
            if stop || near || !matches!(ended, Ended::Epoch) {
                break;
            }
        }
        let point = sample.point();
        if !point.is_finite() {
            return Ok(false);
        }
        self.point = point;
        (self.stage, self.at_lambda) = (Stage::Identify, at_lambda);
        Ok(true)
    }
}

/// Whether a start from a sample saves anything: not where one step will do.
pub(super) fn pays(problem: &Problem) -> bool {
    let (n_rows, n_features) = (problem.n_rows(), problem.n_features());
    problem.outputs() == 1 && n_features <= FEW && sample(n_rows, n_features).is_some() && !is_quadratic(problem)
}

/// One row out of every few, anywhere among them, whatever order they are in; nothing where all had better be taken.
fn sample(n_rows: usize, n_features: usize) -> Option<Vec<u32>> {
    let size = (ROWS_A_FEATURE * n_features).max(n_rows / LEAST_PART).max(LEAST);
    let stride = n_rows / size;
    let row = |at: usize| (at * stride + (at.wrapping_mul(0x9E37_79B9) >> 7) % stride) as u32;
    (stride >= MOST_PART).then(|| (0..n_rows / stride).map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Terms;
    use crate::data::{Dataset, Matrix};
    use crate::loss::LossKind;

    #[test]
    fn a_sample_has_rows_from_everywhere() {
        assert!(sample(4 * LEAST - 1, 3).is_none() && sample(1_000_000, 10_000).is_none());
        for (n_rows, n_features) in [(4 * LEAST, 3), (200_000, 100), (1_000_003, 512)] {
            let rows = sample(n_rows, n_features).unwrap();
            assert!(rows.is_sorted_by(|a, b| a < b) && (rows[rows.len() - 1] as usize) < n_rows);
            assert!(rows.len() >= LEAST.max(ROWS_A_FEATURE * n_features) && rows.len() <= n_rows / MOST_PART);
            // Neither a part of the file nor every k-th row.
            let stride = n_rows / rows.len();
            let offsets: std::collections::BTreeSet<usize> = rows.iter().map(|&row| row as usize % stride).collect();
            assert_eq!(offsets.len(), stride, "of {n_rows}");
            assert!(n_rows - (rows[rows.len() - 1] as usize) < 2 * stride + rows.len());
        }
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
            assert_eq!((is_quadratic(&problem), pays(&problem)), (is, !is), "{loss:?}");
        }
    }
}
