//! How well a model does, for people.

use obprox::Model;
use obprox::metrics::Metrics;

use super::{grid, pairs, percent, significant, tight};

/// Confusion matrices larger than this fill screens and tell nothing.
const MOST_CLASSES: usize = 10;

/// The figures, and the confusion matrix where it is small and wanted.
pub fn metrics(metrics: &Metrics, model: &Model, with_confusion: bool) -> String {
    let loss_name = match model.loss.as_str() {
        "logistic" | "softmax" => "log-loss".to_owned(),
        // What is left of the likelihood where nothing is assumed of how hazards move in time.
        "cox" | "cox-breslow" => "−ln partial likelihood / rows".to_owned(),
        loss => format!("mean {loss} loss"),
    };
    let (rows, confusion) = match metrics {
        Metrics::Classification { rows, accuracy, auc, loss, deviance_explained, calibration, labels, confusion } => {
            let wrong = rows - confusion.iter().enumerate().map(|(class, row)| row[class]).sum::<usize>();
            let figures = [
                ("rows".to_owned(), Some(rows.to_string())),
                ("accuracy".to_owned(), Some(format!("{} ({wrong} wrong)", percent(*accuracy)))),
                ("AUC".to_owned(), auc.map(significant)),
                (loss_name, loss.map(significant)),
                ("deviance explained".to_owned(), deviance_explained.map(percent)),
                ("calibration error".to_owned(), calibration.as_ref().map(|of| significant(of.error))),
            ];
            let shown = with_confusion && labels.len() <= MOST_CLASSES;
            (
                figures,
                shown.then(|| {
                    confusion_matrix(labels.iter().map(|&label| model.label_name(label)).collect(), confusion)
                }),
            )
        }
        Metrics::Regression { rows, rmse, r2, loss, deviance_explained } => {
            let figures = [
                ("rows".to_owned(), Some(rows.to_string())),
                ("RMSE".to_owned(), Some(significant(*rmse))),
                ("R²".to_owned(), r2.map(significant)),
                (loss_name, loss.map(significant)),
                // Of the squared loss it is R².
                ("deviance explained".to_owned(), deviance_explained.filter(|_| model.loss != "squared").map(percent)),
                (String::new(), None),
            ];
            (figures, None)
        }
        Metrics::Survival { rows, events, concordance, loss, deviance_explained } => {
            let figures = [
                ("rows".to_owned(), Some(rows.to_string())),
                ("events".to_owned(), Some(events.to_string())),
                ("concordance".to_owned(), concordance.map(significant)),
                (loss_name, loss.map(significant)),
                ("deviance explained".to_owned(), deviance_explained.map(percent)),
                (String::new(), None),
            ];
            (figures, None)
        }
    };
    let figures = pairs(rows.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))));
    match confusion {
        Some(confusion) => figures + "\n" + &confusion,
        None => figures,
    }
}

fn confusion_matrix(labels: Vec<String>, confusion: &[Vec<usize>]) -> String {
    let header = std::iter::once("true \\ predicted".to_owned()).chain(labels.iter().cloned());
    let rows = labels.iter().zip(confusion);
    let rows =
        rows.map(|(label, row)| std::iter::once(label.clone()).chain(row.iter().map(usize::to_string)).collect());
    tight(grid(header.collect(), rows.collect()))
}
