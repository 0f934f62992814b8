//! Parquet and Arrow files as pyarrow, polars and pandas write them (`columns/make.py`).

use std::path::{Path, PathBuf};

use obprox::data::{Categorical, Encoding, Missing, ReadOptions, read};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/columns").join(name)
}

fn options(missing: Missing) -> ReadOptions {
    let categorical = Categorical { all: true, names: Vec::new() };
    ReadOptions { encoding: Encoding { categorical, missing, ..Encoding::default() }, ..ReadOptions::default() }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    for name in ["pyarrow.parquet", "pyarrow.feather", "stream.arrow"] {
        let error = read(file(name), &options(Missing::Mean)).unwrap_err().to_string();
        assert!(error.contains("built without Parquet and Arrow: build it with the feature `parquet`"), "{error}");
    }
}

#[cfg(feature = "parquet")]
mod with_parquet {
    use super::*;
    use obprox::data::{Dataset, Label, read_from};

    /// The same table in words.
    const PEOPLE: &str = "\
churn,age,visits,half,score,price,country,plan,ok
1,31,1,0.5,0.25,1.25,FR,\"a, b\",1
0,45,2,1,,0,DE,pro,
1,,3,1.5,-1.5,,FR,pro,0
0,60,4,-2,2,-3.5,,\"a, b\",1
1,22,5,0,0,9.99,US,pro,1
0,51,1099511627776,4,0.001,7,DE,ü,0
";

    const FILES: [&str; 9] = [
        "pyarrow.parquet",
        "zstd.parquet",
        "gzip.parquet",
        "pandas.parquet",
        "polars.parquet",
        "polars.arrow",
        "pyarrow.feather",
        "zstd.arrow",
        "stream.arrow",
    ];

    fn csv(options: &ReadOptions) -> Dataset {
        read_from("people.csv", PEOPLE.as_bytes(), options).unwrap()
    }

    fn cells(data: &Dataset) -> Vec<Vec<f64>> {
        let row = |row: usize| {
            let mut cells = vec![0.0; data.matrix.n_cols()];
            data.matrix.for_each(row, |column, value| cells[column] = value);
            cells
        };
        (0..data.matrix.n_rows()).map(row).collect()
    }

    #[test]
    fn every_type_and_writer_gives_the_table_that_csv_gives() {
        for missing in [Missing::Mean, Missing::Zero, Missing::Indicator] {
            let expected = csv(&options(missing));
            for name in FILES {
                let data = read(file(name), &options(missing)).unwrap();
                assert_eq!(data.names, expected.names, "{name}");
                assert_eq!(cells(&data), cells(&expected), "{name}");
                assert_eq!(data.targets[..], expected.targets[..], "{name}");
                assert_eq!(data.recipe, expected.recipe, "{name}");
            }
        }
        let refused = read(file("pyarrow.parquet"), &options(Missing::Refuse)).unwrap_err().to_string();
        assert!(refused.contains("column `age`: 1 value is missing, the first in row 3"), "{refused}");
    }

    #[test]
    fn a_recipe_goes_from_format_to_format() {
        let expected = csv(&options(Missing::Indicator));
        for name in FILES {
            let learnt = read(file(name), &options(Missing::Indicator)).unwrap();
            let by = |recipe| ReadOptions { recipe, ..ReadOptions::default() };
            let there = csv(&by(learnt.recipe));
            let here = read(file(name), &by(expected.recipe.clone())).unwrap();
            assert_eq!(cells(&there), cells(&expected), "{name}");
            assert_eq!(cells(&here), cells(&expected), "{name}");
        }
    }

    #[test]
    fn a_stream_compressed_or_not_is_the_same() {
        let expected = cells(&read(file("pyarrow.parquet"), &options(Missing::Mean)).unwrap());
        for name in ["pyarrow.parquet", "pyarrow.feather", "stream.arrow"] {
            let bytes = std::fs::read(file(name)).unwrap();
            let packed = zstd::encode_all(&bytes[..], 3).unwrap();
            for bytes in [bytes, packed] {
                let data = read_from(name, std::io::Cursor::new(bytes), &options(Missing::Mean)).unwrap();
                assert_eq!(cells(&data), expected, "{name}");
            }
        }
    }

    #[test]
    fn columns_are_chosen_before_they_are_read() {
        let encoding = Encoding { keep: Some(vec!["visits".into(), "half".into()]), ..Encoding::default() };
        let data = read(file("pyarrow.parquet"), &ReadOptions { encoding, ..ReadOptions::default() }).unwrap();
        assert_eq!(data.names.as_deref().unwrap(), ["visits", "half"]);
        // Dates are in the way only where somebody wants them.
        let error = |options: &ReadOptions| read(file("dates.parquet"), options).unwrap_err().to_string();
        assert!(error(&ReadOptions::default()).contains("column `when`: dates and times are no numbers"));
        let encoding = Encoding { drop: vec!["when".into()], ..Encoding::default() };
        let dropped = error(&ReadOptions { encoding, ..ReadOptions::default() });
        assert!(dropped.contains("column `raw`: Binary is no type for features: drop it"), "{dropped}");
        let words = read(file("pyarrow.parquet"), &ReadOptions::default()).unwrap_err().to_string();
        assert!(words.contains("column `country`: has words: encode the column (categorical)"), "{words}");
        let categorical = Categorical { all: false, names: vec!["visits".into()] };
        let keep = Some(vec!["visits".into()]);
        let encoding = Encoding { categorical, keep, ..Encoding::default() };
        let data = read(file("pyarrow.parquet"), &ReadOptions { encoding, ..ReadOptions::default() }).unwrap();
        assert_eq!(data.names.unwrap()[1], "visits=1099511627776");
    }

    #[test]
    fn lists_are_sparse_features() {
        for name in ["lists.parquet", "lists.feather"] {
            let data = read(file(name), &ReadOptions { label: Label::First, ..ReadOptions::default() }).unwrap();
            let mut expected = vec![vec![0.0; 8 + 3 + 2 + 5 + 3]; 4];
            for (row, feature, value) in [
                (0, 3, 0.5),
                (0, 1, 2.0),
                (2, 7, -1.0),
                (0, 8, 1.0),
                (1, 10, 1.0),
                (1, 9, 1.0),
                (3, 10, 1.0),
                (0, 11, 1.0),
                (0, 12, 2.0),
                (1, 12, 0.5),
                (2, 11, 3.0),
                (0, 17, 1.5),
                (2, 13, 2.0),
                (2, 14, 3.0),
                (0, 19, 4.0),
                (3, 18, 1.0),
                (3, 20, 1.0),
            ] {
                expected[row][feature] = value;
            }
            assert_eq!(cells(&data), expected, "{name}");
            let names = data.names.as_ref().unwrap();
            assert_eq!((&names[3][..], &names[10][..], &names[20][..]), ("word_indices[3]", "tags[2]", "pair[2]"));
            let by = ReadOptions { recipe: data.recipe, n_cols: Some(21), ..ReadOptions::default() };
            assert_eq!(cells(&read(file(name), &by).unwrap()), expected, "{name}");
        }
        let error = |name| read(file(name), &ReadOptions::default()).unwrap_err().to_string();
        assert!(error("twice.parquet").ends_with("column `tags`: row 1: the index 1 is there twice"));
        assert!(error("infinite.feather").ends_with("column `a`: row 2: inf is not a finite number"));
    }

    #[test]
    fn what_is_cut_off_or_forged_is_an_error() {
        for name in ["pyarrow.parquet", "pyarrow.feather", "stream.arrow"] {
            let bytes = std::fs::read(file(name)).unwrap();
            for len in [8, 12, bytes.len() / 2, bytes.len() - 3] {
                let outcome = read_from(name, std::io::Cursor::new(bytes[..len].to_vec()), &options(Missing::Mean));
                if name == "stream.arrow" && len == bytes.len() - 3 {
                    continue; // the end of a stream is zeros, or the end
                }
                let error = outcome.unwrap_err().to_string();
                assert!(error.starts_with(name) && error.ends_with("get the file again"), "{error}");
            }
        }
    }
}
