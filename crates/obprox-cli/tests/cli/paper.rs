//! `obprox paper`, on tiny data under the paper's names.

use crate::workshop::{Workshop, rows};

/// A directory `data` with two of the paper's names and one other file.
fn workshop() -> Workshop {
    let shop = Workshop::new();
    let sign = |score: f64| if score > 0.0 { "1".into() } else { "-1".into() };
    std::fs::create_dir(shop.path("data")).unwrap();
    shop.write("data/a9a", rows(120, 12, sign));
    shop.write("data/w8a.svm", rows(200, 9, sign));
    shop.write("data/notes.txt", "no data set");
    shop.write("other.svm", rows(90, 7, sign));
    shop
}

const TABLES: &str = "paper convex --data data --parts tables --out out";

/// Times differ from run to run, and with them the digits and widths of their table; the form does not.
fn without_times(text: &str) -> String {
    let mut masked = String::new();
    let mut in_runtimes = false;
    for line in text.lines() {
        in_runtimes = (in_runtimes || line.contains("Relative runtime")) && !line.contains("Distance to");
        let word =
            |word: &str| if word.starts_with(|sign: char| sign.is_ascii_digit()) { "#" } else { word }.to_owned();
        masked += &match in_runtimes {
            true => line.trim_matches('─').split_whitespace().map(word).collect::<Vec<_>>().join(" "),
            false => line.to_owned(),
        };
        masked.push('\n');
    }
    masked
}

#[test]
fn the_tables_have_the_papers_form() {
    let shop = workshop();
    let said = shop.ok(&format!("{TABLES} --seeds 1 --also other.svm"));
    insta::assert_snapshot!(without_times(&said));
    let page = shop.read("out/convex.md");
    // The paper's figures for a9a stand under ours, and the other file has none.
    assert!(page.contains("<br>*0.332/0.330*") && page.contains("<br>*59.68*"), "{page}");
    assert_eq!(page.lines().filter(|line| line.starts_with("| other") && line.contains("<br>")).count(), 0);
    assert!(page.contains("missing: higgs, kdda, news20, real-sim, rcv1, url_combined"), "{page}");
    // One line for the optimum, thirteen for the tuning, five for the methods, of three sets.
    assert_eq!(shop.read("out/runs.csv").lines().count(), 1 + 3 * (1 + 13 + 5));
}

#[test]
fn a_second_run_goes_on() {
    let shop = workshop();
    shop.ok(&format!("{TABLES} --seeds 1 --quiet"));
    let first: serde_json::Value = serde_json::from_str(&shop.read("out/set-a9a.json")).unwrap();
    // The same again runs nothing: not a byte changes, times included.
    let before = shop.read("out/set-a9a.json");
    shop.ok(&format!("{TABLES} --seeds 1 --quiet"));
    assert_eq!(shop.read("out/set-a9a.json"), before);
    // One run is missing, one seed more is asked for: what is there stays, what is missing is run.
    let mut short = first.clone();
    short["runs"].as_array_mut().unwrap().truncate(3);
    shop.write("out/set-a9a.json", short.to_string());
    shop.ok(&format!("{TABLES} --seeds 2 --quiet"));
    let second: serde_json::Value = serde_json::from_str(&shop.read("out/set-a9a.json")).unwrap();
    let runs = second["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 10);
    assert_eq!(runs[..3], first["runs"].as_array().unwrap()[..3]);
    assert_eq!(second["tuning"], first["tuning"]);
    // The same seed gives the same figures.
    for at in 3..5 {
        assert_eq!(runs[at]["F"], first["runs"][at]["F"]);
    }
}

#[test]
fn a_share_is_stated() {
    let shop = workshop();
    let said = shop.ok(&format!("{TABLES} --seeds 1 --share w8a=1/4"));
    assert!(
        said.contains("w8a (1/4)") && said.contains("w8a: 1/4 of its rows, 50 of 200, evenly spaced; λ = 1/50"),
        "{said}"
    );
    assert!(!said.contains("a9a (1"), "{said}");
    // Results of another share, or of other batches, are not mixed with these.
    for other in ["", "--share w8a=1/4 --batch 7"] {
        let refused = shop.run(&format!("{TABLES} --seeds 1 {other}"));
        let stderr = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr.contains("has results of another file, another share or other settings"), "{stderr}");
    }
    let said = shop.ok("paper convex --data data --parts tables --out small --seeds 1 --batch 7");
    assert!(said.contains("a9a: batches of 7 rows, which are not the paper's"), "{said}");
}

#[test]
fn results_outlive_their_data() {
    let shop = workshop();
    shop.ok(&format!("{TABLES} --seeds 1 --quiet"));
    std::fs::remove_file(shop.path("data/w8a.svm")).unwrap();
    let said = shop.ok(&format!("{TABLES} --seeds 1"));
    assert!(said.contains("\nw8a ") && !said.contains("real-sim, w8a"), "{said}");
}

#[cfg(unix)]
#[test]
fn an_interruption_loses_nothing() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};
    let shop = workshop();
    let mut command = shop.command(&format!("{TABLES} --seeds 1000000"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Once a method has run, the run is in its loops, and has too many seeds to end by itself.
    let patience = Instant::now() + Duration::from_secs(60);
    while !(shop.exists("out/set-a9a.json") && shop.read("out/set-a9a.json").contains("prox-svrg")) {
        assert!(Instant::now() < patience, "no run in a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.contains("interrupted: what was done is kept"), "{stderr}");
    let kept: serde_json::Value = serde_json::from_str(&shop.read("out/set-a9a.json")).unwrap();
    assert!(kept["runs"].as_array().unwrap().len() >= 3 && shop.read("out/convex.md").contains("a9a"));
}

#[test]
fn the_papers_explanations_are_drawn() {
    let shop = Workshop::new();
    shop.ok("paper figures --out figures");
    assert_eq!(shop.listing(), ["figures", "figures/orthant-step.svg", "figures/projection-regions.svg"]);
    let regions = shop.read("figures/projection-regions.svg");
    for words in ["Prox-SG: zero on [−1, 1]", "RDA at √t/γ = 1.5: zero on [−1.5, 1.5]", "Orthant: zero on (−∞, 1]"]
    {
        assert!(regions.contains(words), "{words}");
    }
}
