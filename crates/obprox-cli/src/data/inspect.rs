//! `obprox data inspect`: a data file at a glance.

use std::path::PathBuf;

use clap::Args;
use obprox::data::{Spread, Summary, Targets};

use crate::failure::Failure;
use crate::flags::{DataFlags, TableFlags};
use crate::input::{self, shown};
use crate::show::{self, bold, bytes, pairs, percent, plural, significant, trimmed};

/// Show the shape, the values and the labels of a data file
#[derive(Args)]
#[command(after_help = "Example:\n  obprox data inspect train.svm.xz")]
pub struct Inspect {
    /// LIBSVM, CSV, Parquet or Arrow file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    data: PathBuf,

    #[command(flatten)]
    table: TableFlags,

    #[command(flatten)]
    reading: DataFlags,
}

/// So many labels are listed; more are counted.
const LABELS: usize = 12;

impl Inspect {
    pub fn run(self) -> Result<(), Failure> {
        self.reading.start_threads()?;
        let data = input::data(&self.data, &self.reading, &self.table, false)?;
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
        // Words are numbered from 0, in order.
        let classes = data.recipe.as_ref().map_or(&[][..], |recipe| recipe.classes());
        match &summary.targets {
            Targets::Absent => rows.push(("labels".to_owned(), "none".into())),
            Targets::Range(range) => rows.push(("targets".to_owned(), spread(*range))),
            Targets::Labels(labels) => {
                rows.push(("labels".to_owned(), labels.len().to_string()));
                for (label, count) in labels.iter().take(LABELS) {
                    let share = percent(*count as f64 / summary.rows.max(1) as f64);
                    let name = classes.get(*label as usize).cloned().unwrap_or_else(|| label.to_string());
                    rows.push((format!("  {name}"), format!("{} ({share})", plural(*count as u64, "row"))));
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
