//! Same seed, same bits: for any number of threads, and for a run that was stopped and resumed.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::random::Recipe;
use common::{StopAt, bits, run};
use obprox::data::Synth;
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Switch, Unit};
use obprox::{
    Control, Error, Fit, Lambda, Method, MethodKind, Observer, Problem, Progress, Run, Settings, Status, Terms, certify,
};

/// Every method, and the variants that keep a state of their own.
fn variants() -> Vec<(&'static str, Settings)> {
    fn of(method: impl Into<Method>) -> Settings {
        let (batch, step) = (Batch::Rows(7), StepSize::Value(0.3));
        Settings { epochs: 6, batch, step, tolerance: 0.0, ..Settings::with_method(method) }
    }
    let switch = |prox, orthant, unit| Switch::Fixed { prox, orthant, unit };
    vec![
        ("prox-sg", of(MethodKind::ProxSg)),
        ("rda", of(MethodKind::Rda)),
        ("prox-svrg", of(MethodKind::ProxSvrg)),
        ("prox-svrg with steps over k", Settings { schedule: Schedule::OverSqrtK, ..of(MethodKind::ProxSvrg) }),
        ("averaged prox-svrg", of(Method::ProxSvrg { average: true })),
        ("obproxsg", of(Method::ObproxSg { switch: switch(3, Some(4), Unit::Iterations) })),
        ("adaptive obproxsg", of(Method::ObproxSg { switch: Switch::Adaptive })),
        ("obproxsg-plus", of(Method::ObproxSgPlus { switch: switch(2, None, Unit::Epochs) })),
    ]
}

/// Large enough for several blocks of rows and several ranges of columns.
fn large(task: obprox::data::Task) -> Problem {
    let synth = Synth { rows: 2500, cols: 700, per_row: 12.0, task, noise: 0.3, seed: 1, ..Synth::default() };
    let kind = match task {
        obprox::data::Task::Classes(_) => LossKind::Softmax,
        _ => LossKind::Logistic,
    };
    let terms = Terms { lambda: Lambda::OfMax(0.1), ..Terms::default() };
    Problem::new(synth.generate().unwrap().dataset, kind.build(3), &terms).unwrap()
}

/// Small, with an elastic net, weights and awkward rows; λ is strong enough for columns to be dropped.
fn small(loss: LossKind) -> Problem {
    Recipe { loss, rows: 40, cols: 60, lambda: 0.4, l2: 0.05, feature_weights: true, ..Recipe::default() }.build().0
}

/// All of a fit but its times.
fn identity(fit: &Fit) -> impl PartialEq + std::fmt::Debug + use<> {
    let records: Vec<_> = fit
        .trace
        .iter()
        .map(|record| (record.epoch, record.iterations, record.phase, record.step_size, record.certificate.clone()))
        .collect();
    (bits(&fit.point), fit.status, fit.epochs, fit.iterations, fit.certificate.clone(), records)
}

fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn threads_change_no_bit() {
    for task in [obprox::data::Task::Classification, obprox::data::Task::Classes(3)] {
        let on = |threads| {
            with_threads(threads, || {
                let problem = large(task);
                let fits: Vec<_> = variants()
                    .into_iter()
                    .map(|(_, settings)| {
                        let settings = Settings { epochs: 3, batch: Batch::Paper, step: StepSize::Auto, ..settings };
                        identity(&run(&problem, &settings))
                    })
                    .collect();
                (problem.lambda_max().to_bits(), fits)
            })
        };
        let alone = on(1);
        assert!(alone == on(2), "1 and 2 threads differ");
        assert!(alone == on(3), "1 and 3 threads differ");
    }
}

#[test]
fn the_seed_alone_decides_the_batches() {
    let problem = small(LossKind::Logistic);
    for (name, settings) in variants() {
        let of = |seed| identity(&run(&problem, &Settings { seed, ..settings.clone() }));
        assert!(of(1) == of(1), "{name}");
        assert!(of(1) != of(2), "{name}");
    }
}

// ---- checkpoints --------------------------------------------------------------------------------------------------

fn file(directory: &Path) -> PathBuf {
    directory.join("checkpoint.obprox")
}

/// Runs to the given stop, then on to the end from the checkpoint.
fn in_two_legs(problem: &Problem, settings: &Settings, mut stop: StopAt) -> Fit {
    let directory = tempfile::tempdir().unwrap();
    let run = |resume| Run::new(problem, settings.clone()).checkpoint(directory.path(), resume);
    let first = run(false).observe(&mut stop).fit().unwrap();
    assert_eq!(first.status, Status::Stopped);
    assert_eq!(first.certificate, certify(problem, &first.point).unwrap(), "what a stopped run hands out is whole");
    run(true).fit().unwrap()
}

#[test]
fn a_stopped_run_resumes_to_the_same_bits() {
    for loss in [LossKind::Logistic, LossKind::Softmax] {
        let problem = small(loss);
        for (name, settings) in variants() {
            let whole = identity(&run(&problem, &settings));
            // Six batches an epoch: in the middle, right at the start, at the end of one, and late.
            for (epoch, step) in [(1, 1), (2, 3), (3, 6), (5, 5), (6, 1)] {
                let resumed = in_two_legs(&problem, &settings, StopAt { epoch, step });
                assert!(identity(&resumed) == whole, "{name}, {loss:?}, stopped at {epoch}, {step}");
            }
        }
    }
}

/// Stops at the so-many-th thing that a solver tells.
struct StopAfter(usize);

impl Observer for StopAfter {
    fn step(&mut self, _: &Progress) -> Control {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { Control::Stop } else { Control::Continue }
    }
}

/// Problems that `auto` solves in its different ways: few features, many, classes, a start from a sample of the rows, and
/// from smoother losses.
fn ways_of_auto() -> Vec<(&'static str, Problem)> {
    let far = |problem: &Problem| {
        let targets = (0..problem.n_rows()).map(|row| 1e5 * (row as f64).sin()).collect();
        let data = obprox::data::Dataset::new(problem.matrix().clone(), targets);
        let terms = Terms { lambda: Lambda::OfMax(0.05), ..Terms::default() };
        Problem::new(data, LossKind::Huber(1.0).build(1), &terms).unwrap()
    };
    let tall = Synth { rows: 9000, cols: 12, per_row: 6.0, support: 5, noise: 0.3, seed: 3, ..Synth::default() };
    let terms = Terms { lambda: Lambda::OfMax(0.05), ..Terms::default() };
    let tall = Problem::new(tall.generate().unwrap().dataset, LossKind::Logistic.build(2), &terms).unwrap();
    let few = small(LossKind::Logistic);
    vec![
        ("smoother losses", far(&few)),
        ("few features", few),
        ("many features", large(obprox::data::Task::Classification)),
        ("classes", small(LossKind::Softmax)),
        ("many features and classes", large(obprox::data::Task::Classes(3))),
        ("a sample", tall),
    ]
}

#[test]
fn auto_resumes_to_the_same_bits_and_a_finished_run_is_finished() {
    for (name, problem) in ways_of_auto() {
        let settings = Settings { tolerance: 1e-11, ..Settings::default() };
        let whole = run(&problem, &settings);
        assert!(whole.epochs > 1, "{name}: {:?}", whole.status);
        let mut broken_off = 0;
        for stop in 1..=12 {
            let directory = tempfile::tempdir().unwrap();
            let run = |resume| Run::new(&problem, settings.clone()).checkpoint(directory.path(), resume);
            let mut watch = StopAfter(stop);
            let first = Run::new(&problem, settings.clone())
                .checkpoint(directory.path(), false)
                .observe(&mut watch)
                .fit()
                .unwrap();
            broken_off += usize::from(first.status == Status::Stopped);
            let on = run(true).fit().unwrap();
            assert!(identity(&on) == identity(&whole), "{name}, stopped after {stop}");
            let kept = fs::read(file(directory.path())).unwrap();
            let again = run(true).fit().unwrap();
            assert!(identity(&again) == identity(&whole), "{name}: nothing is left to do");
            assert_eq!(again.resumed_epochs, again.epochs, "{name}");
            assert_eq!(fs::read(file(directory.path())).unwrap(), kept, "{name}: the checkpoint stays as it is");
        }
        assert!(broken_off > 0, "{name}");
    }
}

#[test]
fn dropped_columns_stay_dropped_in_a_checkpoint() {
    let problem = Recipe { rows: 40, cols: 400, lambda: 0.5, ..Recipe::default() }.build().0;
    let switch = Switch::Fixed { prox: 2, orthant: None, unit: Unit::Epochs };
    let settings = Settings {
        epochs: 20,
        batch: Batch::Rows(4),
        tolerance: 0.0,
        ..Settings::with_method(Method::ObproxSgPlus { switch })
    };
    let directory = tempfile::tempdir().unwrap();
    let size_after = |epochs, resume| {
        let settings = Settings { epochs, ..settings.clone() };
        Run::new(&problem, settings).checkpoint(directory.path(), resume).fit().unwrap();
        // The records of the epochs grow; what is left is the state of the coordinates.
        let bytes = fs::read(file(directory.path())).unwrap();
        bytes.len() - u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize
    };
    let (full, compacted) = (size_after(2, false), size_after(12, true));
    assert!(compacted < full / 2, "no column was dropped: {full} and {compacted} bytes");
    let resumed = Run::new(&problem, settings.clone()).checkpoint(directory.path(), true).fit().unwrap();
    assert!(identity(&resumed) == identity(&run(&problem, &settings)));
}

#[test]
fn a_finished_run_can_be_given_more_epochs() {
    let problem = small(LossKind::Squared);
    for (name, settings) in variants() {
        let directory = tempfile::tempdir().unwrap();
        let leg = |epochs, resume| {
            let settings = Settings { epochs, ..settings.clone() };
            Run::new(&problem, settings).checkpoint(directory.path(), resume).fit().unwrap()
        };
        let first = leg(3, false);
        let again = leg(3, true);
        assert!(identity(&first) == identity(&again), "{name}: nothing is left to do");
        let on = leg(6, true);
        assert!(identity(&on) == identity(&run(&problem, &settings)), "{name}");
        let seconds: Vec<f64> = on.trace.iter().map(|record| record.seconds).collect();
        assert!(seconds.is_sorted() && on.seconds >= first.seconds, "{name}: training time adds up");
    }
}

#[test]
fn without_a_checkpoint_a_resumed_run_starts_anew() {
    let problem = small(LossKind::Logistic);
    let (_, settings) = variants().remove(0);
    let directory = tempfile::tempdir().unwrap();
    let fit = Run::new(&problem, settings.clone()).checkpoint(directory.path().join("new"), true).fit().unwrap();
    assert!(identity(&fit) == identity(&run(&problem, &settings)));
}

/// The message of a resume that must fail, after it is known to leave the checkpoint as it was.
fn refusal(problem: &Problem, settings: &Settings, directory: &Path) -> String {
    let before = fs::read(file(directory)).unwrap();
    let error: Error = Run::new(problem, settings.clone()).checkpoint(directory, true).fit().unwrap_err();
    assert!(error.is_input(), "{error}");
    assert_eq!(fs::read(file(directory)).unwrap(), before);
    error.to_string()
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let problem = small(LossKind::Logistic);
    let (_, settings) = variants().remove(0);
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    Run::new(&problem, settings.clone()).checkpoint(directory, false).fit().unwrap();

    let other_data = Recipe { rows: 40, cols: 60, lambda: 0.4, seed: 9, ..Recipe::default() }.build().0;
    let other_loss = small(LossKind::SquaredHinge);
    let other_lambda = problem.clone().with_lambda(Lambda::OfMax(0.2)).unwrap();
    for other in [other_data, other_loss, other_lambda] {
        assert!(refusal(&other, &settings, directory).contains("another problem"));
    }
    for other in [
        Settings { seed: 5, ..settings.clone() },
        Settings { batch: Batch::Rows(8), ..settings.clone() },
        Settings { step: StepSize::Value(0.2), ..settings.clone() },
        Settings { schedule: Schedule::Constant, ..settings.clone() },
        Settings { method: MethodKind::Rda.into(), ..settings.clone() },
    ] {
        assert!(refusal(&problem, &other, directory).contains("other settings"));
    }
    // What does not change the steps may change.
    let freed = Settings { tolerance: 1e-3, eval_every: 2, epochs: 9, ..settings };
    assert!(Run::new(&problem, freed).checkpoint(directory, true).fit().is_ok());
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let problem = small(LossKind::Logistic);
    for (name, settings) in variants() {
        let settings = Settings { epochs: 3, ..settings };
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        Run::new(&problem, settings.clone()).checkpoint(directory, false).fit().unwrap();
        let whole = fs::read(file(directory)).unwrap();
        for share in 0..20 {
            let cut = whole.len() * share / 20;
            fs::write(file(directory), &whole[..cut]).unwrap();
            let message = refusal(&problem, &settings, directory);
            assert!(message.contains("not a whole obprox checkpoint"), "{name}, cut at {cut}: {message}");
            // A flipped bit may make it a checkpoint of something else; it must not make it a good one.
            let mut flipped = whole.clone();
            flipped[cut] ^= 4;
            fs::write(file(directory), &flipped).unwrap();
            refusal(&problem, &settings, directory);
        }
    }
}
