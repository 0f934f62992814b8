//! `obprox eval`: how well a model does on labelled data.

use std::path::PathBuf;

use clap::Args;
use obprox::Model;
use obprox::metrics::Metrics;
use serde::Serialize;

use crate::failure::Failure;
use crate::flags::{DataFlags, Offsets, named};
use crate::{input, show};

/// Measure a model: accuracy, AUC, log-loss, calibration and confusion matrix, RMSE and R², or concordance
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Eval {
    /// A model that obprox fit wrote
    model: PathBuf,

    /// Labelled data, read some rows at a time: files, patterns or directories; - is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,

    /// A file with the offset of each row, one a line; for a model that was learnt with --offset
    #[arg(long, value_name = "FILE")]
    offset: Option<PathBuf>,

    #[command(flatten)]
    reading: DataFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox eval model.json test.svm
  obprox eval model.json 'part-*.svm.zst'
  obprox eval model.json table.csv --label income --json";

#[derive(Serialize)]
struct Report<'a> {
    model: String,
    data: String,
    #[serde(flatten)]
    metrics: &'a Metrics,
}

impl Eval {
    pub fn run(self) -> Result<(), Failure> {
        self.reading.start_threads()?;
        let model = Model::load(&self.model)?;
        let (mut margins, mut labels) = (Vec::new(), Vec::new());
        let mut offsets = Offsets::read(self.offset.as_deref())?;
        input::for_model(&model, &self.data, &self.reading, true, &mut |piece| {
            margins.extend(model.margins_with(&piece.matrix, offsets.next(piece.matrix.n_rows())?)?);
            labels.extend_from_slice(&piece.targets);
            Ok(())
        })?;
        offsets.end()?;
        let name = named(&self.data);
        let metrics = model.judge(&margins, &labels).map_err(Failure::about(&name))?;
        if self.json {
            let report = Report { model: self.model.display().to_string(), data: name, metrics: &metrics };
            let text = serde_json::to_string_pretty(&report).expect("a report is plain data");
            return show::print(&(text + "\n"));
        }
        let title = format!("{} on {name}", self.model.display());
        show::print(&format!("{}\n{}", show::bold(&title), show::metrics(&metrics, &model, true)))
    }
}
