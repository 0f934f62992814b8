//! What an epoch costs beside one bare evaluation of F and its full gradient, one thread, best of several.
//!
//! `cargo run --release -p obprox-benches --bin epochs -- FILE…`

include!("../say.rs");

#[path = "../bare.rs"]
mod bare;

use obprox::data::{ReadOptions, read};
use obprox::loss::LossKind;
use obprox::{MethodKind, Problem, Run, Settings, Terms};

use self::bare::{bare, best};

/// Epochs 2 to `epochs` of a run, the fastest of them.
fn epoch(problem: &Problem, method: MethodKind, epochs: u64) -> Vec<f64> {
    let settings = Settings { epochs, eval_every: epochs, tolerance: 0.0, ..Settings::with_method(method) };
    let fit = Run::new(problem, settings).fit().expect("the settings are sound");
    let seconds: Vec<f64> = std::iter::once(0.0).chain(fit.trace.iter().map(|record| record.seconds)).collect();
    seconds.windows(2).map(|pair| pair[1] - pair[0]).collect()
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
            bare_best = (0..5).map(|_| bare(&problem)).fold(bare_best, f64::min);
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
