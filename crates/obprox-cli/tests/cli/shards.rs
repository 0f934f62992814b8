//! Data larger than memory: files → shards → a model.

use crate::refused::refused;
use crate::workshop::Workshop;

fn objective(shop: &Workshop, model: &str) -> f64 {
    let json: serde_json::Value = serde_json::from_str(&shop.read(model)).unwrap();
    json["certificate"]["F"].as_f64().unwrap()
}

/// The rows of `train.svm` in three files.
fn in_parts() -> Workshop {
    let shop = Workshop::with_data();
    let text = shop.read("train.svm");
    let lines: Vec<&str> = text.lines().collect();
    std::fs::create_dir(shop.path("parts")).unwrap();
    for (part, lines) in lines.chunks(50).enumerate() {
        shop.write(&format!("parts/{part}.svm"), lines.join("\n") + "\n");
    }
    shop
}

#[test]
fn files_patterns_and_directories_are_one_data_set() {
    let shop = in_parts();
    shop.ok("fit train.svm --lambda 0.05max --out whole.json --quiet");
    let ways = ["parts/0.svm parts/1.svm parts/2.svm", "parts/*.svm", "parts"];
    let models = ways.map(|data| {
        let line = format!("fit {data} --memory 10M --cache kept --lambda 0.05max --out model.json --log run.jsonl");
        let said = shop.ok(&line);
        assert!(said.contains("120 rows × 12 features") && said.contains("converged"), "{said}");
        assert!(shop.read("run.jsonl").contains(r#""storage":"shards""#));
        let off = objective(&shop, "model.json") / objective(&shop, "whole.json") - 1.0;
        assert!(off.abs() < 1e-6, "{off:e}");
        shop.read("model.json")
    });
    assert!(models.iter().all(|model| *model == models[0]));
    // One directory for all three ways, and nothing beside it.
    let kept: Vec<String> = shop.listing().into_iter().filter(|name| name.starts_with("kept/")).collect();
    assert_eq!(kept.iter().filter(|name| name.ends_with("shards.json")).count(), 1, "{kept:?}");
    // Without a place of its own the cache is beside the files.
    shop.ok("fit parts/*.svm --memory 10M --quiet");
    assert!(shop.path("parts/.obprox").is_dir());
    // A model of shards predicts like any other.
    assert_eq!(shop.ok("predict model.json train.svm").lines().count(), 120);
}

#[test]
fn a_run_goes_on_and_a_changed_shard_is_named() {
    let shop = in_parts();
    let line = "fit parts --memory 10M --cache kept --lambda 0.01max --tol 0 --checkpoint state";
    shop.ok(&format!("{line} --epochs 4 --out whole.json --quiet"));
    std::fs::remove_dir_all(shop.path("state")).unwrap();
    shop.ok(&format!("{line} --epochs 2 --quiet"));
    shop.ok(&format!("{line} --epochs 4 --resume --out model.json --quiet"));
    assert_eq!(shop.read("model.json"), shop.read("whole.json"));

    let shard = shop.listing().into_iter().find(|name| name.ends_with("000000.obx")).unwrap();
    let bytes = std::fs::read(shop.path(&shard)).unwrap();
    shop.write(&shard, &bytes[..bytes.len() - 64]);
    let said = shop.command("fit parts --memory 10M --cache kept --out other.json").output().unwrap();
    let said = (said.status.code(), String::from_utf8(said.stderr).unwrap());
    assert!(said.0 == Some(2) && said.1.contains("000000.obx") && said.1.contains("remove the directory"), "{said:?}");
    assert!(!shop.path("other.json").exists());
}

#[test]
fn every_solver_reads_shards_and_goes_on_to_the_same_bits() {
    let shop = in_parts();
    for solver in ["prox-sg", "rda", "prox-svrg", "obproxsg", "obproxsg-plus", "auto"] {
        let line = format!("fit parts --cache kept --solver {solver} --standardize --step auto --tol 0");
        shop.ok(&format!("{line} --memory 10M --epochs 4 --test parts/0.svm --out whole.json --quiet"));
        shop.ok(&format!("{line} --memory 1G --epochs 2 --checkpoint {solver} --quiet"));
        let resume = format!("--checkpoint {solver} --resume --threads 3");
        shop.ok(&format!("{line} --memory 10M --epochs 4 {resume} --out model.json --quiet"));
        assert_eq!(shop.read("model.json"), shop.read("whole.json"), "{solver}");
    }
}

#[test]
fn paths_searches_and_comparisons_read_shards() {
    let shop = in_parts();
    let shards = "parts --memory 10M --cache kept --test parts/0.svm";
    shop.ok(&format!("path {shards} --standardize --lambdas 5 --out shards.csv --quiet"));
    shop.ok("path train.svm --test parts/0.svm --standardize --lambdas 5 --out whole.csv --quiet");
    let figures = |file: &str| {
        let text = shop.read(file);
        let row = |line: &str| line.split(',').map(|field| field.parse().unwrap_or(0.0)).collect::<Vec<f64>>();
        text.lines().skip(1).map(row).collect::<Vec<_>>()
    };
    for (a, b) in figures("shards.csv").iter().zip(figures("whole.csv")) {
        // λ, F, nonzeros and the score on the test data.
        for at in [0, 3, 6, 12] {
            assert!((a[at] - b[at]).abs() <= 1e-6 * b[at].abs(), "column {at}: {} and {}", a[at], b[at]);
        }
    }
    let said = shop.ok(&format!("fit {shards} --nnz 3"));
    assert!(said.contains("at most 3 features") && said.contains("accuracy"), "{said}");
    let said = shop.ok(&format!("compare {shards} --epochs 3 --solvers prox-sg,auto"));
    assert!(said.contains("prox-sg") && said.contains("auto"), "{said}");
}

/// Text of several blocks: what is read some rows at a time is what is read as a whole.
#[test]
fn predictions_and_figures_of_parts_are_those_of_the_whole() {
    let shop = in_parts();
    shop.ok("fit train.svm --lambda 0.05max --out model.json --quiet");
    let rows = shop.read("train.svm");
    shop.write("parts/a.svm", rows.repeat(500));
    shop.write("whole.svm", [0, 1, 2].map(|part| shop.read(&format!("parts/{part}.svm"))).concat() + &rows.repeat(500));
    shop.ok("data convert whole.svm whole.obx");
    for ending in ["", " --proba"] {
        let whole = shop.ok(&format!("predict model.json whole.svm{ending}"));
        for data in ["parts", "parts/?.svm", "parts/0.svm parts/1.svm parts/2.svm parts/a.svm", "whole.obx"] {
            assert_eq!(shop.ok(&format!("predict model.json {data}{ending}")), whole, "{data}{ending}");
        }
        shop.ok(&format!("predict model.json parts{ending} --out labels.txt"));
        assert_eq!(shop.read("labels.txt"), whole);
    }
    let figures = |data: &str| {
        let json: serde_json::Value =
            serde_json::from_str(&shop.ok(&format!("eval model.json {data} --json"))).unwrap();
        ["accuracy", "auc", "loss"].map(|figure| json[figure].as_f64().unwrap().to_bits())
    };
    assert_eq!(figures("parts"), figures("whole.svm"));
    assert_eq!(figures("whole.obx"), figures("whole.svm"));
    // A flaw in a later file is named, and no file is left.
    shop.write("parts/b.svm", "1 1:x\n");
    let said = shop.run("predict model.json parts --out other.txt");
    let said = (said.status.code(), String::from_utf8(said.stderr).unwrap());
    assert!(said.0 == Some(2) && said.1.contains("b.svm:1:") && !shop.path("other.txt").exists(), "{said:?}");
}

/// Tables are read by their columns' names, whatever their order, in pieces too.
#[test]
fn tables_have_names_from_shards_as_from_memory() {
    let shop = Workshop::new();
    let row = |at: usize| (at % 2, (at * 7 % 11) as f64 / 4.0 + (at % 2) as f64, at * 5 % 13);
    let lines = |text: &dyn Fn((usize, f64, usize)) -> String| (0..90).map(|at| text(row(at))).collect::<String>();
    shop.write("a.csv", "y,u,v\n".to_owned() + &lines(&|(y, u, v)| format!("{y},{u},{v}\n")));
    shop.write("b.csv", "v,note,y,u\n".to_owned() + &lines(&|(y, u, v)| format!("{v},n,{y},{u}\n")));
    shop.ok("fit a.csv --memory 10M --cache kept --test b.csv --out shards.json --quiet");
    shop.ok("fit a.csv --test b.csv --out memory.json --quiet");
    for model in ["shards.json", "memory.json"] {
        assert_eq!(shop.ok(&format!("predict {model} b.csv")), shop.ok("predict memory.json a.csv"), "{model}");
    }
}

#[test]
fn kinds_of_files_are_not_mixed() {
    let shop = in_parts();
    shop.write("parts/z.csv", "1,2,3\n0,1,2\n");
    let said = shop.run("fit parts --memory 10M --out model.json");
    let said = (said.status.code(), String::from_utf8(said.stderr).unwrap());
    assert!(said.0 == Some(2) && said.1.contains("z.csv: is a table"), "{said:?}");
    // A word is refused where it stands, and so is a label that is one.
    shop.write("words.csv", "y,u\nyes,1\nno,2\n");
    let said = shop.run("fit words.csv --memory 10M --out model.json");
    let said = (said.status.code(), String::from_utf8(said.stderr).unwrap());
    assert!(said.0 == Some(2) && said.1.contains("words.csv: ") && said.1.contains("no numbers"), "{said:?}");
    assert!(!shop.exists("model.json"));
}

#[test]
fn what_does_not_go_with_it_is_refused() {
    let shop = in_parts();
    let lines = [
        ("fit parts/0.svm parts/1.svm", "--memory"),
        ("path parts/0.svm parts/1.svm", "--memory"),
        ("compare parts/0.svm parts/1.svm", "--memory"),
        ("fit parts --memory 10M --drop id", "--drop"),
        ("fit - --memory 10M", "standard input"),
        ("fit none-*.svm --memory 10M", "none-*.svm"),
        ("fit parts --memory 5X", "500M"),
        ("fit parts --cache kept", "--memory"),
    ];
    for (line, word) in lines {
        let said = refused(&shop, &[line]);
        assert!(said.contains(word), "{line}: {said}");
    }
    // How much is too little is known when there are shards.
    let said = shop.run("fit parts --memory 1k --out model.json");
    let said = (said.status.code(), String::from_utf8(said.stderr).unwrap());
    assert!(said.0 == Some(2) && said.1.contains("need") && !shop.path("model.json").exists(), "{said:?}");
}

/// 160 MB of text, 97 MB of shards, in 125 MB of address space, the program's own included.
#[cfg(target_os = "linux")]
#[test]
fn data_larger_than_memory_is_fitted() {
    let shop = Workshop::new();
    shop.ok("data synth big.svm --rows 60000 --cols 5000 --per-row 400 --entries ones --support 20 --quiet");
    let limited = |kilobytes: u32, flags: &str| {
        let obprox = env!("CARGO_BIN_EXE_obprox");
        let line = format!("ulimit -v {kilobytes}; '{obprox}' fit big.svm --lambda 0.3max --threads 2 {flags}");
        // An arena for each thread is address space that is never used.
        let mut command = std::process::Command::new("bash");
        command.args(["-c", &line]).current_dir(shop.path(".")).env("MALLOC_ARENA_MAX", "1").output().unwrap()
    };
    for flags in ["", "--solver obproxsg-plus --epochs 2", "--solver prox-svrg --epochs 1"] {
        let output = limited(125_000, &format!("--memory 60M --out model.json {flags}"));
        assert!(output.status.success(), "{flags}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(!flags.is_empty() || said.contains("converged"), "{said}");
    }
    assert!(!limited(95_000, "--out other.json").status.success(), "the rows alone are more than that");
}
