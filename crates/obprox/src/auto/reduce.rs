//! Features that need not be looked at: left out before anything is solved.
//!
//! Where the slopes of the loss are bounded, l ≤ ℓ′ ≤ h, so are those of f, at every point:
//! |∂f/∂x_j| ≤ B_j = (1/N) max(Σᵢ wᵢ max(dᵢⱼhᵢ, dᵢⱼlᵢ), −Σᵢ wᵢ min(dᵢⱼhᵢ, dᵢⱼlᵢ)). A feature with B_j < λ_j has weight 0
//! at the optimum and never violates its condition, so a certificate that passes it over is a certificate. Of sparse
//! text, where most words are rare, that is nearly all.

use std::sync::Arc;

use crate::Result;
use crate::penalty::{Separable, Term};
use crate::problem::{Lambda, Point, Problem};
use crate::rows::{pass, stays_in_rows};
use crate::tuning::FEW;
use crate::tuning::reduce::{FIT_THE_CACHE, MOST_KEPT};

/// A problem without the features that cannot matter.
#[derive(Clone)]
pub(super) struct Reduced {
    pub problem: Arc<Problem>,
    /// The features that stayed; nothing where all did.
    pub kept: Option<Arc<[u32]>>,
}

impl Reduced {
    /// Leaves out what cannot matter at `floor` or any larger λ, or at that of the problem. What has a weight at the start
    /// stays. Where a floor says that more fits will follow, the data is turned into columns, unless features are few: for
    /// one fit that takes longer than it saves.
    pub fn new(problem: &Problem, floor: Option<f64>, start: Option<&Point>) -> Self {
        let unreduced = || match floor {
            Some(_) if !stays_in_rows(problem) => Self { problem: Arc::new(problem.by_columns(None)), kept: None },
            _ => Self { problem: Arc::new(problem.clone()), kept: None },
        };
        let share = floor.unwrap_or(problem.lambda()) / problem.lambda();
        // Blocks stay full.
        if problem.n_features() <= FEW || share.is_nan() || problem.regularization().blocks.is_some() {
            return unreduced();
        }
        let Some(bounds) = problem.steepest() else { return unreduced() };
        let (outputs, regularization) = (problem.outputs(), problem.regularization());
        let matters = |&feature: &u32| {
            let feature = feature as usize;
            // The bound is a sum: it is right to rounding only.
            f64::from(bounds[feature]) * (1.0 + 1e-9) >= regularization.term(feature).kink() * share
                || start.is_some_and(|start| {
                    start.weights[feature * outputs..(feature + 1) * outputs].iter().any(|&x| x != 0.0)
                })
        };
        let kept: Vec<u32> = (0..problem.n_features() as u32).filter(matters).collect();
        let most = MOST_KEPT[usize::from(problem.n_features() > FIT_THE_CACHE)];
        let copies = floor.is_none() && !problem.in_shards();
        if copies && pass::share_of_entries(problem.matrix(), &kept) > most {
            return unreduced();
        }
        let reduced = if floor.is_some() { problem.by_columns(Some(&kept)) } else { problem.on_features(&kept) };
        Self { problem: Arc::new(reduced), kept: Some(kept.into()) }
    }

    /// The same at another λ, not below the floor.
    pub fn set_lambda(&mut self, lambda: f64) -> Result<()> {
        if self.problem.lambda() != lambda {
            self.problem = Arc::new((*self.problem).clone().with_lambda(Lambda::Value(lambda))?);
        }
        Ok(())
    }

    /// A point of the problem as it was given, on the features that stayed.
    pub fn shrink(&self, point: &Point) -> Point {
        let Some(kept) = &self.kept else { return point.clone() };
        let outputs = self.problem.outputs();
        let of = |&feature: &u32| point.weights[feature as usize * outputs..(feature as usize + 1) * outputs].iter();
        Point { weights: kept.iter().flat_map(of).copied().collect(), intercept: point.intercept.clone() }
    }

    /// The index of a weight in the problem as it was given.
    pub fn index(&self, at: usize) -> usize {
        let outputs = self.problem.outputs();
        self.kept.as_ref().map_or(at, |kept| kept[at / outputs] as usize * outputs + at % outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Matrix};
    use crate::loss::LossKind;
    use crate::problem::Terms;

    /// Rare and common features, of both signs and all sizes.
    fn problem(loss: LossKind, lambda: f64, row_weights: bool) -> Problem {
        let (n_rows, n_cols) = (60, FEW + 40);
        let number = |row: usize, column: usize| ((row * 131 + column * 37 + row * column) % 101) as f64 / 50.0 - 1.0;
        let rows: Vec<Vec<(u32, f64)>> = (0..n_rows)
            .map(|row| {
                let present = |&column: &usize| (row * 7 + column * 3) % (2 + column % 19) == 0;
                (0..n_cols).filter(present).map(|column| (column as u32, number(row, column))).collect()
            })
            .collect();
        let classes = if loss == LossKind::Softmax { 3 } else { 2 };
        let targets: Vec<f64> = (0..n_rows).map(|row| ((row * row + 1) % 5 % classes) as f64).collect();
        let weights = row_weights.then(|| (0..n_rows).map(|row| (row % 4) as f64).collect());
        let terms = Terms { lambda: Lambda::Value(lambda), row_weights: weights, ..Terms::default() };
        let data = Dataset::new(Matrix::from_rows(n_cols, &rows), targets);
        Problem::new(data, loss.build(classes), &terms).unwrap()
    }

    #[test]
    fn no_slope_exceeds_its_bound() {
        for loss in [LossKind::Logistic, LossKind::Huber(0.7), LossKind::Softmax] {
            for weighted in [false, true] {
                let problem = problem(loss, 0.01, weighted);
                let bounds = problem.steepest().unwrap();
                let mut closest = 0.0f64;
                for turn in 0..40 {
                    // From near zero to far out, where the slopes of the loss are at their ends.
                    let scale = 10f64.powi(turn % 5 - 1);
                    let mut point = Point::zero(&problem);
                    for (at, x) in point.weights.iter_mut().enumerate() {
                        *x = scale * ((at * 29 + turn as usize * 53) % 17) as f64 - 8.0 * scale;
                    }
                    let margins = pass::margins(problem.matrix(), &point);
                    let gradient = pass::gradient(&problem, &pass::row_gradients(&problem, &margins));
                    for (at, slope) in gradient.iter().enumerate() {
                        let bound = f64::from(bounds[at / problem.outputs()]);
                        assert!(slope.abs() <= bound * (1.0 + 1e-12), "{loss:?}: {slope} and {bound}");
                        closest = closest.max(slope.abs() / bound);
                    }
                }
                assert!(closest > 0.9, "{loss:?}: a bound that is never near is of no use ({closest})");
            }
        }
        assert!(problem(LossKind::Squared, 0.01, false).steepest().is_none(), "a parabola has no steepest slope");
    }

    #[test]
    fn the_optimum_is_that_of_the_whole_problem() {
        // By rows, of which most entries go at the larger λ, and by columns, as on a path.
        for (lambda, floor) in [(0.1, None), (0.02, Some(0.02))] {
            let problem = problem(LossKind::Logistic, lambda, false);
            let reduced = Reduced::new(&problem, floor, None);
            let kept = reduced.kept.as_ref().expect("some features are rare");
            assert!(!kept.is_empty() && kept.len() < problem.n_features() * 3 / 4, "{} stayed", kept.len());
            assert_eq!(reduced.problem.columns().is_some(), floor.is_some());
            // The fit works on the reduced problem, `certify` on the one that was given.
            let fit = problem.fit().unwrap();
            let full = crate::certificate::certify(&problem, &fit.point).unwrap();
            assert!(full.relative_gap().unwrap() < 1e-6 && full.nnz > 0);
            assert_eq!((full.nnz, full.density), (fit.certificate.nnz, fit.certificate.density));
            // A weight that would have been left out keeps its place.
            let dropped = (0..problem.n_features() as u32).find(|feature| !kept.contains(feature)).unwrap();
            let mut start = Point::zero(&problem);
            start.weights[dropped as usize] = 1.5;
            let reduced = Reduced::new(&problem, floor, Some(&start));
            let shrunk = reduced.shrink(&start);
            let at = shrunk.weights.iter().position(|&x| x == 1.5).unwrap();
            assert_eq!(reduced.index(at), dropped as usize);
        }
        // Rows are not copied for the sake of a few entries.
        let problem = problem(LossKind::Logistic, 0.02, false);
        assert!(Reduced::new(&problem, None, None).kept.is_none());
    }
}
