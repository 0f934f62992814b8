//! Pages, pictures and tables, from runs and from their logs.

use crate::workshop::{Workshop, rows};

/// Two runs of one problem; the times are nobody's.
const LOG: &str = r#"{"event":"start","data":"a.svm","rows":9,"n_features":4,"loss":"logistic","labels":[0,1],"lambda":0.1,"lambda_max":0.5,"lambda_ratio":0.2,"solver":"obproxsg","command":["obprox","fit","a.svm"]}
{"event":"epoch","epoch":1,"phase":"prox","F":0.7,"f":0.6,"nnz":4,"density":1.0,"gap":0.4,"relative_gap":0.6,"kkt":0.2,"seconds":0.25}
{"event":"epoch","epoch":2,"phase":"prox","F":0.6,"f":0.5,"nnz":3,"density":0.8,"gap":0.3,"relative_gap":0.5,"kkt":0.1,"seconds":0.5}
{"event":"epoch","epoch":3,"phase":"orthant","F":0.55,"f":0.5,"nnz":2,"density":0.6,"gap":0.1,"relative_gap":0.2,"kkt":0.1,"seconds":0.75}
{"event":"end","status":"max_epochs","epochs":3,"F":0.55,"f":0.5,"nnz":2,"density":0.6,"gap":0.1,"relative_gap":0.2,"kkt":0.1,"seconds":0.75,"score":0.75}
{"event":"start","data":"a.svm","rows":9,"n_features":4,"loss":"logistic","labels":[0,1],"lambda":0.1,"lambda_max":0.5,"lambda_ratio":0.2,"solver":"auto"}
{"event":"epoch","epoch":1,"phase":"newton","F":0.51,"f":0.45,"nnz":3,"density":0.8,"gap":0.01,"relative_gap":0.02,"kkt":0.01,"seconds":1.0}
{"event":"epoch","epoch":2,"phase":"newton","F":0.5,"f":0.45,"nnz":3,"density":0.8,"gap":1e-7,"relative_gap":2e-7,"kkt":1e-7,"seconds":1.5}
"#;

#[test]
fn logs_are_a_table_and_curves() {
    let shop = Workshop::new();
    shop.write("runs.jsonl", LOG);
    let mut all = shop.transcript("report runs.jsonl");
    shop.write("one.jsonl", LOG.lines().take(5).collect::<Vec<_>>().join("\n"));
    shop.write("cut.jsonl", LOG.lines().nth(5).unwrap().to_owned() + "\n{\"event\":\"epo");
    all += &shop.transcript("report one.jsonl cut.jsonl");
    insta::assert_snapshot!(all);
    assert!(all.lines().filter(|line| !line.starts_with("note")).all(|line| line.chars().count() <= 80), "{all}");
    assert_eq!(shop.listing().len(), 3, "nothing is written that was not asked for");
    let piped = shop.run_with_input("report -", LOG);
    assert!(piped.status.success());
    assert!(String::from_utf8(piped.stdout).unwrap().contains("certified by auto"));
}

#[test]
fn a_run_and_its_log_have_the_same_page() {
    let shop = Workshop::with_data();
    let lines = [
        "fit train.svm --test train.svm --solver obproxsg --np 2 --no 2 --epochs 8",
        "compare train.svm --solvers rda,auto --epochs 4",
        "path train.svm --test train.svm --lambdas 8",
        "cv train.svm --lambdas 8 --rule 1se",
    ];
    for line in lines {
        let said = shop.ok(&format!("{line} --log run.jsonl --report run.html"));
        assert!(said.contains("log written to run.jsonl\nreport written to run.html\n"), "{said}");
        shop.ok("report run.jsonl --out log.html --quiet");
        let page = shop.read("run.html");
        assert!(page == shop.read("log.html"), "{line}");
        assert!(page.len() < 400_000 && page.contains(&format!("obprox {line} --log run.jsonl --report run.html")));
    }
}

#[test]
fn charts_and_tables_fill_directories() {
    let shop = Workshop::with_data();
    let said = shop.ok("compare train.svm --test train.svm --solvers obproxsg,auto --epochs 6 --plots p/q --tables t");
    assert!(said.contains("plots written to p/q") && said.contains("\ntables written to t\n"), "{said}");
    let charts = "density-epochs density-seconds gap-epochs objective-epochs objective-seconds runtimes weights";
    for chart in charts.split(' ') {
        assert!(shop.read(&format!("p/q/{chart}.svg")).starts_with("<svg "), "{chart}");
        #[cfg(feature = "png")]
        assert!(std::fs::read(shop.path(&format!("p/q/{chart}.png"))).unwrap().starts_with(b"\x89PNG"), "{chart}");
    }
    for table in ["runs", "certificates", "epochs", "weights", "settings"] {
        assert!(shop.read(&format!("t/{table}.csv")).lines().count() > 2, "{table}");
        assert!(shop.read(&format!("t/{table}.md")).starts_with("| "), "{table}");
    }
    // Several problems do not share files.
    shop.ok("fit train.svm --lambda 0.5max --log a.jsonl --quiet");
    shop.ok("path train.svm --lambdas 4 --log b.jsonl --quiet");
    shop.ok("report a.jsonl b.jsonl --plots both --tables both --quiet");
    assert!(shop.exists("both/1-objective-epochs.svg") && shop.exists("both/2-path-weights.svg"));
    assert!(shop.exists("both/path.csv"));
}

#[test]
fn names_and_weights_reach_the_page() {
    let shop = Workshop::new();
    let mut table = String::from("age,<i>income</i>,approved\n");
    (0..40).for_each(|row| table += &format!("{},{},{}\n", row % 7, row % 5, u8::from(row % 7 > row % 5)));
    shop.write("table.csv", table);
    shop.ok("fit table.csv --label approved --lambda 0.01max --report report.html --quiet");
    let page = shop.read("report.html");
    assert!(page.contains("&lt;i&gt;income&lt;/i&gt;") && !page.contains("<i>income"));
    shop.write("three.svm", rows(60, 5, |score| ((score > 1.0) as u8 + (score > -1.0) as u8).to_string()));
    shop.ok("fit three.svm --loss softmax --report softmax.html --quiet");
    assert!(shop.read("softmax.html").contains("feature 1, 2"), "the class goes with the feature");
}

#[test]
fn a_run_that_diverged_says_so() {
    let shop = Workshop::new();
    shop.write("real.svm", rows(60, 5, |score| (1e3 * score).to_string()));
    let line = "fit real.svm --loss squared --solver prox-sg --batch N --step 1e9 --schedule constant --epochs 60";
    let output = shop.run(&format!("{line} --report report.html --log run.jsonl"));
    assert_eq!(output.status.code(), Some(1));
    let page = shop.read("report.html");
    assert!(page.contains("the run diverged") && !page.contains("NaN") && !page.contains(">inf"), "it says so");
}

#[test]
fn the_page_of_a_run_has_the_figures_people_quote() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --lambda 0.1max --test train.svm --log run.jsonl --report page.html");
    let page = shop.read("page.html");
    assert!(page.contains("Deviance explained") && page.contains("Test AUC") && page.contains("calibration error 0."));
    let log = shop.read("run.jsonl");
    let end: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let share = end["deviance_explained"].as_f64().unwrap();
    // The same rows, and no weights.
    assert!((share - end["test"]["deviance_explained"].as_f64().unwrap()).abs() < 1e-9, "{end}");
    assert_eq!(end["test"]["calibration"]["groups"].as_array().unwrap().len(), 10);
}
