//! One engine runs every rule over the nonzeros of a batch.
//!
//! The cost of a step follows the nonzeros of its batch, never n: a coordinate that the batch does not mention is not
//! looked at, and [`Rule::value`] tells later what it has become meanwhile. All that a coordinate needs sits together
//! in one [`Slot`], so touching it costs one cache line.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use bytemuck::{Pod, Zeroable};

use crate::checkpoint::{read_array, write_array};
use crate::data::{Rows, with_rows};
use crate::method::{Clock, Rule};
use crate::pass;
use crate::penalty::{L1, Penalty, with_penalty};
use crate::problem::{Point, Problem};
use crate::switch::Phase;

/// An engine whose rule, penalty, storage and width are hidden: one virtual call a step.
pub(crate) trait Stepper {
    /// How far a step of size α takes the penalty's clock.
    fn tick(&self, step_size: f64) -> f64;
    /// The kind of the steps to come.
    fn enter(&mut self, phase: Phase);
    /// Prepares an epoch: the anchor's full gradient, where the rule has one.
    fn begin_epoch(&mut self, now: &Clock);
    /// Takes one step on a batch; false where a gradient was not finite.
    fn step(&mut self, batch: &[u32], now: &Clock) -> bool;
    /// Ends an epoch; `now` is the moment after its last step.
    fn end_epoch(&mut self, now: &Clock);
    /// From here on zeros stay zeros: drops their columns where that saves enough work.
    fn compact(&mut self, now: &Clock);
    /// All weights as of now.
    fn point(&self, now: &Clock) -> Point;
    /// Starts from a point.
    fn place(&mut self, point: &Point, now: &Clock);
    /// Writes the whole state, lazy coordinates as they are.
    fn save(&self, out: &mut dyn Write) -> io::Result<()>;
    /// Reads it back.
    fn load(&mut self, input: &mut dyn Read) -> io::Result<()>;
}

/// The engine of a rule for a problem.
pub(crate) fn engine<'a, R: Rule + 'a>(problem: &'a Problem, rule: R) -> Box<dyn Stepper + 'a> {
    with_rows!(problem.matrix(), |rows| with_penalty!(problem.regularization(), |penalty| {
        if problem.outputs() == 1 {
            Box::new(Engine::new(problem, rows, penalty, rule, Single))
        } else {
            Box::new(Engine::new(problem, rows, penalty, rule, Several(problem.outputs())))
        }
    }))
}

/// The number of outputs: a type of its own for one, so that the loop over outputs disappears.
trait Width: Copy {
    fn get(self) -> usize;
}

#[derive(Clone, Copy)]
struct Single;

#[derive(Clone, Copy)]
struct Several(usize);

impl Width for Single {
    #[inline]
    fn get(self) -> usize {
        1
    }
}

impl Width for Several {
    #[inline]
    fn get(self) -> usize {
        self.0
    }
}

/// What a coordinate keeps: the rule's part, and the batch's gradient while a step is under way.
#[derive(Clone, Copy)]
#[repr(C)]
struct Slot<C> {
    coord: C,
    gradient: f64,
}

/// The gradient of a coordinate that the batch has not mentioned yet: a NaN that no arithmetic yields.
const UNSEEN: f64 = f64::from_bits(0x7ff8_0b5e_55ed_0001);

impl<C> Slot<C> {
    fn new(coord: C) -> Self {
        Self { coord, gradient: UNSEEN }
    }
}

/// Compaction pays where at most this share of the entries is left, and keeps the copy small beside the data.
const WORTH_COMPACTING: f64 = 0.3;

struct Engine<'a, R: Rule, P: Penalty, S: Rows + Clone, W: Width> {
    problem: &'a Problem,
    rule: R,
    penalty: P,
    rows: Cow<'a, S>,
    width: W,
    /// Feature j, output k at j·K + k.
    slots: Vec<Slot<R::Coord>>,
    intercept: Vec<Slot<R::Coord>>,
    /// The features left after compaction, by their own numbers.
    kept: Option<Vec<u32>>,
    /// ∇ℓ of each row at the anchor.
    anchor: Vec<f64>,
    /// Entries walked in this epoch, and those of them with a weight that was not zero.
    walked: u64,
    live: u64,
    // Work space of a step.
    seen: Vec<u32>,
    margins: Vec<f64>,
    targets: Vec<f64>,
    gradients: Vec<f64>,
}

/// The intercept's penalty: none.
const FREE: L1 = L1 { l1: 0.0 };

impl<'a, R: Rule, P: Penalty, S: Rows + Clone, W: Width> Engine<'a, R, P, S, W> {
    fn new(problem: &'a Problem, rows: &'a S, penalty: P, rule: R, width: W) -> Self {
        let slot = Slot::new(R::Coord::default());
        let intercept = if problem.has_intercept() { width.get() } else { 0 };
        Self {
            problem,
            rule,
            penalty,
            rows: Cow::Borrowed(rows),
            width,
            slots: vec![slot; rows.n_cols() * width.get()],
            intercept: vec![slot; intercept],
            kept: None,
            anchor: Vec::new(),
            walked: 0,
            live: 0,
            seen: Vec::new(),
            margins: Vec::new(),
            targets: Vec::new(),
            gradients: Vec::new(),
        }
    }

    /// The margins of the batch. Marks each coordinate the first time it is met and lists its feature in `seen`.
    fn margins(&mut self, batch: &[u32], now: &Clock) {
        let Self { rule, penalty, rows, width, slots, intercept, seen, margins, live, walked, .. } = self;
        let (rule, width) = (&*rule, width.get());
        let entries: usize = batch.iter().map(|&row| rows.row_len(row as usize)).sum();
        *walked += entries as u64;
        seen.resize(entries, 0);
        margins.clear();
        let mut met = 0;
        let mut nonzero = 0;
        for &row in batch {
            let first = margins.len();
            margins.extend(intercept.iter().map(|slot| rule.value(&slot.coord, FREE, now)));
            margins.resize(first + width, 0.0);
            let margins = &mut margins[first..];
            rows.for_each(row as usize, |feature, value| {
                let term = penalty.term(feature);
                let slots = &mut slots[feature * width..(feature + 1) * width];
                // Without a branch: whether a coordinate is new in the batch is a coin toss no predictor wins.
                let new = slots[0].gradient.to_bits() == UNSEEN.to_bits();
                seen[met] = feature as u32;
                met += usize::from(new);
                for (slot, margin) in slots.iter_mut().zip(&mut *margins) {
                    slot.gradient = if new { 0.0 } else { slot.gradient };
                    let x = rule.value(&slot.coord, term, now);
                    nonzero += u64::from(x != 0.0);
                    *margin += value * x;
                }
            });
        }
        seen.truncate(met);
        *live += nonzero;
    }
}

impl<R: Rule, P: Penalty, S: Rows + Clone, W: Width> Stepper for Engine<'_, R, P, S, W> {
    fn tick(&self, step_size: f64) -> f64 {
        self.penalty.tick(step_size)
    }

    fn enter(&mut self, phase: Phase) {
        self.rule.enter(phase);
    }

    fn begin_epoch(&mut self, now: &Clock) {
        (self.walked, self.live) = (0, 0);
        if !R::ANCHORED {
            return;
        }
        let margins = pass::margins(self.problem.matrix(), &self.point(now));
        self.anchor = pass::row_gradients(self.problem, &margins);
        let gradient = pass::gradient(self.problem, &self.anchor);
        for (slot, gradient) in self.slots.iter_mut().zip(gradient) {
            self.rule.anchor(&mut slot.coord, gradient);
        }
        let gradient = pass::intercept_gradient(self.problem, &self.anchor);
        for (slot, gradient) in self.intercept.iter_mut().zip(gradient) {
            self.rule.anchor(&mut slot.coord, gradient);
        }
    }

    fn step(&mut self, batch: &[u32], now: &Clock) -> bool {
        self.margins(batch, now);

        let Self { problem, rule, penalty, rows, slots, intercept, anchor, seen, .. } = self;
        let (margins, targets, gradients) = (&self.margins, &mut self.targets, &mut self.gradients);
        let width = self.width.get();
        targets.clear();
        targets.extend(batch.iter().map(|&row| problem.targets()[row as usize]));
        gradients.resize(margins.len(), 0.0);
        problem.loss().gradients(margins, targets, gradients);
        let mean = 1.0 / batch.len() as f64;
        let mut check = 0.0;
        for (&row, gradients) in batch.iter().zip(gradients.chunks_exact_mut(width)) {
            let row = row as usize;
            let weight = problem.row_weight(row) * mean;
            for (output, gradient) in gradients.iter_mut().enumerate() {
                if R::ANCHORED {
                    *gradient -= anchor[row * width + output];
                }
                *gradient *= weight;
                check += *gradient;
            }
            rows.for_each(row, |feature, value| {
                let slots = &mut slots[feature * width..(feature + 1) * width];
                slots.iter_mut().zip(&*gradients).for_each(|(slot, gradient)| slot.gradient += value * gradient);
            });
        }

        for (output, slot) in intercept.iter_mut().enumerate() {
            let gradient = gradients.iter().skip(output).step_by(width).sum();
            rule.touch(&mut slot.coord, gradient, FREE, now);
        }
        for &feature in &*seen {
            let feature = feature as usize;
            let term = penalty.term(feature);
            for slot in &mut slots[feature * width..(feature + 1) * width] {
                rule.touch(&mut slot.coord, slot.gradient, term, now);
                slot.gradient = UNSEEN;
            }
        }
        check.is_finite()
    }

    fn end_epoch(&mut self, now: &Clock) {
        if !R::ANCHORED {
            return;
        }
        let width = self.width.get();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            self.rule.settle(&mut slot.coord, self.penalty.term(at / width), now);
        }
        for slot in &mut self.intercept {
            self.rule.settle(&mut slot.coord, FREE, now);
        }
    }

    fn compact(&mut self, now: &Clock) {
        let (width, outputs) = (self.width.get(), self.width.get() as u64);
        if self.live as f64 > WORTH_COMPACTING * (self.walked * outputs) as f64 || self.walked == 0 {
            return;
        }
        // A feature stays while any of its outputs is not zero, or where nothing holds it at zero.
        let stays = |feature: &u32| {
            let term = self.penalty.term(*feature as usize);
            let slots = &self.slots[*feature as usize * width..(*feature as usize + 1) * width];
            crate::penalty::Term::kink(term) == 0.0
                || slots.iter().any(|slot| self.rule.value(&slot.coord, term, now) != 0.0)
        };
        let features: Vec<u32> = (0..self.rows.n_cols() as u32).filter(stays).collect();
        let mut slots = Vec::with_capacity(features.len() * width);
        for &feature in &features {
            slots.extend_from_slice(&self.slots[feature as usize * width..(feature as usize + 1) * width]);
        }
        self.rows = Cow::Owned(self.rows.keep_columns(&features));
        self.penalty = self.penalty.keep(&features);
        self.slots = slots;
        self.kept = Some(match self.kept.take() {
            Some(before) => features.iter().map(|&feature| before[feature as usize]).collect(),
            None => features,
        });
    }

    fn point(&self, now: &Clock) -> Point {
        let mut point = Point::zero(self.problem);
        let width = self.width.get();
        let value = |at: usize| self.rule.value(&self.slots[at].coord, self.penalty.term(at / width), now);
        match &self.kept {
            None => point.weights.iter_mut().enumerate().for_each(|(at, weight)| *weight = value(at)),
            Some(kept) => {
                for at in 0..self.slots.len() {
                    point.weights[kept[at / width] as usize * width + at % width] = value(at);
                }
            }
        }
        for (weight, slot) in point.intercept.iter_mut().zip(&self.intercept) {
            *weight = self.rule.value(&slot.coord, FREE, now);
        }
        point
    }

    fn place(&mut self, point: &Point, now: &Clock) {
        for (slot, &x) in self.slots.iter_mut().zip(&point.weights) {
            slot.coord = self.rule.place(x, now);
        }
        for (slot, &x) in self.intercept.iter_mut().zip(&point.intercept) {
            slot.coord = self.rule.place(x, now);
        }
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        // What compaction dropped is zero for good, so the features that are kept are the whole state.
        write_array(out, self.kept.as_deref().unwrap_or(&[]))?;
        write_array(out, &[self.kept.is_some() as u64, self.walked, self.live])?;
        write_array(out, &self.anchor)?;
        write_coords(out, &self.slots)?;
        write_coords(out, &self.intercept)
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let corrupt = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let kept: Vec<u32> = read_array(input, self.rows.n_cols())?;
        let [compacted, walked, live] = read_array(input, 3)?[..] else { return Err(corrupt("counters")) };
        self.anchor = read_array(input, self.problem.n_rows() * self.width.get())?;
        if compacted == 1 {
            if kept.windows(2).any(|pair| pair[0] >= pair[1])
                || kept.last().is_some_and(|&last| last as usize >= self.rows.n_cols())
            {
                return Err(corrupt("features"));
            }
            self.rows = Cow::Owned(self.rows.keep_columns(&kept));
            self.penalty = self.penalty.keep(&kept);
            self.slots.truncate(kept.len() * self.width.get());
            self.kept = Some(kept);
        }
        (self.walked, self.live) = (walked, live);
        read_coords(input, &mut self.slots)?;
        read_coords(input, &mut self.intercept)
    }
}

fn write_coords<C: Pod>(out: &mut dyn Write, slots: &[Slot<C>]) -> io::Result<()> {
    out.write_all(&(slots.len() as u64).to_le_bytes())?;
    slots.iter().try_for_each(|slot| out.write_all(bytemuck::bytes_of(&slot.coord)))
}

fn read_coords<C: Pod + Zeroable>(input: &mut dyn Read, slots: &mut [Slot<C>]) -> io::Result<()> {
    let mut len = [0; 8];
    input.read_exact(&mut len)?;
    if u64::from_le_bytes(len) != slots.len() as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "number of coordinates"));
    }
    slots.iter_mut().try_for_each(|slot| input.read_exact(bytemuck::bytes_of_mut(&mut slot.coord)))
}
