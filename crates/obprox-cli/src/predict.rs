//! `obprox predict`: model and data → one prediction a line.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use obprox::Model;
use obprox::data::read_vector;
use obprox::output::write_whole;

use crate::destination::{Destination, check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::DataFlags;
use crate::{input, show};

/// Predict one label, value or expected count a line
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Predict {
    /// A model that obprox fit wrote
    model: PathBuf,

    /// The rows to predict; labels in it are passed over; - is standard input
    data: PathBuf,

    /// Where to write the predictions [default: standard output]
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(std::ffi::OsString))]
    out: Option<std::ffi::OsString>,

    /// Probabilities too: a header with the labels, then label and probabilities a line
    #[arg(long)]
    proba: bool,

    /// A file with the offset of each row, one a line; for a model that was learnt with --offset
    #[arg(long, value_name = "FILE")]
    offset: Option<PathBuf>,

    #[command(flatten)]
    reading: DataFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox predict model.json new.svm > labels.txt
  obprox predict model.json new.svm --proba --out probabilities.txt
  obprox predict model.json table.csv      columns are found by name; a label is not needed
  obprox predict model.json numbers.csv --label none      a CSV file without header and label";

impl Predict {
    pub fn run(self) -> Result<(), Failure> {
        let out = self.out.map_or(Destination::Stdout, Destination::from);
        if let Destination::File(path) = &out {
            check_file("--out", path)?;
            check_distinct(&[("DATA", Some(&self.data)), ("--out", Some(path))])?;
            check_distinct(&[("MODEL", Some(&self.model)), ("--out", Some(path))])?;
        }
        self.reading.start_threads()?;
        let model = Model::load(&self.model)?;
        let data = input::for_model(&model, &self.data, &self.reading, false)?;
        let offset = self.offset.as_ref().map(read_vector).transpose()?;
        let labels = model.predict_with(&data.matrix, offset.as_deref())?;
        let probabilities = if self.proba {
            let name = self.model.display().to_string();
            Some(model.probabilities_with(&data.matrix, offset.as_deref()).map_err(Failure::about(&name))?)
        } else {
            None
        };
        let write = |out: &mut dyn Write| match &probabilities {
            None => labels.iter().try_for_each(|&label| writeln!(out, "{}", model.label_name(label))),
            Some(probabilities) => write_probabilities(out, &model, &labels, probabilities),
        };
        match out {
            Destination::File(path) => Ok(write_whole(&path, write)?),
            Destination::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                write(&mut out).and_then(|()| out.flush()).map_err(show::stdout_failure)
            }
        }
    }
}

/// As LIBLINEAR's `predict -b 1` prints them.
fn write_probabilities(out: &mut dyn Write, model: &Model, labels: &[f64], probabilities: &[f64]) -> io::Result<()> {
    let names: Vec<String> = model.labels.iter().map(|&label| model.label_name(label)).collect();
    writeln!(out, "labels {}", names.join(" "))?;
    for (&label, row) in labels.iter().zip(probabilities.chunks_exact(names.len())) {
        let numbers: Vec<String> = row.iter().map(f64::to_string).collect();
        writeln!(out, "{} {}", model.label_name(label), numbers.join(" "))?;
    }
    Ok(())
}
