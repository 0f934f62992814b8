//! The end of a round: the gradient over every column, and what it proves.

use std::sync::Arc;

use super::Auto;
use crate::certificate::{Certificate, certify_placed};
use crate::huge::Huge;
use crate::penalty::{Separable, Term};
use crate::rows::{DualJob, Gradient};
use crate::tuning::rounds::NEARLY;
use crate::{Result, intercept};

impl Auto<'_> {
    /// Computes what is not known of the point, and its certificate.
    pub(super) fn measure(&mut self) -> Result<()> {
        if self.plan.sees_all { self.certify_in_sight() } else { self.certify_anew() }
    }

    /// The certificate where the rows see all: the intercept is moved only if that is what is lacking.
    fn certify_in_sight(&mut self) -> Result<()> {
        let problem = Arc::clone(&self.reduced.problem);
        if self.gradient.is_empty() {
            self.rows.place(&self.point)?;
            if problem.has_intercept() && self.point.weights.iter().all(|&x| x == 0.0) {
                self.centre()?;
            }
        }
        if self.largest.is_empty() && problem.has_intercept() {
            self.largest = self.rows.dual(DualJob::Largest)?;
        }
        let goal = self.goal().unwrap_or(0.0);
        let allowed = |objective: f64| goal * f64::max(objective.abs(), problem.least_scale());
        let mut gradient = self.rows.gradient()?;
        // Far from its optimum the intercept stands in the way of all the others.
        let slope = if problem.has_intercept() { gradient.intercept[0].abs() } else { 0.0 };
        let is_far = 2.0 * problem.margin_unit() * slope > crate::tuning::newton::IN_SIGHT * allowed(gradient.loss);
        if is_far {
            intercept::centre(&mut *self.rows, &mut self.point.intercept)?;
            gradient = self.rows.gradient()?;
        }
        let largest = Some(&self.largest[..]).filter(|_| !is_far);
        let mut certificate = certify_placed(&mut *self.rows, &problem, &self.point, &gradient, largest)?;
        // What is left of its slope may still be all that stands in the way of the proof.
        let allowed = allowed(certificate.objective);
        let is_near = |gap: f64| gap > allowed && gap <= NEARLY * allowed;
        if slope > 0.0 && !is_far && certificate.gap.is_some_and(is_near) {
            intercept::centre(&mut *self.rows, &mut self.point.intercept)?;
            gradient = self.rows.gradient()?;
            certificate = certify_placed(&mut *self.rows, &problem, &self.point, &gradient, None)?;
        }
        (self.gradient, self.intercept_slope) = (gradient.weights, gradient.intercept[0]);
        self.keep(certificate);
        Ok(())
    }

    /// The certificate with margins that are computed anew, what the steps added up forgotten, and the intercept at its
    /// optimum.
    fn certify_anew(&mut self) -> Result<()> {
        let problem = Arc::clone(&self.reduced.problem);
        let outputs = problem.outputs() as u32;
        let weights = self.point.nonzeros();
        // The set holds what is not zero, but for the point that a run starts from.
        if weights.iter().any(|(at, _)| self.set.binary_search(&(at / outputs)).is_err()) {
            self.set = weights.iter().map(|(at, _)| at / outputs).collect();
            self.set.dedup();
            self.rows.select(&self.set)?;
        }
        self.rows.place(&self.point)?;
        if problem.has_intercept() {
            self.centre()?;
        }
        self.gradient = Huge::default();
        let gradient = match problem.slopes_at_zero() {
            // A run that starts at x = 0 need not look there again.
            Some(slopes) if self.history.rounds == 0 && weights.is_empty() => {
                Gradient { weights: slopes.iter().copied().collect(), ..self.rows.intercept_gradient()? }
            }
            _ => self.rows.gradient()?,
        };
        let certificate = certify_placed(&mut *self.rows, &problem, &self.point, &gradient, None)?;
        (self.gradient, self.intercept_slope) = (gradient.weights, gradient.intercept[0]);
        self.keep(certificate);
        Ok(())
    }

    /// Moves the intercepts to their optimum. At x = 0 that is known, and shards need not be asked.
    fn centre(&mut self) -> Result<()> {
        let problem = &self.reduced.problem;
        if !problem.in_shards() || self.point.weights.iter().any(|&x| x != 0.0) {
            return intercept::centre(&mut *self.rows, &mut self.point.intercept);
        }
        let to = problem.intercept_at_zero();
        let by: Vec<f64> = to.iter().zip(&self.point.intercept).map(|(to, from)| to - from).collect();
        self.point.intercept = to.to_vec();
        self.rows.shift(&by)
    }

    fn keep(&mut self, certificate: Certificate) {
        (self.history.objective, self.history.kkt) = (certificate.objective, certificate.kkt);
        self.certificate = Some(certificate);
    }

    /// The largest violation over all features.
    pub(super) fn violation(&self) -> f64 {
        let outputs = self.problem().outputs();
        if let Some(penalty) = self.problem().regularization().on_blocks() {
            let of = |block: usize| {
                let (x, slopes) = (penalty.gather(block, &self.point.weights), penalty.gather(block, &self.gradient));
                penalty.violation(block, &x, &slopes)
            };
            return (0..penalty.blocks.len()).map(of).fold(0.0, f64::max);
        }
        let of = |(at, (&x, &slope)): (usize, (&f64, &f64))| {
            self.problem().regularization().term(at / outputs).violation(x, slope)
        };
        let pairs = self.point.weights.iter().zip(&self.gradient[..]).enumerate();
        pairs.map(of).fold(0.0, f64::max)
    }
}
