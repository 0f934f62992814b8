//! Batches made ready for steps: their rows copied, their features numbered.
//!
//! None of it depends on the weights. So with many features, where it is a wait for memory at every row and at every mark,
//! a thread of its own reads the next batches while steps are taken on this one; what a step is given is the same.

use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

use crate::data::{Gathered, Matrix};
use crate::huge::Huge;
use crate::prefetch::{AHEAD, prefetch};
use crate::rows::FAR;
use crate::sampler::Sampler;

/// Batches that lie ready at most: a step that takes longer than another keeps no one waiting.
const READY: usize = 8;

/// The rows of a batch.
#[derive(Default)]
pub(crate) struct Batch {
    /// One after the other; columns are numbers of features.
    pub rows: Gathered,
    /// The features by number.
    pub features: Vec<u32>,
}

/// Reads batches.
pub(crate) struct Reader {
    matrix: Matrix,
    /// The number of a feature in the last batch that mentioned it, counted on from batch to batch.
    mark: Huge<u32>,
    /// The first number of the next batch.
    next_mark: u32,
}

impl Reader {
    /// Of these rows, whose arrays are shared.
    pub fn new(matrix: &Matrix) -> Self {
        Self { matrix: matrix.clone(), mark: Huge::zeros(0), next_mark: 0 }
    }

    fn read(&mut self, rows: &[u32], batch: &mut Batch) {
        self.matrix.gather(rows, &mut batch.rows);
        self.number(batch);
    }

    /// Numbers the features of a batch 0, 1, … as they are met.
    #[inline(never)]
    fn number(&mut self, batch: &mut Batch) {
        let Batch { rows, features } = batch;
        let (n_cols, entries) = (self.matrix.n_cols(), rows.columns.len());
        features.clear();
        if n_cols <= entries {
            features.extend(0..n_cols as u32);
            return;
        }
        if self.mark.is_empty() || self.next_mark.checked_add(entries as u32).is_none() {
            self.mark = Huge::zeros(n_cols);
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

/// Where steps get their batches.
pub(crate) enum Batches {
    /// Read when they are asked for.
    Here(Box<(Reader, Batch)>),
    /// Read ahead by a thread, which is given back what was used.
    Ahead { ready: Receiver<Batch>, used: Sender<Batch>, batch: Batch },
}

impl Batches {
    /// The next batch, which has these rows.
    pub fn next(&mut self, rows: &[u32]) -> &Batch {
        match self {
            Self::Here(here) => {
                let (reader, batch) = &mut **here;
                reader.read(rows, batch);
                batch
            }
            Self::Ahead { ready, used, batch } => {
                let next = ready.recv().expect("a thread that reads every batch");
                // Whoever has read the last batch needs no more memory.
                let _ = used.send(std::mem::replace(batch, next));
                batch
            }
        }
    }
}

/// Takes steps with the batches of an epoch from some one on.
pub(crate) fn with_batches<T>(
    reader: Reader,
    sampler: &Sampler,
    from: usize,
    steps: impl FnOnce(&mut Batches) -> T,
) -> (T, Reader) {
    let is_far = reader.matrix.n_cols() > FAR && sampler.batches() > from + READY;
    read_with(is_far && rayon::current_num_threads() > 1, reader, sampler, from, steps)
}

fn read_with<T>(
    ahead: bool,
    reader: Reader,
    sampler: &Sampler,
    from: usize,
    steps: impl FnOnce(&mut Batches) -> T,
) -> (T, Reader) {
    let matrix = reader.matrix.clone();
    thread::scope(|scope| {
        let (filled, ready) = sync_channel(READY);
        let (used, empty) = channel::<Batch>();
        let read_on = move |mut reader: Reader| {
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
        let mut reader = Some(reader);
        let taken = reader.take_if(|_| ahead);
        let thread = taken.and_then(|reader| thread::Builder::new().spawn_scoped(scope, move || read_on(reader)).ok());
        match thread {
            Some(thread) => {
                let mut batches = Batches::Ahead { ready, used, batch: Batch::default() };
                let done = steps(&mut batches);
                drop(batches);
                (done, thread.join().unwrap_or_else(|_| Reader::new(&matrix)))
            }
            // Where the system has no thread to give, the work is done on this one.
            None => {
                let reader = reader.unwrap_or_else(|| Reader::new(&matrix));
                let mut batches = Batches::Here(Box::new((reader, Batch::default())));
                let done = steps(&mut batches);
                let Batches::Here(here) = batches else { return (done, Reader::new(&matrix)) };
                (done, here.0)
            }
        }
    })
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
        // From the middle of an epoch too, and no further than steps go.
        for (from, to) in [(0, 100), (37, 100), (5, 9)] {
            let seen = [false, true].map(|ahead| {
                let steps = |batches: &mut Batches| {
                    let copy = |at: usize| {
                        let Batch { rows, features } = batches.next(sampler.batch(at));
                        let columns: Vec<u32> = rows.columns.iter().map(|&number| features[number as usize]).collect();
                        (rows.ends.clone(), columns, rows.values.clone(), features.clone())
                    };
                    (from..to).map(copy).collect::<Vec<_>>()
                };
                read_with(ahead, Reader::new(&matrix), &sampler, from, steps).0
            });
            assert_eq!(seen[0], seen[1]);
            for (at, (ends, columns, ..)) in seen[0].iter().enumerate() {
                let given =
                    sampler.batch(from + at).iter().flat_map(|&row| &rows[row as usize]).map(|(column, _)| *column);
                assert_eq!(columns, &given.collect::<Vec<u32>>());
                assert_eq!(ends.len(), sampler.batch(from + at).len());
            }
        }
    }
}
