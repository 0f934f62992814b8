//! Parquet and Arrow.

use std::io::Cursor;

use obprox::data::{Categorical, Encoding, Format, Missing, ReadOptions, read_from};

use super::assert_sound;
use crate::Reader;

fn columns(name: &'static str, format: Format, seeds: &[&[u8]]) -> Reader {
    Reader::new(name, seeds.iter().map(|seed| seed.to_vec()).collect(), move |bytes| {
        let categorical = Categorical { all: true, names: Vec::new() };
        let encoding = Encoding { categorical, missing: Missing::Indicator, ..Encoding::default() };
        let options = ReadOptions { format: Some(format), encoding, ..ReadOptions::default() };
        let outcome = read_from("file", Cursor::new(bytes.to_vec()), &options);
        if let Ok(dataset) = &outcome {
            assert_sound(dataset);
        }
        outcome.is_ok()
    })
}

pub fn parquet() -> Reader {
    let seeds: [&[u8]; 4] = [
        include_bytes!("../../../crates/obprox/tests/columns/pyarrow.parquet"),
        include_bytes!("../../../crates/obprox/tests/columns/zstd.parquet"),
        include_bytes!("../../../crates/obprox/tests/columns/polars.parquet"),
        include_bytes!("../../../crates/obprox/tests/columns/lists.parquet"),
    ];
    columns("parquet", Format::Parquet, &seeds)
}

pub fn arrow() -> Reader {
    let seeds: [&[u8]; 4] = [
        include_bytes!("../../../crates/obprox/tests/columns/pyarrow.feather"),
        include_bytes!("../../../crates/obprox/tests/columns/polars.arrow"),
        include_bytes!("../../../crates/obprox/tests/columns/stream.arrow"),
        include_bytes!("../../../crates/obprox/tests/columns/lists.feather"),
    ];
    columns("arrow", Format::Arrow, &seeds)
}
