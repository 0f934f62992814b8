//! Ctrl-C, SIGTERM and death, with real signals.
#![cfg(unix)]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::workshop::Workshop;

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

fn interrupt(child: &Child) {
    signal(child, "-INT");
}

/// Waits for the first epoch in the log: the run is then in its loop, and has too many epochs to end by itself.
fn start(shop: &Workshop, line: &str) -> Child {
    let child = shop.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while !(shop.exists("run.jsonl") && shop.read("run.jsonl").contains("\"event\":\"epoch\"")) {
        assert!(Instant::now() < patience, "no epoch in a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn the_first_ends_the_run_and_saves() {
    let shop = Workshop::with_data();
    let line = "fit train.svm --solver obproxsg-plus --epochs 1000000000 --tol 0 --out model.json --log run.jsonl --checkpoint state";
    let child = start(&shop, line);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    assert!(
        stderr.contains("interrupted: model written to model.json, log written to run.jsonl, checkpoint in state"),
        "{stderr}"
    );
    assert!(shop.read("run.jsonl").lines().last().unwrap().contains("\"status\":\"stopped\""));
    assert!(String::from_utf8(output.stdout).unwrap().contains("interrupted after"));
    shop.ok("predict model.json train.svm");

    // What it saved goes on to the same bits as a run that was left alone.
    let log = shop.read("run.jsonl");
    let done = log.lines().filter(|line| line.contains("\"event\":\"epoch\"")).count();
    let epochs = done + 2;
    shop.ok(&format!(
        "fit train.svm --solver obproxsg-plus --epochs {epochs} --tol 0 --checkpoint state --resume --out parts.json"
    ));
    shop.ok(&format!("fit train.svm --solver obproxsg-plus --epochs {epochs} --tol 0 --out whole.json"));
    assert_eq!(shop.read("parts.json"), shop.read("whole.json"));
}

#[test]
fn the_second_ends_the_process() {
    let shop = Workshop::with_data();
    // A pipe that no one reads: saving the model waits for ever, so the process cannot end by itself.
    assert!(Command::new("mkfifo").arg(shop.path("model.json")).status().unwrap().success());
    let mut child = start(
        &shop,
        "fit train.svm --solver obproxsg-plus --epochs 1000000000 --tol 0 --out model.json --log run.jsonl",
    );
    let patience = Instant::now() + Duration::from_secs(60);
    let status = loop {
        interrupt(&child);
        std::thread::sleep(Duration::from_millis(20));
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < patience, "it did not end in a minute");
    };
    assert_eq!(status.code(), Some(130));
}

#[test]
fn an_end_that_is_asked_for_saves_and_has_a_status_of_its_own() {
    let shop = Workshop::with_data();
    let line = "fit train.svm --solver obproxsg-plus --epochs 1000000000 --tol 0 --out model.json --log run.jsonl --checkpoint state";
    let child = start(&shop, line);
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(143), "{stderr}");
    assert!(
        stderr.contains("interrupted: model written to model.json, log written to run.jsonl, checkpoint in state"),
        "{stderr}"
    );
    assert!(shop.read("run.jsonl").lines().last().unwrap().contains("\"status\":\"stopped\""));
    shop.ok("predict model.json train.svm");
}

#[test]
fn a_checkpoint_directory_belongs_to_one_run() {
    let shop = Workshop::with_data();
    let fit = "fit train.svm --solver obproxsg-plus --tol 0 --checkpoint state --resume";
    let mut child = start(&shop, &format!("{fit} --epochs 1000000000 --log run.jsonl"));
    let second = shop.run(&format!("{fit} --epochs 3 --out second.json"));
    let stderr = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("state: another run is using this directory"), "{stderr}");
    assert!(!shop.exists("second.json"));
    // Death frees it, and a temporary file that the dead left is gone after the next run.
    signal(&child, "-KILL");
    child.wait().unwrap();
    shop.write("state/.obprox-left", "half a checkpoint");
    let done = shop.read("run.jsonl").lines().filter(|line| line.contains("\"event\":\"epoch\"")).count();
    shop.ok(&format!("{fit} --epochs {} --out third.json", done + 3));
    assert_eq!(
        shop.listing().iter().filter(|name| name.starts_with("state/")).collect::<Vec<_>>(),
        ["state/checkpoint.obprox"]
    );
}

/// Kills each of the paper's methods at different points, and resumes: the result is that of a run that was left alone.
#[test]
fn a_killed_run_goes_on_to_the_same_bits() {
    let shop = Workshop::with_data();
    for (number, solver) in ["prox-sg", "rda", "prox-svrg", "obproxsg", "obproxsg-plus"].iter().enumerate() {
        let fit = format!("fit train.svm --solver {solver} --epochs 400 --tol 0 --seed {number}");
        shop.ok(&format!("{fit} --out whole.json"));
        let _ = std::fs::remove_dir_all(shop.path("state"));
        for kill in 0..3 {
            let _ = std::fs::remove_file(shop.path("run.jsonl"));
            let mut child =
                shop.command(&format!("{fit} --checkpoint state --resume --log run.jsonl --quiet")).spawn().unwrap();
            // So many epochs after the start; where it is done sooner, there is nothing to kill.
            let enough = |text: &str| text.matches("\"event\":\"epoch\"").count() > 10 + 45 * kill + 7 * number;
            while child.try_wait().unwrap().is_none()
                && !(shop.exists("run.jsonl")
                    && enough(&String::from_utf8_lossy(&std::fs::read(shop.path("run.jsonl")).unwrap())))
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = child.kill();
            child.wait().unwrap();
        }
        shop.ok(&format!("{fit} --checkpoint state --resume --out parts.json"));
        assert_eq!(shop.read("parts.json"), shop.read("whole.json"), "{solver}");
    }
}

/// Interrupts a command in its loops. Of work that has no log there is no sign but time, so it is given more than it can
/// do; where a machine is so slow that it was still reading, the process ends with 130 and there is nothing to see.
fn interrupted(shop: &Workshop, line: &str) -> Option<(Option<i32>, String)> {
    shop.ok("data synth big.svm --rows 3000 --cols 400 --per-row 40 --task regression --seed 3");
    let child = shop.command(line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    (output.status.code() != Some(130)).then_some((output.status.code(), stderr))
}

#[test]
fn a_path_keeps_the_lambdas_that_were_done() {
    let shop = Workshop::new();
    let line = "path big.svm --loss squared --lambdas 100000 --out path.json --plot path.svg";
    let Some((status, stderr)) = interrupted(&shop, line) else { return };
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("interrupted: ") && stderr.contains(" of 100000 λ were done"), "{stderr}");
    let path: serde_json::Value = serde_json::from_str(&shop.read("path.json")).unwrap();
    let done = path["path"].as_array().unwrap().len();
    assert!(path["stopped"] == true && done > 0 && stderr.contains(&format!("{done} of")), "{stderr}");
}

#[test]
fn a_validation_that_is_not_done_writes_nothing() {
    let shop = Workshop::new();
    let line = "cv big.svm --loss squared --lambdas 100000 --out model.json --scores scores.csv --log run.jsonl";
    let Some((status, stderr)) = interrupted(&shop, line) else { return };
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("interrupted: the folds were not done") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!(shop.listing(), ["big.svm"]);
}

#[test]
fn a_run_ends_when_its_time_is_over_and_hands_out_what_there_is() {
    let shop = Workshop::with_data();
    let line = "fit train.svm --solver obproxsg-plus --epochs 1000000000 --tol 0 --time 0.2s --out model.json";
    let output = shop.command(line).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && stderr.contains("the time given by --time is over"), "{stderr}");
    assert!(shop.read("model.json").contains("obprox-linear"));
    for time in ["soon", "5weeks", "0s", "-1s", "1e999h"] {
        let output = shop.command(&format!("fit train.svm --time={time}")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && stderr.contains("--time"), "{time}: {stderr}");
    }
}
