//! Whether probabilities are what they say: of the rows with about the same one, that share should have the label.

use serde::Serialize;

/// So many groups of rows of one size.
const GROUPS: usize = 10;

/// Rows by predicted probability, in groups of one size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// The mean distance of predicted and observed shares, by rows.
    pub error: f64,
    /// The groups, from the smallest probability on.
    pub groups: Vec<Group>,
}

/// Rows with about the same probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// Rows.
    pub rows: usize,
    /// The mean predicted probability of the larger label.
    pub predicted: f64,
    /// The share of rows that have it.
    pub observed: f64,
}

impl Calibration {
    /// Of probabilities of the larger label, and who has it.
    pub(super) fn of(probabilities: &[f64], has: impl Fn(usize) -> bool) -> Option<Self> {
        let rows = probabilities.len();
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_unstable_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]).then(a.cmp(&b)));
        let groups = GROUPS.min(rows);
        let group = |at: usize| {
            let members = &order[at * rows / groups..(at + 1) * rows / groups];
            let mean =
                |of: &dyn Fn(usize) -> f64| members.iter().map(|&row| of(row)).sum::<f64>() / members.len() as f64;
            Group {
                rows: members.len(),
                predicted: mean(&|row| probabilities[row]),
                observed: mean(&|row| f64::from(u8::from(has(row)))),
            }
        };
        let groups: Vec<Group> = (0..groups).map(group).collect();
        let off = |group: &Group| group.rows as f64 * (group.predicted - group.observed).abs();
        let error = groups.iter().map(off).sum::<f64>() / rows as f64;
        (rows > 0).then_some(Self { error, groups })
    }
}
