//! Problems on which certificates were too small, or which no number of rounds solved.

mod slow;

use obprox::loss::LossKind;
use obprox::{Fit, Lambda, Run, Settings, Status};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use slow::Case;

/// Solves, and holds F less the gap below the lowest F that is known.
fn honest(case: &Case, best: f64, tolerance: f64) -> Fit {
    let fit = Run::new(&case.problem(), Settings { tolerance, ..Settings::default() }).fit().unwrap();
    let (objective, gap) = (fit.certificate.objective, fit.certificate.gap.unwrap());
    assert!(objective - gap <= best * (1.0 + 1e-9), "F {objective} with a gap of {gap}, and yet there is {best}");
    fit
}

#[test]
fn a_loss_that_grows_linearly_lets_the_intercept_be_far_away() {
    let rows = vec![
        vec![0.0, 0.07653630524873734],
        vec![0.0, 0.0],
        vec![-0.06665357947349548, 0.0],
        vec![-0.26749810576438904, 0.0],
        vec![0.0, 0.0],
    ];
    let labels =
        vec![-19658664.275769994, 22228276.408364654, -39184132.24464827, 45933992.14781154, 6962467.662722743];
    let mut case = Case::new(LossKind::Huber(1.0), rows, labels, Lambda::OfMax(0.5));
    case.row_weights =
        Some(vec![6.916389266967974e-07, 185.19080282843404, 492922807.8591017, 0.5370601575666463, 646.9627307000288]);
    let fit = honest(&case, 44.90208304, 1e-6);
    assert_eq!(fit.status, Status::Converged, "{:?}", fit.certificate);
    let objective = case.slow(&case.problem()).objective(&fit.point);
    assert!((objective - fit.certificate.objective).abs() < 1e-6, "F is {objective}");
}

#[test]
fn columns_that_are_nearly_constant_let_the_intercept_be_far_away() {
    let rng = &mut ChaCha8Rng::seed_from_u64(1);
    let rows: Vec<Vec<f64>> =
        (0..3).map(|_| (0..19).map(|_| 29616.689453125 + rng.random_range(-1.5..1.0)).collect()).collect();
    let labels = vec![-50800956.80016079, -63212749.958903626, -33111395.27915624];
    let mut case = Case::new(LossKind::Squared, rows, labels, Lambda::OfMax(0.5));
    case.l2 = 0.04856091466215448;
    // The same with every column less its constant, which goes into the intercept: what coordinate descent can solve.
    let mut centred = case.clone();
    centred.rows.iter_mut().for_each(|row| row.iter_mut().for_each(|value| *value -= 29616.689453125));
    let lambda = case.problem().lambda();
    centred.lambda = Lambda::Value(lambda);
    let best = centred.slow(&centred.problem()).descend(None, 50_000);
    let fit = honest(&case, best, 1e-6);
    assert!(fit.status != Status::Converged || fit.certificate.objective - best <= 1e-6 * best);
}

#[test]
fn free_columns_that_are_nearly_the_same_are_two() {
    let rng = &mut ChaCha8Rng::seed_from_u64(2);
    let small = 1e-8;
    let rows: Vec<Vec<f64>> = (0..60)
        .map(|_| {
            let (value, differs) = (rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
            vec![value, value + small * differs, rng.random_range(-1.0..1.0), differs]
        })
        .collect();
    // What tells the classes apart is the difference alone.
    let labels =
        rows.iter().enumerate().map(|(at, row)| if at < 3 { at as f64 } else { (1.0 + row[3]).floor() }).collect();
    let mut apart = Case::new(LossKind::Softmax, rows, labels, Lambda::Value(0.01));
    apart.feature_weights = Some(vec![0.0, 1.0, 1.0, 0.0]);
    apart.intercept = false;
    // The same span of free columns: value and value + small·differs, value and differs.
    let best = {
        let mut spanned = apart.clone();
        spanned.rows.iter_mut().for_each(|row| row[1] = 0.0);
        spanned.slow(&spanned.problem()).descend(None, 5000)
    };
    let mut case = apart;
    case.rows.iter_mut().for_each(|row| row[3] = 0.0);
    case.feature_weights = Some(vec![0.0, 0.0, 1.0, 1.0]);
    honest(&case, best, 1e-6);
}

#[test]
fn targets_far_beyond_delta_are_no_wall() {
    for (seed, lambda) in [(3, Lambda::OverN), (4, Lambda::OfMax(1e-3)), (5, Lambda::OfMax(0.1))] {
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let scale = [80.0, 0.02, 1e4];
        let rows: Vec<Vec<f64>> =
            (0..24).map(|_| scale.iter().map(|scale| scale * rng.random_range(-1.0..1.0)).collect()).collect();
        let truth = [3e5, -2e7, 40.0];
        let label = |row: &Vec<f64>| row.iter().zip(truth).map(|(value, weight)| value * weight).sum::<f64>();
        let labels = rows.iter().map(|row| label(row) + 1e6 * rng.random_range(-1.0..1.0f64).powi(3)).collect();
        let mut case = Case::new(LossKind::Huber(1.0), rows, labels, lambda);
        case.intercept = seed == 5;
        let fit = Run::new(&case.problem(), Settings { tolerance: 1e-8, ..Settings::default() }).fit().unwrap();
        assert_eq!(fit.status, Status::Converged, "seed {seed}: {:?}", fit.certificate);
        let slow = case.slow(&case.problem());
        let best = slow.descend(Some(&fit.point), 200);
        assert!(fit.certificate.objective - best <= fit.certificate.gap.unwrap(), "seed {seed}");
    }
}

#[test]
fn tiny_lambdas_take_some_steps_and_not_all_there_are() {
    for loss in [LossKind::SquaredHinge, LossKind::Squared, LossKind::Huber(1.0)] {
        let rng = &mut ChaCha8Rng::seed_from_u64(6);
        let (n_rows, n_cols) = (60, 50);
        // Columns of all sizes.
        let scale = |at: usize| if loss == LossKind::SquaredHinge { 1.0 } else { 10f64.powi((at % 15) as i32 - 7) };
        let row = |rng: &mut ChaCha8Rng| (0..n_cols).map(|at| scale(at) * rng.random_range(-1.0..1.0)).collect();
        let rows: Vec<Vec<f64>> = (0..n_rows).map(|_| row(rng)).collect();
        let labels = (0..n_rows)
            .map(|row| match loss {
                LossKind::SquaredHinge => f64::from(row % 2 == 0),
                _ => 30.0 * rng.random_range(-1.0..1.0),
            })
            .collect();
        let case = Case::new(loss, rows, labels, Lambda::Value(1e-8));
        let fit = Run::new(&case.problem(), Settings::default()).fit().unwrap();
        assert!(fit.iterations < 2000 && fit.epochs < 150, "{loss:?}: {} steps, {:?}", fit.iterations, fit.certificate);
        let best = case.slow(&case.problem()).descend(Some(&fit.point), 2000);
        let above = (fit.certificate.objective - best) / fit.certificate.objective.max(fit.certificate.least_scale);
        assert!(above < 1e-5, "{loss:?}: {above} above what coordinate descent finds, {:?}", fit.status);
    }
}
