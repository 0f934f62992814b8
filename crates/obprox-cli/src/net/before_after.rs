//! A network before and after, in one table: what it holds, what it takes to store and to compute.

use std::hint::black_box;
use std::time::Instant;

use obprox_infer::Model;
use obprox_infer::engine::{Engine, Kernels};

use crate::failure::Failure;
use crate::show::{bytes, grid, percent, seconds, tight};

/// Rows of figures, before and after.
pub struct BeforeAfter(Vec<Vec<String>>);

impl BeforeAfter {
    /// What a network and the one that it became hold and compute.
    pub fn new(before: &Model, after: &Model) -> Result<Self, Failure> {
        let mut table = Self(Vec::new());
        table.count("parameters", before.parameters(), after.parameters());
        table.count("weights not zero", before.density().0, after.density().0);
        table.count("multiply-adds", before.multiply_adds()?, after.multiply_adds()?);
        table.count("… not by zero", before.nonzero_multiply_adds()?, after.nonzero_multiply_adds()?);
        Ok(table)
    }

    fn count(&mut self, what: &str, before: usize, after: usize) {
        self.row(what, [before, after].map(|count| count.to_string()), (before as f64, after as f64));
    }

    /// Bytes on disk.
    pub fn size(&mut self, what: &str, before: usize, after: usize) {
        self.row(what, [before, after].map(bytes), (before as f64, after as f64));
    }

    fn row(&mut self, what: &str, cells: [String; 2], (before, after): (f64, f64)) {
        let [one, two] = cells;
        let share = if before > 0.0 { percent(after / before) } else { String::new() };
        self.0.push(vec![what.to_owned(), one, two, share]);
    }

    /// Shares, which are not told as shares of each other.
    pub fn share(&mut self, what: &str, before: f64, after: f64) {
        self.0.push(vec![what.to_owned(), percent(before), percent(after), String::new()]);
    }

    /// What an image takes by dense kernels before, and by the faster kernel of each layer after.
    pub fn times(&mut self, before: &Model, after: &Model) -> Result<(), Failure> {
        let size = match before.network().input_shape() {
            &[_, height, width] => [height, width],
            _ => [1, 1],
        };
        let (dense, sparse) = (Engine::new(before, Kernels::Dense, size)?, Engine::new(after, Kernels::Auto, size)?);
        for (what, batch) in [("one image", 1), ("each of a batch", BATCH)] {
            let [before, after] = fastest([&dense, &sparse], batch, TURNS)?.map(|time| time / batch as f64);
            self.row(what, [before, after].map(seconds), (before, after));
        }
        Ok(())
    }

    pub fn text(self) -> String {
        let header = ["", "before", "after", "of before"].map(str::to_owned).to_vec();
        tight(grid(header, self.0))
    }
}

const BATCH: usize = 16;
const TURNS: usize = 3;

/// The shortest time of each engine for a batch, in seconds; they take turns.
pub fn fastest<const N: usize>(engines: [&Engine; N], batch: usize, turns: usize) -> Result<[f64; N], Failure> {
    let images = vec![0.5; batch * engines[0].shape().iter().product::<usize>()];
    let mut shortest = [f64::INFINITY; N];
    for _ in 0..turns {
        for (engine, shortest) in engines.iter().zip(&mut shortest) {
            // The first run after another engine's finds the caches cold, which is not what is asked.
            for _ in 0..2 {
                let start = Instant::now();
                black_box(engine.run(&images)?);
                *shortest = shortest.min(start.elapsed().as_secs_f64());
            }
        }
    }
    Ok(shortest)
}
