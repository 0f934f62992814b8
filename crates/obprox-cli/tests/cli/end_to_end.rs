//! From file to model to prediction.

use std::process::Stdio;

use crate::workshop::{Workshop, rows};

#[test]
fn fit_predict_eval() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out model.json --quiet");
    let predicted = shop.ok("predict model.json train.svm");
    let labels: Vec<&str> = predicted.lines().collect();
    assert_eq!(labels.len(), 120);
    assert!(labels.iter().all(|label| ["-1", "1"].contains(label)));
    let truth = shop.read("train.svm");
    let right = truth.lines().zip(&labels).filter(|(row, label)| row.split(' ').next() == Some(*label)).count();
    let report: serde_json::Value = serde_json::from_str(&shop.ok("eval model.json train.svm --json")).unwrap();
    assert_eq!(report["accuracy"].as_f64().unwrap(), right as f64 / 120.0);
    assert!(right > 100, "{right}");

    assert_eq!(shop.ok("predict model.json train.svm --out labels.txt"), "");
    assert_eq!(shop.read("labels.txt"), predicted);
    let probabilities = shop.ok("predict model.json train.svm --proba");
    assert!(probabilities.starts_with("labels -1 1\n"));
    for (line, label) in probabilities.lines().skip(1).zip(&labels) {
        let numbers: Vec<f64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
        assert!((numbers[1] + numbers[2] - 1.0).abs() < 1e-12 && line.starts_with(&format!("{label} ")));
        assert_eq!(numbers[2] > 0.5, *label == "1");
    }
}

#[test]
fn the_model_file_keeps_its_contract() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --lambda 0.1max --out model.json --quiet");
    let model: serde_json::Value = serde_json::from_str(&shop.read("model.json")).unwrap();
    assert_eq!((&model["format"], &model["version"]), (&"obprox-linear".into(), &1.into()));
    assert_eq!((&model["loss"], &model["n_features"]), (&"logistic".into(), &12.into()));
    assert_eq!(model["labels"], serde_json::json!([-1.0, 1.0]));
    assert!(["lambda", "intercept"].iter().all(|key| model[key].is_f64()));
    assert!(["F", "gap", "kkt"].iter().all(|key| model["certificate"][key].is_f64()));
    let (indices, values) = (model["indices"].as_array().unwrap(), model["values"].as_array().unwrap());
    assert!(indices.len() == values.len() && indices.iter().all(|index| index.as_u64().unwrap() < 12));
    assert!(values.iter().all(|value| value.as_f64().unwrap() != 0.0));
}

#[test]
fn labels_come_back_as_they_were() {
    let shop = Workshop::new();
    shop.write("train.svm", rows(80, 4, |score| if score > 0.0 { "2.5".into() } else { "+7".into() }));
    shop.ok("fit train.svm --out model.json");
    let predicted = shop.ok("predict model.json train.svm");
    assert!(predicted.lines().all(|label| ["2.5", "7"].contains(&label)));
}

#[test]
fn one_seed_one_model_whatever_the_threads() {
    let shop = Workshop::with_data();
    for solver in ["prox-sg", "rda", "prox-svrg", "obproxsg", "obproxsg-plus"] {
        shop.ok(&format!("fit train.svm --solver {solver} --seed 5 --threads 1 --epochs 8 --out one.json"));
        shop.ok(&format!("fit train.svm --solver {solver} --seed 5 --threads 2 --epochs 8 --out two.json"));
        assert_eq!(shop.read("one.json"), shop.read("two.json"), "{solver}");
        shop.ok(&format!("fit train.svm --solver {solver} --seed 6 --threads 2 --epochs 8 --out three.json"));
        assert_ne!(shop.read("one.json"), shop.read("three.json"), "{solver}");
    }
}

#[test]
fn standard_input_and_output_are_files_too() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out model.json --quiet");
    let piped = shop.run_with_input("fit - --out -", &shop.read("train.svm"));
    assert!(piped.status.success());
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), shop.read("model.json"));
    let predicted = shop.run_with_input("predict model.json -", &shop.read("train.svm"));
    assert_eq!(String::from_utf8(predicted.stdout).unwrap(), shop.ok("predict model.json train.svm"));
}

#[test]
fn csv_and_libsvm_give_the_same_model() {
    let shop = Workshop::new();
    shop.write("a.csv", "y,a,b\n1,0.5,0\n-1,0,2\n1,3,1\n-1,-1,1\n");
    shop.write("a.svm", "1 1:0.5\n-1 2:2\n1 1:3 2:1\n-1 1:-1 2:1\n");
    shop.ok("fit a.csv --label y --out csv.json --lambda 0.01");
    shop.ok("fit a.svm --out svm.json --lambda 0.01");
    let (csv, svm) = (shop.read("csv.json"), shop.read("svm.json"));
    // Dense rows and sparse ones are summed in another order, so the last digits differ.
    let values = |model: &str| -> Vec<f64> {
        let model: serde_json::Value = serde_json::from_str(model).unwrap();
        model["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    assert!(values(&csv).iter().zip(values(&svm)).all(|(a, b)| (a - b).abs() < 1e-12));
    assert!(csv.contains("\"a\"") && !svm.contains("\"names\""));

    shop.write("new.csv", "a,b\n0.5,0\n0,2\n");
    assert_eq!(shop.ok("predict csv.json new.csv --label none"), "1\n-1\n");
    shop.write("turned.csv", "b,a\n0,0.5\n2,0\n");
    assert_eq!(shop.ok("predict csv.json turned.csv"), "1\n-1\n");
    shop.write("plain.csv", "0.5,0\n0,2\n");
    assert_eq!(shop.ok("predict csv.json plain.csv --label none"), "1\n-1\n");
}

#[test]
fn more_and_fewer_columns_than_the_model_are_fine() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out model.json --quiet");
    shop.write("narrow.svm", "1 1:1\n");
    shop.write("wide.svm", "1 1:1 4294967295:5\n");
    let narrow = shop.run("predict model.json narrow.svm");
    let wide = shop.run("predict model.json wide.svm");
    assert!(narrow.status.success() && wide.status.success());
    assert_eq!(narrow.stdout, wide.stdout);
    assert!(narrow.stderr.is_empty());
    assert!(String::from_utf8(wide.stderr).unwrap().contains("4294967295 columns, the model knows the first 12"));
}

#[test]
fn a_softmax_model_has_a_block_a_class() {
    let shop = Workshop::new();
    let class = |score: f64| {
        if score < -1.0 {
            "1"
        } else if score < 1.0 {
            "2"
        } else {
            "5"
        }
        .to_owned()
    };
    shop.write("three.svm", rows(90, 6, class));
    shop.ok("fit three.svm --loss softmax --out model.json");
    let model: serde_json::Value = serde_json::from_str(&shop.read("model.json")).unwrap();
    let labels: Vec<f64> = model["classes"].as_array().unwrap().iter().map(|c| c["label"].as_f64().unwrap()).collect();
    assert_eq!(labels, [1.0, 2.0, 5.0]);
    assert!(shop.ok("predict model.json three.svm --proba").starts_with("labels 1 2 5\n"));
}

#[test]
fn liblinear_files_have_a_line_a_feature() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out model.txt --format liblinear");
    let model = shop.read("model.txt");
    assert!(model.starts_with("solver_type L1R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 12\nbias 1\nw\n"), "{model}");
    assert_eq!(model.lines().count(), 6 + 12 + 1);
}

#[test]
fn weights_change_the_model() {
    let shop = Workshop::with_data();
    shop.write("rows.txt", (0..120).map(|row| format!("{}\n", 1 + row % 3)).collect::<String>());
    shop.write("features.txt", "0\n".to_owned() + &"1\n".repeat(11));
    shop.ok("fit train.svm --lambda 0.5max --epochs 3 --out plain.json");
    let plain = shop.read("plain.json");
    for flags in [
        "--weights rows.txt",
        "--feature-weights features.txt",
        "--class-weight -1:2,1:1",
        "--standardize",
        "--no-intercept",
    ] {
        shop.ok(&format!("fit train.svm --lambda 0.5max --epochs 3 --out model.json {flags}"));
        assert_ne!(shop.read("model.json"), plain, "{flags}");
    }
}

#[test]
fn quiet_is_quiet() {
    let shop = Workshop::with_data();
    let output = shop.run("fit train.svm --quiet --checkpoint state --resume --out model.json");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let error = shop.run("fit nowhere.svm --quiet");
    assert!(!error.stderr.is_empty());
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out model.json --quiet");
    shop.write("many.svm", shop.read("train.svm").repeat(2000));
    let mut child =
        shop.command("predict model.json many.svm").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}

#[test]
fn a_diverged_run_says_so_and_keeps_the_last_good_weights() {
    let shop = Workshop::new();
    shop.write("real.svm", rows(60, 5, |score| (1e3 * score).to_string()));
    let output = shop.run("fit real.svm --loss squared --solver prox-sg --step 1e6 --out model.json --log run.jsonl");
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("diverged") && stderr.lines().count() == 1, "{stderr}");
    assert!(shop.read("run.jsonl").lines().last().unwrap().contains("\"status\":\"diverged\""));
    shop.ok("predict model.json real.svm");
}

#[test]
fn flags_without_meaning_for_the_solver_are_noted_and_passed_over() {
    let shop = Workshop::with_data();
    let output = shop.run("fit train.svm --solver prox-sg --gamma 1 --np 3 --epochs 2 --out with.json");
    assert!(output.status.success());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("--np has no effect on the solver prox-sg") && stderr.contains("--gamma"), "{stderr}");
    shop.ok("fit train.svm --solver prox-sg --epochs 2 --out without.json");
    assert_eq!(shop.read("with.json"), shop.read("without.json"));
}

#[test]
fn no_input_is_ever_overwritten() {
    let shop = Workshop::with_data();
    shop.write("weights.txt", "1\n".repeat(120));
    for line in [
        "fit train.svm --weights weights.txt --out weights.txt",
        "cv train.svm --weights weights.txt --scores weights.txt",
        "path train.svm --weights weights.txt --out weights.csv --plot weights.csv",
        "compare train.svm --weights weights.csv --output weights.csv",
    ] {
        shop.write("weights.csv", "1\n".repeat(120));
        let output = shop.run(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(shop.read("weights.txt").starts_with("1\n") && shop.read("weights.csv").starts_with("1\n"), "{line}");
    }
}
