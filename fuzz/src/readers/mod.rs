//! What is tried of each format.

pub mod cache;
pub mod checkpoint;
pub mod columns;
pub mod images;
pub mod log;
pub mod model;
pub mod network;
pub mod part;
pub mod shards;
pub mod text;

use obprox::data::{Dataset, Synth, Task};
use obprox::loss::LossKind;
use obprox::{Lambda, Problem, Terms};

/// A small problem of so many classes.
fn problem(loss: LossKind, classes: usize) -> Problem {
    let task = if classes == 2 { Task::Classification } else { Task::Classes(classes) };
    planted(Synth { rows: 40, cols: 12, per_row: 5.0, support: 4, task, ..Synth::default() }, loss, classes)
}

/// A problem of more features than are taken in at a look.
fn wide_problem() -> Problem {
    let synth = Synth { rows: 60, cols: 600, per_row: 9.0, support: 20, ..Synth::default() };
    planted(synth, LossKind::Logistic, 2)
}

fn planted(synth: Synth, loss: LossKind, classes: usize) -> Problem {
    let data = synth.generate().expect("the sizes are sound");
    let terms = Terms { lambda: Lambda::OfMax(0.1), ..Terms::default() };
    Problem::new(data.dataset, loss.build(classes), &terms).expect("the problem is sound")
}

/// JSON with one and the same time wherever there is one, so that a case is the same file in every run.
fn timeless(json: &[u8]) -> Vec<u8> {
    const KEY: &str = "\"seconds\":";
    let text = String::from_utf8_lossy(json);
    let mut parts = text.split(KEY);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.find([',', '}']).map_or("", |end| &part[end..]);
        told += &format!("{KEY}0.5{rest}");
    }
    told.into_bytes()
}

/// Holds data to what the rest of the library takes for granted.
fn assert_sound(dataset: &Dataset) {
    let matrix = &dataset.matrix;
    assert_eq!(matrix.n_rows(), dataset.targets.len());
    // NaN is the target of a row that has none.
    assert!(!dataset.targets.iter().any(|target| target.is_infinite()));
    assert!(dataset.names.as_ref().is_none_or(|names| names.len() == matrix.n_cols()));
    for row in 0..matrix.n_rows() {
        let mut last = None;
        matrix.for_each(row, |column, value| {
            assert!(column < matrix.n_cols() && value.is_finite() && last.is_none_or(|last| last < column));
            last = Some(column);
        });
    }
    obprox::data::Summary::of(dataset);
}
