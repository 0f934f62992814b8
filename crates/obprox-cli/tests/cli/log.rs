//! `run.jsonl` keeps its contract.

use serde_json::Value;

use crate::workshop::{Workshop, rows};

fn events(shop: &Workshop) -> Vec<Value> {
    shop.read("run.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn it_has_a_start_an_event_an_epoch_and_an_end() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --test train.svm --solver obproxsg-plus --epochs 5 --np 2 --lambda 0.1max --log run.jsonl --quiet");
    let events = events(&shop);
    assert_eq!(events.len(), 7);

    let start = &events[0];
    assert_eq!(start["event"], "start");
    assert_eq!((&start["data"], &start["rows"], &start["n_features"]), (&"train.svm".into(), &120.into(), &12.into()));
    assert_eq!((&start["solver"], &start["np"], &start["no"]), (&"obproxsg-plus".into(), &2.into(), &"inf".into()));
    let ratio = start["lambda"].as_f64().unwrap() / start["lambda_max"].as_f64().unwrap();
    assert!((ratio - 0.1).abs() < 1e-15 && start["lambda_ratio"].as_f64() == Some(ratio));
    let settings = "version nnz loss l2 intercept standardize epochs batch step schedule decay switch tol seed threads \
                    eval_every";
    assert!(settings.split_whitespace().all(|key| !start[key].is_null()), "{start}");
    // What belongs to other methods is no setting of this one.
    assert!(start["gamma"].is_null() && start["average"].is_null(), "{start}");

    for (epoch, event) in (1..).zip(&events[1..6]) {
        assert_eq!((&event["event"], &event["epoch"]), (&"epoch".into(), &epoch.into()));
        assert_eq!(event["phase"], if epoch <= 2 { "prox" } else { "orthant" });
        let figures = ["iterations", "step_size", "F", "f", "l1", "nnz", "density", "gap", "kkt", "seconds", "score"];
        assert!(figures.iter().all(|key| event[key].is_number()), "{event}");
    }
    let end = &events[6];
    assert_eq!((&end["event"], &end["status"]), (&"end".into(), &"max_epochs".into()));
    let figures = "F f l1 nnz density gap relative_gap kkt gradient_mapping epochs iterations seconds score";
    assert!(figures.split_whitespace().all(|key| end[key].is_number()), "{end}");
    assert_eq!(end["F"], events[5]["F"]);
    assert!(end["test"]["accuracy"].is_number());
}

#[test]
fn figures_that_were_not_computed_are_null() {
    let shop = Workshop::new();
    shop.write("counts.svm", rows(50, 3, |score| score.abs().round().to_string()));
    shop.ok("fit counts.svm --loss poisson --step 1e-3 --epochs 4 --eval-every 3 --log run.jsonl --quiet");
    let evaluated: Vec<bool> = events(&shop)[1..5].iter().map(|event| event["F"].is_number()).collect();
    assert_eq!(evaluated, [false, false, true, true]);
    assert!(events(&shop)[1].as_object().unwrap().contains_key("gap"));
}

#[test]
fn convergence_is_a_status() {
    let shop = Workshop::with_data();
    let line = "fit train.svm --lambda 0.5max --batch N --step auto --schedule constant --tol 1e-4 --epochs 20000";
    let shown = shop.ok(&format!("{line} --solver prox-sg --log run.jsonl"));
    assert!(shown.contains("converged after"), "{shown}");
    assert_eq!(events(&shop).last().unwrap()["status"], "converged");
}
