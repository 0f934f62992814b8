//! The side of whoever has shards: one pure function of a shard and a request.
//!
//! What is made of a shard for one request, its columns and margins, is kept for the next while there is room. It would be
//! made again to the same bits, wherever that is.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::summary::{self, Summary};
use super::wire::{In, Order, Out, Wire};
use super::{Header, Request, Weigh, failed};
use crate::data::{Buffer, Dataset, ReadOptions, read};
use crate::problem::Problem;
use crate::rows::sharded::state::Local;
use crate::rows::sharded::task::{Answer, Part, Task, at_zero};
use crate::{Error, Result};

/// Rows of one shard, with their weights where they have some.
#[derive(Clone, Debug)]
pub struct Shard {
    /// What errors call it.
    pub name: String,
    /// The rows.
    pub data: Dataset,
    /// How much each row counts.
    pub weights: Option<Buffer<f64>>,
    /// What is added to the margin of each row, which is known beforehand.
    pub offsets: Option<Buffer<f64>>,
}

impl Shard {
    /// The rows of a file.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Self> {
        let name = path.display().to_string();
        let data = read(path, options).map_err(|error| match error {
            Error::File { .. } | Error::Parse { .. } | Error::Io { .. } => error,
            other => Error::file(name.clone(), other.to_string()),
        })?;
        Ok(Self { name, data, weights: None, offsets: None })
    }

    /// The same with what stands beside its rows.
    pub fn beside(self, weights: Option<Buffer<f64>>, offsets: Option<Buffer<f64>>) -> Result<Self> {
        let n_rows = self.data.targets.len();
        for (what, numbers) in [("weights", &weights), ("offsets", &offsets)] {
            if let Some(others) = numbers.as_ref().map(|numbers| numbers.len()).filter(|&len| len != n_rows) {
                return Err(Error::file(
                    self.name,
                    format!("has {n_rows} rows, and there are {others} {what} for them"),
                ));
            }
        }
        Ok(Self { weights, offsets, ..self })
    }

    /// What tells its rows from others.
    pub(super) fn sum(&self) -> u32 {
        let beside = [self.weights.as_deref(), self.offsets.as_deref()];
        summary::sum_of(&self.data.matrix, &self.data.targets, beside)
    }
}

/// What is kept of a shard from one request to the next.
struct Kept {
    run: (u64, u64),
    number: usize,
    shard: Problem,
    part: Option<Part>,
}

/// What is kept of the shards of this process, oldest first.
static KEPT: Mutex<Vec<Kept>> = Mutex::new(Vec::new());

/// Does what a request asks of the shard of this number, which is `open`ed only where nothing was kept of it. The reply
/// says what went wrong, where something did: it is for the driver to tell.
pub fn work(number: usize, request: &[u8], open: impl FnOnce() -> Result<Shard>) -> Vec<u8> {
    let mut out = Out::default();
    match reply(number, request, open, &mut out) {
        Ok(()) => out.0,
        Err(error) => failed(error),
    }
}

fn reply(number: usize, request: &[u8], open: impl FnOnce() -> Result<Shard>, out: &mut Out) -> Result<()> {
    let mut input = In(request);
    let header: Header = input.get()?;
    header.check()?;
    out.put(&0u8);
    match header.asks {
        Request::Summary => Summary::at(&open()?).put(out),
        Request::Weigh => {
            let weigh: Weigh = input.get()?;
            let shard = open()?;
            header.recognise(number, &shard)?;
            weigh.of(&shard).put(out);
        }
        Request::Task => {
            let (local, order): (Option<Local>, Order) = (input.get()?, input.get()?);
            input.end()?;
            let mut kept = match take(header.run, number) {
                Some(kept) => kept,
                None => {
                    let shard = open()?;
                    header.recognise(number, &shard)?;
                    let statement =
                        header.statement.as_ref().ok_or_else(|| Error::Data("nothing was stated".into()))?;
                    Kept { run: header.run, number, shard: Problem::of_remote_shard(&shard, statement)?, part: None }
                }
            };
            perform(&mut kept, local.as_ref(), &order.task()?)?.put(out);
            keep(kept, header.room);
        }
    }
    Ok(())
}

fn perform(kept: &mut Kept, local: Option<&Local>, task: &Task) -> Result<Answer> {
    let (Task::Work(work), Some(local)) = (task, local) else { return at_zero(&kept.shard, task) };
    let known = kept.part.take().filter(|part| part.is_of(local));
    let mut part = known.unwrap_or_else(|| Part::new(local, &kept.shard));
    let answer = part.perform(local, work, Some(&kept.shard))?;
    kept.part = Some(part);
    Ok(answer)
}

fn take(run: (u64, u64), number: usize) -> Option<Kept> {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let at = all.iter().position(|kept| (kept.run, kept.number) == (run, number))?;
    Some(all.remove(at))
}

/// Whether a shard is at hand for a request, so that nobody need open it.
pub fn is_kept(number: usize, request: &[u8]) -> bool {
    let Ok(header) = In(request).get::<Header>() else { return false };
    let all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().any(|kept| (kept.run, kept.number) == (header.run, number))
}

/// Keeps what was made; the oldest goes where there is no more room.
fn keep(kept: Kept, room: u64) {
    let bytes = |kept: &Kept| kept.shard.matrix().bytes() as u64 + kept.part.as_ref().map_or(0, |part| part.bytes);
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    // Those of other runs of the driver are of no use any more.
    all.retain(|other| other.run.0 == kept.run.0);
    all.push(kept);
    let mut total: u64 = all.iter().map(bytes).sum();
    while total > room && !all.is_empty() {
        total -= bytes(&all.remove(0));
    }
}
