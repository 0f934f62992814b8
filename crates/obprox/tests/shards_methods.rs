//! Every method on rows in shards: the bits do not depend on what is kept in memory, nor on threads, nor on a break.

mod common;

use std::sync::Arc;

use common::shards::{LOSSES, dataset, sharding, write_text};
use common::{StopAt, bits};
use obprox::data::{ReadOptions, ShardedData};
use obprox::loss::LossKind;
use obprox::penalty::{Bounds, Groups};
use obprox::sampler::Batch;
use obprox::schedule::StepSize;
use obprox::switch::{Switch, Unit};
use obprox::{Fit, Lambda, Lambdas, Method, MethodKind, Path, Problem, Run, Settings, Status, Terms, certify};
use tempfile::TempDir;

const ROWS: usize = 230;
/// A batch that divides neither a shard nor all rows.
const BATCH: usize = 24;

/// Rows in shards.
struct Sharded {
    directory: TempDir,
    loss: LossKind,
    n_cols: usize,
}

impl Sharded {
    fn new(loss: LossKind, n_cols: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_text(&dataset(loss, ROWS, n_cols), &directory.path().join("rows.svm"));
        Self { directory, loss, n_cols }
    }

    fn open(&self, memory: u64, rows: usize) -> Arc<ShardedData> {
        let options = ReadOptions { n_cols: Some(self.n_cols), ..ReadOptions::default() };
        let (sources, sharding) =
            (self.directory.path().join("rows.svm"), sharding(self.directory.path(), memory, rows));
        Arc::new(ShardedData::open(&[sources], &options, &sharding, &mut |_, _| {}).unwrap())
    }

    fn stated(&self, shards: Arc<ShardedData>, terms: &Terms) -> Problem {
        Problem::of_shards(shards, self.loss.build(4), terms).unwrap()
    }

    /// The problem with memory for all rows, and for no more than must be.
    fn both(&self, terms: &Terms) -> [Problem; 2] {
        let ample = self.open(1 << 32, 64);
        assert_eq!(ample.n_shards(), 4);
        // Columns that are scaled take three times as much.
        let least = ample.least_memory() * if terms.standardize { 3 } else { 1 };
        [ample, self.open(least, 64)].map(|shards| self.stated(shards, terms))
    }
}

fn settings(method: MethodKind, epochs: u64) -> Settings {
    // Both kinds of steps within few epochs, and zeros that stay.
    let switch = |orthant| Switch::Fixed { prox: 1, orthant, unit: Unit::Epochs };
    let method = match method {
        MethodKind::ObproxSg => Method::ObproxSg { switch: switch(Some(1)) },
        MethodKind::ObproxSgPlus => Method::ObproxSgPlus { switch: switch(None) },
        // Of the counts of the Poisson loss longer steps make infinite ones.
        MethodKind::Rda => Method::Rda { gamma: 20.0 },
        other => other.into(),
    };
    let step = StepSize::Value(0.005);
    Settings { method, epochs, batch: Batch::Rows(BATCH), step, seed: 5, tolerance: 0.0, ..Settings::default() }
}

/// l1, elastic net with free features and weights of rows, bounds, groups, standardised columns.
fn all_terms(n_cols: usize) -> Vec<(&'static str, Terms)> {
    let lambda = Lambda::OfMax(0.1);
    let plain = Terms { lambda, ..Terms::default() };
    let feature_weights = Some((0..n_cols).map(|feature| (feature % 4) as f64).collect());
    let row_weights = Some((0..ROWS).map(|row| (row % 3) as f64).collect());
    let net = Terms { l2: 0.01, feature_weights, row_weights, intercept: false, ..plain.clone() };
    let bounds = Arc::new(Bounds::new(vec![-0.1; n_cols], vec![f64::INFINITY; n_cols]).unwrap());
    let groups = Arc::new(Groups::new((0..n_cols as u32).map(|feature| feature / 3).collect()).unwrap());
    vec![
        ("standardised", Terms { standardize: true, ..plain.clone() }),
        ("bounds", Terms { penalty: Some(bounds), ..plain.clone() }),
        ("groups", Terms { penalty: Some(groups), ..plain.clone() }),
        ("l1", plain),
        ("elastic net", net),
    ]
}

fn outcome(fit: &Fit) -> (Status, Vec<u64>, u64) {
    (fit.status, bits(&fit.point), fit.certificate.objective.to_bits())
}

#[test]
fn no_method_depends_on_the_memory_or_on_threads() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    for (number, loss) in LOSSES.into_iter().enumerate() {
        let sharded = [18, 600].map(|n_cols| (n_cols, Sharded::new(loss, n_cols)));
        for (at, name) in all_terms(1).iter().map(|(name, _)| *name).enumerate() {
            // Each loss and each penalty has both widths, every pair of them one.
            let (n_cols, sharded) = &sharded[(number + at) % 2];
            let problems = sharded.both(&all_terms(*n_cols)[at].1);
            for method in MethodKind::ALL {
                let what = format!("{loss:?}, {n_cols} columns, {name}, {method:?}");
                let fit = |problem: &Problem| {
                    let fit = Run::new(problem, settings(method, 2)).fit();
                    fit.unwrap_or_else(|error| panic!("{what}: {error}"))
                };
                let ample = fit(&problems[0]);
                // Steps of one size are too long for means that are exponentials.
                let may_diverge = matches!(loss, LossKind::Poisson | LossKind::Gamma | LossKind::Tweedie(_));
                assert!(ample.status != Status::Diverged || may_diverge, "{what}");
                // Another memory and other threads at once: neither may show.
                let tight = pool.install(|| fit(&problems[1]));
                assert_eq!(outcome(&ample), outcome(&tight), "{what}");
            }
        }
    }
}

#[test]
fn one_shard_is_the_fit_in_memory() {
    for loss in LOSSES {
        let n_cols = 600;
        let sharded = Sharded::new(loss, n_cols);
        let one = sharded.open(1 << 32, 1000);
        assert_eq!(one.n_shards(), 1);
        let data = dataset(loss, ROWS, n_cols);
        for (name, terms) in all_terms(n_cols) {
            let on_disk = sharded.stated(Arc::clone(&one), &terms);
            let in_memory = Problem::new(data.clone(), loss.build(4), &terms).unwrap();
            assert_eq!(on_disk.scaling(), in_memory.scaling());
            // λ of their own may differ in its last bit.
            let lambda = Lambda::Value(in_memory.lambda());
            let problems = [on_disk, in_memory].map(|problem| problem.with_lambda(lambda).unwrap());
            for method in MethodKind::PAPER {
                let fits = problems.each_ref().map(|problem| Run::new(problem, settings(method, 3)).fit().unwrap());
                assert_eq!(bits(&fits[0].point), bits(&fits[1].point), "{loss:?}, {name}, {method:?}");
            }
        }
    }
}

#[test]
fn a_run_that_is_broken_off_in_a_shard_resumes_to_the_same_bits() {
    for (loss, penalty) in [(LossKind::Logistic, "l1"), (LossKind::Softmax, "groups"), (LossKind::Squared, "bounds")] {
        let sharded = Sharded::new(loss, 60);
        let terms = all_terms(60).into_iter().find(|(name, _)| *name == penalty).unwrap().1;
        let [ample, tight] = sharded.both(&terms);
        for method in MethodKind::PAPER {
            let whole = Run::new(&ample, settings(method, 6)).fit().unwrap();
            // Within the first shard, where one gives way to the next, in the last batch but one, after zeros were dropped.
            for (epoch, step) in [(1, 1), (2, 2), (2, 9), (5, 4)] {
                let kept = sharded.directory.path().join(format!("{method:?}-{epoch}-{step}"));
                let mut stop = StopAt { epoch, step };
                let run = Run::new(&tight, settings(method, 6)).checkpoint(&kept, false).observe(&mut stop);
                assert_eq!(run.fit().unwrap().status, Status::Stopped);
                // What is kept of a run with little memory is gone on with by one with much.
                let resumed = Run::new(&ample, settings(method, 6)).checkpoint(&kept, true).fit().unwrap();
                assert_eq!(outcome(&resumed), outcome(&whole), "{loss:?}, {method:?}, {epoch}:{step}");
            }
        }
    }
}

#[test]
fn steps_are_sized_and_batches_refused_as_the_rows_have_it() {
    let loss = LossKind::Logistic;
    let (sharded, terms) = (Sharded::new(loss, 40), Terms::default());
    let in_memory = Problem::new(dataset(loss, ROWS, 40), loss.build(2), &terms).unwrap();
    let [ample, tight] = sharded.both(&terms);
    let steps = [&ample, &tight, &in_memory].map(|problem| obprox::schedule::auto(problem, BATCH).unwrap());
    assert_eq!(steps[0], steps[1]);
    assert!((steps[0] / steps[2] - 1.0).abs() < 1e-9, "{steps:?}");
    // All rows in one batch take the memory of all.
    let all = |batch| Settings { batch, ..settings(MethodKind::ProxSg, 2) };
    assert!(Run::new(&ample, all(Batch::All)).fit().is_ok());
    let said = Run::new(&tight, all(Batch::Rows(ROWS - 1))).fit();
    if let Err(said) = said {
        assert!(said.to_string().contains("smaller batch"), "{said}");
    }
}

#[test]
fn standardised_columns_are_those_in_memory() {
    for (loss, n_cols) in [(LossKind::Logistic, 700), (LossKind::Squared, 15)] {
        let sharded = Sharded::new(loss, n_cols);
        let terms = Terms { standardize: true, lambda: Lambda::OfMax(0.05), ..Terms::default() };
        let whole = Problem::new(dataset(loss, ROWS, n_cols), loss.build(2), &terms).unwrap();
        let settings = Settings { tolerance: 1e-9, ..Settings::default() };
        let fits = sharded.both(&terms).map(|problem| {
            assert_eq!(problem.scaling().unwrap().scale, whole.scaling().unwrap().scale);
            Run::new(&problem, settings.clone()).fit().unwrap()
        });
        assert_eq!(bits(&fits[0].point), bits(&fits[1].point));
        assert!(certify(&whole, &fits[0].point).unwrap().within(3e-9));
        // What scaled columns need is more than what their shards need.
        let shards = sharded.open(sharded.open(1 << 32, 64).least_memory(), 64);
        let said = Problem::of_shards(shards, loss.build(2), &terms).unwrap_err().to_string();
        assert!(said.contains("memory") && said.contains("or more"), "{said}");
    }
}

#[test]
fn a_path_and_a_number_of_features_are_those_in_memory() {
    for (loss, n_cols) in [(LossKind::Logistic, 700), (LossKind::Squared, 15)] {
        let sharded = Sharded::new(loss, n_cols);
        let terms = Terms { standardize: true, ..Terms::default() };
        let whole = Problem::new(dataset(loss, ROWS, n_cols), loss.build(2), &terms).unwrap();
        let [ample, tight] = sharded.both(&terms);
        let lambdas = Lambdas::Spaced { count: 6, ratio: Some(0.1) };
        let paths = [&ample, &tight, &whole].map(|problem| {
            let settings = Settings { tolerance: 1e-9, ..Settings::default() };
            Path::new(problem).settings(settings).lambdas(lambdas.clone()).run().unwrap().steps
        });
        for ((a, b), c) in paths[0].iter().zip(&paths[1]).zip(&paths[2]) {
            assert_eq!(a.model.blocks, b.model.blocks);
            assert!((a.lambda / c.lambda - 1.0).abs() < 1e-12);
            let off = a.certificate.objective / c.certificate.objective - 1.0;
            assert!(off.abs() < 3e-9, "{loss:?}, λ {}: {off:e}", a.lambda);
        }
        let found =
            [&ample, &whole].map(|problem| obprox::path::at_most(problem, 5, &Settings::default(), None).unwrap());
        assert!(found[0].features <= 5 && found[0].features == found[1].features);
    }
}
