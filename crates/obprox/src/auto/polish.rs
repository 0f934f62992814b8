//! Proximal Newton steps on one output of the working set.

use std::borrow::Cow;
use std::sync::Arc;

use rayon::prelude::*;

use super::descent::Descent;
use super::held::Held;
use super::place::Place;
use super::quadratic::LARGE;
use super::search::{search, shifted};
use super::{Auto, End, FEW, WorkingSet, stays_in_rows};
use crate::huge::Huge;
use crate::intercept;
use crate::pass::{self, Look};
use crate::penalty::{ElasticNet, Term};
use crate::problem::{Point, Problem};

/// A working set of at most this many coordinates has its Hessian formed; a larger one is walked by its columns.
pub(super) const LARGEST_HESSIAN: usize = 1500;
/// So is one of more than this many coordinates whose Hessian would have [`HOLLOW`] times as many entries as its columns.
const SMALL_HESSIAN: usize = 256;
const HOLLOW: usize = 64;
/// What a model's minimum may violate of what violates before, relative to what the round is to leave of it: the minimum of
/// a large one takes longer than the step that it spares, that of a small one does not.
const ROUGHLY: f64 = 0.03;
const CLOSELY: f64 = 0.01;
/// Along columns each digit of the model's minimum costs as much as the one before: on the way it is rougher still.
const ROUGHER: f64 = 10.0;
/// A Hessian is kept while each step by it leaves at most this share of the violation: forming it anew costs as much as
/// many steps.
const SERVES: f64 = 0.5;
/// The same with few features, whose Hessians cost less.
const SERVES_FEW: f64 = 0.25;
/// The same where a Hessian costs no more than a look at the rows: where it has at most so many entries a row.
const SERVES_CHEAP: f64 = 0.02;
const CHEAP: f64 = 3.0;
/// After a step shorter than this the next knows of what stopped it: see [`Auto::secants`].
const SHORT: f64 = 0.2;

/// Steps of a round that promise less than the last bit of F: some of them still win digits of the slopes.
const MOST_HIDDEN: usize = 3;

/// A coordinate is left out of a step where it is zero and its slope is below this share of its λ.
const LIVELY: f64 = 0.7;
/// A Hessian that lacks no more coordinates than that is given their lines.
const MOST_MISSING: usize = 48;
/// How much further steps go that need no new Hessian.
const FURTHER: f64 = 0.03;
/// The share of the gap asked for at which a foreseen one is good enough.
pub(super) const IN_SIGHT: f64 = 0.5;
/// What that share is multiplied by where the gap is quadratic.
const SQUARED: f64 = 0.01;
/// What a step missed at the λ before is scaled by at most this for the next.
const LONGEST: f64 = 4.0;

impl End {
    /// The coordinates of some features there, and their slopes; the intercept, where one is to come last, is at its
    /// optimum.
    fn in_set(&self, features: &[u32], terms: &[ElasticNet], size: usize) -> (Vec<f64>, Vec<f64>) {
        let of = |(&feature, term): (&u32, &ElasticNet)| {
            let x = self.point.weights[feature as usize];
            (x, self.gradient[feature as usize] + term.l2 * x)
        };
        let intercept = (size > features.len()).then(|| (self.point.intercept[0], 0.0));
        features.iter().zip(terms).map(of).chain(intercept).unzip()
    }
}

impl Auto<'_> {
    /// Steps until the violation has fallen enough; whether anything moved.
    pub(super) fn polish(&mut self, output: usize, steps: usize, enough: f64) -> bool {
        let problem = Arc::clone(&self.reduced.problem);
        let outputs = problem.outputs();
        let set = Arc::clone(&self.set);
        let features = &set.features[..];
        let (mut moved, mut objective, mut last, mut hidden) = (false, f64::NAN, f64::INFINITY, 0);
        let (in_rows, is_large) = (stays_in_rows(&problem), features.len() >= LARGE);
        // A round that sees every feature, or a set that has seen the λ before, need not stop and look at the others.
        let sees_all = in_rows || self.floor.is_some();
        for step in 0..steps {
            let columns_seen = (!in_rows).then(|| self.rows(output));
            let place = match &columns_seen {
                // The first is where the certificate looked.
                Some((slopes, _)) if step > 0 || outputs > 1 => {
                    self.place(output, set.slopes(&problem, slopes), slopes.iter().sum())
                }
                Some((slopes, _)) => self.place(output, self.slopes_of_set(), slopes.iter().sum()),
                None => self.place(output, self.slopes_of_set(), self.seen().intercept_slope),
            };
            let violation = place.violation();
            let in_sight = self.goal.filter(|_| step > 0 && self.stretch == 1.0).map(|goal| {
                let scale = f64::max(objective.abs(), problem.least_scale());
                // With λ₂ the gap is the square of what the weights are off by: they deserve one more step.
                let share = IN_SIGHT * if problem.regularization().l2 > 0.0 { SQUARED } else { 1.0 };
                let is_small = |place: &Place| place.gap(problem.margin_unit(), scale) <= share * goal * scale;
                // The proof has the intercept at its optimum.
                is_small(&place)
                    || self.held.as_ref().is_some_and(|held| is_small(&held.centred(&place, features.len())))
            });
            if violation > self.serves() * last || !self.secants.is_empty() {
                self.held = None;
            }
            // A step by a Hessian that is at hand is cheap: it goes further than one that needs a new one.
            let near = violation <= if self.held.is_some() { FURTHER * enough } else { enough };
            if in_sight.unwrap_or(near) || near && !sees_all {
                break;
            }
            last = violation;

            let share = (enough / violation).min(1.0);
            let curvatures = columns_seen.as_ref().map(|(_, curvatures)| &curvatures[..]);
            let begins = step == 0 && self.rounds == 1 && outputs == 1;
            let z = self.minimum(&set, output, &place, curvatures, share, begins);
            let Place { terms, x, u } = place;
            let mut expected = 0.0;
            let delta: Vec<f64> = z.iter().zip(&x).map(|(z, x)| z - x).collect();
            for at in (0..x.len()).filter(|&at| delta[at] != 0.0) {
                expected += u[at] * delta[at] + terms[at].l1 * (z[at].abs() - x[at].abs());
            }
            let penalty = |x: &[f64]| (0..features.len()).map(|at| terms[at].value(x[at])).sum::<f64>();
            if objective.is_nan() {
                objective =
                    penalty(&x) + if in_rows { self.seen().loss } else { pass::mean_loss(&problem, &self.margins) };
            }
            hidden += usize::from(-expected <= f64::EPSILON * objective.abs());
            if expected >= 0.0 || expected.is_nan() || hidden > MOST_HIDDEN {
                break;
            }
            let (mut whole, mut shift) = (None, Vec::new());
            if !in_rows {
                shift = self.shift(&set, output, &delta);
            }
            let taken = search(objective, expected, (&x, &z), |size, x| {
                if in_rows && size == 1.0 {
                    let look = self.look_at(&problem, x);
                    let loss = look.loss;
                    whole = Some(look);
                    return loss + penalty(x);
                }
                // What the whole step would do to the margins is known: any part of it costs no pass over the data.
                if let (Some(look), []) = (&whole, &shift[..]) {
                    shift = look.margins.iter().zip(&self.seen().margins).map(|(to, from)| to - from).collect();
                }
                let margins = if in_rows { &self.seen().margins } else { &self.margins };
                pass::mean_loss(&problem, &shifted(margins, size, &shift)) + penalty(x)
            });
            let size = taken.as_ref().map_or(0.0, |step| step.size);
            self.steps += 1;
            let was_lifted = !self.secants.is_empty();
            // A loss that grows ever faster is met by damping.
            if outputs == 1 && problem.loss().smoothness().is_some() {
                self.remember_secants(&problem, size, &shift);
            }
            if size < 1.0 || was_lifted {
                self.held = None;
            }
            let Some(step) = taken else {
                // The next model knows what this one ran into.
                if !self.secants.is_empty() && hidden == 0 {
                    continue;
                }
                // At the end of what rounding allows, or where the model is no good: damp, and leave it to the next
                // round.
                self.damping = (self.damping * 100.0).min(1.0);
                break;
            };
            moved = true;
            objective = step.objective;
            if in_rows {
                let look = match whole {
                    Some(look) if size == 1.0 => look,
                    whole => {
                        self.spare = whole;
                        self.look_at(&problem, &step.x)
                    }
                };
                self.spare = self.look.replace(look);
            } else {
                self.margins = shifted(&self.margins, size, &shift);
            }
            for (at, &feature) in features.iter().enumerate() {
                self.point.weights[feature as usize * outputs + output] = step.x[at];
            }
            if problem.has_intercept() {
                self.point.intercept[output] = step.x[features.len()];
                if !in_rows && outputs == 1 && is_large {
                    // It costs little beside a step, and what it is off by would hide how near the others are.
                    intercept::centre(&problem, &mut self.margins, &mut self.point.intercept);
                }
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

    /// Looks at a point given as the coordinates of the working set, which is all features.
    fn look_at(&mut self, problem: &Problem, x: &[f64]) -> Look {
        let (weights, intercept) = x.split_at(problem.n_features());
        let intercept = vec![intercept.first().copied().unwrap_or(0.0)];
        pass::look(problem, &Point { weights: weights.to_vec(), intercept }, self.spare.take())
    }

    /// The share of the violation that a step by the Hessian at hand may leave.
    fn serves(&self) -> f64 {
        let problem = self.problem();
        if problem.n_features() > FEW {
            return SERVES;
        }
        let (rows, cells) = (problem.matrix(), problem.n_rows() as f64 * problem.n_features() as f64);
        let filled = if rows.is_dense() { 1.0 } else { rows.nnz() as f64 / cells };
        let is_cheap = |held: &Held| filled * held.order.len() as f64 <= CHEAP;
        if self.held.as_ref().is_some_and(is_cheap) { SERVES_CHEAP } else { SERVES_FEW }
    }

    /// What the last look saw, where the rows are worked on.
    fn seen(&self) -> &Look {
        self.look.as_ref().expect("a round begins with a look")
    }

    /// The slopes of the working set, out of those of all features.
    fn slopes_of_set(&self) -> Vec<f64> {
        let gradient = self.gradient();
        self.set.features.iter().map(|&feature| gradient[feature as usize]).collect()
    }

    /// wᵢℓ″/N of each row, where they are not known where the last look was.
    fn curvatures<'b>(&self, known: Option<&'b [f64]>) -> Cow<'b, [f64]> {
        if let Some(known) = known {
            return known.into();
        }
        let (problem, look) = (self.problem(), self.seen());
        let mut curvatures = look.curvatures.clone();
        curvatures.iter_mut().zip(&self.secants).for_each(|(h, &secant)| *h = h.max(secant));
        let share = 1.0 / problem.n_rows() as f64;
        for (row, curvature) in curvatures.iter_mut().enumerate() {
            let weight = problem.row_weight(row);
            *curvature = if weight == 0.0 { 0.0 } else { weight * share * *curvature };
        }
        curvatures.into()
    }

    /// After a short step: how the slope of each row would have changed over the rest of it. After a whole one: nothing.
    fn remember_secants(&mut self, problem: &Problem, size: f64, shift: &[f64]) {
        if size == 1.0 {
            self.secants.clear();
        }
        if size >= SHORT || shift.is_empty() {
            return;
        }
        let margins = self.look.as_ref().map_or(&self.margins, |look| &look.margins);
        let from = pass::row_gradients(problem, &shifted(margins, size, shift));
        let to = pass::row_gradients(problem, &shifted(margins, 1.0, shift));
        self.secants.resize(shift.len(), 0.0);
        for (at, secant) in self.secants.iter_mut().enumerate() {
            let now = (to[at] - from[at]) / ((1.0 - size) * shift[at]);
            *secant = if now.is_finite() { secant.max(now) } else { *secant };
        }
    }

    /// The coordinates of one output and the slopes there: those of the set's features, and that of the intercept.
    fn place(&self, output: usize, mut u: Vec<f64>, intercept_slope: f64) -> Place {
        let (problem, set) = (self.problem(), &self.set);
        let outputs = problem.outputs();
        let mut terms: Vec<ElasticNet> = set.features.iter().map(|&feature| self.term(feature as usize)).collect();
        let weight = |&feature: &u32| self.point.weights[feature as usize * outputs + output];
        let mut x: Vec<f64> = set.features.iter().map(weight).collect();
        u.iter_mut().enumerate().for_each(|(at, u)| *u += terms[at].l2 * x[at]);
        // The intercept is one more coordinate, without penalty.
        if problem.has_intercept() {
            terms.push(ElasticNet { l1: 0.0, l2: 0.0 });
            x.push(self.point.intercept[output]);
            u.push(intercept_slope);
        }
        Place { terms, x, u }
    }

    /// A point near the minimum of the model around a place; `share` is what may be left of the violation there.
    fn minimum(
        &mut self,
        set: &WorkingSet,
        output: usize,
        place: &Place,
        curvatures: Option<&[f64]>,
        share: f64,
        begins: bool,
    ) -> Vec<f64> {
        let Place { terms, x, u } = place;
        let is_hollow = || HOLLOW * set.entries(self.problem()) < x.len() * x.len();
        if x.len() > LARGEST_HESSIAN || x.len() > SMALL_HESSIAN && is_hollow() {
            let columns = set.together(self.problem());
            let (curvatures, damping) = (&self.curvatures(curvatures)[..], self.damping);
            let tolerance = ROUGHLY * share * if share < 1.0 { ROUGHER } else { 1.0 };
            return Descent { columns, terms, curvatures, damping }.solve(x, u, tolerance);
        }
        let free = |at: usize| x[at] != 0.0 || u[at].abs() >= LIVELY * terms[at].l1;
        let mut held = self.held.take().filter(|held| held.output == output && held.is_damped_by(self.damping));
        if let Some(known) = &mut held {
            let wanted = |at: usize| x[at] != 0.0 || u[at].abs() > terms[at].l1;
            let missing: Vec<usize> = (0..x.len()).filter(|&at| !known.holds[at] && wanted(at)).collect();
            if !missing.is_empty() && !self.extend(known, set, &missing, terms, &self.curvatures(curvatures)) {
                held = None;
            }
        }
        self.held = held;
        if self.held.is_none() {
            let order = set.order(self.problem(), free);
            let hessian = self.hessian(set, &order, terms, &self.curvatures(curvatures));
            let near = if begins { self.ends[0].as_ref().map(|end| end.lambda) } else { Some(self.problem().lambda()) };
            self.held = Some(Held { near, ..Held::new(hessian, order, x.len(), output, self.damping) });
        }
        let tolerance = share * if set.features.len() >= LARGE { ROUGHLY } else { CLOSELY };
        let foreseen = if begins { self.foreseen(place) } else { None };
        self.held.as_mut().expect("made above").minimum(foreseen.as_ref().unwrap_or(place), tolerance)
    }

    /// The place where a fit starts, with slopes that make up for what the Hessian does not know.
    ///
    /// Where the Hessian changes steadily along a path, t = ln λ, one made at t_H misses a change of the slopes on the way
    /// from t_a to t_b that is in proportion to (t_a + t_b)/2 − t_H. What it missed on the way to this start can be seen.
    fn foreseen(&self, place: &Place) -> Option<Place> {
        let ([Some(from), Some(before)], Some(held)) = (&self.ends, &self.held) else { return None };
        let to = self.problem().lambda();
        let (length, length_before) = ((to / from.lambda).ln(), (from.lambda / before.lambda).ln());
        let near = held.near?;
        let distance = |a: f64, b: f64| 0.5 * (a / near * (b / near)).ln();
        let ratio = length / length_before * distance(from.lambda, to) / distance(before.lambda, from.lambda);
        // The Hessian may be of the middle of the way before, which then tells nothing.
        if !(ratio.abs() <= LONGEST && length * length_before > 0.0) {
            return None;
        }
        let (x, slopes) = before.in_set(&self.set.features, &place.terms, place.x.len());
        let step: Vec<f64> = held.order.iter().map(|&at| place.x[at] - x[at]).collect();
        let mut u = place.u.clone();
        for (&at, foretold) in held.order.iter().zip(held.quadratic.times(&step)) {
            u[at] += ratio * (place.u[at] - slopes[at] - foretold);
        }
        Some(Place { terms: place.terms.clone(), x: place.x.clone(), u })
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
            curvatures.iter_mut().zip(self.secants.iter().skip(first)).for_each(|(h, &secant)| *h = h.max(secant));
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auto::Carry;
    use crate::data::{Dataset, Matrix};
    use crate::fit::{Ended, Run, Settings, Solver};
    use crate::loss::LossKind;
    use crate::observe::Control;
    use crate::problem::{Lambda, Terms};

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

    /// Some rows of a few features, and their fits at λ_max/2 and a tenth less each time, as on a path.
    fn path(l2: f64, count: i32) -> (Vec<Problem>, Carry) {
        let (n_rows, n_cols) = (400, 6);
        let value =
            |row: usize, column: usize| ((row * 7919 + column * 104_729 + row * column) % 1009) as f64 / 504.0 - 1.0;
        let cells: Vec<f64> = (0..n_rows * n_cols).map(|at| value(at / n_cols, at % n_cols)).collect();
        let signal = |row: usize| 3.0 * value(row, 0) - 2.0 * value(row, 1) + value(row, 2) + value(row * 31, 7);
        let targets = (0..n_rows).map(|row| f64::from(signal(row) > 0.4)).collect();
        let data = Dataset::new(Matrix::from_dense(n_rows, n_cols, &cells), targets);
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms { l2, ..Terms::default() }).unwrap();
        let at = |step: i32| problem.clone().with_lambda(Lambda::OfMax(0.5 * 0.9f64.powi(step))).unwrap();
        let problems: Vec<Problem> = (0..=count).map(at).collect();
        let mut carry = Carry::new(problems[count as usize].lambda());
        for problem in &problems[..count as usize] {
            let mut auto = Auto::new(problem, None, Some(carry)).unwrap().aiming_at(1e-9);
            while !auto.certificate.as_ref().is_some_and(|certificate| certificate.within(1e-9)) {
                assert!(matches!(auto.epoch(&mut |_| Control::Continue), Ended::Epoch));
            }
            carry = Box::new(auto).leave().unwrap();
        }
        (problems, carry)
    }

    #[test]
    fn a_step_knows_what_the_one_before_it_missed() {
        for count in [2, 3, 4, 5] {
            let (problems, carry) = path(0.0, count);
            let problem = &problems[count as usize];
            let fit = Run::new(problem, Settings { tolerance: 1e-11, ..Settings::default() }).fit().unwrap();
            let mut auto = Auto::new(problem, None, Some(carry)).unwrap();
            let place = auto.place(0, auto.slopes_of_set(), auto.seen().intercept_slope);
            let foreseen = auto.foreseen(&place).expect("two fits have ended");
            assert_eq!(foreseen.x, place.x);
            let held = auto.held.as_mut().expect("their Hessian is held");
            let distance = |z: Vec<f64>| z.iter().zip(&fit.point.weights).map(|(z, x)| (z - x).abs()).sum::<f64>();
            let (blind, knowing) = (distance(held.minimum(&place, 1e-9)), distance(held.minimum(&foreseen, 1e-9)));
            assert!(knowing < 0.35 * blind, "{knowing} and {blind} after {count} fits");
        }
        // One fit alone tells nothing.
        let (problems, carry) = path(0.0, 1);
        let auto = Auto::new(&problems[1], None, Some(carry)).unwrap();
        assert!(auto.foreseen(&auto.place(0, auto.slopes_of_set(), 0.0)).is_none());
    }

    #[test]
    fn the_gap_is_foreseen() {
        for l2 in [0.0, 0.02] {
            let (problems, carry) = path(l2, 2);
            // Near an optimum, but not there.
            let mut auto = Auto::new(&problems[1], None, Some(carry)).unwrap();
            let off = if l2 > 0.0 { 1e-2 } else { 1e-4 };
            auto.point.weights.iter_mut().zip([1.0, -1.0].iter().cycle()).for_each(|(x, sign)| *x *= 1.0 + off * sign);
            // The intercept's part is foreseen by itself.
            let mut margins = pass::margins(problems[1].matrix(), &auto.point);
            intercept::centre(&problems[1], &mut margins, &mut auto.point.intercept);
            auto.look = None;
            auto.measure();
            let certificate = auto.certificate.as_ref().unwrap();
            let gap = certificate.gap.unwrap();
            let place = auto.place(0, auto.slopes_of_set(), auto.seen().intercept_slope);
            let foreseen = place.gap(problems[1].margin_unit(), certificate.objective);
            assert!(
                gap > 1e-6 * certificate.objective && (foreseen - gap).abs() < 0.25 * gap,
                "{foreseen} and {gap}, λ₂ = {l2}"
            );
        }
    }

    #[test]
    fn it_is_foreseen_what_the_intercept_at_its_optimum_will_do() {
        let (problems, carry) = path(0.0, 3);
        let mut auto = Auto::new(&problems[2], None, Some(carry)).unwrap();
        auto.point.intercept[0] += 1e-3;
        auto.look = None;
        auto.goal = Some(f64::INFINITY);
        auto.measure();
        let features = auto.set.features.len();
        let place = |auto: &Auto| auto.place(0, auto.slopes_of_set(), auto.seen().intercept_slope);
        let off = place(&auto);
        let foreseen = auto.held.as_ref().expect("a Hessian is held").centred(&off, features);
        auto.goal = Some(1e-12);
        auto.measure();
        let centred = place(&auto);
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(distance(&off.u, &centred.u) > 1e-5 && (off.x[features] - centred.x[features]).abs() > 1e-4);
        // The Hessian is that of the λ before.
        assert!(distance(&foreseen.u, &centred.u) < 0.2 * distance(&off.u, &centred.u));
        assert!(distance(&foreseen.x, &centred.x) < 0.2 * distance(&off.x, &centred.x));
        assert_eq!(foreseen.x[..features], off.x[..features]);
    }
}
