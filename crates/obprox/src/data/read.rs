//! The door for files: which format, which options.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::source::{STANDARD_INPUT, Source};
use super::table::{Encoding, Recipe};
use super::{Dataset, Label, cache, csv, libsvm, vector};
use crate::{Error, Result, memory};

/// The first bytes of Parquet files, of Arrow files and of Arrow streams.
const PARQUET: &[u8] = b"PAR1";
pub(super) const ARROW_FILE: &[u8] = b"ARROW1";
const ARROW_STREAM: &[u8] = b"\xff\xff\xff\xff";

/// What a made-up name takes, with where it is kept.
const BYTES_A_NAME: u128 = 48;

/// The formats of data files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// `label index:value …`, a row a line.
    Libsvm,
    /// Separated columns, one of them the label.
    Csv,
    /// Columns in pages; needs the cargo feature `parquet`.
    Parquet,
    /// Arrow's own file, which is Feather, or its stream; needs the cargo feature `parquet`.
    Arrow,
    /// The binary cache that [`write_cache`](super::write_cache) makes.
    Cache,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::Libsvm => "LIBSVM text",
            Self::Csv => "CSV",
            Self::Parquet => "a Parquet file",
            Self::Arrow => "an Arrow file",
            Self::Cache => "a cache",
        }
    }
}

/// How to read a data file. The default decides everything by the file's content.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format, where it should not be told by content.
    pub format: Option<Format>,
    /// CSV: which column is the label.
    pub label: Label,
    /// Tables: which column says whether the event was seen at the time that is the label; targets are negative where it
    /// was not.
    pub event: Option<Label>,
    /// CSV: whether the first line is a header, where that should not be told by content.
    pub header: Option<bool>,
    /// Tables: how columns become features.
    pub encoding: Encoding,
    /// Tables: the recipe of a model, in place of `encoding`; columns are then found by name.
    pub recipe: Option<Arc<Recipe>>,
    /// Tables read by a recipe: whether the label is wanted too. It is passed over otherwise, and need not be there.
    pub with_targets: bool,
    /// At least that many columns, for data whose last columns are empty.
    pub n_cols: Option<usize>,
    /// Bytes of text that are read at a time; speed and memory depend on it, the result does not.
    pub block: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            label: Label::default(),
            event: None,
            header: None,
            encoding: Encoding::default(),
            recipe: None,
            with_targets: true,
            n_cols: None,
            block: 4 << 20,
        }
    }
}

/// Reads a data file: LIBSVM text, CSV, Parquet, Arrow or a cache; all but the last may be compressed by gzip, bzip2, xz or zstd. The path `-` is
/// standard input. A cache is mapped into memory: leave its file as it is while the data set lives.
///
/// ```
/// use obprox::data::{ReadOptions, read};
///
/// let file = tempfile::NamedTempFile::new().unwrap();
/// std::fs::write(&file, "+1 1:0.5 3:2\n-1 2:1\n").unwrap();
/// let dataset = read(file.path(), &ReadOptions::default()).unwrap();
/// assert_eq!((dataset.matrix.n_rows(), dataset.matrix.n_cols(), dataset.matrix.nnz()), (2, 3, 3));
/// ```
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Dataset> {
    let path = path.as_ref();
    let file = Some(path).filter(|path| path.as_os_str() != STANDARD_INPUT);
    read_source(Source::open(path)?, file, options)
}

/// Reads from a stream, such as bytes in memory; `name` stands for the file in messages.
pub fn read_from(name: &str, stream: impl Read + Send + 'static, options: &ReadOptions) -> Result<Dataset> {
    read_source(Source::new(name, stream)?, None, options)
}

pub(super) fn read_source(source: Source, path: Option<&Path>, options: &ReadOptions) -> Result<Dataset> {
    if options.n_cols.is_some_and(|n_cols| n_cols > u32::MAX as usize) {
        return Err(Error::parameter("n_cols", format!("at most {} columns", u32::MAX)));
    }
    let name = source.name.clone();
    let (source, format) = open(source, options)?;
    let mut dataset = match format {
        Format::Libsvm => libsvm::read(source, options.block)?,
        Format::Csv => csv::read(source, path, options)?,
        Format::Parquet | Format::Arrow => read_columns(source, path, format, options)?,
        Format::Cache => match path.filter(|_| source.is_plain()) {
            Some(path) => cache::read(&name, path)?,
            None => return Err(Error::file(name, "a cache is mapped, not streamed: give it as an uncompressed file")),
        },
    };
    if dataset.targets.is_empty() {
        return Err(Error::file(name, "has no rows: give a file with at least one"));
    }
    if let Some(n_cols) = options.n_cols {
        if let Some(names) = &dataset.names {
            let more = n_cols.saturating_sub(names.len()) as u128;
            memory::check(BYTES_A_NAME * more, || format!("{name}: names for {more} more columns"))?;
        }
        dataset.widen(n_cols);
    }
    Ok(dataset)
}

/// Tells the format of a source.
pub(super) fn open(source: Source, options: &ReadOptions) -> Result<(Source, Format)> {
    let format = options.format.unwrap_or_else(|| format_of(&source));
    if matches!(format, Format::Libsvm | Format::Csv) && source.head().contains(&0) {
        return Err(Error::file(source.name, "is binary, or text in UTF-16: give LIBSVM or CSV as UTF-8 text"));
    }
    if matches!(format, Format::Libsvm | Format::Cache) && !options.encoding.is_plain() {
        let message = "columns have no names there: categorical, missing, keep and drop are for CSV, Parquet and Arrow";
        return Err(Error::file(source.name, format!("is {}: {message}", format.name())));
    }
    if matches!(format, Format::Libsvm | Format::Cache) && options.event.is_some() {
        let message = "there an event that was not seen has a negative time, and no column (event)";
        return Err(Error::file(source.name, format!("is {}: {message}", format.name())));
    }
    Ok((source, format))
}

/// A format of columns.
#[cfg(feature = "parquet")]
fn read_columns(source: Source, path: Option<&Path>, format: Format, options: &ReadOptions) -> Result<Dataset> {
    use super::guard::guarded;

    let name = source.name.clone();
    let table = guarded(&name, || match format {
        Format::Parquet => super::parquet::read(source, path, options),
        _ => super::ipc::read(source, options),
    });
    table?.into_dataset(options)
}

#[cfg(not(feature = "parquet"))]
fn read_columns(source: Source, _: Option<&Path>, format: Format, _: &ReadOptions) -> Result<Dataset> {
    let message = "this obprox was built without Parquet and Arrow: build it with the feature `parquet`, or give CSV";
    Err(Error::file(source.name, format!("is {}: {message}", format.name())))
}

/// By content: the first line that shows one format or the other decides. Where none does, the name.
fn format_of(source: &Source) -> Format {
    if source.head().starts_with(cache::MAGIC) {
        return Format::Cache;
    }
    if source.head().starts_with(PARQUET) {
        return Format::Parquet;
    }
    if source.head().starts_with(ARROW_FILE) || source.head().starts_with(ARROW_STREAM) {
        return Format::Arrow;
    }
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
    for line in source.head().split(|&byte| byte == b'\n') {
        let line = line.trim_ascii();
        if line.is_empty() || line[0] == b'#' {
            continue;
        }
        if line.split(is_blank).any(looks_like_feature) {
            return Format::Libsvm;
        }
        if line.iter().any(|byte| matches!(byte, b',' | b';' | b'|' | b'\t')) {
            return Format::Csv;
        }
    }
    let name = source.name.to_ascii_lowercase();
    match name.split('.').skip(1).any(|part| matches!(part, "csv" | "tsv")) {
        true => Format::Csv,
        false => Format::Libsvm,
    }
}

/// `index:value`, with no separator of CSV in it.
fn looks_like_feature(token: &[u8]) -> bool {
    let index = token.iter().take_while(|byte| byte.is_ascii_digit()).count();
    index > 0 && token.get(index) == Some(&b':') && !token.iter().any(|byte| matches!(byte, b',' | b';' | b'|'))
}

/// Reads one number a line, such as sample weights or penalty weights; may be compressed, blank lines are skipped.
pub fn read_vector(path: impl AsRef<Path>) -> Result<Vec<f64>> {
    vector::read(Source::open(path.as_ref())?)
}
