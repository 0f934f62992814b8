//! Runs on the whole set have no randomness: they equal formulas that can be worked out by hand. Numbers are dyadic
//! where possible, so that they can be compared exactly.

mod common;

use common::random::Recipe;
use common::{close, run};
use obprox::data::{Dataset, Matrix};
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize, auto};
use obprox::switch::{Phase, Switch, Unit};
use obprox::{Lambda, Method, MethodKind, Point, Problem, Run, Settings, Terms};

/// ½(x − 2)² + ½·½·2 + λ|x|: one column of ones with targets 1 and 3, so that ∇f = x − 2.
fn one_column(terms: Terms) -> Problem {
    let rows = Matrix::from_rows(1, &[vec![(0, 1.0)], vec![(0, 1.0)]]);
    let terms = Terms { lambda: Lambda::Value(0.5), intercept: false, ..terms };
    Problem::new(Dataset::new(rows, vec![1.0, 3.0]), LossKind::Squared.build(1), &terms).unwrap()
}

/// Row j has the value 2 in column j alone, and target 2·goal_j: ∇f_j = x_j − goal_j for four columns.
fn separable(goals: [f64; 4], feature_weights: Vec<f64>) -> Problem {
    let rows: Vec<Vec<(u32, f64)>> = (0..4).map(|column| vec![(column, 2.0)]).collect();
    let data = Dataset::new(Matrix::from_rows(4, &rows), goals.map(|goal| 2.0 * goal).to_vec());
    let terms = Terms {
        lambda: Lambda::Value(0.25),
        feature_weights: Some(feature_weights),
        intercept: false,
        ..Terms::default()
    };
    Problem::new(data, LossKind::Squared.build(1), &terms).unwrap()
}

/// Steps of size ½ on the whole set.
fn whole(method: impl Into<Method>, steps: u64) -> Settings {
    Settings {
        epochs: steps,
        batch: Batch::All,
        step: StepSize::Value(0.5),
        schedule: Schedule::Constant,
        tolerance: 0.0,
        ..Settings::with_method(method)
    }
}

const ORTHANT_ONLY: Switch = Switch::Fixed { prox: 0, orthant: None, unit: Unit::Iterations };

#[test]
fn prox_sg_shrinks_the_gradient_step() {
    let problem = one_column(Terms::default());
    // S(0 + ½·2, ¼) = ¾; S(¾ + ½·1¼, ¼) = 1⅛; S(1⅛ + ½·⅞, ¼) = 1 5/16.
    for (steps, expected) in [(1, 0.75), (2, 1.125), (3, 1.3125)] {
        for method in [MethodKind::ProxSg, MethodKind::ProxSvrg, MethodKind::ObproxSg, MethodKind::ObproxSgPlus] {
            assert_eq!(run(&problem, &whole(method, steps)).point.weights, [expected], "{method:?}");
        }
    }
}

#[test]
fn the_elastic_net_divides_after_the_shrink() {
    let problem = one_column(Terms { l2: 2.0, ..Terms::default() });
    // ¾/(1 + ½·2) = ⅜; S(⅜ + ½·1⅝, ¼)/2 = 15/32.
    for (steps, expected) in [(1, 0.375), (2, 0.46875)] {
        for method in [MethodKind::ProxSg, MethodKind::ProxSvrg, MethodKind::ObproxSg] {
            assert_eq!(run(&problem, &whole(method, steps)).point.weights, [expected], "{method:?}");
        }
    }
}

#[test]
fn averaged_svrg_returns_the_mean_of_the_epoch() {
    let problem = one_column(Terms::default());
    // Two batches of one row each. With constant curvature the reduced gradient of either row is x − 2 itself: the
    // iterates of the first epoch are ¾ and 1⅛, of the second, from their mean 15/16, 1 7/32 and 1 23/64.
    let settings = Settings { batch: Batch::Rows(1), ..whole(Method::ProxSvrg { average: true }, 1) };
    assert_eq!(run(&problem, &settings).point.weights, [(0.75 + 1.125) / 2.0]);
    let second = run(&problem, &Settings { epochs: 2, ..settings }).point.weights;
    assert_eq!(second, [(1.21875 + 1.359375) / 2.0]);
}

#[test]
fn rda_is_its_closed_form() {
    let problem = one_column(Terms::default());
    let (gamma, lambda) = (2.0, 0.5);
    let (mut x, mut sum) = (0.0, 0.0);
    for t in 1..=20u32 {
        sum += x - 2.0;
        let mean: f64 = sum / f64::from(t);
        x = -(f64::from(t).sqrt() / gamma) * mean.signum() * (mean.abs() - lambda).max(0.0);
        let found = run(&problem, &whole(Method::Rda { gamma }, t.into())).point.weights[0];
        assert!(close(x, found, 1e-14), "{found} for {x} after {t}");
    }
}

#[test]
fn the_intercept_follows_rda_without_the_shrink() {
    // No features in any row: f = ½(b − 2)² + const.
    let data = Dataset::new(Matrix::from_rows(1, &[vec![], vec![]]), vec![1.0, 3.0]);
    let terms = Terms { lambda: Lambda::Value(10.0), ..Terms::default() };
    let problem = Problem::new(data, LossKind::Squared.build(1), &terms).unwrap();
    let settings = whole(Method::Rda { gamma: 2.0 }, 1);
    assert_eq!(run(&problem, &settings).point.intercept, [1.0]);
    // ḡ = (−2 − 1)/2, so b = √2/2·1½.
    let second = run(&problem, &Settings { epochs: 2, ..settings }).point.intercept[0];
    assert!(close(1.5 / 2f64.sqrt(), second, 1e-15));
}

#[test]
fn the_orthant_step_keeps_its_face() {
    let problem = separable([2.0, 5.0, -4.0, 3.0], vec![1.0, 1.0, 1.0, 0.0]);
    let start = Point { weights: vec![1.0, 0.0, 1.0, 0.0], intercept: vec![0.0] };
    let settings = whole(Method::ObproxSg { switch: ORTHANT_ONLY }, 1);
    let after = |steps| {
        let settings = Settings { epochs: steps, ..settings.clone() };
        Run::new(&problem, settings).start(&start).fit().unwrap().point.weights
    };
    // Up by ½(1 − ¼); a zero stays whatever its gradient; what would change its sign becomes zero, and stays; a zero
    // without penalty moves by ½·3 and again by half of what is left.
    assert_eq!(after(1), [1.375, 0.0, 0.0, 1.5]);
    assert_eq!(after(2), [1.5625, 0.0, 0.0, 2.25]);
}

#[test]
fn the_orthant_step_mirrors_negative_weights() {
    let start = Point { weights: vec![1.0, -1.0, -1.0, 1.0], intercept: vec![0.0] };
    let problem = separable([2.0, -2.0, 9.0, -9.0], vec![1.0; 4]);
    let settings = whole(Method::ObproxSg { switch: ORTHANT_ONLY }, 1);
    let weights = Run::new(&problem, settings).start(&start).fit().unwrap().point.weights;
    assert_eq!(weights, [1.375, -1.375, 0.0, 0.0]);
}

#[test]
fn the_orthant_step_never_freezes_the_intercept() {
    let data = Dataset::new(Matrix::from_rows(1, &[vec![], vec![(0, 0.0)]]), vec![1.0, 3.0]);
    let problem = Problem::new(data, LossKind::Squared.build(1), &Terms::default()).unwrap();
    let settings = whole(Method::ObproxSg { switch: ORTHANT_ONLY }, 2);
    let point = run(&problem, &settings).point;
    assert_eq!((point.intercept, point.weights), (vec![1.5], vec![0.0]));
}

#[test]
fn after_the_switch_the_support_only_shrinks() {
    let (problem, _) = Recipe { rows: 60, cols: 80, lambda: 0.05, seed: 3, ..Recipe::default() }.build();
    let (prox, last) = (4, 20);
    let switch = Switch::Fixed { prox, orthant: None, unit: Unit::Epochs };
    // Runs of one seed share their beginnings, so runs of growing length are one run, seen epoch by epoch.
    let signs_after = |epochs| -> Vec<f64> {
        let settings = Settings {
            epochs,
            batch: Batch::Rows(4),
            tolerance: 0.0,
            ..Settings::with_method(Method::ObproxSgPlus { switch })
        };
        let weights = run(&problem, &settings).point.weights;
        weights.iter().map(|x| if *x == 0.0 { 0.0 } else { x.signum() }).collect()
    };
    let signs: Vec<Vec<f64>> = (1..=last).map(signs_after).collect();
    let size = |signs: &[f64]| signs.iter().filter(|sign| **sign != 0.0).count();
    for pair in signs[prox as usize - 1..].windows(2) {
        assert!(pair[0].iter().zip(&pair[1]).all(|(before, after)| *after == 0.0 || after == before));
    }
    let (at_switch, at_end) = (size(&signs[prox as usize - 1]), size(&signs[last as usize - 1]));
    assert!(0 < at_end && at_end < at_switch, "{at_switch} → {at_end}: the face must have got smaller");
}

#[test]
fn records_tell_phase_step_size_and_iterations() {
    let (problem, _) = Recipe::default().build();
    let settings =
        Settings { epochs: 12, batch: Batch::Rows(7), tolerance: 0.0, ..Settings::with_method(MethodKind::ObproxSg) };
    for record in run(&problem, &settings).trace {
        let epoch = record.epoch - 1;
        assert_eq!(record.phase, if epoch % 10 < 5 { Phase::Prox } else { Phase::Orthant });
        assert!(close(0.995f64.powi(epoch as i32), record.step_size, 1e-15));
        assert_eq!(record.iterations, 5 * record.epoch, "30 rows are 4 batches of 7 and one of 2");
    }
}

#[test]
fn the_automatic_step_is_one_over_the_smoothness() {
    // (1/N) Σ ddᵀ = I and ‖d‖² = 4: 𝓛 runs from 4 for single rows to 1 for all, and power iteration leaves 5 % of room.
    let problem = separable([1.0; 4], vec![1.0; 4]);
    assert_eq!(auto(&problem, 1).unwrap(), 0.25);
    let smoothness = |rows| 1.0 / auto(&problem, rows).unwrap();
    assert!((1.0..=1.06).contains(&smoothness(4)), "{}", smoothness(4));
    assert!((2.0..=2.06).contains(&smoothness(2)), "{}", smoothness(2));
    let (problem, _) = Recipe { loss: LossKind::Poisson, ..Recipe::default() }.build();
    assert!(auto(&problem, 1).unwrap_err().to_string().contains("no bound"));
}
