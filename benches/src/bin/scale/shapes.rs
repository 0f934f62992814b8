//! The problems: planted ones of the paper's largest shapes, whole or a part, and a set of text many times over.

use std::path::PathBuf;

use obprox::data::{Builder, Dataset, Entries, ReadOptions, Synth, read, write_cache};
use obprox::loss::LossKind;
use obprox::{Lambda, Problem, Terms};

/// A shape divided by a number: kdda's, url_combined's, or the rows of a file again and again until there are a million.
pub struct Shape {
    pub name: String,
    pub part: usize,
}

impl Shape {
    /// The cache that holds it, which is made where it is not there.
    pub fn file(&self) -> PathBuf {
        let directory = PathBuf::from(std::env::var_os("OBPROX_SCALE").unwrap_or_else(|| "target/scale".into()));
        let stem = std::path::Path::new(&self.name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = directory.join(format!("{stem}-{}.obx", self.part));
        if !file.exists() {
            std::fs::create_dir_all(&directory).expect("a directory for the data");
            write_cache(&self.make(), &file).expect("room on the disk");
        }
        file
    }

    fn make(&self) -> Dataset {
        let part = self.part;
        let recipe = match self.name.as_str() {
            "kdda" => Synth {
                rows: 8_407_752 / part,
                cols: 20_216_830 / part,
                per_row: 36.3,
                support: 20_000 / part,
                entries: Entries::UnitRows,
                skew: 1.1,
                noise: 0.1,
                seed: 2,
                ..Synth::default()
            },
            "url" => Synth {
                rows: 2_396_130 / part,
                cols: 3_231_961 / part,
                per_row: 115.6,
                support: 5_000 / part,
                entries: Entries::Ones,
                skew: 1.1,
                noise: 1.0,
                seed: 1,
                ..Synth::default()
            },
            file => return tiled(file, 1_000_000 / part),
        };
        recipe.generate().expect("a recipe").dataset
    }

    /// The problem at a λ: `1/N` or, as in `0.01max`, a share of λ_max.
    pub fn problem(&self, lambda: &str) -> Problem {
        let lambda = match lambda.strip_suffix("max") {
            Some(share) => Lambda::OfMax(share.parse().expect("a share of λ_max")),
            None => Lambda::OverN,
        };
        let data = read(self.file(), &ReadOptions::default()).expect("a cache");
        Problem::new(data, LossKind::Logistic.build(2), &Terms { lambda, ..Terms::default() }).expect("a problem")
    }
}

/// The rows of a file again and again, so many.
fn tiled(file: &str, n_rows: usize) -> Dataset {
    let once = read(file, &ReadOptions::default()).expect("kdda, url or a file");
    let (mut rows, mut targets) = (Builder::default(), Vec::with_capacity(n_rows));
    for at in (0..once.matrix.n_rows()).cycle().take(n_rows) {
        once.matrix.for_each(at, |column, value| rows.push(column as u32, value));
        rows.end_row();
        targets.push(once.targets[at]);
    }
    Dataset::new(rows.finish(Some(once.matrix.n_cols())), targets)
}
