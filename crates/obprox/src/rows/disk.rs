//! Rows on a disk, in shards that stream through memory.
//!
//! What is made of a shard, the columns of the working set and its margins, is kept for the next job while there is room; it
//! would be made again to the same bits, so these do not depend on the memory. Margins are as long as the targets, which
//! are in memory too: what they alone decide needs no shard.

use std::sync::Arc;

use super::Sums;
use super::sharded::state::Local;
use super::sharded::task::{Answer, Part, Task, Work, at_zero};
use super::sharded::{Parts, Sharded};
use crate::Result;
use crate::data::ShardedData;
use crate::problem::Problem;

/// Shards on a disk, and what is kept of them.
pub(crate) struct Disk {
    problem: Arc<Problem>,
    parts: Vec<Option<Part>>,
    /// Bytes left for parts that are kept.
    room: u64,
}

impl Disk {
    /// The rows of a problem that is in shards, nowhere yet; as they are, where a pass is to see all.
    pub fn rows(problem: Arc<Problem>, sees_all: bool) -> Sharded {
        let disk = Self::new(Arc::clone(&problem));
        Sharded::new(problem, sees_all, Box::new(disk))
    }

    /// A pass at x = 0.
    pub fn at_zero(problem: &Problem, task: &Task) -> Result<Answer> {
        if task.is_of_targets() {
            let answers = problem.targets_of_shards().map(|shard| at_zero(&shard, task));
            return answers.into_iter().try_fold(Answer::default(), |total, answer| task.fold(total, answer?));
        }
        problem.read_shards(|_| true).try_fold(Answer::default(), |total, shard| {
            let (_, shard) = shard?;
            task.fold(total, at_zero(&shard, task)?)
        })
    }

    fn new(problem: Arc<Problem>) -> Self {
        let shards = problem.shards().expect("a problem in shards");
        Self { parts: (0..shards.n_shards()).map(|_| None).collect(), room: shards.room(), problem }
    }

    /// Forgets parts of other columns.
    fn drop_others(&mut self, local: &Local) {
        if self.parts.iter().flatten().any(|part| !part.is_of(local)) {
            self.parts.iter_mut().for_each(|part| *part = None);
            self.room = self.problem.shards().map_or(0, ShardedData::room);
        }
    }

    fn work(&mut self, local: &Local, task: &Task, work: &Work) -> Result<Answer> {
        self.drop_others(local);
        let problem = Arc::clone(&self.problem);
        let reads_all = work.over.is_some();
        let is_missing: Vec<bool> = self.parts.iter().map(Option::is_none).collect();
        let mut read = problem.read_shards(move |at| reads_all || is_missing[at]);
        let mut total = Answer::default();
        for at in 0..self.parts.len() {
            let known = self.parts[at].take();
            let shard = match known.is_none() || reads_all {
                true => Some(read.next().expect("one for each that is wanted")?.1),
                false => None,
            };
            let is_new = known.is_none();
            let mut part = match (known, &shard) {
                (Some(part), _) => part,
                (None, Some(shard)) => Part::new(local, shard),
                (None, None) => unreachable!("what is not known was read"),
            };
            let mut answer = part.perform(local, work, shard.as_ref())?;
            // The rows are where the last evaluation is.
            if let Some(evaluation) = answer.ahead.as_mut().or(answer.evaluation.as_mut()) {
                evaluation.margins = part.rows.margins().to_vec();
            }
            total = task.fold(total, answer)?;
            if !is_new || part.bytes <= self.room {
                self.room -= if is_new { part.bytes } else { 0 };
                self.parts[at] = Some(part);
            }
        }
        Ok(total)
    }
}

impl Parts for Disk {
    fn pass(&mut self, local: &Local, task: &Task) -> Result<Answer> {
        match task {
            Task::Work(work) => self.work(local, task, work),
            _ => Self::at_zero(&self.problem, task),
        }
    }

    fn looks_ahead(&self) -> bool {
        self.parts.iter().any(Option::is_none)
    }

    fn of_margins(&self, margins: &[f64], of: &dyn Fn(&Problem, &[f64]) -> Vec<f64>) -> Option<Sums> {
        let outputs = self.problem.outputs();
        let mut first = 0;
        Some(self.problem.targets_of_shards().fold(Sums::default(), |total, shard| {
            let rows = first..first + shard.n_rows() * outputs;
            first = rows.end;
            total.plus(&of(&shard, &margins[rows]).into())
        }))
    }
}
