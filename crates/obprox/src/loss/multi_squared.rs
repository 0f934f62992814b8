//! ℓ(m; i) = ½ Σ_k (m_k − Y_ik)²: several numbers to each row.
//!
//! The targets Y lie with the loss, and the target of a row is its number i. So a row takes its targets along wherever it
//! goes: into a sample, or out of a fold. With a penalty on the rows of weights it is the multi-task lasso.

use std::fmt;
use std::sync::Arc;

use super::{Loss, Task};
use crate::{Error, Result};

/// The squared error of several targets.
#[derive(Clone)]
pub struct MultiSquared {
    targets: Arc<[f64]>,
    outputs: usize,
}

impl MultiSquared {
    /// K targets a row, row after row. The problem's own targets are the numbers of its rows, from 0.
    pub fn new(targets: Vec<f64>, outputs: usize) -> Result<Self> {
        if outputs == 0 || !targets.len().is_multiple_of(outputs) {
            let message = format!("{} targets are not {outputs} a row", targets.len());
            return Err(Error::parameter("targets", message));
        }
        if let Some(at) = targets.iter().position(|target| !target.is_finite()) {
            let (row, output) = (at / outputs + 1, at % outputs + 1);
            let message = format!("row {row}: target {output} is {}, not a finite number", targets[at]);
            return Err(Error::Data(message));
        }
        Ok(Self { targets: targets.into(), outputs })
    }

    /// The targets that a problem with this loss has: the numbers of its rows.
    pub fn rows(&self) -> Vec<f64> {
        (0..self.targets.len() / self.outputs).map(|row| row as f64).collect()
    }

    fn of(&self, row: f64) -> &[f64] {
        &self.targets[row as usize * self.outputs..][..self.outputs]
    }
}

impl fmt::Debug for MultiSquared {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "MultiSquared({} rows × {})", self.targets.len() / self.outputs, self.outputs)
    }
}

impl Loss for MultiSquared {
    fn name(&self) -> &str {
        "multi-squared"
    }

    fn task(&self) -> Task {
        Task::Regression
    }

    fn outputs(&self) -> usize {
        self.outputs
    }

    fn value(&self, margins: &[f64], target: f64) -> f64 {
        margins.iter().zip(self.of(target)).map(|(m, y)| 0.5 * (m - y) * (m - y)).sum()
    }

    fn gradient(&self, margins: &[f64], target: f64, gradient: &mut [f64]) {
        for ((g, m), y) in gradient.iter_mut().zip(margins).zip(self.of(target)) {
            *g = m - y;
        }
    }

    fn curvature(&self, _margins: &[f64], _target: f64, curvature: &mut [f64]) -> bool {
        curvature.fill(1.0);
        true
    }

    fn hessian(&self, _margins: &[f64], _target: f64, hessian: &mut [f64]) -> bool {
        hessian.fill(0.0);
        hessian.iter_mut().step_by(self.outputs + 1).for_each(|h| *h = 1.0);
        true
    }

    fn smoothness(&self) -> Option<f64> {
        Some(1.0)
    }

    fn conjugate(&self, dual: &[f64], target: f64) -> Option<f64> {
        Some(dual.iter().zip(self.of(target)).map(|(u, y)| u * (0.5 * u + y)).sum())
    }
}
