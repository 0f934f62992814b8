//! Every reader of the library on broken files: an error or something sound, never a panic, never memory for what a file
//! only claims to be.

#[path = "common/mutate.rs"]
mod mutate;

use std::io::Cursor;
use std::path::Path;

use mutate::{Draw, every_case};
use obprox::data::{Dataset, Format, Matrix, ReadOptions, Summary, Synth, read, read_from, read_vector, write_cache};
use obprox::loss::LossKind;
use obprox::{Lambda, Method, Model, Problem, Run, Settings, Terms};

fn sound(dataset: &Dataset) {
    let matrix = &dataset.matrix;
    assert_eq!(matrix.n_rows(), dataset.targets.len());
    assert!(dataset.names.as_ref().is_none_or(|names| names.len() == matrix.n_cols()));
    for row in 0..matrix.n_rows() {
        let mut last = None;
        matrix.for_each(row, |column, value| {
            assert!(column < matrix.n_cols() && value.is_finite() && last.is_none_or(|last| last < column));
            last = Some(column);
        });
    }
    Summary::of(dataset);
}

fn shown(outcome: &obprox::Result<Dataset>) -> String {
    match outcome {
        Err(error) => error.to_string(),
        Ok(dataset) => {
            let mut text = format!("{} {:?}", dataset.matrix.n_cols(), dataset.names);
            for (row, target) in dataset.targets.iter().enumerate() {
                text += &format!("\n{:x}", target.to_bits());
                dataset.matrix.for_each(row, |column, value| text += &format!(" {column}:{:x}", value.to_bits()));
            }
            text
        }
    }
}

/// Text is read whole and in small blocks: what is found must be the same, or the same must be wrong with it.
fn text(name: &'static str, format: Format, seeds: &[&str]) {
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    every_case(name, &seeds, 3000, |bytes, _, draw| {
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let whole = read_from("file", Cursor::new(bytes.to_vec()), &options);
        if let Ok(dataset) = &whole {
            sound(dataset);
        }
        let block = 1 + draw.below(40);
        let parts = read_from("file", Cursor::new(bytes.to_vec()), &ReadOptions { block, ..options });
        assert_eq!(shown(&whole), shown(&parts), "blocks of {block}");
    });
}

#[test]
fn libsvm_text() {
    let seeds = [
        "+1 1:0.5 3:2 # note\n-1 2:1e-3\n\n# none\n2.5 qid:3 1:1 4294967295:7\n",
        "1 1:1 2:1 3:1\n0 1:1\n1\n0 3:1\n",
        "-1 1:-0.25\t2:0.125 \r\n1 7:1e300\r\n",
    ];
    text("LIBSVM", Format::Libsvm, &seeds);
}

#[test]
fn csv_text() {
    let seeds = [
        "y,a,\"b, c\",d\n1,0.5,2,-3\n0,1e-3,0,4\n",
        "1;2;3\n4;5;6\n7;0;0\n\n0;0;0\n",
        "1\t\"2\"\t3.25\r\n-1\t.5\t1e9\r\n",
        "1,0,0,0,0,0,0,0,0,0,0,0,7\n0,0,0,0,0,0,0,0,0,0,0,0,0\n",
    ];
    text("CSV", Format::Csv, &seeds);
}

#[test]
fn compressed_text() {
    use std::io::Write;
    let plain = "+1 1:0.5 3:2\n-1 2:1e-3\n".repeat(40);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(plain.as_bytes()).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip2.write_all(plain.as_bytes()).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(plain.as_bytes()).unwrap();
    let zstd = zstd::encode_all(plain.as_bytes(), 3).unwrap();
    let seeds = [gzip.finish().unwrap(), bzip2.finish().unwrap(), xz.finish().unwrap(), zstd];
    every_case("compressed", &seeds, 1500, |bytes, _, _| {
        if let Ok(dataset) = read_from("file", Cursor::new(bytes.to_vec()), &ReadOptions::default()) {
            sound(&dataset);
        }
    });
}

#[test]
fn numbers_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("weights");
    every_case("numbers", &[b"1\n0.5\n\n 2e3 \n-7\r\n".to_vec()], 1000, |bytes, _, _| {
        std::fs::write(&path, bytes).unwrap();
        let _ = read_vector(&path);
    });
}

/// Caches of every storage.
fn caches(path: &Path) -> Vec<Vec<u8>> {
    let sparse = |value: f64| Matrix::from_rows(9, &[vec![(0, value), (8, value)], vec![], vec![(3, value)]]);
    let read = |text: &str| read_from("text", Cursor::new(text.to_owned()), &ReadOptions::default()).unwrap();
    let mut sets: Vec<Dataset> =
        [1.0, 0.5, 0.1].map(|value| Dataset::new(sparse(value), vec![1.0, -1.0, 0.5])).to_vec();
    sets.push(read("y,a,b\n1,2,3\n0,4,5\n"));
    sets.push(read("y,a,b\n1,0.1,3\n0,4,5\n"));
    let bytes = |set: &Dataset| {
        write_cache(set, path).unwrap();
        std::fs::read(path).unwrap()
    };
    sets.iter().map(bytes).collect()
}

#[test]
fn caches_are_whole_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.obx");
    let seeds = caches(&path);
    every_case("cache", &seeds, 1500, |bytes, _, _| {
        std::fs::write(&path, bytes).unwrap();
        let outcome = read(&path, &ReadOptions { format: Some(Format::Cache), ..ReadOptions::default() });
        assert_eq!(outcome.is_ok(), seeds.iter().any(|seed| seed == bytes), "{outcome:?}");
    });
}

/// Who means harm writes sums that fit.
fn with_sums_that_fit(bytes: &mut [u8]) {
    if bytes.len() > 68 {
        let fnv = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let sum = bytes[..56].iter().fold(0xcbf2_9ce4_8422_2325, fnv);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        let sums = bytes.len() - 4;
        let sum = crc32fast::hash(&bytes[..sums]);
        bytes[sums..].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn forged_caches_are_sound_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.obx");
    let mut taken = 0;
    every_case("forged cache", &caches(&path), 1500, |bytes, seed, _| {
        // Of the length it had, so that more than the length is looked at.
        let mut bytes = bytes.to_vec();
        bytes.resize(seed.len(), 0);
        bytes[..12].copy_from_slice(&seed[..12]);
        with_sums_that_fit(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        if let Ok(dataset) = read(&path, &ReadOptions::default()) {
            sound(&dataset);
            taken += 1;
        }
    });
    assert!(taken > 0, "none of the forgeries got as far as its payload");
}

fn problem(loss: LossKind, classes: usize) -> Problem {
    let task = match classes {
        2 => obprox::data::Task::Classification,
        classes => obprox::data::Task::Classes(classes),
    };
    let data = Synth { rows: 40, cols: 12, per_row: 5.0, support: 4, task, ..Synth::default() }.generate().unwrap();
    let terms = Terms { lambda: Lambda::OfMax(0.1), ..Terms::default() };
    Problem::new(data.dataset, loss.build(classes), &terms).unwrap()
}

#[test]
fn models() {
    let problems = [problem(LossKind::Logistic, 2), problem(LossKind::Softmax, 3)];
    let seeds: Vec<Vec<u8>> =
        problems.iter().map(|problem| problem.fit().unwrap().model.to_json().into_bytes()).collect();
    let rows = problems[0].matrix();
    every_case("model", &seeds, 3000, |bytes, _, draw: &mut Draw| {
        let Ok(text) = str::from_utf8(bytes) else { return };
        let Ok(model) = Model::from_json(text, "model.json") else { return };
        assert_eq!(model.predict(rows).len(), rows.n_rows());
        // A model of a loss that is not known here has finite weights all the same, or was refused.
        assert!(model.blocks.iter().flat_map(|block| &block.values).all(|value| value.is_finite()));
        if draw.below(4) == 0 {
            assert_eq!(Model::from_json(&model.to_json(), "again").unwrap(), model);
        }
    });
}

/// A checkpoint that is not what was written is refused; none is gone on from.
#[test]
fn checkpoints() {
    let problem = problem(LossKind::Logistic, 2);
    let directory = tempfile::tempdir().unwrap();
    let run = |method, epochs, resume| {
        let settings = Settings { epochs, tolerance: 0.0, ..Settings::with_method(method) };
        Run::new(&problem, settings).checkpoint(directory.path(), resume).fit()
    };
    let file = directory.path().join("checkpoint.obprox");
    for method in [Method::ObproxSg, Method::ProxSvrg, Method::Rda] {
        run(method, 2, false).unwrap();
        let seed = std::fs::read(&file).unwrap();
        every_case("checkpoint", std::slice::from_ref(&seed), 300, |bytes, _, _| {
            std::fs::write(&file, bytes).unwrap();
            let resumed = run(method, 2, true);
            assert_eq!(resumed.is_ok(), bytes == seed, "{method:?}");
        });
    }
}
