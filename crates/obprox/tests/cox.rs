//! Cox's partial likelihood: held to its definition written down, to what it is a bound of, and to its optimum.

mod common;

use std::sync::Arc;

use common::close;
use obprox::cv::Split;
use obprox::data::{Dataset, Matrix};
use obprox::loss::{Cox, Loss, LossKind, Ties};
use obprox::metrics::{Deviance, Metrics, concordance};
use obprox::penalty::{Bounds, Groups, Penalty};
use obprox::{CrossValidation, Fit, Lambda, Lambdas, MethodKind, Problem, Run, Settings, Terms};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const TIES: [Ties; 2] = [Ties::Efron, Ties::Breslow];

/// Rows, and times that their first two features move: many at one time, some of them censored.
fn rows(seed: u64, count: usize, width: usize) -> (Vec<f64>, Vec<f64>) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let cells: Vec<f64> = (0..count * width).map(|_| rng.random_range(-1.5..2.5)).collect();
    let mut time = |row: &[f64]| {
        let hazard = (0.9 * row[0] - 0.7 * row[1]).exp();
        let time = 1.0 + (-rng.random_range(1e-9f64..1.0).ln() / hazard * 6.0).floor();
        if rng.random_range(0.0..1.0) < 0.3 { -time } else { time }
    };
    let times = cells.chunks(width).map(&mut time).collect();
    (cells, times)
}

fn weights(count: usize) -> Vec<f64> {
    (0..count).map(|row| (row % 4) as f64 * 0.75).collect()
}

/// The partial likelihood as the books have it, a time after the other.
fn by_definition(margins: &[f64], times: &[f64], weights: &[f64], ties: Ties) -> f64 {
    let mut distinct: Vec<f64> = times.iter().copied().filter(|&time| time > 0.0).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let rows = || (0..times.len()).filter(|&row| weights[row] > 0.0);
    let mut total = 0.0;
    for time in distinct {
        let events: Vec<usize> = rows().filter(|&row| times[row] == time).collect();
        let hazard = |row: usize| weights[row] * margins[row].exp();
        let at_risk: f64 = rows().filter(|&row| times[row].abs() >= time).map(hazard).sum();
        let tied: f64 = events.iter().map(|&row| hazard(row)).sum();
        let weight: f64 = events.iter().map(|&row| weights[row]).sum();
        total -= events.iter().map(|&row| weights[row] * margins[row]).sum::<f64>();
        for l in 0..events.len() {
            let out = if ties == Ties::Efron { l as f64 / events.len() as f64 } else { 0.0 };
            total += weight / events.len() as f64 * (at_risk - out * tied).ln();
        }
    }
    total
}

/// Its slopes by differences, weights included.
fn slopes_by_definition(margins: &[f64], times: &[f64], weights: &[f64], ties: Ties) -> Vec<f64> {
    let at = |row: usize, by: f64| {
        let mut moved = margins.to_vec();
        moved[row] += by;
        by_definition(&moved, times, weights, ties)
    };
    (0..margins.len()).map(|row| (at(row, 1e-5) - at(row, -1e-5)) / 2e-5).collect()
}

#[test]
fn sums_over_risk_sets_are_those_of_the_definition() {
    for seed in 0..6 {
        let (cells, times) = rows(seed, 50, 2);
        let margins: Vec<f64> = cells.chunks(2).map(|row| row[0] - 2.0 * row[1]).collect();
        for (ties, given) in TIES.into_iter().flat_map(|ties| [(ties, None), (ties, Some(weights(50)))]) {
            let all = given.clone().unwrap_or_else(|| vec![1.0; 50]);
            let coupled = Cox { ties }.coupled(&times).unwrap();
            let value = |margins: &[f64]| coupled.total(margins, given.as_deref());
            let expected = by_definition(&margins, &times, &all, ties);
            assert!(close(value(&margins), expected, 1e-12), "{ties:?}: {} and {expected}", value(&margins));
            let (mut slopes, mut curvatures) = (vec![f64::NAN; 50], vec![f64::NAN; 50]);
            coupled.expand(&margins, given.as_deref(), &mut slopes, &mut curvatures);
            let known = slopes_by_definition(&margins, &times, &all, ties);
            for row in 0..50 {
                assert!(close(all[row] * slopes[row], known[row], 1e-7), "{ties:?}, row {row}");
            }
            // It never falls below its least, and comes near to it where each time's events have all the hazard.
            let apart: Vec<f64> = times.iter().map(|time| if *time > 0.0 { -80.0 * time } else { -1e7 }).collect();
            let least = coupled.least(given.as_deref());
            assert!(least < expected && close(value(&apart), least, 1e-9), "{ties:?}: {} {least}", value(&apart));
            // Margins of any size: nothing is lost, and nothing overflows.
            let shifted: Vec<f64> = margins.iter().map(|margin| margin + 1e4).collect();
            assert!(close(value(&shifted), expected, 1e-9));
            let wide: Vec<f64> = margins.iter().map(|margin| 400.0 * margin).collect();
            coupled.expand(&wide, given.as_deref(), &mut slopes, &mut curvatures);
            assert!(value(&wide).is_finite() && slopes.iter().chain(&curvatures).all(|slope| slope.is_finite()));
        }
    }
}

/// The diagonal with a free intercept beside it lies above the curvature along every direction.
#[test]
fn a_model_of_a_step_lies_above_the_loss() {
    let (cells, times) = rows(3, 40, 3);
    let margins: Vec<f64> = cells.chunks(3).map(|row| 0.5 * row[0]).collect();
    for (ties, all) in TIES.into_iter().flat_map(|ties| [(ties, vec![1.0; 40]), (ties, weights(40))]) {
        let coupled = Cox { ties }.coupled(&times).unwrap();
        let (mut slopes, mut curvatures) = (vec![0.0; 40], vec![0.0; 40]);
        coupled.expand(&margins, Some(&all), &mut slopes, &mut curvatures);
        for k in 0..12 {
            let along: Vec<f64> = (0..40).map(|row| ((row * (k + 3) + k * k) as f64).sin() + 0.8).collect();
            let at = |by: f64| {
                let moved: Vec<f64> = margins.iter().zip(&along).map(|(margin, v)| margin + by * v).collect();
                by_definition(&moved, &times, &all, ties)
            };
            let curvature = (at(1e-3) - 2.0 * at(0.0) + at(-1e-3)) / 1e-6;
            let sum = |of: &dyn Fn(usize) -> f64| (0..40).map(|row| all[row] * curvatures[row] * of(row)).sum::<f64>();
            let above = sum(&|row| along[row] * along[row]) - sum(&|row| along[row]).powi(2) / sum(&|_| 1.0);
            assert!(curvature > 0.0 && curvature <= above + 1e-4, "{ties:?}: {curvature} {above}");
            assert!(above < 3.0 * curvature, "{ties:?}: {curvature} {above}");
        }
    }
}

/// s∇ℓ·m′ − ℓ(m′) ≤ ℓ*(s∇ℓ) for every m′, and as good as equal at the best.
#[test]
fn the_conjugate_is_a_bound_that_is_met() {
    // Ties of a few rows, and so many that they are not taken one by one.
    for (count, levels) in [(60, f64::INFINITY), (2000, 3.0)] {
        let (cells, mut times) = rows(5, count, 2);
        times.iter_mut().for_each(|time| *time = time.signum() * time.abs().min(levels));
        let margins: Vec<f64> = cells.chunks(2).map(|row| 0.6 * row[0] - 0.4 * row[1]).collect();
        for (ties, all) in TIES.into_iter().flat_map(|ties| [(ties, vec![1.0; count]), (ties, weights(count))]) {
            let coupled = Cox { ties }.coupled(&times).unwrap();
            let (mut slopes, mut curvatures) = (vec![0.0; count], vec![0.0; count]);
            coupled.expand(&margins, Some(&all), &mut slopes, &mut curvatures);
            let supremum = |scale: f64, at: &[f64]| {
                let product: f64 = (0..count).map(|row| scale * all[row] * slopes[row] * at[row]).sum();
                product - coupled.total(at, Some(&all))
            };
            let whole = coupled.conjugate(1.0, &margins, Some(&all));
            assert!(close(whole, supremum(1.0, &margins), 1e-11), "{ties:?}: {whole}");
            for scale in [0.999, 0.9, 0.3] {
                let bound = coupled.conjugate(scale, &margins, Some(&all));
                for factor in [0.0, 0.5, 0.8, 0.9, 1.0, 1.1, 2.0] {
                    let at: Vec<f64> = margins.iter().map(|margin| factor * margin).collect();
                    assert!(supremum(scale, &at) <= bound + 1e-9 * bound.abs(), "{ties:?} {scale} {factor}");
                }
                assert!(bound.is_finite() && (scale < 0.9 || bound - whole < 0.9 * whole.abs()), "{bound} {whole}");
            }
        }
    }
}

fn problem(seed: u64, count: usize, width: usize, ties: Ties, terms: &Terms) -> Problem {
    let (cells, times) = rows(seed, count, width);
    let data = Dataset::new(Matrix::from_dense(count, width, &cells), times);
    Problem::new(data, LossKind::Cox(ties).build(1), terms).unwrap()
}

fn solve(problem: &Problem) -> Fit {
    Run::new(problem, Settings { tolerance: 1e-9, ..Settings::default() }).fit().unwrap()
}

/// At the optimum slopes by the definition are λ against the sign of a weight, and no more than λ elsewhere.
#[test]
fn every_fit_is_certified_and_optimal_by_the_definition() {
    for (seed, count, width) in [(0, 80, 5), (1, 120, 9), (2, 60, 700)] {
        for ties in TIES {
            for (kind, share) in [("plain", 0.1), ("plain", 0.4), ("weights", 0.15), ("offset", 0.1), ("free", 0.2)] {
                if (kind, width) == ("free", 700) {
                    continue;
                }
                let row_weights = (kind == "weights").then(|| weights(count));
                let offset =
                    (kind == "offset").then(|| (0..count).map(|row| (row % 5) as f64 / 3.0).collect::<Vec<_>>());
                let feature_weights =
                    (kind == "free").then(|| (0..width).map(|at| f64::from(u8::from(at != 1))).collect::<Vec<_>>());
                let lambda = Lambda::OfMax(share);
                let terms = Terms {
                    lambda,
                    row_weights: row_weights.clone(),
                    offset: offset.clone(),
                    feature_weights: feature_weights.clone(),
                    ..Terms::default()
                };
                let problem = problem(seed, count, width, ties, &terms);
                let fit = solve(&problem);
                let what = format!("{ties:?} {kind} {share} of {count} × {width}: {:?}", fit.certificate);
                assert!(fit.certificate.within(1e-9), "{what}");
                assert!(fit.certificate.nnz > 0 && fit.point.intercept == [0.0], "{what}");
                let (cells, times) = rows(seed, count, width);
                let scale = row_weights.as_ref().map_or(1.0, |all| count as f64 / all.iter().sum::<f64>());
                let all: Vec<f64> = row_weights.map_or(vec![1.0; count], |all| all.iter().map(|w| w * scale).collect());
                let margin = |(at, row): (usize, &[f64])| {
                    let product: f64 = row.iter().zip(&fit.point.weights).map(|(value, x)| value * x).sum();
                    product + offset.as_ref().map_or(0.0, |offset| offset[at])
                };
                let margins: Vec<f64> = cells.chunks(width).enumerate().map(margin).collect();
                let f = by_definition(&margins, &times, &all, ties) / count as f64;
                assert!(close(f, fit.certificate.loss, 1e-11), "{what}: {f}");
                let pulls = slopes_by_definition(&margins, &times, &all, ties);
                for (at, &x) in fit.point.weights.iter().enumerate() {
                    let slope: f64 = (0..count).map(|row| cells[row * width + at] * pulls[row] / count as f64).sum();
                    let lambda = problem.lambda() * feature_weights.as_ref().map_or(1.0, |of| of[at]);
                    let off = if x == 0.0 { slope.abs() - lambda } else { (slope + lambda * x.signum()).abs() };
                    assert!(off < 2e-5, "{what}: {off} at {at}");
                }
            }
        }
    }
}

#[test]
fn blocks_paths_and_scaled_columns_are_certified_too() {
    let settings = Settings { tolerance: 1e-8, ..Settings::default() };
    let penalties: [Arc<dyn Penalty>; 2] =
        [Arc::new(Bounds::positive(6)), Arc::new(Groups::new(vec![0, 0, 1, 1, 2, 2]).unwrap())];
    for penalty in penalties {
        let terms = Terms { lambda: Lambda::OfMax(0.1), penalty: Some(penalty), ..Terms::default() };
        let problem = problem(4, 90, 6, Ties::Efron, &terms);
        assert!(
            Run::new(&problem, settings.clone()).fit().unwrap().certificate.within(1e-8),
            "{:?}",
            problem.regularization()
        );
    }
    let terms = Terms { standardize: true, ..Terms::default() };
    let problem = problem(4, 90, 6, Ties::Breslow, &terms);
    let lambdas = Lambdas::Spaced { count: 12, ratio: Some(0.02) };
    let steps = obprox::Path::new(&problem).settings(settings).lambdas(lambdas).run().unwrap().steps;
    assert_eq!(steps[0].certificate.nnz, 0);
    for step in &steps {
        assert!(step.certificate.within(1e-8) && step.model.blocks[0].intercept == 0.0, "{step:?}");
    }
}

#[test]
fn what_a_fold_says_is_all_less_the_others() {
    let problem = problem(7, 60, 4, Ties::Efron, &Terms { row_weights: Some(weights(60)), ..Terms::default() });
    let test: Vec<u32> = (0..60).step_by(3).collect();
    let train: Vec<u32> = (0..60).filter(|row| row % 3 != 0).collect();
    let split = Split { train: train.clone(), test: test.clone() };
    let point = std::sync::Mutex::new(Vec::new());
    let visit = |_: usize, _: usize, fit: &Fit| *point.lock().unwrap() = fit.point.weights.clone();
    let validated = CrossValidation::new(&problem)
        .lambdas(Lambdas::Given(vec![Lambda::OfMax(0.2)]))
        .splits(vec![split])
        .visit(&visit)
        .run()
        .unwrap();
    let (cells, times) = rows(7, 60, 4);
    let x = point.into_inner().unwrap();
    let margins: Vec<f64> = cells.chunks(4).map(|row| row.iter().zip(&x).map(|(a, b)| a * b).sum()).collect();
    let all: Vec<f64> = (0..60).map(|row| problem.row_weight(row)).collect();
    let others: Vec<f64> = (0..60).map(|row| if row % 3 == 0 { 0.0 } else { all[row] }).collect();
    let events: f64 = test.iter().map(|&row| row as usize).filter(|&row| times[row] > 0.0).map(|row| all[row]).sum();
    let value = |weights: &[f64]| by_definition(&margins, &times, weights, Ties::Efron);
    let expected = (value(&all) - value(&others)) / events;
    let found = validated.scores[0].folds[0];
    assert!(close(found.loss, expected, 1e-12), "{} {expected}", found.loss);
    let own = |row: usize| if row.is_multiple_of(3) { all[row] } else { 0.0 };
    assert_eq!(found.score, concordance(&margins, &times, own));
    // Folds that are dealt have an event each.
    let folds =
        CrossValidation::new(&problem).folds(4).lambdas(Lambdas::Spaced { count: 5, ratio: None }).run().unwrap();
    assert!(folds.scores.iter().all(|scores| scores.mean.is_finite() && scores.score.is_some()));
}

#[test]
fn a_model_is_measured_by_its_order_and_its_likelihood() {
    let problem = problem(8, 70, 3, Ties::Efron, &Terms { lambda: Lambda::OfMax(0.05), ..Terms::default() });
    let fit = solve(&problem);
    let (cells, times) = rows(8, 70, 3);
    let data = Dataset::new(Matrix::from_dense(70, 3, &cells), times.clone());
    let Metrics::Survival { rows, events, concordance: c, loss, deviance_explained } =
        fit.model.evaluate(&data).unwrap()
    else {
        panic!()
    };
    assert_eq!((rows, events), (70, times.iter().filter(|time| **time > 0.0).count()));
    assert!(close(loss.unwrap(), fit.certificate.loss, 1e-12) && c.unwrap() > 0.65);
    let explained = Deviance::of(&problem).unwrap().explained(fit.certificate.loss);
    assert!(close(deviance_explained.unwrap(), explained, 1e-10) && explained > 0.05 && explained < 1.0);
    assert_eq!(fit.model.predict(&data.matrix), fit.model.margins(&data.matrix));
    let again = obprox::Model::from_json(&fit.model.to_json(), "model.json").unwrap();
    assert_eq!(again, fit.model);
}

#[test]
fn what_cannot_be_had_is_said() {
    let stated = |times: Vec<f64>, weights: Option<Vec<f64>>| {
        let data = Dataset::new(Matrix::from_dense(3, 1, &[1.0, 2.0, 3.0]), times);
        let terms = Terms { row_weights: weights, ..Terms::default() };
        Problem::new(data, LossKind::Cox(Ties::Efron).build(1), &terms)
    };
    let said = |result: obprox::Result<Problem>| result.unwrap_err().to_string();
    assert!(said(stated(vec![-1.0, -2.0, -3.0], None)).starts_with("every row is censored"));
    assert!(said(stated(vec![-1.0, 2.0, -3.0], Some(vec![1.0, 0.0, 1.0]))).starts_with("every row is censored"));
    assert!(said(stated(vec![-1.0, 0.0, 3.0], None)).contains("row 2: the target is 0; give a time"));
    let sound = stated(vec![1.0, -2.0, 3.0], None).unwrap();
    for kind in [MethodKind::ObproxSg, MethodKind::ProxSg, MethodKind::ProxSvrg, MethodKind::Rda] {
        let error = Run::new(&sound, Settings::with_method(kind)).fit().unwrap_err().to_string();
        assert!(error.contains("takes rows one by one, and the cox loss compares all: use auto"), "{error}");
    }
    // One event alone cannot be dealt to two folds.
    let one = stated(vec![1.0, -2.0, -3.0], None).unwrap();
    assert!(CrossValidation::new(&one).folds(2).run().unwrap_err().to_string().contains("2 folds of 1 events"));
}
