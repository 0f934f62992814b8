//! The working set: some features, and the ways to their entries.
//!
//! The rows are as they were read. A set of all features works on them; a smaller one takes its columns out of them, those
//! that the set before it did not have. On a path, where the passes are many, all features were taken out of the rows
//! before, and every set uses those.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::columns::{Columns, Copied};
use super::lists::RowLists;
use super::{gram, pass};
use crate::data::Matrix;
use crate::huge::Huge;
use crate::problem::Problem;
use crate::tuning::FEW;

/// A Hessian is made straight from the rows where its features have at least this share of their entries.
const MOST_OF_THE_ROWS: f64 = 1.0 / 16.0;

/// Some features, which rise.
#[derive(Default)]
pub(super) struct WorkingSet {
    pub features: Vec<u32>,
    /// Whether these are all there are.
    has_all: bool,
    /// The columns that a set before it took out of the rows.
    known: Taken,
    /// Its own.
    own: OnceLock<Taken>,
    /// Their columns as rows, with the order of the features in them, where the rows themselves will not do.
    lists: OnceLock<Option<(Vec<usize>, RowLists)>>,
    /// Their columns, copied one after the other.
    copied: OnceLock<Copied>,
    /// The rows with these features alone, for products and nothing else: what is asked of a set has the same bits whatever
    /// was asked before.
    compact: OnceLock<Matrix>,
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

/// Appends the intercept's part, where there is one.
fn with_intercept(mut of_set: Vec<f64>, problem: &Problem, part: impl FnOnce() -> f64) -> Vec<f64> {
    of_set.extend(problem.has_intercept().then(part));
    of_set
}

impl WorkingSet {
    /// A set that goes on from another: what that has taken out of the rows it need not take again.
    pub fn new(problem: &Problem, features: Vec<u32>, before: &Self) -> Arc<Self> {
        let known = before.own.get().unwrap_or(&before.known).clone();
        Arc::new(Self { has_all: features.len() == problem.n_features(), features, known, ..Self::default() })
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
    fn compact(&self, problem: &Problem) -> &Matrix {
        self.compact.get_or_init(|| problem.matrix().keep_columns(&self.features))
    }

    /// The diagonal of Σ hᵢ dᵢdᵢᵀ, that of the intercept last.
    pub fn diagonal(&self, problem: &Problem, curvatures: &[f64]) -> Vec<f64> {
        let squares = pass::sum_rows_with(self.compact(problem), curvatures, |value| value * value);
        with_intercept(squares, problem, || curvatures.iter().sum())
    }

    /// Σ hᵢ dᵢ(dᵢ·v), the intercept last.
    pub fn product(&self, problem: &Problem, curvatures: &[f64], v: &[f64]) -> Vec<f64> {
        pass::product(self.compact(problem), problem.has_intercept(), curvatures, v)
    }

    /// The entries of its columns.
    pub fn entries(&self, problem: &Problem) -> usize {
        if self.has_all {
            return problem.columns().unwrap_or(problem.matrix()).nnz();
        }
        let columns = self.columns(problem);
        (0..self.features.len()).map(|index| columns.len(index)).sum()
    }

    /// Σ sᵢ dᵢ over the rows, on its features.
    pub fn slopes(&self, problem: &Problem, of_rows: &[f64]) -> Vec<f64> {
        let columns = self.columns(problem);
        let slope = |index: usize| columns.dot(index, of_rows);
        (0..self.features.len()).into_par_iter().with_min_len(16).map(slope).collect()
    }

    /// Adds its columns times weights to margins: the output, the index, the weight of each.
    pub fn add_to(&self, problem: &Problem, weights: &[(usize, usize, f64)], margins: &mut [f64]) {
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
