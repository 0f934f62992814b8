//! min over z: u·(z − x) + ½ (z − x)ᵀH(z − x) + Σ λ_j|z_j|, with a dense H: the model of a Newton step.
//!
//! Coordinate descent finds the face; on it the model is smooth, and one Cholesky solve gives its minimum. Where that
//! lies beyond the face it is projected back, as in the paper's Orthant step: what crosses zero becomes zero, and the
//! smaller face is solved in turn. Then coordinate descent looks again.

use rayon::prelude::*;

use super::cholesky::{Cholesky, dot};
use super::face::{Face, conjugate_gradients};
use crate::huge::Huge;
use crate::penalty::shrink::shrink;
use crate::tuning::quadratic::{
    CONJUGATE, FACES, FEW_OF_A_FACE, FEWEST_SWEEPS, IDLE_FACES, LARGE, MOVES_OF_A_FACTOR, VISITS_OF_A_MOVE,
};
use crate::wide::wide;

/// The quadratic part of a model; the l1 part comes with each solve.
pub(crate) struct Quadratic {
    /// Coordinates, p.
    size: usize,
    /// H, symmetric, p × p.
    hessian: Huge<f64>,
    /// The last face that was solved on, and its factor: often the next is the same.
    factor: Option<(Vec<usize>, Cholesky)>,
}

wide! {
    /// Adds a multiple of one vector to another.
    fn add_multiple(to: &mut [f64], scale: f64, of: &[f64]) {
        to.iter_mut().zip(of).for_each(|(to, of)| *to += scale * of);
    }
}

impl Quadratic {
    /// Takes H, symmetric, p × p.
    pub fn new(size: usize, hessian: Huge<f64>) -> Self {
        Self { size, hessian, factor: None }
    }

    /// Moves z, whose gradient of the smooth part is u, to the minimum; both are kept up to date. Done when every
    /// violation is at most `tolerance` times the largest there was, each over the root of its curvature: so the unit
    /// of a column does not matter.
    pub fn solve(&mut self, l1: &[f64], z: &mut [f64], u: &mut [f64], tolerance: f64) {
        let mut largest = (0..self.size).map(|at| self.violation(at, l1, z, u)).fold(0.0, f64::max);
        // A step by a factor that is at hand costs less than two sweeps do, and leaves them little to find.
        let mut goes_on = self.is_at_hand(&Face::of(z, |at| l1[at]).indices);
        let (mut last, mut idle) = (f64::INFINITY, 0);
        for _ in 0..FACES {
            // Each turn drops a coordinate at least, so this ends.
            while goes_on && self.solve_on_face(l1, z, u, 0.5 * tolerance * largest) {}
            let worst = self.descend(l1, z, u, tolerance, &mut largest);
            // Where rounding stands in the way, more faces do not help.
            idle = if worst <= 0.5 * last { 0 } else { idle + 1 };
            if worst <= tolerance * largest || idle > IDLE_FACES {
                return;
            }
            last = last.min(worst);
            goes_on = true;
        }
    }

    /// Coordinate descent, for as long as it costs less than a factor would; the largest violation that the last sweep met.
    fn descend(&self, l1: &[f64], z: &mut [f64], u: &mut [f64], tolerance: f64, largest: &mut f64) -> f64 {
        let most = self.size * (self.size / MOVES_OF_A_FACTOR).max(FEWEST_SWEEPS);
        let (mut moves, mut worst) = (0, 0.0);
        while moves < most {
            // Of many coordinates those that are good enough are left alone; a few are put right as they come.
            let enough = if self.size < LARGE { 0.0 } else { tolerance * *largest };
            worst = self.sweep(l1, z, u, enough, &mut moves);
            *largest = largest.max(worst);
            if worst <= tolerance * *largest {
                break;
            }
        }
        worst
    }

    /// Takes in some more coordinates, which come last: their lines of H, each over all coordinates.
    pub fn extend(&mut self, lines: &[Vec<f64>]) {
        let (old, size) = (self.size, self.size + lines.len());
        let mut hessian = Huge::zeros(size * size);
        for at in 0..old {
            hessian[at * size..at * size + old].copy_from_slice(self.row(at));
        }
        for (line, at) in lines.iter().zip(old..) {
            for (other, &h) in line.iter().enumerate() {
                // Of two that are new both lines have their product, the same but for rounding.
                (hessian[at * size + other], hessian[other * size + at]) = (h, h);
            }
        }
        // The factor is of a face of the old coordinates, which have kept their places.
        (self.size, self.hessian) = (size, hessian);
    }

    /// H·step.
    pub fn times(&self, step: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.size];
        for (at, &of) in step.iter().enumerate().filter(|(_, of)| **of != 0.0) {
            add_multiple(&mut product, of, self.row(at));
        }
        product
    }

    /// H.
    pub fn hessian(&self) -> &[f64] {
        &self.hessian
    }

    /// The face whose factor is at hand: it has a say in how the next are solved.
    pub fn factored(&self) -> &[usize] {
        self.factor.as_ref().map_or(&[], |(face, _)| face)
    }

    /// Makes the factor of a face that had one.
    pub fn factor_again(&mut self, face: Vec<usize>) {
        if !face.is_empty() {
            self.factor = self.factor_on(&face).map(|factor| (face, factor));
        }
    }

    /// A line of H.
    pub fn row(&self, at: usize) -> &[f64] {
        &self.hessian[at * self.size..(at + 1) * self.size]
    }

    /// How much a coordinate violates its condition, over the root of the curvature.
    fn violation(&self, at: usize, l1: &[f64], z: &[f64], u: &[f64]) -> f64 {
        let (curvature, l1) = (self.curvature(at), l1[at]);
        let violation = if z[at] == 0.0 { shrink(u[at], l1).abs() } else { (u[at] + l1.copysign(z[at])).abs() };
        if violation == 0.0 || curvature <= 0.0 { 0.0 } else { violation / curvature.sqrt() }
    }

    /// One round of coordinate descent over what violates by more than enough; returns the largest violation it met.
    fn sweep(&self, l1: &[f64], z: &mut [f64], u: &mut [f64], enough: f64, moves: &mut usize) -> f64 {
        let mut worst = 0.0f64;
        *moves += self.size.div_ceil(VISITS_OF_A_MOVE);
        for at in 0..self.size {
            let violation = self.violation(at, l1, z, u);
            worst = worst.max(violation);
            if violation <= enough {
                continue;
            }
            let (curvature, l1) = (self.curvature(at), l1[at]);
            let next = shrink(z[at] - u[at] / curvature, l1 / curvature);
            if next != z[at] {
                let delta = next - z[at];
                add_multiple(u, delta, self.row(at));
                z[at] = next;
                *moves += 1;
            }
        }
        worst
    }

    /// Moves towards the minimum on the face of z. True where that lay beyond the face, which is smaller now.
    fn solve_on_face(&mut self, l1: &[f64], z: &mut [f64], u: &mut [f64], enough: f64) -> bool {
        let mut face = Face::of(z, |at| l1[at]);
        face.u = face.indices.iter().map(|&at| u[at]).collect();
        let Some(step) = self.newton_step(&face, enough) else { return false };
        let (to, slopes, dropped) = face.walk(&step, |to| {
            let mut slopes = u.to_vec();
            for (at, &index) in face.indices.iter().enumerate() {
                let delta = to[at] - face.z[at];
                add_multiple(&mut slopes, delta, self.row(index));
            }
            let on_face = face.indices.iter().map(|&at| slopes[at]).collect();
            (slopes, on_face)
        });
        face.indices.iter().zip(to).for_each(|(&at, to)| z[at] = to);
        u.copy_from_slice(&slopes);
        dropped
    }

    /// Whether there is a factor of a face, or of one nearly the same.
    fn is_at_hand(&self, indices: &[usize]) -> bool {
        let Some((factored, _)) = &self.factor else { return false };
        factored == indices || indices.len() >= LARGE && is_nearly(factored, indices)
    }

    /// The Newton step of the model on a face; nothing where the face is empty or has no factor.
    fn newton_step(&mut self, face: &Face, enough: f64) -> Option<Vec<f64>> {
        if face.indices.is_empty() {
            return None;
        }
        if self.factor.as_ref().is_none_or(|(factored, _)| *factored != face.indices) {
            if let Some(step) = self.preconditioned_step(face, enough) {
                return Some(step);
            }
            self.factor = None;
            self.factor = Some((face.indices.clone(), self.factor_on(&face.indices)?));
        }
        let mut step = face.descent();
        self.factor.as_ref()?.1.solve(&mut step);
        step.iter().all(|delta| delta.is_finite()).then_some(step)
    }

    /// The same by conjugate gradients, preconditioned by the factor of a face nearly the same: a few of them cost less
    /// than another factor. Nothing where a few will not do. What is left of the slopes, over the root of the curvature, is at
    /// most `enough`.
    fn preconditioned_step(&self, face: &Face, enough: f64) -> Option<Vec<f64>> {
        let (factored, factor) = self.factor.as_ref().filter(|_| face.indices.len() >= LARGE)?;
        let known: Vec<Option<usize>> = face.indices.iter().map(|index| factored.binary_search(index).ok()).collect();
        if !is_nearly(factored, &face.indices) {
            return None;
        }
        let precondition = |residual: &[f64]| {
            let mut on_factored = vec![0.0; factored.len()];
            known
                .iter()
                .zip(residual)
                .for_each(|(known, &residual)| known.iter().for_each(|&at| on_factored[at] = residual));
            factor.solve(&mut on_factored);
            let entry = |at: usize| {
                known[at].map_or_else(|| residual[at] / self.curvature(face.indices[at]), |known| on_factored[known])
            };
            (0..residual.len()).map(entry).collect()
        };
        let multiply = |direction: &[f64]| {
            let mut full = vec![0.0; self.size];
            face.indices.iter().zip(direction).for_each(|(&index, &delta)| full[index] = delta);
            face.indices.par_iter().with_min_len(64).map(|&index| dot(self.row(index), &full)).collect()
        };
        let done = |residual: &[f64]| {
            let within = |(&index, residual): (&usize, &f64)| residual.abs() <= enough * self.curvature(index).sqrt();
            face.indices.iter().zip(residual).all(within)
        };
        conjugate_gradients(face.descent(), CONJUGATE, precondition, multiply, done)
            .filter(|(_, done)| *done)
            .map(|(step, _)| step)
    }

    fn curvature(&self, at: usize) -> f64 {
        self.hessian[at * self.size + at]
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

/// Whether two faces differ in few of their coordinates.
fn is_nearly(face: &[usize], other: &[usize]) -> bool {
    let shared = other.iter().filter(|index| face.binary_search(index).is_ok()).count();
    face.len() + other.len() - 2 * shared <= other.len() / FEW_OF_A_FACE
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of columns that have something to do with one another.
    fn hessian(size: usize) -> Vec<f64> {
        let entry = |row: usize, column: usize| ((row * 37 + column * 17 + row * column) % 23) as f64 / 23.0 - 0.4;
        let mut hessian = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..size {
                hessian[row * size + column] = (0..50).map(|k| entry(row, k) * entry(column, k)).sum();
            }
            hessian[row * size + row] += 1.0 + row as f64 / 100.0;
        }
        hessian
    }

    #[test]
    fn a_preconditioned_step_is_the_step() {
        let size = LARGE + 40;
        let hessian = hessian(size);
        let model = |factored: Vec<usize>| {
            let mut model = Quadratic::new(size, hessian.clone().into());
            model.factor_again(factored);
            model
        };
        let indices: Vec<usize> = (0..size).filter(|at| at % 10 != 3).collect();
        let slopes: Vec<f64> = (0..indices.len()).map(|at| (at as f64).sin()).collect();
        let face = Face { l1: vec![0.1; slopes.len()], z: slopes.iter().map(|u| -u).collect(), u: slopes, indices };
        let truth = model(vec![]).newton_step(&face, 0.0).unwrap();
        // Some more and some less than the face.
        let near: Vec<usize> = (0..size).filter(|at| at % 10 != 3 && at % 100 != 7 || *at == 53).collect();
        let mut near_by = model(near.clone());
        let enough = 1e-6;
        let step = near_by.newton_step(&face, enough).unwrap();
        assert_eq!(near_by.factored(), near, "no new factor was needed");
        assert!(step.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-5), "the step leads elsewhere");
        // Too few steps for so many digits: then a factor is made after all.
        let exact = near_by.newton_step(&face, 1e-300).unwrap();
        assert_eq!(near_by.factored(), face.indices);
        assert_eq!(exact, truth);
    }

    #[test]
    fn a_factor_at_hand_changes_the_way_and_not_the_end() {
        let size = LARGE + 60;
        let hessian = hessian(size);
        let slopes: Vec<f64> = (0..size).map(|at| (at as f64 * 1.3).sin()).collect();
        // As on a path: from the minimum at one l1 to that at another, where other coordinates are zero.
        let mut model = Quadratic::new(size, hessian.clone().into());
        let (mut z, mut u) = (vec![0.0; size], slopes.clone());
        model.solve(&vec![0.05; size], &mut z, &mut u, 1e-9);
        let face = Face::of(&z, |_| 0.05).indices;
        model.factor_again(face.clone());
        assert!(face.len() > LARGE && model.is_at_hand(&face) && !model.is_at_hand(&face[..LARGE / 2]));
        for l1 in [0.049, 0.06, 0.2] {
            model.solve(&vec![l1; size], &mut z, &mut u, 1e-9);
            let (mut blank, mut at) = (vec![0.0; size], slopes.clone());
            Quadratic::new(size, hessian.clone().into()).solve(&vec![l1; size], &mut blank, &mut at, 1e-9);
            assert!(z.iter().zip(&blank).all(|(a, b)| (a - b).abs() < 1e-6), "another minimum at {l1}");
            assert!(z.iter().zip(&blank).all(|(a, b)| (*a == 0.0) == (*b == 0.0)), "another face at {l1}");
        }
    }

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
