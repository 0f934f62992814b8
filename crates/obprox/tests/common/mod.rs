//! Shared by the test files: random problems, and the same problems as a textbook has them.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod plain;
pub mod random;
pub mod shards;

use obprox::{Control, Fit, Observer, Point, Problem, Progress, Run, Settings};

/// A run with no one watching.
pub fn run(problem: &Problem, settings: &Settings) -> Fit {
    Run::new(problem, settings.clone()).fit().unwrap()
}

/// The bits of a point.
pub fn bits(point: &Point) -> Vec<u64> {
    point.weights.iter().chain(&point.intercept).map(|value| value.to_bits()).collect()
}

/// Whether two numbers agree to a tolerance relative to 1 + |a|.
pub fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs())
}

/// Stops a run after a step of an epoch; both count from 1.
pub struct StopAt {
    pub epoch: u64,
    pub step: u64,
}

impl Observer for StopAt {
    fn step(&mut self, progress: &Progress) -> Control {
        if (progress.epoch, progress.step) == (self.epoch, self.step) { Control::Stop } else { Control::Continue }
    }
}
