//! Models: saved and loaded to the bit, predicting on other widths, refused when damaged, in original units.

mod common;

use common::random::{LOSSES, Recipe, Storage};
use common::{close, run};
use obprox::data::{Dataset, Matrix, Synth, Task as Planted};
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::{ClassWeights, Error, Fit, Lambda, MethodKind, Model, Problem, Settings, Terms};

fn fit(recipe: &Recipe) -> (Problem, Fit) {
    let problem = recipe.build().0;
    let fit = run(
        &problem,
        &Settings { epochs: 8, batch: Batch::Rows(5), ..Settings::with_method(MethodKind::ObproxSgPlus) },
    );
    assert!(fit.model.nnz() > 0);
    (problem, fit)
}

fn of_loss(loss: LossKind) -> (Problem, Fit) {
    fit(&Recipe { loss, ..Recipe::default() })
}

/// The margins of the problem's own rows, straight from its point.
fn margins(problem: &Problem, fit: &Fit) -> Vec<f64> {
    let outputs = problem.outputs();
    let mut margins = Vec::new();
    for row in 0..problem.n_rows() {
        let mut sums = fit.point.intercept.clone();
        problem.matrix().for_each(row, |column, value| {
            sums.iter_mut().enumerate().for_each(|(k, sum)| *sum += value * fit.point.weights[column * outputs + k]);
        });
        margins.extend(sums);
    }
    margins
}

#[test]
fn a_saved_model_is_the_same_model() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model.json");
    for loss in LOSSES {
        let (problem, fit) = of_loss(loss);
        fit.model.save(&path).unwrap();
        let loaded = Model::load(&path).unwrap();
        assert_eq!(loaded, fit.model, "{loss:?}");
        let bits = |model: &Model| model.margins(problem.matrix()).iter().map(|m| m.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&loaded), bits(&fit.model));
        assert_eq!(loaded.to_json(), fit.model.to_json());
        assert_eq!(loaded.certificate, Some(fit.certificate));
    }
}

#[test]
fn the_file_is_the_documented_one() {
    let (problem, fit) = of_loss(LossKind::Logistic);
    let json: serde_json::Value = serde_json::from_str(&fit.model.to_json()).unwrap();
    assert_eq!(json["format"], "obprox-linear");
    assert_eq!(json["version"], 1);
    assert_eq!(json["loss"], "logistic");
    assert_eq!(json["n_features"], 12);
    assert_eq!(json["labels"], serde_json::json!([2.0, 5.0]));
    assert_eq!(json["lambda"], problem.lambda());
    assert_eq!(json["intercept"], fit.point.intercept[0]);
    let indices: Vec<usize> = (0..12).filter(|&at| fit.point.weights[at] != 0.0).collect();
    assert_eq!(json["indices"], serde_json::json!(indices), "counted from 0");
    assert_eq!(json["values"][0], fit.point.weights[indices[0]]);
    assert_eq!(json["certificate"]["F"], fit.certificate.objective);
    assert_eq!(json["certificate"]["gap"], fit.certificate.gap.unwrap());

    let (_, fit) = of_loss(LossKind::Softmax);
    let json: serde_json::Value = serde_json::from_str(&fit.model.to_json()).unwrap();
    let labels: Vec<f64> = (0..3).map(|class| json["classes"][class]["label"].as_f64().unwrap()).collect();
    assert_eq!(labels, [-1.0, 0.0, 4.0]);
    assert_eq!(json["classes"][1]["intercept"], fit.point.intercept[1]);
    assert!(json.get("indices").is_none());
}

#[test]
fn predictions_follow_the_margins() {
    for loss in LOSSES {
        let (problem, fit) = of_loss(loss);
        let margins = margins(&problem, &fit);
        let found = fit.model.margins(problem.matrix());
        assert!(found.iter().zip(&margins).all(|(a, b)| close(*a, *b, 1e-14)), "{loss:?}");
        let predicted = fit.model.predict(problem.matrix());
        for (row, predicted) in predicted.into_iter().enumerate() {
            let m = &found[row * problem.outputs()..(row + 1) * problem.outputs()];
            let expected = match loss {
                LossKind::Logistic | LossKind::SquaredHinge => {
                    if m[0] > 0.0 {
                        5.0
                    } else {
                        2.0
                    }
                }
                LossKind::Softmax => {
                    let best = (0..3).max_by(|&a, &b| m[a].total_cmp(&m[b])).unwrap();
                    [-1.0, 0.0, 4.0][best]
                }
                LossKind::Squared | LossKind::Huber(_) => m[0],
                _ => m[0].exp(),
            };
            assert_eq!(predicted, expected, "{loss:?}");
        }
    }
}

#[test]
fn probabilities_are_those_of_the_loss() {
    let (problem, fit) = of_loss(LossKind::Logistic);
    let margins = fit.model.margins(problem.matrix());
    for (pair, m) in fit.model.probabilities(problem.matrix()).unwrap().chunks_exact(2).zip(margins) {
        assert!(close(1.0 / (1.0 + (-m).exp()), pair[1], 1e-15) && close(1.0, pair[0] + pair[1], 1e-15));
    }
    let (problem, fit) = of_loss(LossKind::Softmax);
    let margins = fit.model.margins(problem.matrix());
    let all = fit.model.probabilities(problem.matrix()).unwrap();
    for (row, m) in all.chunks_exact(3).zip(margins.chunks_exact(3)) {
        let sum: f64 = m.iter().map(|m| m.exp()).sum();
        assert!(row.iter().zip(m).all(|(p, m)| close(m.exp() / sum, *p, 1e-14)));
    }
    let (problem, fit) = of_loss(LossKind::SquaredHinge);
    assert!(fit.model.probabilities(problem.matrix()).unwrap_err().to_string().contains("no probabilities"));
}

#[test]
fn data_may_have_more_or_fewer_columns_than_the_model() {
    for loss in [LossKind::Squared, LossKind::Softmax] {
        let (_, fit) = of_loss(loss);
        let rows = vec![vec![(0, 1.0), (1, -2.0)], vec![], vec![(2, 3.0)]];
        let narrow = Matrix::from_rows(3, &rows);
        let mut wider = rows.clone();
        wider[1].push((40, 9.0));
        let expected = fit.model.margins(&narrow.clone().widened(12));
        assert_eq!(fit.model.margins(&narrow), expected);
        assert_eq!(fit.model.margins(&Matrix::from_rows(50, &wider)), expected, "unknown columns count for nothing");
    }
}

#[test]
fn evaluation_knows_the_labels() {
    let (problem, fit) = of_loss(LossKind::Logistic);
    let labels: Vec<f64> = problem.targets().iter().map(|t| if *t > 0.0 { 5.0 } else { 2.0 }).collect();
    let score = fit.model.score(&Dataset::new(problem.matrix().clone(), labels.clone())).unwrap();
    let right = fit.model.predict(problem.matrix()).iter().zip(&labels).filter(|(a, b)| a == b).count();
    assert_eq!(score, right as f64 / labels.len() as f64);
    let foreign = Dataset::new(problem.matrix().clone(), vec![1.0; labels.len()]);
    let message = fit.model.score(&foreign).unwrap_err().to_string();
    assert!(message.contains("no label 1") && message.contains("2, 5"), "{message}");
}

// ---- damaged files ------------------------------------------------------------------------------------------------

fn refusal(json: &serde_json::Value) -> String {
    let error: Error = Model::from_json(&json.to_string(), "model.json").unwrap_err();
    assert!(error.is_input() && error.to_string().starts_with("model.json"), "{error}");
    error.to_string()
}

#[test]
fn truncated_and_foreign_text_is_refused() {
    let text = of_loss(LossKind::Logistic).1.model.to_json();
    for share in 0..30 {
        let cut = text.len() * share / 30;
        let error = Model::from_json(&text[..cut], "model.json").unwrap_err().to_string();
        assert!(error.starts_with("model.json:") && error.contains("not an obprox model"), "{error}");
    }
    for text in ["", "[]", "{}", "solver_type L1R_LR\n", "null"] {
        assert!(Model::from_json(text, "model.json").is_err(), "{text}");
    }
    assert!(Model::load("/no/such/model.json").unwrap_err().to_string().contains("cannot read"));
}

#[test]
fn every_field_is_checked() {
    let good: serde_json::Value = serde_json::from_str(&of_loss(LossKind::Logistic).1.model.to_json()).unwrap();
    let with = |field: &str, value: serde_json::Value| {
        let mut json = good.clone();
        json[field] = value;
        refusal(&json)
    };
    use serde_json::json;
    assert!(with("format", json!("other")).contains("the format is other version 1"));
    assert!(with("version", json!(2)).contains("version 2"));
    assert!(with("indices", json!([0])).contains("1 indices"));
    with("labels", json!([1.0]));
    with("labels", json!([5.0, 2.0]));
    with("labels", json!([2.0, 2.0]));
    with("values", json!(["a"]));
    with("values", json!(null));
    with("intercept", json!(null));
    with("task", json!("classes"));
    with("loss", json!("softmax"));
    with("n_features", json!(1));
    let count = good["indices"].as_array().unwrap().len();
    with("indices", json!(vec![0; count]));
    with("indices", json!((0..count as u64).map(|at| at + 1_000_000).collect::<Vec<_>>()));

    let mut softmax: serde_json::Value = serde_json::from_str(&of_loss(LossKind::Softmax).1.model.to_json()).unwrap();
    for classes in [json!([]), json!([softmax["classes"][0]]), json!(null)] {
        softmax["classes"] = classes;
        refusal(&softmax);
        softmax["labels"] = json!([0.0, 1.0]);
        refusal(&softmax);
    }
}

// ---- LIBLINEAR ----------------------------------------------------------------------------------------------------

/// LIBLINEAR's own reader and `predict`, as its manual describes them.
struct Liblinear {
    labels: Vec<f64>,
    weights: Vec<Vec<f64>>,
}

impl Liblinear {
    fn read(text: &str) -> Self {
        let mut lines = text.lines();
        let (mut labels, mut classes, mut features) = (Vec::new(), 0, 0);
        for line in lines.by_ref().take_while(|line| *line != "w") {
            let (key, value) = line.split_once(' ').unwrap();
            match key {
                "nr_class" => classes = value.parse().unwrap(),
                "label" => labels = value.split(' ').map(|label| label.parse().unwrap()).collect(),
                "nr_feature" => features = value.parse().unwrap(),
                "bias" => assert_eq!(value, "1"),
                _ => assert_eq!(key, "solver_type"),
            }
        }
        let weights: Vec<Vec<f64>> =
            lines.map(|line| line.split_whitespace().map(|weight| weight.parse().unwrap()).collect()).collect();
        // One column of weights for two classes, else one a class; the bias is the last feature.
        let width = if classes == 2 { 1 } else { classes };
        assert_eq!(weights.len(), features + 1);
        assert!(weights.iter().all(|line| line.len() == width), "{width} weights a line");
        Self { labels, weights }
    }

    fn predict(&self, matrix: &Matrix, row: usize) -> f64 {
        let mut scores = self.weights.last().unwrap().clone();
        matrix.for_each(row, |column, value| {
            scores.iter_mut().zip(&self.weights[column]).for_each(|(score, weight)| *score += value * weight);
        });
        match (&self.labels[..], &scores[..]) {
            ([], [value]) => *value,
            ([first, second], [score]) => {
                if *score > 0.0 {
                    *first
                } else {
                    *second
                }
            }
            (labels, scores) => labels[(0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap()],
        }
    }
}

fn assert_liblinear_agrees(problem: &Problem, model: &Model) {
    let theirs = Liblinear::read(&model.to_liblinear().unwrap());
    for (row, ours) in model.predict(problem.matrix()).into_iter().enumerate() {
        assert!(close(ours, theirs.predict(problem.matrix(), row), 1e-13), "{}", model.loss);
    }
}

#[test]
fn liblinear_would_predict_the_same() {
    for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Squared, LossKind::Softmax] {
        let (problem, fit) = of_loss(loss);
        assert_liblinear_agrees(&problem, &fit.model);
    }
    let (_, poisson) = of_loss(LossKind::Poisson);
    assert!(poisson.model.to_liblinear().unwrap_err().to_string().contains("no model for the poisson loss"));
}

/// Of two classes LIBLINEAR stores one column of weights, also where ours came from a softmax with two.
#[test]
fn a_softmax_of_two_classes_is_one_column_for_liblinear() {
    let planted = Synth { rows: 200, cols: 10, task: Planted::Classes(2), ..Synth::default() }.generate().unwrap();
    let problem = Problem::new(planted.dataset, LossKind::Softmax.build(2), &Terms::default()).unwrap();
    assert_liblinear_agrees(&problem, &run(&problem, &Settings::default()).model);
}

// ---- units and weights --------------------------------------------------------------------------------------------

#[test]
fn a_standardised_fit_predicts_the_same_in_original_units() {
    for storage in [Storage::Ones, Storage::Double, Storage::DenseSingle, Storage::DenseDouble] {
        for (loss, intercept) in [(LossKind::Logistic, true), (LossKind::Logistic, false), (LossKind::Softmax, true)] {
            let original = Recipe { loss, storage, intercept, ..Recipe::default() }.build().0;
            let class = |target: &f64| original.labels()[if *target < 0.0 { 0 } else { *target as usize }];
            let labels = original.targets().iter().map(class).collect();
            let data = Dataset::new(original.matrix().clone(), labels);
            let terms = Terms { lambda: Lambda::OfMax(0.1), standardize: true, intercept, ..Terms::default() };
            let problem = Problem::new(data, loss.build(3), &terms).unwrap();
            let fit =
                run(&problem, &Settings { batch: Batch::Rows(5), ..Settings::with_method(MethodKind::ObproxSgPlus) });
            assert!(fit.model.nnz() > 0);
            let here = fit.model.margins(original.matrix());
            for (there, here) in margins(&problem, &fit).into_iter().zip(here) {
                assert!(close(there, here, 1e-12), "{storage:?} {loss:?} {intercept}: {there} and {here}");
            }
            assert_ne!(problem.scaling().unwrap().scale, vec![1.0; 12]);
        }
    }
}

#[test]
fn class_weights_are_row_weights_by_class() {
    let planted = Synth { rows: 90, cols: 10, task: Planted::Classes(3), ..Synth::default() }.generate().unwrap();
    let data = planted.dataset;
    let count = |class: f64| data.targets.iter().filter(|&&target| target == class).count() as f64;
    let problem = |terms: Terms| Problem::new(data.clone(), LossKind::Softmax.build(3), &terms).unwrap();
    let by_class = |weight: &dyn Fn(f64) -> f64| {
        let row_weights = Some(data.targets.iter().map(|&target| weight(target)).collect());
        problem(Terms { row_weights, ..Terms::default() })
    };
    let given = |weights| problem(Terms { class_weights: Some(weights), ..Terms::default() });
    let same = |a: &Problem, b: &Problem| {
        assert!((0..90).all(|row| close(a.row_weight(row), b.row_weight(row), 1e-14)));
        let mean = (0..90).map(|row| a.row_weight(row)).sum::<f64>() / 90.0;
        assert!(close(1.0, mean, 1e-14));
    };
    same(&given(ClassWeights::Balanced), &by_class(&|class| 1.0 / count(class)));
    same(&given(ClassWeights::Given(vec![(2.0, 5.0)])), &by_class(&|class| if class == 2.0 { 5.0 } else { 1.0 }));
    let both = problem(Terms {
        class_weights: Some(ClassWeights::Given(vec![(0.0, 3.0)])),
        row_weights: Some((0..90).map(|row| f64::from(row % 5)).collect()),
        ..Terms::default()
    });
    let product = Terms {
        row_weights: Some(
            (0..90).map(|row| f64::from(row % 5) * if data.targets[row as usize] == 0.0 { 3.0 } else { 1.0 }).collect(),
        ),
        ..Terms::default()
    };
    same(&both, &problem(product));

    // Balanced: every class weighs the same in all, whatever its rows weigh.
    let row_weights: Vec<f64> = (0..90).map(|row| f64::from(row % 5)).collect();
    let total = row_weights.iter().sum();
    let terms =
        Terms { class_weights: Some(ClassWeights::Balanced), row_weights: Some(row_weights), ..Terms::default() };
    let balanced = problem(terms);
    assert!(close(balanced.total_weight(), total, 1e-12));
    for class in [0.0, 1.0, 2.0] {
        let of_class = (0..90).filter(|&row| data.targets[row] == class).map(|row| balanced.row_weight(row));
        assert!(close(of_class.sum(), 30.0, 1e-12));
    }
    let without: Vec<f64> = data.targets.iter().map(|&target| if target == 1.0 { 0.0 } else { 1.0 }).collect();
    let terms = Terms { row_weights: Some(without), ..Terms::default() };
    let said = Problem::new(data.clone(), LossKind::Softmax.build(3), &terms).unwrap_err().to_string();
    assert!(said.contains("every row of the class 1 has weight 0"), "{said}");

    let refused = |class_weights, loss: LossKind| {
        let terms = Terms { class_weights: Some(class_weights), ..Terms::default() };
        Problem::new(data.clone(), loss.build(3), &terms).unwrap_err().to_string()
    };
    assert!(refused(ClassWeights::Given(vec![(7.0, 1.0)]), LossKind::Softmax).contains("no class 7"));
    assert!(refused(ClassWeights::Balanced, LossKind::Squared).contains("no classes"));
}
