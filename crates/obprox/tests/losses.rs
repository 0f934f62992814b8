//! Every loss against finite differences, its smoothness constant and its conjugate.

mod common;

use std::sync::Arc;

use common::random::LOSSES;
use obprox::loss::{Loss, LossKind, Task};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

const CLASSES: usize = 4;

/// Those of positive numbers too, which have no bound on their curvature.
fn all() -> impl Iterator<Item = LossKind> {
    LOSSES.into_iter().chain([
        LossKind::Gamma,
        LossKind::Tweedie(1.2),
        LossKind::Tweedie(1.7),
        LossKind::NegativeBinomial(0.5),
        LossKind::NegativeBinomial(3.0),
    ])
}

/// Every loss with a random row of margins and a target that suits it, many times.
fn each(rounds: usize, mut visit: impl FnMut(LossKind, &Arc<dyn Loss>, Vec<f64>, f64, &mut ChaCha8Rng)) {
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    for kind in all() {
        let loss = kind.build(CLASSES);
        for _ in 0..rounds {
            let margins = (0..loss.outputs()).map(|_| rng.random_range(-4.0..4.0)).collect();
            let target = target(loss.task(), rng) + if kind == LossKind::Gamma { 0.5 } else { 0.0 };
            visit(kind, &loss, margins, target, rng);
        }
    }
}

fn target(task: Task, rng: &mut ChaCha8Rng) -> f64 {
    match task {
        Task::Binary => [-1.0, 1.0][rng.random_range(0..2)],
        Task::Classes => rng.random_range(0..CLASSES) as f64,
        Task::Regression => rng.random_range(-3.0..3.0),
        Task::Counts => f64::from(rng.random_range(0..6u8)),
        Task::Survival => unreachable!("a row by itself has no such loss: tests/cox.rs"),
    }
}

fn gradient(loss: &Arc<dyn Loss>, margins: &[f64], target: f64) -> Vec<f64> {
    let mut gradient = vec![f64::NAN; margins.len()];
    loss.gradient(margins, target, &mut gradient);
    gradient
}

fn curvature(loss: &Arc<dyn Loss>, margins: &[f64], target: f64) -> Vec<f64> {
    let mut curvature = vec![f64::NAN; margins.len()];
    assert!(loss.curvature(margins, target, &mut curvature));
    curvature
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// Where the second derivative jumps.
fn near_a_kink(kind: LossKind, margins: &[f64], target: f64) -> bool {
    match kind {
        LossKind::SquaredHinge => (target * margins[0] - 1.0).abs() < 1e-3,
        LossKind::Huber(delta) => ((margins[0] - target).abs() - delta).abs() < 1e-3,
        _ => false,
    }
}

#[test]
fn derivatives_are_those_of_the_value() {
    const H: f64 = 1e-5;
    each(500, |kind, loss, margins, target, _| {
        let (gradient_here, curvature_here) = (gradient(loss, &margins, target), curvature(loss, &margins, target));
        for at in 0..margins.len() {
            let shifted = |by: f64| {
                let mut margins = margins.clone();
                margins[at] += by;
                margins
            };
            let (up, down) = (shifted(H), shifted(-H));
            let slope = (loss.value(&up, target) - loss.value(&down, target)) / (2.0 * H);
            let scale = 1.0 + slope.abs();
            assert!((gradient_here[at] - slope).abs() < 1e-7 * scale, "{kind:?} {margins:?} {target}");
            if !near_a_kink(kind, &margins, target) {
                let bend = (gradient(loss, &up, target)[at] - gradient(loss, &down, target)[at]) / (2.0 * H);
                assert!((curvature_here[at] - bend).abs() < 1e-7 * (1.0 + bend.abs()), "{kind:?} {margins:?} {target}");
            }
        }
    });
}

#[test]
fn the_upper_parabola_touches_and_is_nowhere_below() {
    each(500, |kind, loss, margins, target, rng| {
        let mut upper = vec![f64::NAN; margins.len()];
        if !loss.upper_curvature(&margins, target, &mut upper) {
            return;
        }
        let (here, slope) = (loss.value(&margins, target), gradient(loss, &margins, target)[0]);
        for _ in 0..20 {
            let step = rng.random_range(-30.0..30.0);
            let parabola = here + slope * step + 0.5 * upper[0] * step * step;
            let there = loss.value(&[margins[0] + step], target);
            assert!(there <= parabola + 1e-12 * (1.0 + parabola), "{kind:?} {margins:?} {target} {step}");
        }
    });
}

#[test]
fn the_value_is_its_formula() {
    each(200, |kind, loss, margins, target, _| {
        let expected = common::plain::loss_value(kind, &margins, target);
        assert!(common::close(expected, loss.value(&margins, target), 1e-13), "{kind:?} {margins:?} {target}");
    });
}

#[test]
fn many_rows_at_once_are_the_rows() {
    let rng = &mut ChaCha8Rng::seed_from_u64(2);
    for kind in LOSSES {
        let loss = kind.build(CLASSES);
        let targets: Vec<f64> = (0..9).map(|_| target(loss.task(), rng)).collect();
        let margins: Vec<f64> = (0..9 * loss.outputs()).map(|_| rng.random_range(-3.0..3.0)).collect();
        let (mut together, mut slopes) = (vec![f64::NAN; margins.len()], vec![f64::NAN; margins.len()]);
        let mut curvatures = vec![f64::NAN; margins.len()];
        loss.gradients(&margins, &targets, &mut together);
        assert!(loss.expand(&margins, &targets, &mut slopes, &mut curvatures));
        let mut sum = 0.0;
        for (row, &target) in targets.iter().enumerate() {
            let span = row * loss.outputs()..(row + 1) * loss.outputs();
            let margins = &margins[span.clone()];
            let (alone, mut curvature) = (gradient(&loss, margins, target), vec![0.0; margins.len()]);
            loss.curvature(margins, target, &mut curvature);
            for (output, at) in span.enumerate() {
                assert!(common::close(alone[output], together[at], 1e-14), "{kind:?}");
                assert!(common::close(alone[output], slopes[at], 1e-14), "{kind:?}");
                assert!(common::close(curvature[output], curvatures[at], 1e-14), "{kind:?}");
                let range = loss.slope_range(target).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
                assert!((range.0..=range.1).contains(&alone[output]), "{kind:?}: {} and {range:?}", alone[output]);
            }
            sum += loss.value(margins, target);
        }
        assert!(common::close(sum, loss.total(&margins, &targets), 1e-14), "{kind:?}");
    }
}

#[test]
fn far_margins_give_finite_numbers() {
    for kind in LOSSES {
        let loss = kind.build(CLASSES);
        let targets: &[f64] = match loss.task() {
            Task::Binary => &[-1.0, 1.0],
            Task::Classes => &[0.0, 3.0],
            Task::Regression => &[-2.0, 0.0],
            Task::Counts => &[0.0, 5.0],
            Task::Survival => unreachable!("a row by itself has no such loss: tests/cox.rs"),
        };
        for &target in targets {
            for far in [-700.0, -40.0, -1e-300, 0.0, 40.0, 700.0] {
                let margins: Vec<f64> = (0..loss.outputs()).map(|k| if k % 2 == 0 { far } else { -far }).collect();
                let figures = [loss.value(&margins, target)];
                let all = figures.into_iter().chain(gradient(&loss, &margins, target));
                let all: Vec<f64> = all.chain(curvature(&loss, &margins, target)).collect();
                assert!(all.iter().all(|figure| figure.is_finite()), "{kind:?} at {margins:?}, {target}: {all:?}");
            }
        }
    }
}

/// Where e^m rounds away beside 1, the tails must still have their digits.
#[test]
fn logistic_tails_keep_their_digits() {
    let loss = LossKind::Logistic.build(2);
    for m in [40.0, 100.0, 700.0f64] {
        let tail = (-m).exp();
        for (value, expected) in [
            (loss.value(&[m], 1.0), tail),
            (loss.value(&[-m], 1.0), m),
            (gradient(&loss, &[m], 1.0)[0], -tail),
            (gradient(&loss, &[-m], 1.0)[0], -1.0),
            (curvature(&loss, &[-m], 1.0)[0], tail),
        ] {
            assert!((value - expected).abs() <= 1e-14 * expected.abs(), "{value} for {expected} at {m}");
        }
    }
}

#[test]
fn a_nan_margin_shows_in_value_and_gradient() {
    for kind in LOSSES {
        let loss = kind.build(CLASSES);
        let margins = vec![f64::NAN; loss.outputs()];
        assert!(loss.value(&margins, 1.0).is_nan(), "{kind:?}");
        assert!(gradient(&loss, &margins, 1.0).iter().all(|slope| slope.is_nan()), "{kind:?}");
    }
}

#[test]
fn smoothness_bounds_the_gradient_and_is_reached() {
    let mut steepest = vec![0.0f64; LOSSES.len()];
    each(3000, |kind, loss, margins, target, rng| {
        let Some(bound) = loss.smoothness() else {
            assert_eq!(loss.task(), Task::Counts, "only those with e^m are not smooth: {kind:?}");
            return;
        };
        assert!(curvature(loss, &margins, target).iter().all(|&second| second <= bound));
        // Half of the steps start where the softmax bends most: two classes alike, the others far off.
        let mut from = margins.clone();
        if rng.random_bool(0.5) {
            from.iter_mut().enumerate().for_each(|(k, m)| *m = if k < 2 { 0.0 } else { -30.0 });
        }
        let to: Vec<f64> = from.iter().map(|m| m + rng.random_range(-0.1..0.1)).collect();
        let change = |of: &dyn Fn(&[f64]) -> Vec<f64>| -> Vec<f64> {
            of(&to).iter().zip(of(&from)).map(|(to, from)| to - from).collect()
        };
        let ratio = norm(&change(&|m| gradient(loss, m, target))) / norm(&change(&|m| m.to_vec()));
        assert!(ratio <= bound * (1.0 + 1e-9), "{kind:?}: {ratio} > {bound}");
        let place = LOSSES.iter().position(|&known| known == kind).unwrap();
        steepest[place] = steepest[place].max(ratio / bound);
    });
    for (kind, steepest) in LOSSES.iter().zip(steepest) {
        assert!(*kind == LossKind::Poisson || steepest > 0.95, "{kind:?}: the bound is loose, {steepest}");
    }
}

/// A random u in the domain of ℓ*(·; y), and one outside of it where there is an outside.
fn duals(kind: LossKind, target: f64, rng: &mut ChaCha8Rng) -> (Vec<f64>, Option<Vec<f64>>) {
    let unit = rng.random_range(0.0..1.0);
    match kind {
        LossKind::Logistic => (vec![-target * unit], Some(vec![target * (unit + 0.01)])),
        LossKind::Squared => (vec![10.0 * unit - 5.0], None),
        LossKind::SquaredHinge => (vec![-target * 6.0 * unit], Some(vec![target * (unit + 0.01)])),
        LossKind::Huber(delta) => (vec![delta * (2.0 * unit - 1.0)], Some(vec![-delta - unit - 0.01])),
        LossKind::Poisson => (vec![8.0 * unit - target], Some(vec![-target - unit - 0.01])),
        LossKind::Gamma => (vec![1.0 - 4.0 * unit], Some(vec![1.01 + unit])),
        LossKind::Tweedie(_) if target > 0.0 => (vec![10.0 * unit - 5.0], None),
        LossKind::Tweedie(_) => (vec![8.0 * unit], Some(vec![-unit - 0.01])),
        LossKind::NegativeBinomial(theta) => {
            (vec![(target + theta) * unit - target], Some(vec![[-target - 0.01, theta + 0.01][rng.random_range(0..2)]]))
        }
        LossKind::Softmax => {
            let parts: Vec<f64> = (0..CLASSES).map(|_| rng.random_range(0.0..1.0)).collect();
            let sum: f64 = parts.iter().sum();
            let mut dual: Vec<f64> = parts.iter().map(|part| part / sum).collect();
            dual[target as usize] -= 1.0;
            let outside = dual.iter().map(|u| u + 0.01).collect();
            (dual, Some(outside))
        }
        LossKind::Cox(_) => unreachable!("a row by itself has no such loss: tests/cox.rs"),
    }
}

#[test]
fn conjugates_obey_fenchel_and_young() {
    each(1000, |kind, loss, margins, target, rng| {
        let excess =
            |dual: &[f64]| loss.value(&margins, target) + loss.conjugate(dual, target).unwrap() - dot(dual, &margins);
        let (dual, outside) = duals(kind, target, rng);
        assert!(excess(&dual) >= -1e-12, "{kind:?} {margins:?} {target} {dual:?}: {}", excess(&dual));
        if let Some(outside) = outside {
            assert_eq!(loss.conjugate(&outside, target), Some(f64::INFINITY), "{kind:?} {target} {outside:?}");
        }
        // Equality where u is the slope, which proves that ℓ* is no larger than the supremum.
        let slope = gradient(loss, &margins, target);
        let scale = 1.0 + dot(&slope, &margins).abs() + loss.value(&margins, target).abs();
        assert!(excess(&slope).abs() <= 1e-12 * scale, "{kind:?} {margins:?} {target}: {}", excess(&slope));
    });
}

#[test]
fn names_lead_back_to_the_loss() {
    for kind in all() {
        let loss = kind.build(CLASSES);
        assert_eq!(LossKind::from_name(loss.name(), loss.parameter()), Some(kind));
    }
    assert_eq!(LossKind::from_name("hinge", None), None);
    assert_eq!(LossKind::from_name("tweedie", Some(2.0)), None);
    assert_eq!(LossKind::from_name("negative-binomial", Some(0.0)), None);
}
