//! Methods that converge do converge; switches switch when they say; an optimum is a place to stay.

mod common;

use common::random::{LOSSES, Recipe};
use common::{close, run};
use obprox::data::{Dataset, Matrix};
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Phase, Switch, Unit};
use obprox::{Fit, Lambda, Method, MethodKind, Point, Problem, Run, Settings, Status, Terms};

/// Well-filled rows, so that 100 features are not needed to tell a method that converges from one that does not.
fn recipe(loss: LossKind) -> Recipe {
    Recipe { loss, rows: 60, cols: 20, per_row: 10, lambda: 0.1, seed: 4, ..Recipe::default() }
}

/// Losses with a bound on their curvature, for which there is an automatic step.
fn smooth() -> impl Iterator<Item = LossKind> {
    LOSSES.into_iter().filter(|loss| *loss != LossKind::Poisson)
}

/// Automatic steps of constant size, up to a relative gap of 1e-6.
fn patient(method: impl Into<Method>, batch: Batch, epochs: u64) -> Settings {
    let (step, schedule) = (StepSize::Auto, Schedule::Constant);
    // On problems this small a certificate costs more than an epoch.
    let eval_every = if epochs > 1000 { 20 } else { 1 };
    Settings { epochs, batch, step, schedule, eval_every, tolerance: 1e-6, ..Settings::with_method(method) }
}

fn assert_solved(fit: &Fit, best: f64, what: &str) {
    assert_eq!(fit.status, Status::Converged, "{what}: {:?}", fit.certificate);
    let distance = fit.certificate.objective - best;
    assert!(distance >= -1e-10, "{what}: below the optimum by {distance}");
    assert!(distance <= 1e-6 * best.abs(), "{what}: {distance} above the optimum");
}

#[test]
fn prox_svrg_reaches_the_optimum_on_small_batches() {
    for loss in smooth() {
        for (l2, rows) in [(0.0, 1), (0.0, 8), (0.1, 3)] {
            let (problem, plain) = Recipe { l2, ..recipe(loss) }.build();
            let best = plain.objective(&plain.solve());
            let fit = run(&problem, &patient(MethodKind::ProxSvrg, Batch::Rows(rows), 3000));
            assert_solved(&fit, best, &format!("{loss:?}, λ₂ {l2}, {rows} rows: {} epochs", fit.epochs));
        }
    }
}

#[test]
fn full_batches_reach_the_optimum() {
    for loss in smooth() {
        for l2 in [0.0, 0.1] {
            let (problem, plain) = Recipe { l2, ..recipe(loss) }.build();
            let best = plain.objective(&plain.solve());
            let one_each = Switch::Fixed { prox: 1, orthant: Some(1), unit: Unit::Iterations };
            for method in [
                Method::ProxSg,
                Method::ProxSvrg { average: false },
                Method::ObproxSg { switch: Switch::PAPER },
                Method::ObproxSg { switch: one_each },
                Method::ObproxSg { switch: Switch::Adaptive },
            ] {
                let fit = run(&problem, &patient(method.clone(), Batch::All, 20_000));
                assert_solved(&fit, best, &format!("{method:?} {loss:?}, λ₂ {l2}: {} epochs", fit.epochs));
            }
        }
    }
}

/// Poisson has no automatic step: a small one by hand.
#[test]
fn poisson_is_solved_with_a_step_of_its_own() {
    let (problem, plain) = recipe(LossKind::Poisson).build();
    let best = plain.objective(&plain.solve());
    for (method, batch) in [(MethodKind::ProxSvrg, Batch::Rows(4)), (MethodKind::ObproxSg, Batch::All)] {
        let settings = Settings { step: StepSize::Value(0.15), ..patient(method, batch, 20_000) };
        assert_solved(&run(&problem, &settings), best, &format!("{method:?}"));
    }
}

/// OBProx-SG+ may only shrink its face, so it solves the problem where Prox-SG found the right one.
#[test]
fn obprox_sg_plus_finishes_on_the_face() {
    for loss in smooth() {
        let (problem, plain) = recipe(loss).build();
        let best = plain.objective(&plain.solve());
        let switch = Switch::Fixed { prox: 2000, orthant: None, unit: Unit::Epochs };
        let settings = Settings { tolerance: 1e-9, ..patient(Method::ObproxSgPlus { switch }, Batch::All, 20_000) };
        assert_solved(&run(&problem, &settings), best, &format!("{loss:?}"));
    }
}

/// RDA converges like 1/√t: no certificate in sight, but steadily.
#[test]
fn rda_comes_nearer_with_every_tenfold() {
    let (problem, plain) = recipe(LossKind::Logistic).build();
    let best = plain.objective(&plain.solve());
    let distance = |epochs| {
        let settings = patient(Method::Rda { gamma: 1.0 }, Batch::Rows(4), epochs);
        run(&problem, &settings).certificate.objective - best
    };
    let distances = [10, 100, 1000].map(distance);
    assert!(distances[1] < 0.7 * distances[0] && distances[2] < 0.5 * distances[1], "{distances:?}");
}

// ---- at the optimum -----------------------------------------------------------------------------------------------

#[test]
fn an_optimum_is_a_place_to_stay() {
    for loss in smooth() {
        let (problem, plain) = Recipe { l2: 0.01, feature_weights: true, ..recipe(loss) }.build();
        let optimum = plain.point(&plain.solve());
        let orthant = Switch::Fixed { prox: 0, orthant: None, unit: Unit::Epochs };
        for (method, batch) in [
            (Method::ProxSg, Batch::All),
            (Method::ObproxSg { switch: orthant }, Batch::All),
            // At the optimum the reduced gradients of all batches are the full one.
            (Method::ProxSvrg { average: false }, Batch::Rows(3)),
        ] {
            let settings = Settings { tolerance: 0.0, ..patient(method.clone(), batch, 20) };
            let fit = Run::new(&problem, settings).start(&optimum).fit().unwrap();
            for (&now, &then) in fit.point.weights.iter().zip(&optimum.weights) {
                assert!(close(then, now, 1e-9) && (now == 0.0) == (then == 0.0), "{method:?} {loss:?}: {then} → {now}");
            }
        }
        let early =
            Run::new(&problem, patient(MethodKind::ProxSvrg, Batch::Rows(3), 20)).start(&optimum).fit().unwrap();
        assert_eq!((early.status, early.epochs), (Status::Converged, 1), "{loss:?}");
    }
}

#[test]
fn rda_starts_at_zero_whatever_it_is_given() {
    let (problem, plain) = recipe(LossKind::Logistic).build();
    let optimum = plain.point(&plain.solve());
    let settings = patient(MethodKind::Rda, Batch::Rows(4), 3);
    let given = Run::new(&problem, settings.clone()).start(&optimum).fit().unwrap();
    assert_eq!(given.point, run(&problem, &settings).point);
}

// ---- switches -----------------------------------------------------------------------------------------------------

fn phases(fit: &Fit) -> Vec<Phase> {
    fit.trace.iter().map(|record| record.phase).collect()
}

#[test]
fn the_objective_switch_waits_for_the_objective() {
    let (problem, _) = recipe(LossKind::Logistic).build();
    let settings = Settings { tolerance: 0.0, ..patient(MethodKind::ObproxSgPlus, Batch::Rows(5), 30) };
    let plain_run = run(&problem, &Settings { method: Method::ProxSg, ..settings.clone() });
    let objective = |epoch: usize| plain_run.trace[epoch].certificate.as_ref().unwrap().objective;
    let target = 0.5 * (objective(0) + objective(12));
    let fit = run(
        &problem,
        &Settings { method: Method::ObproxSgPlus { switch: Switch::Objective(target) }, eval_every: 10, ..settings },
    );
    // Until the first epoch that ends at or below the target the run is Prox-SG's own; then Orthant for good.
    let reached = (0..30).find(|&epoch| objective(epoch) <= target).unwrap();
    let expected: Vec<Phase> =
        (0..30).map(|epoch| if epoch <= reached { Phase::Prox } else { Phase::Orthant }).collect();
    assert_eq!(phases(&fit), expected);
    assert!(0 < reached && reached < 13);
}

#[test]
fn the_score_switch_waits_for_the_validation_data() {
    let (problem, plain) = recipe(LossKind::Logistic).build();
    let rows: Vec<Vec<(u32, f64)>> =
        plain.rows.iter().map(|row| (0..20).map(|column| (column, row[column as usize])).collect()).collect();
    let labels = plain.targets.iter().map(|target| if *target > 0.0 { 5.0 } else { 2.0 }).collect();
    let data = Dataset::new(Matrix::from_rows(20, &rows), labels);
    let settings =
        Settings { tolerance: 0.0, step: StepSize::Value(0.05), ..patient(MethodKind::ObproxSg, Batch::Rows(5), 25) };
    let with = |switch| Settings { method: Method::ObproxSg { switch }, ..settings.clone() };
    let fit = Run::new(&problem, with(Switch::Score(0.8))).validate(&data).fit().unwrap();
    let scores: Vec<f64> = fit.trace.iter().map(|record| record.score.unwrap()).collect();
    let reached = scores.iter().position(|&score| score >= 0.8).unwrap();
    let expected: Vec<Phase> =
        (0..25).map(|epoch| if epoch <= reached { Phase::Prox } else { Phase::Orthant }).collect();
    assert_eq!(phases(&fit), expected, "{scores:?}");
    let never = Run::new(&problem, with(Switch::Score(2.0))).validate(&data).fit().unwrap();
    assert!(phases(&never).iter().all(|phase| *phase == Phase::Prox));
    assert!(Run::new(&problem, with(Switch::Score(0.8))).fit().unwrap_err().to_string().contains("test data"));
}

#[test]
fn the_adaptive_switch_compares_the_violations() {
    let (problem, _) = Recipe { lambda: 0.3, ..recipe(LossKind::Logistic) }.build();
    let settings = patient(Method::ObproxSg { switch: Switch::Adaptive }, Batch::Rows(5), 40);
    let fit = run(&problem, &Settings { tolerance: 0.0, eval_every: 7, ..settings });
    assert_eq!(fit.trace[0].phase, Phase::Prox);
    for pair in fit.trace.windows(2) {
        let measured = pair[0].certificate.as_ref().expect("measured each epoch, whatever eval_every says");
        let orthant = measured.violation_on_zeros <= measured.violation_on_support;
        assert_eq!(pair[1].phase, if orthant { Phase::Orthant } else { Phase::Prox });
    }
    assert!(phases(&fit).contains(&Phase::Orthant));
}

#[test]
fn figures_are_computed_when_they_are_due() {
    let (problem, _) = recipe(LossKind::Logistic).build();
    let settings = Settings { tolerance: 0.0, eval_every: 4, ..patient(MethodKind::ProxSg, Batch::Rows(5), 10) };
    let fit = run(&problem, &settings);
    let due: Vec<u64> =
        fit.trace.iter().filter(|record| record.certificate.is_some()).map(|record| record.epoch).collect();
    assert_eq!(due, [4, 8, 10]);
    assert_eq!(fit.certificate, obprox::certify(&problem, &fit.point).unwrap());
}

// ---- degenerate problems ------------------------------------------------------------------------------------------

#[test]
fn problems_without_features_still_have_an_intercept() {
    let data = Dataset::new(Matrix::from_rows(0, &[vec![], vec![], vec![], vec![]]), vec![1.0, 1.0, 1.0, 0.0]);
    let terms = Terms { lambda: Lambda::Value(0.1), ..Terms::default() };
    let problem = Problem::new(data, LossKind::Logistic.build(2), &terms).unwrap();
    for method in MethodKind::PAPER {
        let method = if method == MethodKind::Rda { Method::Rda { gamma: 0.5 } } else { method.into() };
        let fit = run(&problem, &patient(method.clone(), Batch::All, 3000));
        assert!((fit.point.intercept[0] - 3f64.ln()).abs() < 0.03, "{method:?}: {:?}", fit.point);
        assert!(method.name() == "rda" || fit.status == Status::Converged, "{method:?}");
    }
    assert_eq!(problem.lambda_max(), 0.0);
}

#[test]
fn no_epochs_give_the_starting_point() {
    let (problem, _) = recipe(LossKind::Logistic).build();
    let fit = run(&problem, &Settings { epochs: 0, ..Settings::with_method(MethodKind::ObproxSgPlus) });
    assert_eq!((fit.status, fit.point), (Status::MaxEpochs, Point::zero(&problem)));
}
