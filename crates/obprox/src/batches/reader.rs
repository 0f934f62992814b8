//! Batches made ready for steps: their rows copied, their features numbered.
//!
//! None of it depends on the weights. So with many features, where it is a wait for memory at every row and at every mark,
//! a thread of its own reads the next batches while steps are taken on this one; what a step is given is the same.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::Batch;
use crate::data::Matrix;
use crate::huge::Huge;
use crate::prefetch::{AHEAD, prefetch};
use crate::sampler::Sampler;

/// Batches that lie ready at most: a step that takes longer than another keeps no one waiting.
pub(super) const READY: usize = 8;

/// Numbers the features of batches.
pub(super) struct Numbering {
    n_features: usize,
    /// The number of a feature in the last batch that mentioned it, counted on from batch to batch.
    mark: Huge<u32>,
    /// The first number of the next batch.
    next_mark: u32,
}

impl Numbering {
    /// Of rows that have so many features.
    pub fn new(n_features: usize) -> Self {
        Self { n_features, mark: Huge::zeros(0), next_mark: 0 }
    }

    /// Numbers the features of a batch 0, 1, … as they are met.
    #[inline(never)]
    pub fn number(&mut self, batch: &mut Batch) {
        let Batch { rows, features } = batch;
        let entries = rows.columns.len();
        features.clear();
        if self.n_features <= entries {
            features.extend(0..self.n_features as u32);
            return;
        }
        if self.mark.is_empty() || self.next_mark.checked_add(entries as u32).is_none() {
            self.mark = Huge::zeros(self.n_features);
            self.next_mark = 1;
        }
        features.resize(entries, 0);
        let (mark, first) = (&mut self.mark[..], self.next_mark);
        let mut met = 0;
        for at in 0..entries {
            if let Some(&ahead) = rows.columns.get(at + AHEAD) {
                prefetch(mark, ahead as usize);
            }
            let column = &mut rows.columns[at];
            // Without a branch: whether a feature is new in the batch is a coin toss no predictor wins.
            let mark = &mut mark[*column as usize];
            let new = *mark < first;
            *mark = if new { first + met } else { *mark };
            features[met as usize] = *column;
            met += u32::from(new);
            *column = *mark - first;
        }
        features.truncate(met as usize);
        self.next_mark += met;
    }
}

/// Reads batches of rows in memory.
pub(super) struct Reader {
    matrix: Matrix,
    numbering: Numbering,
}

impl Reader {
    /// Of these rows, whose arrays are shared.
    pub fn new(matrix: &Matrix) -> Self {
        Self { matrix: matrix.clone(), numbering: Numbering::new(matrix.n_cols()) }
    }

    /// Reads these rows.
    pub fn read(&mut self, rows: &[u32], batch: &mut Batch) {
        batch.rows.clear();
        self.matrix.gather(rows, &mut batch.rows);
        self.numbering.number(batch);
    }
}

/// A thread that reads the batches of an epoch and is given back what was used.
pub(super) struct Ahead {
    ready: Receiver<Batch>,
    used: Sender<Batch>,
    thread: JoinHandle<Reader>,
}

impl Ahead {
    /// Begins with a batch of the epoch; none where the system has no thread to give.
    pub fn begin(mut reader: Reader, sampler: Arc<Sampler>, from: usize) -> Option<Self> {
        let (filled, ready) = sync_channel(READY);
        let (used, empty) = channel::<Batch>();
        let read_on = move || {
            for at in from..sampler.batches() {
                let mut batch = empty.try_recv().unwrap_or_default();
                reader.read(sampler.batch(at), &mut batch);
                // Steps may end before the epoch does.
                if filled.send(batch).is_err() {
                    break;
                }
            }
            reader
        };
        let thread = thread::Builder::new().spawn(read_on).ok()?;
        Some(Self { ready, used, thread })
    }

    /// Takes the next batch in the place of one that was used.
    pub fn next(&mut self, batch: &mut Batch) {
        let next = self.ready.recv().expect("a thread that reads every batch");
        // Whoever has read the last batch needs no more memory.
        let _ = self.used.send(std::mem::replace(batch, next));
    }

    /// Ends the thread, wherever it is.
    pub fn end(self) -> Option<Reader> {
        let Self { ready, used, thread } = self;
        drop((ready, used));
        thread.join().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::Batch as Size;

    #[test]
    fn a_batch_is_the_same_whoever_reads_it() {
        let rows: Vec<Vec<(u32, f64)>> = (0..997u32)
            .map(|row| (0..row % 5).map(|at| (at * 40 + row * 7 % 40, f64::from(row + at))).collect())
            .collect();
        let matrix = Matrix::from_rows(200, &rows);
        let mut sampler = Sampler::new(rows.len(), Size::Rows(10), 3).unwrap();
        sampler.begin_epoch(1);
        let sampler = Arc::new(sampler);
        // From the middle of an epoch too, and no further than steps go.
        for (from, to) in [(0, 100), (37, 100), (5, 9)] {
            let mut here = Reader::new(&matrix);
            let mut ahead = Ahead::begin(Reader::new(&matrix), Arc::clone(&sampler), from).unwrap();
            let mut batches = [Batch::default(), Batch::default()];
            for at in from..to {
                let numbers = sampler.batch(at);
                here.read(numbers, &mut batches[0]);
                ahead.next(&mut batches[1]);
                let [one, other] = &batches;
                assert_eq!(one.features, other.features);
                for (place, &row) in numbers.iter().enumerate() {
                    for batch in [one, other] {
                        let mut entries = Vec::new();
                        batch.for_each(place, |column, value| entries.push((column as u32, value)));
                        assert_eq!(entries, rows[row as usize]);
                    }
                }
            }
            assert!(ahead.end().is_some());
        }
    }
}
