//! Every reader on mutations of sound files, and on files that once broke it.

use std::path::Path;

use obprox_fuzz::{READERS, mutate, reader};

/// Says the case where a reader panics in it.
struct Case<'a>(&'a str, u64);

impl Drop for Case<'_> {
    #[allow(clippy::print_stderr, reason = "which case it was must be told")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: case {} of the mutations", self.0, self.1);
        }
    }
}

/// Tries a reader on so many mutations, or on as many as `OBPROX_FUZZ` says. Of those at least a few must be taken, or
/// nothing but the first check of the reader is tried.
fn tried(name: &str, cases: u64, taken_at_least: u64) {
    let reader = reader(name).unwrap();
    assert!(reader.seeds.iter().all(|seed| reader.reads(seed)), "{name} takes the sound files");
    for file in &reader.odd {
        reader.reads(file);
    }
    let cases = std::env::var("OBPROX_FUZZ").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    let mut taken = 0;
    for number in 0..cases {
        let _case = Case(name, number);
        taken += u64::from(reader.reads(&mutate::case(number, &reader.seeds)));
    }
    assert!(taken >= taken_at_least.min(cases / 100), "{name} took {taken} of {cases} mutations");
}

#[test]
fn text() {
    tried("libsvm", 3000, 100);
    tried("csv", 3000, 100);
    tried("compressed-text", 1500, 0);
    tried("numbers", 1000, 10);
}

#[test]
fn tables() {
    tried("table", 3000, 30);
    tried("parquet", 1000, 10);
    tried("arrow", 1000, 10);
}

#[test]
fn caches() {
    tried("cache", 1500, 0);
    tried("cache-forged", 1500, 10);
}

#[test]
fn models_and_logs() {
    tried("model", 3000, 30);
    tried("log", 600, 20);
}

#[test]
fn checkpoints() {
    for method in ["auto", "obproxsg", "prox-svrg", "rda"] {
        tried(&format!("checkpoint-{method}"), 200, 0);
        tried(&format!("checkpoint-{method}-forged"), 300, 3);
    }
    tried("checkpoint-auto-wide-forged", 100, 1);
    tried("part-forged", 500, 5);
}

#[test]
fn networks() {
    tried("obz", 1500, 0);
    tried("obz-forged", 1500, 10);
    tried("obz-weights-forged", 1500, 10);
    tried("safetensors", 1500, 10);
}

#[test]
fn images() {
    tried("idx-and-cifar", 1500, 10);
    tried("idx-labels", 1000, 10);
    tried("pictures", 1500, 10);
}

/// What once broke a reader breaks none again.
#[test]
fn what_was_found() {
    for directory in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")).unwrap() {
        let directory = directory.unwrap().path();
        let name = directory.file_name().unwrap().to_str().unwrap();
        let reader = reader(name).unwrap_or_else(|| panic!("{name} is the name of no reader"));
        for file in std::fs::read_dir(&directory).unwrap() {
            reader.reads(&std::fs::read(file.unwrap().path()).unwrap());
        }
    }
}

#[test]
fn every_reader_has_its_name() {
    READERS.iter().for_each(|(name, make)| assert_eq!(make().name, *name));
}
