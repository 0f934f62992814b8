//! Large problems: what single passes take, how `auto` fares beside the paper's methods, how much memory there is at the
//! peak, how time grows.
//!
//! ```sh
//! cargo run --release -p obprox-benches --bin scale -- passes kdda 16
//! cargo run --release -p obprox-benches --bin scale -- memory kdda 16 auto
//! cargo run --release -p obprox-benches --bin scale -- race kdda 16 1/N all benches/scale.jsonl
//! cargo run --release -p obprox-benches --bin scale -- plot benches/scale.jsonl benches/plots
//! ```
//!
//! Problems are planted, with the rows, columns and nonzeros a row of kdda or url_combined divided by the number; they are
//! not those sets. A file in the place of the name is read again and again until there are a million rows. What was made
//! once lies in `target/scale` or where `OBPROX_SCALE` says.

#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../bare.rs"]
mod bare;
mod passes;
#[path = "../../peak.rs"]
mod peak;
mod plot;
mod race;
mod shapes;

use obprox::{Method, MethodKind};

use self::shapes::Shape;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize, default: &'static str| arguments.get(at).map_or(default, String::as_str);
    let shape = || Shape { name: argument(1, "kdda").into(), part: argument(2, "16").parse().expect("a number") };
    let kind = |name: &str| MethodKind::ALL.into_iter().find(|kind| kind.name() == name).expect("a method");
    match argument(0, "passes") {
        "passes" => passes::passes(&shape()),
        "memory" => passes::memory(&shape(), Method::from(kind(argument(3, "auto")))),
        "race" => {
            let kinds = match argument(4, "auto") {
                "all" => MethodKind::PAPER.to_vec(),
                "auto" => Vec::new(),
                names => names.split(',').map(kind).collect(),
            };
            race::race(&shape(), argument(3, "1/N"), &kinds, arguments.get(5).map(String::as_str));
        }
        "plot" => plot::plot(argument(1, "benches/scale.jsonl"), argument(2, "benches/plots")),
        other => panic!("{other}: passes, memory, race or plot"),
    }
}
