//! What a shard is asked to do in one pass, and what it answers.
//!
//! A pass costs the reading of all shards, or a message to all machines, so a task is all that can be done in one. It is
//! done by whoever has the rows, from the state alone; the answers of shards add up in their order.

use std::ops::Range;
use std::sync::Arc;

use super::evaluation::{Columns, Evaluation};
use super::state::{Local, Times};
use crate::huge::Huge;
use crate::problem::{Point, Problem};
use crate::rows::memory::{Memory, at_zero, centring, pass};
use crate::rows::sharded::change::{Change, Secant};
use crate::rows::{DualJob, Job, Shards, Sums};
use crate::{Error, Result};

/// A task for every shard.
pub(crate) enum Task<'a> {
    /// Work on rows that were brought to where all are.
    Work(Work<'a>),
    /// At x = 0: how much the rows of each target weigh, where targets are few.
    Alike,
    /// f there with such intercepts, and how the rows pull at them.
    AtZero(&'a [f64]),
    /// The slopes of every column there, with the bounds that they have at any point where these are wanted.
    ColumnsAtZero { intercept: &'a [f64], bounds: bool },
}

/// Work on the rows of a shard, in this order.
#[derive(Default)]
pub(crate) struct Work<'a> {
    pub job: Option<Job<'a>>,
    /// Instead of a job: Σ ℓ* at such a multiple of the slopes, which the margins alone tell.
    pub conjugate: Option<f64>,
    /// The evaluation where the rows are; the slopes along the working set are those of some outputs.
    pub evaluate: Option<Option<Range<usize>>>,
    /// Sums over every column.
    pub over: Option<Over>,
    /// Then that at another point, the end of the step that was named.
    pub ahead: Option<(Point, Range<usize>)>,
}

/// Numbers of the rows that are summed up over every column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Over {
    Slopes,
    Dual,
}

/// What a shard answers.
#[derive(Default)]
pub(crate) struct Answer {
    pub sums: Sums,
    pub evaluation: Option<Evaluation>,
    pub columns: Option<Columns>,
    pub ahead: Option<Evaluation>,
}

impl Task<'_> {
    /// How many numbers the widest array of an answer has, where there are so many features and outputs.
    pub fn width(&self, features: usize, outputs: usize) -> usize {
        let all = features.saturating_mul(outputs);
        match self {
            Task::ColumnsAtZero { .. } | Task::Work(Work { over: Some(_), .. }) => all,
            Task::Work(Work { job: Some(Job::Dual(DualJob::Gradient)), .. }) => all,
            Task::Work(Work { job: Some(Job::Hessian { order, .. }), .. }) => order.len().saturating_mul(order.len()),
            _ => 0,
        }
    }

    /// Whether the answer is told by targets and weights alone.
    pub fn is_of_targets(&self) -> bool {
        matches!(self, Task::Alike | Task::AtZero(_))
    }

    /// Adds the answer of the next shard.
    pub fn fold(&self, mut total: Answer, mut answer: Answer) -> Result<Answer> {
        let is_largest = matches!(self, Task::Work(Work { job: Some(Job::Dual(DualJob::Largest)), .. }));
        if !is_largest && !matches!(self, Task::Alike) {
            return Ok(total.plus(answer));
        }
        let (before, next) = (std::mem::take(&mut total.sums), std::mem::take(&mut answer.sums));
        let sums = if is_largest { before.larger(&next) } else { centring::merge(&before, &next) };
        Ok(Answer { sums, ..total.plus(answer) })
    }
}

impl Answer {
    /// Adds the sums of the next shard.
    pub fn plus(self, next: Self) -> Self {
        let evaluation =
            |total: Option<Evaluation>, more: Option<Evaluation>| more.map(|more| total.unwrap_or_default().plus(more));
        Self {
            sums: self.sums.plus(&next.sums),
            evaluation: evaluation(self.evaluation, next.evaluation),
            columns: next.columns.map(|more| self.columns.unwrap_or_default().plus(&more)),
            ahead: evaluation(self.ahead, next.ahead),
        }
    }
}

/// The columns of a shard that are worked on, and where its rows are.
pub(crate) struct Part {
    pub rows: Memory,
    times: Times,
    /// Changes that were made to it.
    changed: usize,
    has_secants: bool,
    pub bytes: u64,
}

impl Part {
    /// What is to be worked on of a shard.
    pub fn new(local: &Local, shard: &Problem) -> Self {
        /// Numbers that are kept for each row and output.
        const NUMBERS: u64 = 8;
        /// A set's columns lie as rows, one by one, and as lists.
        const COPIES: u64 = 3;
        let numbers = NUMBERS * 8 * (shard.n_rows() * shard.outputs()) as u64;
        let (problem, copies) = match local.sees_all {
            true => (shard.clone(), 1),
            false => (shard.with_columns(&local.columns), COPIES),
        };
        let bytes = numbers + copies * problem.matrix().bytes() as u64;
        let rows = Memory::new(Arc::new(problem), local.sees_all);
        Self {
            rows,
            times: Times { columns: local.times.columns, ..Times::NEVER },
            changed: 0,
            has_secants: false,
            bytes,
        }
    }

    /// Whether it has the columns that are wanted.
    pub fn is_of(&self, local: &Local) -> bool {
        self.times.columns == local.times.columns
    }

    /// Brings it to where all rows are.
    fn bring(&mut self, local: &Local) -> Result<()> {
        let rows: &mut dyn Shards = &mut self.rows;
        if self.times.set != local.times.set {
            rows.select(&local.set)?;
        }
        if (self.times.set, self.times.point) != (local.times.set, local.times.point) {
            if self.has_secants {
                rows.secants(None)?;
            }
            for Secant { at, outputs, x, z, after } in &local.secants {
                rows.place(at)?;
                rows.propose(outputs.clone(), x, z)?;
                rows.secants(Some(*after))?;
            }
            rows.place(&local.point)?;
            (self.changed, self.has_secants) = (0, !local.secants.is_empty());
        }
        if self.times.changes != local.times.changes {
            self.changed = 0;
        }
        self.times = local.times;
        for change in &local.changes[self.changed.min(local.changes.len())..] {
            one(&mut self.rows, &change.job())?;
        }
        self.changed = local.changes.len();
        Ok(())
    }

    /// Does a task. The shard is asked for only where every column is.
    pub fn perform(&mut self, local: &Local, work: &Work, shard: Option<&Problem>) -> Result<Answer> {
        self.bring(local)?;
        let mut answer = Answer::default();
        if let Some(job) = &work.job {
            answer.sums = one(&mut self.rows, job)?;
            self.changed += usize::from(Change::of(job).is_some());
        }
        if let Some(scale) = work.conjugate {
            answer.sums = self.rows.conjugate_of_margins(scale);
        }
        if let Some(outputs) = &work.evaluate {
            answer.evaluation = Some(Evaluation::of(&mut self.rows, local.sees_all, outputs.clone())?);
        }
        if let (Some(over), Some(shard)) = (work.over, shard) {
            let of_rows = match over {
                Over::Slopes => self.rows.row_gradients(),
                Over::Dual => self.rows.dual_point(),
            };
            let mut sums = Huge::zeros(shard.n_features() * shard.outputs());
            pass::add_gradient(shard, of_rows, &mut sums);
            answer.columns = Some(Columns { sums, most: Huge::default() });
        }
        if let Some((to, outputs)) = &work.ahead {
            match local.sees_all {
                // It has been there.
                true => self.rows.run(&Job::Take(1.0)).map(drop)?,
                false => self.rows.run(&Job::Place(to)).map(drop)?,
            }
            self.times.point = u64::MAX;
            answer.ahead = Some(Evaluation::of(&mut self.rows, local.sees_all, Some(outputs.clone()))?);
        }
        Ok(answer)
    }
}

/// A task at x = 0 on a shard, or on its targets where these are enough.
pub(crate) fn at_zero(shard: &Problem, task: &Task) -> Result<Answer> {
    Ok(match task {
        Task::Work(_) => Answer::default(),
        Task::Alike => Answer { sums: centring::weights_of_targets(shard), ..Answer::default() },
        Task::AtZero(intercept) => {
            let margins = intercept.repeat(shard.n_rows());
            let mut numbers = vec![pass::mean_loss(shard, &margins)];
            numbers.extend(centring::pulls(shard, &margins, None, &vec![0.0; intercept.len()]).unwrap_or_default());
            Answer { sums: numbers.into(), ..Answer::default() }
        }
        Task::ColumnsAtZero { intercept, bounds } => {
            let columns = at_zero::columns_of_shard(shard, intercept, *bounds);
            Answer { columns: Some(columns), ..Answer::default() }
        }
    })
}

/// A job on the rows of one part.
fn one(rows: &mut Memory, job: &Job) -> Result<Sums> {
    match job {
        Job::Hessian { outputs, order } if outputs.len() == 1 => {
            let own = rows.order(order.to_vec());
            let hessian = rows.run(&Job::Hessian { outputs: outputs.clone(), order: &own })?.array;
            let indices = indices_in(&own, order);
            let entry = |(a, b): (usize, usize)| hessian[a.max(b) * own.len() + a.min(b)];
            let line = |&a: &usize| indices.iter().map(move |&b| entry((a, b)));
            Ok(indices.iter().flat_map(line).collect::<Huge<f64>>().into())
        }
        Job::Squares { order } => {
            let own = rows.order(order.to_vec());
            let squares = rows.run(&Job::Squares { order: &own })?.numbers;
            Ok(indices_in(&own, order).iter().map(|&at| squares[at]).collect::<Vec<f64>>().into())
        }
        Job::Descend { .. } => Err(Error::Data("the columns of shards are in no one memory".into())),
        _ => rows.run(job),
    }
}

/// Where the indices of an order are in another one, which has them all.
fn indices_in(own: &[usize], order: &[usize]) -> Vec<usize> {
    let mut indices = vec![usize::MAX; own.iter().max().map_or(0, |last| last + 1)];
    own.iter().enumerate().for_each(|(at, &index)| indices[index] = at);
    order.iter().map(|&index| indices[index]).collect()
}
