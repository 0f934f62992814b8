//! Offsets: margins that have a known part.

mod common;

use common::close;
use obprox::data::{Dataset, Matrix};
use obprox::loss::LossKind;
use obprox::metrics::{Deviance, Metrics};
use obprox::{CrossValidation, Lambda, Lambdas, Method, MethodKind, Problem, Run, Settings, Terms};

const ROWS: usize = 60;

fn rows() -> Vec<f64> {
    (0..ROWS * 5).map(|at| ((at * 7919 + at * at * 31) % 103) as f64 / 51.0 - 1.0).collect()
}

fn offsets() -> Vec<f64> {
    (0..ROWS).map(|row| (row % 7) as f64 / 3.0 - 1.0).collect()
}

fn score(row: usize) -> f64 {
    let rows = rows();
    1.5 * rows[row * 5] - rows[row * 5 + 1] + offsets()[row] + ((row * 37) % 11) as f64 / 10.0 - 0.5
}

fn problem(loss: LossKind, targets: Vec<f64>, offset: Option<Vec<f64>>, lambda: f64) -> Problem {
    let data = Dataset::new(Matrix::from_dense(ROWS, 5, &rows()), targets);
    let terms = Terms { lambda: Lambda::Value(lambda), offset, ..Terms::default() };
    Problem::new(data, loss.build(2), &terms).unwrap()
}

fn targets(loss: LossKind) -> Vec<f64> {
    let of = |row: usize| match loss {
        LossKind::Logistic | LossKind::SquaredHinge => f64::from(score(row) > 0.0),
        LossKind::Poisson | LossKind::NegativeBinomial(_) => score(row).exp().floor(),
        LossKind::Gamma => score(row).exp(),
        LossKind::Tweedie(_) => (score(row).exp() - 0.6).max(0.0),
        _ => score(row),
    };
    (0..ROWS).map(of).collect()
}

const LOSSES: [LossKind; 8] = [
    LossKind::Logistic,
    LossKind::Squared,
    LossKind::SquaredHinge,
    LossKind::Huber(0.4),
    LossKind::Poisson,
    LossKind::Gamma,
    LossKind::Tweedie(1.5),
    LossKind::NegativeBinomial(1.0),
];

/// F by its formula is least where the fit says, and what predictions and measures say agrees with it.
#[test]
fn the_optimum_is_that_of_the_loss_with_margins_moved() {
    for loss in LOSSES {
        let with = problem(loss, targets(loss), Some(offsets()), 0.02);
        let settings = Settings { tolerance: 1e-10, ..Settings::default() };
        let fit = Run::new(&with, settings.clone()).fit().unwrap();
        let certificate = &fit.certificate;
        assert!(certificate.relative_gap().unwrap() <= 1e-10, "{loss:?}: {certificate:?}");
        // F by its formula, at the optimum and beside it.
        let plain = problem(loss, targets(loss), None, 0.02);
        let objective = |weights: &[f64], intercept: f64| {
            let at = |row: usize| {
                let dot: f64 = rows()[row * 5..row * 5 + 5].iter().zip(weights).map(|(a, b)| a * b).sum();
                let margin = [dot + intercept + offsets()[row]];
                plain.loss().value(&margin, plain.targets()[row])
            };
            let loss: f64 = (0..ROWS).map(at).sum::<f64>() / ROWS as f64;
            loss + 0.02 * weights.iter().map(|weight| weight.abs()).sum::<f64>()
        };
        let (x, b) = (&fit.point.weights, fit.point.intercept[0]);
        let best = objective(x, b);
        assert!(close(best, certificate.objective, 1e-12), "{loss:?}: {best} {}", certificate.objective);
        for at in 0..6 {
            for by in [-1e-3, 1e-3] {
                let mut moved = x.clone();
                if at < 5 {
                    moved[at] += by;
                }
                let intercept = if at == 5 { b + by } else { b };
                assert!(objective(&moved, intercept) >= best - 1e-9 * best.abs(), "{loss:?} {at}");
            }
        }
        assert!(fit.model.offset && fit.model.predict_with(with.matrix(), None).is_err());
        let data = Dataset::new(with.matrix().clone(), targets(loss));
        let metrics = fit.model.evaluate_with(&data, Some(&offsets())).unwrap();
        let (Metrics::Classification { loss: measured, .. } | Metrics::Regression { loss: measured, .. }) = metrics
        else {
            panic!("{loss:?}: {metrics:?}");
        };
        assert!(close(measured.unwrap(), certificate.loss, 1e-10), "{loss:?}");
    }
}

/// The squared loss has them in its targets.
#[test]
fn of_least_squares_they_are_taken_from_the_targets() {
    let truth = targets(LossKind::Squared);
    let rest: Vec<f64> = truth.iter().zip(offsets()).map(|(target, offset)| target - offset).collect();
    let (with, plain) =
        (problem(LossKind::Squared, truth, Some(offsets()), 0.05), problem(LossKind::Squared, rest, None, 0.05));
    assert!(close(with.lambda_max(), plain.lambda_max(), 1e-12));
    for method in [MethodKind::Auto, MethodKind::ObproxSg, MethodKind::ProxSvrg] {
        let settings = Settings { tolerance: 1e-12, ..Settings::with_method(Method::from(method)) };
        let fit = |problem: &Problem| Run::new(problem, settings.clone()).fit().unwrap().point;
        let (a, b) = (fit(&with), fit(&plain));
        assert!(a.weights.iter().zip(&b.weights).all(|(a, b)| close(*a, *b, 1e-9)), "{method:?}");
        assert!(close(a.intercept[0], b.intercept[0], 1e-9), "{method:?}");
    }
    let folds = |problem: &Problem| {
        let settings = Settings { tolerance: 1e-10, ..Settings::default() };
        let lambdas = Lambdas::Given(vec![Lambda::Value(0.1), Lambda::Value(0.05)]);
        CrossValidation::new(problem).settings(settings).lambdas(lambdas).run().unwrap()
    };
    for (a, b) in folds(&with).scores.iter().zip(&folds(&plain).scores) {
        assert!(close(a.mean, b.mean, 1e-8), "{} {}", a.mean, b.mean);
    }
}

#[test]
fn the_constant_that_deviance_is_measured_from_is_beside_them() {
    let with = problem(LossKind::Poisson, targets(LossKind::Poisson), Some(offsets()), 10.0);
    let deviance = Deviance::of(&with).unwrap();
    let null = Run::new(&with, Settings::default()).fit().unwrap();
    assert_eq!(null.certificate.nnz, 0);
    assert!(deviance.explained(null.certificate.loss).abs() < 1e-9);
    let without = Deviance::of(&problem(LossKind::Poisson, targets(LossKind::Poisson), None, 10.0)).unwrap();
    assert!(without.explained(null.certificate.loss) > 0.01, "offsets explain something");
}

#[test]
fn what_is_wrong_with_offsets_is_said() {
    let of = |offset: Vec<f64>| {
        let data = Dataset::new(Matrix::from_dense(ROWS, 5, &rows()), targets(LossKind::Squared));
        let terms = Terms { offset: Some(offset), ..Terms::default() };
        Problem::new(data, LossKind::Squared.build(1), &terms).unwrap_err().to_string()
    };
    assert!(of(vec![0.0; 3]).contains("3 numbers where 60 are needed"));
    let mut bad = offsets();
    bad[7] = f64::NAN;
    assert!(of(bad).contains("number 8 is NaN"));
}
