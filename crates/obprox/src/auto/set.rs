//! The working set: some features, and the ways to their entries.
//!
//! The rows are as they were read. A set of all features works on them; a smaller one takes its columns out of them, once.
//! On a path, where the passes are many, all features were taken out of the rows before, and every set uses those.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::descent::Columns;
use super::lists::RowLists;
use super::{FEW, gram};
use crate::data::Matrix;
use crate::huge::Huge;
use crate::pass;
use crate::problem::Problem;

/// A Hessian is made straight from the rows where its features have at least this share of their entries.
const MOST_OF_THE_ROWS: f64 = 1.0 / 16.0;

/// Some features, which rise.
#[derive(Default)]
pub(super) struct WorkingSet {
    pub features: Vec<u32>,
    /// Whether these are all there are.
    whole: bool,
    /// Their columns, where they had to be taken out of the rows.
    own: OnceLock<Matrix>,
    /// Their columns as rows, with the order of the features in them, where the rows themselves will not do.
    lists: OnceLock<Option<(Vec<usize>, RowLists)>>,
    /// Their columns, together.
    together: OnceLock<Columns>,
}

/// The columns of a set by their places in it.
#[derive(Clone, Copy)]
pub(super) struct Placed<'a> {
    matrix: &'a Matrix,
    /// Which of the columns each place has, where there are others.
    features: Option<&'a [u32]>,
}

impl Placed<'_> {
    fn at(self, place: usize) -> usize {
        self.features.map_or(place, |features| features[place] as usize)
    }

    fn len(self, place: usize) -> usize {
        self.matrix.row_len(self.at(place))
    }

    /// Calls `visit(row, value)` for the entries of a column.
    pub fn for_each(self, place: usize, visit: impl FnMut(usize, f64)) {
        self.matrix.for_each(self.at(place), visit);
    }

    /// Adds columns times weights to margins: the output, the place, the weight of each.
    fn add_to(self, weights: &[(usize, usize, f64)], outputs: usize, margins: &mut [f64]) {
        let n_rows = self.matrix.n_cols();
        // Each thread has some of the rows, and finds them in every column.
        let share = n_rows.div_ceil(rayon::current_num_threads()).max(1);
        margins.par_chunks_mut(share * outputs).enumerate().for_each(|(part, margins)| {
            let rows = part * share..((part + 1) * share).min(n_rows);
            for &(output, place, weight) in weights {
                if outputs == 1 {
                    self.matrix.add_to(self.at(place), rows.clone(), weight, margins);
                    continue;
                }
                let add = |row: usize, value: f64| margins[(row - rows.start) * outputs + output] += value * weight;
                self.matrix.for_each_in(self.at(place), rows.clone(), add);
            }
        });
    }
}

impl WorkingSet {
    pub fn new(problem: &Problem, features: Vec<u32>) -> Arc<Self> {
        Arc::new(Self { whole: features.len() == problem.n_features(), features, ..Self::default() })
    }

    /// Its columns.
    pub fn columns<'a>(&'a self, problem: &'a Problem) -> Placed<'a> {
        if let Some(columns) = problem.columns() {
            return Placed { matrix: columns, features: Some(&self.features) };
        }
        let some = (!self.whole).then_some(&self.features[..]);
        Placed { matrix: self.own.get_or_init(|| problem.matrix().transposed(some)), features: None }
    }

    /// Its columns one after the other in memory.
    pub fn together(&self, problem: &Problem) -> &Columns {
        self.together.get_or_init(|| {
            let columns = self.columns(problem);
            let places: Vec<u32> = (0..self.features.len()).map(|place| columns.at(place) as u32).collect();
            Columns::of(columns.matrix, &places)
        })
    }

    /// Whether its columns are best left in the rows.
    fn stays_in_rows(&self, problem: &Problem) -> bool {
        self.whole && problem.columns().is_none() && problem.n_features() <= FEW && problem.outputs() == 1
    }

    /// The entries of its columns.
    pub fn entries(&self, problem: &Problem) -> usize {
        if self.stays_in_rows(problem) {
            return problem.matrix().nnz();
        }
        let columns = self.columns(problem);
        (0..self.features.len()).map(|place| columns.len(place)).sum()
    }

    /// Σ sᵢ dᵢ over the rows, on its features.
    pub fn slopes(&self, problem: &Problem, of_rows: &[f64]) -> Vec<f64> {
        if self.stays_in_rows(problem) {
            return pass::sum_rows_times(problem.matrix(), of_rows);
        }
        let columns = self.columns(problem);
        let slope = |place: usize| columns.matrix.dot(columns.at(place), of_rows);
        (0..self.features.len()).into_par_iter().with_min_len(16).map(slope).collect()
    }

    /// Adds its columns times weights to margins: the output, the place, the weight of each.
    pub fn add_to(&self, problem: &Problem, weights: &[(usize, usize, f64)], margins: &mut [f64]) {
        if self.stays_in_rows(problem) {
            let mut all = vec![0.0; self.features.len()];
            weights.iter().for_each(|&(_, place, weight)| all[place] = weight);
            return pass::add_margins(problem.matrix(), &all, margins);
        }
        self.columns(problem).add_to(weights, problem.outputs(), margins);
    }

    /// The places of a Hessian, in its order: those that are wanted, and others where they come along. The intercept,
    /// where the problem has one, is the last.
    pub fn order(&self, problem: &Problem, wanted: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut order = match self.lists(problem) {
            Some((order, _)) => order.clone(),
            None => (0..self.features.len()).filter(|&place| wanted(place)).collect(),
        };
        order.extend(problem.has_intercept().then_some(self.features.len()));
        order
    }

    /// The lower triangle of Σ hᵢ dᵢdᵢᵀ over the places that [`Self::order`] gave.
    pub fn gram(&self, problem: &Problem, order: &[usize], curvatures: &[f64]) -> Huge<f64> {
        match self.lists(problem) {
            Some((_, lists)) => lists.gram(order.len(), problem.has_intercept(), curvatures),
            None => {
                let features: Vec<u32> = order.iter().filter_map(|&at| self.features.get(at).copied()).collect();
                gram::of_rows(problem.matrix(), &features, problem.has_intercept(), curvatures).into()
            }
        }
    }

    fn lists(&self, problem: &Problem) -> Option<&(Vec<usize>, RowLists)> {
        let lists = self.lists.get_or_init(|| {
            // The rows have all features, under their own numbers, unless some were left out of the columns.
            let in_rows = problem.n_features() == problem.matrix().n_cols();
            if problem.n_features() <= FEW && in_rows {
                let share = self.entries(problem) as f64 / problem.matrix().nnz().max(1) as f64;
                if self.whole || share >= MOST_OF_THE_ROWS {
                    return None;
                }
            }
            let columns = self.columns(problem);
            // The fullest come first: then most of a Hessian's traffic meets in one corner of it.
            let mut order: Vec<usize> = (0..self.features.len()).collect();
            order.sort_by_key(|&place| (std::cmp::Reverse(columns.len(place)), place));
            let ordered: Vec<u32> = order.iter().map(|&place| columns.at(place) as u32).collect();
            Some((order, RowLists::of(columns.matrix, &ordered)))
        });
        lists.as_ref()
    }
}
