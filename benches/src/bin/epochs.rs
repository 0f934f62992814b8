//! What an epoch costs beside one bare evaluation of F and its full gradient, one thread, best of several.
//!
//! `cargo run --release -p obprox-benches --bin epochs -- FILE…`

include!("../say.rs");

use std::time::Instant;

use obprox::data::{Matrix, ReadOptions, Rows, read};
use obprox::loss::LossKind;
use obprox::{MethodKind, Problem, Run, Settings, Terms};

/// The obvious loops: margins, losses, gradient. What no method can do without in an epoch.
fn bare(problem: &Problem) -> (f64, f64) {
    fn pass<R: Rows>(rows: &R, problem: &Problem) -> (f64, f64) {
        let weights = vec![0.001; rows.n_cols()];
        let mut gradient = vec![0.0; rows.n_cols()];
        let begun = Instant::now();
        let mut loss = 0.0;
        let mut pulls = vec![0.0; rows.n_rows()];
        for (row, pull) in pulls.iter_mut().enumerate() {
            let mut margin = 0.0;
            rows.for_each(row, |column, value| margin += value * weights[column]);
            let z = problem.targets()[row] * margin;
            loss += (-z).exp().ln_1p();
            *pull = -problem.targets()[row] / (1.0 + z.exp());
        }
        for (row, pull) in pulls.iter().enumerate() {
            rows.for_each(row, |column, value| gradient[column] += value * pull);
        }
        let seconds = begun.elapsed().as_secs_f64();
        (seconds, std::hint::black_box(loss + gradient.iter().sum::<f64>()))
    }
    match problem.matrix() {
        Matrix::Ones(rows) => pass(rows, problem),
        Matrix::Sparse32(rows) => pass(rows, problem),
        Matrix::Sparse64(rows) => pass(rows, problem),
        Matrix::Dense32(rows) => pass(rows, problem),
        Matrix::Dense64(rows) => pass(rows, problem),
    }
}

/// Epochs 2 to `epochs` of a run, the fastest of them.
fn epoch(problem: &Problem, method: MethodKind, epochs: u64) -> Vec<f64> {
    let settings = Settings { epochs, eval_every: epochs, tolerance: 0.0, ..Settings::with_method(method) };
    let fit = Run::new(problem, settings).fit().expect("the settings are sound");
    let seconds: Vec<f64> = std::iter::once(0.0).chain(fit.trace.iter().map(|record| record.seconds)).collect();
    seconds.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn best(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn main() {
    say!("| file | bare F + gradient | prox-sg | obproxsg | rda | prox-svrg | obproxsg-plus, last epochs |");
    say!("|---|---|---|---|---|---|---|");
    for file in std::env::args().skip(1) {
        let data = read(&file, &ReadOptions::default()).expect("a readable file");
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).expect("two classes");
        // In turn, round after round, the best of each: a neighbour's burst then hits all alike, or none.
        let methods = [MethodKind::ProxSg, MethodKind::ObproxSg, MethodKind::Rda, MethodKind::ProxSvrg];
        let (mut bare_best, mut bests, mut plus_best) = (f64::INFINITY, [f64::INFINITY; 4], f64::INFINITY);
        for _ in 0..6 {
            bare_best = (0..5).map(|_| bare(&problem).0).fold(bare_best, f64::min);
            for (best_so_far, method) in bests.iter_mut().zip(methods) {
                *best_so_far = best(&epoch(&problem, method, 10)[1..]).min(*best_so_far);
            }
            plus_best = best(&epoch(&problem, MethodKind::ObproxSgPlus, 30)[20..]).min(plus_best);
        }
        let ratio = |seconds: f64| format!("{:.2} ms = {:.2}×", 1e3 * seconds, seconds / bare_best);
        let [prox_sg, obproxsg, rda, prox_svrg] = bests.map(ratio);
        say!(
            "| {} | {:.2} ms | {prox_sg} | {obproxsg} | {rda} | {prox_svrg} | {} |",
            file.rsplit('/').next().unwrap_or(&file),
            1e3 * bare_best,
            ratio(plus_best)
        );
    }
}
