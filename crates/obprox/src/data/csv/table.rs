//! CSV → [`Table`]: columns of numbers and words, those that nobody wants passed over.

use std::ops::ControlFlow;
use std::path::Path;

use memchr::memchr;
use rayon::prelude::*;

use super::fields::{Head, for_each_field, too_few, too_many, without_cr};
use crate::data::blocks::{Blocks, Flaw, cut};
use crate::data::number::{self, shown};
use crate::data::source::Source;
use crate::data::table::{Cells, Column, Selection, Table, Wanted, Words};
use crate::data::{Dataset, ReadOptions};
use crate::{Error, Result};

/// Reads a whole stream. A column may turn out to have words in it after many lines of numbers; then the file at
/// `again` is read once more.
pub fn read(mut source: Source, head: Head, again: Option<&Path>, options: &ReadOptions) -> Result<Table> {
    let mut layout = Layout::find(&source, head, options)?;
    loop {
        match layout.read(source, options.block)? {
            Outcome::Whole(table) => return Ok(table),
            Outcome::Words { columns, error } => {
                let Some(path) = again else { return Err(error) };
                columns.into_iter().for_each(|column| layout.kinds[column] = Kind::Words);
                source = Source::open(path)?;
                Head::find(&mut source, options.header)?;
            }
        }
    }
}

/// Hands out the rows of a stream, those of a block of text at a time, as a recipe makes them.
pub fn read_pieces(
    source: Source,
    head: Head,
    options: &ReadOptions,
    each: &mut dyn FnMut(Dataset) -> Result<()>,
) -> Result<()> {
    let (layout, name) = (Layout::find(&source, head, options)?, source.name.clone());
    let mut blocks = Blocks::of(source, options.block, layout.head.lines_before);
    let mut before = 0;
    while blocks.advance()? {
        let mut piece = layout.piece();
        if let Some((_, error)) = layout.append(&blocks, &mut piece)? {
            return Err(error);
        }
        let rows = piece.rows;
        let dataset = layout.table(name.clone(), piece).into_dataset(options);
        // Rows are counted from the first of the piece.
        each(dataset.map_err(|error| match error {
            Error::File { file, message } if before > 0 => Error::file(file, format!("after row {before}: {message}")),
            error => error,
        })?)?;
        before += rows;
    }
    Ok(())
}

/// What is known of the columns before the rows are read.
struct Layout {
    head: Head,
    kinds: Vec<Kind>,
    label: Option<usize>,
    event: Option<usize>,
    /// Whether a model says what the columns are.
    by_recipe: bool,
}

/// What is read of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Skipped,
    Numbers,
    Words,
    /// Numbers as far as was seen.
    Guessed,
}

enum Outcome {
    Whole(Table),
    /// Columns have words where the first lines had numbers.
    Words {
        columns: Vec<usize>,
        error: Error,
    },
}

/// The rows of some text, column by column.
struct Piece {
    rows: usize,
    parts: Vec<Part>,
    /// The columns that were guessed wrong, and where that was seen first.
    words: Vec<usize>,
    first: Option<Flaw>,
}

enum Part {
    Skipped,
    Numbers(Vec<f64>),
    Words(Words),
}

impl Layout {
    fn find(source: &Source, mut head: Head, options: &ReadOptions) -> Result<Self> {
        if !head.is_header {
            head.fields = (1..=head.fields.len()).map(|number| number.to_string()).collect();
        }
        let Selection { wanted, label, event } = Selection::of(&source.name, &head.fields, head.is_header, options)?;
        let kind = |wanted: &Wanted| match wanted {
            Wanted::Skipped => Kind::Skipped,
            Wanted::Numbers => Kind::Numbers,
            Wanted::Words => Kind::Words,
            Wanted::Any => Kind::Guessed,
        };
        let kinds = wanted.iter().map(kind).collect();
        let mut layout = Self { head, kinds, label, event, by_recipe: options.recipe.is_some() };
        // The first lines, up to the last that is whole, tell most of what a second reading would.
        let lines = source.head().split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
        for line in lines.skip(layout.head.lines_before as usize) {
            layout.guess(without_cr(&line[..line.len() - 1]));
        }
        Ok(layout)
    }

    fn guess(&mut self, line: &[u8]) {
        let _ = for_each_field(line, self.head.separator, |number, _, field| {
            if let Some(kind @ Kind::Guessed) = self.kinds.get_mut(number)
                && !number::is_missing(field)
                && !number::looks_numeric(field)
            {
                *kind = Kind::Words;
            }
            ControlFlow::Continue(())
        });
    }

    fn read(&self, source: Source, block: usize) -> Result<Outcome> {
        let name = source.name.clone();
        let mut whole = self.piece();
        let mut blocks = Blocks::of(source, block, self.head.lines_before);
        while blocks.advance()? {
            if let Some((columns, error)) = self.append(&blocks, &mut whole)? {
                return Ok(Outcome::Words { columns, error });
            }
        }
        Ok(Outcome::Whole(self.table(name, whole)))
    }

    /// Appends the rows of a block; or the columns that were guessed wrong, and what is wrong with them.
    fn append(&self, blocks: &Blocks, to: &mut Piece) -> Result<Option<(Vec<usize>, Error)>> {
        let (text, ranges) = (blocks.text(), cut(blocks.text()));
        let pieces: Vec<_> = ranges.par_iter().map(|range| self.parse(&text[range.clone()])).collect();
        for (range, piece) in ranges.iter().zip(pieces) {
            let mut piece = piece.map_err(|flaw| blocks.error(range.start, flaw))?;
            if let Some(flaw) = piece.first.take() {
                return Ok(Some((piece.words, blocks.error(range.start, flaw))));
            }
            to.append(piece);
        }
        Ok(None)
    }

    fn table(&self, name: String, rows: Piece) -> Table {
        let mut columns = Vec::new();
        let (mut label, mut event) = (None, None);
        for (at, (part, name)) in rows.parts.into_iter().zip(&self.head.fields).enumerate() {
            let Some(cells) = part.finish() else { continue };
            let column = Column { name: name.clone(), cells };
            match Some(at) {
                place if place == self.label => label = Some(column),
                place if place == self.event => event = Some(column),
                _ => columns.push(column),
            }
        }
        let fields = (!self.head.is_header).then_some(self.head.fields.len());
        Table { name, n_rows: rows.rows, fields, label, event, columns }
    }

    fn piece(&self) -> Piece {
        let part = |kind: &Kind| match kind {
            Kind::Skipped => Part::Skipped,
            Kind::Words => Part::Words(Words::default()),
            Kind::Numbers | Kind::Guessed => Part::Numbers(Vec::new()),
        };
        Piece { rows: 0, parts: self.kinds.iter().map(part).collect(), words: Vec::new(), first: None }
    }

    fn parse(&self, text: &[u8]) -> std::result::Result<Piece, Flaw> {
        let (mut piece, mut start, mut number) = (self.piece(), 0, 0);
        while start < text.len() {
            let end = memchr(b'\n', &text[start..]).map_or(text.len(), |found| start + found);
            let line = without_cr(&text[start..end]);
            if let Err((column, message)) = self.parse_line(line, number, &mut piece) {
                // What comes first is said first; a wrong guess may be mended.
                return if piece.first.is_some() { Ok(piece) } else { Err(Flaw { line: number, column, message }) };
            }
            start = end + 1;
            number += 1;
        }
        Ok(piece)
    }

    fn parse_line(&self, line: &[u8], at: u64, piece: &mut Piece) -> std::result::Result<(), (usize, String)> {
        // Between tabs that separate, nothing is a missing value.
        if line.iter().all(|&byte| byte.is_ascii_whitespace() && byte != self.head.separator) {
            return Ok(());
        }
        let (mut n_fields, most) = (0, self.kinds.len());
        let outcome = for_each_field(line, self.head.separator, |number, column, field| {
            n_fields = number + 1;
            if n_fields > most {
                return ControlFlow::Break((column, too_many(most)));
            }
            match (&mut piece.parts[number], number::parse(field)) {
                (Part::Skipped, _) => {}
                (Part::Words(words), _) => match str::from_utf8(field) {
                    Ok(word) => words.push(Some(word).filter(|word| !word.is_empty())),
                    Err(_) => return ControlFlow::Break((column, format!("{} is not UTF-8 text", shown(field)))),
                },
                (Part::Numbers(values), Ok(value)) => values.push(value),
                (Part::Numbers(values), Err(_)) if number::is_missing(field) => values.push(f64::NAN),
                (Part::Numbers(values), Err(complaint)) => {
                    let message = self.complain(number, &complaint);
                    if self.kinds[number] == Kind::Numbers || !complaint.ends_with(number::NOT_A_NUMBER) {
                        return ControlFlow::Break((column, message));
                    }
                    values.push(f64::NAN);
                    piece.words.push(number);
                    piece.first.get_or_insert(Flaw { line: at, column, message });
                }
            }
            ControlFlow::Continue(())
        });
        match outcome {
            ControlFlow::Break(flaw) => Err(flaw),
            ControlFlow::Continue(()) if n_fields < most => Err((line.len(), too_few(n_fields, most))),
            ControlFlow::Continue(()) => {
                piece.rows += 1;
                Ok(())
            }
        }
    }

    #[cold]
    fn complain(&self, field: usize, complaint: &str) -> String {
        let what = if self.label == Some(field) { "label column" } else { "column" };
        let name = shown(self.head.fields[field].as_bytes());
        match complaint.ends_with(number::NOT_A_NUMBER) {
            true if self.by_recipe => format!("{what} {name}: {complaint}, but the training data has numbers there"),
            true => format!("{what} {name}: {complaint}: {}", super::WORDS),
            false => format!("{what} {name}: {complaint}"),
        }
    }
}

impl Piece {
    fn append(&mut self, other: Self) {
        self.rows += other.rows;
        for (mine, theirs) in self.parts.iter_mut().zip(other.parts) {
            match (mine, theirs) {
                (Part::Numbers(mine), Part::Numbers(theirs)) => mine.extend(theirs),
                (Part::Words(mine), Part::Words(theirs)) => mine.append(theirs),
                _ => {}
            }
        }
    }
}

impl Part {
    fn finish(self) -> Option<Cells> {
        match self {
            Self::Skipped => None,
            Self::Numbers(values) => Some(Cells::Numbers(values)),
            Self::Words(words) => Some(words.finish()),
        }
    }
}
