//! `obprox eval`: how well a model does on labelled data.

use std::path::PathBuf;

use clap::Args;
use obprox::Model;
use obprox::metrics::Metrics;
use serde::Serialize;

use crate::failure::Failure;
use crate::flags::{DataFlags, named};
use crate::{input, show};

/// Measure a model: accuracy, AUC, log-loss, calibration and confusion matrix, or RMSE and R²
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
        input::for_model(&model, &self.data, &self.reading, true, &mut |piece| {
            margins.extend(model.margins(&piece.matrix));
            labels.extend_from_slice(&piece.targets);
            Ok(())
        })?;
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
