//! Run logs, and the pages, tables and pictures that are made of them.

use obprox_report::charts::charts;
use obprox_report::log::read;
use obprox_report::{Report, page, table, terminal};

use crate::Reader;
use crate::mutate::Draw;

const FIT: &str = r#"{"event":"start","version":"0.1.0","command":["obprox","fit","train.svm"],"data":"train.svm","rows":120,"n_features":12,"loss":"logistic","labels":[-1.0,1.0],"lambda":0.01,"lambda_max":0.2,"lambda_ratio":0.05,"l2":0.0,"solver":"obproxsg","seed":0}
{"event":"epoch","epoch":1,"iterations":12,"phase":"prox","step_size":1.0,"F":0.6,"f":0.5,"l1":3.0,"nnz":12,"density":1.0,"gap":0.2,"relative_gap":0.3,"kkt":0.1,"seconds":0.01}
{"event":"epoch","epoch":2,"iterations":24,"phase":"orthant","step_size":0.9,"F":0.5,"f":0.4,"l1":2.0,"nnz":6,"density":0.5,"gap":null,"kkt":0.05,"seconds":0.02}
{"event":"end","status":"max_epochs","epochs":2,"F":0.5,"f":0.4,"l1":2.0,"nnz":6,"density":0.5,"gap":0.1,"relative_gap":0.2,"kkt":0.05,"seconds":0.02,"score":0.9,"largest_weights":[{"feature":3,"name":"</script><b>","value":0.5},{"feature":0,"value":-0.25}]}
"#;

const PATH: &str = r#"{"event":"start","data":"train.svm","rows":120,"n_features":12,"loss":"squared","lambda_max":0.2,"solver":"auto"}
{"event":"lambda","lambda":0.2,"lambda_ratio":1.0,"status":"converged","F":1.0,"f":1.0,"l1":0.0,"nnz":0,"density":0.0,"gap":0.0,"kkt":0.0,"epochs":1,"seconds":0.001,"score":0.1}
{"event":"lambda","lambda":0.02,"lambda_ratio":0.1,"status":"converged","F":0.5,"f":0.4,"l1":5.0,"nnz":3,"density":0.25,"gap":1e-9,"kkt":1e-9,"epochs":3,"seconds":0.002,"score":0.8}
{"event":"curves","lambdas":[0.2,0.02],"curves":[{"feature":1,"values":[0.0,0.7]},{"feature":4,"name":"a b","values":[0.0,-0.2]}],"of":2}
{"event":"end","status":"converged","seconds":0.003}
"#;

const NETWORK: &str = r#"{"event":"start","data":"images","solver":"obproxsg-plus","lambda":1e-4,"network":"small-cnn","width":0.5,"parameters":1000,"images":64,"test_images":32,"classes":["ant","bee"],"target_density":0.1}
{"event":"epoch","epoch":1,"phase":"orthant","density":0.5,"nnz":500,"batch_loss":0.7,"lambda":0.01,"seconds":1}
{"event":"epoch","epoch":2,"phase":"hold","density":0.1,"nnz":100,"batch_loss":0.5,"lambda":0,"score":0.75,"seconds":2}
{"event":"end","status":"max_epochs","F":0.4,"f":0.3,"density":0.1,"nnz":100,"score":0.75,"layers":[{"name":"conv1.weight","size":600,"nnz":100},{"name":"fc.weight","size":400,"nnz":0}],"confusion":[[12,4],[4,12]],"phase_seconds":[["orthant",1.5],["hold",0.5]],"seconds":2}
"#;

pub fn logs() -> Reader {
    let seeds = [FIT, PATH, NETWORK].map(|text| text.as_bytes().to_vec()).to_vec();
    Reader::new("log", seeds, |bytes| {
        let Ok(runs) = read(bytes, "run.jsonl") else { return false };
        let report = Report::new(runs);
        let page = page::html(&report);
        assert!(page.ends_with("</html>") && page.matches("<script").count() == 3);
        table::tables(&report).iter().for_each(|table| drop((table.to_csv(), table.to_markdown())));
        report.problems.iter().for_each(|problem| drop(terminal::curves(problem)));
        // Pictures take long, so only some are drawn.
        if Draw::of_file(bytes).below(16) == 0 {
            let svgs = report.problems.iter().flat_map(charts).map(|chart| chart.figure().to_svg());
            svgs.for_each(|svg| assert!(svg.contains("</svg>") && !svg.contains("<script")));
        }
        true
    })
}
