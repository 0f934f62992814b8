//! Random problems of awkward shapes: empty rows, empty columns, equal columns, every storage.

use obprox::data::{Dataset, Matrix};
use obprox::loss::LossKind;
use obprox::{Lambda, Problem, Terms};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::plain::Plain;

pub const LOSSES: [LossKind; 6] = [
    LossKind::Logistic,
    LossKind::Squared,
    LossKind::SquaredHinge,
    LossKind::Huber(0.7),
    LossKind::Poisson,
    LossKind::Softmax,
];

const CLASSES: [f64; 3] = [-1.0, 0.0, 4.0];

/// How the values of a matrix are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Storage {
    Ones,
    Single,
    Double,
    DenseSingle,
    DenseDouble,
}

/// What a random problem is made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub loss: LossKind,
    pub rows: usize,
    pub cols: usize,
    /// At most that many entries a row.
    pub per_row: usize,
    pub storage: Storage,
    /// λ as a share of the largest slope at x = 0.
    pub lambda: f64,
    pub l2: f64,
    /// Whether the features have weights; every fourth is then 0.
    pub feature_weights: bool,
    /// Whether the rows have weights; some are then 0.
    pub row_weights: bool,
    pub intercept: bool,
    pub seed: u64,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            loss: LossKind::Logistic,
            rows: 30,
            cols: 12,
            per_row: 5,
            storage: Storage::Double,
            lambda: 0.1,
            l2: 0.0,
            feature_weights: false,
            row_weights: false,
            intercept: true,
            seed: 0,
        }
    }
}

impl Recipe {
    /// The problem as the library has it and as the textbook has it.
    pub fn build(&self) -> (Problem, Plain) {
        let rng = &mut ChaCha8Rng::seed_from_u64(self.seed);
        let rows = self.rows(rng);
        let (labels, targets) = self.targets(rng, &rows);
        let feature_weights = self
            .feature_weights
            .then(|| (0..self.cols).map(|j| if j % 4 == 1 { 0.0 } else { rng.random_range(0.3..2.0) }).collect());
        let row_weights: Option<Vec<f64>> = self
            .row_weights
            .then(|| (0..self.rows).map(|row| if row % 7 == 3 { 0.0 } else { rng.random_range(0.2..3.0) }).collect());
        let mut plain = self.plain(&rows, targets, feature_weights.as_deref(), row_weights.as_deref());
        let lambda = self.lambda * plain.largest_slope();
        plain.l1.iter_mut().for_each(|l1| *l1 *= lambda);
        let terms = Terms {
            lambda: Lambda::Value(lambda),
            l2: self.l2,
            feature_weights,
            row_weights,
            intercept: self.intercept,
            ..Terms::default()
        };
        let data = Dataset::new(self.matrix(&rows), labels);
        (Problem::new(data, self.loss.build(CLASSES.len()), &terms).unwrap(), plain)
    }

    fn rows(&self, rng: &mut ChaCha8Rng) -> Vec<Vec<(u32, f64)>> {
        let dense = matches!(self.storage, Storage::DenseSingle | Storage::DenseDouble);
        let value = |rng: &mut ChaCha8Rng| match self.storage {
            Storage::Ones => 1.0,
            // Exact in single precision, and never zero.
            Storage::Single | Storage::DenseSingle => f64::from(rng.random_range(1..12i32)) / 8.0 - 0.8125,
            Storage::Double | Storage::DenseDouble => rng.random_range(-1.0..1.0),
        };
        let row = |_| {
            let mut row: Vec<(u32, f64)> = Vec::new();
            if dense {
                row.extend((0..self.cols as u32).map(|column| (column, value(rng))));
            } else if rng.random_bool(0.9) {
                let mut columns: Vec<u32> =
                    (0..rng.random_range(1..=self.per_row)).map(|_| rng.random_range(0..self.cols as u32)).collect();
                columns.sort_unstable();
                columns.dedup();
                row.extend(columns.into_iter().map(|column| (column, value(rng))));
            }
            // Columns 2 and 3 are twins.
            if self.cols > 3 {
                let twin = row.iter().find(|(column, _)| *column == 2).map(|&(_, value)| (3, value));
                row.retain(|(column, _)| *column != 3);
                row.extend(twin);
                row.sort_unstable_by_key(|(column, _)| *column);
            }
            row
        };
        (0..self.rows).map(row).collect()
    }

    fn matrix(&self, rows: &[Vec<(u32, f64)>]) -> Matrix {
        match self.storage {
            Storage::DenseSingle | Storage::DenseDouble => {
                Matrix::from_dense(rows.len(), self.cols, &dense(rows, self.cols).concat())
            }
            _ => Matrix::from_rows(self.cols, rows),
        }
    }

    /// The labels as a file would have them, and the targets that they stand for.
    fn targets(&self, rng: &mut ChaCha8Rng, rows: &[Vec<(u32, f64)>]) -> (Vec<f64>, Vec<f64>) {
        let planted: Vec<f64> = (0..self.cols).map(|_| rng.random_range(-2.0..2.0)).collect();
        let score = |row: &Vec<(u32, f64)>, rng: &mut ChaCha8Rng| -> f64 {
            let score: f64 = row.iter().map(|&(column, value)| value * planted[column as usize]).sum();
            score + rng.random_range(-0.7..0.9)
        };
        let of = |(at, row): (usize, &Vec<(u32, f64)>)| {
            let score = score(row, rng);
            match self.loss {
                // The first rows have one of each class.
                LossKind::Logistic | LossKind::SquaredHinge => {
                    let high = if at < 2 { at == 0 } else { score > 0.0 };
                    if high { (5.0, 1.0) } else { (2.0, -1.0) }
                }
                LossKind::Softmax => {
                    let class = if at < 3 { 2 - at } else { ((score + 2.0).max(0.0) as usize).min(2) };
                    (CLASSES[class], class as f64)
                }
                LossKind::Poisson => {
                    let count = score.exp().min(6.0).floor();
                    (count, count)
                }
                _ => (score, score),
            }
        };
        rows.iter().enumerate().map(of).unzip()
    }

    /// The textbook's problem at λ = 1.
    fn plain(
        &self,
        rows: &[Vec<(u32, f64)>],
        targets: Vec<f64>,
        feature_weights: Option<&[f64]>,
        row_weights: Option<&[f64]>,
    ) -> Plain {
        let mut rows = dense(rows, self.cols);
        let mut l1 = feature_weights.map_or(vec![1.0; self.cols], <[f64]>::to_vec);
        let mut l2: Vec<f64> = l1.iter().map(|&weight| if weight > 0.0 { self.l2 } else { 0.0 }).collect();
        if self.intercept {
            rows.iter_mut().for_each(|row| row.push(1.0));
            l1.push(0.0);
            l2.push(0.0);
        }
        let row_weights = row_weights.map_or(vec![1.0; rows.len()], |weights| {
            let mean = weights.iter().sum::<f64>() / weights.len() as f64;
            weights.iter().map(|weight| weight / mean).collect()
        });
        let outputs = if self.loss == LossKind::Softmax { CLASSES.len() } else { 1 };
        Plain { loss: self.loss, outputs, rows, targets, row_weights, l1, l2, intercept: self.intercept }
    }
}

impl Plain {
    /// The largest slope over the penalised coordinates at zero; 1 where all is flat, but for rounding.
    fn largest_slope(&self) -> f64 {
        let slopes = self.gradient(&vec![0.0; self.size()]);
        let penalised = slopes.iter().enumerate().filter(|(at, _)| self.penalty(*at).0 > 0.0);
        let largest = penalised.map(|(_, slope)| slope.abs()).fold(0.0, f64::max);
        if largest > 1e-9 { largest } else { 1.0 }
    }
}

fn dense(rows: &[Vec<(u32, f64)>], cols: usize) -> Vec<Vec<f64>> {
    let of = |row: &Vec<(u32, f64)>| {
        let mut dense = vec![0.0; cols];
        row.iter().for_each(|&(column, value)| dense[column as usize] = value);
        dense
    };
    rows.iter().map(of).collect()
}
