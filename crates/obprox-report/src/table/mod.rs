//! Tables: rounded for people, exact for programs.

mod runs;
mod steps;
mod words;

pub use crate::network::{confusion_table as confusion, layer_table as layers};
pub use runs::{certificates, runs};
pub use steps::{epochs, folds, path, rounds};
pub use words::{settings, weights};

use serde_json::{Map, Value};

use crate::report::Report;

/// Rows under headings.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// A word for files.
    pub name: &'static str,
    /// The columns.
    pub columns: Vec<Column>,
    /// One cell a column.
    pub rows: Vec<Vec<Cell>>,
}

/// A heading.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// In CSV.
    pub key: String,
    /// For people; columns without one are for programs alone.
    pub head: Option<String>,
}

/// What stands under it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// For people.
    pub shown: String,
    /// For programs: every digit, null where there is nothing.
    pub exact: Value,
    /// Whether it is the best of its column.
    pub best: bool,
}

impl Cell {
    /// The same words for all.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { shown: text.clone(), exact: Value::String(text), best: false }
    }

    /// A number that may be missing.
    pub(crate) fn number(value: Option<f64>, shown: impl Fn(f64) -> String) -> Self {
        match value.filter(|value| value.is_finite()) {
            Some(value) => Self { shown: shown(value), exact: value.into(), best: false },
            None => Self { shown: "–".into(), exact: Value::Null, best: false },
        }
    }

    /// A count that may be missing.
    pub(crate) fn count(value: Option<u64>) -> Self {
        let shown = value.map_or("–".into(), |value| value.to_string());
        Self { shown, exact: value.into(), best: false }
    }

    fn is_empty(&self) -> bool {
        self.exact.is_null() || self.exact == ""
    }
}

impl Table {
    pub(crate) fn new(name: &'static str, columns: &[(&str, Option<&str>)]) -> Self {
        let column =
            |(key, head): &(&str, Option<&str>)| Column { key: key.to_string(), head: head.map(str::to_owned) };
        Self { name, columns: columns.iter().map(column).collect(), rows: Vec::new() }
    }

    /// The same; columns that are empty for everyone are no longer shown to people.
    pub(crate) fn hiding_empty_columns(mut self) -> Self {
        for (at, column) in self.columns.iter_mut().enumerate() {
            if self.rows.iter().all(|row| row[at].is_empty()) {
                column.head = None;
            }
        }
        self
    }

    /// The places of the columns for people.
    fn shown(&self) -> impl Iterator<Item = (usize, &str)> {
        self.columns.iter().enumerate().filter_map(|(at, column)| Some((at, column.head.as_deref()?)))
    }

    /// The headings for people.
    pub fn header(&self) -> Vec<String> {
        self.shown().map(|(_, head)| head.to_owned()).collect()
    }

    /// The cells for people, row by row.
    pub fn cells(&self) -> impl Iterator<Item = Vec<&Cell>> {
        self.rows.iter().map(|row| self.shown().map(|(at, _)| &row[at]).collect())
    }

    /// As CSV: every column, every digit.
    pub fn to_csv(&self) -> String {
        let line = |cells: Vec<String>| cells.join(",") + "\n";
        let cell = |cell: &Cell| match &cell.exact {
            Value::Null => String::new(),
            Value::String(text) => quoted(text),
            other => other.to_string(),
        };
        let header = line(self.columns.iter().map(|column| quoted(&column.key)).collect());
        self.rows.iter().fold(header, |text, row| text + &line(row.iter().map(cell).collect()))
    }

    /// As JSON: an object a row.
    pub fn to_json(&self) -> String {
        let object = |row: &Vec<Cell>| -> Map<String, Value> {
            let keys = self.columns.iter().map(|column| column.key.clone());
            keys.zip(row.iter().map(|cell| cell.exact.clone())).collect()
        };
        let rows: Vec<Map<String, Value>> = self.rows.iter().map(object).collect();
        serde_json::to_string_pretty(&rows).expect("rows are plain data") + "\n"
    }

    /// As Markdown: the columns for people, the best of each in bold.
    pub fn to_markdown(&self) -> String {
        let header: Vec<String> = self.shown().map(|(_, head)| unmarked(head)).collect();
        let mut lines = vec![header.clone(), header.iter().enumerate().map(|(at, _)| rule(at)).collect()];
        for cells in self.cells() {
            let cell = |cell: &&Cell| match cell.best {
                true => format!("**{}**", unmarked(&cell.shown)),
                false => unmarked(&cell.shown),
            };
            lines.push(cells.iter().map(cell).collect());
        }
        lines.into_iter().map(|cells| format!("| {} |\n", cells.join(" | "))).collect()
    }
}

fn rule(at: usize) -> String {
    if at == 0 { "---".into() } else { "---:".into() }
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

/// Words that mean nothing to Markdown or HTML, on one line.
fn unmarked(text: &str) -> String {
    let mut out = String::new();
    for sign in text.chars() {
        match sign {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => out.extend(['\\', sign]),
            '<' => out += "&lt;",
            '&' => out += "&amp;",
            _ if sign.is_control() => out.push(' '),
            _ => out.push(sign),
        }
    }
    out
}

/// All tables of a report.
pub fn tables(report: &Report) -> Vec<Table> {
    let all = [
        runs(&report.problems),
        certificates(&report.problems),
        epochs(&report.problems),
        rounds(&report.problems),
        path(&report.problems),
        folds(&report.problems),
        weights(&report.problems),
        layers(&report.problems),
        confusion(&report.problems),
        settings(&report.problems),
    ];
    all.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_in_their_cells() {
        let mut table = Table::new("names", &[("name", Some("name")), ("hidden", None)]);
        table.rows.push(vec![Cell::text("a|b,\"c\"\n<script>*x*"), Cell::text("1,5")]);
        assert_eq!(table.to_csv(), "name,hidden\n\"a|b,\"\"c\"\"\n<script>*x*\",\"1,5\"\n");
        assert_eq!(table.to_markdown(), "| name |\n| --- |\n| a\\|b,\"c\" &lt;script>\\*x\\* |\n");
    }

    #[test]
    fn columns_without_anything_are_for_programs_alone() {
        let mut table = Table::new("x", &[("a", Some("a")), ("b", Some("b"))]);
        table.rows.push(vec![Cell::text("1"), Cell::number(None, |value| value.to_string())]);
        let table = table.hiding_empty_columns();
        assert_eq!((table.header(), table.to_csv()), (vec!["a".to_owned()], "a,b\n1,\n".to_owned()));
    }
}
