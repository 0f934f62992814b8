//! `auto` against an independent slow solver on random problems: how many are certified, and whether any certificate lies.
//!
//! ```sh
//! cargo run --release -p obprox-benches --bin truth -- 10000
//! ```
//!
//! Every loss × penalty (l1, elastic net, bounds, groups, sparse groups, the weights of a feature in all classes) × intercept
//! × row and feature weights × columns of sizes 10⁻⁸ … 10⁸ × rows and columns from 1 up. A problem is wrong where
//! coordinate descent, or that on blocks, from x = 0 or from the point that was found, comes to an F below F − gap.
#![allow(clippy::print_stdout)]

#[path = "../../../crates/obprox/tests/slow/mod.rs"]
mod slow;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use obprox::loss::LossKind;
use obprox::{Lambda, Point, Run, Settings, Status};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use slow::Case;
use slow::plain::Plain;

/// Sweeps of coordinate descent, or accelerated proximal steps where the penalty is on blocks.
const SWEEPS: usize = 400;
/// What the two may differ by: both add up rows.
const ROUNDING: f64 = 1e-10;

fn main() {
    let count: u64 = std::env::args().nth(1).map_or(1000, |count| count.parse().expect("a number of problems"));
    let first: u64 = std::env::args().nth(2).map_or(0, |first| first.parse().expect("the first seed"));
    let mut tally: BTreeMap<(String, &str, &str), usize> = BTreeMap::new();
    let (mut wrong, mut most_steps) = (0, 0);
    for seed in first..first + count {
        let (case, plain) = random(seed);
        let penalty = match &plain {
            Some(Plain::Box(..)) => "bounds",
            Some(Plain::Groups(_, _, 0.0)) => "groups",
            Some(Plain::Groups(..)) => "sparse groups",
            None => "l1",
        };
        let name = format!("{:?}", case.loss).split('(').next().unwrap_or_default().to_lowercase();
        let Ok(problem) = std::panic::catch_unwind(AssertUnwindSafe(|| case.problem())) else {
            *tally.entry((name, penalty, "refused")).or_default() += 1;
            continue;
        };
        let fit = Run::new(&problem, Settings::default()).fit().expect("the settings are the defaults");
        let slow = case.slow(&problem);
        let lowest = |from: Option<&Point>| match &plain {
            Some(plain) => plain.lowest(&case, &problem, SWEEPS, from),
            None => slow.descend(from, SWEEPS),
        };
        let best = lowest(Some(&fit.point)).min(lowest(None));
        let own = match &plain {
            Some(plain) => plain.lowest(&case, &problem, 0, Some(&fit.point)),
            None => slow.objective(&fit.point),
        };
        let (objective, gap) = (fit.certificate.objective, fit.certificate.gap.unwrap_or(f64::INFINITY));
        let allowed = gap + ROUNDING * (objective.abs() + best.abs());
        let off = (own - objective).abs() > 1e-6 * objective.abs().max(fit.certificate.least_scale);
        if objective - best > allowed || off {
            wrong += 1;
            let (rows, columns) = (case.rows.len(), case.n_cols());
            println!(
                "seed {seed}: {:?} {plain:?} {rows} × {columns}, {:?}, F {objective:e}, gap {gap:e}, found {best:e}",
                case.loss, fit.status
            );
        }
        let outcome = match fit.status {
            Status::Converged => "certified",
            Status::Stalled => "no progress any more",
            Status::MaxEpochs => "all rounds used",
            Status::Diverged => "diverged",
            _ => "stopped",
        };
        most_steps = most_steps.max(fit.iterations);
        *tally.entry((name, penalty, outcome)).or_default() += 1;
    }
    println!("\n| loss | penalty | outcome | problems |\n|---|---|---|---|");
    for ((loss, penalty, outcome), count) in tally {
        println!("| {loss} | {penalty} | {outcome} | {count} |");
    }
    println!("\n{wrong} wrong; at most {most_steps} steps");
}

/// A problem that the seed alone decides; every third has a penalty on blocks.
fn random(seed: u64) -> (Case, Option<Plain>) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let losses = [
        LossKind::Logistic,
        LossKind::Squared,
        LossKind::SquaredHinge,
        LossKind::Huber(10f64.powf(rng.random_range(-2.0..2.0))),
        LossKind::Poisson,
        LossKind::Gamma,
        LossKind::Tweedie(rng.random_range(1.05..1.95)),
        LossKind::NegativeBinomial(10f64.powf(rng.random_range(-1.0..1.0))),
        LossKind::Softmax,
    ];
    let loss = losses[seed as usize % losses.len()];
    let (n_rows, n_cols) = (size(rng, 60), size(rng, 40));
    let classes = rng.random_range(2..5);
    let filled = [1.0, 0.5, 0.1][rng.random_range(0..3)];
    let spread = [0.0, 0.0, 2.0, 8.0][rng.random_range(0..4)];
    let scales: Vec<f64> = (0..n_cols).map(|_| 10f64.powf(rng.random_range(-1.0..1.0) * spread)).collect();
    let mut rows: Vec<Vec<f64>> = (0..n_rows)
        .map(|_| (0..n_cols).map(|_| if rng.random_bool(filled) { rng.random_range(-1.0..1.0) } else { 0.0 }).collect())
        .collect();
    let planted: Vec<f64> = (0..n_cols).map(|at| if at % 3 == 0 { rng.random_range(-2.0..2.0) } else { 0.0 }).collect();
    let unit = 10f64.powf([0.0, 0.0, rng.random_range(-6.0..6.0)][rng.random_range(0..3)]);
    let scores: Vec<f64> = rows
        .iter()
        .map(|row| row.iter().zip(&planted).map(|(a, b)| a * b).sum::<f64>() + rng.random_range(-0.7..0.7))
        .collect();
    if n_cols > 4 && rng.random_bool(0.3) {
        // A twin, a sum of others, a constant.
        rows.iter_mut().for_each(|row| (row[1], row[2], row[3]) = (row[0], row[0] + row[4], 1.0));
    }
    rows.iter_mut().for_each(|row| row.iter_mut().zip(&scales).for_each(|(value, scale)| *value *= scale));
    let labels: Vec<f64> = (0..n_rows)
        .map(|row| match loss {
            LossKind::Logistic | LossKind::SquaredHinge if row < 2 => row as f64,
            LossKind::Logistic | LossKind::SquaredHinge => f64::from(scores[row] > 0.0),
            LossKind::Softmax if row < classes => row as f64,
            LossKind::Softmax => (scores[row] + 1.5).clamp(0.0, classes as f64 - 1.0).floor(),
            LossKind::Poisson | LossKind::NegativeBinomial(_) => scores[row].exp().min(50.0).floor(),
            LossKind::Gamma => scores[row].exp(),
            LossKind::Tweedie(_) => (scores[row].exp() - 0.5).max(0.0),
            _ => unit * scores[row],
        })
        .collect();
    let shares = [0.9, 0.5, 0.1, 0.01, 1e-3, 1e-4, 1e-6, 1e-8];
    let mut case = Case::new(loss, rows, labels, Lambda::OfMax(shares[rng.random_range(0..shares.len())]));
    case.intercept = rng.random_bool(0.5);
    case.dense = rng.random_bool(0.5);
    case.l2 = [0.0, 0.0, 0.01, 1.0][rng.random_range(0..4)];
    if rng.random_bool(0.3) {
        let weight = |_| if rng.random_bool(0.2) { 0.0 } else { 10f64.powf(rng.random_range(-1.0..1.0)) };
        case.feature_weights = Some((0..n_cols).map(weight).collect());
    }
    if rng.random_bool(0.3) {
        let weight = |row| if row > 4 && rng.random_bool(0.1) { 0.0 } else { 10f64.powf(rng.random_range(-2.0..2.0)) };
        case.row_weights = Some((0..n_rows).map(weight).collect());
    }
    // All losses have had their turn before the next kind of penalty.
    let mut of_blocks = Plain::all(n_cols);
    let plain =
        (seed / losses.len() as u64 % 3 == 2).then(|| of_blocks.swap_remove(rng.random_range(0..of_blocks.len())));
    if let Some(plain) = &plain {
        case.feature_weights = None;
        case.penalty = Some(plain.built(n_cols));
    }
    (case, plain)
}

/// Small sizes are as likely as large ones.
fn size(rng: &mut ChaCha8Rng, most: usize) -> usize {
    let most = rng.random_range(1..=most);
    rng.random_range(1..=most)
}
