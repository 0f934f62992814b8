//! The line search on F that every Newton step goes through.

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
    mut value: impl FnMut(f64, &[f64]) -> f64,
) -> Option<Step> {
    let mut best: Option<Step> = None;
    let mut size = 1.0;
    for _ in 0..30 {
        // A whole step lands on z itself, zeros included.
        let between = |(x, z): (&f64, &f64)| if size == 1.0 { *z } else { x + size * (z - x) };
        let trial: Vec<f64> = x.iter().zip(z).map(between).collect();
        let after = value(size, &trial);
        if best.as_ref().is_some_and(|best| after.is_nan() || after >= best.objective) {
            break;
        }
        // A whole step whose gain rounding hides is taken: at the end Newton is right and F can no longer tell. F is a
        // sum over the rows, so its last few bits are noise.
        let rounding = if size == 1.0 { 32.0 * f64::EPSILON * before.abs() } else { 0.0 };
        if after <= before + 1e-4 * size * expected + rounding {
            best = Some(Step { size, x: trial, objective: after });
            if size == 1.0 {
                break;
            }
        }
        size *= 0.5;
    }
    best
}

/// Margins after a share of a step.
pub(super) fn shifted(margins: &[f64], size: f64, shift: &[f64]) -> Vec<f64> {
    margins.iter().zip(shift).map(|(margin, shift)| margin + size * shift).collect()
}
