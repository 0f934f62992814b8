//! A dense Cholesky factorisation, blocked so that its work stays in the cache.

use rayon::prelude::*;

use crate::huge::Huge;
use crate::wide::wide;

/// Columns of a block.
const BLOCK: usize = 48;
/// Rows below a block that one task works on.
const STRIP: usize = 64;

/// The lower factor L of A = LLᵀ, row after row.
#[derive(Debug)]
pub(super) struct Cholesky {
    size: usize,
    lower: Huge<f64>,
}

impl Cholesky {
    /// Factors a symmetric matrix of which the lower triangle is given; nothing where it is not positive definite.
    pub fn new(size: usize, mut a: Huge<f64>) -> Option<Self> {
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

/// Σ aᵢbᵢ in four running sums, which the compiler turns into vector registers.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (a4, b4) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = a4.remainder().iter().zip(b4.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a4.zip(b4) {
        (0..4).for_each(|lane| sums[lane] += a[lane] * b[lane]);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest
}

/// Overwrites the lower triangle of A by L, a block of columns at a time; false where A is not positive definite.
///
/// The rows below a block are kept turned, one line for each of its columns: then both the substitution and the product
/// run along lines, in vector registers, and rows that do not touch each other go side by side.
fn factor(size: usize, a: &mut [f64]) -> bool {
    for first in (0..size).step_by(BLOCK) {
        let last = (first + BLOCK).min(size);
        let width = last - first;
        let (upper, below) = a.split_at_mut(last * size);
        if !factor_block(size, first, &mut upper[first * size..]) {
            return false;
        }
        let rows = size - last;
        if rows == 0 {
            continue;
        }
        let corner: Vec<f64> =
            (first..last).flat_map(|row| &upper[row * size + first..row * size + last]).copied().collect();
        let mut turned = vec![0.0; width * rows];
        let mut strips: Vec<Strip> =
            below.chunks_mut(STRIP * size).map(|lines| Strip { lines, turned: Vec::new() }).collect();
        strips.par_iter_mut().for_each(|strip| strip.substitute(size, first, &corner));
        for (at, strip) in strips.iter().enumerate() {
            let len = strip.lines.len() / size;
            for (line, part) in turned.chunks_exact_mut(rows).zip(strip.turned.chunks_exact(len)) {
                line[at * STRIP..at * STRIP + len].copy_from_slice(part);
            }
        }
        strips.par_iter_mut().enumerate().for_each(|(at, strip)| {
            let len = strip.lines.len() / size;
            subtract_product(strip.lines, size, last, &strip.turned, &turned, at * STRIP + len);
        });
    }
    true
}

/// Some rows below a block.
struct Strip<'a> {
    lines: &'a mut [f64],
    /// Their entries in the block's columns, column by column.
    turned: Vec<f64>,
}

impl Strip<'_> {
    /// Solves for the rows' part of L in the block's columns.
    fn substitute(&mut self, size: usize, first: usize, corner: &[f64]) {
        let (width, len) = (corner.len().isqrt(), self.lines.len() / size);
        self.turned = vec![0.0; width * len];
        for (row, line) in self.lines.chunks_exact(size).enumerate() {
            (0..width).for_each(|column| self.turned[column * len + row] = line[first + column]);
        }
        forward(width, len, corner, &mut self.turned);
        for (row, line) in self.lines.chunks_exact_mut(size).enumerate() {
            (0..width).for_each(|column| line[first + column] = self.turned[column * len + row]);
        }
    }
}

/// The diagonal block, whose rows begin `lines`; earlier blocks have been subtracted already.
fn factor_block(size: usize, first: usize, lines: &mut [f64]) -> bool {
    let rows = lines.len() / size;
    for column in 0..rows {
        for row in column..rows {
            let (head, tail) = lines.split_at_mut(row * size);
            let own = &mut tail[first..first + column + 1];
            let dot = |other: &[f64], own: &[f64]| other.iter().zip(own).map(|(a, b)| a * b).sum::<f64>();
            if row == column {
                let pivot = own[column] - dot(&own[..column], &own[..column]);
                if !(pivot > 0.0 && pivot.is_finite()) {
                    return false;
                }
                own[column] = pivot.sqrt();
            } else {
                let other = &head[column * size + first..column * size + first + column + 1];
                own[column] = (own[column] - dot(&other[..column], &own[..column])) / other[column];
            }
        }
    }
    true
}

wide! {
    /// L⁻¹ on the turned rows: every line less the lines before it, times their entries of L.
    fn forward(width: usize, len: usize, corner: &[f64], turned: &mut [f64]) {
        for column in 0..width {
            let (before, line) = turned.split_at_mut(column * len);
            let line = &mut line[..len];
            for (k, other) in before.chunks_exact(len).enumerate() {
                let l = corner[column * width + k];
                line.iter_mut().zip(other).for_each(|(y, x)| *y -= l * x);
            }
            let pivot = corner[column * width + column];
            line.iter_mut().for_each(|y| *y /= pivot);
        }
    }
}

/// Rows and columns of the product that stay in registers.
const TALL: usize = 4;
const WIDE: usize = 8;

wide! {
    /// Subtracts (own rows)·(all rows)ᵀ from the lines, in their columns from `last` on, as many as `columns`; both
    /// factors are turned.
    fn subtract_product(lines: &mut [f64], size: usize, last: usize, own: &[f64], all: &[f64], columns: usize) {
        let len = lines.len() / size;
        let (width, rows) = (own.len() / len, size - last);
        for row in (0..len).step_by(TALL) {
            for column in (0..columns).step_by(WIDE) {
                let mut sums = [[0.0; WIDE]; TALL];
                if row + TALL <= len && column + WIDE <= columns {
                    for k in 0..width {
                        let left: &[f64; TALL] = own[k * len + row..][..TALL].try_into().expect("as long as that");
                        let right: &[f64; WIDE] = all[k * rows + column..][..WIDE].try_into().expect("as long as that");
                        for (sums, left) in sums.iter_mut().zip(left) {
                            sums.iter_mut().zip(right).for_each(|(sum, right)| *sum += left * right);
                        }
                    }
                } else {
                    for (r, sums) in sums.iter_mut().enumerate().take(len - row) {
                        for (c, sum) in sums.iter_mut().enumerate().take(columns - column) {
                            *sum = (0..width).map(|k| own[k * len + row + r] * all[k * rows + column + c]).sum();
                        }
                    }
                }
                for (r, sums) in sums.iter().enumerate().take(len - row) {
                    let line = &mut lines[(row + r) * size + last + column..];
                    let line = &mut line[..WIDE.min(columns - column)];
                    line.iter_mut().zip(sums).for_each(|(a, sum)| *a -= sum);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_what_it_factors() {
        for size in [1, 2, 47, 48, 49, 100, 131, 300] {
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
            Cholesky::new(size, a.into()).unwrap().solve(&mut right);
            assert!(right.iter().zip(&truth).all(|(x, y)| (x - y).abs() < 1e-10), "size {size}");
        }
        assert!(Cholesky::new(2, vec![1.0, 0.0, 2.0, 1.0].into()).is_none(), "an indefinite matrix has no factor");
    }
}
