//! Columns of lists: features of one's own numbering.
//!
//! A list of whole numbers has the indices of the features that are 1 in its row, or whose values are in another column:
//! that of the same name with `values` in the place of `indices`. A list of other numbers has the values of the features
//! 0, 1, …. A map has indices and values, and so has a struct of two lists by those names.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Schema};

use super::Cells;
use super::numbers::numbers;

/// Lists that grow.
pub struct Lists {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f64>,
}

/// The lists of some rows: row r has the items from `starts[r]` to `ends[r]`.
struct Ranges {
    starts: Vec<usize>,
    ends: Vec<usize>,
    items: ArrayRef,
}

type Flaw = (usize, String);

impl Default for Lists {
    fn default() -> Self {
        Self { offsets: vec![0], indices: Vec::new(), values: Vec::new() }
    }
}

/// Whether a type is one of lists that can be features.
pub fn is_list(of: &DataType) -> bool {
    match of {
        DataType::Struct(fields) => {
            let list = |name: &str| fields.find(name).is_some_and(|(_, field)| item(field.data_type()).is_some());
            list("indices") && list("values")
        }
        DataType::Map(..) => true,
        _ => item(of).is_some(),
    }
}

/// The type of a list's items, where they are numbers.
fn item(of: &DataType) -> Option<&DataType> {
    match of {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            Some(field.data_type()).filter(|item| item.is_numeric() || **item == DataType::Null)
        }
        _ => None,
    }
}

/// The column with the values of a column of indices.
pub fn values_of(schema: &Schema, at: usize) -> Option<usize> {
    let field = schema.field(at);
    let name = field.name();
    if !name.contains("indices") || !item(field.data_type())?.is_integer() {
        return None;
    }
    let (values, field) = schema.column_with_name(&name.replacen("indices", "values", 1))?;
    item(field.data_type()).map(|_| values)
}

impl Lists {
    /// Appends the lists of a column; `values` where those of indices are in another one.
    pub fn append(&mut self, array: &dyn Array, values: Option<&dyn Array>) -> Result<(), Flaw> {
        let of = |array: &dyn Array| ranges(array).ok_or((0, "has no lists of numbers".to_owned()));
        match (array.data_type(), values) {
            (DataType::Struct(_), _) => {
                let lists = array.as_struct();
                let list = |name| lists.column_by_name(name).ok_or((0, "has no indices and values".to_owned()));
                let (indices, values) = (of(list("indices")?.as_ref())?, of(list("values")?.as_ref())?);
                self.append_pairs(&indices.without(array), Some(&values.without(array)))
            }
            (DataType::Map(..), _) => {
                let map = array.as_map();
                let offsets: Vec<usize> = map.value_offsets().iter().map(|&offset| offset as usize).collect();
                let part = |items: &ArrayRef| {
                    let (starts, ends) = (offsets[..array.len()].to_vec(), offsets[1..].to_vec());
                    Ranges { starts, ends, items: items.clone() }.without(array)
                };
                self.append_pairs(&part(map.keys()), Some(&part(map.values())))
            }
            (_, Some(values)) => self.append_pairs(&of(array)?, Some(&of(values)?)),
            (of_list, None) if item(of_list).is_some_and(DataType::is_integer) => self.append_pairs(&of(array)?, None),
            _ => self.append_vectors(&of(array)?),
        }
    }

    /// Indices with their values, or with ones.
    fn append_pairs(&mut self, lists: &Ranges, with: Option<&Ranges>) -> Result<(), Flaw> {
        let not_numbers = || (0, "has no lists of numbers".to_owned());
        let indices = numbers(lists.items.as_ref()).ok_or_else(not_numbers)?;
        let values = with.map(|with| numbers(with.items.as_ref()).ok_or_else(not_numbers)).transpose()?;
        let mut entries: Vec<(u32, f64)> = Vec::new();
        for row in 0..lists.starts.len() {
            let of_row = lists.of(row, &indices);
            let values = with.zip(values.as_ref()).map(|(with, values)| with.of(row, values));
            if let Some(values) = values.filter(|values| values.len() != of_row.len()) {
                return Err((row, format!("has {} indices but {} values", of_row.len(), values.len())));
            }
            entries.clear();
            for (at, &index) in of_row.iter().enumerate() {
                if !(index >= 0.0 && index < f64::from(u32::MAX) && index.fract() == 0.0) {
                    return Err((row, format!("{index} is no index: they are whole numbers from 0 on")));
                }
                entries.push((index as u32, values.map_or(1.0, |values| values[at])));
            }
            entries.sort_unstable_by_key(|(index, _)| *index);
            if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err((row, format!("the index {} is there twice", pair[0].0)));
            }
            self.end_row(row, &entries)?;
        }
        Ok(())
    }

    /// The values of the features 0, 1, ….
    fn append_vectors(&mut self, lists: &Ranges) -> Result<(), Flaw> {
        let values = numbers(lists.items.as_ref()).ok_or_else(|| (0, "has no lists of numbers".to_owned()))?;
        for row in 0..lists.starts.len() {
            let entries: Vec<(u32, f64)> = (0..).zip(lists.of(row, &values).iter().copied()).collect();
            self.end_row(row, &entries)?;
        }
        Ok(())
    }

    fn end_row(&mut self, row: usize, entries: &[(u32, f64)]) -> Result<(), Flaw> {
        if let Some((_, value)) = entries.iter().find(|(_, value)| !value.is_finite()) {
            let what =
                if value.is_nan() { "a value in the list is missing".into() } else { format!("{value} is not finite") };
            return Err((row, what));
        }
        self.indices.extend(entries.iter().map(|(index, _)| index));
        self.values.extend(entries.iter().map(|(_, value)| value));
        self.offsets.push(self.indices.len());
        Ok(())
    }

    /// The whole column.
    pub fn finish(self) -> Cells {
        Cells::Lists { offsets: self.offsets, indices: self.indices, values: self.values }
    }
}

impl Ranges {
    fn of<'a>(&self, row: usize, items: &'a [f64]) -> &'a [f64] {
        &items[self.starts[row]..self.ends[row]]
    }

    /// Without the items of rows that are missing as a whole.
    fn without(mut self, array: &dyn Array) -> Self {
        for row in (0..self.ends.len()).filter(|&row| array.is_null(row)) {
            self.ends[row] = self.starts[row];
        }
        self
    }
}

/// Where the items of each row are.
fn ranges(array: &dyn Array) -> Option<Ranges> {
    let (offsets, items): (Vec<usize>, &ArrayRef) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.value_offsets().iter().map(|&offset| offset as usize).collect(), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.value_offsets().iter().map(|&offset| offset as usize).collect(), list.values())
        }
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let width = list.value_length() as usize;
            ((0..=array.len()).map(|row| row * width).collect(), list.values())
        }
        _ => return None,
    };
    let (starts, ends) = (offsets[..array.len()].to_vec(), offsets[1..].to_vec());
    Some(Ranges { starts, ends, items: items.clone() }.without(array))
}
