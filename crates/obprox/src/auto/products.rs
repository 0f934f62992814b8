//! The minimum of a model whose Hessian is known by its products alone: that of a large working set of many rows.
//!
//! min over z: u·(z − x) + ½ (z − x)ᵀH(z − x) + Σ λ_j|z_j|. Zeros that violate their condition enter together, along one
//! line; on the face that they make, conjugate gradients go to the minimum. Each product is a pass over the set's rows.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use super::expansion::Expansion;
use super::face::{Face, conjugate_gradients};
use crate::penalty::shrink::shrink;
use crate::penalty::{L1, Term};
use crate::rows::{Job, Shards};
use crate::tuning::products::{CONJUGATE, FACES, LEFT};
use crate::{Error, Result};

/// A Hessian that is asked for products; the first that fails is kept. After each someone may say stop.
struct Hessian<'a> {
    rows: RefCell<&'a mut dyn Shards>,
    failed: RefCell<Option<Error>>,
    stops: RefCell<&'a mut dyn FnMut() -> bool>,
    stopped: Cell<bool>,
    output: usize,
    /// What damping and λ₂ add to the diagonal.
    added: Vec<f64>,
    diagonal: Vec<f64>,
    /// It is that of the rows of a sample, one out of so many, where each coordinate is stretched until the diagonal is that of
    /// all rows: so a feature that is rarer there than elsewhere does not bend too little.
    part: usize,
    stretch: Vec<f64>,
}

impl Hessian<'_> {
    fn times(&self, v: &[f64]) -> Vec<f64> {
        let stretched: Vec<f64> = self.stretch.iter().zip(v).map(|(stretch, v)| stretch * v).collect();
        let of = if self.part > 1 { &stretched } else { v };
        let job = Job::Product { outputs: self.output..self.output + 1, v: of, part: self.part };
        let mut product = self.rows.borrow_mut().numbers(&job).unwrap_or_else(|error| {
            self.failed.borrow_mut().get_or_insert(error);
            vec![0.0; v.len()]
        });
        product.iter_mut().zip(&self.stretch).for_each(|(sum, stretch)| *sum *= stretch);
        product.iter_mut().zip(&self.added).zip(v).for_each(|((sum, added), v)| *sum += added * v);
        self.stopped.set(self.stopped.get() || (self.stops.borrow_mut())());
        product
    }
}

/// What is asked of a minimum.
pub(super) struct Asked {
    pub damping: f64,
    pub tolerance: f64,
    /// The Hessian may be that of one out of so many rows.
    pub part: usize,
}

/// A z near the minimum: until no coordinate violates by more than `tolerance` of what it did at first, or someone says stop.
pub(super) fn minimum(
    rows: &mut dyn Shards,
    outputs: &Range<usize>,
    at: &Expansion,
    Asked { damping, tolerance, part }: Asked,
    stops: &mut dyn FnMut() -> bool,
) -> Result<Vec<f64>> {
    let Expansion { terms, x, u, .. } = at;
    let output = outputs.start;
    let diagonal = |rows: &mut dyn Shards, part| rows.numbers(&Job::Diagonal { outputs: outputs.clone(), part });
    let squares = diagonal(rows, 1)?;
    let mut added: Vec<f64> = squares.iter().zip(terms).map(|(square, term)| damping * square + term.l2).collect();
    let mut stretch = Vec::new();
    if part > 1 {
        let of_sample = diagonal(rows, part)?;
        let of = |(square, of_sample): (&f64, &f64)| if *of_sample > 0.0 { (square / of_sample).sqrt() } else { 0.0 };
        stretch = squares.iter().zip(&of_sample).map(of).collect();
        // What the sample does not know has its own curvature alone.
        let unknown = |at: usize| if stretch[at] == 0.0 { squares[at] } else { 0.0 };
        added.iter_mut().enumerate().for_each(|(at, added)| *added += unknown(at));
    }
    let diagonal =
        |at: usize| added[at] + if stretch.get(at).is_some_and(|&known| known == 0.0) { 0.0 } else { squares[at] };
    let diagonal = (0..squares.len()).map(diagonal).collect();
    let (rows, failed) = (RefCell::new(rows), RefCell::new(None));
    let (stops, stopped) = (RefCell::new(stops), Cell::new(false));
    let hessian = Hessian { rows, failed, stops, stopped, output, added, diagonal, part, stretch };
    let (mut z, mut slopes) = (x.clone(), u.clone());
    let violation = |at: usize, z: &[f64], slopes: &[f64]| L1 { l1: terms[at].l1 }.violation(z[at], slopes[at]);
    let worst = |z: &[f64], slopes: &[f64]| (0..z.len()).map(|at| violation(at, z, slopes)).fold(0.0, f64::max);
    let enough = tolerance * worst(&z, &slopes);
    for _ in 0..FACES {
        let now = worst(&z, &slopes);
        if now <= enough || hessian.stopped.get() {
            break;
        }
        enter(&hessian, at, &mut z, &mut slopes);
        move_on_face(&hessian, at, &mut z, &mut slopes, (LEFT * now).max(0.5 * enough));
    }
    match hessian.failed.into_inner() {
        Some(error) => Err(error),
        None => Ok(z),
    }
}

/// Moves the zeros that violate their condition to where the model along them all is lowest.
fn enter(hessian: &Hessian, at: &Expansion, z: &mut [f64], slopes: &mut [f64]) {
    let direction = |index: usize| match (z[index], at.terms[index].l1, hessian.diagonal[index]) {
        (0.0, l1, curvature) if l1 > 0.0 && curvature > 0.0 => -shrink(slopes[index], l1) / curvature,
        _ => 0.0,
    };
    let direction: Vec<f64> = (0..z.len()).map(direction).collect();
    let slope: f64 =
        (0..z.len()).map(|index| slopes[index] * direction[index] + at.terms[index].l1 * direction[index].abs()).sum();
    if slope >= 0.0 || slope.is_nan() {
        return;
    }
    let product = hessian.times(&direction);
    let curvature: f64 = direction.iter().zip(&product).map(|(d, p)| d * p).sum();
    let size = if curvature > 0.0 { (-slope / curvature).min(1.0) } else { 1.0 };
    z.iter_mut().zip(&direction).for_each(|(z, d)| *z += size * d);
    slopes.iter_mut().zip(&product).for_each(|(slope, p)| *slope += size * p);
}

/// Moves to the minimum on the face of z, about, or to where that face ends.
fn move_on_face(hessian: &Hessian, at: &Expansion, z: &mut [f64], slopes: &mut [f64], enough: f64) {
    let mut face = Face::of(z, |index| at.terms[index].l1);
    face.u = face.indices.iter().map(|&index| slopes[index]).collect();
    let of_face = |all: &[f64]| face.indices.iter().map(|&index| all[index]).collect::<Vec<f64>>();
    let product = |on_face: &[f64]| {
        let mut all = vec![0.0; z.len()];
        face.indices.iter().zip(on_face).for_each(|(&index, &value)| all[index] = value);
        hessian.times(&all)
    };
    let precondition = |residual: &[f64]| {
        let over = |(&index, &residual): (&usize, &f64)| match hessian.diagonal[index] {
            curvature if curvature > 0.0 => residual / curvature,
            _ => 0.0,
        };
        face.indices.iter().zip(residual).map(over).collect()
    };
    let done = |residual: &[f64]| hessian.stopped.get() || residual.iter().all(|residual| residual.abs() <= enough);
    let found =
        conjugate_gradients(face.descent(), CONJUGATE, precondition, |direction| of_face(&product(direction)), done);
    let Some((step, _)) = found else { return };
    let (to, there, _) = face.walk(&step, |to| {
        let moved: Vec<f64> = to.iter().zip(&face.z).map(|(to, z)| to - z).collect();
        let there: Vec<f64> = slopes.iter().zip(product(&moved)).map(|(slope, change)| slope + change).collect();
        let on_face = of_face(&there);
        (there, on_face)
    });
    slopes.copy_from_slice(&there);
    face.indices.iter().zip(to).for_each(|(&index, to)| z[index] = to);
}
