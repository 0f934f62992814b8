//! Newton steps on all outputs of a loss at once, where the working set is small enough for one Hessian.
//!
//! The classes of the softmax loss pull at each other: H = Σ wᵢ (diag(p) − ppᵀ) ⊗ dᵢdᵢᵀ / N. One class after the other
//! sees only its own block and crawls where λ is small; the whole H does not.

use super::quadratic::Quadratic;
use super::search::{search, shifted};
use super::{Auto, WorkingSet};
use crate::pass;
use crate::penalty::{ElasticNet, L1, Term};

/// At most that many coordinates, all outputs together, are stepped on at once.
const LARGEST: usize = 600;

impl Auto<'_> {
    /// Whether the working set is small enough, and the loss has what it takes.
    pub(super) fn can_step_jointly(&self) -> bool {
        let outputs = self.problem().outputs();
        let size = (self.set.features.len() + usize::from(self.problem().has_intercept())) * outputs;
        let mut hessian = vec![0.0; outputs * outputs];
        outputs > 1
            && size <= LARGEST
            && self.problem().loss().hessian(&vec![0.0; outputs], self.problem().targets()[0], &mut hessian)
    }

    /// Proximal Newton steps on the working set until its violation has fallen enough; whether anything moved.
    pub(super) fn polish_jointly(&mut self, steps: usize, enough: f64) -> bool {
        let problem = std::sync::Arc::clone(&self.reduced.problem);
        let (problem, outputs) = (&*problem, problem.outputs());
        let set = std::sync::Arc::clone(&self.set);
        let (n_rows, n_features) = (problem.n_rows(), set.features.len());
        let columns = set.columns(problem);
        let width = n_features + usize::from(problem.has_intercept());
        // Output k of place j is coordinate k·width + j; the intercept comes last.
        let terms: Vec<ElasticNet> = set.features.iter().map(|&feature| self.term(feature as usize)).collect();
        let term = |at: usize| terms.get(at % width).copied().unwrap_or(ElasticNet { l1: 0.0, l2: 0.0 });
        let l1: Vec<f64> = (0..width * outputs).map(|at| term(at).l1).collect();
        let value = |margins: &[f64], x: &[f64]| {
            pass::mean_loss(problem, margins) + x.iter().enumerate().map(|(at, &x)| term(at).value(x)).sum::<f64>()
        };
        let mut moved = false;
        for _ in 0..steps {
            // ---- the point and its slopes ------------------------------------------------------------------------
            let place_of = |at: usize| match set.features.get(at % width) {
                Some(&feature) => Ok(feature as usize * outputs + at / width),
                None => Err(at / width),
            };
            let x: Vec<f64> = (0..l1.len())
                .map(|at| place_of(at).map_or_else(|k| self.point.intercept[k], |place| self.point.weights[place]))
                .collect();
            let slopes = pass::row_gradients(problem, &self.margins);
            let weight = |row: usize| problem.row_weight(row) / n_rows as f64;
            let mut u: Vec<f64> = x.iter().enumerate().map(|(at, x)| term(at).l2 * x).collect();
            for k in 0..outputs {
                for place in 0..n_features {
                    let sum = &mut u[k * width + place];
                    columns.for_each(place, |row, value| *sum += value * weight(row) * slopes[row * outputs + k]);
                }
                if problem.has_intercept() {
                    u[k * width + n_features] = (0..n_rows).map(|row| weight(row) * slopes[row * outputs + k]).sum();
                }
            }
            let violation = (0..x.len()).fold(0.0, |most: f64, at| most.max(L1 { l1: l1[at] }.violation(x[at], u[at])));
            if violation <= enough {
                break;
            }

            // ---- the model and its minimum -----------------------------------------------------------------------
            let mut model = Quadratic::new(x.len(), self.joint_hessian(&set, term).into());
            let (mut z, mut slope) = (x.clone(), u.clone());
            model.solve(&l1, &mut z, &mut slope, 0.01 * (enough / violation).min(1.0));

            // ---- the step ----------------------------------------------------------------------------------------
            let mut shift = vec![0.0; n_rows * outputs];
            let (mut expected, mut weights) = (0.0, Vec::new());
            for (at, (z, x)) in z.iter().zip(&x).enumerate().filter(|(_, (z, x))| z != x) {
                let delta = z - x;
                expected += u[at] * delta + l1[at] * (z.abs() - x.abs());
                match place_of(at) {
                    Ok(_) => weights.push((at / width, at % width, delta)),
                    Err(k) => shift.iter_mut().skip(k).step_by(outputs).for_each(|shift| *shift += delta),
                }
            }
            set.add_to(problem, &weights, &mut shift);
            if expected >= 0.0 || expected.is_nan() {
                break;
            }
            self.steps += 1;
            let before = value(&self.margins, &x);
            let taken = search(before, expected, (&x, &z), |size, x| value(&shifted(&self.margins, size, &shift), x));
            let Some(step) = taken else {
                self.damping = (self.damping * 100.0).min(1.0);
                break;
            };
            for (at, &value) in step.x.iter().enumerate() {
                match place_of(at) {
                    Ok(place) => self.point.weights[place] = value,
                    Err(k) => self.point.intercept[k] = value,
                }
            }
            self.margins = shifted(&self.margins, step.size, &shift);
            self.damping =
                if step.size == 1.0 { (self.damping / 10.0).max(1e-10) } else { (self.damping * 4.0).min(1.0) };
            moved = true;
        }
        moved
    }

    /// The whole Hessian, damped: a block for each pair of outputs.
    fn joint_hessian(&self, set: &WorkingSet, term: impl Fn(usize) -> ElasticNet) -> Vec<f64> {
        let (problem, outputs) = (self.problem(), self.problem().outputs());
        let n_rows = problem.n_rows();
        let mut rows = vec![0.0; n_rows * outputs * outputs];
        for (row, out) in rows.chunks_exact_mut(outputs * outputs).enumerate() {
            problem.loss().hessian(&self.margins[row * outputs..(row + 1) * outputs], problem.targets()[row], out);
            out.iter_mut().for_each(|h| *h *= problem.row_weight(row) / n_rows as f64);
        }
        let order = set.order(problem, |_| true);
        let width = order.len();
        let size = width * outputs;
        let mut hessian = vec![0.0; size * size];
        for k in 0..outputs {
            for m in 0..=k {
                let pair: Vec<f64> = rows.iter().skip(k * outputs + m).step_by(outputs * outputs).copied().collect();
                let block = set.gram(problem, &order, &pair);
                for (at, &a) in order.iter().enumerate() {
                    for (other, &b) in order.iter().enumerate() {
                        let h = block[at.max(other) * width + at.min(other)];
                        hessian[(k * width + a) * size + m * width + b] = h;
                        hessian[(m * width + b) * size + k * width + a] = h;
                    }
                }
            }
        }
        for at in 0..size {
            let diagonal = &mut hessian[at * size + at];
            *diagonal += term(at).l2 + self.damping * *diagonal;
        }
        hessian
    }
}
