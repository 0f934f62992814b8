//! A dense Cholesky factorisation, blocked so that its work stays in the cache.

/// Rows and columns of a block: three blocks fit the first-level cache.
const BLOCK: usize = 32;

/// The lower factor L of A = LLᵀ, row after row.
#[derive(Debug)]
pub(super) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factors a symmetric matrix of which the lower triangle is given; nothing where it is not positive definite.
    pub fn new(size: usize, mut a: Vec<f64>) -> Option<Self> {
        for first in (0..size).step_by(BLOCK) {
            let last = (first + BLOCK).min(size);
            // The diagonal block, column by column; earlier blocks have been subtracted already.
            for column in first..last {
                let row = column * size;
                let pivot = a[row + column] - dot(&a[row + first..row + column], &a[row + first..row + column]);
                if !(pivot > 0.0 && pivot.is_finite()) {
                    return None;
                }
                let pivot = pivot.sqrt();
                a[row + column] = pivot;
                for below in column + 1..size {
                    let (head, tail) = a.split_at_mut(below * size);
                    let sum = dot(&head[row + first..row + column], &tail[first..column]);
                    tail[column] = (tail[column] - sum) / pivot;
                }
            }
            // What is left of the matrix, less the product of this panel with itself.
            let panel: Vec<f64> =
                (last..size).flat_map(|row| a[row * size + first..row * size + last].to_vec()).collect();
            let width = last - first;
            for block in (last..size).step_by(BLOCK) {
                let columns = block..(block + BLOCK).min(size);
                for row in block..size {
                    let mine = &panel[(row - last) * width..(row - last + 1) * width];
                    for column in columns.start..columns.end.min(row + 1) {
                        let theirs = &panel[(column - last) * width..(column - last + 1) * width];
                        a[row * size + column] -= dot(mine, theirs);
                    }
                }
            }
        }
        Some(Self { size, lower: a })
    }

    /// Solves A y = b in place.
    pub fn solve(&self, b: &mut [f64]) {
        let size = self.size;
        for row in 0..size {
            let line = &self.lower[row * size..row * size + row + 1];
            b[row] = (b[row] - dot(&line[..row], &b[..row])) / line[row];
        }
        for row in (0..size).rev() {
            let line = &self.lower[row * size..row * size + row + 1];
            b[row] /= line[row];
            let value = b[row];
            b[..row].iter_mut().zip(line).for_each(|(b, l)| *b -= value * l);
        }
    }
}

/// Σ aᵢbᵢ in eight running sums, which the compiler turns into vector registers.
#[inline]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a8.zip(b8) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])) + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_what_it_factors() {
        for size in [1, 2, 31, 32, 33, 100] {
            // A = BBᵀ + I with a B of no particular shape.
            let b = |row: usize, column: usize| ((row * 37 + column * 17) % 23) as f64 / 23.0 - 0.4;
            let mut a = vec![0.0; size * size];
            for row in 0..size {
                for column in 0..size {
                    a[row * size + column] = (0..size).map(|k| b(row, k) * b(column, k)).sum();
                }
                a[row * size + row] += 1.0;
            }
            let truth: Vec<f64> = (0..size).map(|at| (at as f64).sin()).collect();
            let mut right: Vec<f64> =
                (0..size).map(|row| (0..size).map(|column| a[row * size + column] * truth[column]).sum()).collect();
            Cholesky::new(size, a).unwrap().solve(&mut right);
            assert!(right.iter().zip(&truth).all(|(x, y)| (x - y).abs() < 1e-10), "size {size}");
        }
        assert!(Cholesky::new(2, vec![1.0, 0.0, 2.0, 1.0]).is_none(), "an indefinite matrix has no factor");
    }
}
