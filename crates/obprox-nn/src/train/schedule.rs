//! The step size α as a pure function of how far a run has come.

use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

/// How α moves from its first value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Multiplied by a factor every so many epochs, as in the paper.
    Steps {
        /// The factor.
        factor: f64,
        /// Epochs from one multiplication to the next.
        every: u64,
    },
    /// Up from nothing over the first epochs, then down to nothing along half a cosine.
    Cosine {
        /// Epochs of the way up; a part of one will do.
        warmup: f64,
    },
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Steps that are done since its start.
    pub step: u64,
    /// Steps of an epoch.
    pub steps_per_epoch: u64,
    /// Epochs it has.
    pub epochs: u64,
}

impl Place {
    /// Steps of the whole run.
    pub fn steps(self) -> u64 {
        self.epochs * self.steps_per_epoch
    }
}

impl Schedule {
    /// α of the next step.
    pub fn at(self, first: f64, place: Place) -> f64 {
        match self {
            Self::Steps { factor, every } => {
                let epoch = place.step / place.steps_per_epoch.max(1);
                first * factor.powf((epoch / every) as f64)
            }
            Self::Cosine { warmup } => {
                let (step, all) = (place.step as f64, place.steps() as f64);
                // A short run has no time for a long way up.
                let up = (warmup * place.steps_per_epoch as f64).min(0.5 * all);
                match step < up {
                    true => first * (step + 1.0) / (up + 1.0),
                    false => 0.5 * first * (1.0 + (std::f64::consts::PI * (step - up) / (all - up).max(1.0)).cos()),
                }
            }
        }
    }

    /// Whether α hangs on the number of epochs, so that a run cannot go on for longer than was planned.
    pub fn knows_its_end(self) -> bool {
        matches!(self, Self::Cosine { .. })
    }

    /// Checks the numbers.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Steps { factor, .. } if !(factor > 0.0 && factor <= 1.0) => {
                Err(Error::parameter("decay", format!("{factor} must lie above 0 and be at most 1")))
            }
            Self::Steps { every: 0, .. } => Err(Error::parameter("decay-every", "must be at least 1")),
            Self::Cosine { warmup } if !(warmup.is_finite() && warmup >= 0.0) => {
                Err(Error::parameter("warmup", format!("{warmup} must be a number of epochs, not negative")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alphas(schedule: Schedule, epochs: u64) -> Vec<f64> {
        let place = |step| Place { step, steps_per_epoch: 10, epochs };
        (0..10 * epochs).map(|step| schedule.at(0.1, place(step))).collect()
    }

    #[test]
    fn steps_are_the_papers() {
        let alphas = alphas(Schedule::Steps { factor: 0.1, every: 2 }, 6);
        assert_eq!((alphas[0], alphas[19]), (0.1, 0.1));
        assert!((alphas[20] - 0.01).abs() < 1e-12 && (alphas[59] - 0.001).abs() < 1e-12);
    }

    #[test]
    fn a_cosine_rises_falls_and_ends_near_nothing() {
        let alphas = alphas(Schedule::Cosine { warmup: 0.5 }, 6);
        let peak = alphas.iter().copied().fold(0.0, f64::max);
        assert_eq!((peak, alphas[5]), (0.1, 0.1));
        assert!(alphas[..5].windows(2).all(|pair| pair[0] < pair[1]) && alphas[5..].windows(2).all(|p| p[0] > p[1]));
        assert!(alphas[59] > 0.0 && alphas[59] < 2e-4, "{}", alphas[59]);
        assert!(Schedule::Cosine { warmup: -1.0 }.check().is_err());
    }
}
