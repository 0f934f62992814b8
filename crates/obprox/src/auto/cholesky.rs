//! A dense Cholesky factorisation, blocked so that its work stays in the cache.

/// Rows and columns of a block: what a step works on fits the first-level cache.
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
        factor(size, &mut a).then_some(Self { size, lower: a })
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

/// Chooses the factorisation compiled for the vector registers at hand. The order of additions is the same in both,
/// and so are the bits.
fn factor(size: usize, a: &mut [f64]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(size: usize, a: &mut [f64]) -> bool {
            factor_with(size, a)
        }
        // SAFETY: the processor has just said that it has these registers.
        #[allow(unsafe_code)]
        return unsafe { wide(size, a) };
    }
    factor_with(size, a)
}

#[inline(always)]
fn factor_with(size: usize, a: &mut [f64]) -> bool {
    let mut panel = Vec::new();
    for first in (0..size).step_by(BLOCK) {
        let last = (first + BLOCK).min(size);
        // The diagonal block and what is below it, column by column; earlier blocks have been subtracted already.
        for column in first..last {
            let row = column * size;
            let pivot = a[row + column] - dot(&a[row + first..row + column], &a[row + first..row + column]);
            if !(pivot > 0.0 && pivot.is_finite()) {
                return false;
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
        let width = last - first;
        panel.clear();
        (last..size).for_each(|row| panel.extend_from_slice(&a[row * size + first..row * size + last]));
        let line = |row: usize| &panel[(row - last) * width..(row - last + 1) * width];
        for block in (last..size).step_by(BLOCK) {
            let end = (block + BLOCK).min(size);
            for row in block..size {
                let target = &mut a[row * size..(row + 1) * size];
                let end = end.min(row + 1);
                let mut column = block;
                while column + 4 <= end {
                    let others = [line(column), line(column + 1), line(column + 2), line(column + 3)];
                    let products = four_dots(line(row), others);
                    (0..4).for_each(|k| target[column + k] -= products[k]);
                    column += 4;
                }
                (column..end).for_each(|column| target[column] -= dot(line(row), line(column)));
            }
        }
    }
    true
}

/// Σ aᵢbᵢ in four running sums, which the compiler turns into vector registers.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a4.zip(b4) {
        for lane in 0..4 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest
}

/// Four products with the same line, whose loads they share.
#[inline(always)]
fn four_dots(a: &[f64], others: [&[f64]; 4]) -> [f64; 4] {
    let whole = a.len() / 4 * 4;
    let mut sums = [[0.0; 4]; 4];
    let [b, c, d, e] = others.map(|other| &other[..a.len()]);
    for at in (0..whole).step_by(4) {
        for lane in 0..4 {
            let value = a[at + lane];
            sums[0][lane] += value * b[at + lane];
            sums[1][lane] += value * c[at + lane];
            sums[2][lane] += value * d[at + lane];
            sums[3][lane] += value * e[at + lane];
        }
    }
    let mut out = [0.0; 4];
    for (k, other) in [b, c, d, e].into_iter().enumerate() {
        let rest: f64 = (whole..a.len()).map(|at| a[at] * other[at]).sum();
        out[k] = (sums[k][0] + sums[k][2]) + (sums[k][1] + sums[k][3]) + rest;
    }
    out
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
