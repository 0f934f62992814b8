//! Hessians of all outputs together: those of the softmax, whose classes pull at each other.

use std::sync::Arc;

use rayon::prelude::*;

use super::Memory;
use super::pass::{self, BLOCK};

impl Memory {
    /// A block for each pair of outputs: H = Σ wᵢ (diag(p) − ppᵀ) ⊗ dᵢdᵢᵀ / N of the softmax. Coordinate k·width + j is
    /// output k of index j.
    pub(super) fn joint_hessian(&mut self, size: usize) -> Vec<f64> {
        let (problem, outputs) = (Arc::clone(&self.problem), self.problem.outputs());
        let (n_rows, squares) = (problem.n_rows(), outputs * outputs);
        let mut rows = vec![0.0; n_rows * squares];
        let blocks = rows.par_chunks_mut(BLOCK * squares).zip(self.margins.par_chunks(BLOCK * outputs));
        blocks.enumerate().for_each(|(block, (rows, margins))| {
            for (at, (out, margins)) in rows.chunks_exact_mut(squares).zip(margins.chunks_exact(outputs)).enumerate() {
                let row = block * BLOCK + at;
                problem.loss().hessian(margins, problem.targets()[row], out);
                out.iter_mut().for_each(|h| *h *= problem.row_weight(row) / problem.total_rows() as f64);
            }
        });
        let order = self.set.order(&problem, (0..size / outputs).collect());
        let width = order.len();
        let mut hessian = vec![0.0; size * size];
        for k in 0..outputs {
            for m in 0..=k {
                let pair: Vec<f64> = rows.iter().skip(k * outputs + m).step_by(squares).copied().collect();
                let block = self.set.gram(&problem, &order, &pair);
                for (at, &a) in order.iter().enumerate() {
                    for (other, &b) in order.iter().enumerate() {
                        let h = block[at.max(other) * width + at.min(other)];
                        hessian[(k * width + a) * size + m * width + b] = h;
                        hessian[(m * width + b) * size + k * width + a] = h;
                    }
                }
            }
        }
        hessian
    }

    /// The product of that Hessian with a vector, without forming it.
    pub(super) fn joint_product(&mut self, v: &[f64]) -> Vec<f64> {
        let (problem, outputs) = (Arc::clone(&self.problem), self.problem.outputs());
        let mut shift = self.shift_of(0..outputs, v.iter().copied());
        let share = 1.0 / problem.total_rows() as f64;
        let blocks = shift.par_chunks_mut(BLOCK * outputs).zip(self.margins.par_chunks(BLOCK * outputs));
        blocks.enumerate().for_each(|(block, (shift, margins))| {
            let mut hessian = vec![0.0; outputs * outputs];
            for (at, (shift, margins)) in shift.chunks_exact_mut(outputs).zip(margins.chunks_exact(outputs)).enumerate()
            {
                let row = block * BLOCK + at;
                problem.loss().hessian(margins, problem.targets()[row], &mut hessian);
                let weight = problem.row_weight(row) * share;
                let product =
                    |line: &[f64]| pass::weighted(weight, || line.iter().zip(&*shift).map(|(h, s)| h * s).sum());
                let products: Vec<f64> = hessian.chunks_exact(outputs).map(product).collect();
                shift.copy_from_slice(&products);
            }
        });
        let of_output = |output: usize| {
            let of_rows: Vec<f64> = shift.iter().skip(output).step_by(outputs).copied().collect();
            let mut sums = self.set.slopes(&problem, &of_rows);
            sums.extend(problem.has_intercept().then(|| of_rows.iter().sum::<f64>()));
            sums
        };
        (0..outputs).flat_map(of_output).collect()
    }
}
