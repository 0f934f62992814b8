//! Shared by the test files: random problems, and the same problems as a textbook has them.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod plain;
pub mod random;

use obprox::{Fit, Point, Problem, Run, Settings};

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
