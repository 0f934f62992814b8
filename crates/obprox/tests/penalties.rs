//! Penalties on blocks: bounds, groups and sparse groups, held to a slow solver and to their own definitions.

mod common;
mod slow;

use std::sync::Arc;

use common::random::LOSSES;
use common::{StopAt, bits};
use obprox::data::{Dataset, Matrix};
use obprox::loss::{LossKind, MultiSquared};
use obprox::penalty::{Bounds, Groups, Penalty};
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Switch, Unit};
use obprox::{Lambda, Method, Problem, Run, Settings, Status, Terms};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use slow::Case;
use slow::plain::Plain;

fn case(loss: LossKind, seed: u64, n_rows: usize, n_cols: usize) -> Case {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut entry = |share: f64| if rng.random_bool(share) { rng.random_range(-1.0..1.0) } else { 0.0 };
    let rows: Vec<Vec<f64>> = (0..n_rows).map(|_| (0..n_cols).map(|_| entry(0.6)).collect()).collect();
    let signal = |row: &Vec<f64>| 3.0 * row[0] - 2.0 * row[1 % n_cols] + row[2 % n_cols];
    let labels: Vec<f64> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| match loss {
            LossKind::Squared | LossKind::Huber(_) => signal(row) + (at % 3) as f64 * 0.3,
            LossKind::Poisson => (signal(row) + 2.0).max(0.0).floor(),
            LossKind::Softmax => ((signal(row) + 4.0) as usize % 3) as f64,
            _ => f64::from(signal(row) + (at % 3) as f64 * 0.3 > 0.2),
        })
        .collect();
    let mut case = Case::new(loss, rows, labels, Lambda::OfMax([0.3, 0.03, 0.1][seed as usize % 3]));
    case.intercept = !seed.is_multiple_of(4);
    case.l2 = if seed.is_multiple_of(5) { 0.01 } else { 0.0 };
    case.dense = seed.is_multiple_of(2);
    if seed.is_multiple_of(3) {
        case.row_weights = Some((0..n_rows).map(|row| (row % 4) as f64 + 0.25).collect());
    }
    case
}

#[test]
fn auto_comes_to_the_optimum_of_every_loss_and_penalty_and_proves_it() {
    for (number, loss) in LOSSES.into_iter().enumerate() {
        for seed in 0..4 {
            let (n_rows, n_cols) = [(40, 9), (25, 12), (60, 5), (12, 1)][seed as usize];
            for (turn, plain) in Plain::all(n_cols).into_iter().enumerate() {
                let mut case = case(loss, seed + 7 * number as u64 + turn as u64, n_rows, n_cols);
                case.penalty = Some(plain.built(n_cols));
                let problem = case.problem();
                let what = format!("{loss:?}, {seed}, {plain:?}");
                let fit = Run::new(&problem, Settings { tolerance: 1e-7, ..Settings::default() }).fit().unwrap();
                assert_eq!(fit.status, Status::Converged, "{what}: {:?}", fit.certificate);
                let certificate = &fit.certificate;
                let best =
                    plain.lowest(&case, &problem, 400, Some(&fit.point)).min(plain.lowest(&case, &problem, 400, None));
                let gap = certificate.gap.unwrap_or(1e-6 * certificate.objective.abs());
                assert!(
                    certificate.objective - gap <= best + 1e-11,
                    "{what}: {certificate:?}, and yet there is {best}"
                );
                assert!(best <= certificate.objective + 1e-9, "{what}: F is {best}, not {certificate:?}");
            }
        }
    }
}

/// The five methods, and Prox-SVRG with its mean.
fn methods() -> Vec<Settings> {
    let settings = |method: Method| Settings {
        method,
        epochs: 6,
        batch: Batch::Rows(7),
        step: StepSize::Value(0.3),
        tolerance: 0.0,
        ..Settings::default()
    };
    let switch = |prox: u64, orthant: Option<u64>| Switch::Fixed { prox, orthant, unit: Unit::Epochs };
    let methods = [
        Method::ProxSg,
        Method::ObproxSg { switch: switch(2, Some(1)) },
        Method::ObproxSgPlus { switch: switch(3, None) },
        Method::Rda { gamma: 5.0 },
        Method::ProxSvrg { average: false },
        Method::ProxSvrg { average: true },
    ];
    methods.map(settings).to_vec()
}

#[test]
fn blocks_of_one_are_the_l1_penalty_for_every_method() {
    for loss in LOSSES {
        let mut case = case(loss, 15, 40, 9);
        case.lambda = Lambda::Value(0.02);
        // Every weight by itself: in a box without walls, or as a group of its own.
        let boxed = Arc::new(Bounds::new(vec![f64::NEG_INFINITY; 9], vec![f64::INFINITY; 9]).unwrap());
        let grouped: Arc<dyn Penalty> = Arc::new(Groups::each().with_weights(vec![1.0; 9]).unwrap());
        let penalties = if loss == LossKind::Softmax { vec![boxed as Arc<dyn Penalty>] } else { vec![boxed, grouped] };
        for settings in methods() {
            case.penalty = None;
            let apart = Run::new(&case.problem(), settings.clone()).fit().unwrap();
            for penalty in &penalties {
                case.penalty = Some(Arc::clone(penalty));
                let fit = Run::new(&case.problem(), settings.clone()).fit().unwrap();
                let off = fit.point.weights.iter().zip(&apart.point.weights).map(|(a, b)| (a - b).abs());
                let off = off.fold(0.0, f64::max);
                assert!(off < 1e-9, "{loss:?}, {}, {}: {off}", settings.method.name(), penalty.name());
                let zeros = |fit: &obprox::Fit| fit.point.weights.iter().filter(|x| **x == 0.0).count();
                assert_eq!(zeros(&fit), zeros(&apart), "{loss:?}, {}", settings.method.name());
                let (a, b) = (&fit.certificate, &apart.certificate);
                let off = [a.objective - b.objective, a.kkt - b.kkt, a.gradient_mapping - b.gradient_mapping];
                assert!(off.iter().all(|off| off.abs() < 1e-8), "{loss:?}, {}: {a:?}, {b:?}", settings.method.name());
            }
        }
    }
}

#[test]
fn groups_leave_together_and_come_to_the_optimum() {
    let losses = [LossKind::Logistic, LossKind::Squared, LossKind::Softmax];
    for (loss, plain) in losses.into_iter().flat_map(|loss| Plain::all(8).into_iter().map(move |plain| (loss, plain))) {
        let mut case = case(loss, 11, 60, 8);
        (case.l2, case.lambda) = (0.0, Lambda::OfMax(0.2));
        case.penalty = Some(plain.built(8));
        let problem = case.problem();
        let best = problem.fit().unwrap().certificate.objective;
        for settings in methods() {
            // Long enough, with all rows, for what does not keep its distance by its noise.
            let settings = Settings {
                epochs: 600,
                batch: Batch::All,
                step: StepSize::Auto,
                schedule: Schedule::Constant,
                ..settings
            };
            let fit = Run::new(&problem, settings.clone()).fit().unwrap();
            let what = format!("{loss:?}, {}, {plain:?}", settings.method.name());
            let off = fit.certificate.objective - best;
            // Dual averaging is slow; what OBProx-SG+ has put to zero stays there.
            let slow =
                if matches!(settings.method, Method::Rda { .. } | Method::ObproxSgPlus { .. }) { 0.5 } else { 1e-3 };
            assert!((-1e-9..slow * best.abs().max(1.0)).contains(&off), "{what}: F is off by {off}");
            if let Plain::Groups(of, _, 0.0) = &plain {
                for features in Plain::groups(of) {
                    let outputs = problem.outputs();
                    let of = |&feature: &usize| &fit.point.weights[feature * outputs..(feature + 1) * outputs];
                    let zeros = features.iter().flat_map(of).filter(|x| **x == 0.0).count();
                    assert!(zeros == 0 || zeros == features.len() * outputs, "{what}: {:?}", fit.point.weights);
                }
            }
            if let Plain::Box(low, high) = plain {
                assert!(fit.point.weights.iter().all(|&x| low <= x && x <= high), "{what}: {:?}", fit.point.weights);
            }
        }
    }
}

#[test]
fn a_stopped_run_resumes_to_the_same_bits_and_not_with_another_penalty() {
    let mut case = case(LossKind::Softmax, 7, 60, 8);
    let plain = Plain::all(8).remove(5);
    case.penalty = Some(plain.built(8));
    let problem = case.problem();
    let auto = Settings { tolerance: 1e-9, ..Settings::default() };
    for settings in methods().into_iter().chain([auto]) {
        let whole = Run::new(&problem, settings.clone()).fit().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut stop = StopAt { epoch: 2, step: 3 };
        Run::new(&problem, settings.clone()).checkpoint(directory.path(), false).observe(&mut stop).fit().unwrap();
        case.penalty = Some(Plain::all(8).remove(4).built(8));
        let other = Run::new(&case.problem(), settings.clone()).checkpoint(directory.path(), true).fit();
        assert!(other.is_err(), "{}: resumed with other groups", settings.method.name());
        let resumed = Run::new(&problem, settings.clone()).checkpoint(directory.path(), true).fit().unwrap();
        assert_eq!(bits(&resumed.point), bits(&whole.point), "{}", settings.method.name());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut case = case(LossKind::Logistic, 1, 20, 6);
    let stated = |case: &Case| {
        let terms =
            Terms { penalty: case.penalty.clone(), feature_weights: case.feature_weights.clone(), ..Terms::default() };
        let data = Dataset::new(Matrix::from_dense(20, 6, &case.rows.concat()), case.labels.clone());
        Problem::new(data, LossKind::Logistic.build(1), &terms).map(drop).unwrap_err().to_string()
    };
    case.penalty = Some(Arc::new(Bounds::positive(5)));
    assert!(stated(&case).contains("5 features, the data has 6"));
    case.penalty = Some(Arc::new(Groups::new(vec![0, 1, 1, 0]).unwrap()));
    assert!(stated(&case).contains("4 features, the data has 6"));
    case.penalty = Some(Arc::new(Groups::new(vec![0, 1, 1, 0, 2, 2]).unwrap().with_weights(vec![1.0]).unwrap()));
    assert!(stated(&case).contains("1 weights for 3 groups"));
    case.penalty = Some(Arc::new(Groups::each()));
    case.feature_weights = Some(vec![1.0; 6]);
    assert!(stated(&case).contains("weights of its own"));
    assert!(Groups::new(vec![0, 2]).is_err() && Groups::new(vec![0]).unwrap().with_l1_share(1.5).is_err());
    assert!(Bounds::new(vec![0.1], vec![1.0]).is_err() && Bounds::new(vec![f64::NAN], vec![1.0]).is_err());
    assert!(Groups::new(vec![0]).unwrap().with_weights(vec![-1.0]).is_err());
}

#[test]
fn several_targets_are_learnt_one_by_one_or_together() {
    let case = case(LossKind::Squared, 1, 50, 7);
    let data = |targets: Vec<f64>| Dataset::new(Matrix::from_dense(50, 7, &case.rows.concat()), targets);
    let other: Vec<f64> = case.rows.iter().map(|row| 2.0 - row[3] + 0.5 * row[0]).collect();
    let both: Vec<f64> = case.labels.iter().zip(&other).flat_map(|(a, b)| [*a, *b]).collect();
    let loss = MultiSquared::new(both, 2).unwrap();
    let terms = |penalty| Terms { lambda: Lambda::Value(0.03), penalty, ..Terms::default() };
    let stated = |penalty| Problem::new(data(loss.rows()), Arc::new(loss.clone()), &terms(penalty)).unwrap();
    let settings = Settings { tolerance: 1e-10, ..Settings::default() };
    let solved = |problem: &Problem| Run::new(problem, settings.clone()).fit().unwrap();
    // Without groups they have nothing to do with one another.
    let fit = solved(&stated(None));
    assert_eq!(fit.status, Status::Converged);
    for (k, targets) in [case.labels.clone(), other].into_iter().enumerate() {
        let alone = solved(&Problem::new(data(targets), LossKind::Squared.build(1), &terms(None)).unwrap());
        let weights = fit.point.weights.iter().skip(k).step_by(2);
        assert!(weights.zip(&alone.point.weights).all(|(a, b)| (a - b).abs() < 1e-6));
        assert!((fit.point.intercept[k] - alone.point.intercept[0]).abs() < 1e-6);
    }
    // With them a feature is there for both or for neither.
    let together = solved(&stated(Some(Arc::new(Groups::each().with_weights(vec![1.0; 7]).unwrap()))));
    assert_eq!(together.status, Status::Converged, "{:?}", together.certificate);
    let zeros = |pair: &[f64]| pair.iter().filter(|x| **x == 0.0).count();
    let counts: Vec<usize> = together.point.weights.chunks_exact(2).map(zeros).collect();
    assert!(counts.iter().all(|count| *count != 1) && counts.contains(&2) && counts.contains(&0), "{counts:?}");
    assert!(MultiSquared::new(vec![1.0; 5], 2).is_err() && MultiSquared::new(vec![f64::NAN; 4], 2).is_err());
}
