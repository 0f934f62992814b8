//! Seed → batches: the only randomness in the library.
//!
//! The order of an epoch is a pure function of the seed and the epoch's number, so there is no random state to lose:
//! a run that is resumed draws the very batches it would have drawn.
//!
//! Rows that are in shards pass by shard after shard: the order of the shards is random, and so is that of the rows within
//! each. That is no uniform partition, since the rows of a batch come from one shard, or from two where one ends; what is
//! in order in the sources, such as one class after the other, stays so within the length of a shard.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

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

/// Cuts each epoch into a fresh uniform partition of the rows, or of those of shard after shard; the last batch may be
/// short.
#[derive(Clone, Debug)]
pub struct Sampler {
    seed: u64,
    batch: usize,
    order: Vec<u32>,
    /// The first row of each shard, and the number of all.
    firsts: Vec<usize>,
    /// The shards in the order of the epoch.
    shards: Vec<u32>,
    shuffled: bool,
}

impl Sampler {
    /// A sampler over `n_rows` rows.
    pub fn new(n_rows: usize, batch: Batch, seed: u64) -> Result<Self> {
        Self::of_shards(vec![0, n_rows], batch, seed)
    }

    /// A sampler over rows in shards, each of which begins with such a row; the last number is that of all rows.
    pub(crate) fn of_shards(firsts: Vec<usize>, batch: Batch, seed: u64) -> Result<Self> {
        let n_rows = firsts[firsts.len() - 1];
        let rows = match batch {
            Batch::Paper => n_rows.div_ceil(100).min(256),
            Batch::Rows(0) => return Err(Error::parameter("batch", "a batch has at least one row")),
            Batch::Rows(rows) => rows.min(n_rows),
            Batch::All => n_rows,
        };
        let (order, shards) = ((0..n_rows as u32).collect(), (0..firsts.len() as u32 - 1).collect());
        Ok(Self { seed, batch: rows, order, firsts, shards, shuffled: rows < n_rows })
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
        let mut rng = stream(self.seed, epoch);
        self.shards.iter_mut().zip(0..).for_each(|(shard, at)| *shard = at);
        permute(&mut self.shards, &mut rng);
        let mut order = &mut self.order[..];
        for &shard in &self.shards {
            let rows = self.firsts[shard as usize]..self.firsts[shard as usize + 1];
            let (of_shard, rest) = order.split_at_mut(rows.len());
            of_shard.iter_mut().zip(rows).for_each(|(place, row)| *place = row as u32);
            permute(of_shard, &mut rng);
            order = rest;
        }
    }

    /// The shards that are to pass from a batch of the epoch on, the one it begins in first.
    pub(crate) fn shards_from(&self, number: usize) -> Vec<usize> {
        let (start, mut end) = (number * self.batch, 0);
        let is_to_come = |&shard: &usize| {
            end += self.firsts[shard + 1] - self.firsts[shard];
            end > start
        };
        self.shards.iter().map(|&shard| shard as usize).filter(is_to_come).collect()
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
    let mut order: Vec<u32> = (0..n_rows as u32).collect();
    permute(&mut order, &mut stream(seed, FOLDS));
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

/// The random numbers of a seed and a stream.
fn stream(seed: u64, stream: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    rng
}

/// Brings numbers into a uniformly random order.
fn permute(numbers: &mut [u32], rng: &mut ChaCha8Rng) {
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, below(rng, last as u32 + 1) as usize);
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
    fn shards_pass_one_after_the_other() {
        let firsts = vec![0, 40, 80, 100];
        let mut sampler = Sampler::of_shards(firsts.clone(), Batch::Rows(7), 5).unwrap();
        let mut first = [0; 3];
        for epoch in 0..300 {
            sampler.begin_epoch(epoch);
            let rows: Vec<u32> = (0..sampler.batches()).flat_map(|number| sampler.batch(number).to_vec()).collect();
            let shard = |row: u32| firsts.partition_point(|&first| first <= row as usize) - 1;
            let mut passed: Vec<usize> = rows.iter().map(|&row| shard(row)).collect();
            passed.dedup();
            assert_eq!(passed, sampler.shards_from(0));
            for number in 0..sampler.batches() {
                assert_eq!(sampler.shards_from(number)[0], shard(sampler.batch(number)[0]));
            }
            assert!(!rows.is_sorted());
            let mut all = rows;
            all.sort_unstable();
            assert!(all.into_iter().eq(0..100));
            first[passed[0]] += 1;
        }
        assert!(first.iter().all(|&count| (70..130).contains(&count)), "{first:?}");
        assert_eq!(sampler.shards_from(14).len(), 1);
    }

    #[test]
    fn one_shard_is_a_uniform_partition() {
        let mut samplers = [Sampler::new(50, Batch::Rows(8), 3), Sampler::of_shards(vec![0, 50], Batch::Rows(8), 3)];
        let [a, b] = samplers.each_mut().map(|sampler| {
            let sampler = sampler.as_mut().unwrap();
            sampler.begin_epoch(2);
            sampler.order.clone()
        });
        assert_eq!(a, b);
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
