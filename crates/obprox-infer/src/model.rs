//! A trained network: its layers, its parameters, and what its images look like.

use std::fmt;

use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::architecture::Architecture;
use crate::images::Preprocessing;
use crate::network::{Network, Role};
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

/// Which network it is: one that is known by name, or any other, told node by node.
#[derive(Clone, PartialEq, Debug)]
pub enum Design {
    /// Known by name, so that it can be trained here too.
    Known(Architecture),
    /// Any other.
    Graph(Network),
}

impl Design {
    /// Its nodes.
    pub fn network(&self) -> Network {
        match self {
            Self::Known(architecture) => architecture.network(),
            Self::Graph(network) => network.clone(),
        }
    }

    /// The same, unless its nodes have become others.
    pub(crate) fn with_network(self, network: Network) -> Self {
        match self {
            Self::Known(architecture) if architecture.network() == network => self,
            _ => Self::Graph(network),
        }
    }

    /// The architecture, where it must be one that is known by name.
    pub fn architecture(&self) -> Result<Architecture> {
        match self {
            Self::Known(architecture) => Ok(*architecture),
            Self::Graph(network) => {
                Err(Error::Data(format!("is {network}: it can be served, and only networks known by name be trained")))
            }
        }
    }
}

impl From<Architecture> for Design {
    fn from(architecture: Architecture) -> Self {
        Self::Known(architecture)
    }
}

impl From<Network> for Design {
    fn from(network: Network) -> Self {
        Self::Graph(network)
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(architecture) => architecture.fmt(f),
            Self::Graph(network) => network.fmt(f),
        }
    }
}

/// A network whose parameters are exactly those that its layers ask for.
#[derive(Clone, PartialEq, Debug)]
pub struct Model {
    design: Design,
    network: Network,
    weights: Weights,
    training: Training,
    output_shape: Vec<usize>,
}

impl Model {
    /// Checks that the parts go together and that every value is finite.
    pub fn new(design: impl Into<Design>, weights: Weights, training: Training) -> Result<Self> {
        let design = design.into();
        let network = design.network();
        match &design {
            Design::Known(architecture) => architecture.check(&weights)?,
            Design::Graph(network) => check_names(network, &weights)?,
        }
        network.check()?;
        let shapes = network.shapes(&weights, network.input_shape())?;
        let output_shape = shapes[shapes.len() - 1].clone();
        check_values(&network, &weights)?;
        let channels = network.channels();
        if let Some(preprocessing) = &training.preprocessing {
            preprocessing.check()?;
            if preprocessing.channels() != channels {
                let given = preprocessing.channels();
                return Err(Error::Data(format!("normalises {given} channels where the network takes {channels}")));
            }
        }
        if !training.labels.is_empty() && training.labels.len() != output_shape[0] {
            let (given, asked) = (training.labels.len(), output_shape[0]);
            return Err(Error::Data(format!("names {given} classes where the network has {asked}")));
        }
        Ok(Self { design, network, weights, training, output_shape })
    }

    /// Which network it is.
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Its layers.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Its parameters.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// What it was trained on.
    pub fn training(&self) -> &Training {
        &self.training
    }

    /// Channels of the images, or the length of a vector.
    pub fn channels(&self) -> usize {
        self.network.channels()
    }

    /// What comes out for an input of the size that the network names.
    pub fn output_shape(&self) -> &[usize] {
        &self.output_shape
    }

    /// Number of classes: scores that come out of an image, or of a pixel.
    pub fn classes(&self) -> usize {
        self.output_shape[0]
    }

    /// Weights of convolutions and linear layers: those that are not zero, and all.
    pub fn density(&self) -> (usize, usize) {
        let tensors = self.weight_names().filter_map(|name| self.weights.get(name));
        tensors.fold((0, 0), |(nonzeros, all), tensor| (nonzeros + tensor.nnz(), all + tensor.len()))
    }

    /// Names of the weights of convolutions and linear layers, in the order of computing.
    pub fn weight_names(&self) -> impl Iterator<Item = &str> {
        let tensors = self.network.nodes().iter().flat_map(|node| node.op.tensors());
        tensors.filter(|(role, _)| *role == Role::Weight).map(|(_, name)| name)
    }

    /// Takes it apart.
    pub fn into_parts(self) -> (Design, Weights, Training) {
        (self.design, self.weights, self.training)
    }
}

/// That no tensor is left over; missing ones are told node by node.
fn check_names(network: &Network, weights: &Weights) -> Result<()> {
    let uses = network.uses();
    match weights.names().find(|name| !uses.contains_key(name)) {
        Some(name) => Err(Error::Data(format!("no layer takes the tensor {name}"))),
        None => Ok(()),
    }
}

fn check_values(network: &Network, weights: &Weights) -> Result<()> {
    if let Some((name, _)) = weights.iter().find(|(_, tensor)| tensor.data().iter().any(|v| !v.is_finite())) {
        return Err(Error::Data(format!("{name} holds a value that is not finite")));
    }
    let variances = network.nodes().iter().flat_map(|node| node.op.tensors());
    let mut variances = variances.filter(|(role, _)| *role == Role::RunningVar).map(|(_, name)| name);
    let negative = |tensor: &Tensor| tensor.data().iter().any(|&variance| variance < 0.0);
    match variances.find(|name| weights.get(name).is_some_and(negative)) {
        Some(name) => Err(Error::Data(format!("{name} holds a negative variance"))),
        None => Ok(()),
    }
}
