//! How a problem is solved: decided once, from its shape.
//!
//! A plan is a value. Each part of it leads to the same optimum with any other, and the tests run all of them.

use super::sample::{self, Level};
use super::smooth;
use crate::problem::{Point, Problem};
use crate::rows::stays_in_rows;
use crate::tuning::{FEW, JOINTLY, LARGEST_BEFORE_PRODUCTS, LARGEST_HESSIAN, MANY_ROWS, NEAR_MAX, TINY};

/// What is done, and from which size on something else.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Whether each pass gives every slope: then rows stay as they are. Otherwise working sets have columns.
    pub sees_all: bool,
    /// Whether all features make up the working set, whatever is violated.
    pub takes_all: bool,
    /// Whether λ falls to its value over the first rounds.
    pub falls: bool,
    pub start: Start,
    /// Coordinates up to which a model has its Hessian formed where that is not hollow; a larger one is minimised along its
    /// columns.
    pub largest_hessian: usize,
    /// Whether such a model is minimised by products with its Hessian instead.
    pub by_products: bool,
    /// Those products are at first of a sample of the rows, one out of so many. So far of all: what more would save has not
    /// been measured.
    pub part: usize,
    /// Coordinates up to which all outputs are stepped on at once.
    pub jointly: usize,
    /// Whether Hessians cost little: then they serve for fewer steps, and none grows.
    pub renews: bool,
    /// Whether the model of a step is f itself, whose minimum is then worth all its digits.
    pub is_exact: bool,
    /// Whether such a model is minimised along the columns, until that takes longer than a Hessian would.
    pub along_columns: bool,
}

/// What the first steps are taken on.
#[derive(Clone, Debug)]
pub(super) enum Start {
    /// The problem.
    Here,
    /// Losses that are less flat.
    Smoother,
    /// Some of the rows, then more of them.
    Samples(Vec<Level>),
}

impl Plan {
    /// The plan for a problem, of which `given` is the one before features were left out. `floor` says that fits at smaller
    /// λ will follow; `carried` that this is one of them.
    pub fn of(problem: &Problem, given: &Problem, start: Option<&Point>, floor: Option<f64>, carried: bool) -> Self {
        let is_few = problem.n_features() <= FEW;
        let sees_all = stays_in_rows(problem);
        let share = given.lambda() / given.lambda_max();
        let has_products = problem.n_rows() >= MANY_ROWS && problem.columns().is_none();
        let is_exact = is_quadratic(problem);
        let is_at_zero = start.is_none_or(|start| start.weights.iter().all(|&x| x == 0.0));
        Self {
            sees_all,
            // Near λ_max few features will be wanted of however few there are; a path comes to its small λ in the end.
            takes_all: is_few && (sees_all || floor.is_some() || share < NEAR_MAX || share.is_nan()),
            // With few features the face is found at once, unless λ is tiny: then it would be anyone's guess.
            falls: start.is_none() && (!is_few || share < TINY),
            start: if !carried && smooth::pays(given) {
                Start::Smoother
            } else if floor.is_none() && is_at_zero && !given.in_shards() {
                Start::Samples(sample::levels(given))
            } else {
                Start::Here
            },
            largest_hessian: if has_products { LARGEST_BEFORE_PRODUCTS } else { LARGEST_HESSIAN },
            // Columns of several shards are in no one memory.
            by_products: problem.in_shards() || has_products,
            part: 1,
            jointly: if has_joint_hessian(problem) { JOINTLY } else { 0 },
            renews: is_few,
            is_exact,
            along_columns: is_exact && !sees_all && !problem.in_shards(),
        }
    }
}

/// Whether the curvature of the loss is the same everywhere.
pub(super) fn is_quadratic(problem: &Problem) -> bool {
    let curvature = |margin: f64| {
        let mut curvature = vec![0.0; problem.outputs()];
        let has_one = problem.loss().curvature(&vec![margin; problem.outputs()], problem.targets()[0], &mut curvature);
        has_one.then_some(curvature)
    };
    let far = 10.0 * (1.0 + problem.targets()[0].abs());
    problem.outputs() == 1 && curvature(far) == curvature(0.0) && curvature(-far) == curvature(0.0)
}

/// Whether the loss of several outputs can say how they pull at each other.
fn has_joint_hessian(problem: &Problem) -> bool {
    let (outputs, target) = (problem.outputs(), problem.targets()[0]);
    problem.loss().hessian(&vec![0.0; outputs], target, &mut vec![0.0; outputs * outputs])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Auto;
    use super::*;
    use crate::data::{Dataset, Matrix};
    use crate::loss::LossKind;
    use crate::observe::Control;
    use crate::penalty::{Bounds, Groups, Penalty};
    use crate::problem::{Lambda, Terms};
    use crate::rows::Memory;
    use crate::solver::{Ended, Solver};
    use crate::{Certificate, Run, Settings};

    const LOSSES: [LossKind; 6] = [
        LossKind::Logistic,
        LossKind::Squared,
        LossKind::SquaredHinge,
        LossKind::Huber(0.5),
        LossKind::Poisson,
        LossKind::Softmax,
    ];

    /// A problem of so many sparse rows; which one depends on the seed.
    fn problem(loss: LossKind, seed: usize, n_rows: usize) -> Problem {
        let n_cols = 5 + 4 * seed;
        let number =
            |row: usize, column: usize| ((row * 131 + column * 37 + row * column + seed) % 101) as f64 / 50.0 - 1.0;
        let present = |row: usize, column: usize| !(row * 7 + column * (3 + row % 4) + seed).is_multiple_of(3);
        let rows: Vec<Vec<(u32, f64)>> = (0..n_rows)
            .map(|row| (0..n_cols).filter(|&j| present(row, j)).map(|j| (j as u32, number(row, j))).collect())
            .collect();
        let signal = |row: usize| 2.0 * number(row, 0) - number(row, 1) + number(row * 31, 7);
        let target = |row: usize| match loss {
            LossKind::Squared | LossKind::Huber(_) => signal(row),
            LossKind::Poisson => (signal(row) + 3.0).floor().max(0.0),
            LossKind::Softmax => ((signal(row) + 3.0) as usize % 3) as f64,
            _ => f64::from(signal(row) > 0.2),
        };
        let row_weights = (seed % 2 == 1).then(|| (0..n_rows).map(|row| (row % 3) as f64 + 0.5).collect());
        let lambda = Lambda::OfMax([0.5, 0.05, 0.003][seed % 3]);
        let l2 = if seed == 2 { 0.01 } else { 0.0 };
        // On blocks: no weight below 0, and features in threes.
        let penalty: Option<Arc<dyn Penalty>> = match seed {
            3 => Some(Arc::new(Bounds::positive(n_cols))),
            4 => Some(Arc::new(Groups::new((0..n_cols as u32).map(|feature| feature / 3).collect()).unwrap())),
            _ => None,
        };
        let terms = Terms { lambda, l2, penalty, row_weights, intercept: seed != 1, ..Terms::default() };
        let data = Dataset::new(Matrix::from_rows(n_cols, &rows), (0..n_rows).map(target).collect());
        Problem::new(data, loss.build(if loss == LossKind::Softmax { 3 } else { 2 }), &terms).unwrap()
    }

    /// Every plan there is for a problem of that many outputs; whether all features were turned into columns comes with it.
    fn plans(made: &Plan, outputs: usize) -> Vec<(Plan, bool)> {
        let plan = |bits: usize| {
            let bit = |at: usize| bits >> at & 1 == 1;
            let levels = [Level { stride: 3, lambda: 0.2 }, Level { stride: 2, lambda: 0.1 }];
            let plan = Plan {
                sees_all: bit(0),
                takes_all: bit(1),
                falls: bit(2),
                start: if bit(3) { Start::Samples(levels.to_vec()) } else { Start::Here },
                largest_hessian: if bit(4) { LARGEST_HESSIAN } else { 0 },
                jointly: if bit(5) { JOINTLY } else { 0 },
                renews: bit(6),
                part: if bit(1) { 2 } else { 1 },
                by_products: bit(8) && !bit(7),
                along_columns: bit(9),
                ..made.clone()
            };
            (plan, bit(7))
        };
        // A pass sees all of one output, in rows, with a set of all features.
        let is_one = |(plan, by_columns): &(Plan, bool)| {
            (!plan.sees_all || plan.takes_all && outputs == 1 && !by_columns) && (plan.jointly == 0 || outputs > 1)
        };
        // Along columns goes what is f itself.
        let goes = |bits: &usize| bits >> 9 & 1 == 0 || made.is_exact && bits & 1 == 0;
        (0..1024).filter(goes).map(plan).filter(is_one).collect()
    }

    /// A run by a plan.
    fn begin(problem: &Problem, plan: Plan, by_columns: bool) -> Auto<'_> {
        let mut auto = Auto::new(problem, None, None).unwrap().aiming_at(1e-9);
        auto.reduced.problem = Arc::new(if by_columns { problem.by_columns(None) } else { problem.clone() });
        auto.rows = Box::new(Memory::new(Arc::clone(&auto.reduced.problem), plan.sees_all));
        auto.fall.stretch = if plan.falls { f64::INFINITY } else { 1.0 };
        auto.plan = plan;
        auto
    }

    /// Goes on until the optimum is proved, as far as that leads; `after` sees the run after each round before the last.
    fn finish(mut auto: Auto, mut after: impl FnMut(&Auto)) -> (Certificate, Point) {
        for _ in 0..60 {
            let ended = auto.epoch(&mut |_| Control::Continue).unwrap();
            let is_there = auto.certificate.as_ref().is_some_and(|certificate| certificate.within(1e-9));
            if is_there || !matches!(ended, Ended::Epoch) {
                break;
            }
            after(&auto);
        }
        (auto.certificate().unwrap(), auto.point())
    }

    /// Solves a problem by a plan.
    fn solve(problem: &Problem, plan: Plan, by_columns: bool) -> (Certificate, Point) {
        finish(begin(problem, plan, by_columns), |_| {})
    }

    #[test]
    fn every_plan_leads_to_one_optimum() {
        for loss in LOSSES {
            for seed in 0..5 {
                let problem = problem(loss, seed, 40 + 7 * seed);
                let settings = Settings { tolerance: 1e-9, ..Settings::default() };
                let best = Run::new(&problem, settings).fit().unwrap();
                let made = Plan::of(&problem, &problem, None, None, false);
                for (plan, by_columns) in plans(&made, problem.outputs()) {
                    let what = format!("{loss:?}, {seed}, by columns: {by_columns}, {plan:?}");
                    let (certificate, _) = solve(&problem, plan, by_columns);
                    assert!(certificate.within(1e-9), "{what}: {certificate:?}");
                    let off = (certificate.objective - best.certificate.objective).abs();
                    assert!(off <= 1e-8 * certificate.objective.abs().max(problem.least_scale()), "{what}: {off:e}");
                }
            }
        }
    }

    #[test]
    fn no_plan_depends_on_the_number_of_threads() {
        let pools = [1, 2, 4].map(|count| rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap());
        for loss in [LossKind::Logistic, LossKind::Squared, LossKind::Softmax] {
            // More than a few blocks of rows, so that there is something to share.
            let problem = problem(loss, 1, 2600);
            let made = Plan::of(&problem, &problem, None, None, false);
            // How λ falls and for how long a Hessian serves is decided before any thread is asked.
            let is_one = |(plan, _): &(Plan, bool)| plan.falls && !plan.renews;
            for (plan, by_columns) in plans(&made, problem.outputs()).into_iter().filter(is_one) {
                let solved = pools.each_ref().map(|pool| pool.install(|| solve(&problem, plan.clone(), by_columns)));
                assert!(solved.iter().all(|one| *one == solved[0]), "{loss:?}, by columns: {by_columns}, {plan:?}");
            }
        }
    }

    #[test]
    fn every_plan_resumes_after_any_round_to_the_same_bits() {
        for seed in [0, 1] {
            let problem = problem(LossKind::Logistic, seed, 40 + 7 * seed);
            let made = Plan::of(&problem, &problem, None, None, false);
            for (plan, by_columns) in plans(&made, 1) {
                let what = format!("{seed}, by columns: {by_columns}, {plan:?}");
                let mut states = Vec::new();
                let ended = finish(begin(&problem, plan.clone(), by_columns), |auto| {
                    let mut state = Vec::new();
                    auto.save(&mut state).unwrap();
                    states.push(state);
                });
                assert!(!matches!(plan.start, Start::Samples(_)) || states.len() > 1, "{what}");
                for (round, state) in states.iter().enumerate() {
                    let mut auto = begin(&problem, plan.clone(), by_columns);
                    auto.load(&mut &state[..]).unwrap();
                    assert_eq!(finish(auto, |_| {}), ended, "after round {round}, {what}");
                }
            }
        }
    }
}
