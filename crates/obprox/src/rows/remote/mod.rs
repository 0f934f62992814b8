//! Rows on other machines, in shards that never leave them.
//!
//! The solver runs on the driver. An [`Engine`] is one method: it has every shard answer a request and hands the replies on
//! in the order of the shards. A request is the state that the rows are to be in and what is to be done there; a reply is
//! sums, with the columns that the shard has itself. [`work`] is what runs where a shard is: a pure function, so a shard
//! whose machine is lost is asked again elsewhere, to the same bits. Nothing that is N long is on the driver, not even the
//! targets.

mod open;
mod pieces;
mod statement;
mod summary;
mod wire;
mod worker;

use std::sync::Arc;

pub use self::open::RemoteData;
pub use self::pieces::{Pieces, add, cut};
pub(crate) use self::statement::{Kept, Statement, Weighing};
pub use self::worker::{Shard, is_kept, work};

use self::wire::{In, Order, Out, Wire};
use super::Sums;
use super::sharded::state::Local;
use super::sharded::task::{Answer, Task};
use super::sharded::{Parts, Sharded};
use crate::problem::Problem;
use crate::{Error, Result};

/// Whoever reaches the shards.
pub trait Engine: Send + Sync {
    /// Has every shard answer a request, and hands on the replies in the order of the shards.
    fn map(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// How many numbers of a reply are added up in one place before they come to the driver; nothing where the engine only
    /// maps. Then the driver is sent the whole replies of all shards.
    fn piece(&self) -> Option<usize> {
        None
    }

    /// Has every shard answer a request, [`cut`]s each reply into so many pieces of such a width, [`add`]s up those of the
    /// same number in the order of the shards, wherever that is, and hands on the sums in the order of the pieces.
    fn reduce(&self, _: &[u8], _: Pieces, _: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        Err(Error::Data("an engine that adds up nothing was asked to".into()))
    }
}

/// What a request begins with.
pub(super) struct Header {
    version: String,
    pub(super) asks: Request,
    /// The driver's run, and which rows of it.
    pub(super) run: (u64, u64),
    /// Bytes that a process may keep of shards.
    pub(super) room: u64,
    /// What tells the rows of each shard from others, once that is known.
    sums: Vec<u32>,
    pub(super) statement: Option<Statement>,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Request {
    Summary,
    Weigh,
    Task,
}

impl Header {
    /// Refuses a driver of another version: neither would understand the other, or not to the same bits.
    pub(super) fn check(&self) -> Result<()> {
        match self.version == VERSION {
            true => Ok(()),
            false => Err(Error::Data(format!(
                "the driver is obprox {} and a worker is obprox {VERSION}: install the same on all machines",
                self.version
            ))),
        }
    }

    /// Refuses a shard that is another one than at the start of the run.
    pub(super) fn recognise(&self, number: usize, shard: &Shard) -> Result<()> {
        match self.sums.get(number) == Some(&shard.sum()) {
            true => Ok(()),
            false => Err(Error::file(shard.name.clone(), "has changed since the run began: start it anew")),
        }
    }
}

/// Versions that understand each other and compute the same bits.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// What the first bytes of a request say.
const MAGIC: &[u8; 8] = b"obprox\x00\x01";

impl Wire for Header {
    fn put(&self, out: &mut Out) {
        out.0.extend_from_slice(MAGIC);
        out.put(&self.version).put(&(self.asks as u8)).put(&self.run).put(&self.room);
        out.put(&self.sums).put(&self.statement);
    }
    fn get(input: &mut In) -> Result<Self> {
        let foreign = || Error::Data("a request that is none of obprox, or of a version that is not known here".into());
        input.0 = input.0.strip_prefix(MAGIC).ok_or_else(foreign)?;
        let version: String = input.get()?;
        let header = Self { version, asks: Request::Summary, run: (0, 0), room: 0, sums: Vec::new(), statement: None };
        // What follows is only known of this version.
        header.check()?;
        let asks = match input.get::<u8>()? {
            0 => Request::Summary,
            1 => Request::Weigh,
            2 => Request::Task,
            _ => return Err(foreign()),
        };
        let (run, room) = (input.get()?, input.get()?);
        Ok(Self { asks, run, room, sums: input.get()?, statement: input.get()?, ..header })
    }
}

/// How much the rows weigh, of which those of a class weigh so much more.
pub(super) struct Weigh {
    labels: Vec<f64>,
    weighing: Weighing,
}

impl Weigh {
    /// Σ of the weights, and how many of them are not 1.
    pub(super) fn of(&self, shard: &Shard) -> Vec<f64> {
        let targets = &shard.data.targets;
        let class = |row: usize| self.labels.partition_point(|&label| label < targets[row]);
        let weights = self.weighing.weights(shard.weights.as_deref(), targets.len(), class).unwrap_or_default();
        vec![weights.iter().sum(), weights.iter().filter(|&&weight| weight != 1.0).count() as f64]
    }
}

impl Wire for Weigh {
    fn put(&self, out: &mut Out) {
        out.put(&self.labels).put(&self.weighing.classes).put(&self.weighing.scale);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self { labels: input.get()?, weighing: Weighing { classes: input.get()?, scale: input.get()? } })
    }
}

/// The reply that says what went wrong, for the driver to tell.
fn failed(error: Error) -> Vec<u8> {
    let (file, message) = match error {
        Error::File { file, message } => (Some(file), message),
        Error::Io { path, action, source } => (Some(path.display().to_string()), format!("{action}: {source}")),
        Error::Parse { file, line, column, message } => (Some(format!("{file}:{line}:{column}")), message),
        other => (None, other.to_string()),
    };
    let mut out = Out::default();
    out.put(&1u8).put(&file).put(&message);
    out.0
}

/// The reply of a shard, or what went wrong there.
fn opened(reply: &[u8]) -> Result<In<'_>> {
    let mut input = In(reply);
    if input.get::<u8>()? == 0 {
        return Ok(input);
    }
    let (file, message): (Option<String>, String) = (input.get()?, input.get()?);
    Err(match file {
        Some(file) => Error::file(file, message),
        None => Error::Data(message),
    })
}

/// Shards on other machines.
pub(crate) struct Remote {
    data: Arc<RemoteData>,
    statement: Statement,
    /// Which rows of the run they are: those of another problem are brought elsewhere.
    instance: u64,
}

impl Remote {
    /// The rows of a problem on other machines, nowhere yet; as they are, where a pass is to see all.
    pub fn rows(problem: Arc<Problem>, sees_all: bool) -> Sharded {
        let remote = Self::new(&problem);
        Sharded::new(problem, sees_all, Box::new(remote))
    }

    /// A pass at x = 0.
    pub fn at_zero(problem: &Problem, task: &Task) -> Result<Answer> {
        Self::new(problem).ask(None, task)
    }

    fn new(problem: &Problem) -> Self {
        let data = Arc::clone(problem.remote().expect("a problem on other machines"));
        Self { instance: data.next_instance(), statement: problem.statement(), data }
    }

    fn ask(&self, local: Option<&Local>, task: &Task) -> Result<Answer> {
        let mut request = Out::default();
        self.data.header(Request::Task, self.instance, Some(&self.statement)).put(&mut request);
        request.put(&local.is_some());
        local.into_iter().for_each(|local| local.put(&mut request));
        Order::of(task)?.put(&mut request);
        let mut total = Answer::default();
        let features = self.statement.kept.as_ref().map_or(self.data.n_cols(), |kept| kept.0.len());
        match self.data.pieces(task.width(features, self.statement.outputs as usize)) {
            Some(pieces) => {
                let mut sums = Vec::new();
                self.data.reduce(&request.0, pieces, &mut |input| {
                    sums.push(input.get()?);
                    input.end()
                })?;
                total = Answer::joined(sums);
            }
            None => self.data.map(&request.0, &mut |input| {
                total = task.fold(std::mem::take(&mut total), input.get()?)?;
                input.end()
            })?,
        }
        Ok(total)
    }
}

impl Parts for Remote {
    fn pass(&mut self, local: &Local, task: &Task) -> Result<Answer> {
        self.ask(Some(local), task)
    }

    fn looks_ahead(&self) -> bool {
        true
    }

    fn of_margins(&self, _: &[f64], _: &dyn Fn(&Problem, &[f64]) -> Vec<f64>) -> Option<Sums> {
        None
    }
}
