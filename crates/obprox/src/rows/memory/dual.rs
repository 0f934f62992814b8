//! The dual point of rows in memory.

use std::sync::Arc;

use super::free::FreeColumns;
use super::{Memory, pass};
use crate::problem::Problem;
use crate::rows::{DualJob, Sums};

/// ℓ′ of each row, K a row, and the dual point θ that is made of it.
#[derive(Default)]
pub(super) struct Dual {
    /// Empty where no one asked for it, or where an evaluation has it.
    slopes: Vec<f64>,
    /// Where it is no longer the slopes.
    theta: Option<Vec<f64>>,
    /// Of a loss of all margins together, the margins whose slopes θ is: it is corrected by way of them, since only slopes of
    /// some margins are known to be in the domain.
    margins: Option<Vec<f64>>,
    /// A θ before it, whose memory the next may have.
    spare: Vec<f64>,
    free: Option<FreeColumns>,
}

impl Dual {
    /// θ is the slopes again.
    fn begin(&mut self) {
        (self.free, self.margins) = (None, None);
        if let Some(theta) = self.theta.take() {
            self.spare = theta;
        }
    }

    /// Forgets the rows' slopes, and keeps the memory.
    pub fn forget(&mut self) {
        self.begin();
        self.slopes = Vec::new();
    }
}

impl Memory {
    /// ℓ′ of each row, without its weight and without 1/N.
    pub(crate) fn row_gradients(&mut self) -> &[f64] {
        if self.shape.sees_all {
            return &self.evaluation().slopes;
        }
        if self.dual.slopes.is_empty() {
            self.dual.slopes = pass::row_gradients(&self.problem, &self.margins);
        }
        &self.dual.slopes
    }

    /// Σ ℓ* at a multiple of the slopes that the margins tell, as whoever has the margins alone would compute it.
    pub(crate) fn conjugate_of_margins(&mut self, scale: f64) -> Sums {
        let problem = Arc::clone(&self.problem);
        let slopes = pass::row_gradients(&problem, self.margins());
        vec![pass::mean_conjugate(&problem, scale, &slopes)].into()
    }

    /// θ of each row.
    pub(crate) fn dual_point(&mut self) -> &[f64] {
        match self.dual.theta {
            Some(ref theta) => theta,
            None => self.row_gradients(),
        }
    }

    /// θ, to be changed and put back.
    fn take_theta(&mut self) -> Vec<f64> {
        self.dual.theta.take().unwrap_or_else(|| {
            let mut theta = std::mem::take(&mut self.dual.spare);
            theta.clear();
            theta.extend_from_slice(self.row_gradients());
            theta
        })
    }

    pub(super) fn run_dual(&mut self, job: &DualJob) -> Sums {
        let problem = Arc::clone(&self.problem);
        match job {
            DualJob::Begin => {
                self.dual.begin();
                Sums::default()
            }
            DualJob::Value(scale) if problem.coupled().is_some() => vec![self.value_together(*scale)].into(),
            DualJob::Value(scale) => vec![pass::mean_conjugate(&problem, *scale, self.dual_point())].into(),
            DualJob::Gradient => pass::gradient(&problem, self.dual_point()).into(),
            DualJob::Curvature => vec![mean(&problem, &self.evaluation().curvatures)].into(),
            // The slopes of all rows together cancel but for rounding.
            DualJob::Move(_) if problem.coupled().is_some() => vec![mean(&problem, self.dual_point())].into(),
            DualJob::Move(step) => {
                let mut theta = self.take_theta();
                theta.iter_mut().zip(&self.evaluation().curvatures).for_each(|(dual, h)| *dual -= step * h);
                let sum = mean(&problem, &theta);
                self.dual.theta = Some(theta);
                vec![sum].into()
            }
            DualJob::Largest => pass::largest_entries(problem.matrix()).into(),
            DualJob::Free(features) => {
                self.dual.free.insert(FreeColumns::of(&problem, features)).squares(&problem).into()
            }
            job => self.run_free(&problem, job).into(),
        }
    }

    /// Σ ℓ* of a loss of all margins together, at a multiple of the slopes that θ is.
    fn value_together(&mut self, scale: f64) -> f64 {
        let problem = Arc::clone(&self.problem);
        let own = self.dual.margins.take();
        let margins = own.as_deref().unwrap_or_else(|| self.margins());
        let value = problem.coupled().map(|coupled| coupled.conjugate(scale, margins, problem.row_weights()));
        self.dual.margins = own;
        value.unwrap_or(f64::INFINITY) / problem.total_rows() as f64
    }

    /// What needs the columns of the unpenalised coordinates.
    fn run_free(&mut self, problem: &Problem, job: &DualJob) -> Vec<f64> {
        let Some(mut free) = self.dual.free.take() else { return Vec::new() };
        let mut theta = self.take_theta();
        let mut sums = Vec::new();
        match job {
            DualJob::FreeMargins(x) => sums.push(free.square_of_margins(problem, x)),
            DualJob::FreeGram => sums = free.gram(problem),
            DualJob::FreeReplace(by) => free.replace(by),
            DualJob::FreeSlopes => sums = free.slopes(problem, &theta),
            DualJob::FreeHessian if problem.coupled().is_some() => {
                let margins = self.dual.margins.clone().unwrap_or_else(|| self.margins().to_vec());
                let (_, curvatures) = pass::expand_together(problem, &margins);
                sums = free.hessian_of(problem, &curvatures);
            }
            DualJob::FreeHessian => sums = free.hessian(problem, self.margins()),
            DualJob::FreeCorrect(delta) if problem.coupled().is_some() => {
                let mut margins = self.dual.margins.take().unwrap_or_else(|| self.margins().to_vec());
                free.subtract(delta, &mut margins);
                theta = pass::row_gradients(problem, &margins);
                self.dual.margins = Some(margins);
                sums.push(0.0);
            }
            DualJob::FreeCorrect(delta) => sums.push(free.correct(problem, self.margins(), delta, &mut theta) as f64),
            _ => {}
        }
        self.dual.theta = Some(theta);
        self.dual.free = Some(free);
        sums
    }
}

/// The weighted mean over the rows of one output.
fn mean(problem: &Problem, of: &[f64]) -> f64 {
    let weight = |row: usize| pass::weighted(problem.row_weight(row), || of[row]);
    pass::sum_rows(problem.n_rows(), weight) / problem.total_rows() as f64
}
