//! The columns of unpenalised coordinates, and what they make of a dual point: see `certificate/free.rs`.

use rayon::prelude::*;

use crate::problem::Problem;

/// Tasks that the rows are dealt to: the same number for any number of threads, so that the bits are the same.
const TASKS: usize = 16;
/// A difference that is smaller than this share of its terms is that of their last bits.
const NOISE: f64 = 1e-14;

/// The columns without penalty, row by row; the intercept's, where there is one, is the last.
pub(super) struct FreeColumns {
    width: usize,
    outputs: usize,
    /// Rows that sums are means over.
    n_all: usize,
    rows: Vec<Vec<(u32, f64)>>,
    /// Rows that keep their θ.
    is_held: Vec<bool>,
}

impl FreeColumns {
    pub fn of(problem: &Problem, features: &[u32]) -> Self {
        let one = problem.has_intercept().then_some((features.len() as u32, 1.0));
        let rows = match problem.columns() {
            Some(columns) => {
                let mut rows = vec![Vec::new(); problem.n_rows()];
                for (index, &feature) in features.iter().enumerate() {
                    columns.for_each(feature as usize, |row, value| rows[row].push((index as u32, value)));
                }
                rows.iter_mut().for_each(|row: &mut Vec<_>| row.extend(one));
                rows
            }
            None => {
                let row = |row: usize| {
                    let mut entries = Vec::new();
                    problem.matrix().for_each(row, |column, value| {
                        if let Ok(index) = features.binary_search(&(column as u32)) {
                            entries.push((index as u32, value));
                        }
                    });
                    entries.extend(one);
                    entries
                };
                (0..problem.n_rows()).into_par_iter().map(row).collect()
            }
        };
        let width = features.len() + usize::from(problem.has_intercept());
        Self { width, outputs: problem.outputs(), n_all: problem.total_rows(), is_held: vec![false; rows.len()], rows }
    }

    /// Where output k of a index is among the coordinates.
    fn at(&self, index: u32, output: usize) -> usize {
        index as usize * self.outputs + output
    }

    /// The mean of |A·x|² over the rows.
    pub fn square_of_margins(&self, problem: &Problem, x: &[f64]) -> f64 {
        let square = |row: usize, k: usize| {
            let margin: f64 = self.rows[row].iter().map(|&(index, value)| value * x[self.at(index, k)]).sum();
            problem.row_weight(row) * margin * margin
        };
        self.sum(1, |row, sum| sum[0] += (0..self.outputs).map(|k| square(row, k)).sum::<f64>())[0]
    }

    /// The mean squares of the columns.
    pub fn squares(&self, problem: &Problem) -> Vec<f64> {
        self.sum(self.width, |row, sums| {
            for &(index, value) in &self.rows[row] {
                sums[index as usize] += problem.row_weight(row) * value * value;
            }
        })
    }

    /// AᵀA of one output.
    pub fn gram(&self, problem: &Problem) -> Vec<f64> {
        self.sum_products(problem, 1, |row, entry| entry[0] = problem.row_weight(row))
    }

    /// Subtracts from the columns of these indices such sums of all.
    pub fn replace(&mut self, by: &[(usize, Vec<f64>)]) {
        for (index, share) in by {
            for row in &mut self.rows {
                let of = |sum: f64, &(other, value): &(u32, f64)| sum + share[other as usize] * value;
                let others: f64 = row.iter().fold(0.0, of);
                let own = row.iter().position(|entry| entry.0 as usize == *index);
                let value = own.map_or(0.0, |at| row[at].1);
                // The rest of what is the same to rounding is noise, and not a column.
                let rest = value - others;
                let rest = if rest.abs() <= NOISE * (value.abs() + others.abs()) { 0.0 } else { rest };
                match own {
                    Some(at) => row[at].1 = rest,
                    None if rest != 0.0 => row.push((*index as u32, rest)),
                    None => {}
                }
            }
        }
        self.rows.iter_mut().for_each(|row| row.sort_unstable_by_key(|entry| entry.0));
    }

    /// c = (1/N) Σ wᵢ Aᵢᵀθᵢ.
    pub fn slopes(&self, problem: &Problem, duals: &[f64]) -> Vec<f64> {
        self.sum(self.width * self.outputs, |row, sums| {
            let weight = problem.row_weight(row);
            if weight > 0.0 {
                for &(index, value) in &self.rows[row] {
                    for (k, dual) in duals[row * self.outputs..][..self.outputs].iter().enumerate() {
                        sums[self.at(index, k)] += weight * value * dual;
                    }
                }
            }
        })
    }

    /// AᵀHA at given margins, without the rows that are held.
    pub fn hessian(&self, problem: &Problem, margins: &[f64]) -> Vec<f64> {
        self.sum_products(problem, self.outputs, |row, entries| {
            if !self.is_held[row] {
                let weight = problem.row_weight(row);
                curvatures(problem, &margins[row * self.outputs..][..self.outputs], row, entries);
                entries.iter_mut().for_each(|entry| *entry *= weight);
            }
        })
    }

    /// AᵀHA of rows with one output and such curvatures.
    pub fn hessian_of(&self, problem: &Problem, curvatures: &[f64]) -> Vec<f64> {
        self.sum_products(problem, 1, |row, entry| entry[0] = problem.row_weight(row) * curvatures[row])
    }

    /// m ← m − Aδ, of rows with one output.
    pub fn subtract(&self, delta: &[f64], margins: &mut [f64]) {
        for (row, margin) in self.rows.iter().zip(margins) {
            *margin -= row.iter().map(|&(index, value)| value * delta[index as usize]).sum::<f64>();
        }
    }

    /// θ ← θ − H·Aδ. A row that would leave the domain keeps its θ and is held from now on; how many there are.
    pub fn correct(&mut self, problem: &Problem, margins: &[f64], delta: &[f64], duals: &mut [f64]) -> usize {
        let (outputs, lists) = (self.outputs, &self.rows);
        let rows = duals.par_chunks_exact_mut(outputs).zip(self.is_held.par_iter_mut()).enumerate();
        let leaves = |(row, (duals, is_held)): (usize, (&mut [f64], &mut bool))| {
            if *is_held || problem.row_weight(row) == 0.0 {
                return false;
            }
            let mut shift = vec![0.0; outputs];
            for &(index, value) in &lists[row] {
                let delta = &delta[index as usize * outputs..][..outputs];
                shift.iter_mut().zip(delta).for_each(|(shift, delta)| *shift += value * delta);
            }
            let mut entries = vec![0.0; outputs * outputs];
            curvatures(problem, &margins[row * outputs..][..outputs], row, &mut entries);
            let mut trial = duals.to_vec();
            for (trial, line) in trial.iter_mut().zip(entries.chunks_exact(outputs)) {
                *trial -= line.iter().zip(&shift).map(|(h, shift)| h * shift).sum::<f64>();
            }
            let inside = problem.loss().conjugate(&trial, problem.targets()[row]).is_some_and(f64::is_finite);
            if inside {
                duals.copy_from_slice(&trial);
            }
            *is_held = !inside;
            !inside
        };
        rows.filter_map(|row| leaves(row).then_some(())).count()
    }

    /// Some numbers a task, added up in the order of the rows.
    fn sum(&self, len: usize, add: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let share = self.rows.len().div_ceil(TASKS).max(1);
        let part = |first: usize| {
            let mut sums = vec![0.0; len];
            (first..(first + share).min(self.rows.len())).for_each(|row| add(row, &mut sums));
            sums
        };
        let starts: Vec<usize> = (0..self.rows.len()).step_by(share).collect();
        let parts: Vec<Vec<f64>> = starts.into_par_iter().map(part).collect();
        let scale = 1.0 / self.n_all as f64;
        let mut total = vec![0.0; len];
        for part in parts {
            total.iter_mut().zip(part).for_each(|(total, part)| *total += scale * part);
        }
        total
    }

    /// (1/N) Σ Aᵢᵀ Bᵢ Aᵢ for so many outputs K, where `block` writes the K × K matrix of a row over zeros.
    fn sum_products(&self, problem: &Problem, outputs: usize, block: impl Fn(usize, &mut [f64]) + Sync) -> Vec<f64> {
        let size = self.width * outputs;
        self.sum(size * size, |row, sums| {
            if problem.row_weight(row) == 0.0 {
                return;
            }
            let mut entries = vec![0.0; outputs * outputs];
            block(row, &mut entries);
            for &(index, value) in &self.rows[row] {
                for &(other, with) in self.rows[row].iter().filter(|(other, _)| *other <= index) {
                    for (at, entry) in entries.iter().enumerate() {
                        let (k, m) = (at / outputs, at % outputs);
                        let (at, other) = (index as usize * outputs + k, other as usize * outputs + m);
                        sums[at * size + other] += value * with * entry;
                    }
                }
            }
        })
    }
}

/// ∇²ℓ of a row, or as much of it as the loss gives, over zeros.
fn curvatures(problem: &Problem, margins: &[f64], row: usize, entries: &mut [f64]) {
    let (loss, outputs, target) = (problem.loss(), margins.len(), problem.targets()[row]);
    if outputs > 1 && loss.hessian(margins, target, entries) {
        return;
    }
    let mut diagonal = vec![0.0; outputs];
    if loss.curvature(margins, target, &mut diagonal) {
        (0..outputs).for_each(|k| entries[k * outputs + k] = diagonal[k]);
    }
}
