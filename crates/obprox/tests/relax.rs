//! Refits without penalty: on the support that was found, and nothing else.

mod common;

use common::close;
use common::random::{LOSSES, Recipe};
use obprox::cv::{Rule, SHARES, Split};
use obprox::data::{Dataset, Matrix};
use obprox::loss::{LossKind, Ties};
use obprox::penalty::{Bounds, Groups, Penalty};
use obprox::{CrossValidation, Fit, Lambda, Lambdas, Path, Point, Problem, Relaxed, Run, Settings, Terms, certify};
use std::sync::Arc;

const TIGHT: f64 = 1e-9;

fn settings() -> Settings {
    Settings { tolerance: TIGHT, ..Settings::default() }
}

/// Some rows whose target is a few of their features, and noise.
fn problem(loss: LossKind, terms: &Terms) -> Problem {
    let (rows, width) = (90, 8);
    let value = |at: usize| ((at * 7919 + at * at * 31) % 1009) as f64 / 500.0 - 1.0;
    let cells: Vec<f64> = (0..rows * width).map(value).collect();
    let score = |row: &[f64], at: usize| 1.5 * row[0] - row[2] + 0.4 * row[5] + 0.8 * value(at * 17 + 3);
    let target = |(at, row): (usize, &[f64])| match (loss, score(row, at)) {
        (LossKind::Logistic | LossKind::SquaredHinge, score) => f64::from(score > 0.2),
        (LossKind::Poisson, score) => (score + 2.5).floor().max(0.0),
        (LossKind::Softmax, score) => f64::from(score > -0.5) + f64::from(score > 0.7),
        (LossKind::Cox(_), score) => (1.0 + (9.0 * (-score).exp()).floor()) * if at % 4 == 0 { -1.0 } else { 1.0 },
        (_, score) => score,
    };
    let targets = cells.chunks(width).enumerate().map(target).collect();
    let data = Dataset::new(Matrix::from_dense(rows, width, &cells), targets);
    Problem::new(data, loss.build(3), terms).unwrap()
}

fn solve(problem: &Problem) -> Fit {
    Run::new(problem, settings()).fit().unwrap()
}

/// The refit is the best there is on the support: no move along one of its coordinates leads lower, and the others are 0.
#[test]
fn a_refit_is_the_best_on_its_features() {
    for loss in LOSSES.into_iter().chain([LossKind::Cox(Ties::Efron)]) {
        for (l2, standardize) in [(0.0, false), (0.05, false), (0.0, true)] {
            let terms = Terms { lambda: Lambda::OfMax(0.3), l2, standardize, ..Terms::default() };
            let problem = problem(loss, &terms);
            let fit = solve(&problem);
            let relaxed = Relaxed::new(&problem, &fit, &settings()).unwrap();
            let refit = relaxed.fit();
            let what = format!("{loss:?}, λ₂ {l2}, standardised {standardize}: {:?}", refit.certificate);
            assert!(refit.certificate.within(TIGHT) && fit.certificate.nnz > 0, "{what}");
            assert!(refit.certificate.loss < fit.certificate.loss - 1e-6, "{what}");
            let outputs = problem.outputs();
            let free = problem.clone().with_lambda(Lambda::Value(0.0)).unwrap().with_l2(0.0).unwrap();
            let loss_at = |point: &Point| certify(&free, point).unwrap().loss;
            assert!(close(loss_at(&refit.point), refit.certificate.loss, 1e-12), "{what}");
            for (feature, weights) in fit.point.weights.chunks_exact(outputs).enumerate() {
                for k in 0..outputs {
                    let at = feature * outputs + k;
                    if weights.iter().all(|&x| x == 0.0) {
                        assert_eq!(refit.point.weights[at], 0.0, "{what}");
                        continue;
                    }
                    for by in [1e-3, -1e-3] {
                        let mut moved = refit.point.clone();
                        moved.weights[at] += by;
                        assert!(loss_at(&moved) >= refit.certificate.loss - 1e-9, "{what}: feature {feature}");
                    }
                }
            }
            // Half the way there.
            let half = relaxed.blend(0.5).unwrap();
            for ((blend, a), b) in half.point.weights.iter().zip(&fit.point.weights).zip(&refit.point.weights) {
                assert!(close(*blend, 0.5 * (a + b), 1e-14), "{what}");
            }
            assert!(half.certificate.loss < fit.certificate.loss && half.certificate.loss > refit.certificate.loss);
            assert_eq!(relaxed.blend(1.0).unwrap().point, fit.point);
            assert_eq!(half.model.penalty.as_deref(), Some("relaxed"));
        }
    }
}

#[test]
fn a_path_has_the_refit_of_each_of_its_steps() {
    let problem = problem(LossKind::Logistic, &Terms::default());
    let lambdas = Lambdas::Spaced { count: 15, ratio: Some(0.02) };
    let steps = Path::new(&problem).settings(settings()).lambdas(lambdas.clone()).relaxed(true).run().unwrap().steps;
    for step in &steps {
        let at = problem.clone().with_lambda(Lambda::Value(step.lambda)).unwrap();
        let alone = Relaxed::new(&at, &solve(&at), &settings()).unwrap();
        let refit = step.relaxed.as_ref().unwrap();
        // Refits of steps that use the same features are made once.
        assert!(close(refit.certificate.loss, alone.fit().certificate.loss, 1e-7), "{step:?}");
        assert_eq!(refit.model.blocks[0].indices, step.model.blocks[0].indices);
        assert_eq!(refit.model.lambda, step.lambda);
    }
    assert!(Path::new(&problem).lambdas(lambdas).run().unwrap().steps.iter().all(|step| step.relaxed.is_none()));
}

#[test]
fn folds_choose_among_blends() {
    let problem = problem(LossKind::Squared, &Terms::default());
    let lambdas = Lambdas::Spaced { count: 12, ratio: Some(0.02) };
    let split = Split { train: (0..60).collect(), test: (60..90).collect() };
    let run = |shares: &[f64]| {
        let validation = CrossValidation::new(&problem).settings(settings()).lambdas(lambdas.clone());
        validation
            .splits(vec![split.clone(), Split { train: (30..90).collect(), test: (0..30).collect() }])
            .relaxed(shares)
    };
    let (plain, blended) = (run(&[1.0]).run().unwrap(), run(&SHARES).run().unwrap());
    assert_eq!((plain.share, plain.blends.len(), blended.blends.len()), (1.0, 1, 5));
    assert_eq!(plain.scores, blended.blends[0].1, "share 1 is no refit");
    let least = |scores: &[obprox::cv::Scores]| scores.iter().map(|scores| scores.mean).fold(f64::INFINITY, f64::min);
    let best = blended.blends.iter().map(|(_, scores)| least(scores)).fold(f64::INFINITY, f64::min);
    assert_eq!(least(&blended.scores), best);
    assert!(blended.share < 1.0, "strong weights and many features without: a refit predicts better");

    // A held-out loss by hand.
    let rest = problem.holding_out(&(60..90).collect::<Vec<u32>>()).unwrap();
    let at = rest.with_lambda(Lambda::Value(blended.scores[6].lambda)).unwrap();
    let half = Relaxed::new(&at, &solve(&at), &settings()).unwrap().at(0.5);
    let loss = |row: usize| {
        let mut margin = half.intercept[0];
        problem.matrix().for_each(row, |column, value| margin += value * half.weights[column]);
        0.5 * (margin - problem.targets()[row]).powi(2)
    };
    let expected = (60..90).map(loss).sum::<f64>() / 30.0;
    assert!(close(blended.blends[2].1[6].folds[0].loss, expected, 1e-6));

    let fit = blended.refit(&problem, &settings(), Rule::Best).unwrap();
    let chosen = problem.clone().with_lambda(Lambda::Value(blended.chosen(Rule::Best).lambda)).unwrap();
    let again = Relaxed::new(&chosen, &solve(&chosen), &settings()).unwrap().blend(blended.share).unwrap();
    assert!(fit.point.weights.iter().zip(&again.point.weights).all(|(a, b)| close(*a, *b, 1e-9)));
}

#[test]
fn features_without_penalty_are_in_every_refit_and_bounds_have_none() {
    let weights = Some(vec![1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    let terms = Terms { lambda: Lambda::OfMax(1.0), feature_weights: weights, ..Terms::default() };
    let free = problem(LossKind::Squared, &terms);
    let refit = Relaxed::new(&free, &solve(&free), &settings()).unwrap();
    assert!(refit.fit().point.weights[1] != 0.0 && refit.fit().certificate.within(TIGHT));

    let groups: Arc<dyn Penalty> = Arc::new(Groups::new(vec![0, 0, 1, 1, 2, 2, 3, 3]).unwrap());
    let grouped =
        problem(LossKind::Logistic, &Terms { lambda: Lambda::OfMax(0.3), penalty: Some(groups), ..Terms::default() });
    let refit = Relaxed::new(&grouped, &solve(&grouped), &settings()).unwrap();
    assert!(refit.fit().certificate.within(TIGHT), "{:?}", refit.fit().certificate);

    let bounds: Arc<dyn Penalty> = Arc::new(Bounds::positive(8));
    let bounded = problem(LossKind::Squared, &Terms { penalty: Some(bounds), ..Terms::default() });
    let error = Relaxed::new(&bounded, &solve(&bounded), &settings()).unwrap_err().to_string();
    assert!(error.contains("holds without λ too: there is no refit without it"), "{error}");
    assert!(
        CrossValidation::new(&bounded).relaxed(&SHARES).run().is_err()
            && Path::new(&bounded).relaxed(true).run().is_err()
    );
    assert!(CrossValidation::new(&grouped).relaxed(&[1.5]).run().is_err());
    // A problem of rows without features that help: nothing is used, and the refit is the fit.
    let (none, _) = Recipe { lambda: 2.0, ..Recipe::default() }.build();
    let fit = solve(&none);
    let refit = Relaxed::new(&none, &fit, &settings()).unwrap();
    assert!(fit.certificate.nnz == 0 && close(refit.fit().certificate.loss, fit.certificate.loss, 1e-9));
}
