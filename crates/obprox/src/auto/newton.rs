//! Proximal Newton steps on the working set.
//!
//! Coordinates are (feature, output): those of one output, or of all together. The classes of the softmax loss pull at each
//! other; one class after the other sees only its own block of the Hessian and crawls where λ is small, so all are stepped
//! on at once where their Hessian is small enough.

use std::ops::Range;

use super::Auto;
use super::blockwise::InSet;
use super::cached::CachedHessian;
use super::expansion::Expansion;
use super::search::{Step, search};
use crate::penalty::ElasticNet;
use crate::tuning::newton::{CHEAP, FURTHER, IN_SIGHT, MOST_HIDDEN, SERVES, SERVES_CHEAP, SERVES_FEW, SHORT};
use crate::tuning::products::SAMPLE_SERVES;
use crate::tuning::quadratic::LARGE;
use crate::{Result, intercept};

/// What came of some steps.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Stepped {
    Moved,
    /// The point is as good as they can make it.
    Stayed,
    /// Someone said stop.
    Stopped,
}

/// How the steps of one call went.
struct Progress {
    moved: bool,
    /// F where the last step led.
    objective: f64,
    /// The violation before it.
    violation: f64,
    /// Steps that promised less than the last bit of F.
    hidden: usize,
    /// The violation that descent along the columns was to leave.
    aimed: Option<f64>,
}

impl Auto<'_> {
    /// Steps on the coordinates of these outputs until their violation has fallen enough; `stops` is asked after each.
    pub(super) fn newton(
        &mut self,
        outputs: Range<usize>,
        steps: usize,
        enough: f64,
        stops: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Stepped> {
        self.trust.part = self.plan.part;
        let mut progress =
            Progress { moved: false, objective: f64::NAN, violation: f64::INFINITY, hidden: 0, aimed: None };
        for step in 0..steps {
            let at = self.expansion(&outputs, step == 0)?;
            let violation = at.violation();
            // Where columns are slow a Hessian is worth its time.
            self.trust.slow |=
                progress.aimed.take().is_some_and(|aimed| violation > 2.0 * aimed) && self.fall.stretch == 1.0;
            let in_sight = if step > 0 { self.in_sight(&at, progress.objective) } else { None };
            if violation > self.serves() * progress.violation || self.trust.lifted {
                self.cached = None;
            }
            if violation > SAMPLE_SERVES * progress.violation {
                self.trust.part = 1;
            }
            // A step by a Hessian that is at hand is cheap: it goes further than one that needs a new one.
            let near = violation <= if self.cached.is_some() { FURTHER * enough } else { enough };
            // A round that sees every feature, or a set that has seen the λ before, need not stop and look at the others.
            let sees_all = self.plan.sees_all || self.path.floor.is_some();
            if in_sight.unwrap_or(near) || near && !sees_all {
                break;
            }
            progress.violation = violation;
            let begins = step == 0 && self.history.rounds == 1 && self.problem().outputs() == 1;
            let share = (enough / violation).min(1.0);
            let z = match self.along_columns(&outputs, &at, share)? {
                Some((z, left)) => {
                    progress.aimed = Some(left * violation);
                    z
                }
                None => self.minimum(&outputs, &at, share, begins, &mut || stops(step))?,
            };
            if !self.step(&outputs, &at, &z, &mut progress)? {
                break;
            }
            if stops(step + 1) {
                return Ok(Stepped::Stopped);
            }
        }
        Ok(if progress.moved { Stepped::Moved } else { Stepped::Stayed })
    }

    /// Whether the gap that was asked for is in sight; nothing where that cannot be foreseen.
    fn in_sight(&self, at: &Expansion, objective: f64) -> Option<bool> {
        let goal = self.goal().filter(|_| self.fall.stretch == 1.0)?;
        let problem = self.problem();
        let scale = f64::max(objective.abs(), problem.least_scale());
        let is_small = |at: &Expansion| at.gap(problem.margin_unit(), scale) <= IN_SIGHT * goal * scale;
        // The proof has the intercept at its optimum.
        let centred = || self.cached.as_ref().map(|cached| cached.centred(at, self.set.len()));
        Some(is_small(at) || centred().is_some_and(|at| is_small(&at)))
    }

    /// The coordinates of these outputs and the slopes there; at first they are those of the certificate.
    fn expansion(&mut self, outputs: &Range<usize>, at_first: bool) -> Result<Expansion> {
        let all = self.problem().outputs();
        let mut u = if at_first && all == 1 && !self.plan.sees_all {
            let mut u: Vec<f64> = self.set.iter().map(|&feature| self.gradient[feature as usize]).collect();
            u.extend(self.rows.intercept_slope(outputs.start)?);
            u
        } else {
            self.rows.slopes(outputs.clone())?
        };
        let (mut terms, mut x) = (Vec::with_capacity(u.len()), Vec::with_capacity(u.len()));
        for output in outputs.clone() {
            terms.extend(self.set.iter().map(|&feature| self.term(feature as usize)));
            x.extend(self.set.iter().map(|&feature| self.point.weights[feature as usize * all + output]));
            // The intercept is one more coordinate, without penalty.
            if self.problem().has_intercept() {
                terms.push(ElasticNet { l1: 0.0, l2: 0.0 });
                x.push(self.point.intercept[output]);
            }
        }
        u.iter_mut().zip(&terms).zip(&x).for_each(|((u, term), x)| *u += term.l2 * x);
        Ok(Expansion { terms, x, u, blocks: self.blocks_in_set(outputs) })
    }

    /// The penalty's blocks on the coordinates of these outputs, where it is one on blocks.
    fn blocks_in_set(&self, outputs: &Range<usize>) -> Option<InSet> {
        let regularization = self.problem().regularization();
        let penalty = regularization.blocks.as_ref()?;
        let (all, intercept) = (self.problem().outputs(), self.problem().has_intercept().then_some(None));
        let of_output = |output: usize| {
            let of_set = self.set.iter().map(move |&feature| Some(feature as usize * all + output));
            of_set.chain(intercept)
        };
        let coordinates: Vec<Option<usize>> = outputs.clone().flat_map(of_output).collect();
        Some(InSet::new(penalty, self.fall.stretch * regularization.l1, &coordinates))
    }

    /// Goes from x towards z as far as F falls; false where that was the last step of this round.
    fn step(&mut self, outputs: &Range<usize>, at: &Expansion, z: &[f64], progress: &mut Progress) -> Result<bool> {
        let x = &at.x;
        let expected = at.expected(z);
        if progress.objective.is_nan() {
            progress.objective = at.penalty(x) + self.rows.loss(0.0)?;
        }
        let objective = progress.objective;
        progress.hidden += usize::from(-expected <= f64::EPSILON * objective.abs());
        if expected >= 0.0 || expected.is_nan() || progress.hidden > MOST_HIDDEN {
            return Ok(false);
        }
        self.rows.propose(outputs.clone(), x, z)?;
        let taken = search(objective, expected, (x, z), |size, x| Ok(self.rows.loss(size)? + at.penalty(x)))?;
        let size = taken.as_ref().map_or(0.0, |step| step.size);
        self.history.steps += 1;
        let was_lifted = self.trust.lifted;
        // A loss that grows ever faster is met by damping.
        if self.problem().outputs() == 1 && self.problem().loss().smoothness().is_some() {
            self.remember_secants(size)?;
        }
        if size < 1.0 || was_lifted {
            self.cached = None;
        }
        let Some(step) = taken else {
            // The next model knows what this one ran into.
            if self.trust.lifted && progress.hidden == 0 {
                return Ok(true);
            }
            // At the end of what rounding allows, or where the model is no good: damp, and leave it to the next round.
            self.trust.damping = (self.trust.damping * 100.0).min(1.0);
            return Ok(false);
        };
        progress.moved = true;
        progress.objective = step.objective;
        self.take(outputs, &step)?;
        Ok(true)
    }

    /// Moves the rows and the point by a step, and the damping with its size.
    fn take(&mut self, outputs: &Range<usize>, step: &Step) -> Result<()> {
        self.rows.take(step.size)?;
        let (all, has_intercept) = (self.problem().outputs(), self.problem().has_intercept());
        let width = self.set.len() + usize::from(has_intercept);
        for (output, x) in outputs.clone().zip(step.x.chunks_exact(width.max(1))) {
            for (&feature, &x) in self.set.iter().zip(x) {
                self.point.weights[feature as usize * all + output] = x;
            }
            if has_intercept {
                self.point.intercept[output] = x[self.set.len()];
            }
        }
        let is_cheap = !self.problem().in_shards();
        if has_intercept && all == 1 && self.set.len() >= LARGE && !self.plan.sees_all && is_cheap {
            // It costs little beside a step, and what it is off by would hide how near the others are.
            intercept::centre(&mut *self.rows, &mut self.point.intercept)?;
        }
        // Short steps mean that the model curves too little: damp it until full steps do. Not for ever: where the
        // curvature jumps, as with the squared hinge, the same damping would hold up every later step.
        self.trust.damping = match step.size {
            1.0 => (self.trust.damping / 10.0).max(1e-10),
            size if size < 0.2 && self.history.rounds <= 5 => (self.trust.damping * 10.0).clamp(0.03, 1.0),
            _ => (self.trust.damping * 4.0).min(1.0),
        };
        Ok(())
    }

    /// After a short step the curvature of a row is at least its secant over what was not taken; after a full one, its own.
    fn remember_secants(&mut self, size: f64) -> Result<()> {
        if size == 1.0 && self.trust.lifted {
            self.rows.secants(None)?;
            self.trust.lifted = false;
        }
        if size < SHORT {
            self.rows.secants(Some(size))?;
            self.trust.lifted = true;
        }
        Ok(())
    }

    /// The share of the violation that a step by the Hessian at hand may leave.
    fn serves(&self) -> f64 {
        if !self.plan.renews {
            return SERVES;
        }
        let filled = self.rows.shape().filled;
        let is_cheap = |cached: &CachedHessian| filled * cached.order.len() as f64 <= CHEAP;
        if self.cached.as_ref().is_some_and(is_cheap) { SERVES_CHEAP } else { SERVES_FEW }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;
    use crate::auto::Carry;
    use crate::data::{Dataset, Matrix};
    use crate::huge::Huge;
    use crate::loss::LossKind;
    use crate::observe::Control;
    use crate::problem::{Lambda, Terms};
    use crate::solver::{Ended, Solver};
    use crate::{Run, Settings};

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
                assert!(matches!(auto.epoch(&mut |_| Control::Continue), Ok(Ended::Epoch)));
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
            let expansion = auto.expansion(&(0..1), true).unwrap();
            let foreseen = auto.foreseen(&expansion).expect("two fits have ended");
            assert_eq!(foreseen.x, expansion.x);
            let cached = auto.cached.as_mut().expect("their Hessian is kept");
            let distance = |z: Vec<f64>| z.iter().zip(&fit.point.weights).map(|(z, x)| (z - x).abs()).sum::<f64>();
            let (blind, knowing) =
                (distance(cached.minimum(&expansion, 1e-9)), distance(cached.minimum(&foreseen, 1e-9)));
            assert!(knowing < 0.35 * blind, "{knowing} and {blind} after {count} fits");
        }
        // One fit alone tells nothing.
        let (problems, carry) = path(0.0, 1);
        let mut auto = Auto::new(&problems[1], None, Some(carry)).unwrap();
        let expansion = auto.expansion(&(0..1), true).unwrap();
        assert!(auto.foreseen(&expansion).is_none());
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
            auto.rows.place(&auto.point).unwrap();
            intercept::centre(&mut *auto.rows, &mut auto.point.intercept).unwrap();
            auto.gradient = Huge::default();
            auto.measure().unwrap();
            let certificate = auto.certificate.clone().unwrap();
            let gap = certificate.gap.unwrap();
            let expansion = auto.expansion(&(0..1), true).unwrap();
            let foreseen = expansion.gap(problems[1].margin_unit(), certificate.objective);
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
        auto.gradient = Huge::default();
        auto.asked = Some(f64::INFINITY);
        auto.measure().unwrap();
        let features = auto.set.len();
        let expansion = |auto: &mut Auto| auto.expansion(&(0..1), true).unwrap();
        let off = expansion(&mut auto);
        let foreseen = auto.cached.as_ref().expect("a Hessian is kept").centred(&off, features);
        auto.asked = Some(1e-12);
        auto.measure().unwrap();
        let centred = expansion(&mut auto);
        let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
        assert!(distance(&off.u, &centred.u) > 1e-5 && (off.x[features] - centred.x[features]).abs() > 1e-4);
        // The Hessian is that of the λ before.
        assert!(distance(&foreseen.u, &centred.u) < 0.2 * distance(&off.u, &centred.u));
        assert!(distance(&foreseen.x, &centred.x) < 0.2 * distance(&off.x, &centred.x));
        assert_eq!(foreseen.x[..features], off.x[..features]);
    }
}
