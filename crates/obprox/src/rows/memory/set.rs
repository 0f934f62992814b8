//! The working set: some features, and the ways to their entries.
//!
//! The rows are as they were read. A set of all features works on them; a smaller one takes its columns out of them, those
//! that the set before it did not have. On a path, where the passes are many, all features were taken out of the rows
//! before, and every set uses those.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::columns::{Columns, Copied};
use super::gram;
use super::lists::RowLists;
use super::narrow::Narrow;
use crate::data::Matrix;
use crate::huge::Huge;
use crate::problem::Problem;
use crate::tuning::{FEW, LARGEST_BEFORE_PRODUCTS, MANY_ROWS};

/// A Hessian is made straight from the rows where its features have at least this share of their entries.
const MOST_OF_THE_ROWS: f64 = 1.0 / 16.0;

/// Some features, which rise.
#[derive(Default)]
pub(super) struct WorkingSet {
    pub features: Vec<u32>,
    /// Whether these are all there are.
    has_all: bool,
    /// Whether all that is asked of it is a pass over its rows: no Hessian of so many features is formed, and their columns
    /// would take as much memory as the data. What is asked has the same bits whatever was asked before.
    by_rows: bool,
    /// The columns that a set before it took out of the rows.
    known: Taken,
    /// Its own.
    own: OnceLock<Taken>,
    /// Their columns as rows, with the order of the features in them, where the rows themselves will not do.
    lists: OnceLock<Option<(Vec<usize>, RowLists)>>,
    /// Their columns, copied one after the other.
    copied: OnceLock<Copied>,
    /// The rows with these features alone: for products, and for all that is asked of a set by rows.
    narrow: OnceLock<Narrow>,
}

/// Columns that were taken out of the rows, some at a time.
#[derive(Clone, Default)]
pub(super) struct Taken {
    features: Vec<u32>,
    parts: Vec<Arc<Matrix>>,
    /// The part that each feature is in, and where.
    indices: Vec<(u32, u32)>,
}

/// Parts that columns may lie in before all are taken out anew: each is one more place to search.
const MOST_PARTS: usize = 8;

impl Taken {
    /// The columns of some features, those that are not known out of the rows.
    pub fn of(rows: &Matrix, features: &[u32], known: &Self) -> Self {
        let find = |feature: &u32| known.features.binary_search(feature).ok();
        let new: Vec<u32> = features.iter().filter(|feature| find(feature).is_none()).copied().collect();
        if known.parts.len() >= MOST_PARTS && !new.is_empty() {
            return Self::of(rows, features, &Self::default());
        }
        let mut parts = known.parts.clone();
        let (fresh, mut next) = (parts.len() as u32, 0..);
        if !new.is_empty() {
            let some = (new.len() < rows.n_cols()).then_some(&new[..]);
            parts.push(Arc::new(rows.transposed(some)));
        }
        let index = |feature: &u32| match find(feature) {
            Some(at) => known.indices[at],
            None => (fresh, next.next().expect("there is no end")),
        };
        let indices = features.iter().map(index).collect();
        Self { features: features.to_vec(), parts, indices }
    }
}

/// The columns of a set by their indices in it.
#[derive(Clone, Copy)]
pub(super) enum Located<'a> {
    /// Among the columns of all features.
    Among(&'a Matrix, &'a [u32]),
    /// Taken out of the rows.
    Taken(&'a Taken),
}

impl<'a> Located<'a> {
    /// Where the column of a index is: it is a row there.
    #[inline]
    pub fn at(self, index: usize) -> (&'a Matrix, usize) {
        match self {
            Self::Among(columns, features) => (columns, features[index] as usize),
            Self::Taken(taken) => {
                let (part, row) = taken.indices[index];
                (&taken.parts[part as usize], row as usize)
            }
        }
    }

    pub fn len(self, index: usize) -> usize {
        let (matrix, row) = self.at(index);
        matrix.row_len(row)
    }

    /// Calls `visit(row, value)` for the entries of a column.
    pub fn for_each(self, index: usize, visit: impl FnMut(usize, f64)) {
        let (matrix, row) = self.at(index);
        matrix.for_each(row, visit);
    }

    /// A column times a vector.
    fn dot(self, index: usize, with: &[f64]) -> f64 {
        let (matrix, row) = self.at(index);
        matrix.dot(row, with)
    }

    /// Adds columns times weights to margins: the output, the index, the weight of each.
    fn add_to(self, n_rows: usize, weights: &[(usize, usize, f64)], outputs: usize, margins: &mut [f64]) {
        // Each thread has some of the rows, and finds them in every column.
        let share = n_rows.div_ceil(rayon::current_num_threads()).max(1);
        margins.par_chunks_mut(share * outputs).enumerate().for_each(|(part, margins)| {
            let rows = part * share..((part + 1) * share).min(n_rows);
            for &(output, index, weight) in weights {
                let (matrix, at) = self.at(index);
                if outputs == 1 {
                    matrix.add_to(at, rows.clone(), weight, margins);
                    continue;
                }
                let add = |row: usize, value: f64| margins[(row - rows.start) * outputs + output] += value * weight;
                matrix.for_each_in(at, rows.clone(), add);
            }
        });
    }
}

impl WorkingSet {
    /// A set that goes on from another: what that has taken out of the rows it need not take again.
    pub fn new(problem: &Problem, features: Vec<u32>, before: &Self) -> Arc<Self> {
        let known = before.own.get().unwrap_or(&before.known).clone();
        let by_rows = features.len() > LARGEST_BEFORE_PRODUCTS
            && problem.n_rows() >= MANY_ROWS
            && problem.outputs() == 1
            && problem.columns().is_none();
        Arc::new(Self { has_all: features.len() == problem.n_features(), by_rows, features, known, ..Self::default() })
    }

    /// Its columns.
    pub fn columns<'a>(&'a self, problem: &'a Problem) -> Located<'a> {
        match problem.columns() {
            Some(columns) => Located::Among(columns, &self.features),
            None => Located::Taken(self.own.get_or_init(|| Taken::of(problem.matrix(), &self.features, &self.known))),
        }
    }

    /// Its columns, each in one piece.
    pub fn contiguous_columns<'a>(&'a self, problem: &'a Problem) -> Columns<'a> {
        let (columns, len) = (self.columns(problem), self.features.len());
        Columns::in_place(columns, len).unwrap_or_else(|| {
            let copied = self.copied.get_or_init(|| Copied::of(columns, len, problem.n_rows()));
            copied.view(problem.n_rows())
        })
    }

    /// The rows with its features alone.
    fn narrow(&self, problem: &Problem) -> &Narrow {
        self.narrow.get_or_init(|| Narrow::of(problem.matrix(), &self.features))
    }

    /// The diagonal of Σ hᵢ dᵢdᵢᵀ, that of the intercept last, over some of the rows: one out of so many.
    pub fn diagonal(&self, problem: &Problem, curvatures: &[f64], part: usize) -> Vec<f64> {
        let mut squares = self.narrow(problem).diagonal(curvatures, part);
        squares.truncate(self.features.len() + usize::from(problem.has_intercept()));
        squares
    }

    /// Σ hᵢ dᵢ(dᵢ·v), the intercept last, over as many.
    pub fn product(&self, problem: &Problem, curvatures: &[f64], v: &[f64], part: usize) -> Vec<f64> {
        self.narrow(problem).product(curvatures, v, part)
    }

    /// The entries of its columns.
    pub fn entries(&self, problem: &Problem) -> usize {
        if self.has_all {
            return problem.columns().unwrap_or(problem.matrix()).nnz();
        }
        if self.by_rows {
            return self.narrow(problem).entries();
        }
        let columns = self.columns(problem);
        (0..self.features.len()).map(|index| columns.len(index)).sum()
    }

    /// Σ sᵢ dᵢ over the rows, on its features.
    pub fn slopes(&self, problem: &Problem, of_rows: &[f64]) -> Vec<f64> {
        if self.by_rows {
            let mut sums = self.narrow(problem).sum(of_rows);
            sums.truncate(self.features.len());
            return sums;
        }
        let columns = self.columns(problem);
        let slope = |index: usize| columns.dot(index, of_rows);
        (0..self.features.len()).into_par_iter().with_min_len(16).map(slope).collect()
    }

    /// Adds its columns times weights to margins: the output, the index, the weight of each.
    pub fn add_to(&self, problem: &Problem, weights: &[(usize, usize, f64)], margins: &mut [f64]) {
        if self.by_rows {
            let mut of_features = vec![0.0; self.features.len()];
            weights.iter().for_each(|&(_, index, weight)| of_features[index] = weight);
            return self.narrow(problem).add_dots(&of_features, margins);
        }
        self.columns(problem).add_to(problem.n_rows(), weights, problem.outputs(), margins);
    }

    /// The indices of a Hessian, in its order: those that are wanted, which rise, and others where they come along. The
    /// intercept, where the problem has one, is the last of both.
    pub fn order(&self, problem: &Problem, wanted: Vec<usize>) -> Vec<usize> {
        match self.lists(problem) {
            Some((order, _)) => {
                order.iter().copied().chain(problem.has_intercept().then_some(self.features.len())).collect()
            }
            None => wanted,
        }
    }

    /// The lower triangle of Σ hᵢ dᵢdᵢᵀ over the indices that [`Self::order`] gave.
    pub fn gram(&self, problem: &Problem, order: &[usize], curvatures: &[f64]) -> Huge<f64> {
        match self.lists(problem) {
            Some((_, lists)) => lists.gram(order.len(), problem.has_intercept(), curvatures),
            None => {
                let features: Vec<u32> = order.iter().filter_map(|&at| self.features.get(at).copied()).collect();
                gram::of_rows(problem.matrix(), &features, problem.has_intercept(), curvatures).into()
            }
        }
    }

    /// Lines of Σ hᵢ dᵢdᵢᵀ, each over all its features and the intercept: those of a few indices.
    pub fn gram_lines(&self, problem: &Problem, indices: &[usize], curvatures: &[f64]) -> Vec<Vec<f64>> {
        let columns = self.columns(problem);
        let line = |&index: &usize| {
            let mut scaled = vec![0.0; problem.n_rows()];
            columns.for_each(index, |row, value| scaled[row] = curvatures[row] * value);
            let with = |other: usize| columns.dot(other, &scaled);
            let mut line: Vec<f64> = (0..self.features.len()).into_par_iter().with_min_len(16).map(with).collect();
            line.extend(problem.has_intercept().then(|| scaled.iter().sum::<f64>()));
            line
        };
        indices.iter().map(line).collect()
    }

    fn lists(&self, problem: &Problem) -> Option<&(Vec<usize>, RowLists)> {
        let lists = self.lists.get_or_init(|| {
            // The rows have all features, under their own numbers, unless some were left out of the columns.
            let in_rows = problem.n_features() == problem.matrix().n_cols();
            if in_rows && problem.matrix().is_dense() {
                return None;
            }
            if problem.n_features() <= FEW && in_rows {
                let share = self.entries(problem) as f64 / problem.matrix().nnz().max(1) as f64;
                if self.has_all || share >= MOST_OF_THE_ROWS {
                    return None;
                }
            }
            let columns = self.columns(problem);
            // The fullest come first: then most of a Hessian's traffic meets in one corner of it.
            let mut order: Vec<usize> = (0..self.features.len()).collect();
            order.sort_by_key(|&index| (std::cmp::Reverse(columns.len(index)), index));
            let lists = RowLists::of(problem.n_rows(), &order.iter().map(|&at| columns.at(at)).collect::<Vec<_>>());
            Some((order, lists))
        });
        lists.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::loss::LossKind;
    use crate::problem::Terms;

    #[test]
    fn a_set_by_rows_is_one_by_columns() {
        let (n_rows, n_cols) = (300, 40);
        let value = |row: usize, column: usize| ((row * 31 + column * 17 + row * column) % 23) as f64 / 8.0 - 1.0;
        let present = |row: usize, column: usize| (row * 7 + column * (3 + row % 4)).is_multiple_of(5);
        let row = |row| (0..n_cols).filter(|&at| present(row, at)).map(|at| (at as u32, value(row, at))).collect();
        let rows: Vec<Vec<(u32, f64)>> = (0..n_rows).map(row).collect();
        let data = Dataset::new(Matrix::from_rows(n_cols, &rows), (0..n_rows).map(|row| (row % 2) as f64).collect());
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).unwrap();
        let features: Vec<u32> = (0..n_cols as u32).step_by(3).collect();
        let set = |by_rows| WorkingSet { features: features.clone(), by_rows, ..WorkingSet::default() };
        let (by_rows, by_columns) = (set(true), set(false));
        assert_eq!(by_rows.entries(&problem), by_columns.entries(&problem));
        let near = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        let of_rows: Vec<f64> = (0..n_rows).map(|row| (row as f64).sin()).collect();
        assert!(near(&by_rows.slopes(&problem, &of_rows), &by_columns.slopes(&problem, &of_rows)));
        let (mut one, mut other) = (vec![0.3; n_rows], vec![0.3; n_rows]);
        let weights = [(0, 2, 0.7), (0, 11, -1.5)];
        by_rows.add_to(&problem, &weights, &mut one);
        by_columns.add_to(&problem, &weights, &mut other);
        assert!(near(&one, &other) && one.iter().any(|&margin| margin != 0.3));
        assert!(by_rows.own.get().is_none(), "no columns were taken out of the rows");
    }
}
