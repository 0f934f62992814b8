//! How well predictions fit labels.

mod calibration;
mod concordance;
mod criteria;
mod deviance;

pub use calibration::{Calibration, Group};
pub use concordance::concordance;
pub use criteria::Criteria;
pub use deviance::Deviance;

use serde::Serialize;

/// The figures of `eval`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "task", rename_all = "snake_case")]
pub enum Metrics {
    /// Classes.
    Classification {
        /// Rows.
        rows: usize,
        /// The share of rows whose label was predicted.
        accuracy: f64,
        /// The area under the ROC curve; two classes that both occur only.
        auc: Option<f64>,
        /// The mean loss of the model's own kind; for logistic and softmax the log-loss.
        loss: Option<f64>,
        /// The share of the deviance that is explained; logistic and softmax only.
        deviance_explained: Option<f64>,
        /// Whether probabilities are what they say; logistic only.
        calibration: Option<Calibration>,
        /// The labels.
        labels: Vec<f64>,
        /// Rows with label i (row) that were predicted as label j (column).
        confusion: Vec<Vec<usize>>,
    },
    /// Numbers.
    Regression {
        /// Rows.
        rows: usize,
        /// The root of the mean squared error.
        rmse: f64,
        /// 1 − Σ(y − ŷ)²/Σ(y − ȳ)²; nothing where y is constant.
        r2: Option<f64>,
        /// The mean loss of the model's own kind.
        loss: Option<f64>,
        /// The share of the deviance that is explained; squared and Poisson only.
        deviance_explained: Option<f64>,
    },
    /// Times to an event.
    Survival {
        /// Rows.
        rows: usize,
        /// Those whose event was seen.
        events: usize,
        /// Harrell's concordance; nothing where no two rows can be compared.
        concordance: Option<f64>,
        /// The mean loss of the model's own kind.
        loss: Option<f64>,
        /// The share of the deviance that is explained.
        deviance_explained: Option<f64>,
    },
}

impl Metrics {
    /// One number to choose by, larger is better: accuracy, concordance, or R² (minus the RMSE where y is constant).
    pub fn score(&self) -> f64 {
        match self {
            Self::Classification { accuracy, .. } => *accuracy,
            Self::Regression { r2, rmse, .. } => r2.unwrap_or(-rmse),
            // No pair is known: as good as a guess.
            Self::Survival { concordance, .. } => concordance.unwrap_or(0.5),
        }
    }

    /// The mean loss.
    pub fn loss(&self) -> Option<f64> {
        match self {
            Self::Classification { loss, .. } | Self::Regression { loss, .. } | Self::Survival { loss, .. } => *loss,
        }
    }

    /// What [`Self::score`] is called.
    pub fn score_name(&self) -> &'static str {
        match self {
            Self::Classification { .. } => "accuracy",
            Self::Regression { .. } => "R²",
            Self::Survival { .. } => "concordance",
        }
    }
}

/// A mean loss, and the share of the deviance that it explains where the loss has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Explained {
    /// The mean loss.
    pub loss: Option<f64>,
    /// The share.
    pub deviance: Option<f64>,
}

/// Compares predicted labels with the true ones; `scores` rank the rows of two classes, and are log odds where
/// `is_logistic`.
pub fn classification(
    predicted: &[f64],
    truth: &[f64],
    labels: &[f64],
    (scores, is_logistic): (Option<&[f64]>, bool),
    explained: Explained,
) -> Metrics {
    let probability = |score: &f64| 1.0 / (1.0 + (-score).exp());
    let probabilities: Option<Vec<f64>> =
        scores.filter(|_| is_logistic).map(|scores| scores.iter().map(probability).collect());
    let calibration = probabilities.and_then(|of| Calibration::of(&of, |row| truth[row] == labels[1]));
    let class = |label: f64| labels.partition_point(|&known| known < label);
    let mut confusion = vec![vec![0; labels.len()]; labels.len()];
    for (&predicted, &truth) in predicted.iter().zip(truth) {
        confusion[class(truth)][class(predicted)] += 1;
    }
    let right: usize = (0..labels.len()).map(|class| confusion[class][class]).sum();
    Metrics::Classification {
        rows: truth.len(),
        accuracy: right as f64 / truth.len() as f64,
        auc: scores.and_then(|scores| auc(scores, truth, labels[1])),
        loss: explained.loss,
        deviance_explained: explained.deviance,
        calibration,
        labels: labels.to_vec(),
        confusion,
    }
}

/// Compares predicted numbers with the true ones.
pub fn regression(predicted: &[f64], truth: &[f64], explained: Explained) -> Metrics {
    let rows = truth.len() as f64;
    let mean = truth.iter().sum::<f64>() / rows;
    let residual: f64 = predicted.iter().zip(truth).map(|(p, y)| (p - y) * (p - y)).sum();
    let total: f64 = truth.iter().map(|y| (y - mean) * (y - mean)).sum();
    Metrics::Regression {
        rows: truth.len(),
        rmse: (residual / rows).sqrt(),
        r2: (total > 0.0).then(|| 1.0 - residual / total),
        loss: explained.loss,
        deviance_explained: explained.deviance,
    }
}

/// Compares predicted logarithms of hazards with times that are negative where the row is censored.
pub fn survival(predicted: &[f64], times: &[f64], explained: Explained) -> Metrics {
    Metrics::Survival {
        rows: times.len(),
        events: times.iter().filter(|&&time| time > 0.0).count(),
        concordance: concordance(predicted, times, |_| 1.0),
        loss: explained.loss,
        deviance_explained: explained.deviance,
    }
}

/// The probability that a positive row scores above a negative one, ties counting half.
fn auc(scores: &[f64], truth: &[f64], positive: f64) -> Option<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_unstable_by(|&a, &b| scores[a].total_cmp(&scores[b]));
    let positives = truth.iter().filter(|&&label| label == positive).count() as f64;
    let negatives = truth.len() as f64 - positives;
    if positives == 0.0 || negatives == 0.0 {
        return None;
    }
    // The sum of the positives' ranks; equal scores share the mean of theirs.
    let (mut ranks, mut start) = (0.0, 0);
    while start < order.len() {
        let end = start + order[start..].iter().take_while(|&&at| scores[at] == scores[order[start]]).count().max(1);
        let rank = (start + end + 1) as f64 / 2.0;
        ranks += rank * order[start..end].iter().filter(|&&at| truth[at] == positive).count() as f64;
        start = end;
    }
    Some((ranks - positives * (positives + 1.0) / 2.0) / (positives * negatives))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auc_is_the_share_of_ordered_pairs() {
        let truth = [1.0, -1.0, 1.0, -1.0, 1.0];
        let scores = [0.9, 0.1, 0.4, 0.4, 0.2];
        // Pairs (positive, negative): 0.9 beats both, 0.4 beats 0.1 and ties 0.4, 0.2 beats 0.1 and loses to 0.4.
        assert_eq!(auc(&scores, &truth, 1.0), Some((2.0 + 1.5 + 1.0) / 6.0));
        assert_eq!(auc(&scores[..1], &truth[..1], 1.0), None);
    }

    #[test]
    fn figures_of_a_small_example() {
        let metrics =
            classification(&[1.0, 2.0, 2.0], &[1.0, 2.0, 1.0], &[1.0, 2.0], (None, false), Explained::default());
        let Metrics::Classification { accuracy, confusion, .. } = metrics else { panic!() };
        assert_eq!(accuracy, 2.0 / 3.0);
        assert_eq!(confusion, [[1, 1], [0, 1]]);
        let Metrics::Regression { rmse, r2, .. } = regression(&[1.0, 3.0], &[1.0, 1.0], Explained::default()) else {
            panic!()
        };
        assert_eq!((rmse, r2), (2f64.sqrt(), None));
    }

    #[test]
    fn calibration_is_the_distance_of_said_and_seen() {
        // Log odds of 0 say one half, and one of four has the label; those of ln 3 say three quarters, and all have it.
        let scores = [0.0, 0.0, 0.0, 0.0, 3f64.ln(), 3f64.ln(), 3f64.ln(), 3f64.ln()];
        let truth = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
        let metrics = classification(&truth, &truth, &[0.0, 1.0], (Some(&scores), true), Explained::default());
        let Metrics::Classification { calibration: Some(calibration), .. } = metrics else { panic!() };
        // Eight groups of one row: distances of ½ four times, of ¼ four times.
        assert!((calibration.error - 0.375).abs() < 1e-12, "{calibration:?}");
        assert_eq!(calibration.groups.len(), 8);
        assert_eq!(calibration.groups.iter().map(|group| group.rows).sum::<usize>(), 8);
    }
}
