//! A loss, a method, a solver and an observer of one's own, without touching the crate: what a user of the library would
//! write.

mod common;

use std::io::{self, Read, Write};
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use common::random::Recipe;
use common::run;
use obprox::data::{Dataset, Synth, Task as Planted};
use obprox::loss::{LossKind, ScalarLoss, Task};
use obprox::method::{Clock, Rule};
use obprox::penalty::{Block, Blocks, Penalty, Term};
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Phase, Switch, Unit};
use obprox::{
    Control, Ended, EpochRecord, Fit, Lambda, Method, MethodKind, Observer, Point, Problem, Progress, Run, Settings,
    Solver, Standing, Start, Status, Terms,
};

/// The pinball loss rounded off over the width 2h: ℓ(m; y) bends from slope τ − 1 to slope τ as m crosses y, so that
/// the model predicts a quantile instead of the mean.
#[derive(Debug)]
struct Quantile {
    tau: f64,
    half_width: f64,
}

impl ScalarLoss for Quantile {
    fn name(&self) -> &str {
        "quantile"
    }

    fn task(&self) -> Task {
        Task::Regression
    }

    fn value(&self, margin: f64, target: f64) -> f64 {
        let (r, h) = (margin - target, self.half_width);
        let rounded = if r.abs() <= h { (r + h).powi(2) / (4.0 * h) } else { r.max(0.0) };
        rounded - self.tau * r
    }

    fn derivative(&self, margin: f64, target: f64) -> f64 {
        let (r, h) = (margin - target, self.half_width);
        ((r + h) / (2.0 * h)).clamp(0.0, 1.0) - self.tau
    }

    fn curvature(&self, margin: f64, target: f64) -> Option<f64> {
        Some(if (margin - target).abs() <= self.half_width { 0.5 / self.half_width } else { 0.0 })
    }

    fn smoothness(&self) -> Option<f64> {
        Some(0.5 / self.half_width)
    }

    /// u + τ = p ∈ [0, 1]: ℓ*(u) = u·y + h·p² − h·p.
    fn conjugate(&self, dual: f64, target: f64) -> Option<f64> {
        let p = dual + self.tau;
        let inside = (-1e-12..=1.0 + 1e-12).contains(&p);
        Some(if inside { dual * target + self.half_width * p * (p - 1.0) } else { f64::INFINITY })
    }

    fn parameter(&self) -> Option<f64> {
        Some(self.tau)
    }
}

fn dataset() -> Dataset {
    let synth = Synth { rows: 300, cols: 30, task: Planted::Regression, noise: 0.5, ..Synth::default() };
    synth.generate().unwrap().dataset
}

fn quantile(tau: f64, terms: &Terms) -> Problem {
    Problem::new(dataset(), Arc::new(Quantile { tau, half_width: 0.2 }), terms).unwrap()
}

#[test]
fn a_loss_of_ones_own_is_solved_certified_and_saved() {
    let data = dataset();
    for tau in [0.2, 0.5, 0.9] {
        let problem = quantile(tau, &Terms { lambda: Lambda::Value(0.005), ..Terms::default() });
        let settings = Settings {
            epochs: 2000,
            batch: Batch::Rows(30),
            step: StepSize::Auto,
            tolerance: 1e-4,
            ..Settings::with_method(MethodKind::ProxSvrg)
        };
        let fit = run(&problem, &settings);
        assert_eq!(fit.status, Status::Converged, "{:?}", fit.certificate);
        // At the optimum the intercept puts the share τ of the targets below the prediction, up to the rounding off.
        let predicted = fit.model.predict(&data.matrix);
        let below = predicted.iter().zip(&data.targets).filter(|(p, y)| y < p).count() as f64 / predicted.len() as f64;
        assert!((below - tau).abs() < 0.06, "{below} of the targets lie below the {tau}-quantile");

        let saved = obprox::Model::from_json(&fit.model.to_json(), "model").unwrap();
        assert_eq!(saved, fit.model);
        assert_eq!((saved.loss.as_str(), saved.loss_parameter), ("quantile", Some(tau)));
        let figures = saved.evaluate(&data).unwrap();
        assert!(figures.score() > 0.5, "{figures:?}");
    }
}

/// λ·x for what is positive and λ·c·|x| for what is not: a weight against what one expects costs more.
#[derive(Debug)]
struct Lopsided {
    c: f64,
}

impl Penalty for Lopsided {
    fn name(&self) -> &str {
        "lopsided"
    }

    fn blocks(&self, features: usize, outputs: usize) -> obprox::Result<Blocks> {
        Ok(Blocks::single(features, outputs))
    }

    fn value(&self, block: Block, x: &[f64]) -> f64 {
        block.lambda * x[0].max(-self.c * x[0])
    }

    fn prox(&self, block: Block, step: f64, z: &mut [f64]) {
        let t = step * block.lambda;
        z[0] = if z[0] > t {
            z[0] - t
        } else if z[0] < -self.c * t {
            z[0] + self.c * t
        } else {
            0.0
        };
    }

    fn violation(&self, block: Block, x: &[f64], gradient: &[f64]) -> f64 {
        let (g, up, down) = (gradient[0], block.lambda, self.c * block.lambda);
        match x[0] {
            0.0 => (-g - up).max(g - down).max(0.0),
            x if x > 0.0 => (g + up).abs(),
            _ => (g - down).abs(),
        }
    }

    fn conjugate(&self, block: Block, dual: &[f64]) -> f64 {
        let inside = dual[0] <= block.lambda && dual[0] >= -self.c * block.lambda;
        if inside { 0.0 } else { f64::INFINITY }
    }
}

#[test]
fn a_penalty_of_ones_own_is_solved_certified_and_saved() {
    let lambda = Lambda::Value(0.02);
    let of = |c: f64| {
        let terms = Terms { lambda, penalty: Some(Arc::new(Lopsided { c })), ..Terms::default() };
        Problem::new(dataset(), LossKind::Squared.build(1), &terms).unwrap()
    };
    // The same both ways, it is the l1 penalty.
    let l1 = Problem::new(dataset(), LossKind::Squared.build(1), &Terms { lambda, ..Terms::default() }).unwrap();
    assert!((of(1.0).lambda_max() - l1.lambda_max()).abs() <= 1e-12 * l1.lambda_max());
    let (even, known) = (of(1.0).fit().unwrap(), l1.fit().unwrap());
    assert_eq!((even.status, even.certificate.nnz), (Status::Converged, known.certificate.nnz));
    assert!((even.certificate.objective - known.certificate.objective).abs() < 1e-6);

    let problem = of(30.0);
    let auto = problem.fit().unwrap();
    assert_eq!(auto.status, Status::Converged, "{:?}", auto.certificate);
    let (up, down) = (|x: &&f64| **x > 0.0, |x: &&f64| **x < 0.0);
    let count =
        |fit: &Fit| [fit.point.weights.iter().filter(up).count(), fit.point.weights.iter().filter(down).count()];
    assert!(count(&auto)[1] < count(&known)[1] && count(&auto)[0] > 0, "{:?}", count(&auto));
    for kind in [MethodKind::ProxSg, MethodKind::ObproxSg, MethodKind::ProxSvrg] {
        let settings = Settings { epochs: 400, batch: Batch::All, step: StepSize::Auto, ..Settings::with_method(kind) };
        let fit = run(&problem, &settings);
        let off = fit.certificate.objective - auto.certificate.objective;
        assert!((-1e-9..1e-3).contains(&off), "{kind:?}: {off}");
    }
    let saved = obprox::Model::from_json(&auto.model.to_json(), "model").unwrap();
    assert_eq!((saved.penalty.as_deref(), &saved), (Some("lopsided"), &auto.model));
    // A rule knows single coordinates of l1 and the elastic net.
    let refused = Run::new(&problem, Settings::default()).rule("adagrad", AdaGrad::default(), None).fit().unwrap_err();
    assert!(refused.to_string().contains("the lopsided penalty is not"), "{refused}");
}

/// Prox-SG with AdaGrad's step sizes: α over the root of the sum of the coordinate's squared gradients. A coordinate
/// without gradient in the batch shrinks with its own step size, so missed steps are one longer one.
#[derive(Clone, Copy, Debug, Default)]
struct AdaGrad {
    hold: bool,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Adapted {
    x: f64,
    squares: f64,
    as_of: f64,
}

impl Rule for AdaGrad {
    type Coord = Adapted;

    fn value<T: Term>(&self, coord: &Adapted, term: T, now: &Clock) -> f64 {
        let missed = now.elapsed - coord.as_of;
        if missed > 0.0 { term.prox(coord.x, missed / (1.0 + coord.squares.sqrt())) } else { coord.x }
    }

    fn touch<T: Term>(&self, coord: &mut Adapted, x: f64, gradient: f64, term: T, now: &Clock) {
        let squares = coord.squares + gradient * gradient;
        let step = now.step_size / (1.0 + squares.sqrt());
        let x = if self.hold && x == 0.0 { 0.0 } else { term.prox(x - step * gradient, step) };
        *coord = Adapted { x, squares, as_of: now.elapsed + now.tick };
    }

    fn place(&self, x: f64, now: &Clock) -> Adapted {
        Adapted { x, squares: 0.0, as_of: now.elapsed }
    }

    fn is_sound(&self, coord: &Adapted, now: &Clock) -> bool {
        coord.x.is_finite() && coord.squares >= 0.0 && coord.as_of <= now.elapsed
    }

    fn enter(&mut self, phase: Phase) {
        self.hold = phase == Phase::Orthant;
    }
}

#[test]
fn a_rule_of_ones_own_runs_in_the_one_loop() {
    let (problem, _) = Recipe::default().build();
    let optimum = problem.fit().unwrap().certificate.objective;
    let settings = Settings { epochs: 2000, batch: Batch::All, tolerance: 0.0, ..Settings::default() };
    let settings = Settings { step: StepSize::Value(10.0), schedule: Schedule::Constant, ..settings };
    let run =
        |epochs| Run::new(&problem, Settings { epochs, ..settings.clone() }).rule("adagrad", AdaGrad::default(), None);
    let whole = run(2000).fit().unwrap();
    assert_eq!((whole.status, whole.epochs), (Status::MaxEpochs, 2000));
    assert!(whole.certificate.objective <= optimum * (1.0 + 1e-5), "{:?} {optimum}", whole.certificate);

    // Checkpoints, by its name.
    let directory = tempfile::tempdir().unwrap();
    run(7).checkpoint(directory.path(), false).fit().unwrap();
    let resumed = run(20).checkpoint(directory.path(), true).fit().unwrap();
    assert_eq!((resumed.resumed_epochs, resumed.point), (7, run(20).fit().unwrap().point));
    let named = |name| Run::new(&problem, settings.clone()).rule(name, AdaGrad::default(), None);
    let other = named("adam").checkpoint(directory.path(), true).fit().unwrap_err();
    assert!(other.to_string().contains("other settings"), "{other}");

    // Two kinds of steps, and when one gives way to the other.
    let switch = Switch::Fixed { prox: 3, orthant: None, unit: Unit::Epochs };
    let switched =
        Run::new(&problem, Settings { epochs: 6, ..settings }).rule("held", AdaGrad::default(), Some(switch));
    let phases: Vec<Phase> = switched.fit().unwrap().trace.iter().map(|record| record.phase).collect();
    assert_eq!(phases, [[Phase::Prox; 3], [Phase::Orthant; 3]].concat());
}

/// Cyclic coordinate descent for least squares without an intercept: x_j ← S(x_j − ∂f/∂x_j / L_j, λ / L_j).
struct CoordinateDescent<'a> {
    problem: &'a Problem,
    x: Vec<f64>,
    residuals: Vec<f64>,
}

impl<'a> CoordinateDescent<'a> {
    fn new(problem: &'a Problem) -> Self {
        let residuals = problem.targets().iter().map(|target| -target).collect();
        Self { problem, x: vec![0.0; problem.n_features()], residuals }
    }
}

impl Solver for CoordinateDescent<'_> {
    fn epoch(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> obprox::Result<Ended> {
        let (problem, matrix) = (self.problem, self.problem.matrix());
        let (n_rows, size) = (problem.n_rows() as f64, self.x.len() as u64);
        for at in 0..self.x.len() {
            let column: Vec<f64> = (0..matrix.n_rows())
                .map(|row| {
                    let mut cell = 0.0;
                    matrix.for_each(row, |column, value| cell += if column == at { value } else { 0.0 });
                    cell
                })
                .collect();
            let curvature = column.iter().map(|value| value * value).sum::<f64>() / n_rows;
            let slope =
                column.iter().zip(&self.residuals).map(|(value, residual)| value * residual).sum::<f64>() / n_rows;
            let trial = self.x[at] - slope / curvature;
            let moved = trial.signum() * (trial.abs() - problem.lambda() / curvature).max(0.0) - self.x[at];
            self.x[at] += moved;
            self.residuals.iter_mut().zip(&column).for_each(|(residual, value)| *residual += moved * value);
            let step = at as u64 + 1;
            let progress = Progress { epoch: 1, step, steps: size, phase: Phase::Prox, stage: None };
            if tell(progress) == Control::Stop {
                return Ok(Ended::Stopped);
            }
        }
        Ok(Ended::Epoch)
    }

    fn point(&self) -> Point {
        Point { weights: self.x.clone(), intercept: vec![0.0] }
    }

    fn batch_rows(&self) -> usize {
        self.problem.n_rows()
    }

    fn standing(&self) -> Standing {
        Standing { iterations: 0, phase: Phase::Prox, step_size: 1.0, round: None }
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        self.x.iter().chain(&self.residuals).try_for_each(|value| out.write_all(&value.to_le_bytes()))
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.x.iter_mut().chain(&mut self.residuals).try_for_each(|value| {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes)?;
            *value = f64::from_le_bytes(bytes);
            Ok(())
        })
    }
}

#[test]
fn a_solver_of_ones_own_runs_in_the_one_loop() {
    let terms = Terms { lambda: Lambda::OfMax(0.1), intercept: false, ..Terms::default() };
    let problem = Problem::new(dataset(), LossKind::Squared.build(1), &terms).unwrap();
    fn run(problem: &Problem) -> Run<'_> {
        let settings = Settings { epochs: 500, tolerance: 1e-9, ..Settings::default() };
        Run::new(problem, settings).solver("coordinate descent", CoordinateDescent::new(problem))
    }
    let mut diary = Diary::default();
    let fit = run(&problem).observe(&mut diary).fit().unwrap();
    assert_eq!(fit.status, Status::Converged);
    assert!(diary.lines.iter().any(|line| line == "step 30/30 of 1"), "{:?}", diary.lines);
    let certified = problem.fit().unwrap();
    assert!(fit.certificate.objective <= certified.certificate.objective * (1.0 + 1e-8));

    let directory = tempfile::tempdir().unwrap();
    let mut brief = Diary { enough: Some(3), ..Diary::default() };
    let stopped = run(&problem).observe(&mut brief);
    assert_eq!(stopped.checkpoint(directory.path(), false).fit().unwrap().epochs, 3);
    let resumed = run(&problem).checkpoint(directory.path(), true).fit().unwrap();
    assert_eq!((resumed.point, resumed.epochs, resumed.resumed_epochs), (fit.point, fit.epochs, 3));
}

#[test]
fn a_name_alone_is_no_method() {
    let (problem, _) = Recipe::default().build();
    let settings = Settings::with_method(Method::Own { name: "adagrad".into(), switch: None });
    let said = Run::new(&problem, settings).fit().unwrap_err().to_string();
    assert!(said.contains("adagrad"), "{said}");
}

/// Writes down what it hears; ends the run once it has heard enough.
#[derive(Default)]
struct Diary {
    lines: Vec<String>,
    enough: Option<u64>,
}

impl Observer for Diary {
    fn start(&mut self, start: &Start) {
        self.lines.push(format!("start: {} rows a batch, {} before", start.batch_rows, start.resumed.len()));
    }

    fn step(&mut self, progress: &Progress) -> Control {
        let Progress { epoch, step, steps, .. } = progress;
        self.lines.push(format!("step {step}/{steps} of {epoch}"));
        Control::Continue
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        self.lines.push(format!("epoch {} after {}", record.epoch, record.iterations));
        if self.enough.is_some_and(|enough| record.epoch >= enough) { Control::Stop } else { Control::Continue }
    }

    fn end(&mut self, fit: &Fit) {
        self.lines.push(format!("end: {}", fit.status.name()));
    }
}

#[test]
fn an_observer_hears_everything_in_order_and_may_stop_the_run() {
    let (problem, _) = Recipe::default().build();
    let settings = Settings {
        epochs: 5,
        batch: Batch::Rows(15),
        tolerance: 0.0,
        ..Settings::with_method(MethodKind::ObproxSgPlus)
    };
    let (mut first, mut second) = (Diary { enough: Some(2), ..Diary::default() }, Diary::default());
    let fit = Run::new(&problem, settings).observe(&mut first).observe(&mut second).fit().unwrap();
    assert_eq!((fit.status, fit.epochs, fit.iterations), (Status::Stopped, 2, 4));
    let expected = [
        "start: 15 rows a batch, 0 before",
        "step 1/2 of 1",
        "step 2/2 of 1",
        "epoch 1 after 2",
        "step 1/2 of 2",
        "step 2/2 of 2",
        "epoch 2 after 4",
        "end: stopped",
    ];
    assert_eq!(first.lines, expected);
    assert_eq!(second.lines, expected);
}

/// Asks for the end at every step, to see that a stop by one is heard by all.
struct Impatient;

impl Observer for Impatient {
    fn step(&mut self, _: &Progress) -> Control {
        Control::Stop
    }
}

#[test]
fn all_observers_hear_of_the_step_that_one_of_them_stops_at() {
    let (problem, _) = Recipe::default().build();
    let mut diary = Diary::default();
    let settings = Settings { batch: Batch::Rows(10), ..Settings::with_method(MethodKind::ObproxSgPlus) };
    let fit = Run::new(&problem, settings).observe(&mut Impatient).observe(&mut diary).fit().unwrap();
    assert_eq!((fit.status, fit.epochs, fit.iterations), (Status::Stopped, 0, 1));
    assert_eq!(diary.lines[1..], ["step 1/3 of 1", "end: stopped"]);
}

#[test]
fn a_named_loss_gives_the_same_problem_as_the_type_itself() {
    let of = |loss| Problem::new(dataset(), loss, &Terms::default()).unwrap();
    let (named, typed) = (of(LossKind::Squared.build(1)), of(Arc::new(obprox::loss::Squared)));
    assert_eq!(run(&named, &Settings::default()).point, run(&typed, &Settings::default()).point);
}
