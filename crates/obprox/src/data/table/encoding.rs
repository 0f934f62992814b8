//! What the user says of the columns of a table.

use super::Wanted;
use crate::{Error, Result};

/// How columns become features. The default takes every column but the label as numbers without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoding {
    /// The columns that become a feature for each value.
    pub categorical: Categorical,
    /// What stands for a missing value.
    pub missing: Missing,
    /// The columns that are features, where not all are.
    pub keep: Option<Vec<String>>,
    /// Columns that are left out.
    pub drop: Vec<String>,
}

/// Columns that become a feature for each of their values, 1 where the row has it and 0 elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Categorical {
    /// Every column with words in it.
    pub all: bool,
    /// Columns by name, with words in them or not.
    pub names: Vec<String>,
}

/// What stands for a missing value: an empty field or a word such as NA in CSV, null elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Nothing does: the table is refused.
    #[default]
    Refuse,
    /// The mean of the column in the training data; of words none.
    Mean,
    /// Zero; of words none.
    Zero,
    /// The same as the mean, and 1 in a feature of its own.
    Indicator,
}

impl Encoding {
    /// Whether nothing is said of the columns.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }

    /// What is wanted of each column.
    pub(super) fn wanted(&self, names: &[String], label: Option<usize>) -> Result<Vec<Wanted>> {
        for (parameter, given) in [
            ("categorical", &self.categorical.names),
            ("keep", self.keep.as_ref().unwrap_or(&Vec::new())),
            ("drop", &self.drop),
        ] {
            for name in given {
                match names.iter().position(|known| known == name) {
                    None => return Err(no_column(parameter, name, names)),
                    Some(at) if Some(at) == label => {
                        return Err(Error::parameter(parameter, format!("`{name}` is the label's column")));
                    }
                    Some(_) => {}
                }
            }
        }
        let is_in = |list: &[String], name: &String| list.contains(name);
        let wanted = |name: &String| {
            if is_in(&self.drop, name) || self.keep.as_ref().is_some_and(|keep| !is_in(keep, name)) {
                Wanted::Skipped
            } else if is_in(&self.categorical.names, name) {
                Wanted::Words
            } else if self.categorical.all {
                Wanted::Any
            } else {
                Wanted::Numbers
            }
        };
        Ok(names.iter().map(wanted).collect())
    }
}

/// The error for a name that no column has.
pub fn no_column(parameter: &'static str, name: &str, names: &[String]) -> Error {
    Error::parameter(parameter, format!("no column is named `{name}`; the columns are {}", listed(names)))
}

/// The first names of many.
pub fn listed(names: &[String]) -> String {
    let more = if names.len() > 20 { ", …" } else { "" };
    names.iter().take(20).map(String::as_str).collect::<Vec<_>>().join(", ") + more
}
