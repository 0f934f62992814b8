//! Products of matrices, by the `gemm` crate that Burn's CPU backend multiplies with too.

use gemm::{Parallelism, gemm};

/// A matrix in a slice: rows, columns, and how far apart the neighbours of each direction lie.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Row after row.
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        assert!(values.len() >= rows * columns, "a matrix lies within its slice");
        Self { values, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// Rows for columns.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// out = left·right, or out + left·right; `out` is row after row. On one thread: whoever calls shares out the work.
pub fn multiply(left: Matrix, right: Matrix, out: &mut [f32], add: bool) {
    let (m, n, k) = (left.rows, right.columns, left.columns);
    assert_eq!(k, right.rows, "the matrices fit each other");
    assert_eq!(out.len(), m * n, "the product fits its slice");
    if m == 0 || n == 0 {
        return;
    }
    #[allow(unsafe_code, reason = "the crate takes pointers; the bounds of all three matrices are asserted above")]
    // SAFETY: `Matrix` lies within its slice by construction, `out` has m·n values and is borrowed mutably.
    unsafe {
        gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            add,
            left.values.as_ptr(),
            left.column_stride as isize,
            left.row_stride as isize,
            right.values.as_ptr(),
            right.column_stride as isize,
            right.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_what_they_should_be() {
        let (a, b) = ([1., 2., 3., 4., 5., 6.], [1., 0., 2., 1., 1., 3.]);
        let mut out = [1.0; 4];
        multiply(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 2), &mut out, false);
        assert_eq!(out, [8., 11., 20., 23.]);
        multiply(Matrix::new(&a, 2, 3), Matrix::new(&b, 2, 3).transposed(), &mut out, true);
        assert_eq!(out, [8. + 7., 11. + 12., 20. + 16., 23. + 27.]);
        let mut out = [0.0; 9];
        multiply(Matrix::new(&a, 2, 3).transposed(), Matrix::new(&b, 2, 3), &mut out, false);
        assert_eq!(out[..3], [1. + 4., 4., 2. + 12.]);
    }
}
