//! `obprox data convert`: one format → another.

use std::path::PathBuf;

use clap::Args;

use super::{is_text, write_data};
use crate::destination::{Destination, check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{DataFlags, TableFlags};
use crate::input;

/// Write a data file as a cache that opens at once, or as LIBSVM text
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Convert {
    /// LIBSVM, CSV, Parquet or Arrow file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    input: PathBuf,

    /// LIBSVM text if the name ends in .svm or .libsvm or is -, a cache otherwise
    #[arg(value_parser = clap::value_parser!(std::ffi::OsString))]
    output: std::ffi::OsString,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    table: TableFlags,

    #[command(flatten)]
    reading: DataFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox data convert train.svm.xz train.obx      opens at once, by memory map
  obprox data convert table.csv train.svm --label income";

impl Convert {
    pub fn run(self) -> Result<(), Failure> {
        let output = Destination::from(self.output);
        if let Destination::File(path) = &output {
            check_file("OUTPUT", path)?;
            check_distinct(&[("INPUT", Some(&self.input)), ("OUTPUT", Some(path))])?;
        }
        self.reading.start_threads()?;
        let data = input::data(&self.input, &self.reading, &self.table, self.quiet)?;
        if is_text(&output) && data.targets.iter().any(|target| target.is_nan()) {
            return Err(Failure::input("--label none: LIBSVM text has a label in every row; write a cache (.obx)"));
        }
        write_data(&data, &output, self.quiet)
    }
}
