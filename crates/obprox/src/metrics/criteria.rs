//! AIC and BIC: −2 ln L + 2 k and −2 ln L + k ln N, where k counts the weights that are not zero and the intercepts, which
//! is how many parameters an l1-regularised fit spends (Zou, Hastie, Tibshirani 2007). Of the squared loss the variance is
//! that of the residuals; of counts what ln L has beside the model is left out, since it is the same for all. Of Cox L is the partial
//! likelihood and N the number of events (Volinsky, Raftery 2000).

use crate::{Certificate, Problem};

/// What a model costs in likelihood and in parameters; the smaller, the better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Akaike's.
    pub aic: f64,
    /// Schwarz's, which asks more of each parameter.
    pub bic: f64,
}

impl Criteria {
    /// Of a point of a problem; nothing where the loss is no likelihood.
    pub fn of(problem: &Problem, certificate: &Certificate) -> Option<Self> {
        let (rows, loss) = (problem.n_rows() as f64, certificate.loss);
        let events = problem.coupled().map(|coupled| coupled.events(problem.row_weights()) as f64);
        let minus_twice = match problem.loss().name() {
            "logistic" | "softmax" | "poisson" | "negative-binomial" | "cox" | "cox-breslow" => 2.0 * rows * loss,
            // ½ the mean squared residual is the loss.
            "squared" if loss > 0.0 => rows * ((std::f64::consts::TAU * 2.0 * loss).ln() + 1.0),
            _ => return None,
        };
        let intercepts = if problem.has_intercept() && events.is_none() { problem.outputs() } else { 0 };
        let parameters = (certificate.nnz + intercepts) as f64;
        Some(Self { aic: minus_twice + 2.0 * parameters, bic: minus_twice + parameters * events.unwrap_or(rows).ln() })
    }
}
