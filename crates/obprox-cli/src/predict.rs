//! `obprox predict`: model and data → one prediction a line.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use clap::Args;
use obprox::Model;
use obprox::output::write_whole;

use crate::destination::{Destination, check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{DataFlags, Offsets, sources};
use crate::{input, show};

/// Predict one label, value or expected count a line
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Predict {
    /// A model that obprox fit wrote
    model: PathBuf,

    /// The rows to predict, read some at a time: files, patterns or directories; labels are passed over; - is standard
    /// input
    #[arg(required = true)]
    data: Vec<PathBuf>,

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
  obprox predict model.json 'part-*.svm.zst' --out labels.txt      files larger than memory
  obprox predict model.json table.csv      columns are found by name; a label is not needed
  obprox predict model.json numbers.csv --label none      a CSV file without header and label";

impl Predict {
    pub fn run(self) -> Result<(), Failure> {
        let out = self.out.clone().map_or(Destination::Stdout, Destination::from);
        if let Destination::File(path) = &out {
            check_file("--out", path)?;
            for data in sources(&self.data)? {
                check_distinct(&[("DATA", Some(&data)), ("--out", Some(path))])?;
            }
            check_distinct(&[("MODEL", Some(&self.model)), ("--out", Some(path))])?;
        }
        self.reading.start_threads()?;
        let model = Model::load(&self.model)?;
        // What is wrong with the data, where that is what ends the writing.
        let mut failure = None;
        let mut write = |out: &mut dyn Write| {
            self.predict(&model, out).map_err(|stop| match stop {
                Stop::Output(error) => error,
                Stop::Data(wrong) => {
                    failure = Some(wrong);
                    io::ErrorKind::InvalidData.into()
                }
            })
        };
        let outcome = match out {
            Destination::File(path) => write_whole(&path, write).map_err(Failure::from),
            Destination::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                write(&mut out).and_then(|()| out.flush()).map_err(show::stdout_failure)
            }
        };
        failure.map_or(outcome, Err)
    }

    /// Writes the predictions, some rows at a time.
    fn predict(&self, model: &Model, out: &mut dyn Write) -> Result<(), Stop> {
        let (mut broken, mut has_header) = (None, !self.proba);
        if self.proba {
            let name = self.model.display().to_string();
            model.check_probabilities().map_err(Failure::about(&name)).map_err(Stop::Data)?;
        }
        let mut offsets = Offsets::read(self.offset.as_deref()).map_err(Stop::Data)?;
        let read = input::for_model(model, &self.data, &self.reading, false, &mut |piece| {
            let offset = offsets.next(piece.matrix.n_rows())?;
            let labels = model.predict_with(&piece.matrix, offset)?;
            let class_probabilities =
                if self.proba { model.probabilities_with(&piece.matrix, offset)? } else { Vec::new() };
            // Nothing is written before some rows were sound.
            let header = if std::mem::replace(&mut has_header, true) { Ok(()) } else { write_labels(out, model) };
            let written = header.and_then(|()| match self.proba {
                false => labels.iter().try_for_each(|&label| writeln!(out, "{}", model.label_name(label))),
                true => write_probabilities(out, model, &labels, &class_probabilities),
            });
            written.map_err(|error| {
                broken = Some(error);
                Failure::other("")
            })
        });
        match broken {
            Some(error) => Err(Stop::Output(error)),
            None => read.and_then(|()| offsets.end()).map_err(Stop::Data),
        }
    }
}

/// Why the writing of predictions ended early.
enum Stop {
    Data(Failure),
    Output(io::Error),
}

/// The header of probabilities, as LIBLINEAR's `predict -b 1` prints it.
fn write_labels(out: &mut dyn Write, model: &Model) -> io::Result<()> {
    let names: Vec<String> = model.labels.iter().map(|&label| model.label_name(label)).collect();
    writeln!(out, "labels {}", names.join(" "))
}

fn write_probabilities(out: &mut dyn Write, model: &Model, labels: &[f64], probabilities: &[f64]) -> io::Result<()> {
    for (&label, row) in labels.iter().zip(probabilities.chunks_exact(model.labels.len())) {
        let numbers: Vec<String> = row.iter().map(f64::to_string).collect();
        writeln!(out, "{} {}", model.label_name(label), numbers.join(" "))?;
    }
    Ok(())
}
