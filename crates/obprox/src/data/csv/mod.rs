//! CSV: a line a row, numbers separated by `,` `;` tab or `|`, one column the label.
//!
//! Every record is one line, so that pieces of a file can be parsed in parallel: fields may be quoted, but a quoted
//! field holds no line break. The separator is told by the first lines, and so is a header: a first line in which some
//! field is not a number. Here every column is numbers, one of them the label; [`table`] reads columns of any kind.

mod fields;
pub(super) mod table;

use std::ops::ControlFlow;
use std::path::Path;

use memchr::memchr;

use super::blocks::{Blocks, Flaw, cut};
use super::boundaries::Boundaries;
use super::number::{self, shown};
use super::pieces::Columns;
use super::sheet::{Counts, Parser, Room, Sheet, TooNarrow, Trouble, Width, most_rows};
use super::source::Source;
use super::table::Recipe;
use super::{Builder, Dataset, Matrix, ReadOptions, with_rows};
use crate::{Error, Result};
use fields::{Head, for_each_field, too_few, too_many, without_cr};

pub(super) use fields::find_label;

/// What to do about a column with words.
pub(super) const WORDS: &str = "encode the column (categorical) or leave it out (drop)";

/// Reads a whole stream; `again` is where its file can be read once more.
pub(super) fn read(mut source: Source, again: Option<&Path>, options: &ReadOptions) -> Result<Dataset> {
    let head = Head::find(&mut source, options.header)?;
    if is_table(&head, &source, options) {
        return table::read(source, head, again, options)?.into_dataset(options);
    }
    match (numbers(source, head, options), again) {
        (Err(error), Some(path)) if error.to_string().ends_with(number::FILL_IT_IN) => {
            Err(missing(path, options).unwrap_or(error))
        }
        (outcome, _) => outcome,
    }
}

/// Whether there is more to read than numbers in their order.
fn is_table(head: &Head, source: &Source, options: &ReadOptions) -> bool {
    match &options.recipe {
        // Numbers without names are taken in their order.
        Some(recipe) => head.is_header || !recipe.is_plain(),
        None => options.event.is_some() || !options.encoding.is_plain() || label_is_word(head, source, options),
    }
}

/// Whether the label of the first row is a word: then the labels are classes with names.
fn label_is_word(head: &Head, source: &Source, options: &ReadOptions) -> bool {
    let Ok(Some(label)) = find_label(&options.label, &head.fields, head.is_header) else { return false };
    let mut lines = source.head().split(|&byte| byte == b'\n').skip(head.lines_before as usize);
    let Some(line) = lines.find(|line| !line.trim_ascii().is_empty()) else { return false };
    let mut is_word = false;
    let _ = for_each_field(line, head.separator, |number, _, field| {
        is_word |= number == label && !number::is_missing(field) && !number::looks_numeric(field);
        ControlFlow::Continue(())
    });
    is_word
}

/// How many values are missing where the first of them ended the reading.
#[cold]
fn missing(path: &Path, options: &ReadOptions) -> Option<Error> {
    let mut source = Source::open(path).ok()?;
    let head = Head::find(&mut source, options.header).ok()?;
    table::read(source, head, None, options).ok()?.refuse_missing()
}

/// Reads a stream of numbers.
fn numbers(source: Source, head: Head, options: &ReadOptions) -> Result<Dataset> {
    let layout = Layout::find(&source.name, head, options)?;
    let n_features = layout.n_features();
    let mut storage = Storage::Unknown;
    let mut blocks = Blocks::of(source, options.block, layout.lines_before);
    while blocks.advance()? {
        let (text, pieces) = (blocks.text(), cut(blocks.text()));
        // Only what stays in the sheet is worth room for all the rest.
        let times_as_much = if let Storage::Dense(_) = storage { blocks.times_as_much() } else { 1.0 };
        let mut sheet = storage.take_sheet();
        let appended = sheet.append(&layout, text, &pieces, times_as_much);
        appended.map_err(|halt| blocks.halted(&pieces, halt))?;
        storage.put(sheet, n_features);
    }
    let (matrix, targets) = storage.finish(n_features);
    let recipe = layout.recipe();
    let dataset = Dataset::new(matrix.in_fewest_bytes(), targets);
    Ok(Dataset { names: layout.names, recipe: recipe.map(Into::into), ..dataset })
}

/// Hands out the rows of a stream, those of a block of text at a time: of a table by a recipe, else of numbers. Then its
/// columns.
pub(super) fn read_pieces(
    mut source: Source,
    options: &ReadOptions,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<Columns> {
    let head = Head::find(&mut source, options.header)?;
    match (is_table(&head, &source, options), &options.recipe) {
        (true, Some(_)) => return table::read_pieces(source, head, options, each).map(|()| Columns::default()),
        (true, None) => {
            let message = "columns and labels that are no numbers are encoded in memory alone: \
                           convert the table first (obprox data convert)";
            return Err(Error::file(source.name, message));
        }
        (false, _) => {}
    }
    let layout = Layout::find(&source.name, head, options)?;
    let mut blocks = Blocks::of(source, options.block, layout.lines_before);
    let mut names = layout.names.clone();
    while blocks.advance()? {
        let (text, pieces) = (blocks.text(), cut(blocks.text()));
        let mut sheet: Sheet<()> = Sheet::default();
        sheet.append(&layout, text, &pieces, 1.0).map_err(|halt| blocks.halted(&pieces, halt))?;
        let (matrix, targets) = sheet.finish(layout.n_features());
        each(Dataset { names: names.take(), ..Dataset::new(matrix, targets) })?;
    }
    let recipe = layout.recipe().map(Into::into);
    Ok(Columns { n_cols: layout.n_features(), names: layout.names, recipe })
}

/// What the first lines tell of all the others.
struct Layout {
    separator: u8,
    n_fields: usize,
    label: Option<usize>,
    /// Names of the features.
    names: Option<Vec<String>>,
    label_name: Option<String>,
    /// Lines up to the first row.
    lines_before: u64,
}

/// What a line says.
struct Row {
    values: Vec<f64>,
    target: f64,
}

/// The rows so far, in the storage that suits the first of them; the final choice is made at the end.
enum Storage {
    Unknown,
    Dense(Sheet<()>),
    Sparse(Builder, Vec<f64>),
}

impl Storage {
    /// What the next rows are to be appended to.
    fn take_sheet(&mut self) -> Sheet<()> {
        match self {
            Self::Dense(sheet) => std::mem::take(sheet),
            _ => Sheet::default(),
        }
    }

    /// Takes it back, with more rows.
    fn put(&mut self, sheet: Sheet<()>, n_cols: usize) {
        if let Self::Unknown = self {
            let (filled, cells) = sheet.filled();
            *self = match 2 * filled < cells {
                true => Self::Sparse(Builder::default(), Vec::new()),
                false => Self::Dense(Sheet::default()),
            };
        }
        match self {
            Self::Unknown => unreachable!("decided above"),
            Self::Dense(all) => *all = sheet,
            Self::Sparse(builder, targets) => {
                let (rows, more) = sheet.finish(n_cols);
                with_rows!(&rows, |rows| builder.push_rows(rows));
                targets.extend(more);
            }
        }
    }

    fn finish(self, n_cols: usize) -> (Matrix, Vec<f64>) {
        match self {
            Self::Unknown => (Builder::default().finish(Some(n_cols)), Vec::new()),
            Self::Dense(sheet) => sheet.finish(n_cols),
            Self::Sparse(builder, targets) => (builder.finish(Some(n_cols)), targets),
        }
    }
}

impl Layout {
    /// How columns of numbers with names become features.
    fn recipe(&self) -> Option<Recipe> {
        self.names.as_ref().and_then(|names| Recipe::of_numbers(names, self.label_name.as_ref()))
    }

    fn find(file: &str, head: Head, options: &ReadOptions) -> Result<Self> {
        let Head { separator, mut fields, is_header, lines_before } = head;
        let n_fields = fields.len();
        let label = find_label(&options.label, &fields, is_header)?;
        if label.is_some() && n_fields == 1 {
            let message = "has one column only, the label: separate columns by `,` `;` tab or `|`";
            return Err(Error::file(file, message));
        }
        if !is_header {
            return Ok(Self { separator, n_fields, label, names: None, label_name: None, lines_before });
        }
        let label_name = label.map(|label| fields.remove(label));
        Ok(Self { separator, n_fields, label, names: Some(fields), label_name, lines_before })
    }

    fn n_features(&self) -> usize {
        self.n_fields - usize::from(self.label.is_some())
    }

    /// Writes a line of numbers with nothing but separators between them; the start of the next one, or nothing where the
    /// line has anything else, right or wrong.
    fn parse_usual_line<W: Width>(
        &self,
        text: &[u8],
        mut start: usize,
        boundaries: &mut Boundaries,
        room: &mut Room<W, ()>,
    ) -> std::result::Result<Option<usize>, TooNarrow> {
        let mut target = f64::NAN;
        let mut end = start;
        for field in 0..self.n_fields {
            if field > 0 && text.get(end) != Some(&self.separator) {
                return Ok(None);
            }
            start = if field == 0 { start } else { end + 1 };
            end = boundaries.next();
            let value = number::usual(text, start, end).or_else(|| number::unusual(text, start, end));
            let Some(value) = value else { return Ok(None) };
            if Some(field) == self.label {
                target = value;
            } else {
                room.push(0, value)?;
            }
        }
        if text.get(end) == Some(&b'\r') && boundaries.next() == end + 1 {
            end += 1;
        }
        if text.get(end) != Some(&b'\n') {
            return Ok(None);
        }
        room.end_row(target);
        Ok(Some(end + 1))
    }

    /// The row of a line that is written in any way; none where it is blank.
    fn parse_line(&self, line: &[u8]) -> std::result::Result<Option<Row>, (usize, String)> {
        // Between tabs that separate, nothing is a missing number.
        if line.iter().all(|&byte| byte.is_ascii_whitespace() && byte != self.separator) {
            return Ok(None);
        }
        let (mut values, mut target) = (Vec::with_capacity(self.n_fields), f64::NAN);
        let mut n_fields = 0;
        let outcome = for_each_field(line, self.separator, |number, column, field| {
            n_fields = number + 1;
            match number::parse(field) {
                _ if n_fields > self.n_fields => {
                    return ControlFlow::Break((column, too_many(self.n_fields)));
                }
                Err(complaint) => return ControlFlow::Break((column, self.complain(number, &complaint))),
                Ok(value) if Some(number) == self.label => target = value,
                Ok(value) => values.push(value),
            }
            ControlFlow::Continue(())
        });
        match outcome {
            ControlFlow::Break(flaw) => Err(flaw),
            ControlFlow::Continue(()) if n_fields < self.n_fields => {
                Err((line.len(), too_few(n_fields, self.n_fields)))
            }
            ControlFlow::Continue(()) => Ok(Some(Row { values, target })),
        }
    }

    /// What is wrong with a field, its column named as the user knows it.
    #[cold]
    fn complain(&self, field: usize, complaint: &str) -> String {
        let name = match (&self.names, &self.label_name, self.label) {
            (_, Some(name), Some(label)) if label == field => Some(name),
            (Some(names), ..) => names.get(field - usize::from(self.label.is_some_and(|label| label < field))),
            _ => None,
        };
        let column = name.map_or_else(|| (field + 1).to_string(), |name| shown(name.as_bytes()));
        match self.label == Some(field) {
            true if complaint.ends_with(number::NOT_A_NUMBER) => {
                format!("label column {column}: {complaint}; the first row's is")
            }
            true => format!("label column {column}: {complaint}"),
            false if complaint.ends_with(number::NOT_A_NUMBER) => format!("column {column}: {complaint}: {WORDS}"),
            false => format!("column {column}: {complaint}"),
        }
    }
}

impl Parser for Layout {
    type Flaw = Flaw;
    type Index = ();

    fn count(&self, text: &[u8]) -> Counts {
        let rows = most_rows(text);
        // A field takes a byte at the least, so that a first line of many fields makes no room for lines of few.
        Counts { rows, entries: rows.saturating_mul(self.n_features()).min(text.len() + 1) }
    }

    fn parse<W: Width>(&self, text: &[u8], room: &mut Room<W, ()>) -> std::result::Result<(), Trouble<Flaw>> {
        let mut boundaries = Boundaries::from(text, 0, self.separator);
        let mut start = 0;
        let mut line = 0;
        while start < text.len() {
            // Nearly every line is numbers and separators; the others are looked at field by field.
            let before = room.used();
            if let Some(end) = self.parse_usual_line(text, start, &mut boundaries, room)? {
                start = end;
                line += 1;
                continue;
            }
            room.go_back(before);
            let end = memchr(b'\n', &text[start..]).map_or(text.len(), |found| start + found);
            match self.parse_line(without_cr(&text[start..end])) {
                Ok(None) => {}
                Ok(Some(Row { values, target })) => {
                    values.into_iter().try_for_each(|value| room.push(0, value))?;
                    room.end_row(target);
                }
                Err((column, message)) => return Err(Trouble::Flaw(Flaw { line, column, message })),
            }
            start = end + 1;
            boundaries = Boundaries::from(text, start, self.separator);
            line += 1;
        }
        Ok(())
    }
}
