//! Rows in shards, wherever these are: on a disk or on other machines.
//!
//! What is known of the rows between two jobs is n long or as long as the working set ([`State`]): the point, the set, the
//! step that was named, what was done to the dual point. From that whoever has a shard brings it to the state that a job is
//! done in: its margins come from x, never from increments. So a job is a pass over the shards, and its sums are those of
//! the shards added up in their order, whoever computed them.
//!
//! A pass is dear, so it brings home more than it was asked for: whatever job comes first at a point, it leaves f and its
//! slopes there ([`Evaluation`]), and a full step that is tried leaves those at its end. A Newton step is two passes, its Hessian
//! and its trial.

pub(crate) mod change;
pub(crate) mod evaluation;
pub(crate) mod state;
pub(crate) mod task;

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use self::change::Change;
use self::evaluation::{Columns, Evaluation};
use self::state::{Local, State};
use self::task::{Answer, Over, Task, Work};
use super::memory::centring::{self, Alike};
use super::memory::pass;
use super::{DualJob, Job, Shape, Shards, Sums};
use crate::Result;
use crate::huge::Huge;
use crate::problem::Problem;

/// Shards that can be asked.
pub(crate) trait Parts: Send + Sync {
    /// Does a task on every shard and adds up the answers in their order.
    fn pass(&mut self, local: &Local, task: &Task) -> Result<Answer>;
    /// Whether a pass is dear enough to look ahead.
    fn looks_ahead(&self) -> bool;
    /// Sums over the rows of each shard of what margins alone tell, added up in the order of the shards; nothing where
    /// margins stay with the shards.
    fn of_margins(&self, margins: &[f64], of: &dyn Fn(&Problem, &[f64]) -> Vec<f64>) -> Option<Sums>;
}

/// Rows in shards, and where they are.
pub(crate) struct Sharded {
    problem: Arc<Problem>,
    shape: Shape,
    state: State,
    parts: Box<dyn Parts>,
    /// What rows evaluate to here, and at the end of the step that was named.
    evaluation: Option<Evaluation>,
    ahead: Option<Evaluation>,
    entries: Option<f64>,
}

impl Sharded {
    /// The rows of a problem that is in shards, nowhere yet; as they are, where a pass is to see all.
    pub(super) fn new(problem: Arc<Problem>, sees_all: bool, parts: Box<dyn Parts>) -> Self {
        let cells = problem.n_rows() as f64 * problem.n_columns_of_data() as f64;
        Self {
            shape: Shape { filled: problem.nnz() as f64 / cells, sees_all },
            state: State::new(&problem, sees_all),
            parts,
            evaluation: None,
            ahead: None,
            entries: None,
            problem,
        }
    }

    fn pass(&mut self, work: Work) -> Result<Answer> {
        self.parts.pass(&self.state.local(), &Task::Work(work))
    }

    fn job(&mut self, job: Job) -> Result<Sums> {
        Ok(self.pass(Work { job: Some(job), ..Work::default() })?.sums)
    }

    fn moved(&mut self) {
        (self.evaluation, self.ahead) = (None, None);
        self.state.moved();
    }

    /// Takes a share of the step that was named.
    fn take(&mut self, size: f64) {
        let Some(to) = self.state.after(size) else { return };
        let ahead = self.ahead.take().filter(|_| size == 1.0);
        self.state.point = to;
        self.moved();
        self.evaluation = ahead;
    }

    /// Σ vᵢdᵢ over every column, of numbers that rows have; and their evaluation on the way.
    fn over_columns(&mut self, over: Over) -> Result<Huge<f64>> {
        let evaluate = self.evaluation.is_none().then_some(None);
        let answer = self.pass(Work { over: Some(over), evaluate, ..Work::default() })?;
        self.evaluation = self.evaluation.take().or(answer.evaluation);
        let Columns { sums: mut gradient, .. } = answer.columns.unwrap_or_default();
        let share = 1.0 / self.problem.n_rows() as f64;
        gradient.iter_mut().for_each(|sum| *sum *= share);
        Ok(gradient)
    }

    /// The evaluation here, with the slopes of some outputs where they are wanted.
    fn evaluate(&mut self, outputs: Option<&Range<usize>>) -> Result<&mut Evaluation> {
        let has_slopes = |evaluation: &Evaluation| {
            outputs.is_none_or(|outputs| evaluation.slopes.as_ref().is_some_and(|(known, _)| known == outputs))
        };
        let evaluation = match self.evaluation.take() {
            Some(evaluation) if has_slopes(&evaluation) => evaluation,
            Some(evaluation) => {
                let outputs = outputs.cloned().unwrap_or_default();
                let sums = self.job(Job::Slopes { outputs: outputs.clone(), features: true })?;
                Evaluation { slopes: Some((outputs, sums)), ..evaluation }
            }
            None => {
                let work = Work { evaluate: Some(outputs.cloned()), ..Work::default() };
                self.pass(work)?.evaluation.unwrap_or_default()
            }
        };
        Ok(self.evaluation.insert(evaluation))
    }

    /// f after a full step. The evaluation there comes along, which the next step will ask for.
    fn try_whole(&mut self) -> Result<Sums> {
        let ahead = match (self.state.step_outputs(), self.state.after(1.0)) {
            (Some(outputs), Some(to)) if self.parts.looks_ahead() => Some((self.state.on_columns(&to), outputs)),
            _ => None,
        };
        let answer = self.pass(Work { job: Some(Job::Loss(1.0)), ahead, ..Work::default() })?;
        self.ahead = answer.ahead;
        Ok(answer.sums)
    }

    /// What the margins say of the intercepts if these moved.
    fn centre(&mut self, shift: &[f64]) -> Result<Sums> {
        let pulls = |shard: &Problem, margins: &[f64]| {
            let alike = Alike::of(shard, margins);
            centring::pulls(shard, margins, alike.as_ref(), shift).unwrap_or_default()
        };
        self.evaluate(None)?;
        let margins = self.evaluation.as_ref().map_or(&[][..], |evaluation| &evaluation.margins);
        match self.parts.of_margins(margins, &pulls) {
            Some(sums) => Ok(sums),
            None => self.job(Job::Centre(shift)),
        }
    }

    /// Σ ℓ* where the dual point is what the margins say.
    fn conjugate(&mut self, scale: f64) -> Result<Sums> {
        self.evaluate(None)?;
        let of = |shard: &Problem, margins: &[f64]| {
            vec![pass::mean_conjugate(shard, scale, &pass::row_gradients(shard, margins))]
        };
        let margins = self.evaluation.as_ref().map_or(&[][..], |evaluation| &evaluation.margins);
        match self.parts.of_margins(margins, &of) {
            Some(sums) => Ok(sums),
            None => Ok(self.pass(Work { conjugate: Some(scale), ..Work::default() })?.sums),
        }
    }

    /// Whether the dual point is no longer what the margins say.
    fn has_moved_dual(&self) -> bool {
        self.state.changes.iter().any(|change| matches!(change, Change::Move(_) | Change::Correct(_)))
    }

    /// A job that asks for sums.
    fn sums(&mut self, job: &Job) -> Result<Sums> {
        match job {
            Job::Gradient { columns: true } if !self.shape.sees_all => {
                let array = self.over_columns(Over::Slopes)?;
                Ok(Sums { numbers: self.evaluate(None)?.numbers(), array })
            }
            Job::Gradient { columns } => {
                let gradient = &self.evaluate(None)?.gradient;
                let array = if *columns { gradient.array.clone() } else { Huge::default() };
                Ok(Sums { numbers: gradient.numbers.clone(), array })
            }
            Job::Loss(0.0) => Ok(self.evaluate(None)?.numbers()[..1].to_vec().into()),
            Job::Loss(1.0) => self.try_whole(),
            Job::Slopes { outputs, features: true } => {
                let slopes = self.evaluate(Some(outputs))?.slopes.as_ref();
                Ok(slopes.map_or_else(Vec::new, |(_, sums)| sums.numbers.clone()).into())
            }
            Job::Slopes { outputs, features: false } => match self.problem.has_intercept() {
                true => Ok(self.evaluate(None)?.numbers()[1..][outputs.clone()].to_vec().into()),
                false => Ok(Sums::default()),
            },
            Job::Entries => {
                let entries = match self.entries {
                    Some(entries) => entries,
                    None => self.job(Job::Entries)?.numbers[0],
                };
                self.entries = Some(entries);
                Ok(vec![entries].into())
            }
            Job::Centre(shift) => self.centre(shift),
            Job::Dual(DualJob::Value(scale)) if !self.has_moved_dual() => self.conjugate(*scale),
            Job::Dual(DualJob::Gradient) if !self.shape.sees_all => Ok(self.over_columns(Over::Dual)?.into()),
            Job::Dual(DualJob::Free(features)) => {
                let indices = self.state.indices(features);
                self.job(Job::Dual(DualJob::Free(&indices)))
            }
            job => self.job(job.clone()),
        }
    }
}

impl Shards for Sharded {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn run(&mut self, job: &Job) -> Result<Sums> {
        match job {
            Job::Place(point) => {
                if self.state.place(point) {
                    self.entries = None;
                }
                (self.evaluation, self.ahead) = (None, None);
            }
            Job::Shift(by) => {
                self.state.point.intercept.iter_mut().zip(*by).for_each(|(value, by)| *value += by);
                self.moved();
            }
            Job::Select(features) => {
                self.state.select(features);
                (self.entries, self.ahead) = (None, None);
                self.evaluation.iter_mut().for_each(|evaluation| evaluation.slopes = None);
            }
            Job::Take(size) => self.take(*size),
            Job::Secants(after) => self.state.remember_secant(*after),
            Job::Propose { .. } => {
                // Whoever works on the dual point begins anew after a step.
                self.state.begin(Change::of(job).into_iter().collect());
                self.ahead = None;
            }
            // These change what there is and ask for nothing.
            Job::Dual(DualJob::Begin) => {
                let mut changes = std::mem::take(&mut self.state.changes);
                changes.retain(|change| matches!(change, Change::Propose { .. }));
                changes.push(Change::Begin);
                self.state.begin(changes);
            }
            Job::Dual(DualJob::FreeReplace(_)) => self.state.changes.extend(Change::of(job)),
            job => {
                if let Job::Dual(DualJob::Free(features)) = job
                    && self.state.need(features.iter().copied())
                {
                    (self.entries, self.ahead) = (None, None);
                }
                let sums = self.sums(job)?;
                self.state.changes.extend(Change::of(job));
                return Ok(sums);
            }
        }
        Ok(Sums::default())
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.state.save(out)
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.state.load(input)?;
        (self.evaluation, self.ahead, self.entries) = (None, None, None);
        Ok(())
    }
}
