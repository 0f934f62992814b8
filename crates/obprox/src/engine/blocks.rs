//! The methods where the penalty is one on blocks.
//!
//! What becomes of a block in steps without a gradient has no closed form in general, so no step is put off. A block of zeros
//! stays as it is for nothing; the others are stepped on each time. So a Prox-SG or Orthant step costs the nonzeros of its
//! batch and the weights that are not zero, RDA reads off its sums what the batch mentions, and Prox-SVRG, where every block
//! moves with the full gradient, costs all weights.
//!
//! The Orthant step of a block goes along the gradient of F on the face of x and is projected back on it; a group that
//! leaves the half space of its direction is zero (`Penalty::on_face`).

use std::io::{self, Read, Write};

use super::Stepper;
use crate::Result;
use crate::batches::Batch;
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::method::Clock;
use crate::penalty::{OnBlocks, Smooth};
use crate::problem::{Point, Problem};
use crate::rows::full::Anchor;
use crate::settings::Method;
use crate::switch::Phase;

/// What a method does to a block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum BlockRule {
    /// Prox-SG, and Orthant steps in that phase.
    Prox,
    /// Dual averaging with its γ.
    Rda(f64),
    /// Prox-SVRG; with the mean of an epoch's iterates, or the last.
    Svrg { average: bool },
}

impl BlockRule {
    /// That of one of the paper's methods.
    pub fn of(method: &Method) -> Option<Self> {
        match *method {
            Method::ProxSg | Method::ObproxSg { .. } | Method::ObproxSgPlus { .. } => Some(Self::Prox),
            Method::Rda { gamma } => Some(Self::Rda(gamma)),
            Method::ProxSvrg { average } => Some(Self::Svrg { average }),
            Method::Auto | Method::Own { .. } => None,
        }
    }

    fn is_anchored(self) -> bool {
        matches!(self, Self::Svrg { .. })
    }
}

/// The engine of a rule on blocks.
pub(crate) struct BlockEngine<'a> {
    problem: &'a Problem,
    penalty: OnBlocks<'a>,
    rule: BlockRule,
    phase: Phase,
    /// Feature j, output k at j·K + k; the intercepts come last, here and below.
    x: Vec<f64>,
    /// Of gradients for RDA, of iterates for an average.
    sums: Vec<f64>,
    /// The full gradient at the anchor, and ∇ℓ of each row there.
    full: Vec<f64>,
    anchor: Vec<f64>,
    /// The batch's gradient, zero between two steps.
    gradient: Vec<f64>,
    /// The blocks that are stepped on, and whether each is among them.
    moving: Vec<u32>,
    is_moving: Vec<bool>,
}

impl<'a> BlockEngine<'a> {
    pub fn new(problem: &'a Problem, penalty: OnBlocks<'a>, rule: BlockRule) -> Self {
        let outputs = problem.outputs();
        let size = (problem.n_features() + usize::from(problem.has_intercept())) * outputs;
        let if_used = |used: bool| vec![0.0; if used { size } else { 0 }];
        let has_sums = !matches!(rule, BlockRule::Prox | BlockRule::Svrg { average: false });
        Self {
            problem,
            penalty,
            rule,
            phase: Phase::Prox,
            x: vec![0.0; size],
            sums: if_used(has_sums),
            full: if_used(rule.is_anchored()),
            anchor: Vec::new(),
            gradient: vec![0.0; size],
            moving: Vec::new(),
            is_moving: vec![false; penalty.blocks.len()],
        }
    }

    /// Where the intercepts begin.
    fn first_intercept(&self) -> usize {
        self.problem.n_features() * self.problem.outputs()
    }

    /// Marks a block as one to step on.
    fn mark(&mut self, block: usize) {
        if !self.is_moving[block] {
            self.is_moving[block] = true;
            self.moving.push(block as u32);
        }
    }

    /// Marks the blocks that a batch mentions.
    fn mark_batch(&mut self, batch: &Batch) {
        let width = self.problem.outputs();
        for &number in &batch.rows.columns {
            let first = batch.features[number as usize] as usize * width;
            (first..first + width).for_each(|at| self.mark(self.penalty.blocks.of(at)));
        }
    }

    /// Leaves only the blocks that are not zero.
    fn forget_zeros(&mut self) {
        let Self { penalty, x, moving, is_moving, .. } = self;
        moving.retain(|&block| {
            let stays = penalty.blocks.coordinates(block as usize).iter().any(|&at| x[at as usize] != 0.0);
            is_moving[block as usize] = stays;
            stays
        });
    }

    /// The weights of dual averaging, as of now: argmin ḡ·x + p(x) + (β/2)‖x‖².
    fn average(&self, gamma: f64, block: usize, now: &Clock) -> Vec<f64> {
        let t = now.steps as f64;
        let mut x = self.penalty.gather(block, &self.sums);
        if x.iter().any(|&sum| sum != 0.0) {
            let beta = gamma / t.sqrt();
            x.iter_mut().for_each(|sum| *sum = -*sum / t / beta);
            self.penalty.prox(block, 1.0 / beta, &mut x);
        }
        x
    }

    fn put(&mut self, block: usize, x: &[f64]) {
        self.penalty.blocks.coordinates(block).iter().zip(x).for_each(|(&at, &x)| self.x[at as usize] = x);
    }

    /// Adds the gradient of a batch, less the anchor's where there is one; false where it is not finite.
    fn add_gradient(&mut self, rows: &[u32], batch: &Batch) -> bool {
        let (problem, width, first) = (self.problem, self.problem.outputs(), self.first_intercept());
        let mut margins = vec![0.0; rows.len() * width];
        for (at, margins) in margins.chunks_exact_mut(width).enumerate() {
            margins.iter_mut().zip(&self.x[first..]).for_each(|(margin, b)| *margin = *b);
            batch.for_each(at, |feature, value| {
                let weights = &self.x[feature * width..(feature + 1) * width];
                margins.iter_mut().zip(weights).for_each(|(margin, x)| *margin += value * x);
            });
        }
        let targets: Vec<f64> = rows.iter().map(|&row| problem.targets()[row as usize]).collect();
        let mut pulls = vec![0.0; margins.len()];
        problem.loss().gradients(&margins, &targets, &mut pulls);
        let mut check = 0.0;
        for (at, pulls) in pulls.chunks_exact_mut(width).enumerate() {
            let row = rows[at] as usize;
            let weight = problem.row_weight(row) / rows.len() as f64;
            for (output, pull) in pulls.iter_mut().enumerate() {
                *pull = weight * (*pull - self.anchor.get(row * width + output).copied().unwrap_or(0.0));
                check += *pull;
            }
            self.gradient[first..].iter_mut().zip(&*pulls).for_each(|(sum, pull)| *sum += pull);
            batch.for_each(at, |feature, value| {
                let gradient = &mut self.gradient[feature * width..(feature + 1) * width];
                gradient.iter_mut().zip(&*pulls).for_each(|(sum, pull)| *sum += value * pull);
            });
        }
        check.is_finite()
    }

    /// The step of a block under a gradient.
    fn stepped(&self, block: usize, gradient: &[f64], step: f64) -> Vec<f64> {
        let x = self.penalty.gather(block, &self.x);
        if self.phase == Phase::Orthant && self.rule == BlockRule::Prox {
            return self.on_face(block, x, gradient, step);
        }
        let mut to: Vec<f64> = x.iter().zip(gradient).map(|(x, g)| x - step * g).collect();
        self.penalty.prox(block, step, &mut to);
        to
    }

    /// The Orthant step.
    fn on_face(&self, block: usize, x: Vec<f64>, gradient: &[f64], step: f64) -> Vec<f64> {
        let size = x.len();
        let (mut free, mut of_penalty) = (vec![false; size], vec![0.0; size]);
        let at = Smooth { free: &mut free, gradient: &mut of_penalty, hessian: None };
        if !self.penalty.smooth(block, &x, at) {
            // Zeros stay; of what is not zero and yet not smooth nothing but the proximal step is known.
            let mut to: Vec<f64> = x.iter().zip(gradient).map(|(x, g)| x - step * g).collect();
            let is_zero = x.iter().all(|&x| x == 0.0);
            return if is_zero {
                x
            } else {
                self.penalty.prox(block, step, &mut to);
                to
            };
        }
        let decay = 1.0 / (1.0 + step * self.penalty.l2);
        let trial = |at: usize| if free[at] { (x[at] - step * (gradient[at] + of_penalty[at])) * decay } else { x[at] };
        let mut to: Vec<f64> = (0..size).map(trial).collect();
        self.penalty.on_face(block, &x, &mut to);
        to
    }

    /// Steps on the blocks that move, and on the intercepts.
    fn step_all(&mut self, now: &Clock) {
        let step = now.step_size;
        for at in 0..self.moving.len() {
            let block = self.moving[at] as usize;
            let mut gradient = self.penalty.gather(block, &self.gradient);
            if !self.full.is_empty() {
                gradient.iter_mut().zip(self.penalty.gather(block, &self.full)).for_each(|(g, full)| *g += full);
            }
            let to = self.stepped(block, &gradient, step);
            self.put(block, &to);
        }
        for at in self.first_intercept()..self.x.len() {
            self.x[at] -= step * (self.gradient[at] + self.full.get(at).copied().unwrap_or(0.0));
        }
        if self.rule == (BlockRule::Svrg { average: true }) {
            self.sums.iter_mut().zip(&self.x).for_each(|(sum, x)| *sum += x);
        }
    }

    /// The batch's gradient, back to zero.
    fn clear_gradient(&mut self) {
        for &block in &self.moving {
            let coordinates = self.penalty.blocks.coordinates(block as usize);
            coordinates.iter().for_each(|&at| self.gradient[at as usize] = 0.0);
        }
        let first = self.first_intercept();
        self.gradient[first..].fill(0.0);
    }

    /// A step of dual averaging: gradients at the weights that the sums stand for are added to them.
    fn add_to_sums(&mut self, gamma: f64, rows: &[u32], batch: &Batch, now: &Clock) -> bool {
        for at in 0..self.moving.len() {
            let block = self.moving[at] as usize;
            let x = self.average(gamma, block, now);
            self.put(block, &x);
        }
        let (first, t) = (self.first_intercept(), now.steps as f64);
        for at in first..self.x.len() {
            self.x[at] = if self.sums[at] == 0.0 { 0.0 } else { -self.sums[at] / t / (gamma / t.sqrt()) };
        }
        let finite = self.add_gradient(rows, batch);
        for &block in &self.moving {
            for &at in self.penalty.blocks.coordinates(block as usize) {
                self.sums[at as usize] += self.gradient[at as usize];
            }
        }
        (first..self.x.len()).for_each(|at| self.sums[at] += self.gradient[at]);
        finite
    }
}

impl Stepper for BlockEngine<'_> {
    fn is_anchored(&self) -> bool {
        self.rule.is_anchored()
    }

    fn tick(&self, step_size: f64) -> f64 {
        step_size
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    fn begin_epoch(&mut self, now: &Clock) -> Result<()> {
        if self.is_anchored() {
            let Anchor { rows, weights, intercept } = Anchor::at(self.problem, &self.point(now))?;
            self.anchor = rows;
            self.full.iter_mut().zip(weights.iter().copied().chain(intercept)).for_each(|(full, g)| *full = g);
        }
        Ok(())
    }

    fn step(&mut self, rows: &[u32], batch: &Batch, now: &Clock) -> bool {
        match self.rule {
            BlockRule::Rda(gamma) => {
                self.mark_batch(batch);
                let finite = self.add_to_sums(gamma, rows, batch, now);
                self.clear_gradient();
                self.is_moving.fill(false);
                self.moving.clear();
                return finite;
            }
            BlockRule::Svrg { .. } => (0..self.penalty.blocks.len()).for_each(|block| self.mark(block)),
            BlockRule::Prox => self.mark_batch(batch),
        }
        let finite = self.add_gradient(rows, batch);
        self.step_all(now);
        self.clear_gradient();
        if self.rule == BlockRule::Prox {
            self.forget_zeros();
        }
        finite
    }

    fn end_epoch(&mut self, now: &Clock) {
        if self.rule == (BlockRule::Svrg { average: true }) {
            let steps = now.steps_in_epoch as f64;
            self.x.iter_mut().zip(&mut self.sums).for_each(|(x, sum)| *x = std::mem::take(sum) / steps);
        }
    }

    fn compact(&mut self, _bytes: usize, _now: &Clock) -> bool {
        false
    }

    fn kept(&self) -> Option<&[u32]> {
        None
    }

    fn point(&self, now: &Clock) -> Point {
        let mut point = Point::zero(self.problem);
        let first = self.first_intercept();
        let BlockRule::Rda(gamma) = self.rule else {
            point.weights.copy_from_slice(&self.x[..first]);
            point.intercept.iter_mut().zip(&self.x[first..]).for_each(|(b, x)| *b = *x);
            return point;
        };
        for block in 0..self.penalty.blocks.len() {
            let x = self.average(gamma, block, now);
            self.penalty.blocks.coordinates(block).iter().zip(x).for_each(|(&at, x)| point.weights[at as usize] = x);
        }
        let t = now.steps as f64;
        for (b, &sum) in point.intercept.iter_mut().zip(&self.sums[first..]).filter(|(_, sum)| **sum != 0.0) {
            *b = -sum / t / (gamma / t.sqrt());
        }
        point
    }

    fn place(&mut self, point: &Point, _now: &Clock) {
        let first = self.first_intercept();
        self.x[..first].copy_from_slice(&point.weights);
        self.penalty.project(&mut self.x[..first]);
        self.x[first..].iter_mut().zip(&point.intercept).for_each(|(x, b)| *x = *b);
        (0..self.penalty.blocks.len()).for_each(|block| self.mark(block));
        self.forget_zeros();
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_array(out, &self.anchor)?;
        write_array(out, &self.x)?;
        write_array(out, &self.sums)?;
        write_array(out, &self.full)
    }

    fn load(&mut self, input: &mut dyn Read, now: &Clock) -> io::Result<()> {
        let corrupt = |what| io::Error::new(io::ErrorKind::InvalidData, what);
        let rows = self.problem.n_rows() * self.problem.outputs();
        self.anchor = read_array(input, rows)?;
        // Without an anchor an epoch can be begun, but not gone on with.
        let is_whole =
            self.anchor.len() == rows || self.anchor.is_empty() && (!self.is_anchored() || now.steps_in_epoch == 0);
        read_exactly(input, &mut self.x)?;
        read_exactly(input, &mut self.sums)?;
        read_exactly(input, &mut self.full)?;
        let mut all = self.anchor.iter().chain(&self.x).chain(&self.sums).chain(&self.full);
        if !is_whole || !all.all(|value| value.is_finite()) {
            return Err(corrupt("coordinates"));
        }
        (0..self.penalty.blocks.len()).for_each(|block| self.mark(block));
        self.forget_zeros();
        Ok(())
    }
}
