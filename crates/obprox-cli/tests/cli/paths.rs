//! Many λ: `path`, `cv` and `fit --nnz`.

use serde_json::Value;

use crate::workshop::{Workshop, rows};

/// What rounding alone decides, gaps and KKT distances next to nothing, is not what these pictures are about.
fn masked(shown: &str) -> String {
    let tiny = |word: &str| word.trim_end_matches([',', ')']).parse::<f64>().is_ok_and(|value| value.abs() < 1e-8);
    let sized_by_them = |line: &str| line.contains(" gap") || line.starts_with('─');
    let mask = |line: &str| match sized_by_them(line) || line.split_whitespace().any(|word| word != "0" && tiny(word)) {
        true => {
            let words = line.split_whitespace().map(|word| if tiny(word) { "…" } else { word });
            words.map(|word| if word.starts_with('─') { "───" } else { word }).collect::<Vec<_>>().join(" ")
        }
        false => line.to_owned(),
    };
    shown.lines().map(|line| mask(line) + "\n").collect()
}

#[test]
fn path_shows_a_table_and_curves() {
    let shop = Workshop::with_data();
    let mut all = shop.transcript("path train.svm --test train.svm --lambdas 6 --ratio 0.01 --tol 1e-9");
    all += &shop.transcript("path train.svm --at 0.5max,0.1max,1/N --tol 1e-9");
    insta::assert_snapshot!(masked(&all));
}

#[test]
fn a_long_path_is_sampled_and_kept_whole() {
    let shop = Workshop::with_data();
    let shown = shop.ok("path train.svm --test train.svm --out path.json --plot path.svg");
    assert!(shown.contains("16 of 100 λ are shown"), "{shown}");
    assert!(shown.contains("path written to path.json\nplot written to path.svg\n"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80) && !shown.contains('\x1b'), "{shown}");
    // 16 rows and the header.
    let rows = shown.lines().filter(|line| line.split_whitespace().count() == 7).count();
    assert!(rows == 17, "{rows}\n{shown}");

    let path: Value = serde_json::from_str(&shop.read("path.json")).unwrap();
    assert_eq!((&path["format"], &path["stopped"]), (&"obprox-path".into(), &false.into()));
    let steps = path["path"].as_array().unwrap();
    assert_eq!(steps.len(), 100);
    assert_eq!(steps[0]["nnz"], 0);
    assert!((steps[0]["lambda_ratio"].as_f64().unwrap() - 1.0).abs() < 1e-11);
    for step in steps {
        assert!(step["relative_gap"].as_f64().unwrap() <= 1e-6, "{step}");
        assert_eq!(step["blocks"][0]["indices"].as_array().unwrap().len() as u64, step["nnz"].as_u64().unwrap());
    }
    let svg = shop.read("path.svg");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("accuracy on the test data"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");

    // A path at λ is a fit at λ.
    let lambda = &steps[60]["lambda"];
    shop.ok(&format!("fit train.svm --lambda {lambda} --out model.json --quiet"));
    let model: Value = serde_json::from_str(&shop.read("model.json")).unwrap();
    let (warm, cold) = (steps[60]["F"].as_f64().unwrap(), model["certificate"]["F"].as_f64().unwrap());
    assert!((warm - cold).abs() <= 1e-6 * cold);
}

#[test]
fn path_files_by_their_ending() {
    let shop = Workshop::new();
    shop.write("real.svm", rows(60, 5, |score| score.to_string()));
    shop.write(
        "three.svm",
        rows(90, 5, |score| if score.abs() < 1.0 { "0" } else { "7" }.to_owned() + if score > 1.0 { "0" } else { "" }),
    );
    let output = shop.run("path real.svm --loss squared --lambdas 5 --out path.csv --quiet");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    let csv = shop.read("path.csv");
    assert!(csv.starts_with("lambda,lambda_ratio,status,F,f,l1,nnz,gap,"), "{csv}");
    assert_eq!(csv.lines().count(), 6);
    assert!(csv.lines().all(|line| line.split(',').count() == 17));
    shop.ok("path three.svm --loss softmax --lambdas 5 --plot three.svg --test three.svm");
    // One λ, and a plot of it: nothing to draw, and no failure.
    shop.ok("path real.svm --loss squared --at max --plot one.svg --out one.json");
    shop.ok("path real.svm --loss squared --at 0 --plot zero.svg");
    assert!(["three.svg", "one.svg", "zero.svg"].iter().all(|name| !shop.read(name).contains("NaN")));
}

#[test]
fn cv_chooses_and_trains() {
    let shop = Workshop::with_data();
    let line =
        "cv train.svm --lambdas 12 --ratio 0.01 --tol 1e-9 --test train.svm --out model.json --scores scores.csv";
    let mut all = shop.transcript(line);
    all += &shop.transcript("cv train.svm --lambdas 12 --ratio 0.01 --tol 1e-9 --rule 1se --folds 3 --seed 4");
    insta::assert_snapshot!(masked(&all));
    let scores = shop.read("scores.csv");
    assert!(scores.starts_with("lambda,mean,standard_error,score,fold_1,nnz_1,"), "{scores}");
    assert_eq!(scores.lines().count(), 13);

    // The model is what fit gives at the λ that was chosen.
    let model: Value = serde_json::from_str(&shop.read("model.json")).unwrap();
    shop.ok(&format!("fit train.svm --lambda {} --tol 1e-9 --out fit.json --quiet", model["lambda"]));
    assert_eq!(shop.read("fit.json"), shop.read("model.json"));
    let best = scores.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let best = best.min_by(|a, b| a[1].parse::<f64>().unwrap().total_cmp(&b[1].parse().unwrap())).unwrap();
    assert_eq!(best[0].parse::<f64>().unwrap(), model["lambda"].as_f64().unwrap());
}

#[test]
fn cv_does_not_depend_on_threads() {
    let shop = Workshop::with_data();
    for threads in [1, 2] {
        let flags = format!("--lambdas 20 --threads {threads} --out {threads}.json --scores {threads}.csv");
        let output = shop.run(&format!("cv train.svm {flags} --log {threads}.jsonl --quiet"));
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
    }
    assert_eq!(shop.read("1.json"), shop.read("2.json"));
    assert_eq!(shop.read("1.csv"), shop.read("2.csv"));
    assert!(shop.read("1.jsonl").lines().last().unwrap().contains("\"status\":\"converged\""));
    let piped = shop.run_with_input("cv - --lambdas 20 --out -", &shop.read("train.svm"));
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), shop.read("1.json"));
}

#[test]
fn fit_finds_so_many_features() {
    let shop = Workshop::with_data();
    let shown = shop.transcript("fit train.svm --nnz 3 --tol 1e-9 --test train.svm --out model.json --log run.jsonl");
    assert!(shown.lines().skip(1).all(|line| line.chars().count() <= 80), "{shown}");
    insta::assert_snapshot!(masked(&shown));
    let model: Value = serde_json::from_str(&shop.read("model.json")).unwrap();
    assert_eq!(model["indices"], serde_json::json!([0, 1, 2]), "the three that were planted");
    let log = shop.read("run.jsonl");
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["event"], &events[0]["lambda"]), (&"start".into(), &model["lambda"]));
    assert_eq!((&events[1]["event"], &events[events.len() - 1]["nnz"]), (&"epoch".into(), &3.into()));
    for most in [0, 1, 12, 1_000_000] {
        shop.ok(&format!("fit train.svm --nnz {most} --out model.json --quiet"));
        let model: Value = serde_json::from_str(&shop.read("model.json")).unwrap();
        assert!(model["indices"].as_array().unwrap().len() <= most);
    }
}

#[test]
fn the_plot_starts_its_axes_at_zero_and_not_below() {
    let shop = Workshop::with_data();
    shop.ok("path train.svm --test train.svm --lambdas 8 --plot path.svg --quiet");
    let svg = shop.read("path.svg");
    assert!(svg.contains(">Nonzeros along the path<") && svg.contains("accuracy on the test data"), "{svg}");
    assert!(svg.contains(">0<") && !svg.contains(">-0<") && !svg.contains(">−0<"));
}
