//! The model of a Newton step on a working set whose Hessian would cost more than its columns do.
//!
//! min over z: u·(z − x) + ½ Σ hᵢ (dᵢ·(z − x))² + (λ₂/2)‖z‖² − (λ₂/2)‖x‖² + Σ λ_j|z_j|, with the damping on the diagonal.
//! Of the Hessian only the products hᵢ·dᵢ·(z − x) are kept, one a row; a coordinate costs the entries of its column.
//! Coordinate descent finds the face, conjugate gradients go to the minimum on it.

use crate::auto::face::{Face, conjugate_gradients};
use crate::data::{Gathered, Matrix};
use crate::penalty::ElasticNet;
use crate::penalty::shrink::shrink;
use crate::tuning::descent::{CONJUGATE, FACES, SCANS, SWEEPS};

/// What the model is made of; where there is an intercept it comes last in `terms`, `x` and `u`.
pub(super) struct Descent<'a> {
    pub columns: &'a Columns,
    pub terms: &'a [ElasticNet],
    pub curvatures: &'a [f64],
    pub damping: f64,
}

/// The columns of a working set, copied one after the other: they are gone through so often that they must lie together.
pub(super) struct Columns(Gathered);

impl Columns {
    /// Copies columns, each a row of a matrix.
    pub fn of<'a>(columns: impl Iterator<Item = (&'a Matrix, usize)>) -> Self {
        let mut gathered = Gathered::default();
        for (matrix, at) in columns {
            matrix.for_each(at, |row, value| {
                gathered.columns.push(row as u32);
                gathered.values.push(value);
            });
            gathered.ends.push(gathered.columns.len());
        }
        Self(gathered)
    }

    /// The rows and values of a column.
    #[inline]
    fn get(&self, index: usize) -> Option<(&[u32], &[f64])> {
        let Gathered { ends, columns, values } = &self.0;
        let end = *ends.get(index)?;
        let start = if index == 0 { 0 } else { ends[index - 1] };
        Some((&columns[start..end], &values[start..end]))
    }
}

/// A point of the model.
struct Walk<'a> {
    x: &'a [f64],
    u: &'a [f64],
    diagonal: Vec<f64>,
    /// What the damping and λ₂ add to each coordinate's own curvature; the products know nothing of it.
    added: Vec<f64>,
    z: Vec<f64>,
    /// hᵢ·dᵢ·(z − x).
    products: Vec<f64>,
}

impl Descent<'_> {
    /// The entries of a coordinate: a column, or a one for every row.
    #[inline]
    fn for_each(&self, index: usize, mut visit: impl FnMut(usize, f64)) {
        match self.columns.get(index) {
            Some((rows, values)) => rows.iter().zip(values).for_each(|(&row, &value)| visit(row as usize, value)),
            None => (0..self.curvatures.len()).for_each(|row| visit(row, 1.0)),
        }
    }

    /// A z near the minimum: until no coordinate violates by more than `tolerance` of what it did at first.
    pub fn solve(&self, x: &[f64], u: &[f64], tolerance: f64) -> Vec<f64> {
        let curvature = |index: usize| {
            let mut sum = 0.0;
            self.for_each(index, |row, value| sum += self.curvatures[row] * value * value);
            let added = sum * self.damping + self.terms[index].l2;
            (sum + added, added)
        };
        let (diagonal, added): (Vec<f64>, Vec<f64>) = (0..x.len()).map(curvature).unzip();
        let mut walk = Walk { x, u, diagonal, added, z: x.to_vec(), products: vec![0.0; self.curvatures.len()] };
        let all: Vec<usize> = (0..x.len()).filter(|&index| walk.diagonal[index] > 0.0).collect();
        let mut enough = 0.0;
        for scan in 0..SCANS {
            let mut moving = Vec::new();
            let mut worst = 0.0f64;
            for &index in &all {
                let violation = self.step(index, &mut walk);
                if violation > 0.0 {
                    worst = worst.max(violation);
                    moving.push(index);
                }
            }
            if scan == 0 {
                enough = tolerance * worst;
            }
            if worst <= enough {
                break;
            }
            for _ in 0..SWEEPS {
                let mut worst = 0.0f64;
                for &index in &moving {
                    worst = worst.max(self.step(index, &mut walk));
                }
                if worst <= enough {
                    break;
                }
            }
            for _ in 0..FACES {
                if !self.solve_on_face(&mut walk, 0.5 * enough) {
                    break;
                }
            }
        }
        walk.z
    }

    /// The slope of the model's smooth part at z.
    #[inline]
    fn slope(&self, index: usize, z: f64, products: &[f64], walk: &Walk) -> f64 {
        let mut slope = walk.u[index];
        self.for_each(index, |row, value| slope += value * products[row]);
        slope + walk.added[index] * (z - walk.x[index])
    }

    /// The best value of one coordinate, the others held; returns how much it violated its condition.
    fn step(&self, index: usize, walk: &mut Walk) -> f64 {
        let (l1, curvature, z) = (self.terms[index].l1, walk.diagonal[index], walk.z[index]);
        let slope = self.slope(index, z, &walk.products, walk);
        let violation = if z == 0.0 { shrink(slope, l1).abs() } else { (slope + l1.copysign(z)).abs() };
        let next = shrink(z - slope / curvature, l1 / curvature);
        let delta = next - z;
        if delta != 0.0 {
            walk.z[index] = next;
            let products = &mut walk.products[..];
            self.for_each(index, |row, value| products[row] += self.curvatures[row] * value * delta);
        }
        violation
    }

    /// Moves towards the minimum on the face of z. True where that lay beyond the face, which is smaller now.
    fn solve_on_face(&self, walk: &mut Walk, enough: f64) -> bool {
        let mut face = Face::of(&walk.z, |index| self.terms[index].l1);
        let slopes = |z: &[f64], products: &[f64]| {
            let slope = |(&index, &z): (&usize, &f64)| self.slope(index, z, products, walk);
            face.indices.iter().zip(z).map(slope).collect::<Vec<f64>>()
        };
        face.u = slopes(&face.z, &walk.products);
        let step = self.conjugate_step(&face, walk, enough);
        let (to, products, dropped) = face.walk(&step, |to| {
            let mut products = walk.products.clone();
            for (at, &index) in face.indices.iter().enumerate() {
                let delta = to[at] - face.z[at];
                self.for_each(index, |row, value| products[row] += self.curvatures[row] * value * delta);
            }
            let slopes = slopes(to, &products);
            (products, slopes)
        });
        walk.products = products;
        face.indices.iter().zip(to).for_each(|(&index, to)| walk.z[index] = to);
        dropped
    }

    /// The Newton step on a face, roughly: conjugate gradients over the diagonal.
    fn conjugate_step(&self, face: &Face, walk: &Walk, enough: f64) -> Vec<f64> {
        let precondition = |residual: &[f64]| {
            let over = |(&index, &residual): (&usize, &f64)| match walk.diagonal[index] {
                curvature if curvature > 0.0 => residual / curvature,
                _ => 0.0,
            };
            face.indices.iter().zip(residual).map(over).collect()
        };
        let multiply = |direction: &[f64]| {
            let mut products = vec![0.0; self.curvatures.len()];
            for (&index, &delta) in face.indices.iter().zip(direction) {
                self.for_each(index, |row, value| products[row] += self.curvatures[row] * value * delta);
            }
            let entry = |(&index, &delta): (&usize, &f64)| {
                let mut sum = walk.added[index] * delta;
                self.for_each(index, |row, value| sum += value * products[row]);
                sum
            };
            face.indices.iter().zip(direction).map(entry).collect()
        };
        let done = |residual: &[f64]| residual.iter().all(|residual| residual.abs() <= enough);
        let found = conjugate_gradients(face.descent(), CONJUGATE, precondition, multiply, done);
        found.map_or_else(|| vec![0.0; face.z.len()], |(step, _)| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::quadratic::Quadratic;

    #[test]
    fn along_columns_is_by_the_hessian() {
        let (n_rows, n_features) = (60, 90);
        let value = |row: usize, column: usize| ((row * 31 + column * 17 + row * column) % 23) as f64 / 8.0 - 1.0;
        let present = |row: usize, column: usize| (row * 7 + column * (3 + row % 5)).is_multiple_of(11);
        let rows: Vec<Vec<(u32, f64)>> = (0..n_rows)
            .map(|row| (0..n_features).filter(|&j| present(row, j)).map(|j| (j as u32, value(row, j))).collect())
            .collect();
        let columns = Matrix::from_rows(n_features, &rows).transposed(None);
        let curvatures: Vec<f64> = (0..n_rows).map(|row| 0.05 + (row % 7) as f64 / 8.0).collect();
        let features: Vec<u32> = (0..n_features as u32).collect();
        let size = n_features + 1;
        for (damping, l2) in [(1e-10, 0.0), (0.5, 0.0), (0.1, 0.3)] {
            let mut terms = vec![ElasticNet { l1: 0.4, l2 }; n_features];
            terms.push(ElasticNet { l1: 0.0, l2: 0.0 });
            let x: Vec<f64> = (0..size).map(|at| if at % 3 == 0 { (at as f64).sin() } else { 0.0 }).collect();
            let entry = |row: usize, at: usize| match at {
                at if at == n_features => 1.0,
                at => rows[row].iter().find(|(column, _)| *column as usize == at).map_or(0.0, |(_, value)| *value),
            };
            // As slopes are: those of rows, added up.
            let pull = |row: usize| (1.7 * row as f64).cos();
            let u: Vec<f64> = (0..size).map(|at| (0..n_rows).map(|row| pull(row) * entry(row, at)).sum()).collect();
            let model = Descent {
                columns: &Columns::of(features.iter().map(|&feature| (&columns, feature as usize))),
                terms: &terms,
                curvatures: &curvatures,
                damping,
            };
            let found = model.solve(&x, &u, 1e-9);

            let mut hessian = vec![0.0; size * size];
            for at in 0..size {
                for other in 0..size {
                    hessian[at * size + other] =
                        (0..n_rows).map(|row| curvatures[row] * entry(row, at) * entry(row, other)).sum();
                }
                hessian[at * size + at] += terms[at].l2 + damping * hessian[at * size + at];
            }
            let l1: Vec<f64> = terms.iter().map(|term| term.l1).collect();
            let value = |z: &[f64]| {
                let step: Vec<f64> = z.iter().zip(&x).map(|(z, x)| z - x).collect();
                let product = |at: usize| (0..size).map(|other| hessian[at * size + other] * step[other]).sum::<f64>();
                (0..size).map(|at| (u[at] + 0.5 * product(at)) * step[at] + l1[at] * z[at].abs()).sum::<f64>()
            };
            let (mut z, mut slope) = (x.clone(), u.clone());
            Quadratic::new(size, hessian.clone().into()).solve(&l1, &mut z, &mut slope, 1e-12);
            let (best, found_value) = (value(&z), value(&found));
            assert!(best < value(&x) - 0.1, "there is something to find");
            assert!((found_value - best).abs() < 1e-7 * best.abs(), "{found_value} and {best} with damping {damping}");
            assert!(found.iter().filter(|&&z| z == 0.0).count() > 10, "a model with a kink has zeros");
        }
    }
}
