//! What people read at the end of a run.

use crate::workshop::{Workshop, rows};

/// Without randomness, so that the figures are those of the formulas.
const EXACT: &str = "--solver obproxsg-plus --batch N --step 0.5 --schedule constant --epochs 4";

#[test]
fn fit_says_what_it_did() {
    let shop = Workshop::with_data();
    let line = format!("fit train.svm --lambda 0.1max --test train.svm --out model.json --log run.jsonl {EXACT}");
    let shown = shop.transcript(&line);
    insta::assert_snapshot!(shown);
}

#[test]
fn names_of_csv_columns_reach_the_table() {
    let shop = Workshop::new();
    let mut table = String::from("age,income,approved\n");
    (0..40).for_each(|row| table += &format!("{},{},{}\n", row % 7, row % 5, u8::from(row % 7 > 3)));
    shop.write("table.csv", table);
    let shown = shop.transcript(&format!("fit table.csv --label approved --lambda 0.05max {EXACT}"));
    insta::assert_snapshot!(shown);
}

#[test]
fn regression_and_softmax_have_their_own_figures() {
    let shop = Workshop::new();
    shop.write("real.svm", rows(60, 5, |score| score.to_string()));
    shop.write(
        "three.svm",
        rows(60, 5, |score| if score.abs() < 1.0 { "0" } else { "7" }.to_owned() + if score > 1.0 { "0" } else { "" }),
    );
    let mut all = shop.transcript(
        "fit real.svm --loss squared --solver prox-sg --step auto --batch N --tol 1e-3 --epochs 4000 --test real.svm",
    );
    all +=
        &shop.transcript(&format!("fit three.svm --loss softmax --l2 0.01 --test three.svm --out three.json {EXACT}"));
    all += &shop.transcript("eval three.json three.svm");
    insta::assert_snapshot!(all);
}

#[test]
fn eval_shows_the_confusion_and_speaks_json() {
    let shop = Workshop::with_data();
    shop.ok(&format!("fit train.svm --out model.json --quiet {EXACT}"));
    insta::assert_snapshot!(shop.transcript("eval model.json train.svm"));
    let json: serde_json::Value = serde_json::from_str(&shop.ok("eval model.json train.svm --json")).unwrap();
    assert_eq!((&json["task"], &json["rows"]), (&"classification".into(), &120.into()));
    let (accuracy, confusion) = (json["accuracy"].as_f64().unwrap(), &json["confusion"]);
    let right = confusion[0][0].as_f64().unwrap() + confusion[1][1].as_f64().unwrap();
    assert_eq!(accuracy, right / 120.0);
}

#[test]
fn compare_has_a_row_a_solver() {
    let shop = Workshop::with_data();
    let shown = shop.ok("compare train.svm --test train.svm --output table.csv --epochs 4");
    let (csv, solvers) = (shop.read("table.csv"), ["prox-sg", "rda", "prox-svrg", "obproxsg", "obproxsg-plus"]);
    for solver in solvers {
        assert!(shown.contains(solver) && csv.contains(&format!("\n{solver},max_epochs,")), "{solver}");
    }
    assert!(csv.starts_with("solver,status,F,f,density,nnz,gap,"));
    assert!(csv.contains("\nauto,converged,"), "{csv}");
    assert_eq!(csv.lines().count(), 7);
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    assert!(shown.contains('*'));

    shop.ok("compare train.svm --solvers rda,prox-sg --output table.md --epochs 2 --quiet");
    let markdown = shop.read("table.md");
    assert!(markdown.starts_with("| solver") && markdown.lines().count() == 4, "{markdown}");
    shop.ok("compare train.svm --solvers rda --output table.json --epochs 2 --np 1 --gamma 3 --quiet");
    let json: serde_json::Value = serde_json::from_str(&shop.read("table.json")).unwrap();
    assert_eq!(json[0]["solver"], "rda");
    assert!(json[0]["F"].is_f64() && json[0]["seconds"].is_f64() && json[0]["test_score"].is_null());
}

#[test]
fn the_default_solver_says_that_the_optimum_is_certified() {
    let shop = Workshop::with_data();
    let shown = shop.ok("fit train.svm --lambda 0.1max");
    assert!(shown.contains("logistic loss, auto, ") && shown.contains("within the tolerance of 1e-6"), "{shown}");
    let short = shop.ok("fit train.svm --lambda 0.1max --epochs 1 --tol 1e-30");
    assert!(short.contains("the optimum is not certified"), "{short}");
}

#[test]
fn nothing_is_wider_than_a_terminal() {
    let shop = Workshop::with_data();
    for line in ["fit train.svm --test train.svm", "fit train.svm --l2 0.1", "data inspect train.svm"] {
        let shown = shop.ok(line);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(!shown.contains('\x1b'), "no colour in a pipe");
    }
}

#[test]
fn steps_that_are_too_long_are_hinted_at() {
    let shop = Workshop::new();
    shop.write("real.svm", rows(60, 5, |score| score.to_string()));
    let long = shop.ok("fit real.svm --loss squared --solver prox-sg --batch N --step 9 --epochs 5");
    assert!(long.contains("F is larger than at x = 0: try a smaller --step"), "{long}");
    assert!(
        !shop
            .ok("fit real.svm --loss squared --solver prox-sg --batch N --step auto --epochs 5")
            .contains("larger than")
    );
}

#[test]
fn features_of_a_libsvm_file_can_have_names() {
    let shop = Workshop::with_data();
    shop.write("names.txt", (1..=13).map(|feature| format!("word{feature}\n")).collect::<String>());
    let shown = shop.ok("fit train.svm --names names.txt --out model.json --nnz 3");
    assert!(shown.contains("word1"), "{shown}");
    let model: serde_json::Value = serde_json::from_str(&shop.read("model.json")).unwrap();
    // The thirteenth has a name and no values.
    assert_eq!(model["n_features"], 13);
    assert!(model["names"].to_string().contains("word1"), "{model}");
}
