//! Files handed out some rows at a time, so that no more of them is in memory.

use std::path::Path;
use std::sync::Arc;

use super::read::{Format, open, read_source};
use super::source::{STANDARD_INPUT, Source};
use super::{Dataset, ReadOptions, Recipe, csv, libsvm};
use crate::{Error, Result};

/// The columns of a table.
#[derive(Default)]
pub(super) struct Columns {
    pub n_cols: usize,
    pub names: Option<Vec<String>>,
    /// How the features were made of them.
    pub recipe: Option<Arc<Recipe>>,
}

impl Columns {
    /// Whether rows with these columns are rows with those too.
    pub fn are(&self, others: &Self) -> bool {
        (self.n_cols, &self.names) == (others.n_cols, &others.names)
    }
}

/// Reads a data file like [`read`](super::read) and hands out its rows, some at a time and one after the other. The first of
/// the data sets has the names of the columns, where there are any. Text, with a recipe or of numbers alone, is in memory
/// for one block at a time; of a cache the pages that are used are; Parquet and Arrow files are read as a whole.
///
/// ```
/// use obprox::data::{ReadOptions, read_pieces};
///
/// let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "+1 1:0.5 3:2\n-1 2:1\n").unwrap();
/// let mut rows = 0;
/// let mut count = |piece: obprox::data::Dataset| {
///     rows += piece.targets.len();
///     Ok(())
/// };
/// read_pieces(file.path(), &ReadOptions::default(), &mut count).unwrap();
/// assert_eq!(rows, 2);
/// ```
pub fn read_pieces(
    path: impl AsRef<Path>,
    options: &ReadOptions,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<()> {
    let (path, mut has_rows) = (path.as_ref(), false);
    let source = Source::open(path)?;
    let name = source.name.clone();
    each_piece(source, path, options, &mut |mut piece| {
        has_rows |= !piece.targets.is_empty();
        if let Some(n_cols) = options.n_cols {
            piece.widen(n_cols);
        }
        each(piece)
    })?;
    match has_rows {
        true => Ok(()),
        false => Err(Error::file(name, "has no rows: give a file with at least one")),
    }
}

/// Hands out the rows of a file, some at a time; the columns where they are those of a table.
pub(super) fn each_piece(
    source: Source,
    path: &Path,
    options: &ReadOptions,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<Option<Columns>> {
    let (source, format) = open(source, options)?;
    let file = Some(path).filter(|path| path.as_os_str() != STANDARD_INPUT);
    match format {
        Format::Libsvm => libsvm::read_pieces(source, options.block, each).map(|()| None),
        Format::Csv => csv::read_pieces(source, options, each).map(Some),
        Format::Cache => in_pieces(read_source(source, file, options)?, false, each),
        // A file of columns is read as a whole, so one that is to be cut into shards comes in parts.
        Format::Parquet | Format::Arrow => in_pieces(read_source(source, file, options)?, true, each),
    }
}

/// Hands out the rows of a data set, some at a time.
fn in_pieces(
    mut data: Dataset,
    is_table: bool,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<Option<Columns>> {
    const SOME: usize = 1 << 12;
    let (n_rows, n_cols) = (data.matrix.n_rows() as u32, data.matrix.n_cols());
    let names = data.names.take();
    for first in (0..n_rows).step_by(SOME) {
        let rows: Vec<u32> = (first..n_rows.min(first + SOME as u32)).collect();
        let targets = data.targets[first as usize..][..rows.len()].to_vec();
        let names = names.clone().filter(|_| first == 0);
        each(Dataset { names, ..Dataset::new(data.matrix.keep_rows(&rows), targets) })?;
    }
    let is_table = is_table || names.is_some();
    Ok(is_table.then_some(Columns { n_cols, names, recipe: data.recipe }))
}
