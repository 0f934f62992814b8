//! The rows of batches: copied out of memory, or out of shards that pass by.

mod passing;
mod reader;

use std::sync::Arc;

use self::passing::Passing;
use self::reader::{Ahead, Numbering, READY, Reader};
use crate::data::{Gathered, Matrix};
use crate::problem::Problem;
use crate::rows::FAR;
use crate::sampler::{Batch as Size, Sampler};
use crate::{Error, Result, memory};

/// The rows of a batch, made ready for a step.
#[derive(Default)]
pub(crate) struct Batch {
    /// One after the other; columns are numbers of features.
    pub rows: Gathered,
    /// The features by number.
    pub features: Vec<u32>,
}

impl Batch {
    /// Visits the entries of a row by their features.
    #[inline]
    pub fn for_each(&self, row: usize, mut visit: impl FnMut(usize, f64)) {
        self.rows.for_each(row, |number, value| visit(self.features[number] as usize, value));
    }
}

/// The batches of an epoch after the other, with their rows.
pub(crate) struct Batches<'a> {
    sampler: Arc<Sampler>,
    rows: Rows<'a>,
    batch: Batch,
}

enum Rows<'a> {
    Memory { all: &'a Matrix, kept: Matrix, reading: Reading },
    Shards { passing: Passing<'a>, numbering: Numbering },
}

/// Who reads rows in memory.
enum Reading {
    /// Whoever asks for a batch.
    Here(Reader),
    /// A thread of its own.
    Ahead(Ahead),
}

impl<'a> Batches<'a> {
    /// The batches of a problem's rows.
    pub fn new(problem: &'a Problem, batch: Size, seed: u64) -> Result<Self> {
        let Some(shards) = problem.shards() else {
            let (sampler, all) = (Sampler::new(problem.n_rows(), batch, seed)?, problem.matrix());
            let rows = Rows::Memory { all, kept: all.clone(), reading: Reading::Here(Reader::new(all)) };
            return Ok(Self { sampler: sampler.into(), rows, batch: Batch::default() });
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
        let (passing, numbering) = (Passing::new(problem), Numbering::new(problem.n_features()));
        Ok(Self { sampler: sampler.into(), rows: Rows::Shards { passing, numbering }, batch: Batch::default() })
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
        let here = match &mut self.rows {
            Rows::Shards { passing, .. } => {
                Arc::make_mut(&mut self.sampler).begin_epoch(epoch);
                return passing.begin(self.sampler.shards_from(from));
            }
            Rows::Memory { kept, reading, .. } => {
                let here = Reading::Here(Reader::new(kept));
                match std::mem::replace(reading, here) {
                    Reading::Here(reader) => reader,
                    Reading::Ahead(ahead) => ahead.end().unwrap_or_else(|| Reader::new(kept)),
                }
            }
        };
        Arc::make_mut(&mut self.sampler).begin_epoch(epoch);
        let Rows::Memory { kept, reading, .. } = &mut self.rows else { return };
        let is_far = kept.n_cols() > FAR && self.sampler.batches() > from + READY;
        *reading = if is_far && rayon::current_num_threads() > 1 {
            let ahead = Ahead::begin(here, Arc::clone(&self.sampler), from);
            ahead.map_or_else(|| Reading::Here(Reader::new(kept)), Reading::Ahead)
        } else {
            Reading::Here(here)
        };
    }

    /// The next batch, which has this number in its epoch: the numbers of its rows, and the rows.
    pub fn batch(&mut self, number: usize) -> Result<(&[u32], &Batch)> {
        let (rows, batch) = (self.sampler.batch(number), &mut self.batch);
        match &mut self.rows {
            Rows::Memory { reading: Reading::Here(reader), .. } => reader.read(rows, batch),
            Rows::Memory { reading: Reading::Ahead(ahead), .. } => ahead.next(batch),
            Rows::Shards { passing, numbering } => {
                batch.rows.clear();
                passing.gather(rows, &mut batch.rows)?;
                numbering.number(batch);
            }
        }
        Ok((rows, batch))
    }

    /// From now on rows have these columns alone, which rise and are numbered anew. Before an epoch is begun.
    pub fn keep_columns(&mut self, columns: &[u32]) {
        match &mut self.rows {
            Rows::Memory { all, kept, reading } => {
                *kept = all.keep_columns(columns);
                *reading = Reading::Here(Reader::new(kept));
            }
            Rows::Shards { passing, numbering } => {
                passing.keep_columns(columns);
                *numbering = Numbering::new(columns.len());
            }
        }
    }

    /// Bytes of which a copy with fewer columns would be held beside all rows; nothing where rows pass by.
    pub fn bytes_held(&self) -> usize {
        match &self.rows {
            Rows::Memory { kept, .. } => kept.bytes(),
            Rows::Shards { .. } => 0,
        }
    }
}
