//! What the number of columns costs at equal nonzeros: an epoch of Prox-SG at n = 10⁵ and at n = 10⁷, one thread.
//!
//! `cargo run --release -p obprox-benches --bin width`

include!("../say.rs");

use obprox::data::Synth;
use obprox::loss::LossKind;
use obprox::{MethodKind, Problem, Run, Settings, Terms};

fn main() {
    say!("| columns | nonzeros | prox-sg, an epoch | obproxsg, an epoch |");
    say!("|---|---|---|---|");
    let mut first = None;
    for cols in [100_000, 1_000_000, 10_000_000] {
        let synth = Synth { rows: 200_000, cols, per_row: 36.0, support: 1000, ..Synth::default() };
        let data = synth.generate().expect("a sound shape").dataset;
        let nnz = data.matrix.nnz();
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).expect("two classes");
        let epoch = |method| {
            let settings = Settings { epochs: 8, eval_every: 8, tolerance: 0.0, ..Settings::with_method(method) };
            let fit = Run::new(&problem, settings).fit().expect("the settings are sound");
            fit.trace.windows(2).map(|pair| pair[1].seconds - pair[0].seconds).fold(f64::INFINITY, f64::min)
        };
        let seconds = [epoch(MethodKind::ProxSg), epoch(MethodKind::ObproxSg)];
        let base: [f64; 2] = *first.get_or_insert(seconds);
        let cell = |at: usize| format!("{:.0} ms = {:.2}×", 1e3 * seconds[at], seconds[at] / base[at]);
        say!("| {cols} | {nnz} | {} | {} |", cell(0), cell(1));
    }
}
