//! Which column of a table is the label.

use std::str::FromStr;

/// The label column of a CSV file. From text: `first`, `last`, `none`, a number counted from 1, or a header's name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Label {
    /// The first column.
    #[default]
    First,
    /// The last column.
    Last,
    /// The column counted from 1.
    Number(usize),
    /// The column of that name in the header.
    Name(String),
    /// No column: data to predict. Targets come out as NaN.
    Absent,
}

impl FromStr for Label {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "first" => Self::First,
            "last" => Self::Last,
            "none" => Self::Absent,
            _ => text.parse().map_or_else(|_| Self::Name(text.into()), Self::Number),
        })
    }
}
