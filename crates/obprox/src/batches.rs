//! The rows of batches: copied out of memory, or out of shards that pass by.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::data::{Gathered, Matrix};
use crate::problem::Problem;
use crate::sampler::{Batch, Sampler};
use crate::{Error, Result, memory};

/// The batches of an epoch after the other, with their rows.
pub(crate) struct Batches<'a> {
    sampler: Sampler,
    rows: Rows<'a>,
    gathered: Gathered,
}

enum Rows<'a> {
    Memory { all: &'a Matrix, kept: Cow<'a, Matrix> },
    Shards(Box<Passing<'a>>),
}

impl<'a> Batches<'a> {
    /// The batches of a problem's rows.
    pub fn new(problem: &'a Problem, batch: Batch, seed: u64) -> Result<Self> {
        let Some(shards) = problem.shards() else {
            let (sampler, all) = (Sampler::new(problem.n_rows(), batch, seed)?, problem.matrix());
            let rows = Rows::Memory { all, kept: Cow::Borrowed(all) };
            return Ok(Self { sampler, rows, gathered: Gathered::default() });
        };
        let sampler = Sampler::of_shards(shards.firsts().to_vec(), batch, seed)?;
        /// What an entry of a batch takes: column and value, and as much again where it is worked on.
        const ENTRY: f64 = 24.0;
        let share = sampler.batch_rows() as f64 / problem.n_rows() as f64;
        let bytes = (ENTRY * share * shards.nnz() as f64) as u64;
        if bytes > shards.memory() {
            let message = format!(
                "the {} rows of a batch take {} in memory, where rows may have {}: give a smaller batch or more memory",
                sampler.batch_rows(),
                memory::shown(bytes),
                memory::shown(shards.memory())
            );
            return Err(Error::parameter("batch", message));
        }
        let rows = Rows::Shards(Box::new(Passing::new(problem)));
        Ok(Self { sampler, rows, gathered: Gathered::default() })
    }

    /// Rows in a batch.
    pub fn batch_rows(&self) -> usize {
        self.sampler.batch_rows()
    }

    /// Batches in an epoch.
    pub fn count(&self) -> usize {
        self.sampler.batches()
    }

    /// Begins an epoch, or goes on with it from one of its batches.
    pub fn begin_epoch(&mut self, epoch: u64, from: usize) {
        self.sampler.begin_epoch(epoch);
        if let Rows::Shards(passing) = &mut self.rows {
            passing.begin(self.sampler.shards_from(from));
        }
    }

    /// A batch, those before it having been asked for: the numbers of its rows, and the rows.
    pub fn batch(&mut self, number: usize) -> Result<(&[u32], &mut Gathered)> {
        let rows = self.sampler.batch(number);
        self.gathered.clear();
        match &mut self.rows {
            Rows::Memory { kept, .. } => kept.gather(rows, &mut self.gathered),
            Rows::Shards(passing) => passing.gather(rows, &mut self.gathered)?,
        }
        Ok((rows, &mut self.gathered))
    }

    /// From now on rows have these columns alone, which rise and are numbered anew.
    pub fn keep_columns(&mut self, columns: &[u32]) {
        match &mut self.rows {
            Rows::Memory { all, kept } => *kept = Cow::Owned(all.keep_columns(columns)),
            Rows::Shards(passing) => passing.keep_columns(columns),
        }
    }

    /// Bytes of which a copy with fewer columns would be held beside all rows; nothing where rows pass by.
    pub fn bytes_held(&self) -> usize {
        match &self.rows {
            Rows::Memory { kept, .. } => kept.bytes(),
            Rows::Shards(_) => 0,
        }
    }
}

/// Shards that pass by in the order of an epoch. Those that there is room for stay, which saves the reading and nothing
/// else.
struct Passing<'a> {
    problem: &'a Problem,
    columns: Option<Arc<[u32]>>,
    /// By the number of the shard.
    kept: Vec<Option<Arc<Matrix>>>,
    /// The bytes that those take.
    held: u64,
    /// Shards that are to come, and those of them that are read.
    to_come: VecDeque<usize>,
    ahead: Box<dyn Iterator<Item = Result<(Range<usize>, Matrix)>>>,
    /// The one that is passing, and the numbers of its rows.
    now: Option<(Range<usize>, Arc<Matrix>)>,
    /// Rows as the shard numbers them.
    own: Vec<u32>,
}

impl<'a> Passing<'a> {
    fn new(problem: &'a Problem) -> Self {
        let n_shards = problem.shards().map_or(0, |shards| shards.n_shards());
        Self {
            problem,
            columns: None,
            kept: vec![None; n_shards],
            held: 0,
            to_come: VecDeque::new(),
            ahead: Box::new(std::iter::empty()),
            now: None,
            own: Vec::new(),
        }
    }

    fn begin(&mut self, order: Vec<usize>) {
        let wanted = order.iter().copied().filter(|&shard| self.kept[shard].is_none()).collect();
        self.ahead = Box::new(self.problem.read_rows(self.columns.clone(), wanted));
        (self.to_come, self.now) = (order.into(), None);
    }

    /// Before an epoch is begun.
    fn keep_columns(&mut self, columns: &[u32]) {
        self.columns = Some(columns.into());
        self.let_go();
    }

    fn let_go(&mut self) {
        self.kept.iter_mut().for_each(|shard| *shard = None);
        self.problem.shards().into_iter().for_each(|shards| shards.release(std::mem::take(&mut self.held)));
    }

    /// The next shard.
    fn next(&mut self) -> Result<(Range<usize>, Arc<Matrix>)> {
        // The one that has passed makes room before another comes.
        self.now = None;
        let shard = self.to_come.pop_front().expect("the rows of an epoch are those of its shards");
        let shards = self.problem.shards().expect("a problem in shards");
        let rows = shards.firsts()[shard]..shards.firsts()[shard + 1];
        if let Some(matrix) = &self.kept[shard] {
            return Ok((rows, Arc::clone(matrix)));
        }
        let matrix = Arc::new(self.ahead.next().expect("one for each that is wanted")?.1);
        let bytes = matrix.bytes() as u64;
        if shards.hold(bytes) {
            self.held += bytes;
            self.kept[shard] = Some(Arc::clone(&matrix));
        }
        Ok((rows, matrix))
    }

    /// Copies rows, which are some of the shard that is passing and of those that come next.
    fn gather(&mut self, mut rows: &[u32], batch: &mut Gathered) -> Result<()> {
        while let Some(&first) = rows.first() {
            let (numbers, matrix) = match self.now.take() {
                Some(now) if now.0.contains(&(first as usize)) => now,
                _ => self.next()?,
            };
            let here = rows.iter().take_while(|&&row| numbers.contains(&(row as usize))).count();
            self.own.clear();
            self.own.extend(rows[..here].iter().map(|&row| row - numbers.start as u32));
            matrix.gather(&self.own, batch);
            rows = &rows[here..];
            self.now = Some((numbers, matrix));
        }
        Ok(())
    }
}

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        self.let_go();
    }
}
