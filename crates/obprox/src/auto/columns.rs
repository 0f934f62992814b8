//! Some columns of the data, copied out so that second-order work can walk them one by one.

use rayon::prelude::*;

use crate::data::{Matrix, Rows, with_rows};

/// Columns of a working set, in compressed sparse form: the rows of each column rise.
#[derive(Debug, Default)]
pub(super) struct Columns {
    starts: Vec<usize>,
    rows: Vec<u32>,
    /// Empty where every value is 1.
    values: Vec<f64>,
}

/// Entries of the chosen columns in a range of rows: how many each column has, and (place, row, value) in row order.
struct Part {
    counts: Vec<usize>,
    places: Vec<u32>,
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl Columns {
    /// Copies the given features, which rise, out of a matrix.
    pub fn of(matrix: &Matrix, features: &[u32]) -> Self {
        let n_rows = matrix.n_rows();
        let mut place = vec![0; matrix.n_cols()];
        // One bit a feature answers the usual "no" from the cache; the place is looked up only for the few that are in.
        let mut chosen = vec![0u64; matrix.n_cols().div_ceil(64)];
        for (at, &feature) in features.iter().enumerate() {
            chosen[feature as usize / 64] |= 1 << (feature % 64);
            place[feature as usize] = at as u32;
        }
        let ones = matches!(matrix, Matrix::Ones(_));
        let parts = rayon::current_num_threads().min(n_rows.div_ceil(1024)).max(1);
        let size = n_rows.div_ceil(parts);
        let parts: Vec<Part> = (0..parts)
            .into_par_iter()
            .map(|part| {
                let mut out = Part { counts: vec![0; features.len()], places: vec![], rows: vec![], values: vec![] };
                for row in part * size..((part + 1) * size).min(n_rows) {
                    with_rows!(matrix, |rows| rows.for_each(row, |column, value| {
                        if chosen[column / 64] >> (column % 64) & 1 == 1 && value != 0.0 {
                            let place = place[column];
                            out.counts[place as usize] += 1;
                            out.places.push(place);
                            out.rows.push(row as u32);
                            if !ones {
                                out.values.push(value);
                            }
                        }
                    }));
                }
                out
            })
            .collect();
        let mut starts = vec![0; features.len() + 1];
        for at in 0..features.len() {
            starts[at + 1] = starts[at] + parts.iter().map(|part| part.counts[at]).sum::<usize>();
        }
        let total = starts[features.len()];
        let mut next = starts.clone();
        let (mut rows, mut values) = (vec![0; total], vec![0.0; if ones { 0 } else { total }]);
        for part in parts {
            for (entry, (&place, &row)) in part.places.iter().zip(&part.rows).enumerate() {
                let to = &mut next[place as usize];
                rows[*to] = row;
                if !ones {
                    values[*to] = part.values[entry];
                }
                *to += 1;
            }
        }
        Self { starts, rows, values }
    }

    /// Entries of a column.
    pub fn len(&self, place: usize) -> usize {
        self.starts[place + 1] - self.starts[place]
    }

    /// Calls `visit(row, value)` for each entry of a column.
    #[inline]
    pub fn for_each(&self, place: usize, mut visit: impl FnMut(usize, f64)) {
        let span = self.starts[place]..self.starts[place + 1];
        if self.values.is_empty() {
            self.rows[span].iter().for_each(|&row| visit(row as usize, 1.0));
        } else {
            let values = &self.values[span.clone()];
            self.rows[span].iter().zip(values).for_each(|(&row, &value)| visit(row as usize, value));
        }
    }
}

/// Some columns turned back into rows: for each row its places, which rise, and their values.
#[derive(Debug)]
pub(super) struct RowLists {
    ends: Vec<usize>,
    places: Vec<u32>,
    /// Empty where every value is 1.
    values: Vec<f64>,
}

impl RowLists {
    /// Takes the given places of the columns, which are numbered anew in their order.
    pub fn of(columns: &Columns, places: &[usize], n_rows: usize) -> Self {
        let mut ends = vec![0; n_rows + 1];
        for &place in places {
            columns.for_each(place, |row, _| ends[row + 1] += 1);
        }
        for row in 0..n_rows {
            ends[row + 1] += ends[row];
        }
        let ones = columns.values.is_empty();
        let mut next = ends.clone();
        let mut lists =
            Self { places: vec![0; ends[n_rows]], values: vec![0.0; if ones { 0 } else { ends[n_rows] }], ends };
        for (at, &place) in places.iter().enumerate() {
            columns.for_each(place, |row, value| {
                lists.places[next[row]] = at as u32;
                if !ones {
                    lists.values[next[row]] = value;
                }
                next[row] += 1;
            });
        }
        lists
    }

    /// Σ d² of each place; of a column of ones, which comes last where `intercept` says so, the number of rows.
    pub fn squares(&self, size: usize, intercept: bool) -> Vec<f64> {
        let mut squares = vec![0.0; size];
        for (at, &place) in self.places.iter().enumerate() {
            let value = self.values.get(at).copied().unwrap_or(1.0);
            squares[place as usize] += value * value;
        }
        if intercept {
            squares[size - 1] = (self.ends.len() - 1) as f64;
        }
        squares
    }

    /// The lower triangle of Σ hᵢ dᵢdᵢᵀ, `size` × `size`; a column of ones comes last where `intercept` says so.
    ///
    /// Each thread owns some lines of the triangle and adds the rows in their order, so the bits do not depend on how
    /// many there are.
    pub fn gram(&self, size: usize, intercept: bool, curvatures: &[f64]) -> Vec<f64> {
        let mut gram = vec![0.0; size * size];
        // Shares of equal work: the updates of a line are the entries before its own in each of its rows.
        let mut work = vec![0usize; size];
        for row in 0..curvatures.len() {
            let places = &self.places[self.ends[row]..self.ends[row + 1]];
            places.iter().enumerate().for_each(|(at, &place)| work[place as usize] += at + 1);
        }
        let (total, threads) = (work.iter().sum::<usize>(), rayon::current_num_threads());
        let mut shares = Vec::new();
        let mut rest = &mut gram[..];
        let (mut first, mut done) = (0, 0);
        for (line, work) in work.into_iter().enumerate() {
            done += work;
            if line + 1 == size || done * threads >= total * (shares.len() + 1) {
                let (mine, tail) = rest.split_at_mut((line + 1 - first) * size);
                shares.push((first..line + 1, mine));
                (rest, first) = (tail, line + 1);
            }
        }
        shares.into_par_iter().for_each(|(range, lines)| {
            let line_of = |at: usize| (at - range.start) * size..(at - range.start + 1) * size;
            let whole = range == (0..size);
            for (row, &curvature) in curvatures.iter().enumerate() {
                let span = self.ends[row]..self.ends[row + 1];
                let places = &self.places[span.clone()];
                if curvature == 0.0 {
                    continue;
                }
                let (mut from, mut to) = (0, places.len());
                if !whole {
                    from = places.partition_point(|&place| (place as usize) < range.start);
                    to = from + places[from..].partition_point(|&place| (place as usize) < range.end);
                }
                if self.values.is_empty() {
                    for at in from..to {
                        let line = &mut lines[line_of(places[at] as usize)];
                        places[..=at].iter().for_each(|&other| line[other as usize] += curvature);
                    }
                } else {
                    let values = &self.values[span];
                    for at in from..to {
                        let line = &mut lines[line_of(places[at] as usize)];
                        let scaled = curvature * values[at];
                        let others = places[..=at].iter().zip(values);
                        others.for_each(|(&other, value)| line[other as usize] += scaled * value);
                    }
                }
                if intercept && range.end == size && !range.is_empty() {
                    let line = &mut lines[line_of(size - 1)];
                    for (at, &place) in places.iter().enumerate() {
                        line[place as usize] +=
                            curvature * self.values.get(self.ends[row] + at).copied().unwrap_or(1.0);
                    }
                    line[size - 1] += curvature;
                }
            }
        });
        gram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_the_rows_turned() {
        let rows = [vec![(0, 2.0), (3, 1.0)], vec![], vec![(1, 5.0), (3, -1.0)], vec![(0, 0.5)]];
        let columns = Columns::of(&Matrix::from_rows(5, &rows), &[0, 3, 4]);
        let column = |place| {
            let mut entries = Vec::new();
            columns.for_each(place, |row, value| entries.push((row, value)));
            entries
        };
        assert_eq!(column(0), [(0, 2.0), (3, 0.5)]);
        assert_eq!(column(1), [(0, 1.0), (2, -1.0)]);
        assert_eq!(column(2), []);

        // The Gram matrix of columns 3 and 0 and the intercept, by hand.
        let h = [1.0, 10.0, 2.0, 4.0];
        let gram = RowLists::of(&columns, &[0, 1], 4).gram(3, true, &h);
        let lower = [gram[0], gram[3], gram[4], gram[6], gram[7], gram[8]];
        assert_eq!(lower, [4.0 + 4.0 * 0.25, 2.0, 1.0 + 2.0, 2.0 + 4.0 * 0.5, 1.0 - 2.0, 17.0]);
    }
}
