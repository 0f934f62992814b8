//! The recipe: which columns of a table become which features, and what stands for values that are missing.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::encoding::{Missing, listed};
use super::{Cells, Column, Label, Table, Wanted};
use crate::loss::{Loss, Task};
use crate::{Error, Result};

pub(super) const FILL: &str =
    "fill them in, drop the column, or choose what stands for them (missing: mean, zero or indicator)";
pub(super) const FILL_LABELS: &str = "fill them in or drop the rows";

/// So many places of lists have names; one stray index must not cost gigabytes.
const MOST_PLACES: usize = 1 << 18;

/// How a table becomes rows of features; learnt from the training data, kept in the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// The label's column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The column that says whether the event was seen, where the label is a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    /// The words that the labels 0, 1, … stand for, where the label's column has words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    classes: Vec<String>,
    /// Fields of a line where columns have no names and are called by their numbers: then they are found by place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<usize>,
    /// In the order of their features.
    columns: Vec<Encoded>,
}

/// A column and the features it becomes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Encoded {
    /// Its name.
    pub name: String,
    /// Its features.
    #[serde(flatten)]
    pub features: Features,
    /// What stands for a missing value; nothing where tables with one are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Fill>,
}

/// The features of a column, counted from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Features {
    /// The number itself.
    Number(u32),
    /// For each value a feature that is 1 where the row has it; a value that is not in the list has none.
    Categories(Vec<(u32, String)>),
    /// The first of as many features as the lists of the column have places.
    List(u32, u32),
}

/// What stands for a missing value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fill {
    /// The number; 0 for words.
    pub value: f64,
    /// A feature that is 1 where the value is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indicator: Option<u32>,
}

impl Recipe {
    /// The recipe of a table whose columns are numbers without a gap. None where two of them have one name, since a
    /// column could not be found again.
    pub(in crate::data) fn of_numbers(names: &[String], label: Option<&String>) -> Option<Self> {
        let distinct: HashSet<&String> = names.iter().chain(label).collect();
        if distinct.len() < names.len() + usize::from(label.is_some()) {
            return None;
        }
        let column = |(feature, name): (usize, &String)| Encoded {
            name: name.clone(),
            features: Features::Number(feature as u32),
            missing: None,
        };
        let columns = names.iter().enumerate().map(column).collect();
        Some(Self { label: label.cloned(), columns, ..Self::default() })
    }

    /// Learns from training data. Words are put in order, so that the features do not depend on that of the rows.
    pub(super) fn learn(table: &mut Table, missing: Missing) -> Result<Self> {
        let mut next = 0u32;
        let mut take = |count: usize| -> Result<u32> {
            let first = next;
            next = u32::try_from(count).ok().and_then(|count| first.checked_add(count)).ok_or_else(|| {
                Error::file(&table.name, format!("has more than {} features: drop a column of many values", u32::MAX))
            })?;
            Ok(first)
        };
        let mut columns = Vec::with_capacity(table.columns.len());
        for column in &mut table.columns {
            let gaps = column.cells.missing();
            if gaps > 0 && missing == Missing::Refuse {
                return Err(column.refuse_missing("column", FILL).of_file(table.name.as_ref()));
            }
            if gaps > 0 && gaps == table.n_rows {
                let message = format!("column `{}`: every value is missing: drop the column", column.name);
                return Err(Error::file(&table.name, message));
            }
            let (features, mean) = match &mut column.cells {
                Cells::Numbers(values) => {
                    let present = values.iter().filter(|value| !value.is_nan());
                    let mean = present.sum::<f64>() / (table.n_rows - gaps).max(1) as f64;
                    (Features::Number(take(1)?), mean)
                }
                Cells::Words { words, codes } => {
                    put_in_order(words, codes);
                    let first = take(words.len())?;
                    (Features::Categories((first..).zip(words.iter().cloned()).collect()), 0.0)
                }
                Cells::Lists { indices, .. } => {
                    let width = indices.iter().max().map_or(0, |&last| last.saturating_add(1));
                    (Features::List(take(width as usize)?, width), 0.0)
                }
            };
            let fill = |value: f64| Fill { value, indicator: None };
            let missing = match missing {
                Missing::Refuse => None,
                Missing::Zero => Some(fill(0.0)),
                Missing::Mean => Some(fill(mean)),
                Missing::Indicator if gaps == 0 => Some(fill(mean)),
                Missing::Indicator => Some(Fill { value: mean, indicator: Some(take(1)?) }),
            };
            columns.push(Encoded { name: column.name.clone(), features, missing });
        }
        let mut classes = Vec::new();
        if let Some(Column { cells: Cells::Words { words, codes }, .. }) = &mut table.label {
            put_in_order(words, codes);
            classes.clone_from(words);
        }
        let label = table.label.as_ref().map(|label| label.name.clone());
        let event = table.event.as_ref().map(|event| event.name.clone());
        Ok(Self { label, event, classes, fields: table.fields, columns })
    }

    /// The name of the label's column, where there was one.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// The words that the labels 0, 1, … stand for, where the label's column has words.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The columns, in the order of their features.
    pub fn columns(&self) -> &[Encoded] {
        &self.columns
    }

    /// Whether features are columns of numbers as they are: then their order alone says as much.
    pub fn is_plain(&self) -> bool {
        let is_number = |column: &Encoded| matches!(column.features, Features::Number(_)) && column.missing.is_none();
        self.fields.is_none() && self.event.is_none() && self.classes.is_empty() && self.columns.iter().all(is_number)
    }

    /// What finds the label in a table like the one it was learnt from.
    pub(super) fn label_column(&self) -> Label {
        self.label.as_ref().map_or(Label::Absent, |label| self.found_by(label))
    }

    /// The same of the event, where there is one.
    pub(super) fn event_column(&self) -> Option<Label> {
        self.event.as_ref().map(|event| self.found_by(event))
    }

    fn found_by(&self, name: &str) -> Label {
        match self.fields {
            None => Label::Name(name.to_owned()),
            Some(_) => name.parse().map_or(Label::Absent, Label::Number),
        }
    }

    /// The names of the features, in their order; none where lists make too many of them.
    pub(super) fn names(&self) -> Option<Vec<String>> {
        let width = |column: &Encoded| if let Features::List(_, width) = column.features { width as usize } else { 0 };
        if self.columns.iter().map(width).sum::<usize>() > MOST_PLACES {
            return None;
        }
        let mut names = Vec::new();
        for Encoded { name, features, missing } in &self.columns {
            match features {
                Features::Number(_) => names.push(name.clone()),
                Features::Categories(values) => {
                    names.extend(values.iter().map(|(_, value)| format!("{name}={value}")));
                }
                Features::List(_, width) => names.extend((0..*width).map(|place| format!("{name}[{place}]"))),
            }
            if missing.is_some_and(|fill| fill.indicator.is_some()) {
                names.push(format!("{name}:missing"));
            }
        }
        Some(names)
    }

    /// What is wanted of the columns of a table; all of the recipe's must be there.
    pub(super) fn wanted(&self, file: &str, names: &[String]) -> Result<Vec<Wanted>> {
        if let Some(fields) = self.fields.filter(|&fields| fields != names.len()) {
            let message = format!("has {} columns where the training data has {fields}", names.len());
            return Err(Error::file(file, format!("{message}: columns without names are found by their place")));
        }
        let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let mut wanted = vec![Wanted::Skipped; names.len()];
        for column in &self.columns {
            let Some(&at) = places.get(column.name.as_str()) else {
                let message = format!("no column is named `{}`, which the model uses", column.name);
                return Err(Error::file(file, format!("{message}; the columns are {}", listed(names))));
            };
            wanted[at] = match column.features {
                Features::Number(_) => Wanted::Numbers,
                Features::Categories(_) => Wanted::Words,
                Features::List(..) => Wanted::Any,
            };
        }
        Ok(wanted)
    }

    /// The targets of a table: the label's numbers, or the numbers of its words.
    pub(super) fn targets(&self, label: Option<&Column>, n_rows: usize) -> Result<Vec<f64>> {
        let Some(label) = label else { return Ok(vec![f64::NAN; n_rows]) };
        if label.cells.missing() > 0 {
            return Err(label.refuse_missing("label column", FILL_LABELS));
        }
        let (words, codes) = match (&label.cells, self.classes.is_empty()) {
            (Cells::Numbers(values), true) => return Ok(values.clone()),
            (Cells::Words { words, codes }, false) => (words, codes),
            _ => {
                let message = "is of another kind than in the training data, or none that a label can be";
                return Err(Error::Data(format!("label column `{}`: {message}", label.name)));
            }
        };
        let class = |word: &String| self.classes.binary_search(word).ok();
        let classes: Vec<Option<usize>> = words.iter().map(class).collect();
        let target = |(row, &code): (usize, &u32)| {
            classes[code as usize].map(|class| class as f64).ok_or_else(|| {
                let (row, word) = (row + 1, &words[code as usize]);
                let known = listed(&self.classes);
                Error::Data(format!(
                    "row {row}: the label `{word}` does not occur in the training data, which has {known}"
                ))
            })
        };
        codes.iter().enumerate().map(target).collect()
    }

    /// Words are no numbers to regress on.
    pub(crate) fn check_loss(&self, loss: &dyn Loss) -> Result<()> {
        if self.classes.is_empty() || matches!(loss.task(), Task::Binary | Task::Classes) {
            return Ok(());
        }
        let label = self.label.as_deref().unwrap_or_default();
        Err(Error::Data(format!("label column `{label}`: has words, but the {} loss is for numbers", loss.name())))
    }

    /// The part of the recipe that features of these numbers, which rise, are made by. What no weight falls on needs
    /// not be in a table.
    pub(crate) fn used(&self, used: &[u32]) -> Self {
        let is_used = |feature: u32| used.binary_search(&feature).is_ok();
        let mut columns = Vec::new();
        for Encoded { name, features, missing } in &self.columns {
            let features = match features {
                Features::Categories(values) => {
                    Features::Categories(values.iter().filter(|(feature, _)| is_used(*feature)).cloned().collect())
                }
                other => other.clone(),
            };
            let matters = match &features {
                Features::Number(feature) => is_used(*feature),
                Features::Categories(values) => !values.is_empty(),
                Features::List(first, width) => {
                    let next = used.partition_point(|feature| feature < first);
                    used.get(next).is_some_and(|feature| feature - first < *width)
                }
            };
            if matters || missing.and_then(|fill| fill.indicator).is_some_and(is_used) {
                columns.push(Encoded { name: name.clone(), features, missing: *missing });
            }
        }
        Self { columns, ..self.clone() }
    }

    /// Whether a recipe from a file can be that of a model with so many features and labels.
    pub(crate) fn check(&self, n_features: usize, n_labels: usize) -> std::result::Result<(), String> {
        if !self.classes.is_empty() && self.classes.len() != n_labels {
            return Err(format!("{} words for {n_labels} labels", self.classes.len()));
        }
        if !self.classes.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err("the words of the labels must rise".into());
        }
        let (mut next, mut names) = (0u64, HashSet::new());
        for Encoded { name, features, missing } in &self.columns {
            if !names.insert(name) {
                return Err(format!("the column `{name}` is there twice"));
            }
            let ranges: Vec<(u32, u32)> = match features {
                Features::Number(feature) => vec![(*feature, 1)],
                Features::Categories(values) => values.iter().map(|(feature, _)| (*feature, 1)).collect(),
                Features::List(first, width) => vec![(*first, *width)],
            };
            let indicator = missing.and_then(|fill| fill.indicator).map(|feature| (feature, 1));
            for (first, width) in ranges.into_iter().chain(indicator) {
                if u64::from(first) < next {
                    return Err(format!("the features of the column `{name}` must rise"));
                }
                next = u64::from(first) + u64::from(width);
            }
            if missing.is_some_and(|fill| !fill.value.is_finite()) {
                return Err(format!("what stands for a missing `{name}` is not a finite number"));
            }
        }
        match next > n_features as u64 {
            true => Err(format!("features must stay below {n_features}")),
            false => Ok(()),
        }
    }
}

/// Words in order, without those that no row has.
fn put_in_order(words: &mut Vec<String>, codes: &mut [u32]) {
    let mut order: Vec<u32> = (0..words.len() as u32).collect();
    let mut occurs = vec![false; words.len()];
    for &code in codes.iter().filter(|&&code| code != super::NO_WORD) {
        occurs[code as usize] = true;
    }
    order.retain(|&word| occurs[word as usize]);
    order.sort_unstable_by(|&a, &b| words[a as usize].cmp(&words[b as usize]));
    let mut places = vec![super::NO_WORD; words.len()];
    (0..).zip(&order).for_each(|(place, &word)| places[word as usize] = place);
    codes.iter_mut().for_each(|code| *code = places.get(*code as usize).copied().unwrap_or(super::NO_WORD));
    *words = order.iter().map(|&word| std::mem::take(&mut words[word as usize])).collect();
}
