//! A loss and an observer of one's own, without touching the crate: what a user of the library would write.

mod common;

use std::sync::Arc;

use common::random::Recipe;
use common::run;
use obprox::data::{Dataset, Synth, Task as Planted};
use obprox::loss::{LossKind, ScalarLoss, Task};
use obprox::sampler::Batch;
use obprox::schedule::StepSize;
use obprox::{
    Control, EpochRecord, Fit, Lambda, Method, Observer, Problem, Progress, Run, Settings, Start, Status, Terms,
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
            ..Settings::with_method(Method::ProxSvrg)
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
    let settings =
        Settings { epochs: 5, batch: Batch::Rows(15), tolerance: 0.0, ..Settings::with_method(Method::ObproxSgPlus) };
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
    let settings = Settings { batch: Batch::Rows(10), ..Settings::with_method(Method::ObproxSgPlus) };
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
