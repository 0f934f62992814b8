//! Seed → batches: the only randomness in the library.
//!
//! The order of an epoch is a pure function of the seed and the epoch's number, so there is no random state to lose:
//! a run that is resumed draws the very batches it would have drawn.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::{Error, Result};

/// How large a batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Batch {
    /// The paper's min(256, ⌈N/100⌉).
    #[default]
    Paper,
    /// This many rows.
    Rows(usize),
    /// The whole set: no randomness at all.
    All,
}

/// Cuts each epoch into a fresh uniform partition of the rows; the last batch may be short.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    seed: u64,
    batch: usize,
    order: Vec<u32>,
    shuffled: bool,
}

impl Sampler {
    /// A sampler over `n_rows` rows.
    pub fn new(n_rows: usize, batch: Batch, seed: u64) -> Result<Self> {
        let rows = match batch {
            Batch::Paper => n_rows.div_ceil(100).min(256),
            Batch::Rows(0) => return Err(Error::parameter("batch", "a batch has at least one row")),
            Batch::Rows(rows) => rows.min(n_rows),
            Batch::All => n_rows,
        };
        Ok(Self { seed, batch: rows, order: (0..n_rows as u32).collect(), shuffled: rows < n_rows })
    }

    /// Rows in a batch.
    pub fn batch_rows(&self) -> usize {
        self.batch
    }

    /// Batches in an epoch.
    pub fn batches(&self) -> usize {
        self.order.len().div_ceil(self.batch)
    }

    /// Draws the order of an epoch. One batch of all rows keeps their own order.
    pub fn begin_epoch(&mut self, epoch: u64) {
        if !self.shuffled {
            return;
        }
        shuffle(&mut self.order, self.seed, epoch);
    }

    /// The rows of a batch of the epoch that was begun.
    pub fn batch(&self, number: usize) -> &[u32] {
        let start = number * self.batch;
        &self.order[start..(start + self.batch).min(self.order.len())]
    }
}

/// Deals rows into folds, as evenly as can be, each class by itself: the fold of every row. `class` numbers the classes
/// from 0. Rows without weight are dealt last, so that the others are even too.
pub(crate) fn deal(
    n_rows: usize,
    folds: usize,
    seed: u64,
    class: impl Fn(usize) -> usize,
    counts: impl Fn(usize) -> bool,
) -> Vec<u32> {
    let mut order = vec![0; n_rows];
    shuffle(&mut order, seed, FOLDS);
    // Stable: within a class the shuffled order stays.
    order.sort_by_key(|&row| (!counts(row as usize), class(row as usize)));
    let mut fold = vec![0; n_rows];
    for (at, &row) in order.iter().enumerate() {
        fold[row as usize] = (at % folds) as u32;
    }
    fold
}

/// The stream that folds are drawn from: no epoch has this number.
const FOLDS: u64 = u64::MAX;

/// Fills `order` with its own places in a uniformly random order, a function of seed and stream.
fn shuffle(order: &mut [u32], seed: u64, stream: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    for (at, row) in order.iter_mut().enumerate() {
        *row = at as u32;
    }
    for last in (1..order.len()).rev() {
        order.swap(last, below(&mut rng, last as u32 + 1) as usize);
    }
}

/// A uniform number below `bound`: the high half of a product, drawn again in the rare case that would bias it.
fn below(rng: &mut ChaCha8Rng, bound: u32) -> u32 {
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(bound);
        if product as u32 >= bound.wrapping_neg() % bound {
            return (product >> 32) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_is_a_partition_and_epochs_differ() {
        let mut sampler = Sampler::new(1003, Batch::Rows(10), 7).unwrap();
        assert_eq!(sampler.batches(), 101);
        let mut orders = Vec::new();
        for epoch in 0..2 {
            sampler.begin_epoch(epoch);
            let mut rows: Vec<u32> = (0..101).flat_map(|number| sampler.batch(number).to_vec()).collect();
            orders.push(rows.clone());
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..1003));
        }
        assert_ne!(orders[0], orders[1]);
        sampler.begin_epoch(0);
        assert_eq!(sampler.batch(0), &orders[0][..10], "an epoch can be drawn again");
        assert_eq!(sampler.batch(100).len(), 3, "the last batch is short");
    }

    #[test]
    fn the_paper_batch_and_the_whole_set() {
        assert_eq!(Sampler::new(150, Batch::Paper, 0).unwrap().batch_rows(), 2);
        assert_eq!(Sampler::new(32561, Batch::Paper, 0).unwrap().batch_rows(), 256);
        let mut all = Sampler::new(5, Batch::All, 3).unwrap();
        all.begin_epoch(4);
        assert_eq!(all.batch(0), [0, 1, 2, 3, 4]);
        assert!(Sampler::new(5, Batch::Rows(0), 0).is_err());
    }

    #[test]
    fn every_row_is_as_likely_to_come_first() {
        let mut sampler = Sampler::new(5, Batch::Rows(1), 1).unwrap();
        let mut first = [0; 5];
        for epoch in 0..5000 {
            sampler.begin_epoch(epoch);
            first[sampler.batch(0)[0] as usize] += 1;
        }
        assert!(first.iter().all(|&count| (880..1120).contains(&count)), "{first:?}");
    }
}
