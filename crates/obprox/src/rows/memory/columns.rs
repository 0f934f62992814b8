//! The columns of a working set as models are minimised along them: gone through so often that each must lie in one piece.

use super::set::Located;
use crate::data::Gathered;
use crate::huge::Huge;
use crate::wide::wide;

/// Columns, and one of ones behind them for the intercept.
pub(super) enum Columns<'a> {
    /// With a number for each row: for vector registers.
    Dense(Vec<&'a [f64]>),
    Sparse(&'a Gathered),
}

/// A copy of columns that do not serve where they are.
pub(super) enum Copied {
    Dense(Huge<f64>),
    Sparse(Gathered),
}

impl Copied {
    /// Copies so many columns of that many rows.
    pub fn of(columns: Located, len: usize, n_rows: usize) -> Self {
        if (0..len).all(|index| columns.at(index).0.is_dense()) {
            let mut values = Huge::zeros(len * n_rows);
            for (index, to) in values.chunks_exact_mut(n_rows.max(1)).enumerate() {
                columns.for_each(index, |row, value| to[row] = value);
            }
            return Self::Dense(values);
        }
        let mut gathered = Gathered::default();
        for index in 0..len {
            columns.for_each(index, |row, value| {
                gathered.columns.push(row as u32);
                gathered.values.push(value);
            });
            gathered.ends.push(gathered.columns.len());
        }
        Self::Sparse(gathered)
    }

    /// The columns.
    pub fn view(&self, n_rows: usize) -> Columns<'_> {
        match self {
            Self::Dense(values) => Columns::Dense(values.chunks_exact(n_rows.max(1)).collect()),
            Self::Sparse(gathered) => Columns::Sparse(gathered),
        }
    }
}

impl<'a> Columns<'a> {
    /// Columns that serve where they are, if all of them do: those of doubles.
    pub fn in_place(columns: Located<'a>, len: usize) -> Option<Self> {
        let column = |index: usize| {
            let (matrix, row) = columns.at(index);
            matrix.doubles(row)
        };
        (0..len).map(column).collect::<Option<Vec<_>>>().map(Self::Dense)
    }

    /// The rows and values of a sparse column; nothing behind the last.
    #[inline]
    fn sparse(of: &Gathered, index: usize) -> Option<(&[u32], &[f64])> {
        let end = *of.ends.get(index)?;
        let start = if index == 0 { 0 } else { of.ends[index - 1] };
        Some((&of.columns[start..end], &of.values[start..end]))
    }

    /// A column times a vector.
    #[inline]
    pub fn dot(&self, index: usize, with: &[f64]) -> f64 {
        match self {
            Self::Dense(columns) => match columns.get(index) {
                Some(column) => dot(column, with),
                None => sum(with),
            },
            Self::Sparse(of) => match Self::sparse(of, index) {
                Some((rows, values)) => sparse_dot(rows, values, with),
                None => sum(with),
            },
        }
    }

    /// Adds a multiple of a column, row by row times the scale that all rows have or its own.
    #[inline]
    pub fn add(&self, index: usize, multiple: f64, scales: Scales, to: &mut [f64]) {
        let entries = match self {
            Self::Dense(columns) => match columns.get(index) {
                Some(column) => return add_dense(column, multiple, scales, to),
                None => None,
            },
            Self::Sparse(of) => Self::sparse(of, index),
        };
        let Some((rows, values)) = entries else { return add_ones(multiple, scales, to) };
        match scales {
            Scales::Same(scale) => {
                let multiple = multiple * scale;
                rows.iter().zip(values).for_each(|(&row, &value)| to[row as usize] += value * multiple);
            }
            Scales::Each(scales) => rows.iter().zip(values).for_each(|(&row, &value)| {
                to[row as usize] += scales[row as usize] * value * multiple;
            }),
        }
    }

    /// Σ sᵢ·dᵢ².
    pub fn square(&self, index: usize, scales: Scales, n_rows: usize) -> f64 {
        let scale = |row: usize| match scales {
            Scales::Same(scale) => scale,
            Scales::Each(scales) => scales[row],
        };
        let entries = match self {
            Self::Dense(columns) => match columns.get(index) {
                Some(column) => {
                    return match scales {
                        Scales::Same(scale) => scale * dot(column, column),
                        Scales::Each(scales) => column.iter().zip(scales).map(|(value, h)| h * value * value).sum(),
                    };
                }
                None => None,
            },
            Self::Sparse(of) => Self::sparse(of, index),
        };
        match entries {
            Some((rows, values)) => {
                rows.iter().zip(values).map(|(&row, value)| scale(row as usize) * value * value).sum()
            }
            None => (0..n_rows).map(scale).sum(),
        }
    }
}

/// What rows are scaled by.
#[derive(Clone, Copy)]
pub(super) enum Scales<'a> {
    Same(f64),
    Each(&'a [f64]),
}

impl<'a> Scales<'a> {
    pub fn of(scales: &'a [f64]) -> Self {
        match scales {
            [first, rest @ ..] if rest.iter().all(|scale| scale == first) => Self::Same(*first),
            _ => Self::Each(scales),
        }
    }
}

/// Running sums of a product: enough for the widest registers to keep two additions on their way.
const LANES: usize = 16;

wide! {
    /// Σ aᵢbᵢ.
    pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
        let mut sums = [0.0; LANES];
        let (of_a, of_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
        let rest: f64 = of_a.remainder().iter().zip(of_b.remainder()).map(|(a, b)| a * b).sum();
        for (a, b) in of_a.zip(of_b) {
            for lane in 0..LANES {
                sums[lane] += a[lane] * b[lane];
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

wide! {
    /// Σ aᵢ.
    fn sum(a: &[f64]) -> f64 {
        let mut sums = [0.0; LANES];
        let of_a = a.chunks_exact(LANES);
        let rest: f64 = of_a.remainder().iter().sum();
        for a in of_a {
            for lane in 0..LANES {
                sums[lane] += a[lane];
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

wide! {
    fn add_same(column: &[f64], multiple: f64, to: &mut [f64]) {
        for (to, value) in to.iter_mut().zip(column) {
            *to += value * multiple;
        }
    }
}

wide! {
    fn add_scaled(column: &[f64], multiple: f64, scales: &[f64], to: &mut [f64]) {
        for ((to, value), scale) in to.iter_mut().zip(column).zip(scales) {
            *to += scale * value * multiple;
        }
    }
}

#[inline]
fn add_dense(column: &[f64], multiple: f64, scales: Scales, to: &mut [f64]) {
    match scales {
        Scales::Same(scale) => add_same(column, multiple * scale, to),
        Scales::Each(scales) => add_scaled(column, multiple, scales, to),
    }
}

fn add_ones(multiple: f64, scales: Scales, to: &mut [f64]) {
    match scales {
        Scales::Same(scale) => to.iter_mut().for_each(|to| *to += multiple * scale),
        Scales::Each(scales) => to.iter_mut().zip(scales).for_each(|(to, scale)| *to += scale * multiple),
    }
}

/// Four running sums: one would have to wait for itself at every entry.
#[inline]
fn sparse_dot(rows: &[u32], values: &[f64], with: &[f64]) -> f64 {
    let mut sums = [0.0; 4];
    let (of_rows, of_values) = (rows.chunks_exact(4), values.chunks_exact(4));
    let rest = of_rows.remainder().iter().zip(of_values.remainder());
    let rest: f64 = rest.map(|(&row, value)| value * with[row as usize]).sum();
    for (rows, values) in of_rows.zip(of_values) {
        (0..4).for_each(|lane| sums[lane] += values[lane] * with[rows[lane] as usize]);
    }
    (sums[0] + sums[2]) + (sums[1] + sums[3]) + rest
}
