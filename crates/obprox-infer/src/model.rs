//! A trained network: its architecture, its parameters, and what its images look like.

use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::architecture::Architecture;
use crate::images::Preprocessing;
use crate::weights::{Tensor, Weights};

/// What a network was trained on, as far as its file tells: all that is needed to feed it and to read its answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Training {
    /// Size and normalisation of the images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preprocessing: Option<Preprocessing>,
    /// Names of the classes; empty where they are just numbered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// A network whose parameters are exactly those that its architecture asks for.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    pub(crate) architecture: Architecture,
    pub(crate) weights: Weights,
    pub(crate) training: Training,
}

impl Model {
    /// Checks that the parts go together and that every value is finite.
    pub fn new(architecture: Architecture, weights: Weights, training: Training) -> Result<Self> {
        architecture.check(&weights)?;
        if let Some((name, _)) = weights.iter().find(|(_, tensor)| tensor.data().iter().any(|v| !v.is_finite())) {
            return Err(Error::Data(format!("{name} holds a value that is not finite")));
        }
        let negative = |tensor: &Tensor| tensor.data().iter().any(|&variance| variance < 0.0);
        if let Some((name, _)) = weights.iter().find(|(name, tensor)| name.ends_with("running_var") && negative(tensor))
        {
            return Err(Error::Data(format!("{name} holds a negative variance")));
        }
        if let Some(preprocessing) = &training.preprocessing {
            preprocessing.check()?;
            if preprocessing.channels() != architecture.channels() {
                let (given, asked) = (preprocessing.channels(), architecture.channels());
                return Err(Error::Data(format!("normalises {given} channels where the network takes {asked}")));
            }
        }
        if !training.labels.is_empty() && training.labels.len() != architecture.classes() {
            let (given, asked) = (training.labels.len(), architecture.classes());
            return Err(Error::Data(format!("names {given} classes where the network has {asked}")));
        }
        Ok(Self { architecture, weights, training })
    }

    /// The network.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Its parameters.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// What it was trained on.
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// Takes it apart.
    pub fn into_parts(self) -> (Architecture, Weights, Training) {
        (self.architecture, self.weights, self.training)
    }
}
