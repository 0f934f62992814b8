//! Planted problems of any shape: sparse rows, a few true weights, targets made from them.

use rand::rngs::ChaCha8Rng;
use rand::seq::index;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Poisson, StandardNormal, Zipf};
use rayon::prelude::*;

use super::{Builder, Dataset};
use crate::{Error, Result, memory};

/// Entries that share one stream of random numbers, about: fixed, so that threads do not matter.
const ENTRIES_A_BLOCK: f64 = 262_144.0;

/// Blocks made before they are appended: few enough that they take little memory beside the result.
const BLOCKS_A_WAVE: usize = 16;

/// The largest mean of a planted count, so that counts stay exact integers.
const LARGEST_RATE: f64 = 1e6;

/// What the targets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The sign of the score: −1 or 1.
    Classification,
    /// The score itself.
    Regression,
    /// A Poisson count whose mean is e to the score.
    Counts,
    /// The class of the largest of so many scores, counted from 0.
    Classes(usize),
}

/// What the entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// All 1.
    Ones,
    /// Standard normal.
    Normal,
    /// Equal within a row, each row of Euclidean norm 1.
    UnitRows,
}

/// A recipe for a planted problem. The same recipe gives the same bits on any number of threads.
///
/// ```
/// use obprox::data::Synth;
///
/// let planted = Synth { rows: 100, cols: 1000, ..Synth::default() }.generate().unwrap();
/// assert_eq!(planted.dataset.matrix.n_rows(), 100);
/// assert_eq!(planted.weights.iter().filter(|&&weight| weight != 0.0).count(), 10);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Synth {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Mean number of entries a row; as many as columns, or more, for full rows.
    pub per_row: f64,
    /// Number of columns with a true weight.
    pub support: usize,
    /// What the targets are.
    pub task: Task,
    /// Standard deviation of the normal noise on the score.
    pub noise: f64,
    /// What the entries are.
    pub entries: Entries,
    /// How unequal columns are: the r-th most frequent occurs in proportion to r to the power −skew; 0 for equal.
    pub skew: f64,
    /// All randomness comes from it.
    pub seed: u64,
}

impl Default for Synth {
    fn default() -> Self {
        Self {
            rows: 1000,
            cols: 100,
            per_row: 10.0,
            support: 10,
            task: Task::Classification,
            noise: 0.1,
            entries: Entries::Normal,
            skew: 0.0,
            seed: 0,
        }
    }
}

/// A planted problem.
#[derive(Clone, Debug)]
pub struct Planted {
    /// Rows and targets.
    pub dataset: Dataset,
    /// The true weights; that of column j for output k is at j·K + k, where K is 1 except for classes.
    pub weights: Vec<f64>,
}

impl Synth {
    /// Makes the problem.
    pub fn generate(&self) -> Result<Planted> {
        self.check()?;
        memory::check(self.bytes(), || format!("{} rows × {} columns", self.rows, self.cols))?;
        let columns = self.columns()?;
        let weights = self.plant(&columns);
        let n_blocks = self.rows.div_ceil(self.rows_a_block());
        let mut builder = Builder::default();
        let mut targets = Vec::with_capacity(self.rows);
        for first in (0..n_blocks).step_by(BLOCKS_A_WAVE) {
            let wave = first..n_blocks.min(first + BLOCKS_A_WAVE);
            let parts: Vec<_> = wave.into_par_iter().map(|block| self.block(block, &columns, &weights)).collect();
            for (part, part_targets) in parts {
                builder.append(part);
                targets.extend_from_slice(&part_targets);
            }
        }
        Ok(Planted { dataset: Dataset::new(builder.finish(Some(self.cols)), targets), weights })
    }

    /// What the rows and the weights take, at the least.
    fn bytes(&self) -> u128 {
        let entry = if matches!(self.entries, Entries::Ones) { 4.0 } else { 12.0 };
        let outputs = if let Task::Classes(classes) = self.task { classes } else { 1 };
        let entries = self.rows as f64 * self.per_row.min(self.cols as f64) * entry;
        entries as u128 + 16 * self.rows as u128 + 8 * self.cols as u128 * outputs as u128
    }

    fn check(&self) -> Result<()> {
        let wrong = |name, message: String| Err(Error::parameter(name, message));
        match self {
            Self { rows: 0, .. } => wrong("rows", "must be at least 1".into()),
            Self { cols, .. } if !(1..=u32::MAX as usize).contains(cols) => {
                wrong("cols", format!("must lie between 1 and {}", u32::MAX))
            }
            Self { support, cols, .. } if support > cols => {
                wrong("support", format!("must be at most the number of columns, {cols}"))
            }
            Self { per_row, .. } if !(*per_row > 0.0 && per_row.is_finite()) => {
                wrong("per_row", "must be positive".into())
            }
            Self { noise, .. } if !(*noise >= 0.0 && noise.is_finite()) => {
                wrong("noise", "must not be negative".into())
            }
            Self { skew, .. } if !(*skew >= 0.0 && skew.is_finite()) => wrong("skew", "must not be negative".into()),
            Self { task: Task::Classes(classes), .. } if *classes < 2 => wrong("classes", "must be at least 2".into()),
            _ => Ok(()),
        }
    }

    fn rows_a_block(&self) -> usize {
        (ENTRIES_A_BLOCK / self.per_row.min(self.cols as f64)).clamp(1.0, 4096.0) as usize
    }

    fn outputs(&self) -> usize {
        if let Task::Classes(classes) = self.task { classes } else { 1 }
    }

    fn columns(&self) -> Result<Columns> {
        let popularity = match self.skew > 0.0 {
            true => Some(
                Zipf::new(self.cols as f64, self.skew).map_err(|error| Error::parameter("skew", error.to_string()))?,
            ),
            false => None,
        };
        let full = self.per_row >= self.cols as f64;
        let len = Poisson::new(self.per_row).map_err(|error| Error::parameter("per_row", error.to_string()))?;
        Ok(Columns { count: self.cols, popularity, len: (!full).then_some(len) })
    }

    /// The true weights, standard normal. Frequent columns are likelier to have one: a weight that no row meets would
    /// plant nothing.
    fn plant(&self, columns: &Columns) -> Vec<f64> {
        let rng = &mut self.stream(0);
        let outputs = self.outputs();
        let mut weights = vec![0.0; self.cols * outputs];
        for column in columns.draw(self.support, rng) {
            for weight in &mut weights[column as usize * outputs..][..outputs] {
                *weight = StandardNormal.sample(rng);
            }
        }
        weights
    }

    fn stream(&self, number: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(number);
        rng
    }

    fn block(&self, block: usize, columns: &Columns, weights: &[f64]) -> (Builder, Vec<f64>) {
        let rng = &mut self.stream(block as u64 + 1);
        let n_rows = self.rows_a_block().min(self.rows - block * self.rows_a_block());
        let mut builder = Builder::default();
        let mut scores = vec![0.0; self.outputs()];
        let targets = (0..n_rows).map(|_| {
            scores.fill(0.0);
            let row = columns.row(rng);
            let unit = 1.0 / (row.len() as f64).sqrt();
            for column in row {
                let value = match self.entries {
                    Entries::Ones => 1.0,
                    Entries::Normal => StandardNormal.sample(rng),
                    Entries::UnitRows => unit,
                };
                builder.push(column, value);
                let weights = &weights[column as usize * scores.len()..];
                scores.iter_mut().zip(weights).for_each(|(score, weight)| *score += weight * value);
            }
            builder.end_row();
            for score in &mut scores {
                let noise: f64 = StandardNormal.sample(rng);
                *score += self.noise * noise;
            }
            self.target(&scores, rng)
        });
        let targets = targets.collect();
        (builder, targets)
    }

    fn target(&self, scores: &[f64], rng: &mut ChaCha8Rng) -> f64 {
        match self.task {
            Task::Regression => scores[0],
            // A row that meets no planted column, without noise, may be of either class.
            Task::Classification if scores[0] == 0.0 => {
                if rng.random() {
                    1.0
                } else {
                    -1.0
                }
            }
            Task::Classification => scores[0].signum(),
            Task::Counts => Poisson::new(scores[0].exp().clamp(f64::MIN_POSITIVE, LARGEST_RATE))
                .map_or(0.0, |count| count.sample(rng)),
            Task::Classes(_) => {
                let largest = scores.iter().enumerate().max_by(|left, right| left.1.total_cmp(right.1));
                largest.map_or(0.0, |(class, _)| class as f64)
            }
        }
    }
}

/// Which columns a row has.
struct Columns {
    count: usize,
    /// Nothing where all are alike.
    popularity: Option<Zipf<f64>>,
    /// Nothing where rows are full.
    len: Option<Poisson<f64>>,
}

impl Columns {
    /// The columns of one row, rising.
    fn row(&self, rng: &mut ChaCha8Rng) -> Vec<u32> {
        match self.len {
            None => (0..self.count as u32).collect(),
            Some(len) => self.draw((len.sample(rng) as usize).min(self.count), rng),
        }
    }

    /// `len` different columns, rising.
    fn draw(&self, len: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
        let mut drawn: Vec<u32> = Vec::with_capacity(len);
        match &self.popularity {
            None => drawn.extend(index::sample(rng, self.count, len).iter().map(|column| column as u32)),
            Some(popularity) => {
                // Repeated draws are made up for; where the frequent columns are used up, by the most frequent unused.
                for _ in 0..20 {
                    let missing = len - drawn.len();
                    let rank = |_| (popularity.sample(rng) as usize).clamp(1, self.count);
                    drawn.extend((0..missing).map(rank).map(|rank| (rank - 1) as u32));
                    drawn.sort_unstable();
                    drawn.dedup();
                    if drawn.len() == len {
                        return drawn;
                    }
                }
                let unused = (0..self.count as u32).filter(|column| drawn.binary_search(column).is_err());
                let unused: Vec<u32> = unused.take(len - drawn.len()).collect();
                drawn.extend(unused);
            }
        }
        drawn.sort_unstable();
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Matrix, Summary, Targets, write_libsvm};
    use super::*;

    fn text(synth: &Synth) -> Vec<u8> {
        let mut text = Vec::new();
        write_libsvm(&synth.generate().unwrap().dataset, &mut text).unwrap();
        text
    }

    #[test]
    fn the_same_on_any_number_of_threads_and_different_by_seed() {
        let synth = Synth { rows: 3 * 4096 + 5, skew: 1.2, ..Synth::default() };
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| text(&synth))
        };
        assert!(on(1) == on(3));
        assert!(text(&synth) != text(&Synth { seed: 1, ..synth.clone() }));
    }

    #[test]
    fn the_shape_is_what_was_asked_for() {
        let synth = Synth { rows: 5000, cols: 300, per_row: 7.5, ..Synth::default() };
        for skew in [0.0, 0.8, 1.5] {
            let summary = Summary::of(&Synth { skew, ..synth.clone() }.generate().unwrap().dataset);
            assert_eq!((summary.rows, summary.cols), (5000, 300));
            assert!((summary.row_len.mean - 7.5).abs() < 0.15, "{skew}: {:?}", summary.row_len);
        }
        let full = Synth { per_row: 300.0, entries: Entries::Ones, ..synth.clone() }.generate().unwrap();
        assert!(matches!(&full.dataset.matrix, Matrix::Ones(rows) if rows.indices().len() == 5000 * 300));
        let unit = Synth { entries: Entries::UnitRows, ..synth }.generate().unwrap();
        assert!((Summary::of(&unit.dataset).row_norm.max - 1.0).abs() < 1e-12);
    }

    #[test]
    fn targets_suit_their_task() {
        let with = |task| Summary::of(&Synth { task, ..Synth::default() }.generate().unwrap().dataset).targets;
        let labels = |targets| match targets {
            Targets::Labels(labels) => labels.into_iter().map(|(label, _)| label).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        assert_eq!(labels(with(Task::Classification)), [-1.0, 1.0]);
        assert_eq!(labels(with(Task::Classes(3))), [0.0, 1.0, 2.0]);
        assert!(matches!(with(Task::Regression), Targets::Range(_)));
        assert!(labels(with(Task::Counts))[0] == 0.0);
    }

    #[test]
    fn impossible_recipes_are_refused() {
        let good = Synth::default();
        for (bad, message) in [
            (Synth { rows: 0, ..good.clone() }, "rows: must be at least 1"),
            (Synth { support: 101, ..good.clone() }, "support: must be at most the number of columns, 100"),
            (Synth { per_row: f64::NAN, ..good.clone() }, "per_row: must be positive"),
            (Synth { noise: -1.0, ..good.clone() }, "noise: must not be negative"),
            (Synth { task: Task::Classes(1), ..good.clone() }, "classes: must be at least 2"),
        ] {
            assert_eq!(bad.generate().unwrap_err().to_string(), message);
        }
    }
}
