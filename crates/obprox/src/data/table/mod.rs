//! Tables: named columns of numbers, words or lists, and how they become features.
//!
//! A reader of a format turns its file into a [`Table`]; a [`Recipe`] turns any table into rows of features. It is learnt
//! from the training data as [`Encoding`] says, goes with the model, and finds the columns of other tables by their names.

#[cfg(feature = "parquet")]
pub(super) mod arrow;
mod encoding;
#[cfg(feature = "parquet")]
mod lists;
#[cfg(feature = "arrow")]
mod numbers;
mod recipe;
mod rows;
mod words;

pub use encoding::{Categorical, Encoding, Missing};
#[cfg(feature = "arrow")]
pub use numbers::numbers;
pub use recipe::{Encoded, Features, Fill, Recipe};

pub(super) use words::Words;

use std::fmt::Display;

use super::csv::find_label;
use super::{Dataset, Label, ReadOptions};
use crate::{Error, Result};

/// The code of a word that is missing.
pub(super) const NO_WORD: u32 = u32::MAX;

/// Columns of one length, as read.
pub(super) struct Table {
    /// The file's name, for messages.
    pub name: String,
    pub n_rows: usize,
    /// Fields of a line where the columns have no names and are called by their numbers.
    pub fields: Option<usize>,
    pub label: Option<Column>,
    /// Whether the event was seen at the time that is the label.
    pub event: Option<Column>,
    pub columns: Vec<Column>,
}

/// A column and its name.
pub(super) struct Column {
    pub name: String,
    pub cells: Cells,
}

/// What a column holds, a row each.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cells {
    /// Numbers; NaN where one is missing.
    Numbers(Vec<f64>),
    /// Words: which of them each row has, or [`NO_WORD`].
    Words { words: Vec<String>, codes: Vec<u32> },
    #[cfg_attr(not(feature = "parquet"), allow(dead_code, reason = "CSV has no lists"))]
    /// Features of one's own numbering, counted from 0: row r has those from `offsets[r]` to `offsets[r + 1]`, rising.
    Lists { offsets: Vec<usize>, indices: Vec<u32>, values: Vec<f64> },
}

/// What a reader is to make of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// Nothing.
    Skipped,
    /// Numbers, and nothing else.
    Numbers,
    /// Words, though they may look like numbers.
    Words,
    /// Whatever it is.
    Any,
}

/// What is wanted of each column of a file, and which of them is the label.
pub(super) struct Selection {
    pub wanted: Vec<Wanted>,
    pub label: Option<usize>,
    pub event: Option<usize>,
}

impl Selection {
    /// Of a file with these columns; `is_header` where the names are its own.
    pub fn of(file: &str, names: &[String], is_header: bool, options: &ReadOptions) -> Result<Self> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::file(file, format!("two columns are named `{}`: give each a name of its own", pair[0])));
        }
        let mut selection = match &options.recipe {
            Some(recipe) => {
                let label = match (options.with_targets, &options.label) {
                    (false, _) => Label::Absent,
                    (true, given @ (Label::Name(_) | Label::Absent)) => given.clone(),
                    (true, _) => recipe.label_column(),
                };
                let event = options.event.clone().filter(|_| options.with_targets).or_else(|| recipe.event_column());
                let event = event.filter(|_| options.with_targets && label != Label::Absent);
                let place = |column| find_label(column, names, is_header);
                let event = event.as_ref().map(place).transpose()?.flatten();
                Self { wanted: recipe.wanted(file, names)?, label: place(&label)?, event }
            }
            None => {
                let label = find_label(&options.label, names, is_header)?;
                let event =
                    options.event.as_ref().map(|event| find_label(event, names, is_header)).transpose()?.flatten();
                Self { wanted: options.encoding.wanted(names, label)?, label, event }
            }
        };
        if selection.event.is_some() && selection.event == selection.label {
            return Err(Error::parameter("event", "its column is the label's: the label is the time"));
        }
        if let Some(label) = selection.label {
            selection.wanted[label] = match &options.recipe {
                Some(recipe) if recipe.classes().is_empty() => Wanted::Numbers,
                Some(_) => Wanted::Words,
                None => Wanted::Any,
            };
        }
        if let Some(event) = selection.event {
            selection.wanted[event] = Wanted::Any;
        }
        let is_feature = |(at, &wanted): (usize, &Wanted)| {
            wanted != Wanted::Skipped && Some(at) != selection.label && Some(at) != selection.event
        };
        if options.recipe.is_none() && !selection.wanted.iter().enumerate().any(is_feature) {
            return Err(Error::file(file, "has no column for features: the label is all that is left"));
        }
        Ok(selection)
    }
}

impl Table {
    /// The error for the first column with a gap, where there is one.
    pub fn refuse_missing(&self) -> Option<Error> {
        let of_file = |error: Error| error.of_file(self.name.as_ref());
        if let Some(label) = self.label.as_ref().filter(|label| label.cells.missing() > 0) {
            return Some(of_file(label.refuse_missing("label column", recipe::FILL_LABELS)));
        }
        let column = self.columns.iter().find(|column| column.cells.missing() > 0)?;
        Some(of_file(column.refuse_missing("column", recipe::FILL)))
    }

    /// Rows of features: by the recipe of the options, or by one that is learnt here as they say.
    pub fn into_dataset(mut self, options: &ReadOptions) -> Result<Dataset> {
        let of_file = |error: Error| error.of_file(self.name.as_ref());
        if let Some(recipe) = &options.recipe {
            let targets = self.targets(recipe).map_err(of_file)?;
            let matrix = recipe.rows(&self).map_err(of_file)?;
            return Ok(Dataset::new(matrix, targets));
        }
        let recipe = Recipe::learn(&mut self, options.encoding.missing)?;
        let of_file = |error: Error| error.of_file(self.name.as_ref());
        let targets = self.targets(&recipe).map_err(of_file)?;
        let matrix = recipe.rows(&self).map_err(of_file)?;
        let names = recipe.names();
        Ok(Dataset { names, recipe: Some(recipe.into()), ..Dataset::new(matrix, targets) })
    }
}

impl Table {
    /// The label's numbers, or the numbers of its words; times are negative where the event was not seen.
    fn targets(&self, recipe: &Recipe) -> Result<Vec<f64>> {
        let mut targets = recipe.targets(self.label.as_ref(), self.n_rows)?;
        let Some(event) = &self.event else { return Ok(targets) };
        if let Some(row) = targets.iter().position(|time| *time < 0.0) {
            let message = "beside a column of events a time is not negative";
            return Err(Error::Data(format!("row {}: the time is {}; {message}", row + 1, targets[row])));
        }
        let seen = event.seen()?;
        targets.iter_mut().zip(seen).filter(|(_, seen)| !seen).for_each(|(time, _)| *time = -*time);
        Ok(targets)
    }
}

impl Cells {
    /// Rows without a value.
    pub fn missing(&self) -> usize {
        match self {
            Self::Numbers(values) => values.iter().filter(|value| value.is_nan()).count(),
            Self::Words { codes, .. } => codes.iter().filter(|&&code| code == NO_WORD).count(),
            Self::Lists { .. } => 0,
        }
    }

    /// The first row without a value.
    fn first_missing(&self) -> Option<usize> {
        match self {
            Self::Numbers(values) => values.iter().position(|value| value.is_nan()),
            Self::Words { codes, .. } => codes.iter().position(|&code| code == NO_WORD),
            Self::Lists { .. } => None,
        }
    }
}

impl Column {
    /// Whether each row says yes: 1 or true, against 0 or false.
    fn seen(&self) -> Result<Vec<bool>> {
        if self.cells.missing() > 0 {
            return Err(self.refuse_missing("event column", recipe::FILL_LABELS));
        }
        let of_number = |number: &f64| [0.0, 1.0].iter().position(|known| known == number).map(|place| place == 1);
        let of_word = |word: &str| match word.to_ascii_lowercase().as_str() {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        };
        let told = |row: usize, seen: Option<bool>, what: &dyn Display| {
            let message = "give 1 or true where the event was seen, 0 or false where the row is censored";
            let flaw = || format!("row {}: event column `{}`: {what}: {message}", row + 1, self.name);
            seen.ok_or_else(|| Error::Data(flaw()))
        };
        match &self.cells {
            Cells::Numbers(values) => {
                values.iter().enumerate().map(|(row, value)| told(row, of_number(value), value)).collect()
            }
            Cells::Words { words, codes } => {
                let word = |(row, code): (usize, &u32)| (row, &words[*code as usize]);
                codes.iter().enumerate().map(word).map(|(row, word)| told(row, of_word(word), word)).collect()
            }
            Cells::Lists { .. } => Err(Error::Data(format!("event column `{}`: has lists", self.name))),
        }
    }

    /// The error for values that are missing where none may be.
    #[cold]
    fn refuse_missing(&self, what: &str, advice: &str) -> Error {
        let (count, first) = (self.cells.missing(), self.cells.first_missing().unwrap_or(0) + 1);
        let values = if count == 1 { "value is" } else { "values are" };
        Error::Data(format!("{what} `{}`: {count} {values} missing, the first in row {first}: {advice}", self.name))
    }
}
