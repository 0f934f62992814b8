//! Certificates against their definitions and against optima that a slow dense solver found.

mod common;

use common::close;
use common::plain::{Plain, soft};
use common::random::{LOSSES, Recipe};
use obprox::data::{Dataset, Matrix};
use obprox::loss::{LossKind, ScalarLoss, Task};
use obprox::{Certificate, Lambda, Point, Problem, Terms, certify};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Every loss × penalty × intercept × row weights; rows are full enough for an optimum to exist.
fn each(mut visit: impl FnMut(&Recipe)) {
    for loss in LOSSES {
        for choice in 0..16u8 {
            let flag = |bit: u8| choice & (1 << bit) != 0;
            visit(&Recipe {
                loss,
                rows: 60,
                cols: 8,
                per_row: 8,
                lambda: 0.15,
                l2: if flag(0) { 0.3 } else { 0.0 },
                feature_weights: flag(1),
                row_weights: flag(2),
                intercept: flag(3),
                seed: choice.into(),
                ..Recipe::default()
            });
        }
    }
}

/// A point some way from another, with zeros.
fn near(x: &[f64], distance: f64, rng: &mut ChaCha8Rng) -> Vec<f64> {
    let mut moved = |x: &f64| if rng.random_bool(0.3) { 0.0 } else { x + rng.random_range(-distance..distance) };
    x.iter().map(&mut moved).collect()
}

/// The points the gap speaks of: unpenalised features within 2|x_j| + 1.
fn in_reach(plain: &Plain, x: &[f64], optimum: &[f64]) -> bool {
    (0..plain.size()).all(|at| plain.penalty(at).0 > 0.0 || optimum[at].abs() <= 2.0 * x[at].abs() + 1.0)
}

#[test]
fn the_gap_bounds_the_distance_and_closes_at_the_optimum() {
    let rng = &mut ChaCha8Rng::seed_from_u64(5);
    let mut compared = 0;
    each(|recipe| {
        let (problem, plain) = recipe.build();
        let optimum = plain.solve();
        let best = plain.objective(&optimum);
        for distance in [1e-6, 1e-3, 0.1, 0.5, 2.0, 2.0, 2.0] {
            let x = if distance < 0.1 {
                optimum
                    .iter()
                    .map(|x| if *x == 0.0 { 0.0 } else { x + rng.random_range(-distance..distance) })
                    .collect()
            } else {
                near(&optimum, distance, rng)
            };
            if !in_reach(&plain, &x, &optimum) {
                continue;
            }
            compared += 1;
            let certificate = certify(&problem, &plain.point(&x)).unwrap();
            let (gap, distance) = (certificate.gap.unwrap(), certificate.objective - best);
            assert!(distance >= -1e-10, "{recipe:?}: the reference is not the optimum, {distance}");
            assert!(gap >= distance - 1e-10, "{recipe:?}: gap {gap} below the true distance {distance}");
        }
        let certificate = certify(&problem, &plain.point(&optimum)).unwrap();
        assert!(certificate.gap.unwrap() <= 1e-7 * (1.0 + best.abs()), "{recipe:?}: {certificate:?}");
        assert!(certificate.kkt <= 1e-7, "{recipe:?}: {certificate:?}");
        assert!(certificate.within(1e-5));
    });
    assert!(compared > 500, "{compared}");
}

#[test]
fn every_figure_is_its_definition() {
    let rng = &mut ChaCha8Rng::seed_from_u64(6);
    each(|recipe| {
        let (problem, plain) = recipe.build();
        let x = near(&vec![0.0; plain.size()], 1.0, rng);
        let point = plain.point(&x);
        let Certificate { objective, loss, l1, nnz, density, kkt, gradient_mapping, .. } =
            certify(&problem, &point).unwrap();
        let features = point.weights.iter();
        let expected_nnz = features.clone().filter(|x| **x != 0.0).count();
        let filled = x.iter().filter(|x| **x != 0.0).count();
        let mapping = plain.prox_step(&x, &plain.gradient(&x), 1.0).iter().zip(&x).map(|(a, b)| (a - b).powi(2)).sum();
        assert_eq!(nnz, expected_nnz);
        assert_eq!(density, filled as f64 / x.len() as f64, "the intercept counts");
        for (name, found, expected) in [
            ("F", objective, plain.objective(&x)),
            ("f", loss, plain.mean_loss(&x)),
            ("l1", l1, features.map(|x| x.abs()).sum()),
            ("kkt", kkt, plain.violations(&x).into_iter().fold(0.0, f64::max)),
            ("gradient mapping", gradient_mapping, f64::sqrt(mapping)),
        ] {
            assert!(close(expected, found, 1e-12), "{recipe:?}: {name} is {found}, not {expected}");
        }
    });
}

#[test]
fn violations_are_split_by_zeros_and_support() {
    let (problem, plain) = Recipe::default().build();
    let x: Vec<f64> = (0..plain.size()).map(|at| if at % 2 == 0 { 0.0 } else { 0.5 }).collect();
    let certificate = certify(&problem, &plain.point(&x)).unwrap();
    let mut sums = [0.0; 2];
    for (at, violation) in plain.violations(&x).iter().enumerate() {
        // The intercept is at zero here (13 coordinates), yet no zero that a Prox-SG step could free.
        sums[usize::from(x[at] != 0.0 || at == plain.size() - 1)] += violation * violation;
    }
    assert!(close(sums[0].sqrt(), certificate.violation_on_zeros, 1e-13));
    assert!(close(sums[1].sqrt(), certificate.violation_on_support, 1e-13));
}

#[test]
fn lambda_max_is_where_all_features_vanish() {
    each(|recipe| {
        // With unpenalised features x = 0 is no optimum at any λ.
        if recipe.feature_weights {
            return;
        }
        let (problem, plain) = recipe.build();
        let nnz_at = |lambda: f64| {
            let (problem, plain) = plain.at_lambda(&problem, lambda);
            certify(&problem, &plain.point(&plain.solve())).unwrap().nnz
        };
        assert_eq!(nnz_at(problem.lambda_max() * (1.0 + 1e-6)), 0, "{recipe:?}");
        assert!(nnz_at(problem.lambda_max() * 0.99) > 0, "{recipe:?}");
        let halved = problem.clone().with_lambda(Lambda::OfMax(0.5)).unwrap();
        assert_eq!(halved.lambda(), 0.5 * problem.lambda_max());
    });
}

#[test]
fn lambda_max_knows_the_features_weights() {
    let data = || Dataset::new(Matrix::from_rows(2, &[vec![(0, 1.0)], vec![(1, 1.0)]]), vec![4.0, 2.0]);
    let lambda_max = |feature_weights| {
        let terms = Terms { feature_weights, intercept: false, ..Terms::default() };
        Problem::new(data(), LossKind::Squared.build(1), &terms).unwrap().lambda_max()
    };
    assert_eq!(lambda_max(None), 2.0);
    assert_eq!(lambda_max(Some(vec![8.0, 0.5])), 2.0);
    assert_eq!(lambda_max(Some(vec![0.0, 0.5])), 2.0);
    assert_eq!(lambda_max(Some(vec![4.0, 4.0])), 0.5);
}

#[test]
fn a_weighted_row_is_that_many_rows() {
    let rng = &mut ChaCha8Rng::seed_from_u64(8);
    for loss in LOSSES {
        let times: Vec<usize> = (0..24).map(|row| row % 4).collect();
        let row = |rng: &mut ChaCha8Rng| (0..5).map(|column| (column, rng.random_range(-1.0..1.0))).collect();
        let rows: Vec<Vec<(u32, f64)>> = times.iter().map(|_| row(rng)).collect();
        let targets: Vec<f64> = (0..24).map(|row| [0.0, 1.0, 1.0, 0.0, 0.0][row % 5]).collect();
        let repeated = |each: &dyn Fn(usize) -> usize| -> Dataset {
            let order: Vec<usize> = (0..24).flat_map(|row| std::iter::repeat_n(row, each(row))).collect();
            let rows: Vec<_> = order.iter().map(|&row| rows[row].clone()).collect();
            Dataset::new(Matrix::from_rows(5, &rows), order.iter().map(|&row| targets[row]).collect())
        };
        let terms = Terms { lambda: Lambda::Value(0.01), ..Terms::default() };
        let weights = times.iter().map(|&times| 7.0 * times as f64).collect();
        let weighted = Terms { row_weights: Some(weights), ..terms.clone() };
        let weighted = Problem::new(repeated(&|_| 1), loss.build(2), &weighted).unwrap();
        let repeated = Problem::new(repeated(&|row| times[row]), loss.build(2), &terms).unwrap();
        let mut point = Point::zero(&weighted);
        point.weights.iter_mut().chain(&mut point.intercept).for_each(|x| *x = rng.random_range(-1.0..1.0));
        let (a, b) = (certify(&weighted, &point).unwrap(), certify(&repeated, &point).unwrap());
        for (a, b) in [
            (a.objective, b.objective),
            (a.gap.unwrap(), b.gap.unwrap()),
            (a.kkt, b.kkt),
            (weighted.lambda_max(), repeated.lambda_max()),
        ] {
            assert!(close(a, b, 1e-12), "{loss:?}: {a} and {b}");
        }
    }
}

#[test]
fn the_gap_of_the_lasso_is_the_textbooks() {
    let (problem, plain) = Recipe { loss: LossKind::Squared, intercept: false, ..Recipe::default() }.build();
    let x: Vec<f64> = (0..plain.size()).map(|at| (at as f64).sin()).collect();
    let n = plain.rows.len() as f64;
    let residual: Vec<f64> = (0..plain.rows.len()).map(|row| plain.targets[row] - plain.margins(row, &x)[0]).collect();
    let largest = plain.gradient(&x).iter().fold(0.0f64, |most, g| most.max(g.abs()));
    let s = (problem.lambda() / largest).min(1.0);
    // D = (1/N)·(½‖y‖² − ½‖y − s·r‖²).
    let dual: f64 = plain.targets.iter().zip(&residual).map(|(y, r)| (y * y - (y - s * r).powi(2)) / (2.0 * n)).sum();
    let gap = certify(&problem, &plain.point(&x)).unwrap().gap.unwrap();
    assert!(close(plain.objective(&x) - dual, gap, 1e-12));
}

#[test]
fn the_elastic_net_gap_needs_no_scaling() {
    let recipe = Recipe { l2: 0.2, intercept: false, ..Recipe::default() };
    let (problem, plain) = recipe.build();
    let x: Vec<f64> = (0..plain.size()).map(|at| (at as f64).cos()).collect();
    let entropy = |u: f64| u * u.ln() + (1.0 - u) * (1.0 - u).ln();
    let a = |row: usize| 1.0 / (1.0 + (plain.targets[row] * plain.margins(row, &x)[0]).exp());
    let n = plain.rows.len();
    let beyond = plain.gradient(&x).iter().map(|c| soft(*c, problem.lambda()).powi(2)).sum::<f64>();
    let dual = -(0..n).map(|row| entropy(a(row))).sum::<f64>() / n as f64 - beyond / (2.0 * 0.2);
    let gap = certify(&problem, &plain.point(&x)).unwrap().gap.unwrap();
    assert!(close(plain.objective(&x) - dual, gap, 1e-12));
}

#[test]
fn a_nan_shows_in_every_figure() {
    let (problem, plain) = Recipe::default().build();
    let mut x = vec![0.0; plain.size()];
    x[0] = f64::NAN;
    let certificate = certify(&problem, &plain.point(&x)).unwrap();
    let Certificate { objective, loss, l1, kkt, gradient_mapping, .. } = certificate;
    assert!([objective, loss, l1, kkt, gradient_mapping].iter().all(|figure| figure.is_nan()), "{certificate:?}");
    assert_eq!((certificate.nnz, certificate.gap), (1, None));
    assert!(!certificate.within(1e300));
}

/// The squared loss without any of its optional parts.
#[derive(Debug)]
struct Bare;

impl ScalarLoss for Bare {
    fn name(&self) -> &str {
        "bare"
    }
    fn task(&self) -> Task {
        Task::Regression
    }
    fn value(&self, margin: f64, target: f64) -> f64 {
        0.5 * (margin - target).powi(2)
    }
    fn derivative(&self, margin: f64, target: f64) -> f64 {
        margin - target
    }
}

#[test]
fn a_loss_without_a_dual_is_judged_by_its_kkt_distance() {
    let data = Dataset::new(Matrix::from_rows(1, &[vec![(0, 1.0)], vec![(0, 1.0)]]), vec![1.0, 3.0]);
    let terms = Terms { lambda: Lambda::Value(0.5), intercept: false, ..Terms::default() };
    let problem = Problem::new(data, std::sync::Arc::new(Bare), &terms).unwrap();
    let at = |x: f64| certify(&problem, &Point { weights: vec![x], intercept: vec![0.0] }).unwrap();
    assert_eq!((at(1.0).gap, at(1.0).kkt, at(1.5).kkt), (None, 0.5, 0.0));
    assert!(at(1.5).within(0.0) && !at(1.0).within(0.4) && at(1.0).within(0.6));
}
