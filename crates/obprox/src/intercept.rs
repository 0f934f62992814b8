//! The intercepts by themselves: their optimum with the weights held.

use crate::Result;
use crate::rows::{Job, Shards};

/// Moves the intercepts of placed rows to their optimum with x held.
pub(crate) fn centre(rows: &mut dyn Shards, intercept: &mut [f64]) -> Result<()> {
    let shift = optimum(intercept.len(), |shift| rows.numbers(&Job::Centre(shift)))?;
    if let Some(shift) = shift {
        rows.shift(&shift)?;
        intercept.iter_mut().zip(&shift).for_each(|(value, shift)| *value += shift);
    }
    Ok(())
}

/// How far the intercepts are from their optimum; `pulls` gives f's slopes along them after a shift, then its curvatures.
///
/// One output: Newton within a bracket, since the derivative of a convex function rises. Several: Newton on the
/// diagonal, halved whenever it does not help. Nothing where the loss has no curvature to give.
pub(crate) fn optimum(outputs: usize, mut pulls: impl FnMut(&[f64]) -> Result<Vec<f64>>) -> Result<Option<Vec<f64>>> {
    let mut shift = vec![0.0; outputs];
    let mut at = pulls(&shift)?;
    if at.is_empty() {
        return Ok(None);
    }
    let size = |pulls: &[f64]| pulls[..outputs].iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    // A mean of terms of this size has no more digits than that.
    let small_enough = 4e-15 * size(&at).max(1.0);
    if outputs == 1 {
        let (mut low, mut high, mut reach) = (f64::NEG_INFINITY, f64::INFINITY, 1.0);
        for _ in 0..200 {
            let (slope, curvature) = (at[0], at[1]);
            if slope.abs() <= small_enough {
                break;
            }
            *if slope > 0.0 { &mut high } else { &mut low } = shift[0];
            let mut next = shift[0] - slope / curvature;
            if !(next > low && next < high) || (next - shift[0]).abs() > reach {
                // Newton left the bracket or would leap: halve the bracket, or reach out while it is open.
                reach *= 4.0;
                next = match (low.is_finite(), high.is_finite()) {
                    (true, true) => 0.5 * (low + high),
                    _ => shift[0] - reach.copysign(slope),
                };
            }
            if next == shift[0] {
                break;
            }
            shift[0] = next;
            at = pulls(&shift)?;
        }
    } else {
        let mut factor = 1.0;
        for _ in 0..60 {
            if size(&at) <= small_enough || factor < 1e-3 {
                break;
            }
            let step = |k: usize| factor * (at[k] / at[outputs + k].max(1e-300)).clamp(-4.0, 4.0);
            let trial: Vec<f64> = (0..outputs).map(|k| shift[k] - step(k)).collect();
            let there = pulls(&trial)?;
            if size(&there) < size(&at) {
                (shift, at) = (trial, there);
            } else {
                factor *= 0.5;
            }
        }
    }
    Ok(shift.iter().all(|value| value.is_finite()).then_some(shift))
}
