//! How data files are read.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use obprox::data::{Format, Label, ReadOptions};

use crate::failure::Failure;
use crate::threads;

/// The flags of every subcommand that reads data.
#[derive(Args, Debug)]
#[command(next_help_heading = "Reading the data")]
pub struct DataFlags {
    /// Tables: the label's column, or that of times: first, last, none, a number from 1, or its name [default: first, or the
    /// model's]
    #[arg(long, value_name = "COLUMN", value_parser = parse_label)]
    pub label: Option<Label>,

    /// Tables: the column that says whether the event was seen (1, true) or the row is censored (0, false) at the time
    /// that is the label [default: none, or the model's]
    #[arg(long, value_name = "COLUMN", value_parser = parse_label)]
    event: Option<Label>,

    /// CSV: the first line is a header (otherwise its content tells)
    #[arg(long, overrides_with = "no_header")]
    header: bool,

    /// CSV: the first line is a row
    #[arg(long)]
    no_header: bool,

    /// The format of the data, where its content should not tell
    #[arg(long, value_name = "FORMAT", value_enum)]
    data_format: Option<FormatName>,

    /// At least this many features, for data whose last columns are empty
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    features: Option<u32>,

    /// A file with the name of each feature, one a line, such as the vocabulary of a LIBSVM file
    #[arg(long, value_name = "FILE")]
    pub names: Option<PathBuf>,

    /// Threads for reading and evaluation [default: one a core]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FormatName {
    Libsvm,
    Csv,
    Parquet,
    Arrow,
    Cache,
}

fn parse_label(text: &str) -> Result<Label, String> {
    match Label::from_str(text) {
        Ok(Label::Number(0)) => Err("columns are counted from 1".into()),
        Ok(Label::Name(name)) if name.is_empty() => Err("the name is empty".into()),
        Ok(label) => Ok(label),
    }
}

impl DataFlags {
    /// What the reader is asked.
    pub fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.data_format.map(|format| match format {
                FormatName::Libsvm => Format::Libsvm,
                FormatName::Csv => Format::Csv,
                FormatName::Parquet => Format::Parquet,
                FormatName::Arrow => Format::Arrow,
                FormatName::Cache => Format::Cache,
            }),
            label: self.label.clone().unwrap_or_default(),
            event: self.event.clone(),
            header: match (self.header, self.no_header) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            n_cols: self.features.map(|features| features as usize),
            ..ReadOptions::default()
        }
    }

    /// Sizes the pool of threads; the count it has.
    pub fn start_threads(&self) -> Result<usize, Failure> {
        threads::start(self.threads)
    }
}

/// Does some work on a thread of the pool. From any other thread each parallel pass would have to wake one of them and
/// wait, which takes longer than many a pass itself.
pub fn in_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| work())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_words_numbers_or_names() {
        assert_eq!(parse_label("none"), Ok(Label::Absent));
        assert_eq!(parse_label("3"), Ok(Label::Number(3)));
        assert_eq!(parse_label("income"), Ok(Label::Name("income".into())));
        assert!(parse_label("0").is_err() && parse_label("").is_err());
    }
}
