//! A point: the weights and intercepts that a problem is asked for.

use super::Problem;
use crate::loss::Task;

/// Weights x (feature j, output k at j·K + k) and intercepts b of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// x.
    pub weights: Vec<f64>,
    /// b, one an output; zeros where the problem has no intercept.
    pub intercept: Vec<f64>,
}

impl Point {
    /// x = 0, b = 0.
    pub fn zero(problem: &Problem) -> Self {
        let outputs = problem.outputs();
        Self { weights: vec![0.0; problem.n_features() * outputs], intercept: vec![0.0; outputs] }
    }

    /// The weights that are not zero, by their place.
    pub(crate) fn nonzeros(&self) -> Vec<(u32, f64)> {
        let nonzero = self.weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
        nonzero.map(|(at, &weight)| (at as u32, weight)).collect()
    }

    /// The same point without what the loss does not see. Of several intercepts a softmax sees the differences alone: they
    /// get mean 0. Where rows are compared with each other there is nothing to see of one: it becomes 0.
    pub(crate) fn settled(mut self, problem: &Problem) -> Self {
        match problem.loss().task() {
            Task::Classes => {
                let mean = self.intercept.iter().sum::<f64>() / self.intercept.len() as f64;
                self.intercept.iter_mut().for_each(|value| *value -= mean);
            }
            Task::Survival => self.intercept.fill(0.0),
            _ => {}
        }
        self
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.weights.iter().chain(&self.intercept).all(|value| value.is_finite())
    }
}
