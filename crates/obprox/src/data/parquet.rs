//! Parquet: columns in pages, of which those that are wanted are read.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, SerializedPageReader};

use super::ReadOptions;
use super::source::Source;
use super::table::Table;
use super::table::arrow::Plan;
use crate::{Error, Result, memory};

/// Reads the file at `path`, or all bytes of the stream where it is none.
pub(super) fn read(source: Source, path: Option<&Path>, options: &ReadOptions) -> Result<Table> {
    let name = source.name.clone();
    match path.filter(|_| source.is_plain()) {
        Some(path) => {
            let open = || File::open(path).map_err(Error::reading(path));
            read_chunks(&name, open()?, open()?, options)
        }
        None => {
            let bytes = Bytes::from(source.into_bytes()?);
            read_chunks(&name, bytes.clone(), bytes, options)
        }
    }
}

/// Reads the chunks of a file; `again` is the same file, for a look before.
fn read_chunks<R: ChunkReader + 'static>(name: &str, chunks: R, again: R, options: &ReadOptions) -> Result<Table> {
    let damaged = |error| Error::file(name, format!("is no sound Parquet file ({error}): get the file again"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(chunks).map_err(damaged)?;
    let plan = Plan::of(name, builder.schema(), options)?;
    let rows = builder.metadata().file_metadata().num_rows().max(0) as u128;
    memory::check(8 * rows * plan.fields.len() as u128, || format!("{name}: {rows} rows"))?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), plan.fields.iter().copied());
    check_dictionaries(again, builder.metadata(), &mask).map_err(damaged)?;
    let batches = builder.with_projection(mask).build().map_err(damaged)?;
    plan.read(batches)
}

/// Memory is taken for as many values as a dictionary says it has, so it is looked at before whether it can have them.
fn check_dictionaries<R: ChunkReader + 'static>(
    chunks: R,
    file: &ParquetMetaData,
    wanted: &ProjectionMask,
) -> parquet::errors::Result<()> {
    let chunks = Arc::new(chunks);
    for group in file.row_groups() {
        let columns = group.columns().iter().enumerate().filter(|(leaf, _)| wanted.leaf_included(*leaf));
        for (_, column) in columns {
            let mut pages = SerializedPageReader::new(Arc::clone(&chunks), column, group.num_rows() as usize, None)?;
            while let Some(page) = pages.peek_next_page()? {
                if !page.is_dict {
                    pages.skip_next_page()?;
                } else if let Some(Page::DictionaryPage { buf, num_values, .. }) = pages.get_next_page()?
                    && num_values as usize > buf.len()
                {
                    let bytes = buf.len();
                    return Err(ParquetError::General(format!("{num_values} values in a dictionary of {bytes} bytes")));
                }
            }
        }
    }
    Ok(())
}
