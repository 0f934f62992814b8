//! Data in shards.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use obprox::data::{Dataset, Matrix, ReadOptions, ShardedData, Sharding, write_libsvm};
use obprox::loss::LossKind;

/// Every loss there is.
pub const LOSSES: [LossKind; 9] = [
    LossKind::Logistic,
    LossKind::Squared,
    LossKind::SquaredHinge,
    LossKind::Huber(0.7),
    LossKind::Poisson,
    LossKind::Softmax,
    LossKind::Gamma,
    LossKind::Tweedie(1.4),
    LossKind::NegativeBinomial(0.8),
];

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
            LossKind::Poisson | LossKind::NegativeBinomial(_) => score.clamp(0.0, 4.0).floor(),
            LossKind::Gamma => score.clamp(-1.0, 2.0).exp(),
            LossKind::Tweedie(_) => score.clamp(0.0, 4.0),
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

pub fn sharding(cache: &Path, memory: u64, rows: usize) -> Sharding {
    Sharding { cache: cache.into(), memory, rows: Some(rows) }
}

/// The data in shards with memory for all of it, and for no more than what is being worked on.
pub fn both(sources: &[PathBuf], cache: &Path, rows: usize, n_cols: usize) -> [Arc<ShardedData>; 2] {
    let options = ReadOptions { n_cols: Some(n_cols), ..ReadOptions::default() };
    let open = |memory| {
        Arc::new(ShardedData::open(sources, &options, &sharding(cache, memory, rows), &mut |_, _| {}).unwrap())
    };
    let ample = open(1 << 32);
    let tight = open(ample.least_memory());
    [ample, tight]
}
