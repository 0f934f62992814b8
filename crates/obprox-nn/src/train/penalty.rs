//! Which parameter has which λ, and what that comes to.

use std::collections::BTreeMap;

use obprox::{Error, Result};
use obprox_infer::Weights;
use serde::{Deserialize, Serialize};

use crate::net::NamedParam;
use crate::optim::Penalized;

/// λ for all, with exceptions by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// λ.
    pub lambda: f64,
    /// What it weighs on.
    pub penalized: Penalized,
    /// Layers with a λ of their own; 0 leaves a layer free. The last that fits a parameter decides.
    pub layers: Vec<LayerPenalty>,
}

/// The λ of a layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerPenalty {
    /// The name of a parameter, or of what it is in: `layer1.0.conv1.weight`, `layer1.0`, `layer1`.
    pub name: String,
    /// Its λ.
    pub lambda: f64,
}

impl LayerPenalty {
    fn fits(&self, parameter: &str) -> bool {
        parameter.strip_prefix(&self.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

impl Penalty {
    /// λ on every parameter of two or more dimensions.
    pub fn new(lambda: f64) -> Self {
        Self { lambda, penalized: Penalized::Weights, layers: Vec::new() }
    }

    /// λ of a parameter.
    pub fn of(&self, name: &str, rank: usize) -> f64 {
        let general = self.penalized.lambda(self.lambda, rank);
        let own = self.layers.iter().rev().find(|layer| layer.fits(name));
        // A layer's own λ weighs on what λ weighs on, unless the parameter itself was named.
        match own {
            Some(layer) if layer.name == name => layer.lambda,
            Some(layer) => self.penalized.lambda(layer.lambda, rank),
            None => general,
        }
    }

    /// Checks the numbers, and that every name fits a parameter.
    pub fn check(&self, params: &[NamedParam]) -> Result<()> {
        let numbers = std::iter::once(self.lambda).chain(self.layers.iter().map(|layer| layer.lambda));
        if let Some(bad) = numbers.into_iter().find(|lambda| !(lambda.is_finite() && *lambda >= 0.0)) {
            return Err(Error::parameter("lambda", format!("{bad} must be a finite number, not negative")));
        }
        match self.layers.iter().find(|layer| !params.iter().any(|param| layer.fits(&param.name))) {
            Some(layer) => {
                let flag = if layer.lambda == 0.0 { "exclude" } else { "layer-lambda" };
                Err(Error::parameter(flag, format!("the network has no layer {}", layer.name)))
            }
            None => Ok(()),
        }
    }

    /// λ‖x‖₁, nonzeros and densities of weights.
    pub fn measure(&self, params: &[NamedParam], weights: &Weights) -> Sparsity {
        let ranks: BTreeMap<&str, usize> = params.iter().map(|param| (param.name.as_str(), param.rank)).collect();
        let mut sparsity = Sparsity::default();
        for param in params {
            let Some(tensor) = weights.get(&param.name) else { continue };
            let lambda = self.of(&param.name, ranks[param.name.as_str()]);
            let size = tensor.len();
            let nonzero = tensor.nnz();
            if param.rank >= 2 {
                sparsity.weights.add(nonzero, size);
            }
            if param.rank >= 2 || lambda > 0.0 {
                sparsity.squares += tensor.data().iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
            }
            if lambda > 0.0 {
                let l1: f64 = tensor.data().iter().map(|value| f64::from(value.abs())).sum();
                sparsity.term += lambda * l1;
                sparsity.l1 += l1;
                sparsity.penalized.add(nonzero, size);
            }
            sparsity.all.add(nonzero, size);
            if param.rank >= 2 || lambda > 0.0 {
                sparsity.layers.push(LayerDensity { name: param.name.clone(), nonzero, size, lambda });
            }
        }
        sparsity
    }
}

/// How sparse a network is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sparsity {
    /// Σ_j λ_j ‖x_j‖₁.
    pub term: f64,
    /// ‖x‖₁ of what is penalised.
    pub l1: f64,
    /// ‖x‖₂² of what weight decay holds for.
    pub squares: f64,
    /// What is penalised.
    pub penalized: Count,
    /// Weights of two or more dimensions, penalised or not.
    pub weights: Count,
    /// Every trained parameter.
    pub all: Count,
    /// Layer by layer: the weights, and whatever else is penalised.
    pub layers: Vec<LayerDensity>,
}

impl Sparsity {
    /// Penalised layers of which nothing is left: what comes behind them hears nothing of the image.
    pub fn dead_layers(&self) -> Vec<&str> {
        let dead = self.layers.iter().filter(|layer| layer.lambda > 0.0 && layer.nonzero == 0 && layer.size > 0);
        dead.map(|layer| layer.name.as_str()).collect()
    }
}

/// Nonzeros of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Those that are not zero.
    pub nonzero: usize,
    /// All.
    pub size: usize,
}

impl Count {
    fn add(&mut self, nonzero: usize, size: usize) {
        self.nonzero += nonzero;
        self.size += size;
    }

    /// The share of nonzeros; of nothing it is 0.
    pub fn density(self) -> f64 {
        if self.size == 0 { 0.0 } else { self.nonzero as f64 / self.size as f64 }
    }
}

/// A row of the table of layers.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerDensity {
    /// PyTorch's name.
    pub name: String,
    /// Values that are not zero.
    pub nonzero: usize,
    /// Values.
    pub size: usize,
    /// λ.
    pub lambda: f64,
}
