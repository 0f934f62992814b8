//! `auto`: finds the support, then proves the optimum.
//!
//! Problem: min F = f(x, b) + Σ λ_j|x_j| + (λ₂/2)‖x‖₂², for every loss with curvature. A round
//!
//! 1. **selects** a working set: the support and the features that violate their condition most;
//! 2. **compacts** it: copies its columns out of the data;
//! 3. **polishes** on it: proximal Newton steps, the model of each solved exactly on its face ([`quadratic`]), with a
//!    line search on F;
//! 4. **certifies**: the full gradient over every column gives the duality gap and the features that must re-enter.
//!
//! The first rounds run at a larger λ, a fraction of λ_max that falls to λ: so the working set grows with the support
//! instead of starting with everything that is not yet explained. Stops at the relative duality gap (or the KKT
//! distance where the loss has no dual).
//! Citations: the orthant face of the paper; Friedman, Hastie and Tibshirani, Regularization paths for generalized
//! linear models via coordinate descent, 2010; Lee, Sun and Saunders, Proximal Newton-type methods, 2014.

mod cholesky;
mod columns;
mod descent;
mod joint;
mod quadratic;
mod search;

use std::io::{self, Read, Write};
use std::sync::Arc;

use rayon::prelude::*;

use self::columns::{Columns, RowLists};
use self::descent::Descent;
use self::quadratic::Quadratic;
use self::search::search;
use crate::certificate::{Certificate, certify_at};
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::fit::{Ended, Solver, Standing};
use crate::observe::{Control, Progress};
use crate::pass;
use crate::penalty::{ElasticNet, Penalty, Term};
use crate::problem::{Point, Problem};
use crate::switch::Phase;
use crate::{Error, Result};

/// How fast λ falls to its value in the first rounds.
const FALL: f64 = 4.0;
/// With at most this many features all of them make up the working set from the start.
const FEW: usize = 512;
/// Newton steps on one working set.
const STEPS: usize = 30;
/// A working set of at most this many coordinates has its Hessian formed; a larger one is walked by its columns.
const LARGEST_HESSIAN: usize = 1500;

/// Some features, which rise, and their columns.
#[derive(Default)]
struct WorkingSet {
    features: Vec<u32>,
    columns: Columns,
}

/// The state between two rounds.
pub(crate) struct Auto<'a> {
    problem: &'a Problem,
    point: Point,
    margins: Vec<f64>,
    gradient: Vec<f64>,
    certificate: Option<Certificate>,
    /// F and the KKT distance of the point.
    before: (f64, f64),
    set: Arc<WorkingSet>,
    /// λ is multiplied by this; 1 once it has fallen to its value.
    stretch: f64,
    /// The damping of the Newton steps, relative to the curvature.
    damping: f64,
    /// Whether the next step is by the loss's upper curvature: where ℓ″ vanishes, as beyond Huber's δ, Newton steps
    /// lead anywhere, and one by a model that lies above F leads on.
    careful: bool,
    rounds: u64,
    steps: u64,
    /// Rounds in a row that brought nothing.
    idle: u32,
}

impl<'a> Auto<'a> {
    /// Prepares a run from x = 0 or from a given point.
    pub fn new(problem: &'a Problem, start: Option<&Point>) -> Result<Self> {
        let outputs = problem.outputs();
        if !problem.loss().curvature(&vec![0.0; outputs], problem.targets()[0], &mut vec![0.0; outputs]) {
            let message = format!("auto needs the curvature of the {} loss; choose another", problem.loss().name());
            return Err(Error::parameter("solver", message));
        }
        Ok(Self {
            problem,
            point: start.cloned().unwrap_or_else(|| Point::zero(problem)),
            margins: Vec::new(),
            gradient: Vec::new(),
            certificate: None,
            before: (f64::INFINITY, f64::INFINITY),
            set: Arc::default(),
            stretch: if start.is_some() || problem.n_features() <= FEW { 1.0 } else { f64::INFINITY },
            damping: 1e-10,
            careful: false,
            rounds: 0,
            steps: 0,
            idle: 0,
        })
    }

    /// The penalty of a feature in this round.
    fn term(&self, feature: usize) -> ElasticNet {
        let term = self.problem.regularization().term(feature);
        ElasticNet { l1: term.l1 * self.stretch, ..term }
    }

    /// Computes margins, gradient and certificate of the point, the intercept at its optimum.
    fn certify(&mut self) {
        let problem = self.problem;
        if problem.has_intercept() {
            pass::centre(problem, &mut self.margins, &mut self.point.intercept);
        }
        let row_gradients = pass::row_gradients(problem, &self.margins);
        pass::gradient_into(problem, &row_gradients, &mut self.gradient);
        let certificate = certify_at(problem, &self.point, &mut self.margins, row_gradients, &mut self.gradient);
        self.before = (certificate.objective, certificate.kkt);
        self.certificate = Some(certificate);
    }

    /// Computes the margins anew: what the steps added up is forgotten before anything is proved by it. The support
    /// lies in the working set, so its columns are enough.
    fn refresh_margins(&mut self) {
        let outputs = self.problem.outputs();
        let Self { point, margins, set, .. } = self;
        for row in margins.chunks_exact_mut(outputs) {
            row.copy_from_slice(&point.intercept);
        }
        for (place, &feature) in set.features.iter().enumerate() {
            for output in 0..outputs {
                let x = point.weights[feature as usize * outputs + output];
                if x != 0.0 {
                    set.columns.for_each(place, |row, value| margins[row * outputs + output] += value * x);
                }
            }
        }
    }

    /// Makes a new working set, or keeps the one at hand where it holds all that is needed.
    fn renew_set(&mut self) {
        let wanted = self.select();
        let known = |feature: &u32| self.set.features.binary_search(feature).is_ok();
        if !wanted.iter().all(known) || self.set.features.len() > 2 * wanted.len() {
            self.set = Arc::new(WorkingSet { columns: Columns::of(self.problem.matrix(), &wanted), features: wanted });
        }
    }

    /// Lowers λ towards its value: by [`FALL`] a round, from the largest slope there is.
    fn lower_stretch(&mut self) {
        let outputs = self.problem.outputs();
        let regularization = self.problem.regularization();
        let steepness = |(at, slope): (usize, &f64)| {
            let kink = regularization.term(at / outputs).kink();
            if kink > 0.0 { slope.abs() / kink } else { 0.0 }
        };
        let steepest =
            self.gradient.par_iter().with_min_len(1 << 14).enumerate().map(steepness).reduce(|| 0.0, f64::max);
        self.stretch = (self.stretch.min(steepest) / FALL).max(1.0);
    }

    /// The working set: what is not zero or not penalised, and the worst violators, as many again.
    fn select(&self) -> Vec<u32> {
        let outputs = self.problem.outputs();
        if self.problem.n_features() <= FEW {
            return (0..self.problem.n_features() as u32).collect();
        }
        // What to do with a feature: nothing, or how badly it is wanted (without end where it must be there).
        let want = |feature: usize| {
            let span = feature * outputs..(feature + 1) * outputs;
            let kink = self.term(feature).kink();
            if kink == 0.0 || self.point.weights[span.clone()].iter().any(|&x| x != 0.0) {
                return Some((f64::INFINITY, feature as u32));
            }
            let slope = self.gradient[span].iter().fold(0.0, |most: f64, slope| most.max(slope.abs()));
            (slope > kink).then_some((slope / kink, feature as u32))
        };
        let wanted: Vec<(f64, u32)> =
            (0..self.problem.n_features()).into_par_iter().with_min_len(1 << 14).filter_map(want).collect();
        let (must, mut violators): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(wish, _)| *wish == f64::INFINITY);
        let mut chosen: Vec<u32> = must.into_iter().map(|(_, feature)| feature).collect();
        let room = chosen.len().max(128);
        if violators.len() > room {
            violators.select_nth_unstable_by(room, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            violators.truncate(room);
        }
        chosen.extend(violators.iter().map(|&(_, feature)| feature));
        chosen.sort_unstable();
        chosen
    }

    /// Proximal Newton steps on one output of the working set, until its violation has fallen enough.
    fn polish(&mut self, output: usize, steps: usize, enough: f64) -> bool {
        let (problem, outputs) = (self.problem, self.problem.outputs());
        let set = Arc::clone(&self.set);
        let (columns, features) = (&set.columns, &set.features[..]);
        let n_rows = problem.n_rows();
        let mut moved = false;
        let mut objective = f64::NAN;
        let (mut lists, mut order) = (None, Vec::new());
        let can_be_careful = outputs == 1 && problem.loss().upper_curvature(&[0.0], problem.targets()[0], &mut [0.0]);
        for _ in 0..steps {
            let (slopes, curvatures) = self.rows(output);
            let mut terms: Vec<ElasticNet> = features.iter().map(|&feature| self.term(feature as usize)).collect();
            let mut x: Vec<f64> =
                features.iter().map(|&feature| self.point.weights[feature as usize * outputs + output]).collect();
            let mut u: Vec<f64> = (0..features.len())
                .into_par_iter()
                .map(|place| {
                    let mut sum = terms[place].l2 * x[place];
                    columns.for_each(place, |row, value| sum += value * slopes[row]);
                    sum
                })
                .collect();
            // The intercept is one more coordinate, without penalty.
            if problem.has_intercept() {
                terms.push(ElasticNet { l1: 0.0, l2: 0.0 });
                x.push(self.point.intercept[output]);
                u.push(slopes.iter().sum());
            }
            let l1 = |place: usize| crate::penalty::L1 { l1: terms[place].l1 };
            let violation =
                (0..x.len()).fold(0.0, |most: f64, place| most.max(l1(place).violation(x[place], u[place])));
            if violation <= enough {
                break;
            }

            // ---- the model and its minimum ---------------------------------------------------------------------
            let tolerance = 0.01 * (enough / violation).min(1.0);
            let z = if x.len() > LARGEST_HESSIAN {
                let (terms, curvatures) = (&terms[..], &curvatures[..]);
                let descent = Descent { columns, features: features.len(), terms, curvatures, damping: self.damping };
                descent.solve(&x, &u, tolerance)
            } else {
                if lists.is_none() {
                    // The fullest columns first: then most of the Hessian's traffic meets in one corner of it.
                    order = (0..features.len()).collect();
                    order.sort_by_key(|&place| (std::cmp::Reverse(columns.len(place)), place));
                    lists = Some(RowLists::of(columns, &order, n_rows));
                    order.extend(problem.has_intercept().then_some(features.len()));
                }
                let ordered: Vec<ElasticNet> = order.iter().map(|&place| terms[place]).collect();
                let model = self.model(lists.as_ref().expect("made above"), &ordered, &curvatures);
                let (mut ordered, mut slope): (Vec<f64>, Vec<f64>) =
                    order.iter().map(|&place| (x[place], u[place])).unzip();
                model.solve(&mut ordered, &mut slope, tolerance);
                let mut z = vec![0.0; x.len()];
                order.iter().zip(ordered).for_each(|(&place, value)| z[place] = value);
                z
            };

            // ---- the step --------------------------------------------------------------------------------------
            let mut shift = vec![0.0; n_rows * outputs];
            let mut expected = 0.0;
            for place in 0..x.len() {
                let delta = z[place] - x[place];
                if delta == 0.0 {
                    continue;
                }
                expected += u[place] * delta + terms[place].l1 * (z[place].abs() - x[place].abs());
                if place == features.len() {
                    shift.iter_mut().skip(output).step_by(outputs).for_each(|shift| *shift += delta);
                } else {
                    columns.for_each(place, |row, value| shift[row * outputs + output] += value * delta);
                }
            }
            if objective.is_nan() {
                objective = self.objective(&self.margins, features, &x, &terms);
            }
            if expected >= 0.0 || expected.is_nan() {
                break;
            }
            let value = |margins: &[f64], x: &[f64]| self.objective(margins, features, x, &terms);
            let taken = search(objective, expected, (&x, &z), (&self.margins, &shift), value);
            let size = taken.as_ref().map_or(0.0, |step| step.size);
            self.steps += 1;
            let was_careful = self.careful;
            self.careful = size < 1.0 && can_be_careful;
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
            for (place, &feature) in features.iter().enumerate() {
                self.point.weights[feature as usize * outputs + output] = step.x[place];
            }
            if problem.has_intercept() {
                self.point.intercept[output] = step.x[features.len()];
            }
            // Short steps mean that the model bends too little: damp it until whole steps do. Not for ever: where the
            // curvature jumps, as with the squared hinge, the same damping would hold up every later step.
            self.damping = match size {
                1.0 => (self.damping / 10.0).max(1e-10),
                size if size < 0.2 && !can_be_careful && self.rounds <= 5 => (self.damping * 10.0).clamp(0.03, 1.0),
                _ => (self.damping * 4.0).min(1.0),
            };
        }
        moved
    }

    /// wᵢℓ′/N and wᵢℓ″/N of each row for one output.
    fn rows(&self, output: usize) -> (Vec<f64>, Vec<f64>) {
        let (problem, outputs) = (self.problem, self.problem.outputs());
        let (loss, n_rows) = (problem.loss(), problem.n_rows());
        (0..n_rows)
            .into_par_iter()
            .with_min_len(1024)
            .map_init(
                || vec![0.0; outputs],
                |out, row| {
                    let margins = &self.margins[row * outputs..(row + 1) * outputs];
                    let (target, weight) = (problem.targets()[row], problem.row_weight(row) / n_rows as f64);
                    // A row that does not count may well have an infinite slope.
                    if weight == 0.0 {
                        return (0.0, 0.0);
                    }
                    loss.gradient(margins, target, out);
                    let slope = weight * out[output];
                    if !(self.careful && loss.upper_curvature(margins, target, out)) {
                        loss.curvature(margins, target, out);
                    }
                    (slope, weight * out[output])
                },
            )
            .unzip()
    }

    /// F with the coordinates of one output of the working set as given; what is constant there is left out.
    fn objective(&self, margins: &[f64], features: &[u32], x: &[f64], terms: &[ElasticNet]) -> f64 {
        let penalty: f64 = (0..features.len()).map(|place| terms[place].value(x[place])).sum();
        pass::mean_loss(self.problem, margins) + penalty
    }

    /// The quadratic model on a part of the working set, whose last place is the intercept where there is one.
    fn model(&self, lists: &RowLists, terms: &[ElasticNet], curvatures: &[f64]) -> Quadratic {
        let size = terms.len();
        let mut hessian = lists.gram(size, self.problem.has_intercept(), curvatures);
        // A column of rows that are all flat, as those beyond Huber's δ, would have no scale to step by: it gets that
        // of rows with all the curvature there can be.
        if (0..size).any(|at| hessian[at * size + at] + terms[at].l2 == 0.0) {
            let steepest = self.problem.loss().smoothness().unwrap_or(1.0) / self.problem.n_rows() as f64;
            let squares = lists.squares(size, self.problem.has_intercept());
            for at in (0..size).filter(|at| terms[*at].l2 == 0.0) {
                let diagonal = &mut hessian[at * size + at];
                *diagonal = if *diagonal == 0.0 { steepest * squares[at] } else { *diagonal };
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
        Quadratic { size, hessian, l1: terms.iter().map(|term| term.l1).collect() }
    }
}

impl Solver for Auto<'_> {
    fn epoch(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Ended {
        let outputs = self.problem.outputs();
        if self.margins.is_empty() {
            self.margins = pass::margins(self.problem.matrix(), &self.point);
            self.certify();
        }
        self.rounds += 1;
        let before = self.before;
        let was_stretched = self.stretch > 1.0;
        if was_stretched {
            self.lower_stretch();
        }
        self.renew_set();
        // While λ falls a rough answer will do; at its value each round wins two digits or more.
        let enough = if self.stretch > 1.0 { 0.1 * self.stretch * self.problem.lambda() } else { 0.01 * before.1 };
        let steps = if self.stretch > 1.0 { 3 } else { STEPS };
        let jointly = self.can_step_jointly();
        let mut stop = false;
        for sweep in 0..steps {
            let mut moved = false;
            if jointly {
                moved = self.polish_jointly(1, enough);
            } else {
                for output in 0..outputs {
                    let steps = if outputs == 1 { steps } else { 1 };
                    moved |= self.polish(output, steps, enough);
                }
            }
            let progress =
                Progress { epoch: self.rounds, step: sweep as u64 + 1, steps: steps as u64, phase: Phase::Newton };
            stop |= tell(progress) == Control::Stop;
            if stop || !moved || outputs == 1 {
                break;
            }
        }
        self.refresh_margins();
        self.certify();
        let Some(after) = &self.certificate else { return Ended::NotFinite };
        if !after.objective.is_finite() {
            return Ended::NotFinite;
        }
        let better = self.before.0 < before.0 || self.before.1 < 0.9 * before.1;
        self.idle = if better || was_stretched { 0 } else { self.idle + 1 };
        if self.idle >= 4 { Ended::Stalled } else { Ended::Epoch }
    }

    fn point(&self) -> Point {
        self.point.clone()
    }

    fn batch_rows(&self) -> usize {
        self.problem.n_rows()
    }

    fn certificate(&self) -> Option<Certificate> {
        self.certificate.clone()
    }

    fn standing(&self) -> Standing {
        Standing { iterations: self.steps, phase: Phase::Newton, step_size: 1.0 }
    }

    fn measured(&mut self, _certificate: &Certificate, _score: Option<f64>) {}

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_array(out, &[self.stretch, self.damping, self.before.0, self.before.1])?;
        write_array(out, &[self.rounds, self.steps, u64::from(self.idle), u64::from(self.careful)])?;
        write_array(out, &self.point.weights)?;
        write_array(out, &self.point.intercept)?;
        // Margins and gradient could be computed anew, but not to the same bits.
        write_array(out, &self.margins)?;
        write_array(out, &self.gradient)?;
        write_array(out, &self.set.features)
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let (mut reals, mut counts) = ([0.0; 4], [0u64; 4]);
        read_exactly(input, &mut reals)?;
        read_exactly(input, &mut counts)?;
        [self.stretch, self.damping, self.before.0, self.before.1] = reals;
        [self.rounds, self.steps] = [counts[0], counts[1]];
        self.idle = counts[2] as u32;
        self.careful = counts[3] != 0;
        read_exactly(input, &mut self.point.weights)?;
        read_exactly(input, &mut self.point.intercept)?;
        self.margins = read_array(input, self.problem.n_rows() * self.problem.outputs())?;
        self.gradient = read_array(input, self.point.weights.len())?;
        let features: Vec<u32> = read_array(input, self.problem.n_features())?;
        let in_range = features.last().is_none_or(|&last| (last as usize) < self.problem.n_features());
        if !(features.is_sorted_by(|a, b| a < b) && in_range) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a working set that is none"));
        }
        self.set = Arc::new(WorkingSet { columns: Columns::of(self.problem.matrix(), &features), features });
        Ok(())
    }
}
