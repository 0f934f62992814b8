//! Columns brought to unit scale, and weights brought back.

use super::cells::Cells;
use super::{Csr, Matrix, Rows, Value, with_rows};

/// How the columns of a matrix were standardised: stored value = (original − mean) / scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// Standard deviation of each column over all rows, implicit zeros included; 1 where the column is constant.
    pub scale: Vec<f64>,
    /// What was subtracted of each column: zero where nothing was.
    pub mean: Vec<f64>,
}

impl Scaling {
    /// Turns weights and intercepts of the standardised problem into those of the original one, with the same
    /// predictions. The weight of column j for output k is at `j * outputs + k`.
    pub fn to_original(&self, weights: &mut [f64], outputs: usize, intercept: &mut [f64]) {
        assert_eq!(weights.len(), self.scale.len() * outputs, "one weight a column and output");
        for ((weights, scale), mean) in weights.chunks_mut(outputs.max(1)).zip(&self.scale).zip(&self.mean) {
            for (output, weight) in weights.iter_mut().enumerate() {
                *weight /= scale;
                // Without an intercept there is nothing to take up the shift; such problems are not centred.
                if let Some(intercept) = intercept.get_mut(output)
                    && *mean != 0.0
                {
                    *intercept -= *weight * mean;
                }
            }
        }
    }
}

/// Divides every column by its standard deviation. Dense storage is centred too where `centre` asks for it; sparse
/// storage never is, since that would fill it.
pub fn standardise(matrix: &Matrix, centre: bool) -> (Matrix, Scaling) {
    let mut moments = Moments::new(matrix.n_rows(), matrix.n_cols());
    moments.add(matrix);
    moments.have_means();
    moments.add_squares(matrix);
    let is_dense = matches!(matrix, Matrix::Dense32(_) | Matrix::Dense64(_));
    let scaling = moments.scaling(centre && is_dense);
    (scaling.apply(matrix), scaling)
}

impl Scaling {
    /// The rows as they are standardised.
    pub(crate) fn apply(&self, matrix: &Matrix) -> Matrix {
        match matrix {
            Matrix::Ones(rows) => scaled(rows, &self.scale),
            Matrix::Sparse32(rows) => scaled(rows, &self.scale),
            Matrix::Sparse64(rows) => scaled(rows, &self.scale),
            Matrix::Dense32(_) | Matrix::Dense64(_) => with_rows!(matrix, |rows| standardised(rows, self)),
        }
    }
}

/// Mean and standard deviation of every column, of rows that come one after the other. Two passes: the textbook's one-pass
/// formula loses all digits where the mean is large against the deviation.
pub(super) struct Moments {
    n_rows: usize,
    means: Vec<f64>,
    variances: Vec<f64>,
    stored: Vec<usize>,
    /// Tells a constant column exactly, where computed moments would leave rounding.
    ranges: Vec<(f64, f64)>,
}

impl Moments {
    pub fn new(n_rows: usize, n_cols: usize) -> Self {
        let ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); n_cols];
        Self { n_rows, means: vec![0.0; n_cols], variances: vec![0.0; n_cols], stored: vec![0; n_cols], ranges }
    }

    fn count(&self) -> f64 {
        self.n_rows.max(1) as f64
    }

    /// Some of the rows, for the first time.
    pub fn add(&mut self, matrix: &Matrix) {
        let (count, Self { means, stored, ranges, .. }) = (self.count(), self);
        with_rows!(matrix, |rows| (0..rows.n_rows()).for_each(|row| rows.for_each(row, |column, value| {
            means[column] += value / count;
            stored[column] += 1;
            ranges[column] = (ranges[column].0.min(value), ranges[column].1.max(value));
        })));
    }

    /// All rows have come once.
    pub fn have_means(&mut self) {
        for column in 0..self.means.len() {
            if self.stored[column] == self.n_rows && self.ranges[column].0 == self.ranges[column].1 {
                self.means[column] = self.ranges[column].0;
            }
        }
    }

    /// Some of the rows, for the second time.
    pub fn add_squares(&mut self, matrix: &Matrix) {
        let (count, Self { means, variances, .. }) = (self.count(), self);
        with_rows!(matrix, |rows| (0..rows.n_rows()).for_each(|row| rows.for_each(row, |column, value| {
            variances[column] += (value - means[column]).powi(2) / count;
        })));
    }

    /// All rows have come twice.
    pub fn scaling(self, centre: bool) -> Scaling {
        let count = self.count();
        let Self { n_rows, means, variances, stored, .. } = self;
        let deviation = |column: usize| {
            let zeros = (n_rows - stored[column]) as f64;
            let variance: f64 = variances[column] + zeros / count * means[column].powi(2);
            // Constant columns have variance 0. One that leaves the range of a double cannot be brought to unit scale either.
            if variance.is_normal() { variance.sqrt() } else { 1.0 }
        };
        let scale = (0..means.len()).map(deviation).collect();
        Scaling { mean: if centre { means } else { vec![0.0; means.len()] }, scale }
    }
}

fn scaled<V: Value>(rows: &Csr<V>, scale: &[f64]) -> Matrix {
    let values = rows.indices().iter().zip(V::iter(rows.values(), 0..rows.indices().len()));
    let values: Vec<f64> = values.map(|(&column, value)| value / scale[column as usize]).collect();
    let (offsets, indices) = (rows.offsets().to_vec(), rows.indices().to_vec());
    Matrix::Sparse64(Csr::new(rows.n_cols(), offsets.into(), indices.into(), values.into()))
}

fn standardised(rows: &impl Rows, scaling: &Scaling) -> Matrix {
    let mut cells = Cells::default();
    for row in 0..rows.n_rows() {
        rows.for_each(row, |column, value| cells.push((value - scaling.mean[column]) / scaling.scale[column]));
    }
    cells.finish(rows.n_rows(), rows.n_cols())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(matrix: &Matrix, wanted: usize) -> Vec<f64> {
        let value = |row| {
            let mut found = 0.0;
            matrix.for_each(row, |column, value| found += if column == wanted { value } else { 0.0 });
            found
        };
        (0..matrix.n_rows()).map(value).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (mean, (squares / values.len() as f64).sqrt())
    }

    #[test]
    fn columns_get_unit_scale_and_constant_ones_stay() {
        let rows =
            vec![vec![(0, 1e9 + 1.0), (1, 0.1), (2, 5.0)], vec![(0, 1e9 + 2.0), (1, 0.1)], vec![(0, 1e9), (1, 0.1)]];
        let sparse = Matrix::from_rows(4, &rows);
        let (scaled, scaling) = standardise(&sparse, true);
        assert_eq!(scaling.mean, [0.0; 4]);
        assert_eq!((scaling.scale[1], scaling.scale[3]), (1.0, 1.0));
        assert_eq!(scaled.nnz(), sparse.nnz());
        for wanted in [0, 2] {
            let (_, deviation) = mean_and_deviation(&column(&scaled, wanted));
            assert!((deviation - 1.0).abs() < 1e-6, "{deviation}");
        }
    }

    #[test]
    fn dense_columns_are_centred_and_weights_come_back() {
        let values = [1.5, 2.25, -3.0, 4.0, 0.0, 6.5, 7.0, 1.0];
        let matrix = Matrix::from_dense(4, 2, &values);
        assert_eq!(matrix.storage(), "dense f32");
        let (scaled, scaling) = standardise(&matrix, true);
        for wanted in 0..2 {
            let (mean, deviation) = mean_and_deviation(&column(&scaled, wanted));
            assert!(mean.abs() < 1e-15 && (deviation - 1.0).abs() < 1e-15);
        }
        let (outputs, mut weights, mut intercept) = (2, vec![0.5, -1.0, 2.0, 0.0], vec![0.25, 3.0]);
        let predict = |matrix: &Matrix, weights: &[f64], intercept: &[f64], row, output| {
            let mut sum: f64 = intercept[output];
            matrix.for_each(row, |column, value| sum += value * weights[column * outputs + output]);
            sum
        };
        let before: Vec<f64> = (0..8).map(|at| predict(&scaled, &weights, &intercept, at / 2, at % 2)).collect();
        scaling.to_original(&mut weights, outputs, &mut intercept);
        let after: Vec<f64> = (0..8).map(|at| predict(&matrix, &weights, &intercept, at / 2, at % 2)).collect();
        assert!(before.iter().zip(&after).all(|(before, after)| (before - after).abs() < 1e-14));
    }
}
