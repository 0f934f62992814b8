//! The line search on F that every Newton step goes through.

use crate::Result;
use crate::rows::between;
use crate::tuning::search::FALLS_AS_FORESEEN;

/// A step that was taken.
pub(super) struct Step {
    /// Its share of the way.
    pub size: f64,
    /// Where it led.
    pub x: Vec<f64>,
    /// F there.
    pub objective: f64,
}

/// Of the steps 1, ½, ¼, … from x towards z the longest by which F falls enough of what the model `expected`, or a shorter
/// one that leads lower; `value` gives F after such a share of the way.
pub(super) fn search(
    before: f64,
    expected: f64,
    (x, z): (&[f64], &[f64]),
    mut value: impl FnMut(f64, &[f64]) -> Result<f64>,
) -> Result<Option<Step>> {
    let mut best: Option<Step> = None;
    let mut size = 1.0;
    for _ in 0..30 {
        let trial = between(x, z, size);
        let after = value(size, &trial)?;
        if best.as_ref().is_some_and(|best| after.is_nan() || after >= best.objective) {
            break;
        }
        // A full step whose gain rounding hides is taken: at the end Newton is right and F can no longer tell. F is a
        // sum over the rows, so its last few bits are noise.
        let rounding = if size == 1.0 { 32.0 * f64::EPSILON * before.abs() } else { 0.0 };
        if after <= before + 1e-4 * size * expected + rounding {
            best = Some(Step { size, x: trial, objective: after });
            if size == 1.0 && after <= before + FALLS_AS_FORESEEN * expected + rounding {
                break;
            }
        }
        size *= 0.5;
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a search along (t − at)² from 0 to 1 ends, if that is promised to fall by as much as `expected`.
    fn towards(at: f64, expected: f64) -> Option<Step> {
        search(at * at, expected, (&[0.0, 3.0], &[1.0, 0.0]), |size, x| {
            assert_eq!(x, if size == 1.0 { [1.0, 0.0] } else { [size, 3.0 - 3.0 * size] });
            Ok((size - at) * (size - at))
        })
        .unwrap()
    }

    #[test]
    fn the_longest_step_that_falls_enough_or_a_shorter_one_that_leads_lower() {
        let full = towards(0.9, -1.0).unwrap();
        assert_eq!((full.size, &full.x[..]), (1.0, &[1.0, 0.0][..]));
        // A full step is taken though half of it would lead lower: at the end Newton knows better.
        assert_eq!(towards(0.6, -1e-3).unwrap().size, 1.0);
        // Half a step falls a little, a quarter more, an eighth of it less again.
        let shorter = towards(0.26, -1.0).unwrap();
        assert_eq!((shorter.size, shorter.objective), (0.25, (0.25 - 0.26) * (0.25 - 0.26)));
        assert!(towards(-1.0, -1.0).is_none(), "it rises all the way");
    }

    #[test]
    fn what_is_no_number_is_no_step() {
        assert!(search(1.0, -1.0, (&[0.0], &[1.0]), |_, _| Ok(f64::NAN)).unwrap().is_none());
        let near = search(1.0, -1.0, (&[0.0], &[1.0]), |size, _| Ok(if size > 0.3 { f64::NAN } else { 1.0 - size }));
        assert_eq!(near.unwrap().unwrap().size, 0.25);
    }

    #[test]
    fn a_whole_step_that_disappoints_is_shortened_where_that_leads_lower() {
        // To 1 it falls by 0.1, to ½ by 0.3.
        let size = |expected: f64| towards(0.55, expected).unwrap().size;
        assert_eq!((size(-0.2), size(-1.0)), (1.0, 0.5));
        // Lower at 1 than at ½, however little that is of what was foreseen.
        assert_eq!(towards(0.8, -10.0).unwrap().size, 1.0);
    }
}
