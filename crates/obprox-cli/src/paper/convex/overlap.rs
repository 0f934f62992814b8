//! How well one support agrees with another.

use serde::{Deserialize, Serialize};

/// Agreement of a found support with a true one. A weight counts as found where it has the true sign: an orthant face
/// with another sign does not have the solution in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    /// The share of what was found that is true; 1 where nothing was found.
    pub precision: f64,
    /// The share of what is true that was found; 1 where nothing is true.
    pub recall: f64,
}

impl Overlap {
    /// Compares weights.
    pub fn of(found: &[f64], truth: &[f64]) -> Self {
        let count = |weights: &[f64]| weights.iter().filter(|&&weight| weight != 0.0).count();
        let both = found.iter().zip(truth).filter(|(found, truth)| *found * *truth > 0.0).count();
        let share = |whole: usize| if whole == 0 { 1.0 } else { both as f64 / whole as f64 };
        Self { precision: share(count(found)), recall: share(count(truth)) }
    }

    /// The mean of several.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |figure: fn(&Self) -> f64| all.iter().map(figure).sum::<f64>() / all.len() as f64;
        Self { precision: mean(|one| one.precision), recall: mean(|one| one.recall) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_count() {
        let truth = [1.0, -2.0, 0.0, 0.0, 3.0];
        let overlap = |found: &[f64]| Overlap::of(found, &truth);
        assert_eq!(overlap(&[0.1, 0.1, 0.1, 0.0, 0.1]), Overlap { precision: 0.5, recall: 2.0 / 3.0 });
        assert_eq!(overlap(&[0.0; 5]), Overlap { precision: 1.0, recall: 0.0 });
        assert_eq!(overlap(&truth), Overlap { precision: 1.0, recall: 1.0 });
    }
}
