//! `obprox paper figures`: the paper's two explanations, drawn from the operators that the methods run on.

use std::path::PathBuf;

use clap::Args;
use obprox::data::{Dataset, Matrix};
use obprox::loss::LossKind;
use obprox::method::{Clock, Orthant, ProxSg, ProxSvrg, Rda, Rule};
use obprox::output::write_whole;
use obprox::penalty::L1;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Switch, Unit};
use obprox::{Lambda, Method, Point, Problem, Run, Settings, Terms};
use obprox_report::chart::{Axis, Chart, Colour, Figure, Series};

use crate::destination::check_directory;
use crate::failure::Failure;
use crate::show;

/// The paper's explanations as pictures: the Orthant step, and the projection regions
#[derive(Args)]
#[command(after_help = "Example:\n  obprox paper figures --out figures")]
pub struct Figures {
    /// Where the pictures go
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

impl Figures {
    pub fn run(self) -> Result<(), Failure> {
        check_directory("--out", &self.out)?;
        let pictures = [("orthant-step.svg", orthant_step()?), ("projection-regions.svg", projection_regions())];
        std::fs::create_dir_all(&self.out).map_err(obprox::Error::writing(&self.out))?;
        for (name, figure) in pictures {
            let path = self.out.join(name);
            write_whole(&path, |out| out.write_all(figure.to_svg().as_bytes()))?;
            if !self.quiet {
                show::print(&format!("{}\n", path.display()))?;
            }
        }
        Ok(())
    }
}

// ---- figure 2: where a trial point must lie to become zero -----------------------------------------------------------

/// α and λ are 1, so that αλ is the unit of both axes; x_k lies at twice that.
const STEP: f64 = 1.0;
const TERM: L1 = L1 { l1: 1.0 };
const FROM: f64 = 2.0;
/// RDA's step t and its γ: its regions grow with √t/γ, here 1.5.
const RDA_STEP: u64 = 9;
const GAMMA: f64 = 2.0;

/// A method's next weight at a trial point.
fn next<R: Rule>(rule: R, gradient: f64, step: u64) -> f64 {
    let mut now = Clock { step_size: STEP, tick: STEP, steps: step - 1, ..Clock::default() };
    let mut coordinate = rule.place(FROM, &now);
    rule.touch(&mut coordinate, FROM, gradient, TERM, &now);
    now.advance();
    rule.value(&coordinate, TERM, &now)
}

/// The trial point of a step is x_k − α∇f; RDA, which forgets x_k, has −(√t/γ)·ḡ instead.
fn after(method: &str, trial: f64) -> f64 {
    let gradient = (FROM - trial) / STEP;
    match method {
        "Prox-SG" => next(ProxSg, gradient, 1),
        "Prox-SVRG" => next(ProxSvrg, gradient, 1),
        "Orthant" => next(Orthant, gradient, 1),
        _ => {
            let t = RDA_STEP as f64;
            next(Rda { gamma: GAMMA }, t * -trial * GAMMA / t.sqrt(), RDA_STEP)
        }
    }
}

fn projection_regions() -> Figure {
    let trials: Vec<f64> = (-800..=800).map(|hundredth| f64::from(hundredth) / 200.0).collect();
    let panels = ["Prox-SG", "Prox-SVRG", "RDA", "Orthant"].map(|method| {
        let zeros: Vec<f64> = trials.iter().copied().filter(|&trial| after(method, trial) == 0.0).collect();
        let (low, high) = (zeros[0], zeros[zeros.len() - 1]);
        let region = match low == trials[0] {
            true => format!("(−∞, {high}]"),
            false => format!("[{}, {high}]", low.to_string().replace('-', "−")),
        };
        let curve = trials.iter().map(|&trial| (trial, after(method, trial)));
        let (x, y) = (Axis::linear("trial point in units of αλ"), Axis::linear("next iterate").range(-3.0, 3.0));
        let name = if method == "RDA" {
            format!("RDA at √t/γ = {}", RDA_STEP.isqrt() as f64 / GAMMA)
        } else {
            method.into()
        };
        Chart::new(format!("{name}: zero on {region}"), x, y)
            .band(low, high, "set to zero")
            .series(Series::line("the trial point itself", [(-4.0, -4.0), (4.0, 4.0)]).coloured(Colour::Muted).dashed())
            .series(Series::line("next iterate", curve).coloured(Colour::Palette(0)))
            .mark(FROM, "x_k")
            .into()
    });
    Figure::new(panels).columns(2).size(480, 340)
}

// ---- figure 1: the Orthant step ---------------------------------------------------------------------------------------

/// f(x) = ½(x − c)ᵀH(x − c) with H = RᵀR.
const ROOT: [[f64; 3]; 3] = [[1.0, 0.45, 0.2], [0.0, 0.9, 0.1], [0.0, 0.0, 0.7]];
const CENTRE: [f64; 3] = [1.9, -0.35, 0.3];
const LAMBDA: f64 = 0.25;
const ALPHA: f64 = 1.3;
/// x_k: the face is x₁ ≥ 0, x₂ ≥ 0, x₃ = 0.
const START: [f64; 3] = [0.6, 0.9, 0.0];

/// H in the coordinates of the rows.
fn hessian() -> [[f64; 3]; 3] {
    let entry = |i: usize, j: usize| ROOT.iter().map(|row| row[i] * row[j]).sum();
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| entry(i, j)))
}

/// x_k − α∇F̃(x_k), before the projection.
fn trial() -> [f64; 3] {
    let hessian = hessian();
    [0, 1, 2].map(|i| {
        let slope: f64 = (0..3).map(|j| hessian[i][j] * (START[j] - CENTRE[j])).sum();
        let sign = if START[i] == 0.0 { 0.0 } else { START[i].signum() };
        START[i] - ALPHA * (slope + LAMBDA * sign)
    })
}

/// The same problem as the library takes it: three rows of weight 1/3.
fn problem() -> Result<Problem, Failure> {
    let rows = ROOT.map(|row| row.map(|value| 3f64.sqrt() * value));
    let targets = rows.map(|row| row.iter().zip(CENTRE).map(|(value, centre)| value * centre).sum());
    let data = Dataset::new(Matrix::from_dense(3, 3, rows.as_flattened()), targets.to_vec());
    let terms = Terms { lambda: Lambda::Value(LAMBDA), intercept: false, ..Terms::default() };
    Ok(Problem::new(data, LossKind::Squared.build(1), &terms)?)
}

/// One Orthant step of the library, and the optimum.
fn taken() -> Result<([f64; 3], [f64; 3]), Failure> {
    let problem = problem()?;
    let start = Point { weights: START.to_vec(), ..Point::zero(&problem) };
    let switch = Switch::Fixed { prox: 0, orthant: None, unit: Unit::Epochs };
    let settings = Settings {
        epochs: 1,
        batch: Batch::All,
        step: StepSize::Value(ALPHA),
        schedule: Schedule::Constant,
        ..Settings::with_method(Method::ObproxSg { switch })
    };
    let step = Run::new(&problem, settings).start(&start).fit()?.point.weights;
    let optimum = problem.fit()?.point.weights;
    let three = |weights: Vec<f64>| [0, 1, 2].map(|at| weights[at]);
    Ok((three(step), three(optimum)))
}

fn orthant_step() -> Result<Figure, Failure> {
    let (next, optimum) = taken()?;
    let trial = trial();
    let view = |title: &str, up: usize| {
        let flat = |point: [f64; 3]| (point[0], point[up]);
        let (x, y) = (Axis::linear("[x]₁").range(-0.2, 2.4), Axis::linear(format!("[x]{}", ["₁", "₂", "₃"][up])));
        let mut chart = Chart::new(title, x, y.range(-0.7, 1.3))
            .series(Series::points("x_k", [flat(START)]).coloured(Colour::Palette(5)))
            .series(Series::points("trial point", [flat(trial)]).coloured(Colour::Palette(1)))
            .series(Series::points("next iterate", [flat(next)]).coloured(Colour::Palette(0)))
            .series(Series::points("x*", [flat(optimum)]).coloured(Colour::Palette(2)))
            .series(Series::line("", [flat(START), flat(trial)]).coloured(Colour::Palette(1)))
            .series(Series::line("", [flat(trial), flat(next)]).coloured(Colour::Palette(0)).dashed());
        chart = match up {
            1 => chart.series(Series::area("orthant face", [(0.0, 0.0), (2.4, 0.0), (2.4, 1.3), (0.0, 1.3)])),
            _ => chart.series(Series::line("orthant face", [(0.0, 0.0), (2.4, 0.0)])),
        };
        for level in [0.05, 0.2, 0.45, 0.8, 1.25].iter().filter(|_| up == 1) {
            chart = chart.series(Series::line("", level_curve(*level)).coloured(Colour::Muted).thin());
        }
        chart.into()
    };
    let panels = [view("The Orthant step from above", 1), view("and from the front: zeros stay zero", 2)];
    Ok(Figure::new(panels).columns(2).size(480, 400))
}

/// Where F̃ lies so far above its least value on the plane x₃ = 0.
fn level_curve(above: f64) -> Vec<(f64, f64)> {
    let h = hessian();
    let (a, b, d) = (h[0][0], h[0][1], h[1][1]);
    // H₂(x − m) = 0 with the pull of x₃ = 0 and of λ: H₂ m = H₂ c + h₃c₃ − λ.
    let right = [0, 1].map(|i| h[i][0] * CENTRE[0] + h[i][1] * CENTRE[1] + h[i][2] * CENTRE[2] - LAMBDA);
    let determinant = a * d - b * b;
    let middle = [(d * right[0] - b * right[1]) / determinant, (a * right[1] - b * right[0]) / determinant];
    // ½(x − m)ᵀLLᵀ(x − m) = above, with L the Cholesky factor.
    let (l11, l21) = (a.sqrt(), b / a.sqrt());
    let l22 = (d - l21 * l21).sqrt();
    let radius = (2.0 * above).sqrt();
    let point = |degrees: i32| {
        let (sine, cosine) = f64::from(degrees).to_radians().sin_cos();
        let second = radius * sine / l22;
        let first = (radius * cosine - l21 * second) / l11;
        (middle[0] + first, middle[1] + second)
    };
    (0..=360).step_by(3).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_the_papers() {
        for method in ["Prox-SG", "Prox-SVRG"] {
            assert!(after(method, -1.0) == 0.0 && after(method, 1.0) == 0.0);
            assert!(after(method, 1.01) > 0.0 && after(method, -1.01) < 0.0);
        }
        // (−∞, αλ], a superset of theirs.
        assert!(after("Orthant", 1.0) == 0.0 && after("Orthant", -1000.0) == 0.0 && after("Orthant", 1.01) > 0.0);
        let width = (RDA_STEP as f64).sqrt() / GAMMA;
        assert!(
            after("RDA", width - 1e-9) == 0.0 && after("RDA", width + 1e-9) > 0.0 && after("RDA", -width - 1e-9) < 0.0
        );
    }

    #[test]
    fn the_step_of_the_library_is_the_projected_trial_point() {
        let (next, optimum) = taken().unwrap();
        let trial = trial();
        // The picture has something to show: one weight moves, one is projected, one is zero and stays.
        assert!(trial[0] > 0.0 && trial[1] < 0.0 && trial[2] != 0.0, "{trial:?}");
        assert!((next[0] - trial[0]).abs() < 1e-12 && next[1] == 0.0 && next[2] == 0.0, "{next:?} {trial:?}");
        // The face has the optimum in it, as the step assumes.
        assert!(optimum[0] > 0.0 && optimum[1] >= 0.0 && optimum[2] == 0.0, "{optimum:?}");
    }

    #[test]
    fn level_curves_are_level() {
        let h = hessian();
        let value = |(x, y): (f64, f64)| {
            let from = [x - CENTRE[0], y - CENTRE[1], -CENTRE[2]];
            let quadratic: f64 = (0..3).map(|i| (0..3).map(|j| from[i] * h[i][j] * from[j]).sum::<f64>()).sum();
            0.5 * quadratic + LAMBDA * (x + y)
        };
        let (inner, outer) = (level_curve(0.2), level_curve(0.45));
        let spread = |curve: &[(f64, f64)]| {
            curve.iter().map(|&point| (value(point) - value(curve[0])).abs()).fold(0.0, f64::max)
        };
        assert!(spread(&inner) < 1e-12 && spread(&outer) < 1e-12);
        assert!((value(outer[0]) - value(inner[0]) - 0.25).abs() < 1e-12);
    }
}
