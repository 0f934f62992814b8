//! Rows → columns: some or all features of a matrix, one after the other.
//!
//! A transposed matrix is a matrix whose rows are features. Second-order work and full gradients walk one feature at a
//! time, and then every sum is a plain loop.

use std::ops::Range;

use rayon::prelude::*;

use super::csr::Csr;
use super::dense::Dense;
use super::matrix::Matrix;
use super::rows::{Rows, Value};
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
pub(crate) struct Wanted {
    /// One bit a column.
    bits: Vec<u64>,
    /// The wanted columns before each word of bits.
    before: Vec<u32>,
}

impl Wanted {
    /// These features, which rise, of so many columns.
    pub fn new(n_cols: usize, features: &[u32]) -> Self {
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

    /// Of up to 64 columns the wanted ones, as bits. Which they are is hard to foresee, so nothing is made to hang on it.
    #[inline]
    fn among(&self, columns: &[u32]) -> u64 {
        let bit = |(at, &column): (usize, &u32)| (self.bits[column as usize / 64] >> (column % 64) & 1) << at;
        columns.iter().enumerate().map(bit).sum()
    }

    /// Whether a column is wanted.
    #[inline]
    pub fn has(&self, column: u32) -> bool {
        self.bits[column as usize / 64] >> (column % 64) & 1 == 1
    }

    /// The place of a column that is wanted; of another, that of the next.
    #[inline]
    pub fn place(&self, column: u32) -> u32 {
        let below = (1u64 << (column % 64)) - 1;
        self.before[column as usize / 64] + (self.bits[column as usize / 64] & below).count_ones()
    }
}

/// The same rows with only these columns, which rise and are numbered anew.
pub(super) fn keep_columns<V: Value>(rows: &Csr<V>, columns: &[u32]) -> Csr<V> {
    let wanted = Wanted::new(rows.n_cols(), columns);
    let (n_rows, old) = (rows.n_rows(), rows.indices());
    // A bit for each entry: whether it stays.
    let stays: Vec<u64> = old.par_chunks(64).with_min_len(64).map(|columns| wanted.among(columns)).collect();
    // The words of bits that a range of entries has, the bits of others cleared.
    let words = |range: Range<usize>| {
        let end = range.end.div_ceil(64).max(range.start / 64);
        (range.start / 64..end).map(move |at| {
            let skipped = u64::MAX << range.start.saturating_sub(64 * at);
            let beyond = (64 * (at + 1)).saturating_sub(range.end) as u32;
            (at, skipped & u64::MAX.checked_shr(beyond).unwrap_or(0))
        })
    };
    let span = |row: usize| rows.offsets()[row] as usize..rows.offsets()[row + 1] as usize;
    let length = |row: usize| words(span(row)).map(|(at, of)| (stays[at] & of).count_ones() as u64).sum();
    let lengths: Vec<u64> = (0..n_rows).into_par_iter().with_min_len(64).map(length).collect();
    let mut offsets = Vec::with_capacity(n_rows + 1);
    offsets.push(0);
    offsets.extend(lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    let total = offsets[n_rows] as usize;
    let (mut indices, mut slots) = (Huge::<u32>::zeros(total), Huge::<V::Slot>::zeros(total));
    let mut tasks = Vec::new();
    let (mut rest, mut rest_slots) = (&mut indices[..], &mut slots[..]);
    for first in (0..n_rows).step_by(ROWS) {
        let some = first..(first + ROWS).min(n_rows);
        let len = (offsets[some.end] - offsets[first]) as usize;
        let (part, tail) = rest.split_at_mut(len);
        let (part_slots, tail_slots) = rest_slots.split_at_mut(len);
        tasks.push((span(some.start).start..span(some.end - 1).end, part, part_slots));
        (rest, rest_slots) = (tail, tail_slots);
    }
    tasks.into_par_iter().for_each(|(entries, indices, slots)| {
        let mut to = indices.iter_mut().zip(slots);
        for (at, of) in words(entries) {
            let mut bits = stays[at] & of;
            while bits != 0 {
                let position = 64 * at + bits.trailing_zeros() as usize;
                if let Some((index, slot)) = to.next() {
                    (*index, *slot) = (wanted.place(old[position]), V::slot(rows.values(), position));
                }
                bits &= bits - 1;
            }
        }
    });
    Csr::new(columns.len(), offsets.into(), indices.into(), V::from_slots(slots.into()))
}

/// Columns that are sorted together, at most, as a power of two: the ends of so many stay in the cache.
const MOST_BITS: u32 = 9;
/// Into about so many bins the columns are dealt at least, where there are as many: each is sorted by one thread.
const BINS: usize = 8;
/// Rows that one task reads.
const ROWS: usize = 4096;
/// Entries that are on their way at a time, about: what lies between the two steps takes memory.
const ON_THE_WAY: usize = 1 << 24;

/// Two steps, since to write each entry where it belongs is to miss the cache each time: the rows are dealt into bins of
/// some columns, then each bin is sorted by column.
fn sparse<V: Value>(rows: &Csr<V>, features: Option<&[u32]>) -> Csr<V> {
    if let Some(features) = features {
        return sparse(&keep_columns(rows, features), None);
    }
    let (n_rows, size) = (rows.n_rows(), rows.n_cols());
    let bits = (size / BINS).checked_ilog2().unwrap_or(0).min(MOST_BITS);
    let together = 1 << bits;
    let bands = (rows.indices().len() / ON_THE_WAY + 1).min(size.div_ceil(together)).max(1);
    let band = size.div_ceil(bands).max(1).next_multiple_of(together);

    let mut bands = Vec::new();
    for first in (0..size).step_by(band) {
        let places = first..(first + band).min(size);
        let deal = |task: usize| Dealt::new(rows, task * ROWS..((task + 1) * ROWS).min(n_rows), places.clone(), bits);
        let dealt: Vec<Dealt<V>> = (0..n_rows.div_ceil(ROWS)).into_par_iter().map(deal).collect();
        bands.push(sort(places.len(), bits, &dealt));
    }
    let mut offsets = vec![0];
    for (ends, ..) in &bands {
        let start = offsets[offsets.len() - 1];
        offsets.extend(ends.iter().map(|end| start + end));
    }
    if let [_] = bands[..] {
        let (_, indices, slots) = bands.pop().expect("there is one");
        return Csr::new(n_rows, offsets.into(), indices.into(), V::from_slots(slots.into()));
    }
    let total = offsets[offsets.len() - 1] as usize;
    let (mut indices, mut slots) = (Huge::<u32>::zeros(total), Huge::<V::Slot>::zeros(total));
    let mut start = 0;
    for (_, part, part_slots) in bands {
        indices[start..start + part.len()].copy_from_slice(&part);
        slots[start..start + part.len()].copy_from_slice(&part_slots);
        start += part.len();
    }
    Csr::new(n_rows, offsets.into(), indices.into(), V::from_slots(slots.into()))
}

/// Entries of some rows, dealt into bins.
struct Dealt<V: Value> {
    /// Where each bin starts, and the last ends.
    bins: Vec<usize>,
    /// Place within the bin, and row.
    keys: Huge<[u32; 2]>,
    slots: Huge<V::Slot>,
}

impl<V: Value> Dealt<V> {
    fn new(rows: &Csr<V>, range: Range<usize>, places: Range<usize>, bits: u32) -> Self {
        let (offsets, indices) = (rows.offsets(), rows.indices());
        let is_here = |&place: &u32| {
            let at = (place as usize).wrapping_sub(places.start);
            (at < places.len()).then_some(at)
        };
        let span = |row: usize| offsets[row] as usize..offsets[row + 1] as usize;
        let mut bins = vec![0; places.len().div_ceil(1 << bits) + 1];
        for at in indices[span(range.start).start..span(range.end - 1).end].iter().filter_map(is_here) {
            bins[(at >> bits) + 1] += 1;
        }
        (1..bins.len()).for_each(|bin| bins[bin] += bins[bin - 1]);
        let total = bins[bins.len() - 1];
        let (mut keys, mut slots) = (Huge::zeros(total), Huge::zeros(total));
        let (keys_to, slots_to) = (&mut keys[..], &mut slots[..]);
        let mut next = bins.clone();
        for row in range {
            for position in span(row) {
                if let Some(at) = is_here(&indices[position]) {
                    let to = &mut next[at >> bits];
                    keys_to[*to] = [(at & ((1 << bits) - 1)) as u32, row as u32];
                    slots_to[*to] = V::slot(rows.values(), position);
                    *to += 1;
                }
            }
        }
        Self { bins, keys, slots }
    }
}

/// Sorts every bin by column: where each column ends, the rows of its entries, which rise, and their values.
fn sort<V: Value>(size: usize, bits: u32, dealt: &[Dealt<V>]) -> (Vec<u64>, Huge<u32>, Huge<V::Slot>) {
    let total = dealt.iter().map(|dealt| dealt.keys.len()).sum();
    let (mut rows, mut slots) = (Huge::<u32>::zeros(total), Huge::<V::Slot>::zeros(total));
    let mut tasks = Vec::new();
    let (mut rest_rows, mut rest_slots, mut start) = (&mut rows[..], &mut slots[..], 0);
    for bin in 0..size.div_ceil(1 << bits) {
        let len = dealt.iter().map(|dealt| dealt.bins[bin + 1] - dealt.bins[bin]).sum();
        let (part_rows, tail_rows) = rest_rows.split_at_mut(len);
        let (part_slots, tail_slots) = rest_slots.split_at_mut(len);
        tasks.push((bin, start, part_rows, part_slots));
        (rest_rows, rest_slots, start) = (tail_rows, tail_slots, start + len);
    }
    let ends: Vec<Vec<u64>> = tasks
        .into_par_iter()
        .map(|(bin, start, rows, slots)| {
            let mut next = vec![0; (size - (bin << bits)).min(1 << bits) + 1];
            let span = |dealt: &Dealt<V>| dealt.bins[bin]..dealt.bins[bin + 1];
            for dealt in dealt {
                dealt.keys[span(dealt)].iter().for_each(|&[at, _]| next[at as usize + 1] += 1);
            }
            (1..next.len()).for_each(|at| next[at] += next[at - 1]);
            let ends = next[1..].iter().map(|&end| (start + end) as u64).collect();
            for dealt in dealt {
                for (&[at, row], &slot) in dealt.keys[span(dealt)].iter().zip(&dealt.slots[span(dealt)]) {
                    let to = &mut next[at as usize];
                    (rows[*to], slots[*to]) = (row, slot);
                    *to += 1;
                }
            }
            ends
        })
        .collect();
    (ends.concat(), rows, slots)
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
    fn the_columns_that_stay_are_those_entry_by_entry() {
        // Rows of every length around a word of bits, and columns of every density.
        let n_cols = 200;
        let rows: Vec<Vec<(u32, f64)>> = (0..150usize)
            .map(|row| {
                (0..n_cols as u32)
                    .filter(|&c| (c as usize * 7 + row) % 150 < row)
                    .map(|c| (c, 1.5 + row as f64))
                    .collect()
            })
            .collect();
        let Matrix::Sparse32(matrix) = Matrix::from_rows(n_cols, &rows) else { panic!("halves fit") };
        for every in [1, 2, 3, 64, 199] {
            let columns: Vec<u32> = (0..n_cols as u32).filter(|c| (c * c + c).is_multiple_of(every)).collect();
            let kept = keep_columns(&matrix, &columns);
            assert_eq!((kept.n_rows(), kept.n_cols()), (rows.len(), columns.len()));
            for (row, entries) in rows.iter().enumerate() {
                let place = |&(c, value): &(u32, f64)| columns.binary_search(&c).ok().map(|place| (place, value));
                let expected: Vec<(usize, f64)> = entries.iter().filter_map(place).collect();
                let mut found = Vec::new();
                kept.for_each(row, |column, value| found.push((column, value)));
                assert_eq!(found, expected, "row {row}, every {every}");
            }
        }
    }

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
