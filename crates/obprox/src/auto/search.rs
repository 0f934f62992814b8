//! The line search on F that every Newton step goes through.

/// A step that was taken.
pub(super) struct Step<T> {
    /// Its share of the way.
    pub size: f64,
    /// Where it led.
    pub x: Vec<f64>,
    /// F there.
    pub objective: f64,
    /// What else was found out there.
    pub found: T,
}

/// The longest of the steps 1, ½, ¼, … from x towards z by which F falls enough of what the model `expected`; `look` gives
/// F after such a share of the way, and what else comes with it.
pub(super) fn search<T>(
    before: f64,
    expected: f64,
    (x, z): (&[f64], &[f64]),
    mut look: impl FnMut(f64, &[f64]) -> (f64, T),
) -> Option<Step<T>> {
    let mut size = 1.0;
    for _ in 0..30 {
        // A whole step lands on z itself, zeros included.
        let between = |(x, z): (&f64, &f64)| if size == 1.0 { *z } else { x + size * (z - x) };
        let trial: Vec<f64> = x.iter().zip(z).map(between).collect();
        let (after, found) = look(size, &trial);
        // A whole step whose gain rounding hides is taken: at the end Newton is right and F can no longer tell. F is a
        // sum over the rows, so its last few bits are noise.
        let rounding = if size == 1.0 { 32.0 * f64::EPSILON * before.abs() } else { 0.0 };
        if after <= before + 1e-4 * size * expected + rounding {
            return Some(Step { size, x: trial, objective: after, found });
        }
        size *= 0.5;
    }
    None
}

/// Margins after a share of a step.
pub(super) fn shifted(margins: &[f64], size: f64, shift: &[f64]) -> Vec<f64> {
    margins.iter().zip(shift).map(|(margin, shift)| margin + size * shift).collect()
}
