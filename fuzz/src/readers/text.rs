//! LIBSVM and CSV, plain and compressed, and files of one number a line.

use std::io::{Cursor, Write};

use obprox::data::{Categorical, Dataset, Encoding, Format, Missing, ReadOptions, read_from, read_vector};

use super::assert_sound;
use crate::mutate::Draw;
use crate::{Reader, Scratch};

/// More than any of the files has; the usual blocks would take most of the time.
const WHOLE: usize = 1 << 16;

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
fn text(name: &'static str, format: Format, seeds: &[&str]) -> Reader {
    let seeds = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    Reader::new(name, seeds, move |bytes| {
        let options = ReadOptions { format: Some(format), block: WHOLE, ..ReadOptions::default() };
        let whole = read_from("file", Cursor::new(bytes.to_vec()), &options);
        if let Ok(dataset) = &whole {
            assert_sound(dataset);
        }
        let block = 1 + Draw::of_file(bytes).below(40);
        let parts = read_from("file", Cursor::new(bytes.to_vec()), &ReadOptions { block, ..options });
        assert_eq!(shown(&whole), shown(&parts), "blocks of {block}");
        whole.is_ok()
    })
}

pub fn libsvm() -> Reader {
    let seeds = [
        "+1 1:0.5 3:2 # note\n-1 2:1e-3\n\n# none\n2.5 qid:3 1:1 4294967295:7\n",
        "1 1:1 2:1 3:1\n0 1:1\n1\n0 3:1\n",
        "-1 1:-0.25\t2:0.125 \r\n1 7:1e300\r\n",
    ];
    text("libsvm", Format::Libsvm, &seeds)
}

pub fn csv() -> Reader {
    let seeds = [
        "y,a,\"b, c\",d\n1,0.5,2,-3\n0,1e-3,0,4\n",
        "1;2;3\n4;5;6\n7;0;0\n\n0;0;0\n",
        "1\t\"2\"\t3.25\r\n-1\t.5\t1e9\r\n",
        "1,0,0,0,0,0,0,0,0,0,0,0,7\n0,0,0,0,0,0,0,0,0,0,0,0,0\n",
    ];
    text("csv", Format::Csv, &seeds)
}

/// Tables with words and gaps: what is wrong or found must not depend on blocks, and a table that is read again by the
/// recipe it gave must be the same.
pub fn table() -> Reader {
    let seeds =
        ["y,age,city\nyes,31,\"a, b\"\nno,,Rome\nyes,7,\n", "1;NA;red\n2;5;\n1;?;blue\n", "y\tw\r\n0\t1\r\n1\t01\r\n"];
    let seeds = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    Reader::new("table", seeds, |bytes| {
        let categorical = Categorical { all: true, names: Vec::new() };
        let encoding = Encoding { categorical, missing: Missing::Indicator, ..Encoding::default() };
        let options = ReadOptions { format: Some(Format::Csv), block: WHOLE, encoding, ..ReadOptions::default() };
        let read = |options: &ReadOptions| read_from("file", Cursor::new(bytes.to_vec()), options);
        let whole = read(&options);
        let block = 1 + Draw::of_file(bytes).below(40);
        assert_eq!(shown(&whole), shown(&read(&ReadOptions { block, ..options.clone() })), "blocks of {block}");
        let Ok(mut dataset) = whole else { return false };
        assert_sound(&dataset);
        let names = dataset.names.take();
        let recipe = dataset.recipe.clone();
        let encoding = Encoding::default();
        let again = read(&ReadOptions { recipe, encoding, n_cols: names.map(|names| names.len()), ..options });
        assert_eq!(shown(&Ok(dataset)), shown(&again), "by its recipe");
        true
    })
}

/// Text in each of the four compressions.
fn packed(plain: &str) -> std::io::Result<Vec<Vec<u8>>> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(plain.as_bytes())?;
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
    bzip2.write_all(plain.as_bytes())?;
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(plain.as_bytes())?;
    Ok(vec![gzip.finish()?, bzip2.finish()?, xz.finish()?, zstd::encode_all(plain.as_bytes(), 3)?])
}

pub fn compressed() -> Reader {
    let seeds = packed(&"+1 1:0.5 3:2\n-1 2:1e-3\n".repeat(40)).expect("memory does not fail");
    Reader::new("compressed-text", seeds, |bytes| {
        let options = ReadOptions { block: WHOLE, ..ReadOptions::default() };
        let outcome = read_from("file", Cursor::new(bytes.to_vec()), &options);
        if let Ok(dataset) = &outcome {
            assert_sound(dataset);
        }
        outcome.is_ok()
    })
}

pub fn numbers() -> Reader {
    let scratch = Scratch::new("weights");
    Reader::new("numbers", vec![b"1\n0.5\n\n 2e3 \n-7\r\n".to_vec()], move |bytes| {
        read_vector(scratch.holding(bytes)).is_ok_and(|numbers| {
            assert!(numbers.iter().all(|number| number.is_finite()));
            true
        })
    })
}
