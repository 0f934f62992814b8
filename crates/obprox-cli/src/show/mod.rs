//! What people read: numbers, tables, and the one door to standard output.

mod fit;
mod metrics;
mod sparkline;
mod table;

use std::io::{self, Write};
use std::path::Path;

use anstyle::Style;

pub use fit::{Outcome, fit, lambda};
pub use metrics::metrics;
pub use sparkline::sparkline;
pub use table::{grid, markdown, pairs, tight};

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

/// Something worth knowing, on standard error.
pub fn note(text: &str, quiet: bool) {
    if !quiet {
        eprintln!("obprox: {text}");
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

/// Six significant digits.
pub fn significant(value: f64) -> String {
    digits(value, 6)
}

/// So many significant digits, in the notation that is easier to read.
pub fn digits(value: f64, count: i32) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        value.to_string()
    } else if (1e-3..1e6).contains(&size) {
        let decimals = (count - 1 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.*e}", (count - 2).max(0) as usize)
    }
}

/// The same without the zeros at the end, for numbers that someone chose.
pub fn trimmed(value: f64) -> String {
    let text = significant(value);
    let (digits, exponent) = text.find('e').map_or((&text[..], ""), |at| text.split_at(at));
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned() + exponent,
        false => text,
    }
}

/// The size of an error: two significant digits.
pub fn rough(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if (0.095..0.995).contains(&value) => format!("{value:.2}"),
        _ if (0.995..99.5).contains(&value) => format!("{value:.1}"),
        _ => format!("{value:.1e}"),
    }
}

/// A share: never rounded to 0 or 100 % where it is neither.
pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    match value {
        0.0 => "0 %".into(),
        _ if value < 1e-3 => format!("{value:.1e} %"),
        _ if value < 0.1 => format!("{value:.4} %"),
        _ if value < 100.0 => format!("{:.2} %", value.min(99.99)),
        _ => format!("{value:.0} %"),
    }
}

/// A time.
pub fn seconds(time: f64) -> String {
    match time {
        _ if time < 1e-3 => format!("{:.0} µs", time * 1e6),
        _ if time < 1.0 => format!("{:.1} ms", time * 1e3),
        _ if time < 120.0 => format!("{time:.2} s"),
        _ => format!("{:.0} min {:02.0} s", (time / 60.0).floor(), time % 60.0),
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

/// One noun, or many.
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(significant(0.3242517), "0.324252");
        assert_eq!(significant(12345.678), "12345.7");
        assert_eq!(significant(3.0712e-5), "3.0712e-5");
        assert_eq!(significant(0.0), "0");
        assert_eq!([0.0234, 0.96, 1.0, 15.3, 1234.0].map(rough), ["2.3e-2", "0.96", "1.0", "15.3", "1.2e3"]);
        assert_eq!([0.1, 1.0, 0.0, 3e-5, 1500000.0].map(trimmed), ["0.1", "1", "0", "3e-5", "1.5e6"]);
        assert_eq!(percent(0.6210), "62.10 %");
        assert_eq!(percent(0.999999), "99.99 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!([0.00033, 1.5e-6].map(percent), ["0.0330 %", "1.5e-4 %"]);
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(125.0), "2 min 05 s");
        assert_eq!(plural(1, "epoch"), "1 epoch");
    }

    #[test]
    fn samples_have_both_ends() {
        assert_eq!(sampled(3, 5), [0, 1, 2]);
        assert_eq!(sampled(100, 4), [0, 33, 66, 99]);
        assert_eq!(sampled(5, 4), [0, 1, 3, 4]);
    }
}
