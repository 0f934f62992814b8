//! A run whose numbers run away ends as diverged, with the last good weights and no NaN taken for a zero.

mod common;

use common::random::Recipe;
use common::{bits, run};
use obprox::data::{Dataset, Matrix};
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::{Lambda, MethodKind, Point, Problem, Run, Settings, Status, Terms, certify};

const CAN_DIVERGE: [MethodKind; 4] =
    [MethodKind::ProxSg, MethodKind::ProxSvrg, MethodKind::ObproxSg, MethodKind::ObproxSgPlus];

/// ½(x − 2)² + λ|x| with two columns, the second empty.
fn problem() -> Problem {
    let data = Dataset::new(Matrix::from_rows(2, &[vec![(0, 1.0)], vec![(0, 1.0)]]), vec![1.0, 3.0]);
    let terms = Terms { lambda: Lambda::Value(0.5), intercept: false, ..Terms::default() };
    Problem::new(data, LossKind::Squared.build(1), &terms).unwrap()
}

/// Steps far too long: the distance to the optimum grows a millionfold in each, until its square overflows.
fn growing(method: MethodKind, epochs: u64) -> Settings {
    Settings {
        epochs,
        batch: Batch::All,
        step: StepSize::Value(1e6),
        schedule: Schedule::Constant,
        ..Settings::with_method(method)
    }
}

/// As from a first step that overflows at once.
fn leaping(method: MethodKind) -> Settings {
    Settings { step: StepSize::Value(1e300), ..growing(method, 5) }
}

fn start() -> Point {
    Point { weights: vec![1.25, -0.5], intercept: vec![0.0] }
}

#[test]
fn the_last_good_weights_are_kept() {
    for method in [MethodKind::ProxSg, MethodKind::ProxSvrg] {
        let problem = problem();
        let fit = run(&problem, &growing(method, 200));
        assert_eq!(fit.status, Status::Diverged, "{method:?}");
        assert!((20..30).contains(&fit.trace.len()), "{method:?}: {}", fit.trace.len());
        let last = run(&problem, &growing(method, fit.trace.len() as u64));
        assert_eq!(last.status, Status::MaxEpochs);
        assert_eq!(bits(&fit.point), bits(&last.point), "{method:?}");
        assert_eq!(fit.certificate, last.certificate);
        assert!(fit.certificate.objective.is_finite() && fit.certificate.nnz == 1);
        assert!(fit.trace.iter().all(|record| record.certificate.as_ref().unwrap().objective.is_finite()));
    }
}

#[test]
fn a_run_that_fails_at_once_is_back_where_it_began() {
    let problem = problem();
    for method in CAN_DIVERGE {
        let fit = run(&problem, &leaping(method));
        assert_eq!((fit.status, fit.trace.len()), (Status::Diverged, 0), "{method:?}");
        assert_eq!(fit.point, Point::zero(&problem), "{method:?}");

        let fit = Run::new(&problem, leaping(method)).start(&start()).fit().unwrap();
        assert_eq!(fit.status, Status::Diverged, "{method:?}");
        assert_eq!(fit.point, start(), "{method:?}");
        assert_eq!(fit.certificate, certify(&problem, &start()).unwrap());
    }
}

#[test]
fn a_resumed_run_falls_back_on_its_checkpoint() {
    let problem = problem();
    let directory = tempfile::tempdir().unwrap();
    let whole = run(&problem, &growing(MethodKind::ProxSg, 200));
    let good = whole.trace.len() as u64;
    let leg = |epochs, resume| {
        Run::new(&problem, growing(MethodKind::ProxSg, epochs)).checkpoint(directory.path(), resume).fit().unwrap()
    };
    leg(good, false);
    let resumed = leg(200, true);
    assert_eq!(resumed.status, Status::Diverged);
    assert_eq!(bits(&resumed.point), bits(&whole.point));
    assert_eq!(resumed.certificate, whole.certificate);
}

#[test]
fn an_overflow_within_an_epoch_ends_the_run_there() {
    let (problem, _) = Recipe { loss: LossKind::Poisson, ..Recipe::default() }.build();
    for method in CAN_DIVERGE {
        let settings = Settings {
            batch: Batch::Rows(2),
            step: StepSize::Value(1e4),
            eval_every: 100,
            ..Settings::with_method(method)
        };
        let fit = run(&problem, &settings);
        assert_eq!(fit.status, Status::Diverged, "{method:?}");
        assert!(fit.iterations < 30 * 15, "{method:?}: it went on for {} steps", fit.iterations);
        assert!(fit.point.is_finite() && fit.certificate.objective.is_finite(), "{method:?}");
    }
}

#[test]
fn a_start_that_does_not_fit_is_refused() {
    let problem = problem();
    let message = |weights: Vec<f64>| {
        let start = Point { weights, intercept: vec![0.0] };
        Run::new(&problem, Settings::default()).start(&start).fit().unwrap_err().to_string()
    };
    assert!(message(vec![1.0]).contains("1 weights"), "{}", message(vec![1.0]));
    assert!(message(vec![f64::NAN, 0.0]).contains("finite"));
}
