//! The model of a Newton step with a penalty on blocks:
//! min over z: u·(z − x) + ½ (z − x)ᵀH(z − x) + Σ_B p_B(z_B).
//!
//! As for the l1 penalty, whose blocks are single coordinates: descent block by block finds the face; on it the model is
//! smooth, and Newton steps go to its minimum, projected back where they leave the face (for a group, where they leave the
//! half space of its direction). A Hessian that is known by its products alone is met by accelerated proximal steps.

use super::cholesky::{Cholesky, dot};
use super::expansion::Expansion;
use super::quadratic::Quadratic;
use crate::Result;
use crate::huge::Huge;
use crate::penalty::{Blockwise, OnBlocks, Smooth};
use crate::tuning::blockwise::{ACCELERATED, FACES, HALVINGS, IDLE, INNER, NEWTON, SWEEPS};
use crate::tuning::quadratic::MOVES_OF_A_FACTOR;

/// A penalty's blocks among the coordinates of a working set.
#[derive(Clone)]
pub(crate) struct InSet {
    penalty: Blockwise,
    lambda: f64,
    /// The number of each block and where its coordinates are.
    blocks: Vec<(usize, Vec<usize>)>,
    /// The intercepts, which are in none.
    free: Vec<usize>,
}

impl InSet {
    /// The blocks of indices of which each is a coordinate of the problem, or an intercept.
    pub fn new(penalty: &Blockwise, lambda: f64, coordinates: &[Option<usize>]) -> Self {
        let on = penalty.with(lambda, 0.0);
        let indices = || coordinates.iter().enumerate();
        let block = |(index, coordinate): (usize, &Option<usize>)| coordinate.map(|at| (on.blocks.of(at), at, index));
        let mut known: Vec<(usize, usize, usize)> = indices().filter_map(block).collect();
        known.sort_unstable();
        let mut blocks: Vec<(usize, Vec<usize>)> = Vec::new();
        for (number, _, index) in known {
            match blocks.last_mut() {
                Some((last, indices)) if *last == number => indices.push(index),
                _ => blocks.push((number, vec![index])),
            }
        }
        let free = indices().filter(|(_, coordinate)| coordinate.is_none()).map(|(index, _)| index).collect();
        Self { penalty: penalty.clone(), lambda, blocks, free }
    }

    /// The penalty; λ₂ is with the smooth part.
    pub fn on(&self) -> OnBlocks<'_> {
        self.penalty.with(self.lambda, 0.0)
    }

    /// The blocks and the free coordinates that have any curvature, with the Hessian on each that `hessian` gives.
    pub fn parts(&self, hessian: impl Fn(&[usize]) -> Vec<f64>) -> Vec<Part> {
        let free = self.free.iter().map(|&index| (None, vec![index]));
        let known = self.blocks.iter().map(|(number, indices)| (Some(*number), indices.clone()));
        let part = |(number, indices): (Option<usize>, Vec<usize>)| {
            let hessian = hessian(&indices);
            Part { curvature: largest_curvature(&hessian, indices.len()), number, indices, hessian }
        };
        known.chain(free).map(part).filter(|part| part.curvature > 0.0).collect()
    }

    /// Which coordinates a step may move: those of blocks that are not zero, or whose slopes have at least this share of
    /// what a zero withstands, and what is in none.
    pub fn active(&self, x: &[f64], u: &[f64], share: f64) -> Vec<bool> {
        let mut active = vec![true; x.len()];
        for (number, indices) in &self.blocks {
            let withstands = || self.on().least_lambda(*number, &gather(indices, u)) < share * self.lambda;
            if indices.iter().all(|&at| x[at] == 0.0) && withstands() {
                indices.iter().for_each(|&at| active[at] = false);
            }
        }
        active
    }

    /// The coordinates of the largest block.
    pub fn largest(&self) -> usize {
        self.blocks.iter().map(|(_, indices)| indices.len()).max().unwrap_or(0)
    }

    /// Σ p_B(x_B).
    pub fn value(&self, x: &[f64]) -> f64 {
        self.blocks.iter().map(|(number, indices)| self.on().value(*number, &gather(indices, x))).sum()
    }

    /// Σ p_B(z_B) − p_B(x_B).
    pub fn change(&self, x: &[f64], z: &[f64]) -> f64 {
        let of = |(number, indices): &(usize, Vec<usize>)| {
            let (x, z) = (gather(indices, x), gather(indices, z));
            if x == z { 0.0 } else { self.on().change(*number, &x, &z) }
        };
        self.blocks.iter().map(of).sum()
    }

    /// The largest violation of a block, or slope of an intercept.
    pub fn violation(&self, x: &[f64], u: &[f64]) -> f64 {
        let of = |(number, indices): &(usize, Vec<usize>)| {
            self.on().violation(*number, &gather(indices, x), &gather(indices, u))
        };
        self.blocks.iter().map(of).chain(self.free.iter().map(|&at| u[at].abs())).fold(0.0, f64::max)
    }

    /// The blocks whose indices are among those of an order, by their places in it.
    fn in_order(&self, order: &[usize]) -> Self {
        let last = order.iter().max().map_or(0, |&last| last + 1);
        let mut places = vec![None; last];
        order.iter().enumerate().for_each(|(place, &index)| places[index] = Some(place));
        let place = |&at: &usize| places.get(at).copied().flatten();
        let placed = |(number, indices): &(usize, Vec<usize>)| {
            indices.iter().map(place).collect::<Option<Vec<usize>>>().map(|indices| (*number, indices))
        };
        let blocks = self.blocks.iter().filter_map(placed).collect();
        Self { blocks, free: self.free.iter().filter_map(place).collect(), ..self.clone() }
    }
}

fn gather(indices: &[usize], all: &[f64]) -> Vec<f64> {
    indices.iter().map(|&at| all[at]).collect()
}

/// A block of the model: its number, where it is, its own Hessian and a bound on that. What no penalty holds has no number.
pub(crate) struct Part {
    number: Option<usize>,
    pub indices: Vec<usize>,
    hessian: Vec<f64>,
    curvature: f64,
}

impl Part {
    /// How much it violates its condition.
    pub fn violation(&self, penalty: OnBlocks, z: &[f64], u: &[f64]) -> f64 {
        match self.number {
            Some(number) => penalty.violation(number, z, u),
            None => u[0].abs(),
        }
    }

    /// Where some proximal steps on it lead from z, whose slopes are u, the others held.
    pub fn descended(&self, penalty: OnBlocks, mut z: Vec<f64>, mut u: Vec<f64>) -> Vec<f64> {
        let steps = if self.indices.len() == 1 { 1 } else { INNER };
        for step in 1..=steps {
            let mut to: Vec<f64> = z.iter().zip(&u).map(|(z, u)| z - u / self.curvature).collect();
            if let Some(number) = self.number {
                penalty.prox(number, 1.0 / self.curvature, &mut to);
            }
            let delta: Vec<f64> = to.iter().zip(&z).map(|(to, z)| to - z).collect();
            z = to;
            if step == steps || delta.iter().all(|delta| *delta == 0.0) {
                break;
            }
            u.iter_mut().zip(self.hessian.chunks_exact(delta.len())).for_each(|(u, line)| *u += dot(line, &delta));
        }
        z
    }
}

/// The coordinates of blocks along which the penalty is smooth at a point.
pub(crate) struct SmoothFace {
    pub indices: Vec<usize>,
    /// The slopes of the model there, downwards.
    pub descent: Vec<f64>,
    /// The lower triangle of the penalty's Hessian: the places of two coordinates and what it is.
    added: Vec<(usize, usize, f64)>,
}

impl SmoothFace {
    /// That of z, where the smooth part has the slopes that `u` gives.
    pub fn of(parts: &[Part], penalty: OnBlocks, z: &[f64], u: impl Fn(usize) -> f64) -> Self {
        let (mut indices, mut descent, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for Part { number, indices: of_part, .. } in parts {
            let count = of_part.len();
            let (mut free, mut gradient) = (vec![true; count], vec![0.0; count]);
            let mut hessian = vec![0.0; count * count];
            let at = Smooth { free: &mut free, gradient: &mut gradient, hessian: Some(&mut hessian) };
            if !number.is_none_or(|number| penalty.smooth(number, &gather(of_part, z), at)) {
                continue;
            }
            let first = indices.len();
            let chosen: Vec<usize> = (0..count).filter(|&at| free[at]).collect();
            for (row, &a) in chosen.iter().enumerate() {
                indices.push(of_part[a]);
                descent.push(-(u(of_part[a]) + gradient[a]));
                let line = chosen[..=row].iter().enumerate();
                added.extend(line.map(|(column, &b)| (first + row, first + column, hessian[a * count + b])));
            }
        }
        Self { indices, descent, added }
    }

    /// Adds the penalty's Hessian times a vector.
    pub fn add_times(&self, v: &[f64], to: &mut [f64]) {
        for &(row, column, h) in &self.added {
            to[row] += h * v[column];
            if row != column {
                to[column] += h * v[row];
            }
        }
    }

    /// The diagonal of the penalty's Hessian.
    pub fn diagonal(&self) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.indices.len()];
        self.added.iter().filter(|(row, column, _)| row == column).for_each(|&(row, _, h)| diagonal[row] = h);
        diagonal
    }

    /// The point after a share of a step, projected back on the face, and what the penalty changes by.
    pub fn trial(&self, parts: &[Part], penalty: OnBlocks, z: &[f64], step: &[f64], share: f64) -> (Vec<f64>, f64) {
        let mut to = z.to_vec();
        self.indices.iter().zip(step).for_each(|(&at, delta)| to[at] += share * delta);
        let mut change = 0.0;
        for Part { number, indices, .. } in parts {
            let Some(number) = number else { continue };
            let (from, mut trial) = (gather(indices, z), gather(indices, &to));
            if from != trial {
                penalty.on_face(*number, &from, &mut trial);
                change += penalty.change(*number, &from, &trial);
                indices.iter().zip(trial).for_each(|(&at, trial)| to[at] = trial);
            }
        }
        (to, change)
    }
}

/// A point of the model and the slopes of its smooth part there.
struct Model<'a> {
    quadratic: &'a Quadratic,
    penalty: OnBlocks<'a>,
    parts: Vec<Part>,
    z: Vec<f64>,
    u: Vec<f64>,
}

/// The minimum of a model whose Hessian is formed, its coordinates in the order given.
pub(super) fn minimum(
    quadratic: &Quadratic,
    order: &[usize],
    at: &Expansion,
    blocks: &InSet,
    tolerance: f64,
) -> Vec<f64> {
    let blocks = blocks.in_order(order);
    let parts = blocks.parts(|indices| indices.iter().flat_map(|&at| gather(indices, quadratic.row(at))).collect());
    let mut model = Model { quadratic, penalty: blocks.on(), parts, z: gather(order, &at.x), u: gather(order, &at.u) };
    model.solve(tolerance);
    let mut z = at.x.clone();
    order.iter().zip(model.z).for_each(|(&index, value)| z[index] = value);
    z
}

/// No direction is curved more: the least of the trace of a Hessian and the largest sum of a line.
fn largest_curvature(hessian: &[f64], size: usize) -> f64 {
    let trace: f64 = hessian.iter().step_by(size + 1).sum();
    let line = |line: &[f64]| line.iter().map(|h| h.abs()).sum::<f64>();
    hessian.chunks_exact(size).map(line).fold(0.0, f64::max).min(trace)
}

impl Model<'_> {
    fn solve(&mut self, tolerance: f64) {
        let mut largest = self.parts.iter().map(|part| self.violation(part)).fold(0.0, f64::max);
        let (mut last, mut idle) = (f64::INFINITY, 0);
        for _ in 0..FACES {
            let mut worst = 0.0;
            for _ in 0..SWEEPS.max(self.z.len() / MOVES_OF_A_FACTOR) {
                worst = self.sweep();
                largest = largest.max(worst);
                if worst <= tolerance * largest {
                    return;
                }
            }
            // Where rounding stands in the way, more of it does not help.
            idle = if worst <= 0.5 * last { 0 } else { idle + 1 };
            if idle > IDLE {
                return;
            }
            last = last.min(worst);
            for _ in 0..NEWTON {
                if !self.step_on_face(0.3 * tolerance * largest) {
                    break;
                }
            }
        }
    }

    /// How much a part violates its condition, over the root of its curvature.
    fn violation(&self, part: &Part) -> f64 {
        let violation = part.violation(self.penalty, &gather(&part.indices, &self.z), &gather(&part.indices, &self.u));
        violation / part.curvature.sqrt()
    }

    /// Descent over all blocks; the largest violation that it met.
    fn sweep(&mut self) -> f64 {
        let parts = std::mem::take(&mut self.parts);
        let mut worst = 0.0f64;
        for part in &parts {
            let violation = self.violation(part);
            worst = worst.max(violation);
            if violation > 0.0 {
                let (z, u) = (gather(&part.indices, &self.z), gather(&part.indices, &self.u));
                self.move_to(&part.indices, &part.descended(self.penalty, z, u));
            }
        }
        self.parts = parts;
        worst
    }

    fn move_to(&mut self, indices: &[usize], to: &[f64]) {
        for (&at, &to) in indices.iter().zip(to) {
            let delta = to - self.z[at];
            if delta != 0.0 {
                self.u.iter_mut().zip(self.quadratic.row(at)).for_each(|(u, h)| *u += delta * h);
                self.z[at] = to;
            }
        }
    }

    /// A Newton step of the model on the face of z; false where there is none to take.
    fn step_on_face(&mut self, enough: f64) -> bool {
        let Some((face, step)) = self.newton_step(enough) else { return false };
        let mut size = 1.0;
        for _ in 0..HALVINGS {
            let (to, change) = face.trial(&self.parts, self.penalty, &self.z, &step, size);
            let delta: Vec<f64> = to.iter().zip(&self.z).map(|(to, z)| to - z).collect();
            let product = self.quadratic.times(&delta);
            if change + dot(&self.u, &delta) + 0.5 * dot(&delta, &product) < 0.0 {
                self.z = to;
                self.u.iter_mut().zip(product).for_each(|(u, product)| *u += product);
                return true;
            }
            size *= 0.5;
        }
        false
    }

    /// The step to where the model's second-order expansion on the face is lowest; nothing where it is near enough.
    fn newton_step(&self, enough: f64) -> Option<(SmoothFace, Vec<f64>)> {
        let face = SmoothFace::of(&self.parts, self.penalty, &self.z, |at| self.u[at]);
        let curvature = |at: usize| self.quadratic.row(at)[at];
        let is_near = |(&at, slope): (&usize, &f64)| slope.abs() <= enough * curvature(at).sqrt();
        if face.indices.iter().zip(&face.descent).all(is_near) {
            return None;
        }
        let size = face.indices.len();
        let mut matrix = Huge::zeros(size * size);
        for (row, &at) in face.indices.iter().enumerate() {
            let line = self.quadratic.row(at);
            for (column, &other) in face.indices[..=row].iter().enumerate() {
                matrix[row * size + column] = line[other];
            }
            // Enough to factor what is singular to rounding: duplicated columns, more columns than rows.
            matrix[row * size + row] *= 1.0 + 1e-11;
            matrix[row * size + row] += 1e-300;
        }
        face.added.iter().for_each(|&(row, column, h)| matrix[row * size + column] += h);
        let mut step = face.descent.clone();
        Cholesky::new(size, matrix)?.solve(&mut step);
        step.iter().all(|delta| delta.is_finite()).then_some((face, step))
    }
}

/// A point near the minimum of a model whose Hessian is known by its diagonal and its products.
pub(super) fn accelerated(
    at: &Expansion,
    blocks: &InSet,
    diagonal: &[f64],
    tolerance: f64,
    mut times: impl FnMut(&[f64]) -> Result<Vec<f64>>,
) -> Result<Vec<f64>> {
    let metric = metric(blocks, diagonal);
    let enough = tolerance * blocks.violation(&at.x, &at.u);
    // The curvature relative to the metric: it grows where a step shows more.
    let mut bound = 1.0;
    let (mut z, mut u) = (at.x.clone(), at.u.clone());
    let (mut before, mut u_before, mut momentum) = (z.clone(), u.clone(), 1.0f64);
    for _ in 0..ACCELERATED {
        let next = 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt());
        let share = (momentum - 1.0) / next;
        let ahead = |now: &[f64], before: &[f64]| -> Vec<f64> {
            now.iter().zip(before).map(|(now, before)| now + share * (now - before)).collect()
        };
        let (y, u_y) = (ahead(&z, &before), ahead(&u, &u_before));
        let (to, u_to) = loop {
            let to = proximal_step(blocks, &metric, bound, &y, &u_y);
            let delta: Vec<f64> = to.iter().zip(&z).map(|(to, z)| to - z).collect();
            let u_to: Vec<f64> = times(&delta)?.iter().zip(&u).map(|(change, u)| u + change).collect();
            let (mut curved, mut square) = (0.0, 0.0);
            for index in 0..to.len() {
                let step = to[index] - y[index];
                curved += step * (u_to[index] - u_y[index]);
                square += metric[index] * step * step;
            }
            if curved <= bound * square * (1.0 + 1e-9) || !curved.is_finite() {
                break (to, u_to);
            }
            bound = (1.1 * curved / square).max(1.2 * bound);
        };
        // Momentum that leads uphill is given up.
        let turn: f64 = (0..to.len()).map(|at| metric[at] * (y[at] - to[at]) * (to[at] - z[at])).sum();
        momentum = if turn > 0.0 { 1.0 } else { next };
        (before, z) = (z, to);
        (u_before, u) = (u, u_to);
        if blocks.violation(&z, &u) <= enough {
            break;
        }
    }
    Ok(z)
}

/// The diagonal, the same for all coordinates of a block: its largest.
fn metric(blocks: &InSet, diagonal: &[f64]) -> Vec<f64> {
    let mut metric = diagonal.to_vec();
    for (_, indices) in &blocks.blocks {
        let most = indices.iter().map(|&at| diagonal[at]).fold(0.0, f64::max);
        indices.iter().for_each(|&at| metric[at] = most);
    }
    metric
}

fn proximal_step(blocks: &InSet, metric: &[f64], bound: f64, y: &[f64], u: &[f64]) -> Vec<f64> {
    let step = |at: usize| if metric[at] > 0.0 { 1.0 / (bound * metric[at]) } else { 0.0 };
    let mut to: Vec<f64> = (0..y.len()).map(|at| y[at] - step(at) * u[at]).collect();
    for (number, indices) in &blocks.blocks {
        let mut trial = gather(indices, &to);
        blocks.on().prox(*number, step(indices[0]), &mut trial);
        indices.iter().zip(trial).for_each(|(&at, trial)| to[at] = trial);
    }
    to
}
