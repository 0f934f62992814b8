//! The model of a Newton step, minimised along the columns of the working set: where its Hessian would cost more than they do.
//!
//! min over z: u·(z − x) + ½ Σ hᵢ (dᵢ·(z − x))² + (λ₂/2)‖z‖² − (λ₂/2)‖x‖² + p(z), with the damping on the diagonal.
//! Of the Hessian only the products hᵢ·dᵢ·(z − x) are kept, one a row; a coordinate costs the entries of its column.
//! Descent coordinate by coordinate, or block by block, finds the face; conjugate gradients go to the minimum on it.

use std::cell::Cell;

use super::columns::{Columns, Scales};
use crate::auto::blockwise::{InSet, Part, SmoothFace};
use crate::auto::face::{Face, conjugate_gradients};
use crate::penalty::ElasticNet;
use crate::penalty::shrink::shrink;
use crate::tuning::blockwise::HALVINGS;
use crate::tuning::descent::{CONJUGATE, FACES, SCANS, SWEEPS};

/// What the model is made of; where there is an intercept it comes last in `terms`, `x` and `u`.
pub(super) struct Descent<'a> {
    pub columns: Columns<'a>,
    pub terms: &'a [ElasticNet],
    pub curvatures: &'a [f64],
    pub damping: f64,
    pub blocks: Option<&'a InSet>,
    /// Visits to columns after which the point found so far has to do.
    pub most: usize,
}

/// A point of the model.
struct Walk<'a> {
    x: &'a [f64],
    u: &'a [f64],
    scales: Scales<'a>,
    diagonal: Vec<f64>,
    /// What the damping and λ₂ add to each coordinate's own curvature; the products know nothing of it.
    added: Vec<f64>,
    z: Vec<f64>,
    /// hᵢ·dᵢ·(z − x).
    products: Vec<f64>,
    visits: usize,
}

impl Descent<'_> {
    /// A z near the minimum: until no coordinate violates by more than `tolerance` of what it did at first.
    pub fn solve(&self, x: &[f64], u: &[f64], tolerance: f64) -> Vec<f64> {
        let scales = Scales::of(self.curvatures);
        let curvature = |index: usize| {
            let sum = self.columns.square(index, scales, self.curvatures.len());
            let added = sum * self.damping + self.terms[index].l2;
            (sum + added, added)
        };
        let (diagonal, added): (Vec<f64>, Vec<f64>) = (0..x.len()).map(curvature).unzip();
        let products = vec![0.0; self.curvatures.len()];
        let mut walk = Walk { x, u, scales, diagonal, added, z: x.to_vec(), products, visits: 0 };
        let parts = self.blocks.map(|blocks| self.parts(blocks, &walk));
        let all: Vec<usize> = match &parts {
            Some(parts) => (0..parts.len()).collect(),
            None => (0..x.len()).filter(|&index| walk.diagonal[index] > 0.0).collect(),
        };
        let mut enough = 0.0;
        for scan in 0..SCANS {
            let mut moving = Vec::new();
            let mut worst = 0.0f64;
            for &at in &all {
                let violation = self.step(at, parts.as_deref(), &mut walk);
                if violation > 0.0 {
                    worst = worst.max(violation);
                    moving.push(at);
                }
            }
            if scan == 0 {
                enough = tolerance * worst;
            }
            if worst <= enough || walk.visits > self.most {
                break;
            }
            for _ in 0..SWEEPS {
                let mut worst = 0.0f64;
                for &at in &moving {
                    worst = worst.max(self.step(at, parts.as_deref(), &mut walk));
                }
                if worst <= enough || walk.visits > self.most {
                    break;
                }
            }
            for _ in 0..FACES {
                if walk.visits > self.most || !self.solve_on_face(parts.as_deref(), &mut walk, 0.5 * enough) {
                    break;
                }
            }
        }
        walk.z
    }

    /// The blocks that move at all, each with its own Hessian.
    fn parts(&self, blocks: &InSet, walk: &Walk) -> Vec<Part> {
        let hessian = |indices: &[usize]| {
            let mut products = vec![0.0; self.curvatures.len()];
            let mut hessian = Vec::with_capacity(indices.len() * indices.len());
            for &at in indices {
                products.fill(0.0);
                self.columns.add(at, 1.0, walk.scales, &mut products);
                hessian.extend(indices.iter().map(|&other| match other == at {
                    true => walk.diagonal[at],
                    false => self.columns.dot(other, &products),
                }));
            }
            hessian
        };
        blocks.parts(hessian)
    }

    /// The slope of the model's smooth part at z.
    #[inline]
    fn slope(&self, index: usize, z: f64, products: &[f64], walk: &Walk) -> f64 {
        walk.u[index] + self.columns.dot(index, products) + walk.added[index] * (z - walk.x[index])
    }

    fn move_to(&self, index: usize, to: f64, walk: &mut Walk) {
        let delta = to - walk.z[index];
        if delta != 0.0 {
            walk.z[index] = to;
            self.columns.add(index, delta, walk.scales, &mut walk.products);
        }
    }

    /// The best value of one coordinate or block, the others held; returns how much it violated its condition.
    fn step(&self, at: usize, parts: Option<&[Part]>, walk: &mut Walk) -> f64 {
        if let (Some(parts), Some(blocks)) = (parts, self.blocks) {
            return self.step_on_block(&parts[at], blocks, walk);
        }
        walk.visits += 1;
        let (l1, curvature, z) = (self.terms[at].l1, walk.diagonal[at], walk.z[at]);
        let slope = self.slope(at, z, &walk.products, walk);
        let violation = if z == 0.0 { shrink(slope, l1).abs() } else { (slope + l1.copysign(z)).abs() };
        if violation > 0.0 {
            self.move_to(at, shrink(z - slope / curvature, l1 / curvature), walk);
        }
        violation
    }

    fn step_on_block(&self, part: &Part, blocks: &InSet, walk: &mut Walk) -> f64 {
        walk.visits += part.indices.len();
        let z: Vec<f64> = part.indices.iter().map(|&at| walk.z[at]).collect();
        let slope = |(&at, &z): (&usize, &f64)| self.slope(at, z, &walk.products, walk);
        let u: Vec<f64> = part.indices.iter().zip(&z).map(slope).collect();
        let violation = part.violation(blocks.on(), &z, &u);
        if violation > 0.0 {
            let to = part.descended(blocks.on(), z, u);
            part.indices.iter().zip(to).for_each(|(&at, to)| self.move_to(at, to, walk));
        }
        violation
    }

    /// Moves towards the minimum on the face of z. True where that lay beyond the face, which is smaller now, or where the
    /// penalty is curved there.
    fn solve_on_face(&self, parts: Option<&[Part]>, walk: &mut Walk, enough: f64) -> bool {
        if let (Some(parts), Some(blocks)) = (parts, self.blocks) {
            return self.step_on_blocks(parts, blocks, walk, enough);
        }
        let mut face = Face::of(&walk.z, |index| self.terms[index].l1);
        let slopes = |z: &[f64], products: &[f64]| {
            let slope = |(&index, &z): (&usize, &f64)| self.slope(index, z, products, walk);
            face.indices.iter().zip(z).map(slope).collect::<Vec<f64>>()
        };
        face.u = slopes(&face.z, &walk.products);
        let own = face.indices.iter().map(|&index| walk.diagonal[index]).collect();
        let (step, count) = self.conjugate_step(&face.indices, (face.descent(), own), walk, enough, |_, _| {});
        let (to, products, dropped) = face.walk(&step, |to| {
            let mut products = walk.products.clone();
            for (at, &index) in face.indices.iter().enumerate() {
                self.columns.add(index, to[at] - face.z[at], walk.scales, &mut products);
            }
            let slopes = slopes(to, &products);
            (products, slopes)
        });
        walk.products = products;
        walk.visits += (count + 2) * face.indices.len();
        face.indices.iter().zip(to).for_each(|(&index, to)| walk.z[index] = to);
        dropped
    }

    /// A step towards the minimum on the face of blocks, along which the penalty may be curved; false where there is none.
    fn step_on_blocks(&self, parts: &[Part], blocks: &InSet, walk: &mut Walk, enough: f64) -> bool {
        let face = SmoothFace::of(parts, blocks.on(), &walk.z, |at| self.slope(at, walk.z[at], &walk.products, walk));
        let mut own = face.diagonal();
        own.iter_mut().zip(&face.indices).for_each(|(own, &at)| *own += walk.diagonal[at]);
        let from = (face.descent.clone(), own);
        let times = |v: &[f64], to: &mut [f64]| face.add_times(v, to);
        let (step, count) = self.conjugate_step(&face.indices, from, walk, enough, times);
        walk.visits += count * face.indices.len();
        let slope = |&at: &usize| self.slope(at, walk.z[at], &walk.products, walk);
        let slopes: Vec<f64> = face.indices.iter().map(slope).collect();
        let mut share = 1.0;
        for _ in 0..HALVINGS {
            let (to, change) = face.trial(parts, blocks.on(), &walk.z, &step, share);
            let mut products = walk.products.clone();
            for &at in &face.indices {
                self.columns.add(at, to[at] - walk.z[at], walk.scales, &mut products);
            }
            // Along the way the slopes change steadily.
            let fall = |(&at, slope): (&usize, &f64)| {
                0.5 * (slope + self.slope(at, to[at], &products, walk)) * (to[at] - walk.z[at])
            };
            let sums = change + face.indices.iter().zip(&slopes).map(fall).sum::<f64>();
            walk.visits += 3 * face.indices.len();
            if sums < 0.0 {
                (walk.z, walk.products) = (to, products);
                return true;
            }
            share *= 0.5;
        }
        false
    }

    /// The Newton step on a face from where it descends and over its own curvatures, roughly: conjugate gradients over the
    /// diagonal; and how many products they took. `add_times` adds what the penalty's Hessian has to a product.
    fn conjugate_step(
        &self,
        indices: &[usize],
        (descent, own): (Vec<f64>, Vec<f64>),
        walk: &Walk,
        enough: f64,
        add_times: impl Fn(&[f64], &mut [f64]),
    ) -> (Vec<f64>, usize) {
        let precondition = |residual: &[f64]| {
            let over = |(&own, &residual): (&f64, &f64)| if own > 0.0 { residual / own } else { 0.0 };
            own.iter().zip(residual).map(over).collect()
        };
        let count = Cell::new(0);
        let multiply = |direction: &[f64]| {
            count.set(count.get() + 1);
            let mut products = vec![0.0; self.curvatures.len()];
            for (&index, &delta) in indices.iter().zip(direction) {
                self.columns.add(index, delta, walk.scales, &mut products);
            }
            let entry =
                |(&index, &delta): (&usize, &f64)| walk.added[index] * delta + self.columns.dot(index, &products);
            let mut product: Vec<f64> = indices.iter().zip(direction).map(entry).collect();
            add_times(direction, &mut product);
            product
        };
        let done = |residual: &[f64]| residual.iter().all(|residual| residual.abs() <= enough);
        let found = conjugate_gradients(descent, CONJUGATE, precondition, multiply, done);
        (found.map_or_else(|| vec![0.0; indices.len()], |(step, _)| step), count.get())
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::Copied;
    use super::super::set::{Located, Taken};
    use super::*;
    use crate::auto::quadratic::Quadratic;
    use crate::data::Matrix;
    use crate::penalty::{Blockwise, Groups};

    const ROWS: usize = 60;
    const FEATURES: usize = 90;
    const SIZE: usize = FEATURES + 1;

    fn entry(row: usize, column: usize) -> f64 {
        let present = column == FEATURES || (row * 7 + column * (3 + row % 5)).is_multiple_of(11);
        let value = ((row * 31 + column * 17 + row * column) % 23) as f64 / 8.0 - 1.0;
        if present { if column == FEATURES { 1.0 } else { value } } else { 0.0 }
    }

    /// A model of sparse rows, or of the same ones stored densely, and where it begins.
    struct Case {
        taken: Taken,
        terms: Vec<ElasticNet>,
        curvatures: Vec<f64>,
        damping: f64,
        x: Vec<f64>,
        u: Vec<f64>,
    }

    impl Case {
        fn new(is_dense: bool, are_alike: bool, damping: f64, l1: f64, l2: f64) -> Self {
            let matrix = match is_dense {
                true => Matrix::from_dense(
                    ROWS,
                    FEATURES,
                    &(0..ROWS * FEATURES).map(|at| entry(at / FEATURES, at % FEATURES)).collect::<Vec<_>>(),
                ),
                false => {
                    let value = |row| move |column: usize| (column as u32, entry(row, column));
                    let present = |(_, value): &(u32, f64)| *value != 0.0;
                    let row = |row: usize| (0..FEATURES).map(value(row)).filter(present).collect();
                    Matrix::from_rows(FEATURES, &(0..ROWS).map(row).collect::<Vec<Vec<_>>>())
                }
            };
            let features: Vec<u32> = (0..FEATURES as u32).collect();
            let mut terms = vec![ElasticNet { l1, l2 }; FEATURES];
            terms.push(ElasticNet { l1: 0.0, l2: 0.0 });
            // As slopes are: those of rows, added up.
            let pull = |row: usize| (1.7 * row as f64).cos();
            Self {
                taken: Taken::of(&matrix, &features, &Taken::default()),
                terms,
                curvatures: (0..ROWS).map(|row| if are_alike { 0.3 } else { 0.05 + (row % 7) as f64 / 8.0 }).collect(),
                damping,
                x: (0..SIZE).map(|at| if at % 3 == 0 { (at as f64).sin() } else { 0.0 }).collect(),
                u: (0..SIZE).map(|at| (0..ROWS).map(|row| pull(row) * entry(row, at)).sum()).collect(),
            }
        }

        fn found(&self, blocks: Option<&InSet>, most: usize) -> Vec<f64> {
            let placed = Located::Taken(&self.taken);
            let copied = Copied::of(placed, FEATURES, ROWS);
            let columns = Columns::in_place(placed, FEATURES).unwrap_or_else(|| copied.view(ROWS));
            let &Self { ref terms, ref curvatures, damping, .. } = self;
            Descent { columns, terms, curvatures, damping, blocks, most }.solve(&self.x, &self.u, 1e-9)
        }

        fn hessian(&self) -> Vec<f64> {
            let mut hessian = vec![0.0; SIZE * SIZE];
            for at in 0..SIZE {
                for other in 0..SIZE {
                    let of = |row: usize| self.curvatures[row] * entry(row, at) * entry(row, other);
                    hessian[at * SIZE + other] = (0..ROWS).map(of).sum();
                }
                hessian[at * SIZE + at] += self.terms[at].l2 + self.damping * hessian[at * SIZE + at];
            }
            hessian
        }

        /// The model, without its penalty.
        fn smooth(&self, hessian: &[f64], z: &[f64]) -> f64 {
            let step: Vec<f64> = z.iter().zip(&self.x).map(|(z, x)| z - x).collect();
            let product = |at: usize| (0..SIZE).map(|other| hessian[at * SIZE + other] * step[other]).sum::<f64>();
            (0..SIZE).map(|at| (self.u[at] + 0.5 * product(at)) * step[at]).sum()
        }
    }

    #[test]
    fn along_columns_is_by_the_hessian() {
        for (is_dense, are_alike) in [(false, false), (false, true), (true, false), (true, true)] {
            for (damping, l2) in [(1e-10, 0.0), (0.5, 0.0), (0.1, 0.3)] {
                let case = Case::new(is_dense, are_alike, damping, 0.4, l2);
                let found = case.found(None, usize::MAX);
                let hessian = case.hessian();
                let l1: Vec<f64> = case.terms.iter().map(|term| term.l1).collect();
                let value =
                    |z: &[f64]| case.smooth(&hessian, z) + z.iter().zip(&l1).map(|(z, l1)| l1 * z.abs()).sum::<f64>();
                let (mut z, mut slope) = (case.x.clone(), case.u.clone());
                Quadratic::new(SIZE, hessian.clone().into()).solve(&l1, &mut z, &mut slope, 1e-12);
                let (best, found_value) = (value(&z), value(&found));
                assert!(best < value(&case.x) - 0.1, "there is something to find");
                assert!(
                    (found_value - best).abs() < 1e-7 * best.abs(),
                    "{found_value} and {best}, damped by {damping}"
                );
                assert!(found.iter().filter(|&&z| z == 0.0).count() > 10, "a model with a kink has zeros");
                let short = value(&case.found(None, 2 * SIZE));
                assert!(short > found_value + 1e-9 && short < value(&case.x), "a walk of some visits is a shorter one");
            }
        }
    }

    #[test]
    fn block_by_block_along_columns_is_by_the_hessian() {
        let groups = Groups::new((0..FEATURES as u32).map(|feature| feature / 4).collect()).unwrap();
        for groups in [groups.clone(), groups.with_l1_share(0.4).unwrap()] {
            let penalty = Blockwise::new(std::sync::Arc::new(groups), FEATURES, 1).unwrap();
            let coordinates: Vec<Option<usize>> = (0..FEATURES).map(Some).chain([None]).collect();
            let blocks = InSet::new(&penalty, 0.4, &coordinates);
            for is_dense in [false, true] {
                let case = Case::new(is_dense, false, 1e-3, 0.0, 0.0);
                let found = case.found(Some(&blocks), usize::MAX);
                let hessian = case.hessian();
                let product = |delta: &[f64], at: usize| -> f64 {
                    (0..SIZE).map(|other| hessian[at * SIZE + other] * delta[other]).sum()
                };
                let step: Vec<f64> = found.iter().zip(&case.x).map(|(z, x)| z - x).collect();
                let slopes: Vec<f64> = (0..SIZE).map(|at| case.u[at] + product(&step, at)).collect();
                let (before, after) = (blocks.violation(&case.x, &case.u), blocks.violation(&found, &slopes));
                assert!(after < 1e-6 * before, "{before:e} → {after:e}");
                assert!(found.chunks(4).filter(|block| block.iter().all(|&z| z == 0.0)).count() > 2, "groups of zeros");
            }
        }
    }
}
