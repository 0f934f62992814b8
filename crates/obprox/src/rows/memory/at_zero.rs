//! What x = 0 tells before anything is solved: λ_max, and how steep f can be at all along each feature.
//!
//! One pass over the data, and with many features its time is that of the visits to them. So all that is added up for one
//! lies together, in as few bytes as will do.

use std::ops::AddAssign;

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use super::centring::{self, Alike};
use super::pass::{self, weighted};
use super::scatter::{by_columns, scatter};
use crate::data::{Buffer, Matrix, with_rows};
use crate::huge::Huge;

use crate::problem::Problem;
use crate::rows::sharded::evaluation::Columns;
use crate::rows::sharded::task::Task;
use crate::tuning::FEW;
use crate::{Result, intercept};

/// What x = 0 with b at its optimum tells.
#[derive(Debug, Default)]
pub(crate) struct AtZero {
    /// The smallest λ at which it is optimal: the largest slope over the weighted features.
    pub lambda_max: f64,
    /// The intercepts at their optimum there; zeros where there are none.
    pub intercept: Vec<f64>,
    /// The mean loss.
    pub loss: f64,
    /// The least that a gap is measured against.
    pub least_scale: f64,
    /// How far margins may be expected to lie from those there: the deviation of real targets, about 1 for classes. A loss
    /// that grows only linearly lets them lie further away.
    pub margin_unit: f64,
    /// For each feature the most its slope can be at any point, where that is known and features are many.
    pub steepest: Option<Buffer<f32>>,
    /// The slopes there, if they came with that and take little memory.
    pub slopes: Option<Buffer<f64>>,
}

/// So many slopes are kept: with more of them memory is scarcer than a pass.
const MOST_SLOPES: usize = 1 << 22;
/// Features that one task turns from sums into slopes.
const FEATURES: usize = 1 << 14;

impl AtZero {
    /// Looks at it.
    pub fn of(problem: &Problem) -> Result<Self> {
        let outputs = problem.outputs();
        let zero = Zero::of(problem)?;
        let mut intercept = vec![0.0; outputs];
        // Below the rounding of the targets themselves nothing can be measured.
        let mut least_scale = 1e-14 * zero.loss(&intercept)?.abs();
        if problem.has_intercept() {
            let found = intercept::optimum(outputs, |shift| zero.pulls(shift))?;
            intercept = found.unwrap_or(intercept);
        }
        let loss = zero.loss(&intercept)?;
        least_scale = least_scale.max(1e-3 * loss.abs());
        // With many features a look at each costs more than what is added there, so one output has both in one pass.
        let many = problem.n_features() > FEW;
        let Columns { sums: slopes, most } = zero.columns(&intercept, many)?;
        let steepest: Option<Buffer<f32>> = (!most.is_empty()).then(|| most.into());
        let regularization = problem.regularization();
        let steepness = |(at, slope): (usize, &f64)| {
            let weight = regularization.weight(at / outputs);
            if weight > 0.0 { slope.abs() / weight } else { 0.0 }
        };
        let lambda_max = match regularization.on_blocks() {
            None => slopes.par_iter().with_min_len(FEATURES).enumerate().map(steepness).reduce(|| 0.0, f64::max),
            Some(penalty) => {
                let of = |block: usize| penalty.least_lambda(block, &penalty.gather(block, &slopes));
                // What no λ holds at zero has no say.
                (0..penalty.blocks.len())
                    .into_par_iter()
                    .map(of)
                    .filter(|least| least.is_finite())
                    .reduce(|| 0.0, f64::max)
            }
        };
        let worth_keeping = many && outputs == 1 && steepest.is_some() && slopes.len() <= MOST_SLOPES;
        let margin_unit = margin_unit(problem, 1e3 * least_scale);
        Ok(Self {
            lambda_max,
            intercept,
            loss,
            least_scale,
            margin_unit,
            steepest,
            slopes: worth_keeping.then(|| slopes.into()),
        })
    }

    /// What it tells of some of the features, which have been held against their bounds.
    pub fn of_features(&self, features: &[u32]) -> Self {
        let of = |slopes: &[f64]| features.iter().map(|&at| slopes[at as usize]).collect::<Vec<f64>>().into();
        let &Self { lambda_max, loss, least_scale, margin_unit, .. } = self;
        let intercept = self.intercept.clone();
        Self {
            lambda_max,
            intercept,
            loss,
            least_scale,
            margin_unit,
            steepest: None,
            slopes: self.slopes.as_deref().map(of),
        }
    }
}

/// How far margins may lie from those at x = 0, where the loss is `at_zero`.
fn margin_unit(problem: &Problem, at_zero: f64) -> f64 {
    let linear = match problem.loss().slope_range(problem.targets()[0]) {
        Some((low, high)) => at_zero / low.abs().max(high.abs()),
        None => 0.0,
    };
    (2.0 * at_zero).sqrt().max(linear)
}

/// The slopes of all features at one point, and the most each can be at any.
struct Steepness {
    slopes: Huge<f64>,
    most: Huge<f32>,
}

/// What a row adds to a feature that is 1 there: the ends of its slope, and its slope.
#[derive(Clone, Copy, PartialEq)]
struct Pull {
    low: f64,
    high: f64,
    here: f64,
}

/// The rows at x = 0, wherever they are.
struct Zero<'a> {
    problem: &'a Problem,
    /// Where targets are few, they tell it all but the columns.
    alike: Option<Alike>,
}

impl<'a> Zero<'a> {
    fn of(problem: &'a Problem) -> Result<Self> {
        let outputs = problem.outputs();
        let alike = match problem.in_shards() {
            true => Alike::at_zero(&problem.at_zero_of_shards(&Task::Alike)?.sums, outputs),
            false => Alike::of(problem, &vec![0.0; problem.n_rows() * outputs]),
        };
        Ok(Self { problem, alike })
    }

    /// f with such intercepts.
    fn loss(&self, intercept: &[f64]) -> Result<f64> {
        let problem = self.problem;
        match &self.alike {
            _ if !problem.in_shards() => Ok(pass::mean_loss(problem, &intercept.repeat(problem.n_rows()))),
            Some(alike) => Ok(alike.loss(problem.loss(), intercept) / problem.n_rows() as f64),
            None => Ok(problem.at_zero_of_shards(&Task::AtZero(intercept))?.sums.numbers[0]),
        }
    }

    /// How the rows pull at the intercepts there.
    fn pulls(&self, intercept: &[f64]) -> Result<Vec<f64>> {
        let problem = self.problem;
        if self.alike.is_some() || !problem.in_shards() {
            let margins =
                if self.alike.is_some() { Vec::new() } else { vec![0.0; problem.n_rows() * problem.outputs()] };
            return Ok(centring::pulls(problem, &margins, self.alike.as_ref(), intercept).unwrap_or_default());
        }
        Ok(problem.at_zero_of_shards(&Task::AtZero(intercept))?.sums.numbers.split_off(1))
    }

    /// The slopes along every column there; with the most that they can be at any point, where that is known.
    fn columns(&self, intercept: &[f64], bounds: bool) -> Result<Columns> {
        match self.problem.in_shards() {
            true => {
                let answer = self.problem.at_zero_of_shards(&Task::ColumnsAtZero { intercept, bounds })?;
                Ok(answer.columns.unwrap_or_default())
            }
            false => Ok(columns_of_shard(self.problem, intercept, bounds)),
        }
    }
}

/// The slopes along every column at x = 0, of rows in memory that may be some of all.
pub(crate) fn columns_of_shard(problem: &Problem, intercept: &[f64], bounds: bool) -> Columns {
    let row_gradients = pass::row_gradients(problem, &intercept.repeat(problem.n_rows()));
    let with = (problem.outputs() == 1).then_some(&row_gradients[..]);
    let steepness = if bounds { Steepness::of(problem, with) } else { None };
    match steepness {
        Some(Steepness { slopes, most }) if with.is_some() => Columns { sums: slopes, most },
        steepness => {
            let most = steepness.map(|steepness| steepness.most).unwrap_or_default();
            Columns { sums: pass::gradient(problem, &row_gradients), most }
        }
    }
}

impl Steepness {
    /// For each feature the largest |∂f/∂x_j| there can be at any point, where the slopes of the loss are bounded; and, on
    /// the way, the slope where the rows have the given gradients, of one output.
    fn of(problem: &Problem, row_gradients: Option<&[f64]>) -> Option<Self> {
        let loss = problem.loss();
        let row = |(row, &target): (usize, &f64)| {
            loss.slope_range(target).map(|(low, high)| {
                let weight = problem.row_weight(row);
                let here = row_gradients.map_or(0.0, |gradients| weighted(weight, || gradients[row]));
                Pull { low: weight * low, high: weight * high, here }
            })
        };
        let pulls: Vec<Pull> = problem.targets().iter().enumerate().map(row).collect::<Option<_>>()?;
        let kinds = if matches!(problem.matrix(), Matrix::Ones(_)) { kinds(&pulls) } else { None };
        Some(match (kinds, pulls.len()) {
            (Some(kinds), ..=0xFFFF) => {
                Self::counted(problem, &pulls, kinds, [1u32, 1 << 16], |count| [count & 0xFFFF, count >> 16])
            }
            (Some(kinds), ..=0xFFFF_FFFF) => {
                Self::counted(problem, &pulls, kinds, [1u64, 1 << 32], |count| [count as u32, (count >> 32) as u32])
            }
            _ => Self::summed(problem, &pulls),
        })
    }

    /// By sums over the rows.
    fn summed(problem: &Problem, pulls: &[Pull]) -> Self {
        let mut sums = Huge::<Sums>::zeros(problem.n_features());
        by_columns(problem.matrix(), &mut sums, |columns, sums| {
            let of = |row: usize| {
                let Pull { low, high, here } = pulls[row];
                move |value: f64| {
                    let (a, b) = (value * low, value * high);
                    let (lowest, highest) = if value < 0.0 { (b, a) } else { (a, b) };
                    Sums { slope: value * here, lowest: lowest as f32, highest: highest as f32 }
                }
            };
            with_rows!(problem.matrix(), |rows| scatter(rows, columns, sums, of, |sums: &mut Sums, of| {
                sums.slope += of.slope;
                sums.lowest += of.lowest;
                sums.highest += of.highest;
            }));
        });
        // Single precision takes half the cache, and its rounding is known.
        let rounding = 1.0 + f64::from(f32::EPSILON) * (problem.n_rows() as f64 + 2.0);
        Self::from_sums(problem.total_rows(), rounding, &sums, |sums| {
            (sums.slope, f64::from(sums.highest.max(-sums.lowest)))
        })
    }

    /// Where every value is 1 and rows are of two kinds, as those of two classes are at x = 0: by counts, which take a
    /// quarter of the bytes. `one` is what counts a row of each kind, `split` tells them apart again.
    fn counted<C: Pod + AddAssign + Default + Send + Sync>(
        problem: &Problem,
        pulls: &[Pull],
        kinds: [Pull; 2],
        one: [C; 2],
        split: impl Fn(C) -> [u32; 2] + Sync,
    ) -> Self {
        let mut counts = Huge::<C>::zeros(problem.n_features());
        by_columns(problem.matrix(), &mut counts, |columns, counts| {
            let of = |row: usize| {
                let one = one[usize::from(pulls[row] != kinds[0])];
                move |_: f64| one
            };
            with_rows!(problem.matrix(), |rows| scatter(rows, columns, counts, of, |count: &mut C, one| *count += one));
        });
        Self::from_sums(problem.total_rows(), 1.0 + f64::from(f32::EPSILON), &counts, |&count| {
            let [a, b] = split(count).map(f64::from);
            let sum = |of: fn(&Pull) -> f64| a * of(&kinds[0]) + b * of(&kinds[1]);
            (sum(|pull| pull.here), sum(|pull| pull.high).max(-sum(|pull| pull.low)))
        })
    }

    /// `sum` gives the sums of the slopes and of their steeper ends; `rounding` is more than what the latter may be off by.
    fn from_sums<T: Sync>(n_rows: usize, rounding: f64, all: &[T], sum: impl Fn(&T) -> (f64, f64) + Sync) -> Self {
        let mut found = Self { slopes: Huge::zeros(all.len()), most: Huge::zeros(all.len()) };
        let scale = 1.0 / n_rows as f64;
        let out = found.slopes.par_chunks_mut(FEATURES).zip(found.most.par_chunks_mut(FEATURES));
        out.zip(all.par_chunks(FEATURES)).for_each(|((slopes, most), sums)| {
            for ((slope, most), sums) in slopes.iter_mut().zip(most).zip(sums) {
                let (here, steepest) = sum(sums);
                *slope = here * scale;
                *most = (steepest * scale * rounding) as f32 * (1.0 + f32::EPSILON);
            }
        });
        found
    }
}

/// The two kinds that rows are of, where there are no more.
fn kinds(pulls: &[Pull]) -> Option<[Pull; 2]> {
    let first = *pulls.first()?;
    let second = pulls.iter().find(|pull| **pull != first).copied().unwrap_or(first);
    pulls.iter().all(|pull| *pull == first || *pull == second).then_some([first, second])
}

/// What is added up over the rows for a feature: one cache line a visit.
#[derive(Clone, Copy, Default, Pod, Zeroable)]
#[repr(C)]
struct Sums {
    slope: f64,
    lowest: f32,
    highest: f32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::loss::LossKind;
    use crate::problem::Terms;

    /// Problems of many features: of numbers and of ones, with weights of the rows and without.
    fn problems() -> Vec<Problem> {
        let (n_rows, n_cols) = (40, FEW + 9);
        let number = |row: usize, column: usize| ((row * 31 + column * 17 + row * column) % 23) as f64 / 8.0 - 1.0;
        let entries = |row: usize| (0..n_cols).filter(move |&column| (row + column * row / 3).is_multiple_of(7));
        let targets: Vec<f64> = (0..n_rows).map(|row| f64::from(row % 5 == 0)).collect();
        let mut problems = Vec::new();
        for ones in [false, true] {
            let entry = |row, column| (column as u32, if ones { 1.0 } else { number(row, column) });
            let rows: Vec<Vec<(u32, f64)>> =
                (0..n_rows).map(|row| entries(row).map(|column| entry(row, column)).collect()).collect();
            for row_weights in [None, Some((0..n_rows).map(|row| (row % 3) as f64).collect())] {
                let data = Dataset::new(Matrix::from_rows(n_cols, &rows), targets.clone());
                assert_eq!(matches!(data.matrix, Matrix::Ones(_)), ones);
                let terms = Terms { row_weights, ..Terms::default() };
                problems.push(Problem::new(data, LossKind::Logistic.build(2), &terms).unwrap());
            }
        }
        problems
    }

    #[test]
    fn the_slopes_at_zero_are_the_gradient_there() {
        for problem in problems() {
            let (mut margins, mut intercept) = (vec![0.0; problem.n_rows()], vec![0.0]);
            centring::centre(&problem, &mut margins, &mut intercept);
            assert!(intercept[0] < -0.5);
            let expected = pass::gradient(&problem, &pass::row_gradients(&problem, &margins));
            let kept: Vec<u32> = (3..problem.n_features() as u32).step_by(2).collect();
            let near = |a: f64, b: f64| (a - b).abs() < 1e-14;
            assert!(problem.slopes_at_zero().unwrap().iter().zip(&expected[..]).all(|(a, b)| near(*a, *b)));
            for part in [problem.on_features(&kept), problem.by_columns(Some(&kept))] {
                let slopes = part.slopes_at_zero().unwrap();
                assert!(slopes.len() == kept.len());
                assert!(slopes.iter().zip(&kept).all(|(slope, &at)| near(*slope, expected[at as usize])));
            }
        }
    }

    #[test]
    fn counts_are_sums() {
        let problem = &problems()[2];
        let pull = |&target: &f64| match target > 0.0 {
            true => Pull { low: -1.0, high: 0.25, here: -0.7 },
            false => Pull { low: -0.5, high: 1.0, here: 0.2 },
        };
        let pulls: Vec<Pull> = problem.targets().iter().map(pull).collect();
        let two = kinds(&pulls).unwrap();
        assert!(two[0] != two[1]);
        let summed = Steepness::summed(problem, &pulls);
        let narrow = Steepness::counted(problem, &pulls, two, [1u32, 1 << 16], |count| [count & 0xFFFF, count >> 16]);
        let wide =
            Steepness::counted(problem, &pulls, two, [1u64, 1 << 32], |count| [count as u32, (count >> 32) as u32]);
        for at in 0..problem.n_features() {
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-5 * b.abs();
            assert!(close(narrow.slopes[at], summed.slopes[at]), "{at}");
            assert!(
                close(narrow.most[at].into(), summed.most[at].into()) && narrow.most[at] <= summed.most[at],
                "{at}"
            );
            assert_eq!((narrow.slopes[at], narrow.most[at]), (wide.slopes[at], wide.most[at]));
        }
        // A third kind, as weights make them, is no case for counts.
        let mut three = pulls.clone();
        three[7].here = 0.3;
        assert!(kinds(&three).is_none());
    }
}
