//! What people read: numbers, tables, and the one door to standard output.

mod fit;
mod metrics;
mod sparkline;
mod table;

use std::io::{self, Write};
use std::path::Path;

use anstyle::Style;
pub use obprox_report::text::{digits, percent, plural, rough, seconds, signed, significant, trimmed};

pub use fit::{Outcome, fit};
pub use metrics::metrics;
pub use sparkline::sparkline;
#[cfg(feature = "paper")]
pub use table::markdown;
pub use table::{Grid, grid, pairs, tight};

use crate::failure::Failure;

/// Writes to standard output; colours only where there is a terminal that wants them.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::AutoStream::auto(io::stdout());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(stdout_failure)
}

/// For `map_err`: a reader that left early is no failure.
pub fn stdout_failure(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unheard,
        _ => Failure::other(format!("cannot write to standard output: {error}")),
    }
}

/// A line on standard error. Where that takes nothing, as on a full disk, the exit status has to do.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "obprox: {text}");
}

/// Something worth knowing, on standard error.
pub fn note(text: &str, quiet: bool) {
    if !quiet {
        say(text);
    }
}

/// Says what becomes of an earlier checkpoint, or that there is none.
pub fn announce_checkpoint(directory: &Path, resume: bool, exists: bool, quiet: bool) {
    let name = directory.display();
    match (resume, exists) {
        (true, false) => note(&format!("no checkpoint in {name} yet: starting anew"), quiet),
        (false, true) => {
            note(&format!("starting anew over the checkpoint in {name} (--resume would go on from it)"), quiet);
        }
        _ => {}
    }
}

/// A heading.
pub fn bold(text: &str) -> String {
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}

/// The places of at most `most` out of `count`, evenly, the first and the last among them.
pub fn sampled(count: usize, most: usize) -> Vec<usize> {
    match count <= most {
        true => (0..count).collect(),
        false => (0..most).map(|at| (at * (count - 1) + (most - 1) / 2) / (most - 1)).collect(),
    }
}

/// A size on disk or in memory.
pub fn bytes(bytes: usize) -> String {
    let size = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", size / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size / 1e6),
        _ => format!("{:.2} GB", size / 1e9),
    }
}

/// A few of many numbers.
pub fn listed(numbers: &[f64]) -> String {
    let mut words: Vec<String> = numbers.iter().take(6).map(f64::to_string).collect();
    if numbers.len() > 6 {
        words.push("…".into());
    }
    words.join(", ")
}
