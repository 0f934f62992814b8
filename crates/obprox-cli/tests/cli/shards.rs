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
fn what_does_not_go_with_it_is_refused() {
    let shop = in_parts();
    let lines = [
        ("fit parts/0.svm parts/1.svm", "--memory"),
        ("fit parts --memory 10M --solver rda", "only auto"),
        ("fit parts --memory 10M --nnz 3", "--nnz"),
        ("fit parts --memory 10M --standardize", "--standardize"),
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
    let output = limited(125_000, "--memory 60M --out model.json");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("converged"));
    assert!(!limited(95_000, "--out other.json").status.success(), "the rows alone are more than that");
}
