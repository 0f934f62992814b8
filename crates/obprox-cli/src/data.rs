//! `obprox data`: look at a data file, turn it into another, or make one.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use obprox::data::{Dataset, Entries, Spread, Summary, Synth, Targets, Task, write_cache, write_libsvm};
use obprox::output::write_whole;

use crate::destination::{Destination, check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{DataFlags, count, not_negative, positive, whole};
use crate::input::{self, shown};
use crate::show::{self, bold, pairs, percent, plural, significant, trimmed};
use crate::watch;

/// Look at data files, convert and generate them
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub struct Data {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the shape, the values and the labels of a data file
    Inspect(Inspect),
    /// Write a data file as a cache that opens at once, or as LIBSVM text
    Convert(Convert),
    /// Generate a planted sparse problem of any shape
    Synth(Planted),
}

impl Data {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Inspect(inspect) => inspect.run(),
            Command::Convert(convert) => convert.run(),
            Command::Synth(planted) => planted.run(),
        }
    }
}

// ---- inspect ------------------------------------------------------------------------------------------------------

/// Show the shape, the values and the labels of a data file
#[derive(Args)]
#[command(after_help = "Example:\n  obprox data inspect train.svm.xz")]
struct Inspect {
    /// LIBSVM or CSV file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    data: PathBuf,

    #[command(flatten)]
    reading: DataFlags,
}

/// So many labels are listed; more are counted.
const LABELS: usize = 12;

impl Inspect {
    fn run(self) -> Result<(), Failure> {
        self.reading.start_threads()?;
        let data = input::data(&self.data, &self.reading, false)?;
        let summary = Summary::of(&data);
        let mut rows = vec![
            ("rows".to_owned(), with_empty(summary.rows, summary.empty_rows)),
            ("features".to_owned(), with_empty(summary.cols, summary.empty_cols)),
            ("nonzeros".to_owned(), format!("{} ({})", summary.nnz, percent(summary.density))),
            ("nonzeros a row".to_owned(), spread(summary.row_len)),
            ("norm of a row".to_owned(), spread(summary.row_norm)),
            ("values".to_owned(), range(summary.values)),
            ("in memory".to_owned(), format!("{}, {}", bytes(summary.bytes), summary.storage)),
        ];
        match &summary.targets {
            Targets::Absent => rows.push(("labels".to_owned(), "none".into())),
            Targets::Range(range) => rows.push(("targets".to_owned(), spread(*range))),
            Targets::Labels(labels) => {
                rows.push(("labels".to_owned(), labels.len().to_string()));
                for (label, count) in labels.iter().take(LABELS) {
                    let share = percent(*count as f64 / summary.rows.max(1) as f64);
                    rows.push((format!("  {label}"), format!("{} ({share})", plural(*count as u64, "row"))));
                }
                if labels.len() > LABELS {
                    rows.push(("  …".to_owned(), format!("{} more", labels.len() - LABELS)));
                }
            }
        }
        if let Some(names) = &data.names {
            let first: Vec<&str> = names.iter().take(6).map(String::as_str).collect();
            let more = if names.len() > first.len() { ", …" } else { "" };
            rows.push(("names".to_owned(), format!("{}{more}", first.join(", "))));
        }
        show::print(&format!("{}\n{}", bold(&shown(&self.data)), pairs(rows)))
    }
}

fn with_empty(count: usize, empty: usize) -> String {
    if empty == 0 { count.to_string() } else { format!("{count}, {empty} of them empty") }
}

fn range((min, max): (f64, f64)) -> String {
    if min == max { format!("all {}", trimmed(min)) } else { format!("{} to {}", trimmed(min), trimmed(max)) }
}

fn spread(spread: Spread) -> String {
    let Spread { min, mean, max } = spread;
    match min == max {
        true => format!("all {}", trimmed(min)),
        false => format!("{} to {}, mean {}", trimmed(min), trimmed(max), significant(mean)),
    }
}

fn bytes(bytes: usize) -> String {
    let size = bytes as f64;
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", size / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", size / 1e6),
        _ => format!("{:.2} GB", size / 1e9),
    }
}

// ---- convert ------------------------------------------------------------------------------------------------------

/// Write a data file as a cache that opens at once, or as LIBSVM text
#[derive(Args)]
#[command(after_help = CONVERT_EXAMPLES)]
struct Convert {
    /// LIBSVM or CSV file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    input: PathBuf,

    /// LIBSVM text if the name ends in .svm or .libsvm or is -, a cache otherwise
    #[arg(value_parser = clap::value_parser!(std::ffi::OsString))]
    output: std::ffi::OsString,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    reading: DataFlags,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  obprox data convert train.svm.xz train.obx      opens at once, by memory map
  obprox data convert table.csv train.svm --label income";

impl Convert {
    fn run(self) -> Result<(), Failure> {
        let output = Destination::from(self.output);
        if let Destination::File(path) = &output {
            check_file("OUTPUT", path)?;
            check_distinct(&[("INPUT", Some(&self.input)), ("OUTPUT", Some(path))])?;
        }
        self.reading.start_threads()?;
        let data = input::data(&self.input, &self.reading, self.quiet)?;
        if is_text(&output) && data.targets.iter().any(|target| target.is_nan()) {
            return Err(Failure::input("--label none: LIBSVM text has a label in every row; write a cache (.obx)"));
        }
        write_data(&data, &output, self.quiet)
    }
}

// ---- synth --------------------------------------------------------------------------------------------------------

/// Generate a planted sparse problem: a few true weights, and labels made from them
#[derive(Args)]
#[command(after_help = SYNTH_EXAMPLES)]
struct Planted {
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

const SYNTH_EXAMPLES: &str = "\
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
    fn run(self) -> Result<(), Failure> {
        let output = Destination::from(self.output);
        if let Destination::File(path) = &output {
            check_file("OUTPUT", path)?;
            check_distinct(&[("OUTPUT", Some(path)), ("--truth", self.truth.as_deref())])?;
        }
        if let Some(path) = &self.truth {
            check_file("--truth", path)?;
        }
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

// ---- both ---------------------------------------------------------------------------------------------------------

fn is_text(output: &Destination) -> bool {
    match output {
        Destination::Stdout => true,
        Destination::File(path) => path.extension().is_some_and(|ending| ending == "svm" || ending == "libsvm"),
    }
}

fn write_data(data: &Dataset, output: &Destination, quiet: bool) -> Result<(), Failure> {
    let Destination::File(path) = output else {
        let mut out = BufWriter::new(io::stdout().lock());
        return write_libsvm(data, &mut out).and_then(|()| out.flush()).map_err(show::stdout_failure);
    };
    {
        let _waiting = watch::waiting(format!("writing {}", path.display()), quiet);
        match is_text(output) {
            true => write_whole(path, |out| write_libsvm(data, out))?,
            false => write_cache(data, path)?,
        }
    }
    if quiet {
        return Ok(());
    }
    show::print(&format!(
        "{}: {} × {}, {}, as {}\n",
        bold(&path.display().to_string()),
        plural(data.matrix.n_rows() as u64, "row"),
        plural(data.matrix.n_cols() as u64, "feature"),
        plural(data.matrix.nnz() as u64, "nonzero"),
        if is_text(output) { "LIBSVM text" } else { "a cache that opens at once" }
    ))
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
