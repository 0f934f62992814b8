//! `obprox data synth`: planted problems, for the huge sets that few have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use obprox::data::{Entries, Synth, Task};
use obprox::output::write_whole;

use super::write_data;
use crate::destination::{Destination, check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{count, not_negative, positive, whole};
use crate::threads;
use crate::watch;

/// Generate a planted sparse problem: a few true weights, and labels made from them
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Planted {
    /// LIBSVM text if the name ends in .svm or .libsvm or is -, a cache otherwise
    #[arg(value_parser = clap::value_parser!(std::ffi::OsString))]
    output: std::ffi::OsString,

    /// Rows
    #[arg(long, value_name = "N", default_value = "1000", value_parser = size, allow_negative_numbers = true)]
    rows: usize,

    /// Columns
    #[arg(long, value_name = "N", default_value = "100", value_parser = size, allow_negative_numbers = true)]
    cols: usize,

    /// Nonzeros a row, on average
    #[arg(long, value_name = "N", default_value = "10", value_parser = positive, allow_negative_numbers = true)]
    per_row: f64,

    /// Columns with a true weight [default: 10, or all where there are fewer]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    support: Option<usize>,

    /// What the labels are: classification (−1 and 1), regression, counts, or classes:K
    #[arg(long, value_name = "TASK", default_value = "classification", value_parser = parse_task)]
    task: Task,

    /// What the nonzeros are
    #[arg(long, value_name = "KIND", default_value = "normal", value_enum)]
    entries: Kind,

    /// Standard deviation of the noise on the scores that make the labels
    #[arg(long, value_name = "SD", default_value = "0.1", value_parser = not_negative, allow_negative_numbers = true)]
    noise: f64,

    /// How unequal columns are: the r-th most frequent occurs as r to the power −SKEW
    #[arg(long, value_name = "SKEW", default_value = "0", value_parser = not_negative, allow_negative_numbers = true)]
    skew: f64,

    /// All randomness comes from it
    #[arg(long, value_name = "SEED", default_value = "0", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,

    /// Where to write the true weights: a line a column, one number a class
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  obprox data synth train.svm --rows 10000 --cols 1000 --per-row 20 --support 50
  obprox data synth huge.obx --rows 1000000 --cols 20000000 --per-row 36 --entries ones --skew 1.1";

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Ones,
    Normal,
    UnitRows,
}

/// Rows and columns are numbered by 32 bits.
fn size(text: &str) -> Result<usize, String> {
    match count(text)? {
        size if size < u64::from(u32::MAX) => Ok(size as usize),
        _ => Err(format!("must be less than {}", u32::MAX)),
    }
}

fn parse_task(text: &str) -> Result<Task, String> {
    let classes = |number: &str| number.parse().ok().filter(|classes| (2..=10_000).contains(classes));
    match text {
        "classification" => Ok(Task::Classification),
        "regression" => Ok(Task::Regression),
        "counts" => Ok(Task::Counts),
        _ => text
            .strip_prefix("classes:")
            .and_then(classes)
            .map(Task::Classes)
            .ok_or("must be classification, regression, counts, or classes:K with K from 2 to 10000".into()),
    }
}

impl Planted {
    pub fn run(self) -> Result<(), Failure> {
        let output = Destination::from(self.output);
        if let Destination::File(path) = &output {
            check_file("OUTPUT", path)?;
            check_distinct(&[("OUTPUT", Some(path)), ("--truth", self.truth.as_deref())])?;
        }
        if let Some(path) = &self.truth {
            check_file("--truth", path)?;
        }
        threads::start(None)?;
        let recipe = Synth {
            rows: self.rows,
            cols: self.cols,
            per_row: self.per_row,
            support: self.support.unwrap_or(self.cols.min(10)),
            task: self.task,
            noise: self.noise,
            entries: match self.entries {
                Kind::Ones => Entries::Ones,
                Kind::Normal => Entries::Normal,
                Kind::UnitRows => Entries::UnitRows,
            },
            skew: self.skew,
            seed: self.seed,
        };
        let planted = {
            let _waiting = watch::waiting("generating".into(), self.quiet);
            recipe.generate()?
        };
        write_data(&planted.dataset, &output, self.quiet)?;
        if let Some(path) = &self.truth {
            let outputs = if let Task::Classes(classes) = self.task { classes } else { 1 };
            write_whole(path, |out| {
                planted.weights.chunks_exact(outputs).try_for_each(|row| {
                    let row: Vec<String> = row.iter().map(f64::to_string).collect();
                    writeln!(out, "{}", row.join(" "))
                })
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_words() {
        assert_eq!(parse_task("classes:3"), Ok(Task::Classes(3)));
        assert!(["classes", "classes:1", "classes:x", "classes:99999999", ""].iter().all(|t| parse_task(t).is_err()));
        assert!(size("0").is_err() && size("4294967295").is_err() && size("7") == Ok(7));
    }
}
