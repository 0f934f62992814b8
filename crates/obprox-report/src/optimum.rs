//! F*, as well as the runs know it.
//!
//! Every gap gives a lower bound D = F − gap ≤ F*, every F an upper one. Where the best of both are close to each other
//! the optimum is certified and curves are measured from D: F − D is then at least F − F*, and never zero. Where they
//! are not, the smallest F that was seen has to do, and it is said so.

use crate::log::Run;
use crate::text::{rough, significant};

/// Bounds closer than this, relative to F, are as good as F* in a picture.
const CLOSE: f64 = 1e-3;

/// What is taken for F*.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// The value that curves are measured from.
    pub value: f64,
    /// The largest lower bound, where there is a gap.
    pub low: Option<f64>,
    /// The smallest F.
    pub high: f64,
    /// Whether `value` is the lower bound of a certified optimum.
    pub certified: bool,
    /// The run that `value` comes from, by its place.
    pub run: usize,
}

impl Optimum {
    /// The optimum of runs of one problem; nothing where none has an F.
    pub fn of(runs: &[&Run]) -> Option<Self> {
        let points: Vec<(usize, f64, Option<f64>)> =
            runs.iter().enumerate().flat_map(|(place, run)| points(run).map(move |(f, gap)| (place, f, gap))).collect();
        let (at_high, high, _) = points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        // The difference of two huge numbers is all rounding, and proves nothing.
        let exact = |objective: f64| objective.abs() <= 1e6 * high.abs();
        let bound = |&(place, objective, gap): &(usize, f64, Option<f64>)| {
            gap.filter(|gap| *gap >= 0.0 && gap.is_finite() && exact(objective)).map(|gap| (objective - gap, place))
        };
        let low = points.iter().filter_map(bound).max_by(|a, b| a.0.total_cmp(&b.0));
        let certified = low.filter(|(low, _)| high - low <= CLOSE * high.abs());
        Some(match certified {
            // Rounding can put D above the F it bounds.
            Some((bound, run)) => {
                Self { value: bound.min(high), low: Some(bound.min(high)), high, certified: true, run }
            }
            None => Self { value: high, low: low.map(|(low, _)| low), high, certified: false, run: at_high },
        })
    }

    /// In words; `name` is that of its run.
    pub fn words(&self, name: &str) -> String {
        let value = format!("{:.12}", self.value);
        match (self.certified, self.low) {
            (true, _) => format!(
                "F* is certified by {name}: it lies between {value} and that plus {}. Curves are measured from the \
                 lower end, so they show F − F* or a little more.",
                rough(self.high - self.value)
            ),
            (false, Some(low)) => format!(
                "No run certifies the optimum. Curves are measured from the smallest F that was seen, {} ({name}); F* \
                 itself may be as low as {}.",
                significant(self.value),
                significant(low)
            ),
            (false, None) => format!(
                "No run has a duality gap. Curves are measured from the smallest F that was seen, {} ({name}); F* \
                 itself may be lower.",
                significant(self.value)
            ),
        }
    }
}

/// F and gap wherever the run was evaluated.
fn points(run: &Run) -> impl Iterator<Item = (f64, Option<f64>)> {
    let all = run.epochs.iter().map(|epoch| &epoch.figures).chain(run.end.iter().map(|end| &end.figures));
    all.filter_map(|figures| Some((figures.objective.filter(|value| value.is_finite())?, figures.gap)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::read;

    fn run(points: &[(f64, Option<f64>)]) -> Run {
        let mut text = "{\"event\":\"start\"}\n".to_owned();
        for (at, (objective, gap)) in points.iter().enumerate() {
            let gap = gap.map_or("null".into(), |gap| gap.to_string());
            text += &format!("{{\"event\":\"epoch\",\"epoch\":{},\"F\":{objective},\"gap\":{gap}}}\n", at + 1);
        }
        read(text.as_bytes(), "run").unwrap().remove(0)
    }

    #[test]
    fn the_best_bound_of_any_run_counts() {
        let (loose, tight) =
            (run(&[(0.5, Some(0.3)), (0.4001, Some(0.2))]), run(&[(0.45, Some(0.1)), (0.4, Some(1e-5))]));
        let optimum = Optimum::of(&[&loose, &tight]).unwrap();
        assert_eq!((optimum.value, optimum.certified, optimum.run), (0.4 - 1e-5, true, 1));
        // Bounds of different runs are bounds of one F*.
        let optimum = Optimum::of(&[&run(&[(0.4, None)]), &run(&[(0.7, Some(0.3001))])]).unwrap();
        assert!(optimum.certified && (optimum.value - 0.3999).abs() < 1e-12 && optimum.run == 1);
    }

    #[test]
    fn without_a_tight_gap_the_smallest_f_has_to_do() {
        let optimum = Optimum::of(&[&run(&[(0.5, Some(0.3))]), &run(&[(0.45, None)])]).unwrap();
        assert_eq!((optimum.value, optimum.low, optimum.certified, optimum.run), (0.45, Some(0.2), false, 1));
        assert!(optimum.words("rda").contains("0.450000 (rda); F* itself may be as low as 0.200000"));
        assert!(Optimum::of(&[&run(&[])]).is_none());
    }

    #[test]
    fn a_gap_of_a_point_that_diverged_proves_nothing() {
        let wild = run(&[(1e17, Some(1e17 - 16.0)), (0.5, Some(-1.0))]);
        assert_eq!(Optimum::of(&[&wild]).unwrap().low, None);
    }
}
