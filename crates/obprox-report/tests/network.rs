//! What is told of runs that train networks.

use obprox::Status;
use obprox_report::charts::charts;
use obprox_report::log::{Ending, read};
use obprox_report::{Report, page, table};

const START: &str = r#"{"event":"start","data":"images","solver":"obproxsg-plus","lambda":1e-4,"network":"small-cnn","width":0.5,"parameters":1000,"images":64,"test_images":32,"classes":["ant","bee"],"target_density":0.1}"#;
const EPOCHS: &str = r#"{"event":"epoch","epoch":1,"phase":"orthant","density":0.5,"nnz":500,"batch_loss":0.7,"lambda":0.01,"seconds":1}
{"event":"epoch","epoch":2,"phase":"hold","density":0.1,"nnz":100,"batch_loss":0.5,"lambda":0,"score":0.75,"seconds":2}"#;
const END: &str = r#"{"event":"end","status":"max_epochs","F":0.4,"f":0.3,"density":0.1,"nnz":100,"score":0.75,"layers":[{"name":"conv1.weight","size":600,"nnz":100},{"name":"fc.weight","size":400,"nnz":0}],"confusion":[[12,4],[4,12]],"phase_seconds":[["orthant",1.5],["hold",0.5]],"seconds":2}"#;

fn report(parts: &[&str]) -> Report {
    Report::new(read((parts.join("\n") + "\n").as_bytes(), "run.jsonl").unwrap())
}

#[test]
fn a_network_is_told_as_one() {
    let report = report(&[START, EPOCHS, END]);
    let problem = &report.problems[0];
    assert_eq!(problem.summary(), "small-cnn, width 0.5, 1000 parameters, 64 images, 32 to test on, 2 classes");
    assert!(problem.optimum.is_none() && problem.score_word() == "accuracy");
    let kinds: Vec<&str> = charts(problem).iter().map(|chart| chart.kind).collect();
    for kind in ["accuracy-epochs", "loss-epochs", "lambda-epochs", "layers", "phase-times", "density-epochs"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    assert!(report.notices().iter().any(|notice| notice.contains("nothing is left of fc.weight")));
    assert_eq!(
        table::confusion(&report.problems).to_csv(),
        "data,run,class,right,ant,bee\nimages,obproxsg-plus,ant,0.75,12,4\nimages,obproxsg-plus,bee,0.75,4,12\n"
    );
    assert!(table::layers(&report.problems).to_csv().contains("conv1.weight,600,100,0.16666666666666666"));
    let page = page::html(&report);
    assert!(page.contains("target 10.00 %") && page.contains("zeros held") && !page.contains("? rows"));
}

#[test]
fn networks_are_compared_whatever_their_lambda() {
    let other = START.replace("1e-4", "1e-3").replace("0.1}", "0.2}");
    let linear = r#"{"event":"start","data":"a.svm","rows":3,"n_features":2,"solver":"auto","lambda":0.1}"#;
    let report = report(&[START, EPOCHS, END, &other, EPOCHS, END, linear]);
    let names: Vec<&str> = report.problems[0].entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["obproxsg-plus, density 0.1", "obproxsg-plus, density 0.2"]);
    assert_eq!(report.problems.len(), 2);
    assert!(page::html(&report).contains("3 rows × 2 features"));
}

#[test]
fn a_density_that_was_missed_is_said() {
    let end =
        END.replace("max_epochs", "missed").replace(r#""seconds":2}"#, r#""seconds":2,"missed":"20 % are left"}"#);
    let report = report(&[START, EPOCHS, &end]);
    assert_eq!(report.problems[0].entries[0].run.ending(), Ending::With(Status::Missed));
    assert!(report.notices().iter().any(|notice| notice.contains("not reached: 20 % are left")));
}

#[test]
fn the_first_logs_of_networks_are_read() {
    let old = r#"{"event":"start","data":"images","network":{"kind":"resnet18","base":16,"channels":3,"classes":10},"weight_decay":0.5,"images":64}"#;
    let epoch = r#"{"event":"epoch","epoch":1,"phase":"hold","density":0.5,"accuracy":0.25}"#;
    let report = report(&[old, epoch]);
    let run = &report.problems[0].entries[0].run;
    assert_eq!(
        (run.start.network.network.as_deref(), run.start.l2, run.score()),
        (Some("resnet18"), Some(0.5), Some(0.25))
    );
}
