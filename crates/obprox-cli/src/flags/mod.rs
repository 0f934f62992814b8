//! Flags that several subcommands share: name, help, parsing and test of each sit together.

mod checkpoint;
mod data;
mod lambda;
mod memory;
mod method;
mod offsets;
mod penalty;
mod problem;
mod report;
mod switch;
mod table;

use std::time::Duration;

pub use checkpoint::CheckpointFlags;
pub use data::{DataFlags, in_pool};
pub use lambda::{LambdaFlag, PathFlags};
pub use memory::{MemoryFlags, named, sources};
#[cfg(feature = "net")]
pub use method::parse_decay;
pub use method::{MethodFlags, parse_solver, schedule_words, solver_names};
pub use offsets::Offsets;
pub use problem::ProblemFlags;
pub use report::{FileFlags, ReportFlags, check_page, write_report};
#[cfg(feature = "net")]
pub use switch::{Rounds, parse_rounds};
pub use switch::{no_words, np};
pub use table::TableFlags;

/// A finite number above 0.
pub fn positive(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if value > 0.0 { Ok(value) } else { Err("must be greater than 0".into()) }
}

/// A finite number of at least 0.
pub fn not_negative(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if value >= 0.0 { Ok(value) } else { Err("must not be negative".into()) }
}

/// A whole number of at least 0.
pub fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "must be a whole number, not negative".into())
}

/// A whole number of at least 1.
pub fn count(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".into()),
        Ok(value) => Ok(value),
        Err(_) => Err("must be a whole number, at least 1".into()),
    }
}

/// A length of time: a number of seconds, or with its unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "" | "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("units of time are s, min and h: 90s, 5min, 2h".into()),
    };
    match number.trim().parse::<f64>().map(|value| Duration::try_from_secs_f64(value * seconds)) {
        Ok(Ok(time)) if !time.is_zero() => Ok(time),
        _ => Err("must be a length of time: 90s, 5min, 2h".into()),
    }
}

/// A finite number.
pub fn number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err("must be a finite number".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_ranges() {
        assert_eq!(positive("1e-3"), Ok(1e-3));
        assert!(["0", "-1", "nan", "inf", "", "x"].iter().all(|text| positive(text).is_err()));
        assert_eq!(not_negative("0"), Ok(0.0));
        assert!(not_negative("-1e-9").is_err());
        assert_eq!((count("7"), whole("0")), (Ok(7), Ok(0)));
        assert!(["-1", "1.5", "18446744073709551616"].iter().all(|text| whole(text).is_err()));
        assert!(["0", "-1", "1.5", ""].iter().all(|text| count(text).is_err()));
    }
}
