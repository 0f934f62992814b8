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
//! instead of starting with everything that is not yet explained. Few features all make up the working set, and the rows
//! are worked on as they are: a [`pass::look`] at a point tells all that a step and a proof need. If there are many rows
//! the first round solves a [`sample`] of them. Stops at the relative duality gap (or the KKT distance where the loss has
//! no dual).
//!
//! On a path each fit starts where the one before it ended, by a step that knows what a step like it missed there.
//! Citations: the orthant face of the paper; Friedman, Hastie and Tibshirani, Regularization paths for generalized
//! linear models via coordinate descent, 2010; Lee, Sun and Saunders, Proximal Newton-type methods, 2014.

mod cholesky;
mod descent;
mod face;
mod gram;
mod held;
mod joint;
mod lists;
mod place;
mod polish;
mod quadratic;
mod reduce;
mod sample;
mod search;
mod set;
mod smooth;

use std::io::{self, Read, Write};
use std::sync::Arc;

use rayon::prelude::*;

use self::held::Held;
use self::reduce::Reduced;
use self::set::WorkingSet;
use crate::certificate::{Certificate, certify_at, certify_look, has_dual};
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::fit::{Ended, Solver, Standing, Support};
use crate::intercept;
use crate::observe::{Control, Progress, Round, Stage};
use crate::pass::{self, Look};
use crate::penalty::{ElasticNet, Penalty, Term};
use crate::problem::{Point, Problem};
use crate::switch::Phase;
use crate::{Error, Result};

/// How fast λ falls to its value in the first rounds.
const FALL: f64 = 4.0;
/// With at most this many features all of them make up the working set from the start, unless λ is near λ_max.
const FEW: usize = 512;
/// λ is near λ_max from this share of it on: then few features will be wanted of however few there are.
const NEAR_MAX: f64 = 0.25;
/// From this share of λ_max down λ falls to its value with few features too: at once the face would be anyone's guess.
const TINY: f64 = 1e-4;
/// What share of its λ_j a slope must have for its feature to be taken along to the next λ.
const NEAR: f64 = 0.8;
/// A set grows where at most one in so many of its features would be new; more are cause for another one.
const FEW_NEW: usize = 16;
/// A round that takes less of F than this share of it, and of the gap, brings nothing: there are not rounds enough.
const PROGRESS: f64 = 1e-6;
/// A gap that is at most so many times the one asked for may be due to the intercept alone.
const NEARLY: f64 = 1e5;
/// Newton steps on one working set.
const STEPS: usize = 30;

/// What the fit at one λ leaves to the next, and how far λ may fall.
pub(crate) struct Carry {
    /// No λ to come is smaller.
    pub floor: f64,
    left: Option<Left>,
}

struct Left {
    reduced: Reduced,
    ended: End,
    /// Where the fit before it ended.
    before: Option<End>,
    margins: Vec<f64>,
    look: Option<Look>,
    set: Arc<WorkingSet>,
    held: Option<Held>,
}

/// Where a fit ended: λ, its optimum, and the slopes there.
#[derive(Clone)]
struct End {
    lambda: f64,
    point: Point,
    gradient: Vec<f64>,
}

/// Whether rows are worked on as they are: those of few features.
fn stays_in_rows(problem: &Problem) -> bool {
    problem.n_features() <= FEW && problem.outputs() == 1 && problem.columns().is_none()
}

impl Carry {
    /// Before the first fit.
    pub fn new(floor: f64) -> Self {
        Self { floor, left: None }
    }
}

/// The state between two rounds.
pub(crate) struct Auto<'a> {
    whole: &'a Problem,
    reduced: Reduced,
    point: Point,
    margins: Vec<f64>,
    gradient: Vec<f64>,
    /// Both and more, where the rows are worked on.
    look: Option<Look>,
    /// The largest entry of each column, where looks are certified.
    largest: Vec<f64>,
    /// A look before it, whose memory the next may have.
    spare: Option<Look>,
    /// On a path, where the last fits ended, the latest first.
    ends: [Option<End>; 2],
    certificate: Option<Certificate>,
    /// F and the KKT distance of the point.
    before: (f64, f64),
    set: Arc<WorkingSet>,
    /// Whether all features are in the working set, whatever is violated.
    takes_all: bool,
    /// The Hessian of the last step.
    held: Option<Held>,
    /// λ is multiplied by this; 1 once it has fallen to its value.
    stretch: f64,
    /// What the last round was about, and the λ it worked at.
    stage: Stage,
    at_lambda: f64,
    /// The smallest λ that fits after this one may ask for, where there will be some.
    floor: Option<f64>,
    /// The relative gap that will do, where one can be foreseen.
    goal: Option<f64>,
    /// The damping of the Newton steps, relative to the curvature.
    damping: f64,
    /// The least curvature of each row for the next step; none where the last step was a whole one. Where ℓ″ vanishes or
    /// jumps, as beyond Huber's δ, Newton steps lead too far; then the secants of the slopes along the step that was too
    /// long say what it ran into.
    secants: Vec<f64>,
    rounds: u64,
    steps: u64,
    /// The least KKT distance after any round at the λ asked for, and rounds in a row that brought nothing.
    least_kkt: f64,
    idle: u32,
}

impl<'a> Auto<'a> {
    /// Prepares a run from x = 0, from a given point, or from where the fit before it ended.
    pub fn new(problem: &'a Problem, start: Option<&Point>, carry: Option<Carry>) -> Result<Self> {
        let outputs = problem.outputs();
        if !problem.loss().curvature(&vec![0.0; outputs], problem.targets()[0], &mut vec![0.0; outputs]) {
            let message = format!("auto needs the curvature of the {} loss; choose another", problem.loss().name());
            return Err(Error::parameter("solver", message));
        }
        let floor = carry.as_ref().map(|carry| carry.floor);
        let mut left = match carry.and_then(|carry| carry.left) {
            Some(left) => left,
            None => {
                let reduced = Reduced::new(problem, floor, start);
                let point = start.map_or_else(|| Point::zero(&reduced.problem), |start| reduced.shrink(start));
                let ended = End { lambda: f64::NAN, point, gradient: Vec::new() };
                let (before, margins, look, held) = (None, Vec::new(), None, None);
                Left { reduced, ended, before, margins, look, set: Arc::default(), held }
            }
        };
        left.reduced.set_lambda(problem.lambda())?;
        let Left { reduced, ended, before, margins, look, set, held } = left;
        let (point, gradient) = (ended.point.clone(), ended.gradient.clone());
        let ends = [Some(ended).filter(|end| !end.gradient.is_empty()), before];
        let is_tiny = problem.lambda() < TINY * problem.lambda_max();
        let falls = reduced.problem.n_features() > FEW || is_tiny;
        Ok(Self {
            whole: problem,
            stretch: if start.is_some() || !falls { 1.0 } else { f64::INFINITY },
            stage: Stage::Polish,
            at_lambda: problem.lambda(),
            floor,
            takes_all: reduced.problem.n_features() <= FEW,
            reduced,
            point,
            margins,
            gradient,
            look,
            largest: Vec::new(),
            spare: None,
            ends,
            set,
            held,
            certificate: None,
            before: (f64::INFINITY, f64::INFINITY),
            goal: None,
            damping: 1e-10,
            secants: Vec::new(),
            rounds: 0,
            steps: 0,
            least_kkt: f64::INFINITY,
            idle: 0,
        })
    }

    /// Says which relative gap will do: steps end where it is in sight.
    pub fn aiming_at(mut self, tolerance: f64) -> Self {
        self.goal = (self.problem().outputs() == 1 && has_dual(self.problem())).then_some(tolerance);
        self
    }

    /// The problem that is worked on.
    fn problem(&self) -> &Problem {
        &self.reduced.problem
    }

    /// The penalty of a feature in this round.
    fn term(&self, feature: usize) -> ElasticNet {
        let term = self.problem().regularization().term(feature);
        ElasticNet { l1: term.l1 * self.stretch, ..term }
    }

    /// The slopes of f at the point; none as long as it was not looked at.
    fn gradient(&self) -> &[f64] {
        self.look.as_ref().map_or(&self.gradient, |look| &look.gradient)
    }

    /// Computes what is not known of the point, and its certificate.
    fn measure(&mut self) {
        let problem = Arc::clone(&self.reduced.problem);
        if !stays_in_rows(&problem) {
            self.refresh_margins();
            self.certify();
            return;
        }
        if self.look.is_none() {
            if problem.has_intercept() && self.point.weights.iter().all(|&x| x == 0.0) {
                let mut margins = vec![self.point.intercept[0]; problem.n_rows()];
                intercept::centre(&problem, &mut margins, &mut self.point.intercept);
            }
            self.look = Some(pass::look(&problem, &self.point, None));
        }
        if self.largest.is_empty() && problem.has_intercept() {
            self.largest = pass::largest_entries(problem.matrix());
        }
        let look = self.look.as_mut().expect("looked at just now");
        let allowed = |objective: f64| self.goal.unwrap_or(0.0) * f64::max(objective.abs(), problem.least_scale());
        // Far from its optimum the intercept stands in the way of all the others.
        let slope = if problem.has_intercept() { look.intercept_slope.abs() } else { 0.0 };
        let centred = 2.0 * problem.margin_unit() * slope > polish::IN_SIGHT * allowed(look.loss);
        if centred {
            intercept::centre(&problem, &mut look.margins, &mut self.point.intercept);
            *look = pass::look(&problem, &self.point, self.spare.take());
        }
        let largest = Some(&self.largest[..]).filter(|_| !centred);
        let mut certificate = certify_look(&problem, &self.point, look, largest);
        // What is left of its slope may still be all that stands in the way of the proof.
        let allowed = allowed(certificate.objective);
        let is_near = |gap: f64| gap > allowed && gap <= NEARLY * allowed;
        if slope > 0.0 && !centred && certificate.gap.is_some_and(is_near) {
            intercept::centre(&problem, &mut look.margins, &mut self.point.intercept);
            *look = pass::look(&problem, &self.point, self.spare.take());
            certificate = certify_look(&problem, &self.point, look, None);
        }
        self.before = (certificate.objective, certificate.kkt);
        self.certificate = Some(certificate);
    }

    /// Computes gradient and certificate of the point, the intercept at its optimum.
    fn certify(&mut self) {
        let problem = &*self.reduced.problem;
        if problem.has_intercept() {
            intercept::centre(problem, &mut self.margins, &mut self.point.intercept);
        }
        let row_gradients = pass::row_gradients(problem, &self.margins);
        match problem.slopes_at_zero() {
            // A run that starts at x = 0 need not look there again.
            Some(slopes) if self.rounds == 0 && self.point.weights.iter().all(|&x| x == 0.0) => {
                self.gradient = slopes.to_vec();
            }
            _ => pass::gradient_into(problem, &row_gradients, &mut self.gradient),
        }
        let certificate = certify_at(problem, &self.point, &mut self.margins, row_gradients, &mut self.gradient);
        self.before = (certificate.objective, certificate.kkt);
        self.certificate = Some(certificate);
    }

    /// Computes the margins anew: what the steps added up is forgotten before anything is proved by it.
    fn refresh_margins(&mut self) {
        let outputs = self.problem().outputs();
        let Self { point, margins, reduced, set, .. } = self;
        let problem = &*reduced.problem;
        margins.resize(problem.n_rows() * outputs, 0.0);
        for row in margins.chunks_exact_mut(outputs) {
            row.copy_from_slice(&point.intercept);
        }
        let weights = point.nonzeros();
        let placed = |set: &WorkingSet| -> Option<Vec<(usize, usize, f64)>> {
            let place = |&(at, weight): &(u32, f64)| {
                let place = set.features.binary_search(&(at / outputs as u32)).ok()?;
                Some((at as usize % outputs, place, weight))
            };
            weights.iter().map(place).collect()
        };
        // The set holds what is not zero, but for the point that a run starts from.
        if placed(set).is_none() {
            let mut features: Vec<u32> = weights.iter().map(|(at, _)| at / outputs as u32).collect();
            features.dedup();
            *set = WorkingSet::new(problem, features, set);
        }
        let weights = placed(set).expect("the set holds them now");
        set.add_to(problem, &weights, margins);
    }

    /// The largest violation over all features.
    fn violation(&self) -> f64 {
        let outputs = self.problem().outputs();
        let of = |(at, (&x, &slope)): (usize, (&f64, &f64))| {
            self.problem().regularization().term(at / outputs).violation(x, slope)
        };
        let pairs = self.point.weights.iter().zip(self.gradient()).enumerate();
        pairs.map(of).fold(0.0, f64::max)
    }

    /// Makes a new working set, or keeps the one at hand where it holds all that is needed.
    fn renew_set(&mut self) {
        let mut wanted = self.select(1.0);
        let known = |feature: &u32| self.set.features.binary_search(feature).is_ok();
        if !wanted.iter().all(known) || self.set.features.len() > 2 * wanted.len().max(FEW / 4) {
            if self.floor.is_some() {
                // It shall serve for some λ to come, if it can have a Hessian.
                let more = self.select(NEAR);
                if more.len() < polish::LARGEST_HESSIAN {
                    wanted = more;
                }
            }
            let new = wanted.iter().filter(|feature| !known(feature)).count();
            if new > 0 && new <= self.set.features.len() / FEW_NEW {
                // The set and its Hessian go on, with some more.
                wanted.extend(&self.set.features);
                wanted.sort_unstable();
                wanted.dedup();
            } else {
                self.held = None;
            }
            let set = WorkingSet::new(self.problem(), wanted, &self.set);
            if let Some(held) = &mut self.held {
                held.move_to(&self.set.features, &set.features);
            }
            self.set = set;
        }
    }

    /// The largest slope there is, as a multiple of the λ_j it has to overcome.
    fn steepness(&self) -> f64 {
        let outputs = self.problem().outputs();
        let regularization = self.problem().regularization();
        let steepness = |(at, slope): (usize, &f64)| {
            let kink = regularization.term(at / outputs).kink();
            if kink > 0.0 { slope.abs() / kink } else { 0.0 }
        };
        self.gradient().par_iter().with_min_len(1 << 14).enumerate().map(steepness).reduce(|| 0.0, f64::max)
    }

    /// The working set: what is not zero or not penalised, and the worst violators, as many again.
    ///
    /// With a `reach` below 1 those that are near to violating are taken in as well.
    fn select(&self, reach: f64) -> Vec<u32> {
        let outputs = self.problem().outputs();
        if self.takes_all {
            return (0..self.problem().n_features() as u32).collect();
        }
        // What to do with a feature: nothing, or how badly it is wanted (without end where it must be there).
        let want = |feature: usize| {
            let span = feature * outputs..(feature + 1) * outputs;
            let kink = self.term(feature).kink();
            if kink == 0.0 || self.point.weights[span.clone()].iter().any(|&x| x != 0.0) {
                return Some((f64::INFINITY, feature as u32));
            }
            let slope = self.gradient[span].iter().fold(0.0, |most: f64, slope| most.max(slope.abs()));
            (slope > reach * kink).then_some((slope / kink, feature as u32))
        };
        let wanted: Vec<(f64, u32)> =
            (0..self.problem().n_features()).into_par_iter().with_min_len(1 << 14).filter_map(want).collect();
        let (must, mut violators): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(wish, _)| *wish == f64::INFINITY);
        let mut chosen: Vec<u32> = must.into_iter().map(|(_, feature)| feature).collect();
        // As many again, or a few more than that at first; hardly ever are more features wanted than there are rows.
        let at_first = (self.problem().n_features() / 8).min(self.problem().n_rows()).clamp(16, 128);
        let room = chosen.len().max(at_first);
        if violators.len() > room {
            violators.select_nth_unstable_by(room, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            violators.truncate(room);
        }
        chosen.extend(violators.iter().map(|&(_, feature)| feature));
        chosen.sort_unstable();
        chosen
    }
}

impl Solver for Auto<'_> {
    fn epoch(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Ended {
        let outputs = self.problem().outputs();
        if self.gradient().is_empty() && self.rounds > 0 {
            // A run that is resumed: this is what the round before it saw last.
            self.look = Some(pass::look(&self.reduced.problem, &self.point, None));
        } else if self.gradient().is_empty() {
            let mut stop = false;
            let tell: &mut dyn FnMut(Progress) -> Control = &mut |progress| {
                let said = tell(progress);
                stop |= said == Control::Stop;
                said
            };
            let sampled = self.rounds == 0 && (self.start_from_smoother_losses(tell) || self.start_from_a_sample(tell));
            self.measure();
            if sampled && stop {
                return Ended::Interrupted;
            }
            if sampled {
                self.rounds += 1;
                return Ended::Epoch;
            }
            // A path comes to its small λ in the end.
            let in_rows = self.look.is_some();
            self.takes_all &= in_rows || self.floor.is_some() || self.steepness() > 1.0 / NEAR_MAX;
        } else if self.before.1 == f64::INFINITY {
            // Margins and gradient are at hand, from the λ before.
            self.before = (f64::INFINITY, self.violation());
        }
        self.rounds += 1;
        let before = self.before;
        let was_stretched = self.stretch > 1.0;
        if was_stretched {
            self.stretch = (self.stretch.min(self.steepness()) / FALL).max(1.0);
        }
        self.stage = if self.stretch > 1.0 { Stage::Identify } else { Stage::Polish };
        self.at_lambda = self.stretch * self.problem().lambda();
        self.renew_set();
        // While λ falls a rough answer will do; at its value each round wins a digit or more.
        let enough = if self.stretch > 1.0 { 0.1 * self.stretch * self.problem().lambda() } else { 0.1 * before.1 };
        let steps = if self.stretch > 1.0 { 3 } else { STEPS };
        let jointly = self.can_step_jointly();
        let mut cut_short = false;
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
            let progress = Progress {
                epoch: self.rounds,
                step: sweep as u64 + 1,
                steps: steps as u64,
                phase: Phase::Newton,
                stage: Some(self.stage),
            };
            let stop = tell(progress) == Control::Stop;
            if !moved || outputs == 1 {
                break;
            }
            cut_short = stop && sweep + 1 < steps;
            if stop {
                break;
            }
        }
        self.measure();
        if cut_short {
            return Ended::Interrupted;
        }
        let Some(after) = &self.certificate else { return Ended::NotFinite };
        if !after.objective.is_finite() {
            return Ended::NotFinite;
        }
        let least = PROGRESS * after.gap.unwrap_or(0.0).min(after.objective.abs());
        let better = self.before.0 < before.0 - least || self.before.1 < 0.9 * self.least_kkt;
        self.least_kkt = if was_stretched { f64::INFINITY } else { self.least_kkt.min(self.before.1) };
        self.idle = if better || was_stretched { 0 } else { self.idle + 1 };
        if self.idle >= 4 { Ended::Stalled } else { Ended::Epoch }
    }

    fn point(&self) -> Point {
        self.support().expand(self.whole)
    }

    fn support(&self) -> Support {
        let placed = |(at, weight): (u32, f64)| (self.reduced.place(at as usize) as u32, weight);
        let weights = self.point.nonzeros().into_iter().map(placed).collect();
        Support { weights, intercept: self.point.intercept.clone() }
    }

    fn batch_rows(&self) -> usize {
        self.problem().n_rows()
    }

    fn certificate(&self) -> Option<Certificate> {
        self.certificate.clone()
    }

    fn standing(&self) -> Standing {
        let round = Round {
            stage: self.stage,
            at_lambda: self.at_lambda,
            columns: self.problem().n_features(),
            working_set: self.set.features.len(),
        };
        Standing { iterations: self.steps, phase: Phase::Newton, step_size: 1.0, round: Some(round) }
    }

    fn measured(&mut self, _certificate: &Certificate, _score: Option<f64>) {}

    fn leave(self: Box<Self>) -> Option<Carry> {
        let Self { floor, reduced, point, margins, gradient, look, ends, set, held, .. } = *self;
        let gradient = look.as_ref().map_or(gradient, |look| look.gradient.clone());
        let ended = End { lambda: reduced.problem.lambda(), point, gradient };
        let [before, _] = ends;
        floor.map(|floor| Carry { floor, left: Some(Left { reduced, ended, before, margins, look, set, held }) })
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_array(out, &[self.stretch, self.damping, self.before.0, self.before.1, self.least_kkt])?;
        write_array(out, &[self.rounds, self.steps, u64::from(self.idle), u64::from(self.takes_all)])?;
        write_array(out, &self.point.weights)?;
        write_array(out, &self.point.intercept)?;
        // Margins and gradient could be computed anew, but not to the same bits. A look can.
        write_array(out, &self.margins)?;
        write_array(out, &self.secants)?;
        write_array(out, &self.gradient)?;
        write_array(out, &self.set.features)?;
        held::save(self.held.as_ref(), out)
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let (mut reals, mut counts) = ([0.0; 5], [0u64; 4]);
        read_exactly(input, &mut reals)?;
        read_exactly(input, &mut counts)?;
        [self.stretch, self.damping, self.before.0, self.before.1, self.least_kkt] = reals;
        [self.rounds, self.steps] = [counts[0], counts[1]];
        self.idle = counts[2] as u32;
        self.takes_all = counts[3] != 0;
        read_exactly(input, &mut self.point.weights)?;
        read_exactly(input, &mut self.point.intercept)?;
        self.margins = read_array(input, self.problem().n_rows() * self.problem().outputs())?;
        self.secants = read_array(input, self.problem().n_rows())?;
        self.gradient = read_array(input, self.point.weights.len())?;
        let features: Vec<u32> = read_array(input, self.problem().n_features())?;
        let in_range = features.last().is_none_or(|&last| (last as usize) < self.problem().n_features());
        if !(features.is_sorted_by(|a, b| a < b) && in_range) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a working set that is none"));
        }
        self.set = WorkingSet::new(self.problem(), features, &WorkingSet::default());
        self.held = held::load(self.set.features.len() + usize::from(self.problem().has_intercept()), input)?;
        Ok(())
    }
}
