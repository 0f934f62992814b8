//! One engine runs every rule over the nonzeros of a batch.
//!
//! The cost of a step follows the nonzeros of its batch, never n: a coordinate that the batch does not mention is not
//! looked at, and [`Rule::value`] tells later what it has become meanwhile. A step
//!
//! 1. is handed a copy of the batch's rows (`batches.rs`), their features numbered 0, 1, … as they were met (a mark of 4
//!    bytes a feature remembers the number);
//! 2. fetches each feature's weight once, into an array so small that it stays in the cache;
//! 3. runs margins, losses and gradient on that array;
//! 4. gives each coordinate its gradient.
//!
//! So the large arrays are visited once a nonzero (the mark) and twice a distinct feature (the coordinate, all of whose
//! parts share a cache line). Where a batch mentions most features anyway, numbering them gains nothing: every
//! coordinate then takes part in every step, those without gradient with gradient zero, which is the same step.

pub(crate) mod blocks;

use std::io::{self, Read, Write};

use bytemuck::Zeroable;

use crate::Result;
use crate::batches::Batch;
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::data::Gathered;
use crate::huge::Huge;
use crate::method::{Clock, Rule, Touches};
use crate::penalty::{L1, Separable, Term};
use crate::prefetch::{AHEAD, prefetch};
use crate::problem::{Point, Problem};
use crate::rows::full::Anchor;
use crate::switch::Phase;

/// An engine whose rule and penalty are hidden: one virtual call a step.
pub(crate) trait Stepper {
    /// Whether gradients are measured against an anchor.
    fn is_anchored(&self) -> bool;
    /// How far a step of size α takes the penalty's clock.
    fn tick(&self, step_size: f64) -> f64;
    /// The kind of the steps to come.
    fn enter(&mut self, phase: Phase);
    /// Prepares an epoch: the anchor's full gradient, where the rule has one.
    fn begin_epoch(&mut self, now: &Clock) -> Result<()>;
    /// Takes one step on a batch, which has rows of these numbers; false where a gradient was not finite.
    fn step(&mut self, rows: &[u32], batch: &Batch, now: &Clock) -> bool;
    /// Ends an epoch; `now` is the moment after its last step.
    fn end_epoch(&mut self, now: &Clock);
    /// From here on zeros stay zeros: drops their columns where that saves enough work, and where a copy of rows that take
    /// so many bytes does not take too many. Whether it did.
    fn compact(&mut self, bytes: usize, now: &Clock) -> bool;
    /// The features that were not dropped, where some were: those that rows are to have.
    fn kept(&self) -> Option<&[u32]>;
    /// All weights as of now.
    fn point(&self, now: &Clock) -> Point;
    /// Starts from a point.
    fn place(&mut self, point: &Point, now: &Clock);
    /// Writes the whole state, lazy coordinates as they are.
    fn save(&self, out: &mut dyn Write) -> io::Result<()>;
    /// Reads it back, as of now.
    fn load(&mut self, input: &mut dyn Read, now: &Clock) -> io::Result<()>;
}

/// The engine of a rule for a problem.
pub(crate) fn engine<'a, R: Rule + 'a>(problem: &'a Problem, rule: R) -> Box<dyn Stepper + 'a> {
    Box::new(Engine::new(problem, problem.regularization().clone(), rule))
}

/// Compaction pays where at most this share of the entries is left.
const WORTH_COMPACTING: f64 = 0.7;

/// The compacted copy stays small beside the data, which is still held: at most this share of it, or these bytes.
const COPY_SHARE: f64 = 0.3;
const COPY_BYTES: f64 = 256e6;

/// The intercept's penalty: none.
const FREE: L1 = L1 { l1: 0.0 };

struct Engine<'a, R: Rule, P: Separable> {
    problem: &'a Problem,
    penalty: P,
    rule: R,
    /// Feature j, output k at j·K + k.
    coords: Huge<R::Coord>,
    /// Features that rows have.
    n_features: usize,
    intercept: Vec<R::Coord>,
    /// The features left after compaction, by their own numbers.
    kept: Option<Vec<u32>>,
    /// ∇ℓ of each row at the anchor.
    anchor: Vec<f64>,
    /// Entries walked in this epoch, and those of them with a weight that was not zero.
    walked: u64,
    live: u64,
    work: Work,
}

/// The work space of a step.
#[derive(Default)]
struct Work {
    /// Weights and gradient by number, K each.
    weights: Vec<f64>,
    gradient: Vec<f64>,
    /// By row of the batch, K each.
    margins: Vec<f64>,
    pulls: Vec<f64>,
    targets: Vec<f64>,
}

impl Work {
    /// Adds each row's Σ value·weight to its margins; returns how many entries met a weight that was not zero.
    fn add_margins(&mut self, rows: &Gathered, width: usize) -> u64 {
        let (Self { weights, margins, .. }, Gathered { ends, columns, values }) = (self, rows);
        let (mut start, mut live) = (0, 0);
        for (&end, margins) in ends.iter().zip(margins.chunks_exact_mut(width)) {
            let columns = &columns[start..end];
            if width > 1 {
                for (at, &column) in columns.iter().enumerate() {
                    let value = values.get(start + at).copied().unwrap_or(1.0);
                    let weights = &weights[column as usize * width..(column as usize + 1) * width];
                    for (margin, x) in margins.iter_mut().zip(weights) {
                        *margin += value * x;
                        live += u64::from(*x != 0.0);
                    }
                }
            } else {
                // In a register: through memory each addition would wait for the store before it.
                let mut margin = margins[0];
                let mut add = |value: f64, column: u32| {
                    let x = weights[column as usize];
                    margin += value * x;
                    live += u64::from(x != 0.0);
                };
                if values.is_empty() {
                    columns.iter().for_each(|&column| add(1.0, column));
                } else {
                    values[start..end].iter().zip(columns).for_each(|(&value, &column)| add(value, column));
                }
                margins[0] = margin;
            }
            start = end;
        }
        live
    }

    /// Adds each row's value·pull to the gradient of its features.
    fn add_gradient(&mut self, rows: &Gathered, width: usize) {
        let (Self { gradient, pulls, .. }, Gathered { ends, columns, values }) = (self, rows);
        let mut start = 0;
        for (&end, pulls) in ends.iter().zip(pulls.chunks_exact(width)) {
            let columns = &columns[start..end];
            if width > 1 {
                for (at, &column) in columns.iter().enumerate() {
                    let value = values.get(start + at).copied().unwrap_or(1.0);
                    let gradient = &mut gradient[column as usize * width..(column as usize + 1) * width];
                    gradient.iter_mut().zip(pulls).for_each(|(sum, pull)| *sum += value * pull);
                }
            } else if values.is_empty() {
                columns.iter().for_each(|&column| gradient[column as usize] += pulls[0]);
            } else {
                let entries = values[start..end].iter().zip(columns);
                entries.for_each(|(&value, &column)| gradient[column as usize] += value * pulls[0]);
            }
            start = end;
        }
    }
}

/// Calls `visit(place in the work space, place among the coordinates, feature)` for every coordinate of the features.
#[inline]
fn for_each_coord(features: &[u32], width: usize, mut visit: impl FnMut(usize, usize, usize)) {
    if width == 1 {
        // A loop this tight keeps many cache misses under way at once.
        for (number, &feature) in features.iter().enumerate() {
            visit(number, feature as usize, feature as usize);
        }
    } else {
        for (number, &feature) in features.iter().enumerate() {
            for output in 0..width {
                visit(number * width + output, feature as usize * width + output, feature as usize);
            }
        }
    }
}

impl<'a, R: Rule, P: Separable> Engine<'a, R, P> {
    fn new(problem: &'a Problem, penalty: P, rule: R) -> Self {
        let outputs = problem.outputs();
        Self {
            problem,
            penalty,
            rule,
            coords: Huge::zeros(problem.n_features() * outputs),
            n_features: problem.n_features(),
            intercept: vec![Zeroable::zeroed(); if problem.has_intercept() { outputs } else { 0 }],
            kept: None,
            anchor: Vec::new(),
            walked: 0,
            live: 0,
            work: Work::default(),
        }
    }

    /// Fetches the weights of the batch's features, and sets each margin to the intercept.
    #[inline(never)]
    fn fetch(&mut self, features: &[u32], rows: usize, now: &Clock) {
        let Self { problem, penalty, rule, coords, intercept, work, .. } = self;
        let (width, coords) = (problem.outputs(), &coords[..]);
        let Work { weights, margins, .. } = work;
        weights.resize(features.len() * width, 0.0);
        for_each_coord(features, width, |at, coord, feature| {
            if let Some(&ahead) = features.get(at + AHEAD) {
                prefetch(coords, ahead as usize * width);
            }
            weights[at] = rule.value(&coords[coord], penalty.term(feature), now);
        });
        margins.clear();
        margins.resize(rows * width, 0.0);
        for (output, coord) in intercept.iter().enumerate() {
            let value = rule.value(coord, FREE, now);
            margins.iter_mut().skip(output).step_by(width).for_each(|margin| *margin = value);
        }
    }

    /// The pull of each row on its margins: ∇ℓ less the anchor's, weighted, over the size of the batch. False where one
    /// is not finite.
    fn pull(&mut self, batch: &[u32], features: usize) -> bool {
        let Self { problem, anchor, work, .. } = self;
        let width = problem.outputs();
        let Work { gradient, margins, pulls, targets, .. } = work;
        targets.clear();
        targets.extend(batch.iter().map(|&row| problem.targets()[row as usize]));
        pulls.resize(margins.len(), 0.0);
        problem.loss().gradients(margins, targets, pulls);
        let mean = 1.0 / batch.len() as f64;
        let mut check = 0.0;
        for (&row, pulls) in batch.iter().zip(pulls.chunks_exact_mut(width)) {
            let row = row as usize;
            let weight = problem.row_weight(row) * mean;
            for (output, pull) in pulls.iter_mut().enumerate() {
                if R::ANCHORED {
                    *pull -= anchor[row * width + output];
                }
                *pull *= weight;
                check += *pull;
            }
        }
        gradient.clear();
        gradient.resize(features * width, 0.0);
        check.is_finite()
    }

    /// Gives each coordinate of the batch its gradient.
    fn touch(&mut self, features: &[u32], now: &Clock) {
        let Self { problem, penalty, rule, coords, intercept, work, .. } = self;
        let width = problem.outputs();
        rule.touch_all(Touched { penalty: &*penalty, coords: &mut coords[..], features, work: &*work, width, now });
        for (output, coord) in intercept.iter_mut().enumerate() {
            let gradient = work.pulls.iter().skip(output).step_by(width).sum();
            rule.touch(coord, rule.value(coord, FREE, now), gradient, FREE, now);
        }
    }
}

/// The coordinates of a batch, about to be given their gradients.
struct Touched<'a, C, P> {
    penalty: &'a P,
    coords: &'a mut [C],
    features: &'a [u32],
    work: &'a Work,
    width: usize,
    now: &'a Clock,
}

impl<C, P: Separable> Touches<C> for Touched<'_, C, P> {
    #[inline(never)]
    fn run<R: Rule<Coord = C>>(self, rule: R) {
        let Self { penalty, coords, features, work: Work { weights, gradient, .. }, width, now } = self;
        for_each_coord(features, width, |at, coord, feature| {
            if let Some(&ahead) = features.get(at + AHEAD) {
                prefetch(coords, ahead as usize * width);
            }
            rule.touch(&mut coords[coord], weights[at], gradient[at], penalty.term(feature), now);
        });
    }
}

impl<R: Rule, P: Separable> Stepper for Engine<'_, R, P> {
    fn is_anchored(&self) -> bool {
        R::ANCHORED
    }

    fn tick(&self, step_size: f64) -> f64 {
        self.penalty.tick(step_size)
    }

    fn enter(&mut self, phase: Phase) {
        self.rule.enter(phase);
    }

    fn begin_epoch(&mut self, now: &Clock) -> Result<()> {
        (self.walked, self.live) = (0, 0);
        if !R::ANCHORED {
            return Ok(());
        }
        let Anchor { rows, weights, intercept } = Anchor::at(self.problem, &self.point(now))?;
        self.anchor = rows;
        for (coord, gradient) in self.coords.iter_mut().zip(weights.iter().copied()) {
            self.rule.anchor(coord, gradient);
        }
        for (coord, gradient) in self.intercept.iter_mut().zip(intercept) {
            self.rule.anchor(coord, gradient);
        }
        Ok(())
    }

    fn step(&mut self, rows: &[u32], batch: &Batch, now: &Clock) -> bool {
        let width = self.problem.outputs();
        self.fetch(&batch.features, rows.len(), now);
        self.walked += batch.rows.columns.len() as u64;
        self.live += self.work.add_margins(&batch.rows, width);
        let finite = self.pull(rows, batch.features.len());
        self.work.add_gradient(&batch.rows, width);
        self.touch(&batch.features, now);
        finite
    }

    fn end_epoch(&mut self, now: &Clock) {
        if !R::ANCHORED {
            return;
        }
        let width = self.problem.outputs();
        for (at, coord) in self.coords.iter_mut().enumerate() {
            self.rule.settle(coord, self.penalty.term(at / width), now);
        }
        for coord in &mut self.intercept {
            self.rule.settle(coord, FREE, now);
        }
    }

    fn compact(&mut self, bytes: usize, now: &Clock) -> bool {
        let width = self.problem.outputs();
        let share = self.live as f64 / (self.walked.max(1) * width as u64) as f64;
        let bytes = bytes as f64;
        if self.walked == 0 || share > WORTH_COMPACTING || share * bytes > COPY_BYTES.max(COPY_SHARE * bytes) {
            return false;
        }
        // A feature stays while any of its outputs is not zero, or where nothing holds it at zero.
        let stays = |feature: &u32| {
            let term = self.penalty.term(*feature as usize);
            let coords = &self.coords[*feature as usize * width..(*feature as usize + 1) * width];
            term.kink() == 0.0 || coords.iter().any(|coord| self.rule.value(coord, term, now) != 0.0)
        };
        let features: Vec<u32> = (0..self.n_features as u32).filter(stays).collect();
        let mut coords = Huge::zeros(features.len() * width);
        for (new, &old) in coords.chunks_exact_mut(width).zip(&features) {
            new.copy_from_slice(&self.coords[old as usize * width..(old as usize + 1) * width]);
        }
        self.penalty = self.penalty.keep(&features);
        (self.coords, self.n_features) = (coords, features.len());
        self.kept = Some(match self.kept.take() {
            Some(before) => features.iter().map(|&feature| before[feature as usize]).collect(),
            None => features,
        });
        true
    }

    fn kept(&self) -> Option<&[u32]> {
        self.kept.as_deref()
    }

    fn point(&self, now: &Clock) -> Point {
        let mut point = Point::zero(self.problem);
        let width = self.problem.outputs();
        let value = |at: usize| self.rule.value(&self.coords[at], self.penalty.term(at / width), now);
        match &self.kept {
            None => point.weights.iter_mut().enumerate().for_each(|(at, weight)| *weight = value(at)),
            Some(kept) => {
                for at in 0..self.coords.len() {
                    point.weights[kept[at / width] as usize * width + at % width] = value(at);
                }
            }
        }
        for (weight, coord) in point.intercept.iter_mut().zip(&self.intercept) {
            *weight = self.rule.value(coord, FREE, now);
        }
        point
    }

    fn place(&mut self, point: &Point, now: &Clock) {
        for (coord, &x) in self.coords.iter_mut().zip(&point.weights) {
            *coord = self.rule.place(x, now);
        }
        for (coord, &x) in self.intercept.iter_mut().zip(&point.intercept) {
            *coord = self.rule.place(x, now);
        }
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        // What compaction dropped is zero for good, so the features that are kept are the whole state.
        write_array(out, self.kept.as_deref().unwrap_or(&[]))?;
        write_array(out, &[self.kept.is_some() as u64, self.walked, self.live])?;
        write_array(out, &self.anchor)?;
        write_array(out, &self.coords)?;
        write_array(out, &self.intercept)
    }

    fn load(&mut self, input: &mut dyn Read, now: &Clock) -> io::Result<()> {
        let corrupt = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let kept: Vec<u32> = read_array(input, self.n_features)?;
        let [compacted, walked, live] = read_array(input, 3)?[..] else { return Err(corrupt("counters")) };
        let rows = self.problem.n_rows() * self.problem.outputs();
        self.anchor = read_array(input, rows)?;
        // Without an anchor an epoch can be begun, but not gone on with.
        let is_whole =
            self.anchor.len() == rows || (self.anchor.is_empty() && (!R::ANCHORED || now.steps_in_epoch == 0));
        if !(is_whole && self.anchor.iter().all(|slope| slope.is_finite())) {
            return Err(corrupt("an anchor"));
        }
        if compacted == 1 {
            if kept.windows(2).any(|pair| pair[0] >= pair[1])
                || kept.last().is_some_and(|&last| last as usize >= self.n_features)
            {
                return Err(corrupt("features"));
            }
            self.penalty = self.penalty.keep(&kept);
            self.n_features = kept.len();
            self.coords = Huge::zeros(kept.len() * self.problem.outputs());
            self.kept = Some(kept);
        }
        (self.walked, self.live) = (walked, live);
        read_exactly(input, &mut self.coords)?;
        read_exactly(input, &mut self.intercept)?;
        match self.coords.iter().chain(&self.intercept).all(|coord| self.rule.is_sound(coord, now)) {
            true => Ok(()),
            false => Err(corrupt("coordinates")),
        }
    }
}
