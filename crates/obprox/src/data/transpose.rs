//! Rows → columns: some or all features of a matrix, one after the other.
//!
//! A transposed matrix is a matrix whose rows are features. Second-order work and full gradients walk one feature at a
//! time, and then every sum is a plain loop.

use rayon::prelude::*;

use super::matrix::{Csr, Dense, Matrix, Rows, Value};
use crate::huge::Huge;

impl Matrix {
    /// The given features, which rise, as rows; every feature where none are given.
    pub(crate) fn transposed(&self, features: Option<&[u32]>) -> Self {
        match self {
            Self::Ones(rows) => Self::Ones(sparse(rows, features)),
            Self::Sparse32(rows) => Self::Sparse32(sparse(rows, features)),
            Self::Sparse64(rows) => Self::Sparse64(sparse(rows, features)),
            Self::Dense32(rows) => Self::Dense32(dense(rows, features)),
            Self::Dense64(rows) => Self::Dense64(dense(rows, features)),
        }
    }
}

/// Which columns are wanted, and what they are called then: the number of wanted columns before them. Small enough to
/// stay in the cache.
struct Wanted {
    /// One bit a column.
    bits: Vec<u64>,
    /// The wanted columns before each word of bits.
    before: Vec<u32>,
}

impl Wanted {
    fn new(n_cols: usize, features: &[u32]) -> Self {
        let mut bits = vec![0u64; n_cols.div_ceil(64)];
        features.iter().for_each(|&feature| bits[feature as usize / 64] |= 1 << (feature % 64));
        let mut count = 0;
        let rank = |word: &u64| {
            let before = count;
            count += word.count_ones();
            before
        };
        let before = bits.iter().map(rank).collect();
        Self { bits, before }
    }

    #[inline]
    fn place(&self, column: u32) -> Option<u32> {
        let (word, bit) = (self.bits[column as usize / 64], 1u64 << (column % 64));
        (word & bit != 0).then(|| self.before[column as usize / 64] + (word & (bit - 1)).count_ones())
    }
}

/// Places that are sorted together: the ends of so many columns stay in the cache.
const TOGETHER: usize = 512;
/// Rows that one task reads.
const ROWS: usize = 4096;
/// Entries that are on their way at a time, about: what lies between the two steps takes memory.
const ON_THE_WAY: usize = 1 << 24;

/// An entry on its way: place, row and value.
type Entry<V> = (u32, u32, <V as Value>::Slot);

/// Two steps, since to write each entry where it belongs is to miss the cache each time: the rows are dealt into bins of
/// [`TOGETHER`] columns, then each bin is sorted by column.
fn sparse<V: Value>(rows: &Csr<V>, features: Option<&[u32]>) -> Csr<V> {
    let (n_rows, offsets, indices) = (rows.n_rows(), rows.offsets(), rows.indices());
    let wanted = features.map(|features| Wanted::new(rows.n_cols(), features));
    let place = |column: u32| wanted.as_ref().map_or(Some(column), |wanted| wanted.place(column));
    let size = features.map_or(rows.n_cols(), <[u32]>::len);
    let bands = (indices.len() / ON_THE_WAY + 1).min(size.div_ceil(TOGETHER)).max(1);
    let band = size.div_ceil(bands).max(1).next_multiple_of(TOGETHER);

    let mut columns: Vec<Sorted<V>> = Vec::new();
    for first in (0..size).step_by(band) {
        let last = (first + band).min(size);
        let deal = |task: usize| {
            let mut bins: Vec<Vec<Entry<V>>> = vec![Vec::new(); (last - first).div_ceil(TOGETHER)];
            for row in task * ROWS..((task + 1) * ROWS).min(n_rows) {
                for position in offsets[row] as usize..offsets[row + 1] as usize {
                    let Some(place) = place(indices[position]) else { continue };
                    let at = (place as usize).wrapping_sub(first);
                    if at < last - first {
                        bins[at / TOGETHER].push((place, row as u32, V::slot(rows.values(), position)));
                    }
                }
            }
            bins
        };
        let dealt: Vec<Vec<Vec<Entry<V>>>> = (0..n_rows.div_ceil(ROWS)).into_par_iter().map(deal).collect();
        let bins = (0..(last - first).div_ceil(TOGETHER)).into_par_iter();
        let sort = |bin: usize| {
            let first = first + bin * TOGETHER;
            Sorted::new(first, (last - first).min(TOGETHER), dealt.iter().map(|bins| &bins[bin][..]))
        };
        columns.extend(bins.map(sort).collect::<Vec<_>>());
    }

    let total: usize = columns.iter().map(|bin| bin.rows.len()).sum();
    let (mut row_indices, mut slots) = (Huge::<u32>::zeros(total), Huge::<V::Slot>::zeros(total));
    let (mut rest_indices, mut rest_slots) = (&mut row_indices[..], &mut slots[..]);
    let mut ends: Vec<u64> = vec![0];
    for bin in columns {
        let (part_indices, tail_indices) = rest_indices.split_at_mut(bin.rows.len());
        let (part_slots, tail_slots) = rest_slots.split_at_mut(bin.rows.len());
        part_indices.copy_from_slice(&bin.rows);
        part_slots.copy_from_slice(&bin.slots);
        let start = ends[ends.len() - 1];
        ends.extend(bin.ends.iter().map(|end| start + end));
        (rest_indices, rest_slots) = (tail_indices, tail_slots);
    }
    Csr::new(n_rows, ends.into(), row_indices.into(), V::from_slots(slots.into()))
}

/// The columns of a bin, one after the other.
struct Sorted<V: Value> {
    ends: Vec<u64>,
    rows: Vec<u32>,
    slots: Vec<V::Slot>,
}

impl<V: Value> Sorted<V> {
    /// Sorts the entries of `size` places from `first` on; their rows rise.
    fn new<'a>(first: usize, size: usize, parts: impl Iterator<Item = &'a [Entry<V>]> + Clone) -> Self
    where
        V::Slot: 'a,
    {
        let mut next = vec![0usize; size + 1];
        parts.clone().flatten().for_each(|&(place, ..)| next[place as usize - first + 1] += 1);
        (0..size).for_each(|at| next[at + 1] += next[at]);
        let ends = next[1..].iter().map(|&end| end as u64).collect();
        let (mut rows, mut slots) = (vec![0; next[size]], vec![bytemuck::Zeroable::zeroed(); next[size]]);
        for &(place, row, slot) in parts.flatten() {
            let to = &mut next[place as usize - first];
            (rows[*to], slots[*to]) = (row, slot);
            *to += 1;
        }
        Self { ends, rows, slots }
    }
}

fn dense<V: Value>(rows: &Dense<V>, features: Option<&[u32]>) -> Dense<V> {
    let (n_rows, n_cols) = (rows.n_rows(), rows.n_cols());
    let size = features.map_or(n_cols, <[u32]>::len);
    let mut slots = Huge::<V::Slot>::zeros(size * n_rows);
    // A few columns at a time: their cache lines are met again row after row.
    const TOGETHER: usize = 16;
    slots.par_chunks_mut((TOGETHER * n_rows).max(1)).enumerate().for_each(|(block, slots)| {
        for row in 0..n_rows {
            for (at, slot) in slots.iter_mut().skip(row).step_by(n_rows).enumerate() {
                let place = block * TOGETHER + at;
                let column = features.map_or(place, |features| features[place] as usize);
                *slot = V::slot(rows.values(), row * n_cols + column);
            }
        }
    });
    Dense::new(size, n_rows, V::from_slots(slots.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_turns_rows_into_columns() {
        let n_cols = 7;
        let value = |row: usize, column: usize| match (row * 5 + column * 3) % 4 {
            0 => (row as f64 - 2.5) * (column as f64 + 0.25),
            _ => 0.0,
        };
        for n_rows in [1, 5, 300] {
            let entries = |row: usize| (0..n_cols).map(move |column| (column as u32, value(row, column)));
            let rows: Vec<Vec<(u32, f64)>> =
                (0..n_rows).map(|row| entries(row).filter(|(_, value)| *value != 0.0).collect()).collect();
            let sparse = Matrix::from_rows(n_cols, &rows);
            let all: Vec<f64> = (0..n_rows).flat_map(|row| entries(row).map(|(_, value)| value + 1.5)).collect();
            let dense = Matrix::from_dense(n_rows, n_cols, &all);
            for (matrix, shift) in [(sparse, 0.0), (dense, 1.5)] {
                for features in [None, Some(&[1, 2, 6][..]), Some(&[][..])] {
                    let turned = matrix.transposed(features);
                    let all: Vec<u32> = (0..n_cols as u32).collect();
                    let features = features.unwrap_or(&all);
                    assert_eq!((turned.n_rows(), turned.n_cols()), (features.len(), n_rows));
                    for (place, &feature) in features.iter().enumerate() {
                        let mut column = vec![0.0; n_rows];
                        turned.for_each(place, |row, value| column[row] = value);
                        let expected: Vec<f64> = (0..n_rows).map(|row| value(row, feature as usize) + shift).collect();
                        assert_eq!(column, expected);
                    }
                }
            }
        }
    }
}
