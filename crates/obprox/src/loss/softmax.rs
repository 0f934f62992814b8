//! ℓ(m; y) = ln Σ_k e^(m_k) − m_y, y = 0, 1, …, K − 1.

use super::logistic::entropy;
use super::{Loss, Task};

/// The cross-entropy of several classes: one margin, one set of weights and one intercept a class.
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    /// The number of classes, K.
    pub classes: usize,
}

fn largest(margins: &[f64]) -> f64 {
    margins.iter().copied().fold(f64::NEG_INFINITY, |a, b| if a > b { a } else { b })
}

/// The probabilities e^(m_k) / Σ e^(m_k), which may overwrite nothing: margins and probabilities are apart.
pub(crate) fn probabilities(margins: &[f64], probabilities: &mut [f64]) {
    let top = largest(margins);
    let mut sum = 0.0;
    for (probability, &margin) in probabilities.iter_mut().zip(margins) {
        *probability = (margin - top).exp();
        sum += *probability;
    }
    for probability in probabilities {
        *probability /= sum;
    }
}

impl Loss for Softmax {
    fn name(&self) -> &str {
        "softmax"
    }

    fn task(&self) -> Task {
        Task::Classes
    }

    fn outputs(&self) -> usize {
        self.classes
    }

    fn value(&self, margins: &[f64], target: f64) -> f64 {
        let top = largest(margins);
        let sum: f64 = margins.iter().map(|&margin| (margin - top).exp()).sum();
        sum.ln() + top - margins[target as usize]
    }

    fn gradient(&self, margins: &[f64], target: f64, gradient: &mut [f64]) {
        probabilities(margins, gradient);
        gradient[target as usize] -= 1.0;
    }

    fn curvature(&self, margins: &[f64], _target: f64, curvature: &mut [f64]) -> bool {
        probabilities(margins, curvature);
        for probability in curvature {
            *probability *= 1.0 - *probability;
        }
        true
    }

    fn hessian(&self, margins: &[f64], _target: f64, hessian: &mut [f64]) -> bool {
        // diag(p) − ppᵀ.
        let mut p = vec![0.0; self.classes];
        probabilities(margins, &mut p);
        for (k, row) in hessian.chunks_exact_mut(self.classes).enumerate() {
            for (m, entry) in row.iter_mut().enumerate() {
                *entry = if k == m { p[k] * (1.0 - p[k]) } else { -p[k] * p[m] };
            }
        }
        true
    }

    fn smoothness(&self) -> Option<f64> {
        // diag(p) − ppᵀ has no eigenvalue above ½, reached at two equal probabilities.
        Some(0.5)
    }

    fn slope_range(&self, _target: f64) -> Option<(f64, f64)> {
        Some((-1.0, 1.0))
    }

    fn conjugate(&self, dual: &[f64], target: f64) -> Option<f64> {
        // u + e_y must lie in the simplex, where ℓ* is the negative entropy. A scaled gradient s(p − e_y) + e_y does,
        // up to rounding.
        let mut value = 0.0;
        let mut sum = 0.0;
        for (class, &u) in dual.iter().enumerate() {
            let p = if class == target as usize { u + 1.0 } else { u };
            if p < -1e-15 {
                return Some(f64::INFINITY);
            }
            value += entropy(p.max(0.0));
            sum += p;
        }
        Some(if (sum - 1.0).abs() <= 1e-12 { value } else { f64::INFINITY })
    }
}
