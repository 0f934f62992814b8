//! Paths, the number of features, and cross-validation.

use std::sync::atomic::{AtomicUsize, Ordering};

use obprox::cv::{Rule, Split, choose};
use obprox::data::{Dataset, Matrix, ReadOptions, read};
use obprox::loss::LossKind;
use obprox::path::at_most;
use obprox::{
    Block, Control, CrossValidation, Fit, Lambda, Lambdas, Observer, Path, Problem, Progress, Run, Settings, Status,
    Terms,
};

/// Planted rows: a handful of the columns matter. A plain generator, so that the figures never move.
fn rows(n_rows: usize, n_cols: usize, target: impl Fn(f64) -> f64) -> Dataset {
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f64 / (1u64 << 24) as f64 - 0.5
    };
    let mut entries: Vec<Vec<(u32, f64)>> = Vec::new();
    let mut targets = Vec::new();
    for _ in 0..n_rows {
        let mut score = 0.8 * next();
        let mut row = Vec::new();
        for column in 0..n_cols {
            if next() < 0.1 {
                let value = 2.0 * next();
                score += value * [2.0, -1.0, 1.5, 0.5, -0.7].get(column).copied().unwrap_or(0.0);
                row.push((column as u32, value));
            }
        }
        entries.push(row);
        targets.push(target(score));
    }
    Dataset::new(Matrix::from_rows(n_cols, &entries), targets)
}

fn sign(score: f64) -> f64 {
    if score > 0.0 { 1.0 } else { -1.0 }
}

fn third(score: f64) -> f64 {
    if score < -0.4 {
        0.0
    } else if score < 0.4 {
        1.0
    } else {
        2.0
    }
}

/// One problem for each loss, with and without the trimmings.
fn problems() -> Vec<(&'static str, Problem)> {
    let plain = Terms::default();
    let trimmed = Terms { l2: 0.01, standardize: true, intercept: false, ..Terms::default() };
    let make =
        |data: Dataset, kind: LossKind, classes, terms: &Terms| Problem::new(data, kind.build(classes), terms).unwrap();
    vec![
        ("logistic", make(rows(200, 30, sign), LossKind::Logistic, 2, &plain)),
        ("logistic n > N", make(rows(60, 150, sign), LossKind::Logistic, 2, &plain)),
        ("elastic net", make(rows(120, 30, sign), LossKind::Logistic, 2, &trimmed)),
        ("squared", make(rows(150, 40, |score| score), LossKind::Squared, 1, &plain)),
        ("huber", make(rows(150, 20, |score| score), LossKind::Huber(0.5), 1, &plain)),
        ("poisson", make(rows(150, 20, |score| score.abs().round()), LossKind::Poisson, 1, &plain)),
        ("softmax", make(rows(150, 12, third), LossKind::Softmax, 3, &plain)),
    ]
}

fn tenth() -> Lambdas {
    Lambdas::Spaced { count: 10, ratio: Some(0.02) }
}

#[test]
fn the_grid_falls_evenly_from_lambda_max() {
    for (name, problem) in problems() {
        let values = Lambdas::default().values(&problem).unwrap();
        assert!(values.len() == 100 && (values[0] / problem.lambda_max() - 1.0).abs() < 1e-11, "{name}");
        let ratio = if problem.n_rows() < problem.n_features() { 1e-2 } else { 1e-3 };
        assert!((values[99] / values[0] / ratio - 1.0).abs() < 1e-12, "{name}");
        assert!(values.windows(3).all(|v| (v[1] * v[1] / (v[0] * v[2]) - 1.0).abs() < 1e-12), "{name}");
    }
    let (_, problem) = problems().swap_remove(0);
    let given = Lambdas::Given(vec![Lambda::Value(1e-3), Lambda::OfMax(0.5), Lambda::Value(1e-3), Lambda::OverN]);
    assert_eq!(given.values(&problem).unwrap(), [0.5 * problem.lambda_max(), 1.0 / 200.0, 1e-3]);
    for wrong in [
        Lambdas::Spaced { count: 0, ratio: None },
        Lambdas::Spaced { count: 5, ratio: Some(0.0) },
        Lambdas::Spaced { count: 5, ratio: Some(1.0) },
        Lambdas::Spaced { count: 5, ratio: Some(f64::NAN) },
        Lambdas::Given(vec![]),
        Lambdas::Given(vec![Lambda::Value(-1.0)]),
    ] {
        assert!(wrong.values(&problem).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_path_at_lambda_is_a_fit_at_lambda() {
    for (name, problem) in problems() {
        let path = Path::new(&problem).lambdas(tenth()).run().unwrap();
        assert!(!path.stopped && path.steps.len() == 10, "{name}");
        assert_eq!(path.steps[0].certificate.nnz, 0, "{name}: nothing is used at λ_max");
        for step in &path.steps {
            assert_eq!(step.status, Status::Converged, "{name} at {}", step.lambda);
            assert_eq!(step.model.lambda, step.lambda);
            let alone = problem.clone().with_lambda(Lambda::Value(step.lambda)).unwrap().fit().unwrap();
            let (warm, cold) = (step.certificate.objective, alone.certificate.objective);
            assert!((warm - cold).abs() <= 1e-6 * cold.abs(), "{name} at {}: {warm} {cold}", step.lambda);
        }
    }
}

#[test]
fn a_warm_start_is_never_worse() {
    let tight = Settings { tolerance: 1e-9, ..Settings::default() };
    for (name, problem) in problems().into_iter().take(4) {
        let at = |share| problem.clone().with_lambda(Lambda::OfMax(share)).unwrap();
        let before = Run::new(&at(0.12), tight.clone()).fit().unwrap();
        let goal = at(0.1);
        let cold = Run::new(&goal, tight.clone()).fit().unwrap();
        let warm = Run::new(&goal, tight.clone()).start(&before.point).fit().unwrap();
        let off = (warm.certificate.objective - cold.certificate.objective).abs();
        assert!(off <= 1e-9 * cold.certificate.objective.abs(), "{name}: {off}");
    }
}

/// Near the optimum F cannot tell steps apart; they must be taken all the same, down to what the gap can show.
#[test]
fn every_model_of_a_path_is_as_exact_as_numbers_are() {
    let data = read("../../examples/planted.svm", &ReadOptions::default()).unwrap();
    let problem = Problem::new(data, LossKind::Squared.build(1), &Terms::default()).unwrap();
    let settings = Settings { tolerance: 1e-11, ..Settings::default() };
    for step in Path::new(&problem).settings(settings).run().unwrap().steps {
        assert_eq!(step.status, Status::Converged, "at {}: {:?}", step.lambda, step.certificate);
    }
}

#[test]
fn models_are_measured_and_sparse() {
    let (_, problem) = problems().swap_remove(0);
    let test = rows(200, 30, sign);
    let path = Path::new(&problem).lambdas(tenth()).validate(&test).run().unwrap();
    for step in &path.steps {
        assert_eq!(step.test.as_ref().unwrap(), &step.model.evaluate(&test).unwrap());
        assert_eq!(step.model.nnz(), step.certificate.nnz);
    }
    assert!(path.steps[9].certificate.nnz > path.steps[1].certificate.nnz);
}

/// Stops after some fits.
struct After(usize);

impl Observer for After {
    fn step(&mut self, _: &Progress) -> Control {
        if self.0 == 0 { Control::Stop } else { Control::Continue }
    }

    fn end(&mut self, _: &Fit) {
        self.0 = self.0.saturating_sub(1);
    }
}

#[test]
fn a_stopped_path_keeps_what_it_has() {
    let (_, problem) = problems().swap_remove(0);
    let whole = Path::new(&problem).lambdas(tenth()).run().unwrap();
    // A tolerance that is not reached at once, so that the λ under way is cut off.
    let settings = Settings { tolerance: 0.0, epochs: 3, ..Settings::default() };
    let mut watcher = After(4);
    let path = Path::new(&problem).lambdas(tenth()).settings(settings).observe(&mut watcher).run().unwrap();
    assert!(path.stopped && path.steps.len() == 4);
    assert_eq!(path.steps[3].lambda, whole.steps[3].lambda);
    // A stop that comes as the λ under way converges ends the path too.
    let mut watcher = After(4);
    let path = Path::new(&problem).lambdas(tenth()).observe(&mut watcher).run().unwrap();
    assert!(path.stopped && path.steps.len() <= 5, "{}", path.steps.len());
    let found =
        at_most(&problem, 9, &Settings { tolerance: 0.0, epochs: 3, ..Settings::default() }, Some(&mut After(3)));
    let found = found.unwrap();
    assert!(found.fit.status == Status::Stopped && found.features <= 9);
}

#[test]
fn at_most_so_many_features() {
    for (name, problem) in problems() {
        let n_features = problem.n_features();
        for most in [0, 1, 2, 5, 9, n_features, 10 * n_features] {
            let found = at_most(&problem, most, &Settings::default(), None).unwrap();
            assert!(found.features <= most, "{name} {most}: {}", found.features);
            let mut used: Vec<u32> = found.fit.model.blocks.iter().flat_map(|block| block.indices.clone()).collect();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), found.features, "{name} {most}");
            assert_eq!(found.fit.model.lambda, found.lambda);
            assert_eq!(found.fit.status, Status::Converged, "{name} {most}");
            if most == 0 {
                assert!((found.lambda / problem.lambda_max() - 1.0).abs() < 1e-8, "{name}");
            } else if most < n_features / 3 {
                // Features come one by one here, so that the number itself is found.
                assert_eq!(found.features, most, "{name}");
            }
            let again = at_most(&problem, most, &Settings::default(), None).unwrap();
            assert_eq!((found.lambda, found.tried, &found.fit.model), (again.lambda, again.tried, &again.fit.model));
        }
    }
}

#[test]
fn features_that_come_together_are_left_out_together() {
    // Columns 0 and 1 are one column: with a little λ₂ both come or neither.
    let rows: Vec<Vec<(u32, f64)>> = (0..40)
        .map(|row| vec![(0, f64::from(row % 7) - 3.0), (1, f64::from(row % 7) - 3.0), (2, f64::from(row % 5) - 2.0)])
        .collect();
    let targets = (0..40).map(|row| f64::from(row % 7) + 0.3 * f64::from(row % 5)).collect();
    let data = Dataset::new(Matrix::from_rows(3, &rows), targets);
    let problem = Problem::new(data, LossKind::Squared.build(1), &Terms { l2: 0.1, ..Terms::default() }).unwrap();
    let found = at_most(&problem, 1, &Settings::default(), None).unwrap();
    assert_eq!(found.features, 0, "one of the two alone is no optimum");
}

#[test]
fn free_features_are_not_counted_away() {
    let mut weights = vec![1.0; 20];
    weights[3] = 0.0;
    weights[4] = 0.0;
    let terms = Terms { feature_weights: Some(weights), ..Terms::default() };
    let problem = Problem::new(rows(100, 20, sign), LossKind::Logistic.build(2), &terms).unwrap();
    let error = at_most(&problem, 1, &Settings::default(), None).unwrap_err().to_string();
    assert!(error.contains("nnz") && error.contains("2 features are used"), "{error}");
    assert_eq!(at_most(&problem, 4, &Settings::default(), None).unwrap().features, 4);
}

#[test]
fn folds_are_a_partition_with_every_class_in_its_share() {
    let mut weights = vec![1.0; 103];
    weights[..20].fill(0.0);
    for (kind, classes, data, row_weights) in [
        (LossKind::Logistic, 2, rows(103, 8, sign), None),
        (LossKind::Softmax, 3, rows(103, 8, third), None),
        (LossKind::Squared, 1, rows(103, 8, |score| score), None),
        (LossKind::Logistic, 2, rows(103, 8, sign), Some(weights)),
    ] {
        let labels = data.targets.clone();
        let terms = Terms { row_weights, ..Terms::default() };
        let problem = Problem::new(data, kind.build(classes), &terms).unwrap();
        let deal = |seed| {
            let lambdas = Lambdas::Given(vec![Lambda::OfMax(0.9)]);
            CrossValidation::new(&problem).folds(4).seed(seed).lambdas(lambdas).run().unwrap().fold
        };
        let fold = deal(1);
        assert_eq!(fold.len(), 103);
        let even = |of: &dyn Fn(usize) -> bool| {
            let mut sizes = [0; 4];
            (0..103).filter(|&row| of(row)).for_each(|row| sizes[fold[row] as usize] += 1);
            sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1
        };
        assert!(even(&|_| true), "folds are as large as each other");
        for &label in problem.labels() {
            assert!(even(&|row| labels[row] == label && problem.row_weight(row) > 0.0), "{kind:?} {label}");
        }
        assert_eq!(fold, deal(1));
        assert_ne!(fold, deal(2));
    }
}

#[test]
fn a_fold_is_a_fit_on_the_other_rows() {
    // The slow obvious twin: the training rows of a fold as a data set of their own.
    for (name, kind, classes, target) in [
        ("logistic", LossKind::Logistic, 2, sign as fn(f64) -> f64),
        ("poisson", LossKind::Poisson, 1, |score: f64| score.abs().round()),
    ] {
        let data = rows(90, 10, target);
        let problem = Problem::new(data.clone(), kind.build(classes), &Terms::default()).unwrap();
        let lambdas = Lambdas::Given(vec![Lambda::OfMax(0.3), Lambda::OfMax(0.05)]);
        let validated = CrossValidation::new(&problem).folds(3).lambdas(lambdas).run().unwrap();
        for fold in 0..3 {
            let part = |held: bool| {
                let chosen = (0..90).filter(|&row| (validated.fold[row] == fold) == held);
                let (mut entries, mut targets) = (Vec::new(), Vec::new());
                for row in chosen {
                    let mut entry = Vec::new();
                    data.matrix.for_each(row, |column, value| entry.push((column as u32, value)));
                    entries.push(entry);
                    targets.push(data.targets[row]);
                }
                Dataset::new(Matrix::from_rows(10, &entries), targets)
            };
            let (train, held) = (part(false), part(true));
            for scores in &validated.scores {
                let terms = Terms { lambda: Lambda::Value(scores.lambda), ..Terms::default() };
                let fit = Problem::new(train.clone(), kind.build(classes), &terms).unwrap().fit().unwrap();
                let metrics = fit.model.evaluate(&held).unwrap();
                let (loss, found) = (metrics.loss().unwrap(), metrics.score_name() == "accuracy");
                let score = scores.folds[fold as usize];
                assert!((score.loss - loss).abs() < 1e-3 * loss.abs(), "{name}: {} {loss}", score.loss);
                if found {
                    assert!((score.score.unwrap() - metrics.score()).abs() < 0.04, "{name}");
                }
            }
        }
    }
}

#[test]
fn held_out_rows_do_not_count_even_where_their_loss_is_infinite() {
    // A Poisson row far outside: e to its margin overflows as soon as the weight is above 0.36.
    let mut entries: Vec<Vec<(u32, f64)>> = (0..30).map(|row| vec![(0, f64::from(row % 4))]).collect();
    let mut targets: Vec<f64> = (0..30).map(|row| (1.2f64 * f64::from(row % 4)).exp().round()).collect();
    entries.push(vec![(0, 2000.0)]);
    targets.push(3.0);
    let all = Dataset::new(Matrix::from_rows(1, &entries), targets.clone());
    let rest = Dataset::new(Matrix::from_rows(1, &entries[..30]), targets[..30].to_vec());
    let terms = Terms { lambda: Lambda::Value(1e-3), ..Terms::default() };
    let held = Problem::new(all, LossKind::Poisson.build(1), &terms).unwrap().holding_out(&[30]).unwrap();
    let alone = Problem::new(rest, LossKind::Poisson.build(1), &terms).unwrap();
    assert!((held.lambda_max() / alone.lambda_max() - 1.0).abs() < 1e-12);
    let (held, alone) = (held.fit().unwrap(), alone.fit().unwrap());
    assert_eq!(held.status, Status::Converged);
    let off = (held.certificate.objective / alone.certificate.objective - 1.0).abs();
    assert!(off < 1e-6 && held.point.weights[0] > 0.4, "{off}");
}

#[test]
fn the_rules_by_hand() {
    //                  λ:   large                                    small
    let scores = [(0.70, 0.01), (0.50, 0.02), (0.42, 0.03), (0.40, 0.03), (0.41, 0.05)];
    assert_eq!(choose(&scores), (3, 2), "0.42 is within 0.40 + 0.03, 0.50 is not");
    assert_eq!(choose(&[(0.4, 0.0), (0.4, 0.0)]), (0, 0), "among equals the larger λ");
    assert_eq!(choose(&[(0.43, 0.01), (0.9, 0.01), (0.4, 0.03)]), (2, 0), "the largest λ, whatever lies between");
    assert_eq!(choose(&[(f64::INFINITY, f64::NAN), (0.5, 0.1), (f64::NAN, f64::NAN)]), (1, 1));
    assert_eq!(choose(&[(f64::NAN, 0.0), (0.5, 0.1)]), (1, 1));
}

#[test]
fn means_and_errors_are_those_of_the_folds() {
    let (_, problem) = problems().swap_remove(0);
    let validated = CrossValidation::new(&problem).lambdas(tenth()).run().unwrap();
    assert_eq!(validated.scores.len(), 10);
    for scores in &validated.scores {
        let losses: Vec<f64> = scores.folds.iter().map(|fold| fold.loss).collect();
        let mean = losses.iter().sum::<f64>() / 5.0;
        let deviation = (losses.iter().map(|loss| (loss - mean).powi(2)).sum::<f64>() / 4.0).sqrt();
        assert!((scores.mean - mean).abs() < 1e-15 && (scores.error - deviation / 5f64.sqrt()).abs() < 1e-15);
    }
    let (best, one_se) = (validated.chosen(Rule::Best), validated.chosen(Rule::OneSe));
    assert!(one_se.lambda >= best.lambda && one_se.mean <= best.mean + best.error);
    assert!(best.score.unwrap() > 0.7);
    let refit = validated.refit(&problem, &Settings::default(), Rule::OneSe).unwrap();
    assert_eq!((refit.status, refit.model.lambda), (Status::Converged, one_se.lambda));
    assert_eq!(
        refit.point,
        problem.clone().with_lambda(Lambda::Value(one_se.lambda)).unwrap().fit().unwrap().point,
        "the refit is a fit"
    );
}

#[test]
fn one_thread_or_two_the_same_bits() {
    for (name, problem) in problems() {
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let path = Path::new(&problem).lambdas(tenth()).run().unwrap();
                let validated = CrossValidation::new(&problem).folds(3).lambdas(tenth()).run().unwrap();
                let found = at_most(&problem, 4, &Settings::default(), None).unwrap();
                let models: Vec<_> = path.steps.into_iter().map(|step| step.model).collect();
                (models, validated.scores, found.lambda, found.fit.model)
            })
        };
        assert_eq!(with(1), with(2), "{name}");
    }
}

#[test]
fn what_cannot_be_dealt_is_refused() {
    let (_, problem) = problems().swap_remove(0);
    for folds in [0, 1, 201] {
        assert!(CrossValidation::new(&problem).folds(folds).run().unwrap_err().to_string().contains("folds"));
    }
    let mut targets = vec![1.0; 30];
    targets[7] = -1.0;
    let data = Dataset::new(rows(30, 4, |_| 1.0).matrix, targets);
    let lonely = Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).unwrap();
    let said = CrossValidation::new(&lonely).run().unwrap_err().to_string();
    assert!(said.contains("the label -1 is on one row"), "{said}");
    let weights: Vec<f64> = (0..200).map(|row| f64::from(u8::from(row < 3))).collect();
    let terms = Terms { row_weights: Some(weights), ..Terms::default() };
    let few = Problem::new(rows(200, 4, |score| score), LossKind::Squared.build(1), &terms).unwrap();
    assert!(CrossValidation::new(&few).run().is_err());
    assert!(CrossValidation::new(&few).folds(3).lambdas(tenth()).run().is_ok());
}

#[test]
fn a_stopped_validation_says_so() {
    let (_, problem) = problems().swap_remove(0);
    let heard = AtomicUsize::new(0);
    let watch = |progress: &obprox::cv::FoldProgress| {
        assert!(progress.done <= progress.lambdas && progress.fold < 5);
        if heard.fetch_add(1, Ordering::Relaxed) < 6 { Control::Continue } else { Control::Stop }
    };
    let settings = Settings { tolerance: 0.0, epochs: 3, ..Settings::default() };
    let validated = CrossValidation::new(&problem).settings(settings).lambdas(tenth()).watch(&watch).run().unwrap();
    assert!(validated.stopped && validated.scores.len() < 10);
}

#[test]
fn splits_of_the_caller_are_folds_too() {
    let (_, problem) = problems().swap_remove(0);
    let dealt = CrossValidation::new(&problem).folds(3).lambdas(tenth()).run().unwrap();
    let of = |held: bool, number: u32| {
        (0..200).filter(|&row| (dealt.fold[row as usize] == number) == held).collect::<Vec<u32>>()
    };
    let splits: Vec<Split> = (0..3).map(|number| Split { train: of(false, number), test: of(true, number) }).collect();
    let visits = AtomicUsize::new(0);
    let visit = |_: usize, _: usize, fit: &Fit| {
        visits.fetch_add(fit.certificate.nnz, Ordering::Relaxed);
    };
    let cv = CrossValidation::new(&problem).splits(splits.clone()).lambdas(tenth()).visit(&visit);
    let given = cv.run().unwrap();
    assert_eq!(given.scores, dealt.scores);
    assert!(given.fold.is_empty());
    let nnz: usize = given.scores.iter().flat_map(|scores| &scores.folds).map(|fold| fold.nnz).sum();
    assert_eq!(visits.into_inner(), nnz, "every fit was handed over");

    // A row that counts twice in the scores, and one that does not count.
    let mut weights = vec![1.0; 200];
    (weights[0], weights[1]) = (2.0, 0.0);
    let twice = |test: Vec<u32>| test.into_iter().flat_map(|row| vec![row; weights[row as usize] as usize]).collect();
    let doubled = splits.iter().map(|split| Split { test: twice(split.test.clone()), ..split.clone() }).collect();
    let run = |cv: CrossValidation| cv.lambdas(tenth()).run().unwrap().scores;
    let weighted = run(CrossValidation::new(&problem).splits(splits.clone()).score_weights(weights.clone()));
    for (a, b) in weighted.iter().zip(run(CrossValidation::new(&problem).splits(doubled))) {
        assert!((a.mean - b.mean).abs() < 1e-14 && (a.score.unwrap() - b.score.unwrap()).abs() < 1e-14);
    }

    let refused = |split: Split| CrossValidation::new(&problem).splits(vec![split]).run().unwrap_err().to_string();
    assert!(refused(Split { train: vec![0, 1], test: vec![] }).contains("no row to score on"));
    assert!(refused(Split { train: vec![0, 200], test: vec![1] }).contains("not below 200"));
    assert!(refused(Split { train: vec![5, 5], test: vec![1] }).contains("twice"));
    assert!(refused(Split { train: vec![5], test: vec![1] }).contains("no row to learn the label"));
}

#[test]
fn pairs_move_both_penalties() {
    let (_, problem) = problems().swap_remove(2);
    let pairs = vec![(0.1, 0.2), (0.01, 0.02), (0.0, 0.05)];
    let path = Path::new(&problem).lambdas(Lambdas::Pairs(pairs.clone())).run().unwrap();
    for (step, (lambda, l2)) in path.steps.iter().zip(pairs) {
        let alone = problem.clone().with_lambda(Lambda::Value(lambda)).unwrap().with_l2(l2).unwrap().fit().unwrap();
        assert_eq!((step.lambda, step.model.lambda, step.model.l2), (lambda, lambda, l2));
        assert!((step.certificate.objective - alone.certificate.objective).abs() < 1e-6);
    }
    assert!(Path::new(&problem).lambdas(Lambdas::Pairs(vec![])).run().is_err());
    assert!(Path::new(&problem).lambdas(Lambdas::Pairs(vec![(0.1, -1.0)])).run().is_err());
}

#[test]
fn lambda_over_the_total_weight_is_larger_in_a_fold() {
    let (_, problem) = problems().swap_remove(0);
    assert_eq!(problem.total_weight(), 200.0);
    let split = Split { train: (0..150).collect(), test: (150..200).collect() };
    let found = std::sync::Mutex::new(Vec::new());
    let visit = |_: usize, _: usize, fit: &Fit| found.lock().unwrap().push(fit.model.lambda);
    let lambdas = Lambdas::Pairs(vec![(0.03, 0.0)]);
    let cv = CrossValidation::new(&problem).splits(vec![split]).lambdas(lambdas).over_total().visit(&visit);
    let validated = cv.run().unwrap();
    assert_eq!(validated.scores[0].lambda, 0.03, "the one of all rows");
    assert!((found.into_inner().unwrap()[0] - 0.04).abs() < 1e-15);
}

#[test]
#[allow(clippy::print_stderr, reason = "what was skipped must be told")]
fn a_path_keeps_to_the_optimum_it_is_on() {
    let Some(directory) = std::env::var_os("OBPROX_DATA") else {
        eprintln!("skipped: OBPROX_DATA names no directory with a9a.xz");
        return;
    };
    // Features 72 to 77 are three pairs that add up to 1 in every row: with an intercept what one of a pair loses the other
    // can gain, and F stays the same.
    let data = read(std::path::Path::new(&directory).join("a9a.xz"), &ReadOptions::default()).unwrap();
    let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).unwrap();
    let steps = Path::new(&problem).run().unwrap().steps;
    let weights = |step: &obprox::path::Step| {
        let block = &step.model.blocks[0];
        let of = |j: u32| block.indices.iter().position(|&at| at == j).map_or(0.0, |at| block.values[at]);
        (71..77).map(of).collect::<Vec<f64>>()
    };
    for pair in steps.windows(2) {
        let (before, after) = (weights(&pair[0]), weights(&pair[1]));
        let jump = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(jump < 0.2, "{before:?}, then {after:?} at {}", pair[1].lambda);
    }
    assert!(weights(steps.last().unwrap()).iter().any(|x| x.abs() > 1.0), "they have something to say");
}

/// Between two λ the weights lie on the line between theirs, and nearer to the optimum there than either.
#[test]
fn weights_between_two_lambdas_are_near_the_optimum() {
    let data = rows(150, 20, |score| score);
    let problem = Problem::new(data, LossKind::Squared.build(1), &Terms::default()).unwrap();
    let steps = Path::new(&problem).run().unwrap();
    let (a, b) = (&steps.steps[30], &steps.steps[31]);
    assert_eq!(steps.blocks_at(a.lambda).unwrap(), a.model.blocks);
    let middle = (a.lambda + b.lambda) / 2.0;
    let blocks = steps.blocks_at(middle).unwrap();
    let exact = problem.clone().with_lambda(Lambda::Value(middle)).unwrap().fit().unwrap().model;
    let weights = |block: &Block| {
        let mut all = vec![0.0; 20];
        block.indices.iter().zip(&block.values).for_each(|(&at, &value)| all[at as usize] = value);
        all
    };
    let distance = |blocks: &[Block]| {
        let pairs = weights(&blocks[0]).into_iter().zip(weights(&exact.blocks[0]));
        pairs.map(|(found, exact)| (found - exact).abs()).fold(0.0, f64::max)
    };
    assert!(distance(&blocks) < 0.2 * distance(&a.model.blocks).min(distance(&b.model.blocks)));
    let beyond = steps.blocks_at(2.0 * problem.lambda_max()).unwrap_err().to_string();
    assert!(beyond.contains("the path goes from"), "{beyond}");
}
