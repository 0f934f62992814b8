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

use super::guard::guarded;
use super::pieces::Columns;
use super::source::Source;
use super::table::arrow::Plan;
use super::table::{Missing, Table};
use super::{Dataset, ReadOptions};
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

/// Rows of a batch that is in memory at a time.
const SOME: usize = 1 << 13;

/// Hands out the rows of a file, some at a time, the first with the names of the columns. Nothing is handed out where what
/// features are made of depends on all rows: words, lists, and what stands for gaps where no recipe says so.
pub(super) fn read_pieces(
    path: &Path,
    options: &ReadOptions,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<Option<Columns>> {
    let name = path.display().to_string();
    let damaged = |error| Error::file(&name, format!("is no sound Parquet file ({error}): get the file again"));
    let open = || File::open(path).map_err(Error::reading(path));
    let (chunks, again) = (open()?, open()?);
    let opened = guarded(&name, || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(chunks).map_err(damaged)?;
        let schema = Arc::clone(builder.schema());
        let plan = Plan::of(&name, &schema, options)?;
        let depends_on_rows = !plan.is_of_numbers() || options.encoding.missing != Missing::Refuse;
        if options.recipe.is_none() && depends_on_rows {
            return Ok(None);
        }
        let mask = ProjectionMask::roots(builder.parquet_schema(), plan.fields.iter().copied());
        check_dictionaries(again, builder.metadata(), &mask).map_err(damaged)?;
        Ok(Some((schema, builder.with_projection(mask).with_batch_size(SOME).build().map_err(damaged)?)))
    })?;
    let Some((schema, mut batches)) = opened else { return Ok(None) };
    let (mut options, mut columns, mut first) = (options.clone(), None, 0);
    while let Some(batch) = guarded(&name, || Ok(batches.next()))? {
        let rows = batch.as_ref().map_or(0, |batch| batch.num_rows());
        let table = guarded(&name, || Plan::of(&name, &schema, &options)?.read(std::iter::once(batch)));
        let mut piece = table.and_then(|table| table.into_dataset(&options)).map_err(|error| match error {
            Error::File { file, message } if first > 0 => {
                Error::file(file, format!("{message} (rows are counted from row {} of the file)", first + 1))
            }
            error => error,
        })?;
        if columns.is_none() {
            let (n_cols, names) = (piece.matrix.n_cols(), piece.names.clone());
            // The others are made as the first were.
            options.recipe = options.recipe.or_else(|| piece.recipe.clone());
            columns = Some(Columns { n_cols, names, recipe: piece.recipe.take() });
        }
        first += rows;
        each(piece)?;
    }
    Ok(columns)
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

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
    use parquet::arrow::ArrowWriter;

    use super::*;
    use crate::data::{read, read_pieces};

    fn write(path: &Path, columns: Vec<(&str, ArrayRef)>) {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    fn numbers(gap: Option<usize>) -> ArrayRef {
        let number = |row: usize| (Some(row) != gap).then_some((row % 97) as f64);
        Arc::new((0..2 * SOME + 100).map(number).collect::<Float64Array>())
    }

    #[test]
    fn rows_are_handed_out_some_at_a_time_as_they_are_read_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.parquet");
        write(&path, vec![("y", numbers(None)), ("u", numbers(None)), ("v", numbers(None))]);
        let whole = read(&path, &ReadOptions::default()).unwrap();
        let (mut sizes, mut targets, mut first) = (Vec::new(), Vec::new(), None);
        let mut each = |piece: Dataset| {
            sizes.push(piece.targets.len());
            for row in 0..piece.targets.len() {
                let of_all = targets.len() + row;
                let mut cells = Vec::new();
                piece.matrix.for_each(row, |column, value| cells.push((column, value)));
                whole.matrix.for_each(of_all, |column, value| assert_eq!(cells.remove(0), (column, value)));
                assert!(cells.is_empty());
            }
            targets.extend_from_slice(&piece.targets);
            first.get_or_insert(piece.names);
            Ok(())
        };
        read_pieces(&path, &ReadOptions::default(), &mut each).unwrap();
        assert_eq!(sizes, [SOME, SOME, 100]);
        assert!(targets == whole.targets[..] && first == Some(whole.names));
    }

    #[test]
    fn a_gap_says_where_it_is_and_words_are_read_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.parquet");
        write(&path, vec![("y", numbers(None)), ("u", numbers(Some(SOME + 6)))]);
        let said = read_pieces(&path, &ReadOptions::default(), &mut |_| Ok(())).unwrap_err().to_string();
        assert!(said.contains("row 7") && said.contains(&format!("from row {} of the file", SOME + 1)), "{said}");
        let words: ArrayRef =
            Arc::new((0..2 * SOME + 100).map(|row| Some(["a", "b"][row % 2])).collect::<StringArray>());
        write(&path, vec![("y", words), ("u", numbers(None))]);
        let mut rows = 0;
        let mut each = |piece: Dataset| {
            rows += piece.targets.len();
            Ok(())
        };
        read_pieces(&path, &ReadOptions::default(), &mut each).unwrap();
        assert_eq!(rows, 2 * SOME + 100);
    }
}
