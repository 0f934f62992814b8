//! Theorem 1 (ii): on a µ-strongly convex f with constant α < min(1/2µ, 1/L),
//! E[F(x_k) − F*] ≤ (1 − 2αµ)^κ (F(x_0) − F*) + (LC²/2µ)·α, κ being the Prox-SG steps among the first k. So F − F* falls
//! linearly, and ends at a floor in proportion to α.
//!
//! The problem is least squares on full normal rows, where µ and L are the extreme eigenvalues of the second moments.
//! OBProx-SG takes Prox-SG and Orthant steps in turn, one of each, so κ = k/2.

use obprox::data::Task;
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Switch, Unit};
use obprox::{Lambda, Method, Problem, Settings, Terms, certify};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::paper::attempt::attempt;
use crate::paper::experiments::Rate;
use crate::show::{digits, grid, markdown, rough, trimmed};

/// What came out.
#[derive(Serialize, Deserialize)]
pub struct Measured {
    /// µ.
    pub convexity: f64,
    /// L.
    pub smoothness: f64,
    pub steps_an_epoch: u64,
    pub curves: Vec<Curve>,
}

/// The mean over the seeds at one α.
#[derive(Serialize, Deserialize)]
pub struct Curve {
    /// α.
    pub step: f64,
    /// F − F* after each epoch; the first is at x = 0.
    pub excess: Vec<f64>,
    /// The mean of the second half of them.
    pub floor: f64,
    /// What ln(F − F*) loses a step while it is well above the floor.
    pub slope: f64,
}

impl Rate {
    /// Runs everything; nothing where Ctrl-C came first.
    pub fn run(&self, quiet: bool) -> Result<Option<Measured>, Failure> {
        let data = self.planted.plant(Task::Regression, 0)?.dataset;
        let terms = Terms { lambda: Lambda::OfMax(self.lambda), intercept: false, ..Terms::default() };
        let problem = Problem::new(data, LossKind::Squared.build(1), &terms)?;
        let (convexity, smoothness) = extreme_eigenvalues(&second_moments(&problem), problem.n_features());
        let optimum = Settings { tolerance: 1e-12, ..Settings::default() };
        let Some(best) = attempt(&problem, optimum, "auto".into(), quiet)? else { return Ok(None) };
        let best = best.certificate.objective;
        let origin = certify(&problem, &obprox::Point::zero(&problem))?.objective - best;
        let steps_an_epoch = self.planted.rows.div_ceil(self.batch) as u64;
        let mut curves = Vec::new();
        for &step in &self.steps {
            let mut sum = vec![0.0; self.epochs as usize];
            for seed in 0..self.seeds {
                let name = format!("α = {step:<7} {}/{}", seed + 1, self.seeds);
                let Some(fit) = attempt(&problem, self.settings(step, seed), name, quiet)? else { return Ok(None) };
                let figures = fit.trace.iter().filter_map(|record| record.certificate.as_ref());
                sum.iter_mut().zip(figures).for_each(|(sum, figures)| *sum += figures.objective - best);
            }
            let means = sum.into_iter().map(|sum| sum / self.seeds as f64);
            curves.push(Curve::new(step, [origin].into_iter().chain(means).collect(), steps_an_epoch));
        }
        Ok(Some(Measured { convexity, smoothness, steps_an_epoch, curves }))
    }

    fn settings(&self, step: f64, seed: u64) -> Settings {
        let switch = Switch::Fixed { prox: 1, orthant: Some(1), unit: Unit::Iterations };
        Settings {
            epochs: self.epochs,
            batch: Batch::Rows(self.batch),
            step: StepSize::Value(step),
            schedule: Schedule::Constant,
            tolerance: 0.0,
            seed,
            ..Settings::with_method(Method::ObproxSg { switch })
        }
    }
}

impl Curve {
    fn new(step: f64, excess: Vec<f64>, steps_an_epoch: u64) -> Self {
        let settled = &excess[excess.len() / 2..];
        let floor = settled.iter().sum::<f64>() / settled.len() as f64;
        // Down to twenty times the floor, less the floor: that is where the linear term rules.
        let falling = excess.iter().take_while(|&&value| value > 20.0 * floor);
        let points =
            falling.zip(0..).map(|(value, epoch)| (f64::from(epoch) * steps_an_epoch as f64, (value - floor).ln()));
        let slope = -fitted_slope(&points.collect::<Vec<_>>());
        Self { step, excess, floor, slope }
    }
}

impl Measured {
    /// The power of α that the floors go with: 1 where they are in proportion.
    pub fn floor_power(&self) -> f64 {
        fitted_slope(&self.curves.iter().map(|curve| (curve.step.ln(), curve.floor.ln())).collect::<Vec<_>>())
    }

    /// A line for each α.
    pub fn table(&self) -> String {
        let header = ["α", "slope a step", "the theorem's αµ", "slope/αµ", "floor", "floor/α"];
        let rows = self.curves.iter().map(|curve| {
            let promised = curve.step * self.convexity;
            let Curve { step, floor, slope, .. } = curve;
            [
                trimmed(*step),
                digits(*slope, 3),
                digits(promised, 3),
                rough(slope / promised),
                digits(*floor, 3),
                digits(floor / step, 3),
            ]
            .into()
        });
        format!(
            "µ = {}, L = {}; floor ∝ α^{:.2}\n\n{}",
            digits(self.convexity, 3),
            digits(self.smoothness, 3),
            self.floor_power(),
            markdown(grid(header.map(str::to_owned).to_vec(), rows.collect()))
        )
    }
}

/// The least-squares slope through points; not a number with fewer than two.
fn fitted_slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0 / count, sum.1 + point.1 / count));
    let across: f64 = points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
    points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / across
}

/// (1/N) Σ dᵢdᵢᵀ: the Hessian of least squares.
fn second_moments(problem: &Problem) -> Vec<f64> {
    let (n, rows) = (problem.n_features(), problem.n_rows());
    let mut moments = vec![0.0; n * n];
    for row in 0..rows {
        let mut values = vec![0.0; n];
        problem.matrix().for_each(row, |column, value| values[column] = value);
        for (i, left) in values.iter().enumerate() {
            values.iter().enumerate().for_each(|(j, right)| moments[i * n + j] += left * right / rows as f64);
        }
    }
    moments
}

/// The least and the largest eigenvalue of a symmetric matrix without negative ones.
fn extreme_eigenvalues(matrix: &[f64], n: usize) -> (f64, f64) {
    let largest = power_iteration(matrix, n);
    // What was the least is the largest of what is left to the largest.
    let mirrored: Vec<f64> =
        matrix.iter().enumerate().map(|(at, value)| if at / n == at % n { largest - value } else { -value }).collect();
    (largest - power_iteration(&mirrored, n), largest)
}

fn power_iteration(matrix: &[f64], n: usize) -> f64 {
    let mut vector: Vec<f64> = (0..n).map(|at| 1.0 + (at as f64 * 0.7).sin()).collect();
    let mut length = 0.0;
    for _ in 0..10_000 {
        let image = matrix.chunks_exact(n).map(|row| row.iter().zip(&vector).map(|(a, b)| a * b).sum::<f64>());
        let image: Vec<f64> = image.collect();
        length = image.iter().map(|value| value * value).sum::<f64>().sqrt();
        if length == 0.0 {
            break;
        }
        vector = image.into_iter().map(|value| value / length).collect();
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::experiments::{Kind, PlantedRecipe};

    #[test]
    fn eigenvalues_of_a_known_matrix() {
        // Eigenvalues 1, 2, 4 in a turned basis.
        let matrix = [2.5, 1.5, 0.0, 1.5, 2.5, 0.0, 0.0, 0.0, 2.0];
        let (least, largest) = extreme_eigenvalues(&matrix, 3);
        assert!((least - 1.0).abs() < 1e-9 && (largest - 4.0).abs() < 1e-9, "{least} {largest}");
    }

    #[test]
    fn slope_and_floor_of_a_known_curve() {
        let excess = (0..400).map(|epoch| 3.0 * (-0.1 * f64::from(epoch)).exp() + 1e-4).collect();
        let curve = Curve::new(0.1, excess, 10);
        assert!(
            (curve.floor - 1e-4).abs() < 1e-8 && (curve.slope - 0.01).abs() < 1e-6,
            "{} {}",
            curve.floor,
            curve.slope
        );
        assert!((fitted_slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn the_theorem_holds_on_a_small_problem() {
        let rate = Rate {
            planted: PlantedRecipe {
                rows: 200,
                columns: 8,
                per_row: 8.0,
                support: 4,
                noise: 1.0,
                skew: 0.0,
                entries: Kind::Normal,
            },
            lambda: 0.05,
            steps: vec![0.04, 0.01],
            batch: 20,
            epochs: 120,
            seeds: 3,
        };
        let measured = rate.run(true).unwrap().unwrap();
        assert!(0.0 < measured.convexity && measured.convexity <= measured.smoothness);
        for curve in &measured.curves {
            assert_eq!(curve.excess.len(), 121);
            assert!(curve.slope >= curve.step * measured.convexity, "{} {}", curve.step, curve.slope);
        }
        assert!(measured.curves[1].floor < 0.5 * measured.curves[0].floor);
        assert!((0.5..1.5).contains(&measured.floor_power()), "{}", measured.floor_power());
    }
}
