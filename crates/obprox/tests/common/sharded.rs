//! Rows to be cut into shards.

use std::fs;
use std::path::Path;

use obprox::data::{Dataset, Matrix, write_libsvm};
use obprox::loss::LossKind;

/// Rows whose features are few or many, sparse, of which some explain the targets.
pub fn dataset(loss: LossKind, n_rows: usize, n_cols: usize) -> Dataset {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let per_row = (n_cols / 4).min(12);
    let rows: Vec<Vec<(u32, f64)>> = (0..n_rows)
        .map(|_| {
            let mut columns: Vec<u32> = (0..per_row).map(|_| (random() * random() * n_cols as f64) as u32).collect();
            columns.sort_unstable();
            columns.dedup();
            columns.into_iter().map(|column| (column, 2.0 * random() - 0.7)).collect()
        })
        .collect();
    let mut target = |row: &Vec<(u32, f64)>| {
        let score: f64 =
            row.iter().map(|&(column, value)| value * f64::from(column % 5) * 0.5).sum::<f64>() + random() - 2.0;
        match loss {
            LossKind::Logistic | LossKind::SquaredHinge => f64::from(score > 0.0),
            LossKind::Poisson => score.clamp(0.0, 4.0).floor(),
            LossKind::Softmax => (score + 2.0).clamp(0.0, 3.0).floor(),
            _ => score,
        }
    };
    let targets = rows.iter().map(&mut target).collect();
    Dataset::new(Matrix::from_rows(n_cols, &rows), targets)
}

pub fn write_text(data: &Dataset, path: &Path) {
    let mut text = Vec::new();
    write_libsvm(data, &mut text).unwrap();
    fs::write(path, text).unwrap();
}
