//! Rows as another library holds them: checked here, once, and used where they lie if their layout allows it.

use bytemuck::Pod;
use rayon::prelude::*;

use super::{Buffer, Builder, Csr, Dense, Matrix, Value};
use crate::{Error, Result};

/// A type of values that are stored as they are: f32 or f64.
pub trait Stored: Value<Array = Buffer<Self>> + Pod + Into<f64> {
    /// Sparse rows of this type.
    fn sparse(rows: Csr<Self>) -> Matrix;
    /// Dense rows of this type.
    fn dense(rows: Dense<Self>) -> Matrix;
}

impl Stored for f32 {
    fn sparse(rows: Csr<f32>) -> Matrix {
        Matrix::Sparse32(rows)
    }

    fn dense(rows: Dense<f32>) -> Matrix {
        Matrix::Dense32(rows)
    }
}

impl Stored for f64 {
    fn sparse(rows: Csr<f64>) -> Matrix {
        Matrix::Sparse64(rows)
    }

    fn dense(rows: Dense<f64>) -> Matrix {
        Matrix::Dense64(rows)
    }
}

impl Matrix {
    /// Compressed sparse rows. Nothing is copied where the columns rise within each row; else the entries are sorted and
    /// those of one place added up.
    pub fn from_csr<T: Stored>(
        n_cols: usize,
        offsets: Buffer<u64>,
        indices: Buffer<u32>,
        values: Buffer<T>,
    ) -> Result<Self> {
        if values.len() != indices.len() {
            let (indices, values) = (indices.len(), values.len());
            return Err(Error::Data(format!("{indices} column indices but {values} values")));
        }
        if !sound_offsets(&offsets, indices.len()) {
            let message = "the row offsets must start at 0, never fall, and end at the number of column indices";
            return Err(Error::Data(message.into()));
        }
        let matrix = match rows_of(&offsets, &indices, n_cols) {
            RowsAre::Rising => T::sparse(Csr::new(n_cols, offsets, indices, values)),
            RowsAre::InRange => sorted(n_cols, &offsets, &indices, &values),
            RowsAre::OutOfRange => {
                return Err(Error::Data(format!("a column index is not below the number of columns, {n_cols}")));
            }
        };
        matrix.all_finite()
    }

    /// Dense values, row after row. Nothing is copied, unless sparse storage takes fewer bytes.
    pub fn from_cells<T: Stored>(n_rows: usize, n_cols: usize, values: Buffer<T>) -> Result<Self> {
        if n_rows.checked_mul(n_cols) != Some(values.len()) {
            return Err(Error::Data(format!("{} values for {n_rows} rows of {n_cols}", values.len())));
        }
        Ok(T::dense(Dense::new(n_rows, n_cols, values)).all_finite()?.in_fewest_bytes())
    }

    /// The matrix itself where every value is finite.
    fn all_finite(self) -> Result<Self> {
        let Some(at) = self.first_not_finite() else { return Ok(self) };
        let (row, column, value) = self.entry(at);
        Err(Error::NotFinite { row: row + 1, column: column + 1, value })
    }

    /// The place of the first stored value that is not finite.
    pub(super) fn first_not_finite(&self) -> Option<usize> {
        fn first<T: Stored>(values: &[T]) -> Option<usize> {
            let is_not = |value: &T| !Into::<f64>::into(*value).is_finite();
            // A sum of zeros, and NaN from the first value that is not finite: no branch, so the compiler takes many at
            // a time.
            let clean = |block: &[T]| block.iter().map(|&value| value.into() * 0.0).sum::<f64>() == 0.0;
            let block = values.par_chunks(BLOCK).position_first(|block| !clean(block))?;
            let start = block * BLOCK;
            Some(start + values[start..].iter().position(is_not).expect("the block has one"))
        }
        match self {
            Self::Ones(_) => None,
            Self::Sparse32(rows) => first(rows.values()),
            Self::Sparse64(rows) => first(rows.values()),
            Self::Dense32(rows) => first(rows.values()),
            Self::Dense64(rows) => first(rows.values()),
        }
    }

    /// Row, column and value of a stored entry.
    fn entry(&self, at: usize) -> (usize, usize, f64) {
        fn place<V: Value>(rows: &Csr<V>, at: usize) -> (usize, usize) {
            (rows.offsets().partition_point(|&start| start <= at as u64) - 1, rows.indices()[at] as usize)
        }
        let cell = |value: f64| (at / self.n_cols(), at % self.n_cols(), value);
        let entry = |(row, column), value| (row, column, value);
        match self {
            Self::Ones(rows) => entry(place(rows, at), 1.0),
            Self::Sparse32(rows) => entry(place(rows, at), rows.values()[at].into()),
            Self::Sparse64(rows) => entry(place(rows, at), rows.values()[at]),
            Self::Dense32(rows) => cell(rows.values()[at].into()),
            Self::Dense64(rows) => cell(rows.values()[at]),
        }
    }
}

/// Values that are looked at together.
const BLOCK: usize = 1 << 14;

/// Whether offsets start at 0, never fall and end at the number of entries.
pub(super) fn sound_offsets(offsets: &[u64], entries: usize) -> bool {
    offsets.first() == Some(&0)
        && offsets.last() == Some(&(entries as u64))
        && offsets.par_windows(2).all(|pair| pair[0] <= pair[1])
}

/// What the columns of sparse rows are like.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum RowsAre {
    /// They rise strictly within each row and stay below the number of columns.
    Rising,
    /// They stay below it.
    InRange,
    /// Some do not.
    OutOfRange,
}

/// Looks at the columns of rows whose offsets are sound.
pub(super) fn rows_of(offsets: &[u64], indices: &[u32], n_cols: usize) -> RowsAre {
    let is = |pair: &[u64]| {
        let row = &indices[pair[0] as usize..pair[1] as usize];
        let rising = row.is_sorted_by(|left, right| left < right);
        let largest = if rising { row.last() } else { row.iter().max() };
        match largest {
            Some(&largest) if largest as usize >= n_cols => RowsAre::OutOfRange,
            _ if rising => RowsAre::Rising,
            _ => RowsAre::InRange,
        }
    };
    offsets.par_windows(2).with_min_len(1024).map(is).max().unwrap_or(RowsAre::Rising)
}

/// A copy with the entries of each row in order, those of one place added up.
fn sorted<T: Stored>(n_cols: usize, offsets: &[u64], indices: &[u32], values: &[T]) -> Matrix {
    let mut builder = Builder::default();
    let mut row = Vec::new();
    for pair in offsets.windows(2) {
        let span = pair[0] as usize..pair[1] as usize;
        row.clear();
        row.extend(indices[span.clone()].iter().zip(&values[span]).map(|(&column, &value)| (column, value.into())));
        row.sort_by_key(|&(column, _)| column);
        for entries in row.chunk_by(|left, right| left.0 == right.0) {
            builder.push(entries[0].0, entries.iter().map(|&(_, value): &(u32, f64)| value).sum());
        }
        builder.end_row();
    }
    builder.finish(Some(n_cols))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(offsets: &[u64], indices: &[u32], values: &[f64]) -> Result<Matrix> {
        Matrix::from_csr(4, offsets.to_vec().into(), indices.to_vec().into(), values.to_vec().into())
    }

    fn entries(matrix: &Matrix) -> Vec<(usize, usize, f64)> {
        let mut all = Vec::new();
        (0..matrix.n_rows()).for_each(|row| matrix.for_each(row, |column, value| all.push((row, column, value))));
        all
    }

    #[test]
    fn sound_rows_are_used_where_they_lie() {
        let values = Buffer::from(vec![0.1f64, 2.0, 3.0]);
        let matrix = Matrix::from_csr(4, vec![0, 2, 2, 3].into(), vec![0, 3, 1].into(), values.clone()).unwrap();
        let Matrix::Sparse64(rows) = &matrix else { panic!("{}", matrix.storage()) };
        assert_eq!(rows.values().as_ptr(), values.as_ptr());
        assert_eq!(entries(&matrix), [(0, 0, 0.1), (0, 3, 2.0), (2, 1, 3.0)]);
    }

    #[test]
    fn unsorted_and_repeated_columns_are_put_in_order() {
        let matrix = import(&[0, 4, 5], &[3, 1, 3, 0, 2], &[1.0, 2.0, 0.5, 4.0, 5.0]).unwrap();
        assert_eq!(entries(&matrix), [(0, 0, 4.0), (0, 1, 2.0), (0, 3, 1.5), (1, 2, 5.0)]);
    }

    #[test]
    fn unsound_rows_are_refused() {
        for (offsets, indices) in
            [(&[0, 2][..], &[0, 4][..]), (&[1, 2], &[0, 1]), (&[0, 2, 1, 2], &[0, 1]), (&[0, 3], &[0, 1]), (&[], &[])]
        {
            assert!(import(offsets, indices, &vec![1.0; indices.len()]).is_err(), "{offsets:?} {indices:?}");
        }
        assert!(import(&[0, 2], &[0, 1], &[1.0]).is_err());
        assert!(Matrix::from_cells(2, 2, vec![1.0f32; 3].into()).is_err());
    }

    #[test]
    fn a_value_that_is_not_finite_is_named() {
        let error = import(&[0, 0, 2, 3], &[0, 3, 1], &[1.0, f64::NAN, 2.0]).unwrap_err();
        assert_eq!(error.to_string(), "row 2, column 4: NaN is not a finite number");
        let mut cells = vec![0.5f32; 3 * BLOCK];
        cells[2 * BLOCK + 7] = f32::NEG_INFINITY;
        let error = Matrix::from_cells(3, BLOCK, cells.into()).unwrap_err();
        assert_eq!(error.to_string(), "row 3, column 8: -inf is not a finite number");
    }
}
