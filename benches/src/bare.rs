//! A bare pass: what all others are measured against.

use std::time::Instant;

use obprox::Problem;
use obprox::data::{Matrix, Rows};

/// The obvious loops: margins, losses, gradient. What no method can do without in an epoch. The seconds.
pub fn bare(problem: &Problem) -> f64 {
    fn pass<R: Rows>(rows: &R, problem: &Problem) -> f64 {
        let weights = vec![0.001; rows.n_cols()];
        let mut gradient = vec![0.0; rows.n_cols()];
        let begun = Instant::now();
        let mut loss = 0.0;
        let mut pulls = vec![0.0; rows.n_rows()];
        for (row, pull) in pulls.iter_mut().enumerate() {
            let mut margin = 0.0;
            rows.for_each(row, |column, value| margin += value * weights[column]);
            let z = problem.targets()[row] * margin;
            loss += (-z).exp().ln_1p();
            *pull = -problem.targets()[row] / (1.0 + z.exp());
        }
        for (row, pull) in pulls.iter().enumerate() {
            rows.for_each(row, |column, value| gradient[column] += value * pull);
        }
        let seconds = begun.elapsed().as_secs_f64();
        std::hint::black_box(loss + gradient.iter().sum::<f64>());
        seconds
    }
    match problem.matrix() {
        Matrix::Ones(rows) => pass(rows, problem),
        Matrix::Sparse32(rows) => pass(rows, problem),
        Matrix::Sparse64(rows) => pass(rows, problem),
        Matrix::Dense32(rows) => pass(rows, problem),
        Matrix::Dense64(rows) => pass(rows, problem),
    }
}

/// The least of some seconds.
pub fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
