//! Sums over the rows for every column.
//!
//! Each thread owns a range of columns and adds up the rows in their order, so the bits do not depend on the number of
//! threads. With many columns their sums lie all over memory. Those of the stretch of columns that has the most entries stay
//! in the nearer caches and are added to at once; for the others an addition stands in a line while its sum is on the way
//! from memory, and is done in its turn.

use std::ops::Range;

use rayon::prelude::*;

use super::pass::sample_of_columns;
use crate::data::{Matrix, Rows, with_rows};
use crate::prefetch::prefetch;

/// Columns. The sums of more do not stay in the nearer caches: 8 bytes each are then a megabyte.
pub(crate) const FAR: usize = 1 << 17;

/// Additions in a line: enough to cover the way to memory.
const WAITING: usize = 32;

/// What an addition to a sum that has to be fetched takes, where one to a sum at hand takes 1.
const FETCHED: usize = 4;

/// Additions that wait for their sums to arrive.
struct Line<'a, S, T, F> {
    sums: &'a mut [S],
    add: F,
    waiting: [(u32, T); WAITING],
    count: usize,
}

impl<'a, S, T: Copy + Default, F: Fn(&mut S, T)> Line<'a, S, T, F> {
    /// An empty line before these sums.
    fn new(sums: &'a mut [S], add: F) -> Self {
        Self { sums, add, waiting: [(0, T::default()); WAITING], count: 0 }
    }

    /// Sends for a sum; what has waited longest is added.
    #[inline(always)]
    fn push(&mut self, at: usize, item: T) {
        prefetch(self.sums, at);
        let slot = &mut self.waiting[self.count % WAITING];
        let (first, of_first) = std::mem::replace(slot, (at as u32, item));
        if self.count >= WAITING {
            (self.add)(&mut self.sums[first as usize], of_first);
        }
        self.count += 1;
    }

    /// Adds the rest.
    fn finish(self) {
        for turn in self.count.saturating_sub(WAITING)..self.count {
            let (at, item) = self.waiting[turn % WAITING];
            (self.add)(&mut self.sums[at as usize], item);
        }
    }
}

/// Runs `work` on ranges of columns side by side, each with its part of an array that has as many numbers for each
/// column.
pub(crate) fn by_columns<T: Send>(matrix: &Matrix, all: &mut [T], work: impl Fn(Range<usize>, &mut [T]) + Sync) {
    let width = all.len() / matrix.n_cols().max(1);
    let mut parts = Vec::new();
    let mut rest = all;
    for columns in with_rows!(matrix, |rows| column_ranges(rows)) {
        let (part, tail) = rest.split_at_mut(columns.len() * width);
        parts.push((columns, part));
        rest = tail;
    }
    parts.into_par_iter().for_each(|(columns, part)| work(columns, part));
}

/// The stretch of columns, as long as the nearer caches hold, that has the most entries among some columns, judged by a
/// sample of the rows.
fn fullest(rows: &impl Rows, columns: &Range<usize>) -> Range<usize> {
    let mut sample = sample_of_columns(rows);
    sample.retain(|column| columns.contains(column));
    sample.sort_unstable();
    let within = |&first: &usize| {
        sample.partition_point(|&column| column < first + FAR) - sample.partition_point(|&column| column < first)
    };
    let first =
        (columns.start..columns.end).step_by(FAR / 4).max_by_key(|first| (within(first), std::cmp::Reverse(*first)));
    let first = first.unwrap_or(columns.start);
    first..(first + FAR).min(columns.end)
}

/// Adds what each entry of the given columns comes to, `of(row)(value)`, to the sum of its column, row after row.
pub(crate) fn scatter<R: Rows, S, T: Copy + Default, O: Fn(f64) -> T>(
    rows: &R,
    columns: Range<usize>,
    sums: &mut [S],
    of: impl Fn(usize) -> O,
    add: impl Fn(&mut S, T),
) {
    let first = columns.start;
    if columns.len() <= FAR {
        for row in 0..rows.n_rows() {
            let of = of(row);
            rows.for_each_in(row, columns.clone(), |column, value| add(&mut sums[column - first], of(value)));
        }
        return;
    }
    let near = fullest(rows, &columns);
    let mut line = Line::new(sums, add);
    for row in 0..rows.n_rows() {
        let of = of(row);
        rows.for_each_in(row, columns.clone(), |column, value| match near.contains(&column) {
            true => (line.add)(&mut line.sums[column - first], of(value)),
            false => line.push(column - first, of(value)),
        });
    }
    line.finish();
}

/// Adds pᵢ·dᵢ of every row to the given columns.
pub(crate) fn add_rows<R: Rows>(rows: &R, pulls: &[f64], columns: Range<usize>, sums: &mut [f64]) {
    let (outputs, first) = (pulls.len() / rows.n_rows().max(1), columns.start);
    if outputs > 1 {
        for (row, pulls) in pulls.chunks_exact(outputs).enumerate() {
            rows.for_each_in(row, columns.clone(), |column, value| {
                let sums = &mut sums[(column - first) * outputs..(column - first + 1) * outputs];
                sums.iter_mut().zip(pulls).for_each(|(sum, pull)| *sum += value * pull);
            });
        }
    } else if columns.len() <= FAR && columns == (0..rows.n_cols()) {
        pulls.iter().enumerate().for_each(|(row, &pull)| rows.add_all_to(row, pull, sums));
    } else {
        let of = |row: usize| {
            let pull = pulls[row];
            move |value: f64| value * pull
        };
        scatter(rows, columns, sums, of, |sum, of| *sum += of);
    }
}

/// Cuts the columns into ranges that cost about as much to add up, one a thread, judged by a sample of the rows.
fn column_ranges(matrix: &impl Rows) -> Vec<Range<usize>> {
    let (n_cols, parts) = (matrix.n_cols(), rayon::current_num_threads());
    let mut sample = if parts > 1 { sample_of_columns(matrix) } else { Vec::new() };
    sample.sort_unstable();
    let ends = ends_of_equal_cost(&sample, n_cols > FAR, parts);
    let mut ranges = Vec::with_capacity(parts);
    let mut start = 0;
    for end in ends.into_iter().chain([n_cols]) {
        if end > start {
            ranges.push(start..end);
            start = end;
        }
    }
    ranges
}

/// Where parts of a sample, which rises, end if all cost the same. Of sums that lie far away those that the sample meets
/// more than once are at hand.
fn ends_of_equal_cost(sample: &[usize], far: bool, parts: usize) -> Vec<usize> {
    const SUMS_OF_A_LINE: usize = 8;
    let is_met_again = |at: usize| {
        let line = |column: usize| column / SUMS_OF_A_LINE;
        let is_near = |other: Option<&usize>| other.is_some_and(|&other| line(other) == line(sample[at]));
        is_near(sample.get(at + 1)) || at > 0 && is_near(sample.get(at - 1))
    };
    let cost = |at: usize| if far && !is_met_again(at) { FETCHED } else { 1 };
    let all: usize = (0..sample.len()).map(cost).sum();
    let (mut ends, mut before) = (Vec::new(), 0);
    for (at, &column) in sample.iter().enumerate() {
        while ends.len() + 1 < parts && before >= all * (ends.len() + 1) / parts {
            ends.push(column);
        }
        before += cost(at);
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_adds_in_the_order_that_it_was_given() {
        for count in [0, 1, WAITING - 1, WAITING, WAITING + 1, 7 * WAITING + 3] {
            let pushed: Vec<(usize, f64)> = (0..count).map(|at| (at * 7 % 5, 1.0 / (1.0 + at as f64))).collect();
            let (mut at_once, mut waited) = ([0.1; 5], [0.1; 5]);
            pushed.iter().for_each(|&(at, item)| at_once[at] += item);
            let mut line = Line::new(&mut waited, |sum: &mut f64, item: f64| *sum += item);
            pushed.iter().for_each(|&(at, item)| line.push(at, item));
            line.finish();
            assert_eq!(at_once.map(f64::to_bits), waited.map(f64::to_bits), "{count}");
        }
    }

    #[test]
    fn ranges_cost_the_same() {
        // Near, each of 100 entries counts as one; far, a column that is met once counts as several.
        let even: Vec<usize> = (0..100).map(|at| 10 * at).collect();
        assert_eq!(ends_of_equal_cost(&even, false, 4), [250, 500, 750]);
        let skewed: Vec<usize> = std::iter::repeat_n(0, 40).chain((0..40).map(|at| 100 + 10 * at)).collect();
        assert_eq!(ends_of_equal_cost(&skewed, false, 2), [100]);
        assert_eq!(ends_of_equal_cost(&skewed, true, 2), [250]);
        assert!(ends_of_equal_cost(&[], true, 2).is_empty());
    }
}
