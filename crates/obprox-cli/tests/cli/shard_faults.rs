//! What can go wrong with a cache of shards: a run that is killed, a full disk, two runs at once, files that change.
#![cfg(unix)]

use std::fs::{self, File};
use std::process::{Command, Output, Stdio};

use crate::workshop::Workshop;

/// Some shards of data, and the model that they give.
const FIT: &str = "fit big.svm --memory 100M --cache kept --lambda 0.3max --threads 2 --quiet";

fn shop() -> Workshop {
    let shop = Workshop::new();
    // Two shards, of 16 and 4 MB.
    shop.ok("data synth big.svm --rows 20000 --cols 3000 --per-row 250 --entries ones --support 20 --quiet");
    shop
}

fn failed(output: &Output, status: i32, words: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{said}");
    assert!(words.iter().all(|word| said.contains(word)), "{said}");
}

/// The files of the cache with this ending.
fn kept(shop: &Workshop, ending: &str) -> Vec<String> {
    shop.listing().into_iter().filter(|name| name.starts_with("kept/") && name.ends_with(ending)).collect()
}

#[test]
fn a_run_that_is_killed_while_it_parses_leaves_nothing_that_is_taken_for_shards() {
    let shop = shop();
    let mut child = shop.command(FIT).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // As soon as a shard is there, and well before the list of all.
    while kept(&shop, ".obx").is_empty() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let _ = child.kill();
    child.wait().unwrap();
    shop.ok(&format!("{FIT} --out model.json"));
    let shards = kept(&shop, ".obx");
    fs::remove_dir_all(shop.path("kept")).unwrap();
    shop.ok(&format!("{FIT} --out clean.json"));
    assert_eq!((shop.read("model.json"), shards), (shop.read("clean.json"), kept(&shop, ".obx")));

    // What a kill can leave at the worst: half a shard under its temporary name, and no list.
    let [list] = &kept(&shop, "shards.json")[..] else { panic!("one list") };
    fs::remove_file(shop.path(list)).unwrap();
    let last = kept(&shop, ".obx").pop().unwrap();
    let bytes = fs::read(shop.path(&last)).unwrap();
    shop.write(&last, &bytes[..bytes.len() / 3]);
    shop.ok(&format!("{FIT} --out model.json"));
    assert_eq!(shop.read("model.json"), shop.read("clean.json"));
}

#[test]
fn a_list_that_is_not_its_own_is_not_believed() {
    let shop = Workshop::with_data();
    let fit = "fit train.svm --memory 10M --cache kept --lambda 0.1max --quiet --out";
    shop.ok(&format!("{fit} clean.json"));
    let [list] = &kept(&shop, "shards.json")[..] else { panic!("one list") };
    let text = shop.read(list);
    for wrong in [text.replace("\"rows\": 120", "\"rows\": 119"), text[..text.len() / 2].to_owned(), String::new()] {
        assert_ne!(wrong, text);
        shop.write(list, wrong);
        shop.ok(&format!("{fit} model.json"));
        assert_eq!(shop.read("model.json"), shop.read("clean.json"));
        assert_eq!(shop.read(list), text);
    }
}

#[test]
fn a_full_disk_is_said_and_leaves_no_shards_to_be_used() {
    let shop = shop();
    let obprox = env!("CARGO_BIN_EXE_obprox");
    // No file may be longer than a megabyte; the signal that would say so is left aside.
    let line = format!("trap '' XFSZ; ulimit -f 1000; '{obprox}' {FIT} --out model.json");
    let output = Command::new("bash").args(["-c", &line]).current_dir(shop.path(".")).output().unwrap();
    failed(&output, 1, &[".obx", "cannot write"]);
    assert!(kept(&shop, ".json").is_empty() && !shop.exists("model.json"));
    shop.ok(&format!("{FIT} --out model.json"));
}

#[test]
fn two_runs_do_not_write_one_cache_at_once() {
    let shop = Workshop::with_data();
    let fit = "fit train.svm --memory 10M --cache kept --quiet --out model.json";
    shop.ok(fit);
    let directory = shop.path(&shop.listing().into_iter().find(|name| name.ends_with(".shards")).unwrap());
    let lock = File::open(&directory).unwrap();
    lock.lock().unwrap();
    // Shards that are whole are read by any number of runs.
    shop.ok(fit);
    fs::remove_file(shop.path("model.json")).unwrap();
    shop.write("train.svm", shop.read("train.svm") + "1 3:0.5\n");
    failed(&shop.run(fit), 2, &["another run is using this directory", ".shards"]);
    assert!(!shop.exists("model.json"));
    drop(lock);
    shop.ok(fit);
}

#[test]
fn a_shard_that_goes_while_a_run_reads_is_named() {
    let shop = Workshop::with_data();
    let fit = "fit train.svm --memory 10M --cache kept --solver prox-sg --quiet --out model.json";
    shop.ok(fit);
    fs::remove_file(shop.path("model.json")).unwrap();
    let shard = kept(&shop, "000000.obx").pop().unwrap();
    let bytes = fs::read(shop.path(&shard)).unwrap();
    let damages: [(&str, &dyn Fn()); 3] = [
        ("missing", &|| fs::remove_file(shop.path(&shard)).unwrap()),
        ("another shard", &|| {
            shop.write("other.svm", "1 1:1\n-1 2:1\n");
            shop.ok("data convert other.svm other.obx");
            fs::copy(shop.path("other.obx"), shop.path(&shard)).unwrap();
        }),
        ("remove the directory", &|| shop.write(&shard, &bytes[..bytes.len() - 8])),
    ];
    for (word, damage) in damages {
        damage();
        failed(&shop.run(fit), 2, &["000000.obx", word]);
        assert!(!shop.exists("model.json"));
    }
}
