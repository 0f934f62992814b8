//! Penalties other than λ‖x‖₁: bounds on the weights, groups of features.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use obprox::Error;
use obprox::penalty::{Bounds, Groups, Penalty};

use super::number;
use crate::failure::Failure;
use crate::input::shown;

/// The flags that make a penalty.
#[derive(Args, Debug)]
pub struct PenaltyFlags {
    /// Allow no negative weights
    #[arg(long)]
    positive: bool,

    /// A file with the lower and the upper bound of each feature's weight, two numbers a line such as -1 inf
    #[arg(long, value_name = "FILE", conflicts_with = "positive")]
    pub bounds: Option<PathBuf>,

    /// Features that are zero together: a file with the group of each feature, a name a line; or each, where the weights of
    /// a feature in all classes are a group
    #[arg(long, value_name = "FILE|each", conflicts_with_all = ["positive", "bounds"])]
    groups: Option<PathBuf>,

    /// The weight of a group: size (the root of its number of weights), one, or a file with a group and its weight on each line
    /// [default: size]
    #[arg(long, value_name = "size|one|FILE", requires = "groups")]
    group_weight: Option<PathBuf>,

    /// The share of l1 in the penalty of groups, so that single features of a group can be zero (sparse group lasso)
    #[arg(long, value_name = "SHARE", requires = "groups", value_parser = share, allow_negative_numbers = true)]
    group_l1: Option<f64>,
}

impl PenaltyFlags {
    /// Whether the flags go together; reads nothing.
    pub fn check(&self, has_feature_weights: bool) -> Result<(), Failure> {
        if has_feature_weights && self.groups.is_some() {
            let message = "--feature-weights: groups have weights of their own; use --group-weight";
            return Err(Failure::input(message));
        }
        Ok(())
    }

    /// The file of the groups, where there is one.
    pub fn groups_file(&self) -> Option<&Path> {
        self.groups.as_deref().filter(|path| *path != Path::new("each"))
    }

    /// The file of their weights, where there is one.
    pub fn group_weight_file(&self) -> Option<&Path> {
        let is_word = |path: &Path| ["size", "one"].iter().any(|word| path == Path::new(word));
        self.group_weight.as_deref().filter(|path| !is_word(path))
    }

    /// The penalty in a few words, its files included.
    pub fn words(&self) -> Option<String> {
        if self.positive {
            return Some("positive".into());
        }
        if let Some(bounds) = &self.bounds {
            return Some(format!("bounds {}", shown(bounds)));
        }
        let groups = self.groups.as_ref()?;
        let weight =
            self.group_weight.as_ref().map_or_else(String::new, |weight| format!(", weights {}", shown(weight)));
        let l1 = self.group_l1.map_or_else(String::new, |share| format!(", {share} of it l1"));
        Some(format!("groups {}{weight}{l1}", shown(groups)))
    }

    /// Reads the files and makes the penalty, for data of so many features.
    pub fn read(&self, features: usize, weights: Option<&[f64]>) -> Result<Option<Arc<dyn Penalty>>, Failure> {
        let weights = weights.map(<[f64]>::to_vec);
        if self.positive {
            return Ok(Some(Arc::new(Bounds::positive(features).with_weights(weights))));
        }
        if let Some(file) = &self.bounds {
            let (low, high) = read_bounds(file)?.into_iter().unzip();
            let bounds = Bounds::new(low, high).map_err(Failure::about(&shown(file)))?;
            return Ok(Some(Arc::new(bounds.with_weights(weights))));
        }
        let Some(groups) = &self.groups else { return Ok(None) };
        let share = self.group_l1.unwrap_or(0.0);
        let (penalty, names) = match self.groups_file() {
            None => (Groups::each(), (0..features).map(|feature| feature.to_string()).collect()),
            Some(file) => {
                let (of, names) = read_groups(file)?;
                (Groups::new(of)?, names)
            }
        };
        let penalty = penalty.with_l1_share(share)?;
        let penalty = match (self.group_weight.as_deref(), self.group_weight_file()) {
            (_, Some(file)) => penalty.with_weights(read_group_weights(file, &names, &shown(groups))?)?,
            (Some(word), None) if word == Path::new("one") => penalty.with_weights(vec![1.0; names.len()])?,
            _ => penalty,
        };
        Ok(Some(Arc::new(penalty)))
    }
}

fn share(text: &str) -> Result<f64, String> {
    match number(text)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        share => Err(format!("{share} must lie between 0 and 1")),
    }
}

/// The lines of a file that are not blank, with their numbers from 1.
fn lines(file: &Path) -> Result<Vec<(u64, String)>, Failure> {
    let text = std::fs::read_to_string(file).map_err(Error::reading(file))?;
    let line = |(at, line): (u64, &str)| (!line.trim().is_empty()).then(|| (at, line.trim().to_owned()));
    Ok((1..).zip(text.lines()).filter_map(line).collect())
}

fn wrong(file: &Path, line: u64, message: String) -> Failure {
    Failure::input(format!("{}: line {line}: {message}", shown(file)))
}

/// Two bounds a line; a bound may be inf or -inf.
fn read_bounds(file: &Path) -> Result<Vec<(f64, f64)>, Failure> {
    let bound = |text: &str| text.parse::<f64>().ok().filter(|bound| !bound.is_nan());
    let pair = |(at, line): (u64, String)| {
        let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
        match words[..] {
            [low, high] => match (bound(low), bound(high)) {
                (Some(low), Some(high)) => Ok((low, high)),
                (None, _) => Err(wrong(file, at, format!("{low:?} is no bound; give a number, inf or -inf"))),
                _ => Err(wrong(file, at, format!("{high:?} is no bound; give a number, inf or -inf"))),
            },
            _ => Err(wrong(file, at, "give the lower and the upper bound of a feature, such as 0 inf".into())),
        }
    };
    lines(file)?.into_iter().map(pair).collect()
}

/// The group of each feature, numbered as they are met, and their names.
fn read_groups(file: &Path) -> Result<(Vec<u32>, Vec<String>), Failure> {
    let (mut known, mut names, mut of) = (HashMap::new(), Vec::new(), Vec::new());
    for (_, name) in lines(file)? {
        let number = *known.entry(name.clone()).or_insert_with(|| {
            names.push(name);
            names.len() as u32 - 1
        });
        of.push(number);
    }
    Ok((of, names))
}

/// The weight of each group by its name; those that are not named have weight 1.
fn read_group_weights(file: &Path, names: &[String], groups: &str) -> Result<Vec<f64>, Failure> {
    let places: HashMap<&str, usize> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    let mut weights = vec![1.0; names.len()];
    for (at, line) in lines(file)? {
        let (name, weight) = line.rsplit_once([' ', '\t', ',']).unwrap_or((&line, ""));
        let name = name.trim();
        let Some(&place) = places.get(name) else {
            return Err(wrong(file, at, format!("there is no group {name:?} in {groups}")));
        };
        weights[place] = super::not_negative(weight.trim())
            .map_err(|why| wrong(file, at, format!("the weight {:?} {why}", weight.trim())))?;
    }
    Ok(weights)
}
