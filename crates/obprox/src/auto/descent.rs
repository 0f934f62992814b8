//! The model of a Newton step on a working set too large for its Hessian: coordinate descent along the columns.
//!
//! min over z: u·(z − x) + ½ Σ hᵢ (dᵢ·(z − x))² + (λ₂/2)‖z‖² − (λ₂/2)‖x‖² + Σ λ_j|z_j|, with the damping on the diagonal.
//! Of the Hessian only the products hᵢ·dᵢ·(z − x) are kept, one a row; a coordinate costs the entries of its column.

use crate::data::Matrix;
use crate::penalty::ElasticNet;
use crate::penalty::shrink::shrink;

/// Sweeps over the coordinates that move; between them all are looked at.
const SWEEPS: usize = 10;
/// Looks at all coordinates.
const LOOKS: usize = 8;

/// What the model is made of; where there is an intercept it comes last in `terms`, `x` and `u`.
pub(super) struct Descent<'a> {
    pub columns: &'a Matrix,
    pub features: &'a [u32],
    pub terms: &'a [ElasticNet],
    pub curvatures: &'a [f64],
    pub damping: f64,
}

impl Descent<'_> {
    /// The entries of a coordinate: a column, or a one for every row.
    fn for_each(&self, place: usize, mut visit: impl FnMut(usize, f64)) {
        match self.features.get(place) {
            Some(&feature) => self.columns.for_each(feature as usize, visit),
            None => (0..self.curvatures.len()).for_each(|row| visit(row, 1.0)),
        }
    }

    /// A z near the minimum: until no coordinate violates by more than `tolerance` of what it did at first.
    pub fn solve(&self, x: &[f64], u: &[f64], tolerance: f64) -> Vec<f64> {
        let mut z = x.to_vec();
        let mut products = vec![0.0; self.curvatures.len()];
        let diagonal: Vec<f64> = (0..x.len())
            .map(|place| {
                let mut sum = 0.0;
                self.for_each(place, |row, value| sum += self.curvatures[row] * value * value);
                sum * (1.0 + self.damping) + self.terms[place].l2
            })
            .collect();
        let all: Vec<usize> = (0..x.len()).filter(|&place| diagonal[place] > 0.0).collect();
        let mut first = 0.0;
        for look in 0..LOOKS {
            let mut moving = Vec::new();
            let mut worst = 0.0f64;
            for &place in &all {
                let violation = self.step(place, x, u, &diagonal, &mut z, &mut products);
                if violation > 0.0 {
                    worst = worst.max(violation);
                    moving.push(place);
                }
            }
            if look == 0 {
                first = worst;
            }
            if worst <= tolerance * first {
                break;
            }
            for _ in 0..SWEEPS {
                let mut worst = 0.0f64;
                for &place in &moving {
                    worst = worst.max(self.step(place, x, u, &diagonal, &mut z, &mut products));
                }
                if worst <= tolerance * first {
                    break;
                }
            }
        }
        z
    }

    /// The best value of one coordinate, the others held; returns how much it violated its condition.
    fn step(&self, place: usize, x: &[f64], u: &[f64], diagonal: &[f64], z: &mut [f64], products: &mut [f64]) -> f64 {
        let (term, curvature) = (self.terms[place], diagonal[place]);
        let mut slope = u[place];
        self.for_each(place, |row, value| slope += value * products[row]);
        let moved = z[place] - x[place];
        // The products have the undamped curvature only; u has λ₂x, which moved with z.
        let undamped = (curvature - term.l2) / (1.0 + self.damping);
        slope += (curvature - undamped) * moved;
        let violation =
            if z[place] == 0.0 { shrink(slope, term.l1).abs() } else { (slope + term.l1.copysign(z[place])).abs() };
        let next = shrink(z[place] - slope / curvature, term.l1 / curvature);
        let delta = next - z[place];
        if delta != 0.0 {
            z[place] = next;
            self.for_each(place, |row, value| products[row] += self.curvatures[row] * value * delta);
        }
        violation
    }
}
