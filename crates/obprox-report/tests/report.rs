//! From logs to what people see.

use std::fmt::Write;

use obprox_report::chart::{Axis, Bars, Chart, Colour, Dot, Figure, Panel, Series};
use obprox_report::charts::{Named, charts};
use obprox_report::log::{Run, read};
use obprox_report::{Report, page, table, terminal};

/// The log of a run whose F falls by a factor an epoch, from 1 towards 0.25.
fn log(solver: &str, epochs: usize, rate: f64, phase: impl Fn(usize) -> &'static str) -> String {
    let mut text = format!(
        "{{\"event\":\"start\",\"data\":\"train.svm\",\"rows\":120,\"n_features\":12,\"loss\":\"logistic\",\
         \"labels\":[-1.0,1.0],\"lambda\":0.01,\"lambda_max\":0.2,\"lambda_ratio\":0.05,\"l2\":0.0,\
         \"solver\":\"{solver}\",\"seed\":0,\"command\":[\"obprox\",\"fit\",\"train.svm\",\"--solver\",\"{solver}\"]}}\n"
    );
    let figures = |epoch: usize| {
        // Not `powi`, whose last bit depends on the optimiser.
        let above = (0..epoch).fold(0.75, |above, _| above * rate);
        let density = 0.25 + 0.75 / epoch as f64;
        format!(
            "\"F\":{},\"f\":0.2,\"l1\":3.0,\"nnz\":{},\"density\":{density},\"gap\":{},\"relative_gap\":{},\"kkt\":{above}",
            0.25 + above,
            (12.0 * density) as u64,
            2.0 * above,
            8.0 * above
        )
    };
    for epoch in 1..=epochs {
        let (phase, time) = (phase(epoch), 0.01 * epoch as f64);
        writeln!(
            text,
            "{{\"event\":\"epoch\",\"epoch\":{epoch},\"phase\":\"{phase}\",{},\"seconds\":{time}}}",
            figures(epoch)
        )
        .unwrap();
    }
    let status = if rate < 0.1 { "converged" } else { "max_epochs" };
    let weights =
        r#"[{"feature":3,"name":"</script><script>alert(1)</script>","value":0.5},{"feature":0,"value":-0.25}]"#;
    writeln!(
        text,
        "{{\"event\":\"end\",\"status\":\"{status}\",\"epochs\":{epochs},{},\"seconds\":{},\"score\":0.9,\
         \"largest_weights\":{weights}}}",
        figures(epochs),
        0.01 * epochs as f64
    )
    .unwrap();
    text
}

#[test]
fn the_stages_of_auto_are_in_table_and_page() {
    let round = |epoch: usize, stage: &str, steps: usize| {
        format!(
            "{{\"event\":\"epoch\",\"epoch\":{epoch},\"iterations\":{steps},\"phase\":\"newton\",\"stage\":\"{stage}\",\
             \"at_lambda\":0.0{epoch},\"columns\":700,\"working_set\":{},\"F\":0.5,\"f\":0.4,\"l1\":1.0,\"nnz\":5,\
             \"density\":0.1,\"gap\":0.01,\"relative_gap\":0.02,\"kkt\":0.1,\"seconds\":0.5}}\n",
            40 + epoch
        )
    };
    let text = log("auto", 1, 0.05, |_| "newton");
    let lines: Vec<&str> = text.lines().collect();
    let rounds = round(1, "identify", 3) + &round(2, "polish", 10);
    let report = report(&format!("{}\n{rounds}{}\n", lines[0], lines[2]));
    let table = table::rounds(&report.problems);
    assert_eq!(
        table.to_csv(),
        "data,solver,round,stage,at_lambda,columns,working_set,steps,nnz,F,relative_gap,seconds\n\
         train.svm,auto,1,identify,0.01,700,41,3,5,0.5,0.02,0.5\n\
         train.svm,auto,2,polish,0.02,700,42,7,5,0.5,0.02,0.5\n"
    );
    assert!(table::tables(&report).iter().any(|table| table.name == "rounds"));
    let page = page::html(&report);
    assert!(page.contains("<h3>Stages</h3>") && page.contains("identify") && page.contains("working set"));
    // Of two runs it says whose they are.
    let runs = format!("{0}\n{rounds}{1}\n{0}\n{rounds}{1}\n", lines[0], lines[2]);
    let two = table::rounds(&self::report(&runs).problems);
    assert_eq!((two.rows.len(), &two.header()[0][..], &table.header()[0][..]), (4, "solver", "round"));
    // Runs of other solvers have none.
    assert!(table::rounds(&self::report(&log("proxsg", 3, 0.8, |_| "prox")).problems).rows.is_empty());
}

/// Five epochs of Prox-SG, five of Orthant, and again; and a solver that certifies the optimum.
fn two() -> Report {
    let switching = log("obproxsg", 20, 0.8, |epoch| if (epoch - 1) % 10 < 5 { "prox" } else { "orthant" });
    report(&(switching + &log("auto", 8, 0.05, |_| "newton")))
}

fn report(text: &str) -> Report {
    Report::new(runs(text))
}

fn runs(text: &str) -> Vec<Run> {
    read(text.as_bytes(), "run.jsonl").unwrap()
}

fn chart(charts: &[Named], kind: &str) -> Chart {
    match &charts.iter().find(|chart| chart.kind == kind).unwrap_or_else(|| panic!("{kind}")).panel {
        Panel::Chart(chart) => (**chart).clone(),
        Panel::Bars(_) => panic!("{kind} has bars"),
    }
}

/// The page without what is the same on every page, and without pictures.
fn bare(page: &str) -> String {
    let mut text = page.to_owned();
    for (from, to) in [("<style>", "</style>"), ("<svg", "</svg>"), ("<script>", "</script>"), ("'sha256-", "='")] {
        while let Some(begin) = text.find(from) {
            let end = begin + text[begin..].find(to).expect("it ends") + to.len();
            text.replace_range(begin..end, "");
        }
    }
    text.replace("><", ">\n<")
}

#[test]
fn the_page() {
    insta::assert_snapshot!(bare(&page::html(&two())));
}

#[test]
fn curves_are_measured_from_the_certified_optimum() {
    let report = two();
    let problem = &report.problems[0];
    let optimum = problem.optimum.as_ref().unwrap();
    assert!(optimum.certified && optimum.run == 1 && (optimum.value - 0.25).abs() < 1e-9);
    assert!(problem.optimum_words().unwrap().contains("certified by auto"));
    let chart = chart(&charts(problem), "objective-epochs");
    assert_eq!(chart.series[0].points.len(), 20);
    for (at, &(epoch, above)) in chart.series[0].points.iter().enumerate() {
        assert_eq!(epoch, (at + 1) as f64);
        assert!((above / (0.75 * 0.8f64.powf(epoch)) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn switches_are_marked() {
    let report = two();
    let all = charts(&report.problems[0]);
    for kind in ["objective-epochs", "objective-seconds", "density-epochs", "density-seconds"] {
        let chart = chart(&all, kind);
        let per_epoch = if kind.ends_with("seconds") { 0.01 } else { 1.0 };
        let dots: Vec<(f64, bool)> =
            chart.series[0].dots.iter().map(|dot| ((dot.x / per_epoch).round(), dot.filled)).collect();
        assert_eq!(dots, [(5.0, true), (10.0, false), (15.0, true)], "{kind}");
        assert!(chart.series[1].dots.is_empty() && chart.bands.is_empty());
    }
    // A run by itself has its Orthant steps shaded.
    let alone = self::report(&log("obproxsg", 20, 0.8, |epoch| if (epoch - 1) % 10 < 5 { "prox" } else { "orthant" }));
    let bands: Vec<(f64, f64)> =
        chart(&charts(&alone.problems[0]), "density-epochs").bands.iter().map(|band| (band.from, band.to)).collect();
    assert_eq!(bands, [(5.0, 10.0), (15.0, 20.0)]);
}

#[test]
fn every_chart_is_a_picture() {
    for named in charts(&two().problems[0]) {
        let svg = named.figure().to_svg();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{}", named.name);
        assert!(!svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<script"), "{}", named.name);
        #[cfg(feature = "png")]
        assert!(named.figure().to_png().unwrap().starts_with(b"\x89PNG"), "{}", named.name);
    }
}

#[test]
fn a_picture_to_the_last_digit() {
    let points = [(0.0, 1.0), (1.0, 0.1), (2.0, f64::NAN), (3.0, 1e-4)];
    let chart = Chart::new("F − F* & <co>", Axis::linear("epoch"), Axis::log("F − F*"))
        .series(Series::line("a", points).dots([Dot { x: 1.0, y: 0.1, filled: true }]))
        .series(Series::step("b", [(0.0, 1.0), (2.0, 1e-2), (9.0, 5.0)]).dashed())
        .band(1.0, 2.0, "Orthant")
        .level(1e-3, "tolerance");
    let bars = Bars::new("Times").bar("a", 2.0, "2×", Colour::Palette(0)).bar("b\u{0}", -1.0, "−1×", Colour::Muted);
    insta::assert_snapshot!(Figure::new([chart.into(), bars.into()]).size(320, 200).to_svg());
}

#[test]
fn a_picture_without_data_is_a_picture() {
    let empty = Chart::new("", Axis::linear(""), Axis::log(""));
    let lost = empty.clone().series(Series::line("x", [(f64::NAN, 1.0), (1.0, -1.0)])).mark(f64::NAN, "nowhere");
    for chart in [empty, lost] {
        assert!(chart.is_empty());
        assert!(Figure::of(chart.clone()).to_svg().starts_with("<svg "));
        #[cfg(feature = "png")]
        assert!(Figure::of(chart).to_png().is_ok());
    }
    #[cfg(feature = "png")]
    assert!(Figure::new([]).to_png().is_err(), "nothing at all is none");
}

#[test]
fn names_cannot_become_code() {
    let evil = "</script><script>alert(1)</script>";
    let text = log("obproxsg", 5, 0.5, |_| "prox").replace("train.svm", &format!("{evil}<img src=x>"));
    let page = page::html(&report(&text.replace("\"obproxsg\"", &format!("\"{evil}\""))));
    assert_eq!(page.matches("<script").count(), 3, "the data, the library, the script");
    assert_eq!(page.matches("</script").count(), 3);
    assert!(!page.contains("<img") && !page.contains("alert(1)</script><"));
    assert!(page.contains("&lt;/script&gt;"));
}

#[test]
fn the_page_asks_for_nothing() {
    let page = page::html(&two());
    assert!(page.contains("default-src 'none'"));
    let outside = bare(&page);
    assert!(!outside.contains("http://") && !outside.contains("https://"), "{outside}");
    for word in ["src=", "@import", "url(", "<link"] {
        let own = page.replace("getComputedStyle", "");
        assert!(!own.contains(word), "{word}");
    }
}

#[test]
fn pages_stay_small() {
    assert!(page::html(&two()).len() < 250_000);
    let many: String = (0..24).map(|_| log("prox-sg", 3000, 0.999, |_| "prox")).collect();
    let size = page::html(&report(&many)).len();
    assert!(size < 1_000_000, "{size}");
    let phase = |epoch: usize| if (epoch / 5).is_multiple_of(2) { "prox" } else { "orthant" };
    let switching: String = (0..50).map(|_| log("obproxsg", 30, 0.9, phase)).collect();
    let size = page::html(&report(&switching)).len();
    assert!(size < 500_000, "{size}");
}

#[test]
fn a_log_that_was_cut_off_has_a_page_that_says_so() {
    let whole = log("rda", 10, 0.7, |_| "prox");
    let half = &whole[..whole.find("\"epoch\":7").unwrap()];
    let report = report(half);
    let page = page::html(&report);
    assert!(page.contains("rda (run.jsonl): the log breaks off in line 8; what came before it is shown."));
    assert_eq!(chart(&charts(&report.problems[0]), "density-epochs").series[0].points.len(), 6);
    // A start and nothing else is a report too.
    let start = &whole[..whole.find('\n').unwrap()];
    let page = page::html(&self::report(start));
    assert!(page.contains("the log has no end") && page.contains("Settings and data"));
}

#[test]
fn missing_figures_are_passed_over() {
    let text = log("prox-sg", 6, 0.7, |_| "prox").replace("\"F\":0.617500", "\"F\":NaN,\"was\":0.6175");
    let report = report(
        &text.replace("\"epoch\":3,\"phase\":\"prox\",\"F\":", "\"epoch\":3,\"phase\":\"prox\",\"F\":null,\"x\":"),
    );
    assert!(report.notices()[0].contains("1 epoch without a finite F"), "{:?}", report.notices());
    let chart = chart(&charts(&report.problems[0]), "objective-epochs");
    assert!(chart.series[0].points.iter().all(|(epoch, _)| *epoch != 3.0));
}

#[test]
fn tables_for_people_and_for_programs() {
    let report = two();
    let mut all = String::new();
    for table in table::tables(&report).iter().filter(|table| table.name != "epochs") {
        write!(all, "# {}\n{}\n{}\n", table.name, table.to_markdown(), table.to_csv()).unwrap();
    }
    insta::assert_snapshot!(all);
    let epochs = table::epochs(&report.problems);
    assert_eq!(epochs.rows.len(), 28);
    let json: serde_json::Value = serde_json::from_str(&table::runs(&report.problems).to_json()).unwrap();
    assert_eq!((&json[1]["solver"], &json[1]["status"]), (&"auto".into(), &"converged".into()));
    assert!(json[0]["F"].is_f64());
}

#[test]
fn curves_in_a_terminal() {
    let text = terminal::curves(&two().problems[0]);
    insta::assert_snapshot!(text);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    assert_eq!(terminal::curves(&report(&log("rda", 1, 0.5, |_| "prox")).problems[0]), "");
}

#[test]
fn a_path_and_folds_have_their_charts() {
    let start =
        r#"{"event":"start","data":"a.svm","rows":9,"n_features":2,"loss":"squared","lambda_max":1.0,"solver":"auto"}"#;
    let mut path = format!("{start}\n");
    for (lambda, nnz) in [("1.0", 0), ("0.1", 1), ("0.0", 2)] {
        let step = format!("\"lambda\":{lambda},\"status\":\"converged\",\"F\":0.5,\"nnz\":{nnz},\"score\":0.{nnz}");
        writeln!(path, "{{\"event\":\"lambda\",{step},\"seconds\":0.5}}").unwrap();
    }
    path += r#"{"event":"curves","lambdas":[1.0,0.1,0.0],"curves":[{"feature":1,"values":[0.0,0.5,null]}],"of":2}"#;
    path += "\n{\"event\":\"end\",\"status\":\"converged\",\"seconds\":1.5}\n";
    let report = report(&path);
    let all = charts(&report.problems[0]);
    let kinds: Vec<&str> = all.iter().map(|chart| chart.kind).collect();
    assert_eq!(kinds, ["path-weights", "path-nonzeros", "path-score"]);
    // λ = 0 has no logarithm: it is drawn a decade below the others.
    assert_eq!(chart(&all, "path-nonzeros").series[0].points, [(1.0, 0.0), (0.1, 1.0), (0.1 * 0.1, 2.0)]);
    assert_eq!(chart(&all, "path-weights").series[0].points, [(1.0, 0.0), (0.1, 0.5)]);
    let page = page::html(&report);
    for words in ["3 λ, λ_max = 1.00000", "Every λ of the path", "every λ is certified", "of 2 features"] {
        assert!(page.contains(words), "{words}");
    }

    let folds = r#"{"event":"folds","folds":5,"rule":"1se","best":0.1,"one_se":1.0,"scores":[{"lambda":1.0,"mean":0.3,"error":0.1},{"lambda":0.1,"mean":0.25,"error":0.1},{"lambda":0.01,"mean":null}]}"#;
    let text = log("auto", 8, 0.05, |_| "newton");
    let (first, rest) = text.split_once('\n').unwrap();
    let report = self::report(&format!("{first}\n{folds}\n{rest}"));
    let cv = chart(&charts(&report.problems[0]), "cv");
    assert_eq!(cv.series[0].spread, [(1.0, 0.3 - 0.1, 0.3 + 0.1), (0.1, 0.25 - 0.1, 0.35)]);
    assert_eq!(cv.marks.len(), 2);
    assert!(page::html(&report).contains("the largest within one standard error of the best"));
}
