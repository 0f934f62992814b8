//! The line search on F that every Newton step goes through.

/// A step that was taken.
pub(super) struct Step {
    /// Its share of the way.
    pub size: f64,
    /// Where it led.
    pub x: Vec<f64>,
    /// The margins there.
    pub margins: Vec<f64>,
    /// F there, as `objective` has it.
    pub objective: f64,
}

/// The longest of the steps 1, ½, ¼, … from x towards z by which F falls enough of what the model `expected`; `shift` is
/// what the whole step adds to the margins.
pub(super) fn search(
    before: f64,
    expected: f64,
    (x, z): (&[f64], &[f64]),
    (margins, shift): (&[f64], &[f64]),
    objective: impl Fn(&[f64], &[f64]) -> f64,
) -> Option<Step> {
    let mut size = 1.0;
    for _ in 0..30 {
        // A whole step lands on z itself, zeros included.
        let between = |(x, z): (&f64, &f64)| if size == 1.0 { *z } else { x + size * (z - x) };
        let trial: Vec<f64> = x.iter().zip(z).map(between).collect();
        let moved: Vec<f64> = margins.iter().zip(shift).map(|(margin, shift)| margin + size * shift).collect();
        let after = objective(&moved, &trial);
        // A whole step whose gain rounding hides is taken: at the end Newton is right and F can no longer tell. F is a
        // sum over the rows, so its last few bits are noise.
        let rounding = if size == 1.0 { 32.0 * f64::EPSILON * before.abs() } else { 0.0 };
        if after <= before + 1e-4 * size * expected + rounding {
            return Some(Step { size, x: trial, margins: moved, objective: after });
        }
        size *= 0.5;
    }
    None
}
