//! A table and a recipe → rows of features.

use std::collections::HashMap;

use super::{Cells, Encoded, Features, Fill, NO_WORD, Recipe, Table};
use crate::data::{Builder, Matrix};
use crate::{Error, Result};

const FILL: &str =
    "the model does not know what stands for them: fill them in, or train with missing mean, zero or indicator";

/// A column as features of a row.
enum Source<'a> {
    Number {
        values: &'a [f64],
        feature: u32,
        fill: Option<Fill>,
    },
    /// For each word of the table its feature, where the recipe knows it.
    Words {
        codes: &'a [u32],
        features: Vec<Option<u32>>,
        fill: Option<Fill>,
    },
    List {
        offsets: &'a [usize],
        indices: &'a [u32],
        values: &'a [f64],
        first: u32,
        width: u32,
    },
}

impl Recipe {
    /// The rows of a table whose columns are all those of the recipe.
    pub(super) fn rows(&self, table: &Table) -> Result<Matrix> {
        let places: HashMap<&str, usize> =
            (0..).zip(&table.columns).map(|(at, column)| (&column.name[..], at)).collect();
        let mut sources = Vec::with_capacity(self.columns().len());
        for column in self.columns() {
            sources.push(source(column, table, places.get(&column.name[..]).copied())?);
        }
        let n_features = sources.iter().map(Source::end).max().unwrap_or(0);
        let mut builder = Builder::default();
        for row in 0..table.n_rows {
            sources.iter().for_each(|source| source.push(row, &mut builder));
            builder.end_row();
        }
        Ok(builder.finish(Some(n_features)).in_fewest_bytes())
    }
}

fn source<'a>(column: &Encoded, table: &'a Table, at: Option<usize>) -> Result<Source<'a>> {
    let name = &column.name;
    let found = at.map(|at| &table.columns[at]);
    let found = found.ok_or_else(|| Error::Data(format!("no column is named `{name}`, which the model uses")))?;
    if column.missing.is_none() && found.cells.missing() > 0 {
        return Err(found.refuse_missing("column", FILL));
    }
    let fill = column.missing;
    Ok(match (&column.features, &found.cells) {
        (Features::Number(feature), Cells::Numbers(values)) => Source::Number { values, feature: *feature, fill },
        (Features::Categories(known), Cells::Words { words, codes }) => {
            let known: HashMap<&str, u32> = known.iter().map(|(feature, value)| (value.as_str(), *feature)).collect();
            let features = words.iter().map(|word| known.get(word.as_str()).copied()).collect();
            Source::Words { codes, features, fill }
        }
        (Features::List(first, width), Cells::Lists { offsets, indices, values }) => {
            Source::List { offsets, indices, values, first: *first, width: *width }
        }
        (features, _) => {
            let kind = match features {
                Features::Number(_) => "numbers",
                Features::Categories(_) => "words",
                Features::List(..) => "lists",
            };
            return Err(Error::Data(format!("column `{name}`: has no {kind}, as it has in the training data")));
        }
    })
}

impl Source<'_> {
    /// One more than its last feature.
    fn end(&self) -> usize {
        let (last, fill) = match self {
            Self::Number { feature, fill, .. } => (feature + 1, *fill),
            Self::Words { features, fill, .. } => {
                (features.iter().flatten().max().map_or(0, |feature| feature + 1), *fill)
            }
            Self::List { first, width, .. } => (first + width, None),
        };
        last.max(fill.and_then(|fill| fill.indicator).map_or(0, |feature| feature + 1)) as usize
    }

    /// Appends its features to the row under way.
    fn push(&self, row: usize, builder: &mut Builder) {
        let fill = match self {
            Self::Number { values, feature, fill } => match values[row] {
                value if value.is_nan() => {
                    builder.push(*feature, fill.map_or(f64::NAN, |fill| fill.value));
                    fill
                }
                value => return builder.push(*feature, value),
            },
            Self::Words { codes, features, fill } => match codes[row] {
                NO_WORD => fill,
                code => {
                    features[code as usize].into_iter().for_each(|feature| builder.push(feature, 1.0));
                    return;
                }
            },
            Self::List { offsets, indices, values, first, width } => {
                let of_row = offsets[row]..offsets[row + 1];
                for (&index, &value) in indices[of_row.clone()].iter().zip(&values[of_row]) {
                    if index < *width {
                        builder.push(first + index, value);
                    }
                }
                return;
            }
        };
        fill.and_then(|fill| fill.indicator).into_iter().for_each(|feature| builder.push(feature, 1.0));
    }
}
