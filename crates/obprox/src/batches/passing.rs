//! Rows of batches that are read from shards.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::Result;
use crate::data::{Gathered, Matrix};
use crate::problem::Problem;

/// Shards that pass by in the order of an epoch. Those that there is room for stay, which saves the reading and nothing
/// else.
pub(super) struct Passing<'a> {
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
    pub fn new(problem: &'a Problem) -> Self {
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

    pub fn begin(&mut self, order: Vec<usize>) {
        let wanted = order.iter().copied().filter(|&shard| self.kept[shard].is_none()).collect();
        self.ahead = Box::new(self.problem.read_rows(self.columns.clone(), wanted));
        (self.to_come, self.now) = (order.into(), None);
    }

    /// Before an epoch is begun.
    pub fn keep_columns(&mut self, columns: &[u32]) {
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
    pub fn gather(&mut self, mut rows: &[u32], batch: &mut Gathered) -> Result<()> {
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
