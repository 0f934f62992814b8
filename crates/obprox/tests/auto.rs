//! `auto` against a slow solver, on random problems of every awkward shape; its invariances; the real files.

mod slow;

use obprox::loss::LossKind;
use obprox::{Fit, Lambda, Run, Settings, Status};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use slow::Case;

const LOSSES: [LossKind; 6] = [
    LossKind::Logistic,
    LossKind::Squared,
    LossKind::SquaredHinge,
    LossKind::Huber(0.7),
    LossKind::Poisson,
    LossKind::Softmax,
];

/// A random problem: the seed chooses everything but loss and λ.
fn random(loss: LossKind, fraction: f64, seed: u64, scaled: bool) -> Case {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let (n_rows, n_cols) = [(40, 8), (12, 30), (25, 15), (6, 3), (60, 20)][seed as usize % 5];
    let filled = if rng.random_bool(0.5) { 1.0 } else { 0.3 };
    let mut rows: Vec<Vec<f64>> = (0..n_rows)
        .map(|_| {
            let entry = |_| if rng.random_bool(filled) { rng.random_range(-1.0..1.0) } else { 0.0 };
            (0..n_cols).map(entry).collect()
        })
        .collect();
    let planted: Vec<f64> = (0..n_cols).map(|at| if at % 3 == 0 { rng.random_range(-2.0..2.0) } else { 0.0 }).collect();
    let scores: Vec<f64> = rows
        .iter()
        .map(|row| {
            let score: f64 = row.iter().zip(&planted).map(|(value, weight)| value * weight).sum();
            score + rng.random_range(-0.7..0.7)
        })
        .collect();
    // A twin, a sum of two others, a constant and an empty column.
    if n_cols >= 8 && rng.random_bool(0.6) {
        rows.iter_mut().for_each(|row| {
            row[1] = row[0];
            row[4] = row[2] + row[3];
            row[5] = 1.0;
            row[6] = 0.0;
        });
    }
    let scale = |at: usize| if scaled { 10f64.powi(((at * 5) % 13) as i32 - 6) } else { 1.0 };
    rows.iter_mut().for_each(|row| row.iter_mut().enumerate().for_each(|(at, value)| *value *= scale(at)));
    let labels = (0..n_rows)
        .map(|row| match loss {
            LossKind::Logistic | LossKind::SquaredHinge if row < 2 => row as f64,
            LossKind::Logistic | LossKind::SquaredHinge => f64::from(scores[row] > 0.0),
            LossKind::Softmax if row < 3 => row as f64,
            LossKind::Softmax => (scores[row] + 1.5).clamp(0.0, 2.0).floor(),
            LossKind::Poisson => scores[row].exp().min(8.0).floor(),
            _ => scores[row],
        })
        .collect();
    let mut case = Case::new(loss, rows, labels, Lambda::OfMax(fraction));
    case.intercept = rng.random_bool(0.5);
    case.dense = rng.random_bool(0.5);
    case.l2 = if rng.random_bool(0.3) { 0.01 } else { 0.0 };
    if rng.random_bool(0.3) {
        let weight = |at| if at % 7 == 3 { 0.0 } else { rng.random_range(0.3..2.0) };
        case.feature_weights = Some((0..n_cols).map(weight).collect());
    }
    if rng.random_bool(0.3) {
        let weight = |row| if row % 6 == 5 { 0.0 } else { rng.random_range(0.2..3.0) };
        case.row_weights = Some((0..n_rows).map(weight).collect());
    }
    case
}

fn fit(case: &Case) -> Fit {
    Run::new(&case.problem(), Settings::default()).fit().unwrap()
}

#[test]
fn explore() {
    for scaled in [false, true] {
    for loss in LOSSES {
        for fraction in [0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8] {
            let mut line = String::new();
            let clock = std::time::Instant::now();
            let mut auto_time = 0.0;
            for seed in 0..20 {
                let case = random(loss, fraction, seed, scaled);
                let problem = case.problem();
                let begun = std::time::Instant::now();
                let fit = fit(&case);
                auto_time += begun.elapsed().as_secs_f64();
                let slow = case.slow(&problem);
                let f = slow.objective(&fit.point);
                let tol = 1e-6 * f.abs();
                let best = slow.descend(Some(&fit.point), 100).min(slow.descend(None, 200));
                let c = &fit.certificate;
                let rel = (f - best) / f.abs();
                let wrong = fit.status == Status::Converged && f - best > tol;
                let mis = (f - c.objective).abs() > 1e-9 * (1.0 + f.abs());
                let dishonest = c.gap.is_some_and(|gap| f - best > gap + 1e-10 * (1.0 + f.abs()));
                if wrong || mis || dishonest || fit.status != Status::Converged {
                    line += &format!("\n    seed {seed} {:?} ep {} {}x{} int {} l2 {} fw {} rw {} F {f:.3e} gap {:?} kkt {:.1e} above {:.1e}{}{}{}",
                        fit.status, fit.epochs, case.rows.len(), case.n_cols(), case.intercept, case.l2, case.feature_weights.is_some(), case.row_weights.is_some(),
                        c.gap, c.kkt, rel,
                        if wrong { " WRONG" } else {""}, if mis {" MISF"} else {""}, if dishonest {" DISHONEST"} else {""});
                }
            }
            println!("{scaled} {loss:?} {fraction:e}: {:.1}s auto {auto_time:.2}s {line}", clock.elapsed().as_secs_f64());
        }
    }
    }
}
