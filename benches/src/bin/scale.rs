//! `auto` beside OBProx-SG+ at the shapes of the paper's largest sets, whole or a part of them.
//!
//! ```sh
//! cargo run --release -p obprox-benches --bin scale -- kdda 16 1/N
//! ```
//!
//! The problem is planted, with the rows, columns and nonzeros a row of kdda or url_combined divided by the part; it is not
//! the set itself. For each run: seconds of training, seconds since it began (evaluations included), F, gap, features.
//!
//! With `passes` at the end: what stating the problem, an epoch of Prox-SG and an evaluation take beside a bare read of the
//! rows by all threads, and the bytes of the rows by their seconds.

#![allow(clippy::print_stdout)]

use std::time::Instant;

use obprox::data::{Entries, Matrix, Synth};
use obprox::loss::LossKind;
use obprox::schedule::StepSize;
use obprox::switch::{Switch, Unit};
use obprox::{Control, EpochRecord, Lambda, Method, Observer, Problem, Run, Settings, Terms};
use rayon::prelude::*;

/// Prints a line an epoch.
struct Lines(Instant);

impl Observer for Lines {
    fn epoch(&mut self, record: &EpochRecord) -> Control {
        if let Some(at) = &record.certificate {
            let (seconds, since) = (record.seconds, self.0.elapsed().as_secs_f64());
            let gap = at.relative_gap().unwrap_or(f64::NAN);
            println!("| {} | {seconds:.1} | {since:.1} | {:.6} | {gap:.1e} | {} |", record.epoch, at.objective, at.nnz);
        }
        Control::Continue
    }
}

/// The recipe of a shape, divided.
fn shape(name: &str, part: usize) -> Synth {
    match name {
        "kdda" => Synth {
            rows: 8_407_752 / part,
            cols: 20_216_830 / part,
            per_row: 36.3,
            support: 20_000 / part,
            entries: Entries::UnitRows,
            skew: 1.1,
            noise: 0.1,
            seed: 2,
            ..Synth::default()
        },
        "url" => Synth {
            rows: 2_396_130 / part,
            cols: 3_231_961 / part,
            per_row: 115.6,
            support: 5_000 / part,
            entries: Entries::Ones,
            skew: 1.1,
            noise: 1.0,
            seed: 1,
            ..Synth::default()
        },
        other => panic!("{other}: the shapes are kdda and url"),
    }
}

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

/// The seconds of single passes.
fn passes(problem: &Problem, stated: f64) {
    let bytes = problem.matrix().bytes() as f64;
    let least = |seconds: &[f64]| seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let bare = least(&(0..5).map(|_| bare_read(problem.matrix())).collect::<Vec<f64>>());
    let settings = Settings { epochs: 3, step: StepSize::Value(8.0), ..Settings::with_method(Method::ProxSg) };
    let mut clocks = Clocks { before: (0.0, Instant::now()), epochs: Vec::new(), evaluations: Vec::new() };
    Run::new(problem, settings).observe(&mut clocks).fit().expect("a fit");
    println!("| | seconds | bare reads | GB/s |\n|---|---|---|---|");
    for (what, seconds) in [
        ("bare read", bare),
        ("stating the problem", stated),
        ("an evaluation", least(&clocks.evaluations)),
        ("an epoch of Prox-SG", least(&clocks.epochs)),
    ] {
        println!("| {what} | {seconds:.3} | {:.1} | {:.2} |", seconds / bare, bytes / seconds * 1e-9);
    }
}

fn main() {
    let argument = |at: usize, default: &str| std::env::args().nth(at).unwrap_or_else(|| default.into());
    let (name, part, lambda) = (argument(1, "kdda"), argument(2, "16"), argument(3, "1/N"));
    let lambda = match lambda.strip_suffix("max") {
        Some(share) => Lambda::OfMax(share.parse().expect("a share of λ_max")),
        None => Lambda::OverN,
    };
    let data = shape(&name, part.parse().expect("a number")).generate().expect("a recipe").dataset;
    println!("{} × {}, {} nonzeros", data.matrix.n_rows(), data.matrix.n_cols(), data.matrix.nnz());
    let begun = Instant::now();
    let terms = Terms { lambda, ..Terms::default() };
    let problem = Problem::new(data, LossKind::Logistic.build(2), &terms).expect("a problem");
    let stated = begun.elapsed().as_secs_f64();
    println!("stated in {stated:.1} s, λ = {:.3e} λ_max\n", problem.lambda() / problem.lambda_max());
    if argument(4, "") == "passes" {
        return passes(&problem, stated);
    }

    let plus = |prox: u64, step: f64, epochs: u64| Settings {
        epochs,
        step: StepSize::Value(step),
        ..Settings::with_method(Method::ObproxSgPlus {
            switch: Switch::Fixed { prox, orthant: None, unit: Unit::Epochs },
        })
    };
    for (title, settings) in [
        ("obproxsg-plus, N_P = 2, step 1", plus(2, 1.0, 4)),
        ("obproxsg-plus, N_P = 6, step 8", plus(6, 8.0, 10)),
        ("auto", Settings::default()),
    ] {
        println!(
            "{title}\n\n| epoch | training, s | in all, s | F | relative gap | features |\n|---|---|---|---|---|---|"
        );
        let mut lines = Lines(Instant::now());
        let fit = Run::new(&problem, settings).observe(&mut lines).fit().expect("a fit");
        println!("\n{}\n", fit.status.name());
    }
}
