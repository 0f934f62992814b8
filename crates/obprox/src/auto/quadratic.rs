//! min over z: u·(z − x) + ½ (z − x)ᵀH(z − x) + Σ λ_j|z_j|, with a dense H: the model of a Newton step.
//!
//! Coordinate descent finds the face; on it the model is smooth, and one Cholesky solve gives its minimum. Where that
//! lies beyond the face it is projected back, as in the paper's Orthant step: what crosses zero becomes zero, and the
//! smaller face is solved in turn. Then coordinate descent looks again.

use super::cholesky::Cholesky;
use crate::huge::Huge;
use crate::penalty::shrink::shrink;

/// The quadratic part of a model; the l1 part comes with each solve.
pub(super) struct Quadratic {
    /// Coordinates, p.
    size: usize,
    /// H, symmetric, p × p.
    hessian: Huge<f64>,
    /// The last face that was solved on, and its factor: often the next is the same.
    factor: Option<(Vec<usize>, Cholesky)>,
}

/// Sweeps of coordinate descent between two solves on the face.
const SWEEPS: usize = 12;
/// Faces tried before the point found so far has to do.
const FACES: usize = 40;

impl Quadratic {
    /// Takes H, symmetric, p × p.
    pub fn new(size: usize, hessian: Huge<f64>) -> Self {
        Self { size, hessian, factor: None }
    }

    /// Moves z, whose gradient of the smooth part is u, to the minimum; both are kept up to date. Done when every
    /// violation is at most `tolerance` times the largest there was, each over the root of its curvature: so the unit
    /// of a column does not matter.
    pub fn solve(&mut self, l1: &[f64], z: &mut [f64], u: &mut [f64], tolerance: f64) {
        let mut largest = 0.0f64;
        for _ in 0..FACES {
            for _ in 0..SWEEPS {
                let worst = self.sweep(l1, z, u);
                largest = largest.max(worst);
                if worst <= tolerance * largest {
                    return;
                }
            }
            // Each turn drops a coordinate at least, so this ends.
            while self.solve_on_face(l1, z, u) {}
        }
    }

    /// H.
    pub fn hessian(&self) -> &[f64] {
        &self.hessian
    }

    fn row(&self, at: usize) -> &[f64] {
        &self.hessian[at * self.size..(at + 1) * self.size]
    }

    fn step(&self, at: usize, delta: f64, z: &mut [f64], u: &mut [f64]) {
        z[at] += delta;
        u.iter_mut().zip(self.row(at)).for_each(|(u, h)| *u += delta * h);
    }

    /// One round of coordinate descent; returns the largest violation it met, over the root of the curvature.
    fn sweep(&self, l1: &[f64], z: &mut [f64], u: &mut [f64]) -> f64 {
        let mut worst = 0.0f64;
        for at in 0..self.size {
            let (curvature, l1) = (self.hessian[at * self.size + at], l1[at]);
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
    fn solve_on_face(&mut self, l1: &[f64], z: &mut [f64], u: &mut [f64]) -> bool {
        let face: Vec<usize> = (0..self.size).filter(|&at| z[at] != 0.0 || l1[at] == 0.0).collect();
        let Some(step) = self.newton_step(&face, l1, z, u) else { return false };
        // How far the face reaches along the step.
        let mut reach = 1.0f64;
        for (&at, &delta) in face.iter().zip(&step) {
            if l1[at] > 0.0 && (z[at] + delta) * z[at] < 0.0 {
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
                let crosses = l1[at] > 0.0 && trial * z[at] <= 1e-15 * z[at] * z[at];
                let trial = if crosses { 0.0 } else { trial };
                dropped |= crosses;
                self.step(at, trial - z[at], &mut to, &mut slope);
                to[at] = trial;
            }
            let change: f64 = face
                .iter()
                .map(|&at| {
                    let bend = 0.5 * (u[at] + slope[at]) * (to[at] - z[at]);
                    bend + l1[at] * (to[at].abs() - z[at].abs())
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
    fn newton_step(&mut self, face: &[usize], l1: &[f64], z: &[f64], u: &[f64]) -> Option<Vec<f64>> {
        if face.is_empty() {
            return None;
        }
        if self.factor.as_ref().is_none_or(|(factored, _)| factored != face) {
            self.factor = None;
            self.factor = Some((face.to_vec(), self.factor_on(face)?));
        }
        let mut step: Vec<f64> =
            face.iter().map(|&at| if l1[at] == 0.0 { -u[at] } else { -(u[at] + l1[at].copysign(z[at])) }).collect();
        self.factor.as_ref()?.1.solve(&mut step);
        step.iter().all(|delta| delta.is_finite()).then_some(step)
    }

    fn factor_on(&self, face: &[usize]) -> Option<Cholesky> {
        let size = face.len();
        let mut matrix = Huge::zeros(size * size);
        let lines = &mut matrix[..];
        for (row, &at) in face.iter().enumerate() {
            let line = self.row(at);
            for (column, &other) in face[..=row].iter().enumerate() {
                lines[row * size + column] = line[other];
            }
            // Enough to factor what is singular to rounding: duplicated columns, more columns than rows.
            lines[row * size + row] *= 1.0 + 1e-11;
            lines[row * size + row] += 1e-300;
        }
        Cholesky::new(size, matrix)
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
            let mut model = Quadratic::new(size, hessian.into());
            let (mut z, mut u) = (vec![0.0; size], slopes.clone());
            model.solve(&l1, &mut z, &mut u, 1e-12);
            for at in 0..size {
                let slope = slopes[at] + (0..size).map(|k| model.row(at)[k] * z[k]).sum::<f64>();
                let violation =
                    if z[at] == 0.0 { shrink(slope, l1[at]).abs() } else { (slope + l1[at].copysign(z[at])).abs() };
                prop_assert!(violation < 1e-8, "coordinate {at}: {violation}");
            }
        }
    }
}
