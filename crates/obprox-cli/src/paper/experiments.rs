//! `paper/convex.toml` as the command uses it; what each entry means is said there.

use std::sync::LazyLock;

use obprox::data::{Entries, Planted, Synth, Task};
use serde::{Deserialize, Serialize};

/// The paper's experiments on logistic regression.
pub fn experiments() -> &'static Experiments {
    static EXPERIMENTS: LazyLock<Experiments> =
        LazyLock::new(|| toml::from_str(include_str!("convex.toml")).expect("a test reads the built-in configuration"));
    &EXPERIMENTS
}

/// Everything in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiments {
    pub recipe: Recipe,
    pub switching: Switching,
    pub support: Support,
    pub rate: Rate,
    pub published: Published,
    pub set: Vec<Set>,
}

/// The settings of every run of the tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    pub epochs: u64,
    pub step: f64,
    pub decay: f64,
    pub seeds: u64,
    pub gammas: Vec<f64>,
    pub tolerance: f64,
    /// Rows in a batch, where they are not the paper's min(256, ⌈N/100⌉).
    pub batch: Option<usize>,
}

/// The sweep over N_P and N_O.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switching {
    pub sets: Vec<String>,
    pub prox: Vec<u64>,
    pub orthant: Vec<Rounds>,
    pub epochs: u64,
    pub planted: PlantedRecipe,
}

/// A number of epochs, or "inf".
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "toml::Value")]
pub struct Rounds(pub Option<u64>);

impl TryFrom<toml::Value> for Rounds {
    type Error = String;

    fn try_from(value: toml::Value) -> Result<Self, String> {
        match value {
            toml::Value::Integer(rounds @ 1..) => Ok(Self(Some(rounds as u64))),
            toml::Value::String(word) if word == "inf" => Ok(Self(None)),
            other => Err(format!("{other:?}: a number of epochs from 1, or \"inf\"")),
        }
    }
}

impl std::fmt::Display for Rounds {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        self.0.map_or("∞".to_owned(), |rounds| rounds.to_string()).fmt(out)
    }
}

/// Who finds the planted support.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    pub planted: PlantedRecipe,
    pub lambdas: Vec<f64>,
    pub budgets: Vec<u64>,
    pub step: f64,
    pub seeds: u64,
}

/// Theorem 1 (ii).
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    pub planted: PlantedRecipe,
    pub lambda: f64,
    pub steps: Vec<f64>,
    pub batch: usize,
    pub epochs: u64,
    pub seeds: u64,
}

/// A planted problem.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlantedRecipe {
    pub rows: usize,
    pub columns: usize,
    pub per_row: f64,
    pub support: usize,
    pub noise: f64,
    pub skew: f64,
    pub entries: Kind,
}

/// What the nonzeros of a planted problem are.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Normal,
    UnitRows,
}

impl PlantedRecipe {
    /// Makes the problem of a seed.
    pub fn plant(&self, task: Task, seed: u64) -> obprox::Result<Planted> {
        let entries = match self.entries {
            Kind::Normal => Entries::Normal,
            Kind::UnitRows => Entries::UnitRows,
        };
        let Self { rows, columns, per_row, support, noise, skew, .. } = *self;
        Synth { rows, cols: columns, per_row, support, task, noise, entries, skew, seed }.generate()
    }

    /// In words.
    pub fn words(&self) -> String {
        let entries = match self.entries {
            Kind::Normal => "normal entries",
            Kind::UnitRows => "unit rows",
        };
        format!(
            "{} rows × {} features, {} nonzeros a row, {entries}, {} true weights, noise {}",
            self.rows, self.columns, self.per_row, self.support, self.noise
        )
    }
}

/// Where the data sets are published.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub source: String,
}

/// A data set of the paper's table, and the paper's figures for its five methods.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    pub name: String,
    pub rows: usize,
    pub columns: usize,
    pub file: String,
    pub bytes: Option<u64>,
    pub sha256: Option<String>,
    #[serde(rename = "F")]
    pub objective: [f64; 5],
    #[serde(rename = "f")]
    pub loss: [f64; 5],
    /// Percent.
    pub density: [f64; 5],
}

impl Set {
    /// The name of the downloaded file: the paper's name, and the published file's compression.
    pub fn local_name(&self) -> String {
        match self.file.rsplit_once('.') {
            Some((_, ending @ ("bz2" | "xz" | "gz" | "zst"))) => format!("{}.{ending}", self.name),
            _ => self.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_configuration_is_the_papers() {
        let Experiments { recipe, set, .. } = experiments();
        assert_eq!((recipe.epochs, recipe.step, recipe.decay), (30, 1.0, 0.995));
        let names: Vec<&str> = set.iter().map(|set| set.name.as_str()).collect();
        assert_eq!(names, ["a9a", "higgs", "kdda", "news20", "real-sim", "rcv1", "url_combined", "w8a"]);
        // F = f + λ‖x‖₁, whatever was rounded.
        assert!(set.iter().all(|set| set.objective.iter().zip(set.loss).all(|(objective, loss)| *objective >= loss)));
        assert!(set.iter().all(|set| set.sha256.as_ref().is_none_or(|hash| hash.len() == 64)));
    }

    #[test]
    fn downloads_are_named_as_in_the_table() {
        let names: Vec<String> = experiments().set.iter().map(Set::local_name).collect();
        assert_eq!(names[..4], ["a9a", "higgs.xz", "kdda.bz2", "news20.bz2"]);
    }
}
