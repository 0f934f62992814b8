//! Where memory, disk, threads or places are short: an error that says so, or work that goes on; never a signal.
#![cfg(unix)]

use std::process::{Command, Output};

use crate::workshop::Workshop;

/// Runs a line of a shell in the workshop, with `obprox` as a word in it.
fn shell(shop: &Workshop, line: &str) -> Output {
    let mut command = Command::new("bash");
    let line = line.replace("obprox", &format!("'{}'", env!("CARGO_BIN_EXE_obprox")));
    command.args(["-c", &line]).current_dir(shop.path("."));
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn one_far_index_costs_no_memory_to_look_at_and_is_refused_to_train_on() {
    let shop = Workshop::new();
    shop.write("far.svm", "1 4294967295:1\n-1 1:1\n");
    let page = shell(&shop, "ulimit -v 1000000; obprox data inspect far.svm");
    assert!(page.status.success(), "{}", stderr(&page));
    assert!(String::from_utf8_lossy(&page.stdout).contains("4294967295, 4294967293 of them empty"));
    let refused = shell(&shop, "ulimit -v 4000000; obprox fit far.svm --out model.json");
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let wide = shell(&shop, "ulimit -v 4000000; obprox fit far.svm --features 400000000 --out model.json");
    assert!(matches!(wide.status.code(), Some(1 | 2)), "{}", stderr(&wide));
    shop.write("near.svm", "1 400000000:1\n-1 1:1\n");
    let refused = shell(&shop, "ulimit -v 4000000; obprox fit near.svm --out model.json");
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("400000000 columns") && stderr(&refused).contains("of memory"));
    assert_eq!(shop.listing(), ["far.svm", "near.svm"]);
}

#[test]
fn a_model_of_all_features_there_can_be_predicts_in_little_memory() {
    let shop = Workshop::with_data();
    shop.write(
        "model.json",
        r#"{"format":"obprox-linear","version":1,"loss":"squared","task":"regression","n_features":4294967295,
        "intercept":0.5,"indices":[0,4294967294],"values":[2,3],"labels":[],"lambda":0.1,"l2":0,"certificate":null}"#,
    );
    shop.write("rows.svm", "0 1:1\n0 4294967295:1\n0 7:1\n");
    let output = shell(&shop, "ulimit -v 1000000; obprox predict model.json rows.svm");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2.5\n3.5\n0.5\n");
}

#[test]
fn text_that_unpacks_beyond_memory_is_refused() {
    let shop = Workshop::new();
    // A line without an end, and rows without an end.
    let line = shell(&shop, "ulimit -v 3000000; tr '\\0' 1 < /dev/zero | obprox data inspect -");
    assert_eq!(line.status.code(), Some(2), "{}", stderr(&line));
    assert!(stderr(&line).contains("standard input:1:") && stderr(&line).contains("write a row a line"));
    let rows = shell(&shop, "ulimit -v 1500000; yes '1 1:0.5 2:0.25 3:7' | obprox data inspect -");
    assert_eq!(rows.status.code(), Some(1), "{}", stderr(&rows));
    assert!(stderr(&rows).contains("memory") && stderr(&rows).lines().count() == 1, "{}", stderr(&rows));
}

#[test]
fn allocations_that_fail_are_told() {
    let shop = Workshop::with_data();
    shop.ok("data synth big.svm --rows 60000 --cols 2000 --per-row 40");
    // Too little for some array or other, whichever it is.
    let limits = [60_000, 80_000, 100_000, 130_000].into_iter().flat_map(|kilobytes| [(kilobytes, 1), (kilobytes, 2)]);
    for (kilobytes, threads) in limits {
        let line = format!("ulimit -v {kilobytes}; obprox fit big.svm --threads {threads} --out model.json");
        let output = shell(&shop, &line);
        let said = stderr(&output);
        match output.status.code() {
            Some(0) => assert!(shop.exists("model.json")),
            Some(1) => assert!(said.contains("memory") && !shop.exists("model.json"), "{kilobytes}: {said}"),
            status => panic!("{kilobytes}: {status:?} {said}"),
        }
        let _ = std::fs::remove_file(shop.path("model.json"));
    }
}

#[test]
fn a_checkpoint_that_cannot_be_written_costs_the_checkpoint_alone() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out whole.json --quiet");
    // A directory where the file should be stands for a full disk.
    std::fs::create_dir_all(shop.path("state/checkpoint.obprox")).unwrap();
    let output = shop.run("fit train.svm --checkpoint state --out model.json");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("the run goes on without it").count(), 1, "it is said once: {said}");
    assert_eq!(shop.read("model.json"), shop.read("whole.json"));
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("model written to model.json") && !page.contains("checkpoint in"), "{page}");
}

#[test]
fn a_log_or_report_that_cannot_be_written_costs_the_log_or_report_alone() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out whole.json --quiet");
    let output = shop.run("fit train.svm --log /dev/full --out model.json --report page.html");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/dev/full: cannot write: ") && said.contains("the run goes on without it"), "{said}");
    assert_eq!(said.lines().count(), 1, "it is said once: {said}");
    assert_eq!(shop.read("model.json"), shop.read("whole.json"));
    assert!(shop.read("page.html").contains("</html>"), "the report knows the run without its log");
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(page.contains("model written to model.json") && !page.contains("log written"), "{page}");

    for line in [
        "compare train.svm --solvers auto,rda --log /dev/full --output table.csv",
        "path train.svm --lambdas 3 --log /dev/full --out table.csv",
        "cv train.svm --lambdas 3 --folds 3 --log /dev/full --scores table.csv",
    ] {
        let _ = std::fs::remove_file(shop.path("table.csv"));
        let output = shop.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}");
        assert_eq!(stderr(&output).lines().count(), 1, "{line}: {}", stderr(&output));
        assert!(shop.exists("table.csv") && !output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_model_whose_disk_is_full_goes_elsewhere_and_says_where() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out whole.json --quiet");
    std::fs::create_dir(shop.path("elsewhere")).unwrap();
    for line in ["fit train.svm --out /dev/full", "fit train.svm --out - --quiet > /dev/full"] {
        let output = shell(&shop, &format!("TMPDIR=$PWD/elsewhere obprox {line}"));
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        let at = said.split("it was written to ").nth(1).unwrap_or_else(|| panic!("{said}"));
        let path = at.split(" instead").next().unwrap();
        assert!(path.contains("/elsewhere/"), "{said}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), shop.read("whole.json"), "{said}");
    }
}

#[test]
fn what_cannot_be_said_leaves_the_status() {
    let shop = Workshop::with_data();
    for (line, status) in [
        ("obprox fit nowhere.svm 2> /dev/full", 2),
        ("obprox fit train.svm --lambda -1 2> /dev/full", 2),
        ("obprox fit train.svm --log /dev/full --quiet 2> /dev/full", 1),
        ("obprox fit train.svm > /dev/full", 1),
        ("obprox --help > /dev/full", 1),
        ("obprox help fit > /dev/full", 1),
        ("obprox --version > /dev/full", 1),
        ("obprox completions bash > /dev/full", 1),
    ] {
        let output = shell(&shop, line);
        assert_eq!(output.status.code(), Some(status), "{line}: {}", stderr(&output));
        assert!(!stderr(&output).contains("panicked"), "{line}: {}", stderr(&output));
    }
}

#[test]
fn odd_surroundings_change_nothing() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out whole.json --quiet --threads 2");
    for surroundings in [
        "obprox fit train.svm --out model.json <&- >&- 2>&-",
        "HOME=/proc obprox fit train.svm --out model.json",
        "TMPDIR=/nowhere obprox fit train.svm --out model.json --report page.html",
        "LC_ALL=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8 obprox fit train.svm --out model.json",
        "HOME=/nowhere obprox fit train.svm --out model.json --threads 24",
        "ulimit -n 16; obprox fit train.svm --out model.json --log run.jsonl --checkpoint state",
        "TZ=Pacific/Kiritimati obprox fit train.svm --out model.json < /dev/null > /dev/null",
        "env -i obprox fit train.svm --out model.json",
        "RAYON_NUM_THREADS=99999999 obprox fit train.svm --out model.json",
        "obprox fit train.svm --out model.json 2> /dev/full",
    ] {
        let output = shell(&shop, surroundings);
        assert!(output.status.success(), "{surroundings}: {}", stderr(&output));
        assert_eq!(shop.read("model.json"), shop.read("whole.json"), "{surroundings}");
        std::fs::remove_file(shop.path("model.json")).unwrap();
    }
}

/// What starts a command that can start no thread. Limits on processes do not hold for root, who becomes another user;
/// nothing where that cannot be.
fn without_threads(shop: &Workshop) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(shop.path("."), std::fs::Permissions::from_mode(0o777)).unwrap();
    let root = shell(shop, "id -u").stdout == b"0\n";
    let user = if root { "setpriv --reuid=65534 --clear-groups " } else { "" };
    let begin = format!("{user}bash -c 'ulimit -u 1; exec \"$0\" \"$@\"' obprox");
    let can = shell(shop, &format!("{user}test -r train.svm -a -w .")).status.success();
    (can && shell(shop, &format!("{begin} --version")).status.success()).then_some(begin)
}

#[test]
#[allow(clippy::print_stderr, reason = "what was skipped must be told")]
fn threads_that_cannot_be_had_are_refused_or_done_without() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out whole.json --quiet --threads 2");
    let Some(begin) = without_threads(&shop) else {
        eprintln!("skipped: there is no other user to be");
        return;
    };
    let refused = shell(&shop, &format!("{begin} fit train.svm --threads 8 --out model.json"));
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("--threads 8: the system does not give as many"), "{}", stderr(&refused));
    assert!(stderr(&refused).lines().count() == 1 && !shop.exists("model.json"), "{}", stderr(&refused));
    for (before, line) in [
        ("", "fit train.svm --out model.json --quiet"),
        ("cat train.svm | ", "fit - --out model.json --quiet"),
        ("", "fit train.svm --out model.json --quiet --threads 1"),
        ("RAYON_NUM_THREADS=3 ", "fit train.svm --out model.json --quiet"),
    ] {
        let output = shell(&shop, &format!("{before}{begin} {line}"));
        assert!(output.status.success() && output.stderr.is_empty(), "{line}: {}", stderr(&output));
        assert_eq!(shop.read("model.json"), shop.read("whole.json"), "{line}");
        std::fs::remove_file(shop.path("model.json")).unwrap();
    }
    let lines = ["data inspect train.svm", "data synth planted.svm --rows 50 --cols 9", "cv train.svm --lambdas 3"];
    for line in lines.into_iter().chain(["fit train.svm --memory 10M --cache shards --quiet"]) {
        let output = shell(&shop, &format!("{begin} {line}"));
        assert!(output.status.success(), "{line}: {}", stderr(&output));
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_of_the_file() {
    let shop = Workshop::with_data();
    shop.write("data.obx", "what was there");
    let before = shop.listing();
    let refused = shell(&shop, "ulimit -f 1; obprox data convert train.svm data.obx");
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("data.obx: cannot write: ") && stderr(&refused).lines().count() == 1);
    assert_eq!((shop.read("data.obx").as_str(), shop.listing()), ("what was there", before));
}

/// A clock that goes to and fro by years at every look, for the system's time and for that since the start alike.
#[cfg(target_os = "linux")]
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    static unsigned looks;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, now);
    unsigned draw = __atomic_add_fetch(&looks, 1, __ATOMIC_RELAXED) * 2654435761u;
    now->tv_sec += (long)(draw >> 4) - (1l << 27);
    if (now->tv_sec < 0) now->tv_sec = 0;
    return failed;
}
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_clock_that_jumps_changes_times_alone() {
    let shop = Workshop::with_data();
    shop.write("clock.c", CLOCK);
    let built = shell(&shop, "cc -shared -fPIC -o clock.so clock.c -ldl");
    assert!(built.status.success(), "{}", stderr(&built));
    for (line, out) in [
        ("fit train.svm --solver rda --epochs 6 --checkpoint state --log run.jsonl --out", "model.json"),
        ("fit train.svm --report page.html --out", "model.json"),
        ("cv train.svm --lambdas 5 --folds 3 --out", "model.json"),
        ("data convert train.svm", "data.obx"),
    ] {
        shop.ok(&format!("{line} {out}"));
        let whole = std::fs::read(shop.path(out)).unwrap();
        std::fs::remove_file(shop.path(out)).unwrap();
        let _ = std::fs::remove_dir_all(shop.path("state"));
        let output = shell(&shop, &format!("LD_PRELOAD=$PWD/clock.so obprox {line} {out}"));
        assert!(output.status.success() && output.stderr.is_empty(), "{line}: {}", stderr(&output));
        assert_eq!(std::fs::read(shop.path(out)).unwrap(), whole, "{line}");
    }
    shop.ok("report run.jsonl --out report.html");
}

#[test]
fn numbers_that_leave_the_range_are_refused() {
    let shop = Workshop::with_data();
    shop.write("huge.svm", "1e300 1:1\n-2e300 2:1\n3 1:2\n");
    shop.write("tiny.svm", "1e-300 1:1\n-2e-300 2:1\n");
    shop.write("rows.txt", "1e-320\n".repeat(120));
    shop.write("features.txt", "1\n".repeat(11) + "1e-320\n");
    let before = shop.listing();
    for (line, said) in [
        ("fit huge.svm --loss squared", "huge.svm: the largest of the targets is 2e300: their squares leave the range"),
        ("fit tiny.svm --loss huber", "tiny.svm: the largest of the targets is 2e-300"),
        ("fit train.svm --weights rows.txt", "--weights: their sum is 1.19"),
        ("fit train.svm --feature-weights features.txt", "--feature-weights: number 12 is too small to divide by"),
    ] {
        let output = shop.run(&format!("{line} --out model.json"));
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(stderr(&output).contains(said) && stderr(&output).lines().count() == 1, "{}", stderr(&output));
    }
    assert_eq!(shop.listing(), before);
}

#[test]
fn many_runs_that_were_broken_off_go_on() {
    let shop = Workshop::with_data();
    for (line, part) in [
        ("path train.svm --lambdas 25", "state/path-1.obprox-part"),
        ("cv train.svm --lambdas 12 --folds 3", "state/fold-1-0.obprox-part"),
        ("fit train.svm --nnz 4", "state/nnz-2.obprox-part"),
    ] {
        let out = if line.starts_with("path") { "out.csv" } else { "out.json" };
        let _ = std::fs::remove_dir_all(shop.path("state"));
        shop.ok(&format!("{line} --checkpoint state --quiet --out {out}"));
        let whole = shop.read(out);
        // As if it had been killed before this part was done.
        std::fs::remove_file(shop.path(part)).unwrap();
        shop.ok(&format!("{line} --checkpoint state --resume --quiet --out {out}"));
        let without_times = |text: &str| -> Vec<String> {
            let time = text.lines().next().and_then(|head| head.split(',').position(|name| name == "seconds"));
            let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
            let rest = |line: &str| cells(line).into_iter().enumerate().filter(|(at, _)| Some(*at) != time);
            text.lines().map(|line| rest(line).map(|(_, cell)| cell + ",").collect()).collect()
        };
        assert_eq!(without_times(&shop.read(out)), without_times(&whole), "{line}");
        let refused = shop.run(&format!("{line} --loss squared --checkpoint state --resume --quiet --out {out}"));
        assert_eq!(refused.status.code(), Some(2), "{line}");
        assert!(stderr(&refused).contains("is of other work"), "{line}: {}", stderr(&refused));
    }
    shop.ok("compare train.svm --solvers rda,obproxsg --epochs 4 --checkpoint state --quiet");
    let table = shop.ok("compare train.svm --solvers rda,obproxsg --epochs 4 --checkpoint state --resume");
    assert!(table.contains("obproxsg") && shop.exists("state/rda/checkpoint.obprox"), "{table}");
}
