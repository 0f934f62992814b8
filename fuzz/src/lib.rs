//! Every reader of the project, with sound files and with what must hold whatever a file is: an error or something sound,
//! never a panic, never memory for what a file only claims to be.
//!
//! `tests/readers.rs` tries each on mutations of its sound files, some thousands with the other tests and as many as
//! `OBPROX_FUZZ` says in long runs, and on the files of `corpus/`, which were found to break something. `fuzz/run` looks
//! for more of them by the branches that a file takes (`guided/`).

pub mod memory;
pub mod mutate;
mod readers;

pub use readers::network::unfolded;

use std::path::PathBuf;

use tempfile::TempDir;

/// Whether a file is taken; panics where something does not hold that must.
type Read = Box<dyn Fn(&[u8]) -> bool>;

/// A reader and files for it.
pub struct Reader {
    /// Its name, which is that of its directory in `corpus/`.
    pub name: &'static str,
    /// Files that it takes.
    pub seeds: Vec<Vec<u8>>,
    /// Files that mutations seldom come to, to be taken or not.
    pub odd: Vec<Vec<u8>>,
    read: Read,
}

impl Reader {
    fn new(name: &'static str, seeds: Vec<Vec<u8>>, read: impl Fn(&[u8]) -> bool + 'static) -> Self {
        Self { name, seeds, odd: Vec::new(), read: Box::new(read) }
    }

    fn with_odd(self, odd: Vec<Vec<u8>>) -> Self {
        Self { odd, ..self }
    }

    /// Hands it a file; whether it took it. Panics where something does not hold that must.
    pub fn reads(&self, bytes: &[u8]) -> bool {
        let (taken, largest) = memory::largest_in(|| (self.read)(bytes));
        assert!(largest <= MOST, "{}: {largest} bytes at once for a file of {}", self.name, bytes.len());
        taken
    }
}

/// No reader takes more at once for a file of a few kilobytes than its own buffers are.
const MOST: usize = 32 << 20;

/// Makes a reader.
pub type Make = fn() -> Reader;

/// The readers by name, each to be made where it is wanted: some train a model first.
pub const READERS: [(&str, Make); 31] = [
    ("libsvm", readers::text::libsvm),
    ("csv", readers::text::csv),
    ("table", readers::text::table),
    ("parquet", readers::columns::parquet),
    ("arrow", readers::columns::arrow),
    ("compressed-text", readers::text::compressed),
    ("numbers", readers::text::numbers),
    ("cache", readers::cache::whole),
    ("cache-forged", readers::cache::forged),
    ("shards", readers::shards::list),
    ("model", readers::model::models),
    ("log", readers::log::logs),
    ("checkpoint-auto", readers::checkpoint::auto),
    ("checkpoint-obproxsg", readers::checkpoint::obproxsg),
    ("checkpoint-prox-svrg", readers::checkpoint::prox_svrg),
    ("checkpoint-rda", readers::checkpoint::rda),
    ("checkpoint-auto-forged", readers::checkpoint::auto_forged),
    ("checkpoint-auto-wide-forged", readers::checkpoint::auto_wide_forged),
    ("checkpoint-obproxsg-forged", readers::checkpoint::obproxsg_forged),
    ("checkpoint-prox-svrg-forged", readers::checkpoint::prox_svrg_forged),
    ("checkpoint-rda-forged", readers::checkpoint::rda_forged),
    ("part-forged", readers::part::forged),
    ("obz", readers::network::whole),
    ("obz-forged", readers::network::forged),
    ("obz-weights-forged", readers::network::forged_weights),
    ("obz-graph-forged", readers::network::forged_graph),
    ("safetensors", readers::network::safetensors),
    ("onnx", readers::network::onnx),
    ("idx-and-cifar", readers::images::raw),
    ("idx-labels", readers::images::labels),
    ("pictures", readers::images::pictures),
];

/// The reader of a name; nothing where there is none.
pub fn reader(name: &str) -> Option<Reader> {
    READERS.iter().find(|(its, _)| *its == name).map(|(_, make)| make())
}

/// Has the panic hook of whoever looks for panics pass over those that a reader makes errors of.
pub fn pass_over_guarded_panics() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !obprox::data::panics_are_errors() {
            told(panic);
        }
    }));
}

/// A directory of a reader's own, where one file of it is written over and over.
struct Scratch {
    directory: TempDir,
    name: &'static str,
}

impl Scratch {
    fn new(name: &'static str) -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory"), name }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(self.name)
    }

    /// The path of a file that holds these bytes.
    fn holding(&self, bytes: &[u8]) -> PathBuf {
        std::fs::write(self.path(), bytes).expect("the temporary directory can be written to");
        self.path()
    }
}
