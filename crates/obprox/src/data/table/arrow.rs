//! Arrow's record batches → [`Table`], whichever format they come from.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{ArrowError, DataType, Schema};

use super::lists::{Lists, is_list, values_of};
use super::numbers::{keys, numbers};
use super::{Cells, Column, Selection, Table, Wanted, Words};
use crate::data::ReadOptions;
use crate::data::csv::WORDS;
use crate::{Error, Result};

/// What is read of the columns of a schema.
pub struct Plan {
    name: String,
    label: Option<String>,
    event: Option<String>,
    columns: Vec<Growing>,
    /// The fields that are needed, rising.
    pub fields: Vec<usize>,
}

/// A column that grows batch by batch.
struct Growing {
    name: String,
    cells: Parts,
}

enum Parts {
    Numbers(Vec<f64>),
    Words(Words),
    /// With the name of the column that has the values, where another one has.
    Lists(Lists, Option<String>),
}

/// What a column can be.
enum Kind {
    Numbers,
    Words,
    Lists,
}

impl Plan {
    /// Of a file of that name, as the options say.
    pub fn of(file: &str, schema: &Schema, options: &ReadOptions) -> Result<Self> {
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let Selection { wanted, label, event } = Selection::of(file, &names, true, options)?;
        let values: Vec<Option<usize>> = (0..names.len()).map(|at| values_of(schema, at)).collect();
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (at, &wanted) in wanted.iter().enumerate() {
            // Values go with their indices.
            if wanted == Wanted::Skipped || values.contains(&Some(at)) {
                continue;
            }
            let name = names[at].clone();
            let refuse = |why: String| Error::file(file, format!("column `{name}`: {why}"));
            let kind = kind(schema.field(at).data_type()).map_err(refuse)?;
            let cells = match (kind, wanted) {
                (Kind::Words, Wanted::Numbers) if options.recipe.is_some() => {
                    return Err(refuse("has words where the training data has numbers".into()));
                }
                (Kind::Words, Wanted::Numbers) => return Err(refuse(format!("has words: {WORDS}"))),
                (Kind::Lists, Wanted::Words) => return Err(refuse("lists cannot be categories: drop it".into())),
                (Kind::Lists, _) => {
                    fields.extend(values[at]);
                    Parts::Lists(Lists::default(), values[at].map(|at| names[at].clone()))
                }
                (Kind::Words, _) | (Kind::Numbers, Wanted::Words) => Parts::Words(Words::default()),
                (Kind::Numbers, _) => Parts::Numbers(Vec::new()),
            };
            columns.push(Growing { name, cells });
            fields.push(at);
        }
        fields.sort_unstable();
        let named = |at: Option<usize>| at.map(|at| names[at].clone());
        Ok(Self { name: file.to_owned(), label: named(label), event: named(event), columns, fields })
    }

    /// Reads the batches, which have at least the fields that are needed.
    pub fn read(
        mut self,
        batches: impl Iterator<Item = std::result::Result<RecordBatch, ArrowError>>,
    ) -> Result<Table> {
        let mut n_rows = 0;
        let damaged = |file: &str, error: &dyn std::fmt::Display| {
            Error::file(file, format!("cannot be read ({error}): get the file again"))
        };
        for batch in batches {
            let batch = batch.map_err(|error| damaged(&self.name, &error))?;
            for column in &mut self.columns {
                column.append(&batch).map_err(|(row, why)| {
                    let place = row.map_or(String::new(), |row| format!("row {}: ", n_rows + row + 1));
                    Error::file(&self.name, format!("column `{}`: {place}{why}", column.name))
                })?;
            }
            n_rows += batch.num_rows();
        }
        let (mut label, mut event, mut columns) = (None, None, Vec::new());
        for Growing { name, cells } in self.columns {
            let column = Column { name, cells: cells.finish() };
            match Some(&column.name) {
                name if name == self.label.as_ref() => label = Some(column),
                name if name == self.event.as_ref() => event = Some(column),
                _ => columns.push(column),
            }
        }
        Ok(Table { name: self.name, n_rows, fields: None, label, event, columns })
    }
}

impl Growing {
    fn append(&mut self, batch: &RecordBatch) -> std::result::Result<(), (Option<usize>, String)> {
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| (None, "is not in every part".to_owned()));
        let array = column(&self.name)?.as_ref();
        match &mut self.cells {
            Parts::Numbers(all) => {
                let values = numbers(array).ok_or_else(|| (None, "is not of one type in all parts".to_owned()))?;
                if let Some(row) = values.iter().position(|value| value.is_infinite()) {
                    return Err((Some(row), format!("{} is not a finite number", values[row])));
                }
                all.extend(values);
            }
            Parts::Words(all) => append_words(array, all).map_err(|why| (None, why))?,
            Parts::Lists(all, values) => {
                let values = values.as_deref().map(column).transpose()?;
                all.append(array, values.map(AsRef::as_ref)).map_err(|(row, why)| (Some(row), why))?;
            }
        }
        Ok(())
    }
}

impl Parts {
    fn finish(self) -> Cells {
        match self {
            Self::Numbers(values) => Cells::Numbers(values),
            Self::Words(words) => words.finish(),
            Self::Lists(lists, _) => lists.finish(),
        }
    }
}

/// What a type can be, or why it can be nothing.
fn kind(of: &DataType) -> std::result::Result<Kind, String> {
    use DataType::*;
    match of {
        Null | Boolean | Float16 | Float32 | Float64 | Decimal128(..) => Ok(Kind::Numbers),
        _ if of.is_integer() => Ok(Kind::Numbers),
        Utf8 | LargeUtf8 | Utf8View => Ok(Kind::Words),
        Dictionary(_, values) => match kind(values)? {
            Kind::Lists => Err("a dictionary of lists is no feature: drop it".into()),
            kind => Ok(kind),
        },
        _ if is_list(of) => Ok(Kind::Lists),
        _ if of.is_temporal() => Err("dates and times are no numbers: make numbers of them, or drop it".into()),
        _ => Err(format!("{of} is no type for features: drop it")),
    }
}

/// Appends a column of words, or of numbers as words.
fn append_words(array: &dyn Array, to: &mut Words) -> std::result::Result<(), String> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(|word| to.push(word)),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(|word| to.push(word)),
        DataType::Utf8View => array.as_string_view().iter().for_each(|word| to.push(word)),
        DataType::Dictionary(..) => {
            let mut values = Words::default();
            append_words(array.as_any_dictionary().values().as_ref(), &mut values)?;
            let Cells::Words { words, codes } = values.finish() else { unreachable!("words are words") };
            let word = |key: usize| codes.get(key).and_then(|&code| words.get(code as usize));
            keys(array).into_iter().for_each(|key| to.push(key.and_then(word).map(String::as_str)));
        }
        DataType::Boolean => {
            let word = |value: bool| if value { "true" } else { "false" };
            array.as_boolean().iter().for_each(|value| to.push(value.map(word)));
        }
        DataType::Int64 => array.as_primitive::<Int64Type>().iter().for_each(|value| {
            to.push(value.map(|value| value.to_string()).as_deref());
        }),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().iter().for_each(|value| {
            to.push(value.map(|value| value.to_string()).as_deref());
        }),
        _ => {
            for value in numbers(array).ok_or("is not of one type in all parts")? {
                to.push(Some(value.to_string()).filter(|_| !value.is_nan()).as_deref());
            }
        }
    }
    Ok(())
}
