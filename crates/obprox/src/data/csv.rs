//! CSV: a line a row, numbers separated by `,` `;` tab or `|`, one column the label.
//!
//! Every record is one line, so that pieces of a file can be parsed in parallel: fields may be quoted, but a quoted
//! field holds no line break. The separator is told by the first lines, and so is a header: a first line in which some
//! field is not a number.

use std::ops::ControlFlow;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr_iter};

use super::blocks::{Blocks, Flaw, cut};
use super::boundaries::Boundaries;
use super::number::{self, shown};
use super::sheet::{Counts, Parser, Room, Sheet, TooNarrow, Trouble, Width, most_rows};
use super::source::Source;
use super::{Builder, Dataset, Label, Matrix, ReadOptions, with_rows};
use crate::{Error, Result};

/// Reads a whole stream.
pub(super) fn read(mut source: Source, options: &ReadOptions) -> Result<Dataset> {
    let layout = Layout::find(&mut source, options)?;
    let n_features = layout.n_features();
    let mut table = Table::Unknown;
    let mut blocks = Blocks::of(source, options.block, layout.lines_before);
    while blocks.advance()? {
        let (text, pieces) = (blocks.text(), cut(blocks.text()));
        // Only what stays in the sheet is worth room for all the rest.
        let times_as_much = if let Table::Dense(_) = table { blocks.times_as_much() } else { 1.0 };
        let mut sheet = table.take_sheet();
        let appended = sheet.append(&layout, text, &pieces, times_as_much);
        appended.map_err(|halt| blocks.halted(&pieces, halt))?;
        table.put(sheet, n_features);
    }
    let (matrix, targets) = table.finish(n_features);
    Ok(Dataset { names: layout.names, ..Dataset::new(matrix.in_fewest_bytes(), targets) })
}

/// Hands out the rows of a stream, those of a block of text at a time; then the columns and their names.
pub(super) fn read_pieces(
    mut source: Source,
    options: &ReadOptions,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<(usize, Option<Vec<String>>)> {
    let layout = Layout::find(&mut source, options)?;
    let mut blocks = Blocks::of(source, options.block, layout.lines_before);
    while blocks.advance()? {
        let (text, pieces) = (blocks.text(), cut(blocks.text()));
        let mut sheet: Sheet<()> = Sheet::default();
        sheet.append(&layout, text, &pieces, 1.0).map_err(|halt| blocks.halted(&pieces, halt))?;
        let (matrix, targets) = sheet.finish(layout.n_features());
        each(Dataset::new(matrix, targets))?;
    }
    Ok((layout.n_features(), layout.names))
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
enum Table {
    Unknown,
    Dense(Sheet<()>),
    Sparse(Builder, Vec<f64>),
}

impl Table {
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
    /// Looks at the first lines; a header is taken off the stream.
    fn find(source: &mut Source, options: &ReadOptions) -> Result<Self> {
        let first = source.first_line()?;
        let separator = separator_of(&source.head()[first.start..]);
        let line = &source.head()[first.clone()];
        let line = without_cr(line.strip_suffix(b"\n").unwrap_or(line));
        let lines_before = memchr_iter(b'\n', &source.head()[..first.start]).count() as u64;
        let wrong = |(column, message): (usize, String)| Error::Parse {
            file: source.name.clone(),
            line: lines_before + 1,
            column: column as u64 + 1,
            message,
        };
        if let Some(column) = memchr(b'\r', line) {
            return Err(wrong((column, number::CARRIAGE_RETURN.into())));
        }
        let mut fields = Vec::new();
        let mut is_header = false;
        let outcome = for_each_field(line, separator, |_, column, field| {
            is_header |= !field.is_empty() && !number::looks_numeric(field);
            match str::from_utf8(field) {
                Ok(field) => fields.push(field.to_owned()),
                Err(_) => return ControlFlow::Break((column, format!("{} is not UTF-8 text", shown(field)))),
            }
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(flaw) = outcome {
            return Err(wrong(flaw));
        }
        let n_fields = fields.len();
        let is_header = options.header.unwrap_or(is_header);
        let label = find_label(&options.label, &fields, is_header)?;
        if label.is_some() && n_fields == 1 {
            let message = "has one column only, the label: separate columns by `,` `;` tab or `|`";
            return Err(Error::file(&source.name, message));
        }
        if !is_header {
            return Ok(Self { separator, n_fields, label, names: None, label_name: None, lines_before: 0 });
        }
        let label_name = label.map(|label| fields.remove(label));
        source.skip(first.end);
        Ok(Self { separator, n_fields, label, names: Some(fields), label_name, lines_before: lines_before + 1 })
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
                    let message = format!("one field too many: the first line has {}", self.n_fields);
                    return ControlFlow::Break((column, message));
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
                let message = format!("the line has {n_fields} fields where the first has {}", self.n_fields);
                Err((line.len(), message))
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
            true if complaint.ends_with("not a number") => {
                format!("label column {column}: {complaint}; write classes as numbers")
            }
            true => format!("label column {column}: {complaint}"),
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

/// The separator that occurs equally often in the first lines, and most often; `,` where there is none.
fn separator_of(head: &[u8]) -> u8 {
    let lines: Vec<_> =
        head.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")).take(5).collect();
    let lines = if lines.is_empty() { vec![head] } else { lines };
    let score = |separator: u8| {
        let count = |line: &[u8]| {
            let quotes_apart = line.split(|&byte| byte == b'"').step_by(2);
            quotes_apart.map(|text| memchr_iter(separator, text).count()).sum::<usize>()
        };
        let first = count(lines[0]);
        (first > 0 && lines[1..].iter().all(|line| line.trim_ascii().is_empty() || count(line) == first), first)
    };
    // Of equals, `max_by_key` keeps the last.
    [b'|', b'\t', b';', b','].into_iter().max_by_key(|&separator| score(separator)).unwrap_or(b',')
}

fn find_label(label: &Label, fields: &[String], is_header: bool) -> Result<Option<usize>> {
    match label {
        Label::Absent => Ok(None),
        Label::First => Ok(Some(0)),
        Label::Last => Ok(Some(fields.len() - 1)),
        Label::Number(number) if (1..=fields.len()).contains(number) => Ok(Some(number - 1)),
        Label::Number(number) => {
            Err(Error::parameter("label", format!("column {number}: the file has columns 1 to {}", fields.len())))
        }
        Label::Name(name) if !is_header => {
            Err(Error::parameter("label", format!("`{name}`: the file has no header; give the column's number")))
        }
        Label::Name(name) => fields.iter().position(|field| field == name).map(Some).ok_or_else(|| {
            let known = fields.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if fields.len() > 20 { ", …" } else { "" };
            Error::parameter("label", format!("no column is named `{name}`; the columns are {known}{more}"))
        }),
    }
}

/// Calls `visit(number, column, field)` for each field of a line: its number, its first byte, its trimmed text.
fn for_each_field(
    line: &[u8],
    separator: u8,
    mut visit: impl FnMut(usize, usize, &[u8]) -> ControlFlow<(usize, String)>,
) -> ControlFlow<(usize, String)> {
    if memchr(b'"', line).is_some() {
        return for_each_quoted_field(line, separator, visit);
    }
    let mut start = 0;
    for (number, field) in line.split(|&byte| byte == separator).enumerate() {
        let blanks = field.len() - field.trim_ascii_start().len();
        visit(number, start + blanks, field.trim_ascii())?;
        start += field.len() + 1;
    }
    ControlFlow::Continue(())
}

fn for_each_quoted_field(
    line: &[u8],
    separator: u8,
    mut visit: impl FnMut(usize, usize, &[u8]) -> ControlFlow<(usize, String)>,
) -> ControlFlow<(usize, String)> {
    let mut reader: Reader = ReaderBuilder::new().delimiter(separator).terminator(Terminator::Any(b'\n')).build();
    let mut field = vec![0; line.len()];
    let mut start = 0;
    for number in 0.. {
        let (mut outcome, read, mut written) = reader.read_field(&line[start..], &mut field);
        if start + read == line.len() && outcome == ReadFieldResult::InputEmpty {
            // The line end is not part of the line; a quoted field swallows it.
            let more;
            (outcome, _, more) = reader.read_field(b"\n", &mut field[written..]);
            written += more;
        }
        let ReadFieldResult::Field { record_end } = outcome else {
            let message = "a quoted field does not end on its line: close it, or take the line break out";
            return ControlFlow::Break((start, message.into()));
        };
        visit(number, start, field[..written].trim_ascii())?;
        if record_end {
            break;
        }
        start += read;
    }
    ControlFlow::Continue(())
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
