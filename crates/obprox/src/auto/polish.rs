//! Proximal Newton steps on one output of the working set.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rayon::prelude::*;

use super::descent::Descent;
use super::quadratic::Quadratic;
use super::search::search;
use super::{Auto, FEW, WorkingSet};
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::huge::Huge;
use crate::pass;
use crate::penalty::{ElasticNet, L1, Term};

/// A working set of at most this many coordinates has its Hessian formed; a larger one is walked by its columns.
const LARGEST_HESSIAN: usize = 1500;
/// So is one of more than this many coordinates whose Hessian would have [`HOLLOW`] times as many entries as its columns.
const SMALL_HESSIAN: usize = 256;
const HOLLOW: usize = 64;
/// Along columns each digit of the model's minimum costs as much as the one before.
const ROUGHER: f64 = 10.0;
/// A Hessian is kept while each step by it leaves at most this share of the violation: forming it anew costs as much as
/// many steps.
const SERVES: f64 = 0.5;
/// The same with few features, whose Hessians cost less.
const SERVES_FEW: f64 = 0.25;
/// After a step shorter than this the next is by the loss's upper curvature.
const SHORT: f64 = 0.01;

/// A coordinate is left out of a step where it is zero and its slope is below this share of its λ.
const LIVELY: f64 = 0.7;
/// A Hessian that lacks no more coordinates than that is given their lines.
const MOST_MISSING: usize = 48;
/// How much further steps go that need no new Hessian.
const FURTHER: f64 = 0.03;

/// The Hessian of a step, and what it was made for.
pub(super) struct Held {
    quadratic: Quadratic,
    /// The places of the working set in the order of the Hessian.
    order: Vec<usize>,
    /// Whether each place of the working set is among them.
    holds: Vec<bool>,
    output: usize,
    damping: f64,
}

impl Held {
    fn new(hessian: Huge<f64>, order: Vec<usize>, places: usize, output: usize, damping: f64) -> Self {
        let mut holds = vec![false; places];
        order.iter().for_each(|&at| holds[at] = true);
        Self { quadratic: Quadratic::new(order.len(), hessian), order, holds, output, damping }
    }

    /// Goes with its features to a set that has more of them.
    pub fn move_to(&mut self, from: &[u32], to: &[u32]) {
        let place = |&at: &usize| match from.get(at) {
            Some(feature) => to.binary_search(feature).expect("a set that has all of them"),
            None => to.len() + at - from.len(),
        };
        self.order = self.order.iter().map(place).collect();
        self.holds = vec![false; self.holds.len() + to.len() - from.len()];
        self.order.iter().for_each(|&at| self.holds[at] = true);
    }

    /// Takes in some more places, whose lines over all places of the set are given.
    fn extend(&mut self, places: &[usize], lines: &[Vec<f64>]) {
        self.order.extend(places);
        places.iter().for_each(|&at| self.holds[at] = true);
        let lines = lines.iter().map(|line| self.order.iter().map(|&at| line[at]).collect()).collect::<Vec<Vec<f64>>>();
        self.quadratic.extend(&lines);
    }
}

/// Writes what is held; a Hessian formed anew would be another one.
pub(super) fn save(held: Option<&Held>, out: &mut dyn Write) -> io::Result<()> {
    let none: [f64; 0] = [];
    write_array(out, &held.map_or([0.0; 2], |held| [held.output as f64, held.damping]))?;
    write_array(out, &held.map_or(vec![], |held| held.order.iter().map(|&at| at as u32).collect()))?;
    write_array(out, held.map_or(&none[..], |held| held.quadratic.hessian()))?;
    write_array(out, &held.map_or(vec![], |held| held.quadratic.factored().iter().map(|&at| at as u32).collect()))
}

/// Reads it back, for a working set of that many coordinates.
pub(super) fn load(size: usize, input: &mut dyn Read) -> io::Result<Option<Held>> {
    let mut made_for = [0.0; 2];
    read_exactly(input, &mut made_for)?;
    let order: Vec<u32> = read_array(input, size)?;
    let hessian: Huge<f64> = read_array(input, size * size)?.into();
    let factored: Vec<u32> = read_array(input, size)?;
    let is_face = factored.is_sorted_by(|a, b| a < b) && factored.last().is_none_or(|&at| (at as usize) < order.len());
    if hessian.len() != order.len() * order.len() || order.iter().any(|&at| at as usize >= size) || !is_face {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a Hessian of another working set"));
    }
    let order: Vec<usize> = order.into_iter().map(|at| at as usize).collect();
    let [output, damping] = made_for;
    Ok((!order.is_empty()).then(|| {
        let mut held = Held::new(hessian, order, size, output as usize, damping);
        held.quadratic.factor_again(factored.into_iter().map(|at| at as usize).collect());
        held
    }))
}

/// One output of the working set: its coordinates, the intercept last where there is one.
struct Place {
    terms: Vec<ElasticNet>,
    x: Vec<f64>,
    /// The slopes of the smooth part.
    u: Vec<f64>,
}

impl Place {
    fn violation(&self) -> f64 {
        let of = |at: usize| L1 { l1: self.terms[at].l1 }.violation(self.x[at], self.u[at]);
        (0..self.x.len()).fold(0.0, |most: f64, at| most.max(of(at)))
    }
}

impl Auto<'_> {
    /// Steps until the violation has fallen enough; whether anything moved.
    pub(super) fn polish(&mut self, output: usize, steps: usize, enough: f64) -> bool {
        let problem = Arc::clone(&self.reduced.problem);
        let outputs = problem.outputs();
        let set = Arc::clone(&self.set);
        let features = &set.features[..];
        let can_be_careful = outputs == 1 && problem.loss().upper_curvature(&[0.0], problem.targets()[0], &mut [0.0]);
        let serves = if problem.n_features() <= FEW { SERVES_FEW } else { SERVES };
        let (mut moved, mut objective, mut last) = (false, f64::NAN, f64::INFINITY);
        for step in 0..steps {
            let (slopes, curvatures) = self.rows(output);
            // The first is where the certificate looked.
            let place = self.place(output, &slopes, (step == 0 && outputs == 1).then_some(&self.gradient));
            let violation = place.violation();
            if violation > serves * last || self.careful {
                self.held = None;
            }
            // A step by a Hessian that is at hand is cheap: it goes further than one that needs a new one.
            if violation <= if self.held.is_some() { FURTHER * enough } else { enough } {
                break;
            }
            last = violation;

            let tolerance = 0.01 * (enough / violation).min(1.0);
            let z = self.minimum(&set, output, &place, &curvatures, tolerance);
            let Place { terms, x, u } = place;
            let mut expected = 0.0;
            let delta: Vec<f64> = z.iter().zip(&x).map(|(z, x)| z - x).collect();
            for at in (0..x.len()).filter(|&at| delta[at] != 0.0) {
                expected += u[at] * delta[at] + terms[at].l1 * (z[at].abs() - x[at].abs());
            }
            if objective.is_nan() {
                objective = self.objective(&self.margins, features, &x, &terms);
            }
            if expected >= 0.0 || expected.is_nan() {
                break;
            }
            let shift = self.shift(&set, output, &delta);
            let value = |margins: &[f64], x: &[f64]| self.objective(margins, features, x, &terms);
            let taken = search(objective, expected, (&x, &z), (&self.margins, &shift), value);
            let size = taken.as_ref().map_or(0.0, |step| step.size);
            self.steps += 1;
            let was_careful = std::mem::replace(&mut self.careful, size < SHORT && can_be_careful);
            if size < 1.0 || was_careful {
                self.held = None;
            }
            let Some(step) = taken else {
                if self.careful && !was_careful {
                    continue;
                }
                // At the end of what rounding allows, or where the model is no good: damp, and leave it to the next
                // round.
                self.damping = (self.damping * 100.0).min(1.0);
                break;
            };
            moved = true;
            (objective, self.margins) = (step.objective, step.margins);
            for (at, &feature) in features.iter().enumerate() {
                self.point.weights[feature as usize * outputs + output] = step.x[at];
            }
            if problem.has_intercept() {
                self.point.intercept[output] = step.x[features.len()];
            }
            // Short steps mean that the model bends too little: damp it until whole steps do. Not for ever: where the
            // curvature jumps, as with the squared hinge, the same damping would hold up every later step.
            self.damping = match size {
                1.0 => (self.damping / 10.0).max(1e-10),
                size if size < 0.2 && self.rounds <= 5 => (self.damping * 10.0).clamp(0.03, 1.0),
                _ => (self.damping * 4.0).min(1.0),
            };
        }
        moved
    }

    /// The coordinates of one output and the slopes there, out of the gradient where that is at hand; `slopes` are those
    /// of the rows.
    fn place(&self, output: usize, slopes: &[f64], gradient: Option<&Vec<f64>>) -> Place {
        let (problem, set) = (self.problem(), &self.set);
        let outputs = problem.outputs();
        let mut terms: Vec<ElasticNet> = set.features.iter().map(|&feature| self.term(feature as usize)).collect();
        let weight = |&feature: &u32| self.point.weights[feature as usize * outputs + output];
        let mut x: Vec<f64> = set.features.iter().map(weight).collect();
        let mut u = match gradient {
            Some(gradient) => set.features.iter().map(|&feature| gradient[feature as usize]).collect(),
            None => set.slopes(problem, slopes),
        };
        u.iter_mut().enumerate().for_each(|(at, u)| *u += terms[at].l2 * x[at]);
        // The intercept is one more coordinate, without penalty.
        if problem.has_intercept() {
            terms.push(ElasticNet { l1: 0.0, l2: 0.0 });
            x.push(self.point.intercept[output]);
            u.push(slopes.iter().sum());
        }
        Place { terms, x, u }
    }

    /// A point near the minimum of the model around a place.
    fn minimum(
        &mut self,
        set: &WorkingSet,
        output: usize,
        place: &Place,
        curvatures: &[f64],
        tolerance: f64,
    ) -> Vec<f64> {
        let Place { terms, x, u } = place;
        let is_hollow = || HOLLOW * set.entries(self.problem()) < x.len() * x.len();
        if x.len() > LARGEST_HESSIAN || x.len() > SMALL_HESSIAN && is_hollow() {
            let columns = set.together(self.problem());
            return Descent { columns, terms, curvatures, damping: self.damping }.solve(x, u, ROUGHER * tolerance);
        }
        let free = |at: usize| x[at] != 0.0 || u[at].abs() >= LIVELY * terms[at].l1;
        let mut held = self.held.take().filter(|held| held.output == output && held.damping == self.damping);
        if let Some(known) = &mut held {
            let missing: Vec<usize> = (0..x.len()).filter(|&at| !known.holds[at] && free(at)).collect();
            if !missing.is_empty() && !self.extend(known, set, &missing, terms, curvatures) {
                held = None;
            }
        }
        self.held = held;
        if self.held.is_none() {
            let order = set.order(self.problem(), free);
            let hessian = self.hessian(set, &order, terms, curvatures);
            self.held = Some(Held::new(hessian, order, x.len(), output, self.damping));
        }
        let Held { quadratic, order, .. } = self.held.as_mut().expect("made above");
        let l1: Vec<f64> = order.iter().map(|&at| terms[at].l1).collect();
        let (mut ordered, mut slope): (Vec<f64>, Vec<f64>) = order.iter().map(|&at| (x[at], u[at])).unzip();
        quadratic.solve(&l1, &mut ordered, &mut slope, tolerance);
        let mut z = x.clone();
        order.iter().zip(ordered).for_each(|(&at, value)| z[at] = value);
        z
    }

    /// Takes some more places into a Hessian; false where another one had better be made.
    fn extend(
        &self,
        held: &mut Held,
        set: &WorkingSet,
        places: &[usize],
        terms: &[ElasticNet],
        curvatures: &[f64],
    ) -> bool {
        let problem = self.problem();
        // With few features a Hessian costs little, and a new one serves better than an old one that has grown.
        if places.len() > MOST_MISSING || problem.n_features() <= FEW {
            return false;
        }
        let mut lines = set.gram_lines(problem, places, curvatures);
        for (line, &at) in lines.iter_mut().zip(places) {
            line[at] += terms[at].l2 + self.damping * line[at];
        }
        let all_bend = lines.iter().zip(places).all(|(line, &at)| line[at] > 0.0);
        if all_bend {
            held.extend(places, &lines);
        }
        all_bend
    }

    /// The Hessian on the ordered places of the working set, whose last is the intercept where there is one.
    fn hessian(&self, set: &WorkingSet, order: &[usize], terms: &[ElasticNet], curvatures: &[f64]) -> Huge<f64> {
        let (problem, size) = (self.problem(), order.len());
        let terms: Vec<ElasticNet> = order.iter().map(|&at| terms[at]).collect();
        let mut gram = set.gram(problem, order, curvatures);
        let hessian = &mut gram[..];
        // A column of rows that are all flat, as those beyond Huber's δ, would have no scale to step by: it gets that
        // of rows with all the curvature there can be.
        if (0..size).any(|at| hessian[at * size + at] + terms[at].l2 == 0.0) {
            let steepest = problem.loss().smoothness().unwrap_or(1.0) / problem.n_rows() as f64;
            let squares = set.gram(problem, order, &vec![1.0; problem.n_rows()]);
            for at in (0..size).filter(|at| terms[*at].l2 == 0.0).map(|at| at * size + at) {
                hessian[at] = if hessian[at] == 0.0 { steepest * squares[at] } else { hessian[at] };
            }
        }
        for at in 0..size {
            // Relative to the column itself: the units of the others do not matter.
            let diagonal = &mut hessian[at * size + at];
            *diagonal += terms[at].l2 + self.damping * *diagonal;
            for other in 0..at {
                hessian[other * size + at] = hessian[at * size + other];
            }
        }
        gram
    }

    /// What a step on the working set adds to the margins.
    fn shift(&self, set: &WorkingSet, output: usize, delta: &[f64]) -> Vec<f64> {
        let outputs = self.problem().outputs();
        let mut shift = vec![0.0; self.problem().n_rows() * outputs];
        if let Some(&intercept) = delta.get(set.features.len()) {
            shift.iter_mut().skip(output).step_by(outputs).for_each(|shift| *shift = intercept);
        }
        let places = delta[..set.features.len()].iter().enumerate();
        let moved = places.filter(|(_, delta)| **delta != 0.0).map(|(place, &delta)| (output, place, delta));
        set.add_to(self.problem(), &moved.collect::<Vec<_>>(), &mut shift);
        shift
    }

    /// wᵢℓ′/N and wᵢℓ″/N of each row for one output.
    fn rows(&self, output: usize) -> (Vec<f64>, Vec<f64>) {
        const BLOCK: usize = 1024;
        let (problem, outputs, n_rows) = (self.problem(), self.problem().outputs(), self.problem().n_rows());
        let loss = problem.loss();
        let (mut slopes, mut curvatures) = (vec![0.0; n_rows], vec![0.0; n_rows]);
        let out = slopes.par_chunks_mut(BLOCK).zip(curvatures.par_chunks_mut(BLOCK));
        out.enumerate().for_each(|(block, (slopes, curvatures))| {
            let first = block * BLOCK;
            let margins = &self.margins[first * outputs..(first + slopes.len()) * outputs];
            let targets = &problem.targets()[first..first + slopes.len()];
            if outputs == 1 {
                loss.expand(margins, targets, slopes, curvatures);
            } else {
                let (mut all_slopes, mut all_curvatures) = (vec![0.0; margins.len()], vec![0.0; margins.len()]);
                loss.expand(margins, targets, &mut all_slopes, &mut all_curvatures);
                for at in 0..slopes.len() {
                    (slopes[at], curvatures[at]) =
                        (all_slopes[at * outputs + output], all_curvatures[at * outputs + output]);
                }
            }
            if self.careful {
                for (at, &target) in targets.iter().enumerate() {
                    loss.upper_curvature(&margins[at..at + 1], target, &mut curvatures[at..at + 1]);
                }
            }
            let Some(weights) = problem.row_weights() else {
                let share = 1.0 / n_rows as f64;
                slopes.iter_mut().chain(curvatures).for_each(|value| *value *= share);
                return;
            };
            for (at, weight) in weights[first..][..slopes.len()].iter().enumerate() {
                // A row that does not count may well have an infinite slope.
                let share = |value: f64| if *weight == 0.0 { 0.0 } else { weight / n_rows as f64 * value };
                (slopes[at], curvatures[at]) = (share(slopes[at]), share(curvatures[at]));
            }
        });
        (slopes, curvatures)
    }

    /// F with the coordinates of one output of the working set as given; what is constant there is left out.
    fn objective(&self, margins: &[f64], features: &[u32], x: &[f64], terms: &[ElasticNet]) -> f64 {
        let penalty: f64 = (0..features.len()).map(|at| terms[at].value(x[at])).sum();
        pass::mean_loss(self.problem(), margins) + penalty
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Matrix};
    use crate::loss::LossKind;
    use crate::problem::{Problem, Terms};

    #[test]
    fn a_hessian_that_grows_is_the_one_made_at_once() {
        let (n_rows, n_cols) = (90, FEW + 30);
        let value = |row: usize, column: usize| ((row * 131 + column * 37 + row * column) % 101) as f64 / 50.0 - 1.0;
        let present = |row: usize, column: usize| (row * 7 + column * (3 + row % 4)).is_multiple_of(5);
        let rows: Vec<Vec<(u32, f64)>> = (0..n_rows)
            .map(|row| (0..n_cols).filter(|&j| present(row, j)).map(|j| (j as u32, value(row, j))).collect())
            .collect();
        let targets = (0..n_rows).map(|row| f64::from(row % 3 == 0)).collect();
        let data = Dataset::new(Matrix::from_rows(n_cols, &rows), targets);
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms { l2: 0.5, ..Terms::default() }).unwrap();
        let auto = Auto::new(&problem, None, None).unwrap();
        let curvatures: Vec<f64> = (0..n_rows).map(|row| 1.0 / (3.0 + row as f64)).collect();
        let terms = |set: &WorkingSet| -> Vec<ElasticNet> {
            let of = set.features.iter().map(|&feature| auto.term(feature as usize));
            of.chain([ElasticNet { l1: 0.0, l2: 0.0 }]).collect()
        };

        // Some features, then others before, between and after them.
        let first = WorkingSet::new(auto.problem(), (5..60).step_by(3).collect(), &WorkingSet::default());
        let order = first.order(auto.problem(), |_| true);
        let hessian = auto.hessian(&first, &order, &terms(&first), &curvatures);
        let mut held = Held::new(hessian, order, first.features.len() + 1, 0, auto.damping);
        let mut features = first.features.clone();
        features.extend([0, 6, 7, 300]);
        features.sort_unstable();
        let set = WorkingSet::new(auto.problem(), features, &first);
        held.move_to(&first.features, &set.features);
        let missing: Vec<usize> = (0..set.features.len()).filter(|&at| !held.holds[at]).collect();
        assert_eq!(missing.len(), 4);
        assert!(auto.extend(&mut held, &set, &missing, &terms(&set), &curvatures));

        let order = set.order(auto.problem(), |_| true);
        let whole = auto.hessian(&set, &order, &terms(&set), &curvatures);
        let size = order.len();
        assert_eq!((held.order.len(), held.quadratic.hessian().len()), (size, size * size));
        let place = |at: usize| held.order.iter().position(|&other| other == at).expect("every place is held");
        for (row, &a) in order.iter().enumerate() {
            for (column, &b) in order.iter().enumerate() {
                let (grown, made) = (held.quadratic.hessian()[place(a) * size + place(b)], whole[row * size + column]);
                // Hessians are made of values in single precision.
                assert!((grown - made).abs() <= 1e-6 * made.abs().max(1e-3), "{a}, {b}: {grown} and {made}");
            }
        }
    }
}
