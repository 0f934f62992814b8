//! Lines of CSV → fields, and what the first line tells of all the others.

use std::ops::ControlFlow;

use csv_core::{ReadFieldResult, Reader, ReaderBuilder, Terminator};
use memchr::{memchr, memchr_iter};

use crate::data::Label;
use crate::data::number::{self, shown};
use crate::data::source::Source;
use crate::{Error, Result};

/// The first line.
pub struct Head {
    pub separator: u8,
    pub fields: Vec<String>,
    /// Whether the fields are names; they are a row otherwise.
    pub is_header: bool,
    /// Lines up to the first row.
    pub lines_before: u64,
}

impl Head {
    /// Looks at the first lines; a header is taken off the stream. Whether it is one is told by content where `header`
    /// does not say.
    pub fn find(source: &mut Source, header: Option<bool>) -> Result<Self> {
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
        if !header.unwrap_or(is_header) {
            return Ok(Self { separator, fields, is_header: false, lines_before: 0 });
        }
        source.skip(first.end);
        Ok(Self { separator, fields, is_header: true, lines_before: lines_before + 1 })
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

/// Which of the fields is the label.
pub fn find_label(label: &Label, fields: &[String], is_header: bool) -> Result<Option<usize>> {
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
pub fn for_each_field(
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

/// A line without the first half of the line end of Windows.
pub fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What is said of a line that goes on after its last field.
pub fn too_many(fields: usize) -> String {
    format!("one field too many: the first line has {fields}")
}

/// What is said of a line that ends too early.
pub fn too_few(found: usize, fields: usize) -> String {
    format!("the line has {found} fields where the first has {fields}")
}
