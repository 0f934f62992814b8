//! `paper/nets.toml` as the command uses it; what each entry means is said there.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use obprox::MethodKind;
use obprox::switch::{Switch, Unit};
use obprox_nn::train::{Penalty, Schedule, Settings};
use serde::Deserialize;

/// The paper's experiments on networks.
pub fn config() -> &'static Config {
    static CONFIG: LazyLock<Config> =
        LazyLock::new(|| toml::from_str(include_str!("nets.toml")).expect("a test reads the built-in configuration"));
    &CONFIG
}

/// Everything in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub scale: BTreeMap<String, Scale>,
    pub data: Vec<DataSet>,
    pub published: Vec<Published>,
}

/// How large the networks and how long the runs are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    pub words: String,
    pub width: f64,
    pub images: Option<usize>,
    pub test_images: Option<usize>,
    pub epochs: u64,
    pub batch: usize,
    pub lambda: f64,
    pub step: f64,
    pub decay: f64,
    pub decay_every: u64,
    pub cycle: [u64; 2],
    pub switch: u64,
    pub eval_every: u64,
}

/// A data set of the paper.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSet {
    pub name: String,
    pub gamma: f64,
}

impl DataSet {
    /// The name in files and flags.
    pub fn plain_name(&self) -> String {
        self.name.to_lowercase()
    }
}

/// A row of the paper's tables; percent where it has percent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub network: String,
    pub data: String,
    #[serde(rename = "F")]
    pub objective: [f64; 5],
    #[serde(rename = "f")]
    pub loss: [f64; 5],
    pub density: [f64; 5],
    pub accuracy: [f64; 5],
}

impl Scale {
    /// The settings of a run.
    pub fn settings(&self, method: MethodKind, data: &DataSet) -> Settings {
        let switch = match method {
            MethodKind::ObproxSg => {
                Switch::Fixed { prox: self.cycle[0], orthant: Some(self.cycle[1]), unit: Unit::Epochs }
            }
            _ => Switch::Fixed { prox: self.switch, orthant: None, unit: Unit::Epochs },
        };
        Settings {
            penalty: Penalty::new(self.lambda),
            epochs: self.epochs,
            batch: self.batch,
            step: self.step,
            schedule: Schedule::Steps { factor: self.decay, every: self.decay_every },
            switch,
            gamma: data.gamma,
            eval_every: Some(self.eval_every),
            ..Settings::paper(method)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_scale_is_the_papers() {
        let full = &config().scale["full"];
        for (data, gamma) in config().data.iter().zip([20.0, 30.0]) {
            for method in MethodKind::PAPER {
                assert_eq!(full.settings(method, data), Settings { gamma, ..Settings::paper(method) });
            }
        }
        assert_eq!((full.width, full.images, full.test_images), (1.0, None, None));
    }

    #[test]
    fn presets_keep_the_proportions() {
        for scale in config().scale.values() {
            assert_eq!(2 * scale.switch, scale.epochs);
            assert_eq!(scale.decay_every, (3 * scale.epochs).div_ceil(10));
            // An even number of rounds: OBProx-SG ends with Orthant steps, as 200 epochs of 5 and 5 do.
            assert_eq!(scale.cycle[0], scale.cycle[1]);
            assert_eq!(scale.epochs % (2 * scale.cycle[0]), 0);
        }
    }

    #[test]
    fn every_row_of_the_paper_is_a_run() {
        let published = &config().published;
        assert_eq!(published.len(), 4);
        for row in published {
            assert!(row.network.parse::<obprox_infer::Kind>().is_ok());
            assert!(config().data.iter().any(|data| data.name == row.data));
            assert!(row.objective.iter().zip(row.loss).all(|(objective, loss)| *objective > loss));
        }
    }
}
