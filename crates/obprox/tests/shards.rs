//! Rows on a disk: the fit is the same whatever is kept in memory, and that of the rows in memory to rounding.

mod common;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use common::shards::{LOSSES, both, dataset, sharding, write_text};
use obprox::data::{Dataset, Matrix, ReadOptions, ShardedData, write_cache, write_libsvm};
use obprox::loss::LossKind;
use obprox::{ClassWeights, Fit, Lambda, Problem, Run, Settings, Status, Terms, certify};

fn fit(problem: &Problem) -> Fit {
    Run::new(problem, Settings { tolerance: 1e-9, ..Settings::default() }).fit().unwrap()
}

#[test]
fn a_fit_does_not_depend_on_the_memory_and_is_that_of_rows_in_memory() {
    for (n_rows, n_cols) in [(700, 20), (500, 900)] {
        for loss in LOSSES {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("rows.svm");
            let data = dataset(loss, n_rows, n_cols);
            write_text(&data, &path);
            let shards = both(&[path], directory.path(), 128, n_cols);
            assert_eq!((shards[0].n_rows(), shards[0].nnz()), (n_rows, data.matrix.nnz()));
            assert_eq!(shards[0].n_shards(), n_rows.div_ceil(128));
            for (intercept, weighted, l2) in [(true, false, 0.0), (false, true, 0.01), (true, true, 0.0)] {
                let row_weights = weighted.then(|| (0..n_rows).map(|row| (row % 4) as f64).collect());
                let terms = Terms { lambda: Lambda::OfMax(0.05), l2, intercept, row_weights, ..Terms::default() };
                let what = format!("{loss:?}, {n_cols} columns, intercept {intercept}, weights {weighted}");
                let whole = Problem::new(data.clone(), loss.build(4), &terms).unwrap();
                let whole_fit = fit(&whole);
                let fits = shards.each_ref().map(|shards| {
                    let problem = Problem::of_shards(Arc::clone(shards), loss.build(4), &terms).unwrap();
                    let off = problem.lambda_max() / whole.lambda_max() - 1.0;
                    assert!(off.abs() < 1e-12, "{what}: λ_max is off by {off:e}");
                    let fit = fit(&problem);
                    assert_eq!(fit.status, Status::Converged, "{what}: {:?}", fit.certificate);
                    let again = certify(&problem, &fit.point).unwrap();
                    assert!((again.objective - fit.certificate.objective).abs() <= 1e-12 * again.objective, "{what}");
                    fit
                });
                assert_eq!(fits[0].point, fits[1].point, "{what}");
                assert_eq!(fits[0].certificate, fits[1].certificate, "{what}");
                let [on_disk, in_memory] = [&fits[0], &whole_fit].map(|fit| fit.certificate.objective);
                assert!((on_disk - in_memory).abs() <= 3e-9 * in_memory.abs(), "{what}: {on_disk} and {in_memory}");
                // What was found from the shards is certified by the rows in memory.
                let certified = certify(&whole, &fits[0].point).unwrap();
                assert!(certified.within(3e-9), "{what}: {certified:?}");
            }
        }
    }
}

#[test]
fn features_without_penalty_and_classes_with_weights() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.svm");
    for (loss, n_cols) in [(LossKind::Logistic, 600), (LossKind::Squared, 15)] {
        let data = dataset(loss, 400, n_cols);
        write_text(&data, &path);
        let shards = both(std::slice::from_ref(&path), directory.path(), 50, n_cols);
        let feature_weights = (0..n_cols).map(|feature| if feature % 40 == 3 { 0.0 } else { 1.0 }).collect();
        let class_weights = (loss == LossKind::Logistic).then_some(ClassWeights::Balanced);
        let lambda = Lambda::OfMax(0.1);
        let terms = Terms { lambda, feature_weights: Some(feature_weights), class_weights, ..Terms::default() };
        let whole = Problem::new(data, loss.build(2), &terms).unwrap();
        let fits = shards.map(|shards| fit(&Problem::of_shards(shards, loss.build(2), &terms).unwrap()));
        assert_eq!(fits[0].point, fits[1].point);
        assert_eq!(fits[0].status, Status::Converged, "{:?}", fits[0].certificate);
        assert!(certify(&whole, &fits[0].point).unwrap().within(3e-9));
    }
}

#[test]
fn a_run_resumes_to_the_same_bits() {
    for (loss, n_cols) in [(LossKind::Logistic, 700), (LossKind::SquaredHinge, 18), (LossKind::Huber(0.01), 700)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.svm");
        write_text(&dataset(loss, 400, n_cols), &path);
        let [shards, _] = both(&[path], directory.path(), 64, n_cols);
        let terms = Terms { lambda: Lambda::OfMax(0.02), ..Terms::default() };
        let problem = Problem::of_shards(shards, loss.build(2), &terms).unwrap();
        let settings = |epochs| Settings { tolerance: 0.0, epochs, ..Settings::default() };
        let whole = Run::new(&problem, settings(6)).fit().unwrap();
        let kept = directory.path().join("kept");
        Run::new(&problem, settings(2)).checkpoint(&kept, false).fit().unwrap();
        let resumed = Run::new(&problem, settings(6)).checkpoint(&kept, true).fit().unwrap();
        assert_eq!((resumed.resumed_epochs, resumed.point), (2, whole.point), "{loss:?}");
    }
}

#[test]
fn sources_of_all_kinds_are_parsed_once() {
    let directory = tempfile::tempdir().unwrap();
    let data = dataset(LossKind::Logistic, 300, 40);
    let rows = |range: std::ops::Range<usize>| {
        let entries: Vec<Vec<(u32, f64)>> = range
            .clone()
            .map(|row| {
                let mut entries = Vec::new();
                data.matrix.for_each(row, |column, value| entries.push((column as u32, value)));
                entries
            })
            .collect();
        Dataset::new(Matrix::from_rows(40, &entries), data.targets[range].to_vec())
    };
    let path = |name: &str| directory.path().join(name);
    let (text, packed, cached) = (path("a.svm"), path("b.svm.zst"), path("c.obx"));
    write_text(&rows(0..100), &text);
    let mut plain = Vec::new();
    write_libsvm(&rows(100..210), &mut plain).unwrap();
    fs::write(&packed, zstd::encode_all(&plain[..], 1).unwrap()).unwrap();
    write_cache(&rows(210..300), &cached).unwrap();
    let sources = [text.clone(), packed, cached];
    let mut told = Vec::new();
    let open = |told: &mut Vec<(usize, usize)>| {
        let sharding = sharding(directory.path(), 1 << 30, 64);
        ShardedData::open(&sources, &ReadOptions::default(), &sharding, &mut |rows, shards| told.push((rows, shards)))
    };
    let shards = open(&mut told).unwrap();
    assert_eq!(told, [(64, 1), (128, 2), (192, 3), (256, 4), (300, 5)]);
    assert_eq!((shards.n_rows(), shards.n_cols(), shards.nnz()), (300, 40, data.matrix.nnz()));
    let terms = Terms { lambda: Lambda::OfMax(0.1), ..Terms::default() };
    let on_disk = fit(&Problem::of_shards(Arc::new(shards), LossKind::Logistic.build(2), &terms).unwrap());
    let in_memory = fit(&Problem::new(data.clone(), LossKind::Logistic.build(2), &terms).unwrap());
    let off = on_disk.certificate.objective / in_memory.certificate.objective - 1.0;
    assert!(off.abs() < 3e-9, "{off:e}");

    // Parsed once, and once more when a source has changed.
    told.clear();
    open(&mut told).unwrap();
    assert!(told.is_empty());
    let mut longer = fs::read(&text).unwrap();
    longer.extend_from_slice(b"1 3:0.5\n");
    fs::write(&text, longer).unwrap();
    assert_eq!(open(&mut told).unwrap().n_rows(), 301);
    assert_eq!(told.len(), 5);
}

#[test]
fn tables_must_have_the_same_columns() {
    let directory = tempfile::tempdir().unwrap();
    let table = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let a = table("a.csv", "y,u,v\n1,0.5,2\n0,1.5,3\n");
    let b = table("b.csv", "y,u,v\n0,2.5,1\n1,0,7\n1,4,4\n");
    let c = table("c.csv", "y,u,w\n0,2.5,1\n");
    let open = |sources: &[PathBuf]| {
        ShardedData::open(sources, &ReadOptions::default(), &sharding(directory.path(), 1 << 30, 2), &mut |_, _| {})
    };
    let shards = open(&[a.clone(), b]).unwrap();
    assert_eq!((shards.n_rows(), shards.n_shards()), (5, 3));
    assert_eq!(shards.names().unwrap(), ["u", "v"]);
    let said = open(&[a, c.clone()]).unwrap_err().to_string();
    assert!(said.contains("c.csv: has other columns"), "{said}");
    let wrong = table("d.csv", "y,u,v\n1,2,3\n1,x,3\n");
    let said = open(&[wrong]).unwrap_err().to_string();
    assert!(said.contains("d.csv:3:3"), "{said}");
}

#[test]
fn a_shard_that_is_not_what_it_was_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.svm");
    write_text(&dataset(LossKind::Squared, 200, 30), &path);
    let [shards, _] = both(std::slice::from_ref(&path), &directory.path().join("cache"), 64, 30);
    let (first, second) = (shards.directory().join("000000.obx"), shards.directory().join("000001.obx"));
    let bytes = fs::read(&second).unwrap();
    let problem = Problem::of_shards(Arc::clone(&shards), LossKind::Squared.build(1), &Terms::default()).unwrap();
    type Damage<'a> = &'a dyn Fn();
    let damages: [(&str, Damage); 3] = [
        ("truncated", &|| fs::write(&second, &bytes[..bytes.len() / 2]).unwrap()),
        ("missing", &|| fs::remove_file(&second).unwrap()),
        ("another", &|| fs::write(&second, fs::read(&first).unwrap()).unwrap()),
    ];
    for (what, damage) in damages {
        damage();
        let fitted = problem.fit().unwrap_err().to_string();
        let stated = Problem::of_shards(Arc::clone(&shards), LossKind::Squared.build(1), &Terms::default());
        for said in [fitted, stated.unwrap_err().to_string()] {
            assert!(said.contains("000001.obx") && said.contains("remove the directory"), "{what}: {said}");
        }
    }
    fs::write(&second, &bytes).unwrap();
    assert!(problem.fit().is_ok());
    let said =
        ShardedData::open(&[path], &ReadOptions::default(), &sharding(directory.path(), 1000, 64), &mut |_, _| {});
    assert!(said.unwrap_err().to_string().contains("memory"));
}

#[test]
fn what_needs_rows_in_memory_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.svm");
    write_text(&dataset(LossKind::Logistic, 100, 30), &path);
    let [shards, _] = both(&[path], directory.path(), 64, 30);
    let problem = Problem::of_shards(shards, LossKind::Logistic.build(2), &Terms::default()).unwrap();
    let said = obprox::CrossValidation::new(&problem).run().unwrap_err().to_string();
    assert!(said.contains("needs the rows in memory"), "{said}");
}
