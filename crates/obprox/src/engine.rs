//! One engine runs every rule over the nonzeros of a batch.
//!
//! The cost of a step follows the nonzeros of its batch, never n: a coordinate that the batch does not mention is not
//! looked at, and [`Rule::value`] tells later what it has become meanwhile. A step
//!
//! 1. numbers the features of the batch 0, 1, … as they are met (`mark` remembers the number, 4 bytes a feature);
//! 2. fetches each one's weight once, into an array so small that it stays in the cache;
//! 3. runs margins, losses and gradient on that array;
//! 4. gives each coordinate its gradient.
//!
//! So the large arrays are visited once a nonzero (the mark) and twice a distinct feature (the coordinate, all of whose
//! parts share a cache line). Where a batch mentions most features anyway, numbering them gains nothing: every
//! coordinate then takes part in every step, those without gradient with gradient zero, which is the same step.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use crate::checkpoint::{read_array, write_array};
use crate::data::{Rows, with_rows};
use crate::method::{Clock, Rule};
use crate::pass;
use crate::penalty::{L1, Penalty, Term, with_penalty};
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
    const SINGLE: bool;
    fn get(self) -> usize;
}

#[derive(Clone, Copy)]
struct Single;

#[derive(Clone, Copy)]
struct Several(usize);

impl Width for Single {
    const SINGLE: bool = true;

    #[inline]
    fn get(self) -> usize {
        1
    }
}

impl Width for Several {
    const SINGLE: bool = false;

    #[inline]
    fn get(self) -> usize {
        self.0
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
    coords: Vec<R::Coord>,
    intercept: Vec<R::Coord>,
    /// The features left after compaction, by their own numbers.
    kept: Option<Vec<u32>>,
    /// ∇ℓ of each row at the anchor.
    anchor: Vec<f64>,
    /// Entries walked in this epoch, and those of them with a weight that was not zero.
    walked: u64,
    live: u64,
    /// The number of a feature in the last batch that mentioned it, counted on from batch to batch.
    mark: Vec<u32>,
    /// The first number of the batch under way.
    first_mark: u32,
    work: Work,
}

/// The work space of a step.
#[derive(Default)]
struct Work {
    /// The features of the batch, in the order they were met.
    features: Vec<u32>,
    /// The number of each entry's feature, entry after entry.
    numbers: Vec<u32>,
    /// Weights and gradients by number, K each.
    weights: Vec<f64>,
    gradient: Vec<f64>,
    /// By row of the batch, K each.
    margins: Vec<f64>,
    pulls: Vec<f64>,
    targets: Vec<f64>,
}

/// The intercept's penalty: none.
const FREE: L1 = L1 { l1: 0.0 };

impl<'a, R: Rule, P: Penalty, S: Rows + Clone, W: Width> Engine<'a, R, P, S, W> {
    fn new(problem: &'a Problem, rows: &'a S, penalty: P, rule: R, width: W) -> Self {
        let intercept = if problem.has_intercept() { width.get() } else { 0 };
        Self {
            problem,
            rule,
            penalty,
            rows: Cow::Borrowed(rows),
            width,
            coords: vec![R::Coord::default(); rows.n_cols() * width.get()],
            intercept: vec![R::Coord::default(); intercept],
            kept: None,
            anchor: Vec::new(),
            walked: 0,
            live: 0,
            mark: Vec::new(),
            first_mark: 0,
            work: Work::default(),
        }
    }

    /// Numbers the features of the batch as they are met; returns how many there are.
    fn number(&mut self, batch: &[u32], entries: usize) -> usize {
        let Work { features, numbers, .. } = &mut self.work;
        if self.mark.is_empty() || self.first_mark.checked_add(entries as u32).is_none() {
            self.mark.clear();
            self.mark.resize(self.rows.n_cols(), 0);
            self.first_mark = 1;
        }
        features.resize(features.len().max(entries), 0);
        numbers.resize(numbers.len().max(entries), 0);
        let (mark, first) = (&mut self.mark[..], self.first_mark);
        let (mut met, mut entry) = (0, 0);
        for &row in batch {
            self.rows.for_each(row as usize, |feature, _| {
                // Without a branch: whether a feature is new in the batch is a coin toss no predictor wins.
                let known = mark[feature];
                let new = known < first;
                let number = if new { first + met } else { known };
                mark[feature] = number;
                features[met as usize] = feature as u32;
                met += u32::from(new);
                numbers[entry] = number - first;
                entry += 1;
            });
        }
        self.first_mark += met;
        met as usize
    }

    /// The step, with `feature_of(number)` and, for the entries in their order, `number_of(entry, feature)`.
    fn step_on(
        &mut self,
        batch: &[u32],
        now: &Clock,
        distinct: usize,
        feature_of: impl Fn(&Work, usize) -> usize,
        number_of: impl Fn(&[u32], usize, usize) -> usize,
    ) -> bool {
        let Self { problem, rule, penalty, coords, intercept, anchor, .. } = self;
        let (rows, rule, width) = (&*self.rows, &*rule, self.width.get());

        let mut weights = std::mem::take(&mut self.work.weights);
        weights.clear();
        for number in 0..distinct {
            let feature = feature_of(&self.work, number);
            let term = penalty.term(feature);
            let coords = &coords[feature * width..(feature + 1) * width];
            weights.extend(coords.iter().map(|coord| rule.value(coord, term, now)));
        }

        let Work { numbers, gradient, margins, pulls, targets, .. } = &mut self.work;
        margins.clear();
        let (mut entry, mut live) = (0, 0);
        for &row in batch {
            let first = margins.len();
            margins.extend(intercept.iter().map(|coord| rule.value(coord, FREE, now)));
            margins.resize(first + width, 0.0);
            if W::SINGLE {
                // In a register: through memory each addition would wait for the store before it.
                let mut margin = margins[first];
                rows.for_each(row as usize, |feature, value| {
                    let x = weights[number_of(numbers, entry, feature)];
                    margin += value * x;
                    live += u64::from(x != 0.0);
                    entry += 1;
                });
                margins[first] = margin;
            } else {
                rows.for_each(row as usize, |feature, value| {
                    let number = number_of(numbers, entry, feature);
                    let weights = &weights[number * width..(number + 1) * width];
                    for (margin, x) in margins[first..].iter_mut().zip(weights) {
                        *margin += value * x;
                        live += u64::from(*x != 0.0);
                    }
                    entry += 1;
                });
            }
        }
        self.walked += entry as u64;
        self.live += live;

        targets.clear();
        targets.extend(batch.iter().map(|&row| problem.targets()[row as usize]));
        pulls.resize(margins.len(), 0.0);
        problem.loss().gradients(margins, targets, pulls);

        gradient.clear();
        gradient.resize(distinct * width, 0.0);
        let mean = 1.0 / batch.len() as f64;
        let (mut entry, mut check) = (0, 0.0);
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
            if W::SINGLE {
                let pull = pulls[0];
                rows.for_each(row, |feature, value| {
                    gradient[number_of(numbers, entry, feature)] += value * pull;
                    entry += 1;
                });
            } else {
                rows.for_each(row, |feature, value| {
                    let number = number_of(numbers, entry, feature);
                    let gradient = &mut gradient[number * width..(number + 1) * width];
                    gradient.iter_mut().zip(&*pulls).for_each(|(sum, pull)| *sum += value * pull);
                    entry += 1;
                });
            }
        }

        for (output, coord) in intercept.iter_mut().enumerate() {
            let gradient = pulls.iter().skip(output).step_by(width).sum();
            rule.touch(coord, gradient, FREE, now);
        }
        for number in 0..distinct {
            let feature = feature_of(&self.work, number);
            let term = penalty.term(feature);
            let gradient = &self.work.gradient[number * width..(number + 1) * width];
            for (coord, &gradient) in coords[feature * width..(feature + 1) * width].iter_mut().zip(gradient) {
                rule.touch(coord, gradient, term, now);
            }
        }
        self.work.weights = weights;
        check.is_finite()
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
        for (coord, gradient) in self.coords.iter_mut().zip(gradient) {
            self.rule.anchor(coord, gradient);
        }
        let gradient = pass::intercept_gradient(self.problem, &self.anchor);
        for (coord, gradient) in self.intercept.iter_mut().zip(gradient) {
            self.rule.anchor(coord, gradient);
        }
    }

    fn step(&mut self, batch: &[u32], now: &Clock) -> bool {
        let entries: usize = batch.iter().map(|&row| self.rows.row_len(row as usize)).sum();
        if self.rows.n_cols() <= entries {
            return self.step_on(batch, now, self.rows.n_cols(), |_, number| number, |_, _, feature| feature);
        }
        let distinct = self.number(batch, entries);
        self.step_on(
            batch,
            now,
            distinct,
            |work, number| work.features[number] as usize,
            |numbers, entry, _| numbers[entry] as usize,
        )
    }

    fn end_epoch(&mut self, now: &Clock) {
        if !R::ANCHORED {
            return;
        }
        let width = self.width.get();
        for (at, coord) in self.coords.iter_mut().enumerate() {
            self.rule.settle(coord, self.penalty.term(at / width), now);
        }
        for coord in &mut self.intercept {
            self.rule.settle(coord, FREE, now);
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
            let coords = &self.coords[*feature as usize * width..(*feature as usize + 1) * width];
            term.kink() == 0.0 || coords.iter().any(|coord| self.rule.value(coord, term, now) != 0.0)
        };
        let features: Vec<u32> = (0..self.rows.n_cols() as u32).filter(stays).collect();
        let mut coords = Vec::with_capacity(features.len() * width);
        for &feature in &features {
            coords.extend_from_slice(&self.coords[feature as usize * width..(feature as usize + 1) * width]);
        }
        self.rows = Cow::Owned(self.rows.keep_columns(&features));
        self.penalty = self.penalty.keep(&features);
        self.coords = coords;
        self.mark = Vec::new();
        self.kept = Some(match self.kept.take() {
            Some(before) => features.iter().map(|&feature| before[feature as usize]).collect(),
            None => features,
        });
    }

    fn point(&self, now: &Clock) -> Point {
        let mut point = Point::zero(self.problem);
        let width = self.width.get();
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
            self.coords.truncate(kept.len() * self.width.get());
            self.kept = Some(kept);
        }
        (self.walked, self.live) = (walked, live);
        for coords in [&mut self.coords, &mut self.intercept] {
            let expected = coords.len();
            *coords = read_array(input, expected)?;
            if coords.len() != expected {
                return Err(corrupt("coordinates"));
            }
        }
        Ok(())
    }
}
