//! The paper's files, or stand-ins of their shape: set OBPROX_DATA to the directory that has them (FACTS §7).

mod common;

use std::io::Write;
use std::path::PathBuf;

use common::run;
use obprox::data::{ReadOptions, read};
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::{MethodKind, Problem, Settings, Terms};

/// What is known of a file at λ = 1/N with intercept (FACTS §4, §7).
struct Known {
    file: &'static str,
    shape: (usize, usize, usize),
    /// F* to six digits.
    optimum: f64,
    /// F and density of OBProx-SG+ by the paper's recipe, one seed.
    recipe: (f64, f64),
    /// Epochs of Prox-SVRG and the relative distance to F* that they must reach.
    svrg: (u64, f64),
}

const FILES: [Known; 4] = [
    Known { file: "a9a.xz", shape: (32561, 123, 451_592), optimum: 0.324252, recipe: (0.3295, 0.72), svrg: (30, 1e-3) },
    Known { file: "w8a.xz", shape: (49749, 300, 579_586), optimum: 0.050122, recipe: (0.0573, 0.94), svrg: (30, 5e-2) },
    Known {
        file: "20news_unigram_tfidf.svm.xz",
        shape: (18809, 49389, 2_507_823),
        optimum: 0.269642,
        recipe: (0.4040, 0.100),
        svrg: (30, 1e-2),
    },
    Known {
        file: "20news_bigram_binary.svm.xz",
        shape: (18811, 1_572_529, 6_973_877),
        optimum: 0.315015,
        recipe: (0.4634, 0.00235),
        svrg: (15, 7e-2),
    },
];

/// Visits every file that is known, or says that it was not.
fn each(mut visit: impl FnMut(&Known, &Problem)) {
    let Some(directory) = std::env::var_os("OBPROX_DATA").map(PathBuf::from) else {
        skipped();
        return;
    };
    for known in &FILES {
        let data = read(directory.join(known.file), &ReadOptions::default()).unwrap();
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).unwrap();
        visit(known, &problem);
    }
}

/// Straight to standard error, past the harness that hides what passing tests print: a test that did nothing must not
/// look like one that passed.
fn skipped() {
    let _ = writeln!(std::io::stderr(), "skipped: set OBPROX_DATA to the directory of the real files");
}

#[test]
fn shapes_and_lambda_max() {
    each(|known, problem| {
        let matrix = problem.matrix();
        assert_eq!((matrix.n_rows(), matrix.n_cols(), matrix.nnz()), known.shape, "{}", known.file);
        assert_eq!(problem.lambda(), 1.0 / matrix.n_rows() as f64);
        // At x = 0 the best intercept predicts the share of positives, which leaves p − [y = 1] of each row.
        let positive = |row: usize| if problem.targets()[row] > 0.0 { 1.0 } else { 0.0 };
        let n = matrix.n_rows();
        let share = (0..n).map(positive).sum::<f64>() / n as f64;
        let mut slopes = vec![0.0; matrix.n_cols()];
        for row in 0..n {
            matrix.for_each(row, |column, value| slopes[column] += value * (share - positive(row)) / n as f64);
        }
        let expected = slopes.iter().fold(0.0f64, |most, slope| most.max(slope.abs()));
        assert!((problem.lambda_max() - expected).abs() <= 1e-10 * expected, "{}", known.file);
    });
}

#[test]
fn the_papers_recipe_gives_the_papers_kind_of_result() {
    each(|known, problem| {
        let fit = run(problem, &Settings { eval_every: 30, ..Settings::with_method(MethodKind::ObproxSgPlus) });
        let (objective, density) = known.recipe;
        let found = &fit.certificate;
        assert!((found.objective / objective - 1.0).abs() < 0.02, "{}: F {}", known.file, found.objective);
        assert!((found.density / density - 1.0).abs() < 0.15, "{}: density {}", known.file, found.density);
        assert!(found.objective > known.optimum && found.gap.unwrap() >= found.objective - known.optimum - 1e-6);
        // The point of the method: the same F as Prox-SG, with fewer weights.
        let prox_sg =
            run(problem, &Settings { eval_every: 30, ..Settings::with_method(MethodKind::ProxSg) }).certificate;
        assert!(found.density < 0.97 * prox_sg.density, "{}: {} of {}", known.file, found.density, prox_sg.density);
        assert!(found.objective < 1.005 * prox_sg.objective, "{}", known.file);
    });
}

#[test]
fn prox_svrg_approaches_the_optimum_from_above() {
    each(|known, problem| {
        let (epochs, distance) = known.svrg;
        let settings = Settings {
            epochs,
            batch: Batch::Rows(16),
            step: StepSize::Auto,
            schedule: Schedule::Constant,
            eval_every: 5,
            ..Settings::with_method(MethodKind::ProxSvrg)
        };
        let fit = run(problem, &settings);
        // F* is known to six digits: half a unit of the last one is its error.
        let above = |objective: f64| (objective - known.optimum) / known.optimum;
        for record in fit.trace.iter().filter_map(|record| record.certificate.as_ref()) {
            assert!(record.objective > known.optimum - 1e-6, "{}: F {} is below F*", known.file, record.objective);
            assert!(record.gap.unwrap() >= record.objective - known.optimum - 1e-6, "{}", known.file);
        }
        let reached = above(fit.certificate.objective);
        assert!(reached < distance, "{}: {reached} above F* after {} s", known.file, fit.seconds);
    });
}
