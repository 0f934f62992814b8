//! The share of the deviance that is explained, against scikit-learn and against what it must be at the ends.

use obprox::data::{Dataset, Matrix, Synth, Task};
use obprox::loss::LossKind;
use obprox::metrics::{Criteria, Deviance, Metrics};
use obprox::{Block, Lambda, Model, Problem, Terms};

/// A model m = 0.75 x + 0.25 and six rows for it.
fn measured(kind: LossKind, labels: Vec<f64>, targets: [f64; 6]) -> Metrics {
    let loss = kind.build(2);
    let block = Block { intercept: 0.25, indices: vec![0], values: vec![0.75] };
    let model = Model {
        loss: loss.name().into(),
        loss_parameter: None,
        task: loss.task(),
        n_features: 1,
        labels,
        label_names: Vec::new(),
        blocks: vec![block],
        lambda: 0.0,
        l2: 0.0,
        penalty: None,
        names: Vec::new(),
        table: None,
        offset: false,
        certificate: None,
    };
    let rows = Matrix::from_dense(6, 1, &[-2.0, -1.0, 0.0, 0.5, 1.0, 2.0]);
    model.evaluate(&Dataset::new(rows, targets.to_vec())).unwrap()
}

/// `d2_tweedie_score(y, exp(m), power=1)` and `d2_log_loss_score(y, 1 / (1 + exp(-m)))` of scikit-learn 1.9.
#[test]
fn equals_scikit_learn() {
    let counts = measured(LossKind::Poisson, Vec::new(), [0.0, 1.0, 1.0, 3.0, 2.0, 7.0]);
    let Metrics::Regression { deviance_explained: Some(explained), .. } = counts else { panic!("{counts:?}") };
    assert!((explained - 0.8530282909517735).abs() < 1e-12, "{explained}");
    let classes = measured(LossKind::Logistic, vec![0.0, 1.0], [0.0, 1.0, 0.0, 1.0, 1.0, 1.0]);
    let Metrics::Classification { deviance_explained: Some(explained), .. } = classes else { panic!("{classes:?}") };
    assert!((explained - 0.2264817373583604).abs() < 1e-12, "{explained}");
    let squared = measured(LossKind::Squared, Vec::new(), [0.5, 1.0, 0.0, 3.0, 2.0, 7.0]);
    let Metrics::Regression { deviance_explained, r2, .. } = squared else { panic!("{squared:?}") };
    assert!((deviance_explained.unwrap() - r2.unwrap()).abs() < 1e-12);
}

/// Nothing is explained at λ_max, where x = 0; all the more, the smaller λ is. So too with weights and without intercept.
#[test]
fn rises_from_nothing_as_lambda_falls() {
    for (kind, task) in [
        (LossKind::Logistic, Task::Classification),
        (LossKind::Squared, Task::Regression),
        (LossKind::Poisson, Task::Counts),
        (LossKind::Softmax, Task::Classes(3)),
    ] {
        for intercept in [true, false] {
            let data = Synth { rows: 150, cols: 20, per_row: 6.0, support: 4, task, ..Synth::default() };
            let data = data.generate().unwrap().dataset;
            let row_weights = Some((0..150).map(|row| 1.0 + f64::from(row % 3)).collect());
            let terms = Terms { lambda: Lambda::OfMax(1.0), intercept, row_weights, ..Terms::default() };
            let problem = Problem::new(data, kind.build(3), &terms).unwrap();
            let deviance = Deviance::of(&problem).unwrap();
            let at = |share: f64| {
                let fit = problem.clone().with_lambda(Lambda::OfMax(share)).unwrap().fit().unwrap();
                deviance.explained(fit.certificate.loss)
            };
            let (none, some, more) = (at(1.0), at(0.3), at(0.01));
            assert!(none.abs() < 1e-6, "{kind:?} {intercept}: {none}");
            assert!(some > 1e-3 && more > some && more < 1.0, "{kind:?} {intercept}: {some} {more}");
        }
    }
    let data = Synth { rows: 50, cols: 5, per_row: 3.0, support: 2, ..Synth::default() }.generate().unwrap().dataset;
    let hinge = Problem::new(data, LossKind::SquaredHinge.build(2), &Terms::default()).unwrap();
    assert!(Deviance::of(&hinge).is_none());
}

/// Ten rows of two features.
fn ten(targets: [f64; 10], kind: LossKind) -> Problem {
    let rows =
        [-2.0, 1.0, -1.0, 0.0, 0.0, 2.0, 0.5, 1.0, 1.0, 0.0, 2.0, 1.0, 1.5, 3.0, -0.5, 2.0, 0.25, 1.0, -1.5, 0.0];
    let data = Dataset::new(Matrix::from_dense(10, 2, &rows), targets.to_vec());
    Problem::new(data, kind.build(2), &Terms { lambda: Lambda::Value(0.0), ..Terms::default() }).unwrap()
}

/// Without a penalty they are those of statsmodels 0.14: `Logit(y, X).fit().aic`, `OLS(y, X).fit().bic`, and for counts,
/// whose constants are left out, the difference that the second feature makes.
#[test]
fn criteria_equal_statsmodels() {
    let of = |problem: &Problem| Criteria::of(problem, &problem.fit().unwrap().certificate).unwrap();
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-4, "{found} {expected}");
    let logit = of(&ten([0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0], LossKind::Logistic));
    close(logit.aic, 18.667262995883828);
    close(logit.bic, 19.575018274865965);
    let squared = of(&ten([0.5, 1.0, 0.0, 3.0, 2.0, 7.0, 4.0, 1.5, 1.0, 0.25], LossKind::Squared));
    close(squared.aic, 38.1098469970201);
    close(squared.bic, 39.017602276002236);
    let targets = [0.0, 1.0, 1.0, 3.0, 2.0, 7.0, 4.0, 1.0, 1.0, 0.0];
    let both = of(&ten(targets, LossKind::Poisson));
    let first = [-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 1.5, -0.5, 0.25, -1.5];
    let data = Dataset::new(Matrix::from_dense(10, 1, &first), targets.to_vec());
    let terms = Terms { lambda: Lambda::Value(0.0), ..Terms::default() };
    let one = of(&Problem::new(data, LossKind::Poisson.build(2), &terms).unwrap());
    close(both.aic - one.aic, 1.9999884437693112);
    close(both.bic - one.bic, 2.302573536763358);
    assert!(
        Criteria::of(&ten(first, LossKind::Huber(1.0)), &ten(first, LossKind::Huber(1.0)).fit().unwrap().certificate)
            .is_none()
    );
}
