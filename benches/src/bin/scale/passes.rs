//! What single passes take, beside a bare read of the rows.

use std::time::Instant;

use obprox::data::Matrix;
use obprox::schedule::StepSize;
use obprox::{Control, EpochRecord, Method, Observer, Problem, Run, Settings};
use rayon::prelude::*;

use crate::bare::{bare, best};
use crate::shapes::Shape;

/// Keeps the seconds of each epoch and of the evaluation after it.
struct Clocks {
    before: (f64, Instant),
    epochs: Vec<f64>,
    evaluations: Vec<f64>,
}

impl Observer for Clocks {
    fn epoch(&mut self, record: &EpochRecord) -> Control {
        let (seconds, since) = self.before;
        let epoch = record.seconds - seconds;
        self.epochs.push(epoch);
        self.evaluations.push(since.elapsed().as_secs_f64() - epoch);
        self.before = (record.seconds, Instant::now());
        Control::Continue
    }
}

/// Sums up all bytes of the rows on all threads: no pass can be faster.
fn bare_read(matrix: &Matrix) -> f64 {
    fn sum<T: Copy + Sync>(array: &[T], bits: impl Fn(T) -> u64 + Sync) -> u64 {
        let part = |part: &[T]| part.iter().fold(0u64, |sum, &item| sum.wrapping_add(bits(item)));
        array.par_chunks(1 << 16).map(part).reduce(|| 0, u64::wrapping_add)
    }
    let begun = Instant::now();
    let all = match matrix {
        Matrix::Ones(rows) => sum(rows.indices(), u64::from),
        Matrix::Sparse32(rows) => {
            sum(rows.indices(), u64::from).wrapping_add(sum(rows.values(), |x| u64::from(x.to_bits())))
        }
        Matrix::Sparse64(rows) => sum(rows.indices(), u64::from).wrapping_add(sum(rows.values(), f64::to_bits)),
        _ => 0,
    };
    std::hint::black_box(all);
    begun.elapsed().as_secs_f64()
}

/// The seconds of a bare pass, one thread: what all others are told in.
pub fn bare_pass(problem: &Problem) -> f64 {
    best(&(0..2).map(|_| bare(problem)).collect::<Vec<f64>>())
}

/// The seconds of single passes, the best of three.
pub fn passes(shape: &Shape) {
    let begun = Instant::now();
    let file = std::fs::read(shape.file()).expect("a cache");
    let (reading, cache) = (begun.elapsed().as_secs_f64(), file.len());
    drop(file);
    let begun = Instant::now();
    let problem = shape.problem("1/N");
    let stated = begun.elapsed().as_secs_f64();
    let matrix = problem.matrix();
    println!("{} × {}, {} nonzeros\n", matrix.n_rows(), matrix.n_cols(), matrix.nnz());
    let read = best(&(0..3).map(|_| bare_read(matrix)).collect::<Vec<f64>>());
    let settings = Settings { epochs: 3, step: StepSize::Value(8.0), ..Settings::with_method(Method::ProxSg) };
    let mut clocks = Clocks { before: (0.0, Instant::now()), epochs: Vec::new(), evaluations: Vec::new() };
    Run::new(&problem, settings).observe(&mut clocks).fit().expect("a fit");
    println!("| | seconds | bare reads | GB/s |\n|---|---|---|---|");
    for (what, seconds) in [
        ("a bare read of the rows, both threads", read),
        ("reading the cache file, one thread", reading),
        ("opening the cache and stating the problem", stated),
        ("a bare pass: F and its gradient, plain loops, one thread", bare_pass(&problem)),
        ("an evaluation: F, its gradient, the gap", best(&clocks.evaluations)),
        ("an epoch of Prox-SG", best(&clocks.epochs)),
    ] {
        println!("| {what} | {seconds:.3} | {:.1} | {:.2} |", seconds / read, cache as f64 / seconds * 1e-9);
    }
}

/// The peak of the memory of one run, beside 1.2 times the cache and 60 bytes a feature.
pub fn memory(shape: &Shape, method: Method) {
    let cache = std::fs::metadata(shape.file()).expect("a cache").len() as f64;
    let problem = shape.problem("1/N");
    let name = method.name().to_owned();
    let epochs = if method == Method::Auto { 200 } else { 2 };
    Run::new(&problem, Settings { epochs, ..Settings::with_method(method) }).fit().expect("a fit");
    let bound = 1.2 * cache + 60.0 * problem.n_features() as f64;
    let peak = crate::peak::peak();
    println!("| {name} | {:.2} | {:.2} | {:.2} |", peak * 1e-9, bound * 1e-9, peak / bound);
}
