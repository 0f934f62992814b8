//! min over z: u·(z − x) + ½ (z − x)ᵀH(z − x) + Σ λ_j|z_j|, with a dense H: the model of a Newton step.
//!
//! Coordinate descent finds the face; on it the model is smooth, and one Cholesky solve gives its minimum. Where that
//! lies beyond the face it is projected back, as in the paper's Orthant step: what crosses zero becomes zero, and the
//! smaller face is solved in turn. Then coordinate descent looks again.

use super::cholesky::Cholesky;
use crate::penalty::shrink::shrink;

/// The model around a point.
pub(super) struct Quadratic {
    /// Coordinates, p.
    pub size: usize,
    /// H, symmetric, p × p.
    pub hessian: Vec<f64>,
    /// λ_j.
    pub l1: Vec<f64>,
}

/// Sweeps of coordinate descent between two solves on the face.
const SWEEPS: usize = 12;
/// Faces tried before the point found so far has to do.
const FACES: usize = 40;

impl Quadratic {
    /// Moves z, whose gradient of the smooth part is u, to the minimum; both are kept up to date. Done when every
    /// violation is at most `tolerance` times the largest there was, each over the root of its curvature: so the unit
    /// of a column does not matter.
    pub fn solve(&self, z: &mut [f64], u: &mut [f64], tolerance: f64) {
        let mut largest = 0.0f64;
        for _ in 0..FACES {
            for _ in 0..SWEEPS {
                let worst = self.sweep(z, u);
                largest = largest.max(worst);
                if worst <= tolerance * largest {
                    return;
                }
            }
            // Each turn drops a coordinate at least, so this ends.
            while self.solve_on_face(z, u) {}
        }
    }

    fn row(&self, at: usize) -> &[f64] {
        &self.hessian[at * self.size..(at + 1) * self.size]
    }

    fn step(&self, at: usize, delta: f64, z: &mut [f64], u: &mut [f64]) {
        z[at] += delta;
        u.iter_mut().zip(self.row(at)).for_each(|(u, h)| *u += delta * h);
    }

    /// One round of coordinate descent; returns the largest violation it met, over the root of the curvature.
    fn sweep(&self, z: &mut [f64], u: &mut [f64]) -> f64 {
        let mut worst = 0.0f64;
        for at in 0..self.size {
            let (curvature, l1) = (self.hessian[at * self.size + at], self.l1[at]);
            let violation = if z[at] == 0.0 { shrink(u[at], l1).abs() } else { (u[at] + l1.copysign(z[at])).abs() };
            if violation == 0.0 || curvature <= 0.0 {
                continue;
            }
            worst = worst.max(violation / curvature.sqrt());
            let next = shrink(z[at] - u[at] / curvature, l1 / curvature);
            if next != z[at] {
                self.step(at, next - z[at], z, u);
                // The sum may miss the zero by rounding, and a zero must be one.
                z[at] = next;
            }
        }
        worst
    }

    /// Moves towards the minimum on the face of z. True where that lay beyond the face, which is smaller now.
    fn solve_on_face(&self, z: &mut [f64], u: &mut [f64]) -> bool {
        let face: Vec<usize> = (0..self.size).filter(|&at| z[at] != 0.0 || self.l1[at] == 0.0).collect();
        let Some(step) = self.newton_step(&face, z, u) else { return false };
        // How far the face reaches along the step.
        let mut reach = 1.0f64;
        for (&at, &delta) in face.iter().zip(&step) {
            if self.l1[at] > 0.0 && (z[at] + delta) * z[at] < 0.0 {
                reach = reach.min(-z[at] / delta);
            }
        }
        let mut size = 1.0;
        loop {
            // At the end of the face's reach the model has fallen for sure; before, only a look can tell.
            let last = size <= reach;
            let (mut to, mut slope) = (z.to_vec(), u.to_vec());
            let mut dropped = false;
            for (&at, &delta) in face.iter().zip(&step) {
                let trial = z[at] + size * delta;
                let crosses = self.l1[at] > 0.0 && trial * z[at] <= 1e-15 * z[at] * z[at];
                let trial = if crosses { 0.0 } else { trial };
                dropped |= crosses;
                self.step(at, trial - z[at], &mut to, &mut slope);
                to[at] = trial;
            }
            let change: f64 = face
                .iter()
                .map(|&at| {
                    let bend = 0.5 * (u[at] + slope[at]) * (to[at] - z[at]);
                    bend + self.l1[at] * (to[at].abs() - z[at].abs())
                })
                .sum();
            if change < 0.0 || last {
                z.copy_from_slice(&to);
                u.copy_from_slice(&slope);
                return dropped;
            }
            size = (0.5 * size).max(reach);
        }
    }

    /// The Newton step of the model on a face; nothing where the face is empty or has no factor.
    fn newton_step(&self, face: &[usize], z: &[f64], u: &[f64]) -> Option<Vec<f64>> {
        let size = face.len();
        if size == 0 {
            return None;
        }
        let mut matrix = vec![0.0; size * size];
        for (row, &at) in face.iter().enumerate() {
            let line = self.row(at);
            for (column, &other) in face[..=row].iter().enumerate() {
                matrix[row * size + column] = line[other];
            }
            // Enough to factor what is singular to rounding: duplicated columns, more columns than rows.
            matrix[row * size + row] *= 1.0 + 1e-11;
            matrix[row * size + row] += 1e-300;
        }
        let mut step: Vec<f64> = face
            .iter()
            .map(|&at| if self.l1[at] == 0.0 { -u[at] } else { -(u[at] + self.l1[at].copysign(z[at])) })
            .collect();
        Cholesky::new(size, matrix)?.solve(&mut step);
        step.iter().all(|delta| delta.is_finite()).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_minimum_meets_its_conditions(
            entries in proptest::collection::vec(-1.0..1.0f64, 64),
            slopes in proptest::collection::vec(-1.0..1.0f64, 8),
            l1 in 0.0..0.6f64,
            rank in 2usize..8,
        ) {
            let size = 8;
            let mut hessian = vec![0.0; size * size];
            for row in 0..size {
                for column in 0..size {
                    hessian[row * size + column] =
                        (0..rank).map(|k| entries[row * 8 + k] * entries[column * 8 + k]).sum();
                }
                hessian[row * size + row] += 1e-3;
            }
            let mut l1 = vec![l1 + 0.05; size];
            l1[7] = 0.0;
            let model = Quadratic { size, hessian, l1 };
            let (mut z, mut u) = (vec![0.0; size], slopes.clone());
            model.solve(&mut z, &mut u, 1e-12);
            for at in 0..size {
                let slope = slopes[at] + (0..size).map(|k| model.row(at)[k] * z[k]).sum::<f64>();
                let violation =
                    if z[at] == 0.0 { shrink(slope, model.l1[at]).abs() } else { (slope + model.l1[at].copysign(z[at])).abs() };
                prop_assert!(violation < 1e-8, "coordinate {at}: {violation}");
            }
        }
    }
}
