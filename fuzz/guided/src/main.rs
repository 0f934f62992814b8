//! One reader, whose name is in `OBPROX_READER`; its sound files are written to `OBPROX_CORPUS` first. `fuzz/run` starts it.
#![no_main]

use std::cell::OnceCell;
use std::path::PathBuf;

use obprox_fuzz::{Reader, pass_over_guarded_panics, reader};

thread_local! {
    static READER: OnceCell<Reader> = const { OnceCell::new() };
}

fn chosen() -> Reader {
    let name = std::env::var("OBPROX_READER").expect("OBPROX_READER names a reader");
    reader(&name).unwrap_or_else(|| panic!("{name} is the name of no reader"))
}

fn write_seeds() {
    let corpus = PathBuf::from(std::env::var_os("OBPROX_CORPUS").expect("OBPROX_CORPUS names a directory"));
    let reader = chosen();
    for (number, seed) in reader.seeds.iter().chain(&reader.odd).enumerate() {
        std::fs::write(corpus.join(format!("first-{number}")), seed).expect("the directory can be written to");
    }
}

libfuzzer_sys::fuzz_target!(init: write_seeds(), |bytes: &[u8]| {
    // In here, since libFuzzer's own hook is set by then: it ends the process at any panic.
    let first = || {
        pass_over_guarded_panics();
        chosen()
    };
    READER.with(|reader| reader.get_or_init(first).reads(bytes));
});
