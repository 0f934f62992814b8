//! Penalties on blocks of coordinates: p(x) = Σ_B p_B(x_B), each p_B convex and 0 at 0.
//!
//! Coordinates are (feature, output). A block may be one coordinate, the weights of a feature in all outputs, or those of a
//! group of features. What a solver and a certificate ask of a penalty is here; a penalty of one's own implements
//! [`Penalty`] and goes into [`crate::Terms::penalty`].

use std::fmt;
use std::sync::Arc;

use crate::{Error, Result};

/// A convex penalty on blocks, as large as λ.
///
/// All that is asked for is about one block: x, gradient and dual are its coordinates in the order of [`Blocks`].
pub trait Penalty: fmt::Debug + Send + Sync {
    /// What it is called in logs, models and messages.
    fn name(&self) -> &str;

    /// Which coordinates of a problem make up a block; an error where the problem is not one for it.
    fn blocks(&self, features: usize, outputs: usize) -> Result<Blocks>;

    /// p(x); infinite outside its domain.
    fn value(&self, block: Block, x: &[f64]) -> f64;

    /// p(to) − p(x), where both are in the domain. Near a minimum little is left of the difference: one that is computed
    /// without subtracting two values lets steps win more digits.
    fn change(&self, block: Block, x: &[f64], to: &[f64]) -> f64 {
        self.value(block, to) - self.value(block, x)
    }

    /// The proximal step: argmin over u of p(u) + ‖u − z‖²/(2α), in place. α = 0 projects on the domain.
    fn prox(&self, block: Block, step: f64, z: &mut [f64]);

    /// The distance of 0 from g + ∂p(x): zero exactly where the block is optimal.
    fn violation(&self, block: Block, x: &[f64], gradient: &[f64]) -> f64;

    /// p*(u) = sup over x of u·x − p(x); infinite where u lies outside the domain.
    fn conjugate(&self, block: Block, dual: &[f64]) -> f64;

    /// Where p is smooth along some of the block's coordinates at x, what it is like there: those are marked as free, and
    /// its gradient and, where it is asked for, its Hessian are written, zero elsewhere. Second-order steps want it; without, a
    /// block is moved by proximal steps alone.
    fn smooth(&self, _block: Block, _x: &[f64], _at: Smooth) -> bool {
        false
    }

    /// Projects a trial point on the face of x: where it left that, it goes to its edge. A block whose trial point lies
    /// beyond the half space of x, as seen from zero, is zero.
    fn on_face(&self, _block: Block, x: &[f64], trial: &mut [f64]) {
        if dot(x, trial) <= 0.0 {
            trial.fill(0.0);
        }
    }

    /// The least λ at which a block of zeros withstands a gradient; infinite where none does. (That of `block` does not
    /// matter.)
    fn least_lambda(&self, block: Block, gradient: &[f64]) -> f64 {
        let zero = vec![0.0; gradient.len()];
        least_lambda(gradient, |lambda| self.violation(Block { lambda, ..block }, &zero, gradient) <= 0.0)
    }

    /// The largest s ≤ 1 for which s·u lies in the domain of p*.
    fn room(&self, block: Block, dual: &[f64]) -> f64 {
        let inside = |share: f64| {
            let scaled: Vec<f64> = dual.iter().map(|u| share * u).collect();
            self.conjugate(block, &scaled) < f64::INFINITY
        };
        if inside(1.0) {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        // Relative: the share may be tiny.
        while high - low > 1e-15 * high && high > 1e-300 {
            let middle = if low == 0.0 { 0.125 * high } else { 0.5 * (low + high) };
            *if inside(middle) { &mut low } else { &mut high } = middle;
        }
        low
    }

    /// The same penalty on weights in other units, s_j·x_j: what has become of a bound on x_j. Nothing changes for one that
    /// knows no units.
    fn in_units(&self, _scales: &[f64]) -> Option<Arc<dyn Penalty>> {
        None
    }
}

/// The least λ at which something withstands a gradient, by bisection.
pub(super) fn least_lambda(gradient: &[f64], withstands: impl Fn(f64) -> bool) -> f64 {
    let size = gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()));
    if size == 0.0 || withstands(0.0) {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, size);
    while !withstands(high) {
        (low, high) = (high, 8.0 * high);
        if high > 1e100 * size {
            return f64::INFINITY;
        }
    }
    while high - low > 1e-15 * high {
        let middle = 0.5 * (low + high);
        *if withstands(middle) { &mut high } else { &mut low } = middle;
    }
    high
}

/// A block, as a penalty is asked about it.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Which one it is.
    pub number: usize,
    /// Its coordinates: feature j, output k at j·K + k.
    pub coordinates: &'a [u32],
    /// K.
    pub outputs: usize,
    /// λ.
    pub lambda: f64,
}

impl Block<'_> {
    /// The feature of one of its coordinates.
    pub fn feature(&self, at: usize) -> usize {
        self.coordinates[at] as usize / self.outputs
    }
}

/// Where [`Penalty::smooth`] writes.
pub struct Smooth<'a> {
    /// Whether the penalty is smooth along each coordinate.
    pub free: &'a mut [bool],
    /// ∂p, where it is.
    pub gradient: &'a mut [f64],
    /// ∂²p, row after row; nothing where no one wants it.
    pub hessian: Option<&'a mut [f64]>,
}

/// The coordinates of a problem, in blocks.
#[derive(Clone, Debug)]
pub struct Blocks {
    coordinates: Vec<u32>,
    /// Where each block begins, and where the last ends.
    starts: Vec<u32>,
    /// The block of each coordinate.
    of: Vec<u32>,
    outputs: usize,
}

impl Blocks {
    /// Every coordinate by itself.
    pub fn single(features: usize, outputs: usize) -> Self {
        Self::new(features, outputs, features * outputs, |feature, output| feature * outputs + output)
    }

    /// The weights of a feature in all outputs.
    pub fn rows(features: usize, outputs: usize) -> Self {
        Self::new(features, outputs, features, |feature, _| feature)
    }

    /// The weights of groups of features in all outputs; the group of each feature is given, numbered from 0.
    pub fn groups(of: &[u32], outputs: usize) -> Self {
        let count = of.iter().max().map_or(0, |&last| last as usize + 1);
        Self::new(of.len(), outputs, count, |feature, _| of[feature] as usize)
    }

    fn new(features: usize, outputs: usize, count: usize, block: impl Fn(usize, usize) -> usize) -> Self {
        let size = features * outputs;
        let of: Vec<u32> = (0..size).map(|at| block(at / outputs, at % outputs) as u32).collect();
        let mut starts = vec![0u32; count + 1];
        of.iter().for_each(|&block| starts[block as usize + 1] += 1);
        for block in 0..count {
            starts[block + 1] += starts[block];
        }
        let (mut next, mut coordinates) = (starts.clone(), vec![0u32; size]);
        for (at, &block) in of.iter().enumerate() {
            coordinates[next[block as usize] as usize] = at as u32;
            next[block as usize] += 1;
        }
        Self { coordinates, starts, of, outputs }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The coordinates of a block, which rise.
    pub fn coordinates(&self, block: usize) -> &[u32] {
        &self.coordinates[self.starts[block] as usize..self.starts[block + 1] as usize]
    }

    /// The block of a coordinate.
    pub fn of(&self, coordinate: usize) -> usize {
        self.of[coordinate] as usize
    }

    fn n_coordinates(&self) -> usize {
        self.coordinates.len()
    }
}

/// A penalty and its blocks in a problem.
#[derive(Clone, Debug)]
pub struct Blockwise {
    penalty: Arc<dyn Penalty>,
    blocks: Arc<Blocks>,
}

impl Blockwise {
    /// The penalty of a problem of this shape.
    pub fn new(penalty: Arc<dyn Penalty>, features: usize, outputs: usize) -> Result<Self> {
        let blocks = penalty.blocks(features, outputs)?;
        if blocks.n_coordinates() != features * outputs || blocks.outputs != outputs {
            let message = format!("{}: its blocks are not those of {features} features", penalty.name());
            return Err(Error::parameter("penalty", message));
        }
        Ok(Self { penalty, blocks: Arc::new(blocks) })
    }

    /// The penalty.
    pub fn penalty(&self) -> &Arc<dyn Penalty> {
        &self.penalty
    }

    /// It and (λ₂/2)‖x‖².
    pub(crate) fn with(&self, lambda: f64, l2: f64) -> OnBlocks<'_> {
        OnBlocks { penalty: &*self.penalty, blocks: &self.blocks, lambda, l2 }
    }
}

/// p(x) + (λ₂/2)‖x‖² block by block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnBlocks<'a> {
    penalty: &'a dyn Penalty,
    pub blocks: &'a Blocks,
    pub lambda: f64,
    pub l2: f64,
}

/// What a penalty says of a coordinate that has no kink of its own to hold it.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Every dual point near 0 is in the domain.
    Penalised,
    /// None but 0 is.
    Free,
    /// Some are, in one direction.
    HalfFree,
}

/// So small that only a penalty of nothing does not withstand it.
const NOTHING: f64 = 1e-200;

impl<'a> OnBlocks<'a> {
    /// A block by its number.
    pub fn block(&self, number: usize) -> Block<'a> {
        let Self { blocks, lambda, .. } = *self;
        Block { number, coordinates: blocks.coordinates(number), outputs: blocks.outputs, lambda }
    }

    /// What a block has of a vector of all coordinates.
    pub fn gather(&self, number: usize, all: &[f64]) -> Vec<f64> {
        self.blocks.coordinates(number).iter().map(|&at| all[at as usize]).collect()
    }

    /// p(x).
    pub fn value(&self, number: usize, x: &[f64]) -> f64 {
        let square = if self.l2 == 0.0 { 0.0 } else { 0.5 * self.l2 * dot(x, x) };
        self.penalty.value(self.block(number), x) + square
    }

    /// p(to) − p(x), without λ₂.
    pub fn change(&self, number: usize, x: &[f64], to: &[f64]) -> f64 {
        self.penalty.change(self.block(number), x, to)
    }

    /// The proximal step of size α.
    pub fn prox(&self, number: usize, step: f64, z: &mut [f64]) {
        let decay = 1.0 / (1.0 + step * self.l2);
        if self.l2 != 0.0 {
            z.iter_mut().for_each(|z| *z *= decay);
        }
        self.penalty.prox(self.block(number), step * decay, z);
    }

    /// The distance of 0 from g + ∂p(x).
    pub fn violation(&self, number: usize, x: &[f64], gradient: &[f64]) -> f64 {
        if self.l2 == 0.0 {
            return self.penalty.violation(self.block(number), x, gradient);
        }
        let gradient: Vec<f64> = gradient.iter().zip(x).map(|(g, x)| g + self.l2 * x).collect();
        self.penalty.violation(self.block(number), x, &gradient)
    }

    /// p*(u).
    pub fn conjugate(&self, number: usize, dual: &[f64]) -> f64 {
        if self.l2 == 0.0 {
            return self.penalty.conjugate(self.block(number), dual);
        }
        // The supremum lies at the proximal point of u/λ₂.
        let mut x: Vec<f64> = dual.iter().map(|u| u / self.l2).collect();
        self.penalty.prox(self.block(number), 1.0 / self.l2, &mut x);
        dot(dual, &x) - self.value(number, &x)
    }

    /// The largest s ≤ 1 for which s·u lies in the domain of p*.
    pub fn room(&self, number: usize, dual: &[f64]) -> f64 {
        if self.l2 == 0.0 { self.penalty.room(self.block(number), dual) } else { 1.0 }
    }

    /// The least λ at which a block of zeros withstands a gradient.
    pub fn least_lambda(&self, number: usize, gradient: &[f64]) -> f64 {
        self.penalty.least_lambda(self.block(number), gradient)
    }

    /// Where it is smooth, without its λ₂.
    pub fn smooth(&self, number: usize, x: &[f64], at: Smooth) -> bool {
        self.penalty.smooth(self.block(number), x, at)
    }

    /// Projects a trial point on the face of x.
    pub fn on_face(&self, number: usize, x: &[f64], trial: &mut [f64]) {
        self.penalty.on_face(self.block(number), x, trial);
    }

    /// Whether a block is held by a penalty.
    pub fn kind(&self, number: usize) -> Kind {
        if self.l2 > 0.0 {
            return Kind::Penalised;
        }
        let size = self.blocks.coordinates(number).len();
        let has = |sign: f64| self.conjugate(number, &vec![sign * NOTHING; size]) < f64::INFINITY;
        match (has(1.0), has(-1.0)) {
            (true, true) => Kind::Penalised,
            (false, false) => Kind::Free,
            _ => Kind::HalfFree,
        }
    }

    /// Moves a point into the domain.
    pub fn project(&self, all: &mut [f64]) {
        for number in 0..self.blocks.len() {
            let mut x = self.gather(number, all);
            self.penalty.prox(self.block(number), 0.0, &mut x);
            self.blocks.coordinates(number).iter().zip(x).for_each(|(&at, x)| all[at as usize] = x);
        }
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
