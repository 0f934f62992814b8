//! How the columns of a table become features.

use clap::{Args, ValueEnum};
use obprox::data::{Categorical, Encoding, Missing};

/// The flags of every subcommand that learns from a table or converts one; a model keeps what they said.
#[derive(Args, Debug)]
#[command(next_help_heading = "Columns of a table")]
pub struct TableFlags {
    /// Columns that become a feature for each value, such as country=FR; all: those with words in them
    #[arg(long, value_name = "NAME,…|all", value_delimiter = ',', value_parser = parse_name)]
    categorical: Vec<String>,

    /// What to put where a value is missing (an empty field, NA): the column's mean, zero, or with indicator the mean and a
    /// feature that marks the row; refuse: end with an error
    #[arg(long, value_name = "HOW", value_enum, default_value_t = MissingName::Refuse)]
    missing: MissingName,

    /// Use these columns as features, and no others
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_name, conflicts_with = "drop")]
    keep: Vec<String>,

    /// Columns to leave out
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = parse_name)]
    drop: Vec<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum MissingName {
    Refuse,
    Mean,
    Zero,
    Indicator,
}

fn parse_name(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("a name is empty".into()),
        false => Ok(text.to_owned()),
    }
}

impl TableFlags {
    /// What the reader is told.
    pub fn encoding(&self) -> Encoding {
        let all = self.categorical.iter().any(|name| name == "all");
        let names = self.categorical.iter().filter(|name| *name != "all").cloned().collect();
        Encoding {
            categorical: Categorical { all, names },
            missing: match self.missing {
                MissingName::Refuse => Missing::Refuse,
                MissingName::Mean => Missing::Mean,
                MissingName::Zero => Missing::Zero,
                MissingName::Indicator => Missing::Indicator,
            },
            keep: (!self.keep.is_empty()).then(|| self.keep.clone()),
            drop: self.drop.clone(),
        }
    }
}
