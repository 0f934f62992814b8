//! The peak memory of a whole fit, reading included, beside its bound: 1.3 × the bytes of the matrix + 48 n.
//!
//! `obprox data synth kdda.svm --rows 8407752 --cols 20216830 --per-row 36 …`, then
//! `cargo run --release -p obprox-benches --bin memory -- kdda.svm`

include!("../say.rs");

#[path = "../peak.rs"]
mod peak;

use std::time::Instant;

use obprox::data::{ReadOptions, read};
use obprox::loss::LossKind;
use obprox::{MethodKind, Problem, Run, Settings, Terms};

use self::peak::peak;

fn main() {
    let file = std::env::args().nth(1).expect("usage: memory FILE");
    let begun = Instant::now();
    let data = read(&file, &ReadOptions::default()).expect("a readable file");
    let seconds = begun.elapsed().as_secs_f64();
    let (rows, cols, nnz, bytes) =
        (data.matrix.n_rows(), data.matrix.n_cols(), data.matrix.nnz(), data.matrix.bytes() as f64);
    let after_reading = peak();
    let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).expect("two classes");
    let settings = Settings { epochs: 2, ..Settings::with_method(MethodKind::ObproxSgPlus) };
    let fit = Run::new(&problem, settings).fit().expect("the settings are sound");
    let bound = 1.3 * bytes + 48.0 * cols as f64;
    say!("{rows} × {cols}, {nnz} nonzeros, matrix {:.0} MB, read in {seconds:.1} s", bytes / 1e6);
    say!("an epoch of obproxsg-plus: {:.1} s", fit.seconds / fit.epochs as f64);
    say!("peak after reading {:.0} MB, after the fit {:.0} MB", after_reading / 1e6, peak() / 1e6);
    say!("bound 1.3 × matrix + 48 n = {:.0} MB: {:.2} of it", bound / 1e6, peak() / bound);
}
