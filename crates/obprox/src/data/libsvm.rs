//! LIBSVM text: a line a row, `label index:value index:value …`, indices rising from 1.
//!
//! Blank lines and lines of comment (`# …`) are no rows; a row may end in a comment; `qid:` fields are skipped. Indices
//! count from 1 in the file and from 0 inside.

use std::io::{self, Write};
use std::ops::Range;

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;

use super::Dataset;
use super::blocks::{Blocks, Flaw, cut};
use super::boundaries::Boundaries;
use super::number::{self, shown};
use super::sheet::{Counts, Parser, Room, Sheet, TooNarrow, Trouble, Width, most_rows};
use super::source::Source;
use crate::Result;

/// Reads a whole stream.
pub(super) fn read(source: Source, block_size: usize) -> Result<Dataset> {
    let mut sheet = Sheet::default();
    let mut blocks = Blocks::of(source, block_size, 0);
    while blocks.advance()? {
        let (text, pieces) = (blocks.text(), cut(blocks.text()));
        let appended = sheet.append(&Libsvm, text, &pieces, blocks.times_as_much());
        appended.map_err(|halt| blocks.halted(&pieces, halt))?;
    }
    let (matrix, targets) = sheet.finish();
    Ok(Dataset::new(matrix, targets))
}

/// Hands out the rows of a stream, those of a block of text at a time.
pub(super) fn read_pieces(
    source: Source,
    block_size: usize,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<()> {
    let mut blocks = Blocks::of(source, block_size, 0);
    while blocks.advance()? {
        let (text, pieces) = (blocks.text(), cut(blocks.text()));
        let mut sheet = Sheet::default();
        sheet.append(&Libsvm, text, &pieces, 1.0).map_err(|halt| blocks.halted(&pieces, halt))?;
        let (matrix, targets) = sheet.finish();
        each(Dataset::new(matrix, targets))?;
    }
    Ok(())
}

/// Writes rows as text that reads back to the same bits: floats in the fewest digits that do so. The format knows no
/// missing label; one is written as 0, as is the custom.
pub fn write_libsvm(dataset: &Dataset, out: &mut dyn Write) -> io::Result<()> {
    const BYTES_A_PIECE: usize = 1 << 18;
    const PIECES: usize = 16;
    let n_rows = dataset.targets.len();
    let rows_a_piece = (BYTES_A_PIECE / (dataset.matrix.bytes() / n_rows.max(1)).max(1)).max(1);
    for first in (0..n_rows).step_by(rows_a_piece * PIECES) {
        let starts = (first..n_rows).step_by(rows_a_piece).take(PIECES).collect::<Vec<_>>();
        let piece = |&start: &usize| format_rows(dataset, start..n_rows.min(start + rows_a_piece));
        let pieces: Vec<_> = starts.par_iter().map(piece).collect();
        pieces.iter().try_for_each(|piece| out.write_all(piece))?;
    }
    Ok(())
}

fn format_rows(dataset: &Dataset, rows: Range<usize>) -> Vec<u8> {
    let mut text = Vec::new();
    for row in rows {
        let target = dataset.targets[row];
        format_number(if target.is_nan() { 0.0 } else { target }, &mut text);
        dataset.matrix.for_each(row, |column, value| {
            if value != 0.0 {
                text.push(b' ');
                text.extend_from_slice(itoa::Buffer::new().format(column as u64 + 1).as_bytes());
                text.push(b':');
                format_number(value, &mut text);
            }
        });
        text.push(b'\n');
    }
    text
}

fn format_number(value: f64, text: &mut Vec<u8>) {
    let whole = value as i32;
    match f64::from(whole).to_bits() == value.to_bits() {
        true => text.extend_from_slice(itoa::Buffer::new().format(whole).as_bytes()),
        false => text.extend_from_slice(zmij::Buffer::new().format(value).as_bytes()),
    }
}

/// The format's parser.
struct Libsvm;

impl Parser for Libsvm {
    type Flaw = Flaw;
    type Index = u32;

    fn count(&self, text: &[u8]) -> Counts {
        Counts { rows: most_rows(text), entries: memchr_iter(b':', text).count() }
    }

    fn parse<W: Width>(&self, text: &[u8], room: &mut Room<W, u32>) -> std::result::Result<(), Trouble<Flaw>> {
        let mut boundaries = Boundaries::from(text, 0, b':');
        let mut start = 0;
        let mut line = 0;
        while start < text.len() {
            // Nearly every line is written in the usual way; what is wrong with the others, if anything, is found by going
            // through them byte by byte.
            let before = room.used();
            match parse_usual_line(text, start, &mut boundaries, room)? {
                Some(end) => {
                    start = end;
                    line += 1;
                    continue;
                }
                None => room.go_back(before),
            }
            match parse_line(text, start, room) {
                Ok(end) => {
                    start = end;
                    boundaries = Boundaries::from(text, start, b':');
                }
                Err(Trouble::TooNarrow(narrow)) => return Err(narrow.into()),
                Err(Trouble::Flaw((at, message))) => {
                    return Err(Trouble::Flaw(Flaw { line, column: at - start, message }));
                }
            }
            line += 1;
        }
        Ok(())
    }
}

/// Parses a line that is a label and features with single blanks or tabs between them; gives the start of the next one, or
/// nothing where the line has anything else, right or wrong.
#[inline]
fn parse_usual_line<W: Width>(
    text: &[u8],
    start: usize,
    boundaries: &mut Boundaries,
    room: &mut Room<W, u32>,
) -> std::result::Result<Option<usize>, TooNarrow> {
    let is_blank = |at: usize| matches!(text.get(at), Some(b' ' | b'\t'));
    let label_end = boundaries.next();
    let Some((label, len)) = text.get(start..label_end).and_then(number::scan) else { return Ok(None) };
    if start + len != label_end || !label.is_finite() {
        return Ok(None);
    }
    let (mut end, mut previous) = (label_end, 0);
    while is_blank(end) {
        let at = end + 1;
        let colon = boundaries.next();
        if colon == at && text.get(at) != Some(&b':') {
            // Blanks at the end of the line.
            end = at;
            continue;
        }
        end = boundaries.next();
        let index = number::digits_before(text, colon, colon - at);
        let value = number::usual(text, colon + 1, end).or_else(|| number::unusual(text, colon + 1, end));
        let (Some(index), Some(value), Some(b':')) = (index, value, text.get(colon)) else { return Ok(None) };
        // Eight digits at most.
        let index = index as u32;
        if index <= previous {
            return Ok(None);
        }
        room.push(index - 1, value)?;
        previous = index;
    }
    if text.get(end) == Some(&b'\r') && boundaries.next() == end + 1 {
        end += 1;
    }
    if text.get(end) != Some(&b'\n') {
        return Ok(None);
    }
    room.end_row(label);
    Ok(Some(end + 1))
}

/// Parses the line that starts at `at`; gives the start of the next one, or where a token is wrong and why.
fn parse_line<W: Width>(
    text: &[u8],
    at: usize,
    room: &mut Room<W, u32>,
) -> std::result::Result<usize, Trouble<(usize, String)>> {
    let (mut at, end) = skip_blanks(text, at);
    if let Some(next) = end {
        return Ok(next);
    }
    let label = number::scan(&text[at..]).filter(|(value, len)| value.is_finite() && ends_at(text, at + len));
    let Some((label, len)) = label else { return Err(Trouble::Flaw((at, complain_of_label(token(text, at))))) };
    at += len;
    let mut previous = 0;
    loop {
        let end;
        (at, end) = skip_blanks(text, at);
        if let Some(next) = end {
            room.end_row(label);
            return Ok(next);
        }
        if let Some((index, value, len)) = scan_feature(&text[at..], previous)
            && ends_at(text, at + len)
        {
            room.push(index - 1, value)?;
            previous = index;
            at += len;
        } else if text[at..].starts_with(b"qid:") {
            at += token(text, at).len();
        } else {
            return Err(Trouble::Flaw((at, complain_of_feature(token(text, at), previous))));
        }
    }
}

fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(b'\n')
}

/// The start of the next token or, second, of the next line where this one has none left.
#[inline]
fn skip_blanks(text: &[u8], mut at: usize) -> (usize, Option<usize>) {
    loop {
        match byte(text, at) {
            b' ' | b'\t' => at += 1,
            b'\n' => return (at, Some(at + 1)),
            b'\r' if byte(text, at + 1) == b'\n' => at += 1,
            b'#' => return (at, Some(memchr(b'\n', &text[at..]).map_or(text.len(), |found| at + found + 1))),
            _ => return (at, None),
        }
    }
}

/// Whether a token ends before `at`.
#[inline]
fn ends_at(text: &[u8], at: usize) -> bool {
    match byte(text, at) {
        b' ' | b'\t' | b'\n' | b'#' => true,
        b'\r' => byte(text, at + 1) == b'\n',
        _ => false,
    }
}

/// `index:value` at the start of `text`, and its length; nothing where anything is wrong with it.
#[inline]
fn scan_feature(text: &[u8], previous: u32) -> Option<(u32, f64, usize)> {
    let (index, len) = number::digits(text, 0, 0);
    if len == 0 || len > number::MOST_DIGITS || text.get(len) != Some(&b':') {
        return None;
    }
    let index = u32::try_from(index).ok().filter(|&index| index > previous)?;
    let (value, value_len) = number::scan(&text[len + 1..])?;
    value.is_finite().then_some((index, value, len + 1 + value_len))
}

/// The token that starts at `at`.
fn token(text: &[u8], at: usize) -> &[u8] {
    let len = (at..text.len()).take_while(|&at| !ends_at(text, at)).count();
    &text[at..at + len]
}

#[cold]
fn complain_of_label(label: &[u8]) -> String {
    if label.contains(&b':') {
        format!("the line starts with {} where its label should be", shown(label))
    } else if label.contains(&b',') {
        format!("label {}: a row has one number as its label", shown(label))
    } else {
        format!("label: {}", number::parse(label).err().unwrap_or_default())
    }
}

#[cold]
fn complain_of_feature(feature: &[u8], previous: u32) -> String {
    let Some(colon) = memchr(b':', feature) else {
        return format!("{} is not index:value", shown(feature));
    };
    let (index, value) = (&feature[..colon], &feature[colon + 1..]);
    if index.is_empty() || !index.iter().all(u8::is_ascii_digit) {
        return format!("{}: the index before `:` is not a whole number", shown(feature));
    }
    let digits = String::from_utf8_lossy(index);
    match digits.parse::<u32>() {
        _ if index.len() > number::MOST_DIGITS => format!("{} is too long for an index", shown(index)),
        Err(_) => format!("index {} is too large: indices go up to {}", digits.trim_start_matches('0'), u32::MAX),
        Ok(0) => "index 0: LIBSVM indices start at 1".into(),
        Ok(index) if index == previous => format!("index {index} is repeated: a row has one value a column"),
        Ok(index) if index < previous => {
            format!("index {index} comes after {previous}: indices must rise within a row")
        }
        Ok(index) if value.is_empty() => format!("index {index} has no value: write {index}:value without blanks"),
        Ok(index) => format!("value of index {index}: {}", number::parse(value).err().unwrap_or_default()),
    }
}
