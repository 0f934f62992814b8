//! Parquet: columns in pages, of which those that are wanted are read.

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::reader::ChunkReader;

use super::ReadOptions;
use super::source::Source;
use super::table::Table;
use super::table::arrow::Plan;
use crate::{Error, Result, memory};

/// Reads the file at `path`, or all bytes of the stream where it is none.
pub(super) fn read(source: Source, path: Option<&Path>, options: &ReadOptions) -> Result<Table> {
    let name = source.name.clone();
    match path.filter(|_| source.is_plain()) {
        Some(path) => read_chunks(&name, File::open(path).map_err(Error::reading(path))?, options),
        None => read_chunks(&name, Bytes::from(source.into_bytes()?), options),
    }
}

fn read_chunks(name: &str, chunks: impl ChunkReader + 'static, options: &ReadOptions) -> Result<Table> {
    let damaged = |error| Error::file(name, format!("is no sound Parquet file ({error}): get the file again"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(chunks).map_err(damaged)?;
    let plan = Plan::of(name, builder.schema(), options)?;
    let rows = builder.metadata().file_metadata().num_rows().max(0) as u128;
    memory::check(8 * rows * plan.fields.len() as u128, || format!("{name}: {rows} rows"))?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), plan.fields.iter().copied());
    let batches = builder.with_projection(mask).build().map_err(damaged)?;
    plan.read(batches)
}
