//! What a pass over the shards brings home.

use std::ops::Range;

use rayon::prelude::*;

use crate::Result;
use crate::huge::Huge;
use crate::rows::memory::Memory;
use crate::rows::{Job, Shards, Sums};

/// What a pass at a point brings home, whatever it was asked for.
#[derive(Default)]
pub(crate) struct Evaluation {
    /// f and its slopes along the intercepts; those along all columns where a pass sees them.
    pub gradient: Sums,
    /// Those along the coordinates of the working set of some outputs, where they were asked for.
    pub slopes: Option<(Range<usize>, Sums)>,
    /// x·d + b of all rows, where they are kept in one place.
    pub margins: Vec<f64>,
}

impl Evaluation {
    /// Looks at the rows of a shard.
    pub fn of(rows: &mut Memory, sees_all: bool, outputs: Option<Range<usize>>) -> Result<Self> {
        let gradient = rows.run(&Job::Gradient { columns: sees_all })?;
        let slopes = match outputs {
            Some(outputs) => {
                let slopes = rows.run(&Job::Slopes { outputs: outputs.clone(), features: true })?;
                Some((outputs, slopes))
            }
            None => None,
        };
        Ok(Self { gradient, slopes, margins: Vec::new() })
    }

    /// Adds that of one more shard.
    pub fn plus(self, other: Self) -> Self {
        let slopes = match (self.slopes, other.slopes) {
            (Some((outputs, sums)), Some((_, more))) => Some((outputs, sums.plus(&more))),
            (None, Some((outputs, more))) => Some((outputs, Sums::default().plus(&more))),
            (slopes, None) => slopes,
        };
        let mut margins = self.margins;
        margins.extend(other.margins);
        Self { gradient: self.gradient.plus(&other.gradient), slopes, margins }
    }

    /// f and the slopes along the intercepts.
    pub fn numbers(&self) -> Vec<f64> {
        self.gradient.numbers.clone()
    }
}

/// Sums over every column.
#[derive(Default)]
pub(crate) struct Columns {
    pub sums: Huge<f64>,
    /// Bounds of what they can be at any point, where these were asked for.
    pub most: Huge<f32>,
}

impl Columns {
    /// Adds those of one more shard.
    pub fn plus(mut self, other: &Self) -> Self {
        const CHUNK: usize = 1 << 14;
        self.sums.grow(other.sums.len());
        let chunks = self.sums.par_chunks_mut(CHUNK).zip(other.sums.par_chunks(CHUNK));
        chunks.for_each(|(sums, more)| sums.iter_mut().zip(more).for_each(|(sum, value)| *sum += value));
        self.most.grow(other.most.len());
        let chunks = self.most.par_chunks_mut(CHUNK).zip(other.most.par_chunks(CHUNK));
        chunks.for_each(|(most, more)| {
            most.iter_mut().zip(more).for_each(|(sum, value)| *sum = rounded_up(*sum, *value))
        });
        self
    }
}

/// The sum of two bounds, which may only be rounded up.
pub(crate) fn rounded_up(a: f32, b: f32) -> f32 {
    if b == 0.0 { a } else { (a + b) * (1.0 + f32::EPSILON) }
}

impl Sums {
    pub(crate) fn plus(self, other: &Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    pub(crate) fn larger(self, other: &Self) -> Self {
        self.with(other, f64::max)
    }

    fn with(mut self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        self.numbers.resize(other.numbers.len(), 0.0);
        self.numbers.iter_mut().zip(&other.numbers).for_each(|(sum, value)| *sum = of(*sum, *value));
        if self.array.is_empty() {
            self.array = Huge::zeros(other.array.len());
        }
        self.array.iter_mut().zip(&other.array[..]).for_each(|(sum, value)| *sum = of(*sum, *value));
        self
    }
}
