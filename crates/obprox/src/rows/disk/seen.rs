//! What a pass over the shards brings home.

use std::ops::Range;

use crate::Result;
use crate::huge::Huge;
use crate::rows::memory::Memory;
use crate::rows::memory::centring::Alike;
use crate::rows::{Job, Shards, Sums};

/// What a pass at a point brings home, whatever it was asked for.
#[derive(Default)]
pub(super) struct Seen {
    /// f and its slopes along the intercepts; those along all columns where a pass sees them.
    pub gradient: Sums,
    /// Those along the coordinates of the working set of some outputs, where they were asked for.
    pub slopes: Option<(Range<usize>, Sums)>,
    /// x·d + b of all rows.
    pub margins: Vec<f64>,
    pub alike: Option<Option<Alike>>,
}

impl Seen {
    /// Looks at the rows of one more shard.
    pub fn add(&mut self, rows: &mut Memory, sees_all: bool) -> Result<()> {
        let gradient = rows.run(&Job::Gradient { columns: sees_all })?;
        self.gradient = std::mem::take(&mut self.gradient).plus(&gradient);
        if let Some((outputs, sums)) = &mut self.slopes {
            let slopes = rows.run(&Job::Slopes { outputs: outputs.clone(), features: true })?;
            *sums = std::mem::take(sums).plus(&slopes);
        }
        self.margins.extend_from_slice(rows.margins());
        Ok(())
    }

    pub fn with_slopes(outputs: Option<&Range<usize>>) -> Self {
        Self { slopes: outputs.map(|outputs| (outputs.clone(), Sums::default())), ..Self::default() }
    }

    /// f and the slopes along the intercepts.
    pub fn numbers(&self) -> Vec<f64> {
        self.gradient.numbers.clone()
    }
}

impl Sums {
    pub(super) fn plus(self, other: &Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    pub(super) fn larger(self, other: &Self) -> Self {
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
