//! A convolution, or a matrix, with all that follows it: activation(W∗x + b + residual?).

use super::ValueId;
use crate::network::{Activation, NodeId, Window};

/// Channels of a convolution, and how its kernel passes over the image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConvShape {
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Groups of channels that do not see each other.
    pub groups: usize,
    /// The kernel's way.
    pub window: Window,
}

impl ConvShape {
    /// Channels of the input that an output sees.
    pub fn seen(&self) -> usize {
        self.inputs / self.groups
    }

    /// Taps of a kernel.
    pub fn taps(&self) -> usize {
        self.window.kernel[0] * self.window.kernel[1]
    }

    /// Whether every output sees one input alone, and the outputs of an input lie together.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.inputs
    }
}

/// Where the numbers of a fused convolution come from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The node of the weight; `None` for a batch norm that follows no convolution.
    pub conv: Option<NodeId>,
    /// The node of the batch norm.
    pub norm: Option<NodeId>,
    /// That its tensors cannot be changed channel by channel: others take them too, or they are not all there.
    pub frozen: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct FusedConv {
    pub name: String,
    pub origin: Origin,
    pub shape: ConvShape,
    /// Outputs × inputs of a group × kernel, scaled by the batch norm.
    pub weight: Vec<f32>,
    /// Where in its row each nonzero weight is, row after row.
    nonzeros: Vec<u32>,
    /// Where the nonzeros of each row end; begins with 0.
    bounds: Vec<usize>,
    /// One an output.
    pub bias: Vec<f32>,
    pub input: ValueId,
    /// A value of the output's shape that is added.
    pub residual: Option<ValueId>,
    pub activation: Activation,
}

impl FusedConv {
    pub fn new(name: &str, origin: Origin, shape: ConvShape, weight: Vec<f32>, bias: Vec<f32>, input: ValueId) -> Self {
        Self {
            name: name.to_owned(),
            origin,
            shape,
            weight,
            nonzeros: Vec::new(),
            bounds: Vec::new(),
            bias,
            input,
            residual: None,
            activation: Activation::Identity,
        }
    }

    /// Whether nothing follows the weights so far.
    pub fn is_plain(&self) -> bool {
        self.residual.is_none() && self.activation == Activation::Identity
    }

    /// Weights of one output: inputs of a group × kernel.
    pub fn row(&self, output: usize) -> &[f32] {
        let len = self.row_len();
        &self.weight[output * len..][..len]
    }

    /// The nonzero weights of an output as (input channel, row of the kernel, column of the kernel, weight).
    pub fn taps(&self, output: usize) -> impl Iterator<Item = (usize, usize, usize, f32)> {
        let row = self.row(output);
        let nonzeros = &self.nonzeros[self.bounds[output]..self.bounds[output + 1]];
        nonzeros.iter().map(move |&at| self.tap(output, at as usize, row))
    }

    /// The same with zeros.
    pub fn all_taps(&self, output: usize) -> impl Iterator<Item = (usize, usize, usize, f32)> {
        let row = self.row(output);
        (0..row.len()).map(move |at| self.tap(output, at, row))
    }

    fn tap(&self, output: usize, at: usize, row: &[f32]) -> (usize, usize, usize, f32) {
        let ConvShape { outputs, groups, window, .. } = self.shape;
        let first = output / (outputs / groups) * self.shape.seen();
        let columns = window.kernel[1];
        (first + at / self.shape.taps(), at % self.shape.taps() / columns, at % columns, row[at])
    }

    /// Number of nonzero weights.
    pub fn nnz(&self) -> usize {
        self.nonzeros.len()
    }

    /// Number of nonzero weights of an output.
    pub fn row_nnz(&self, output: usize) -> usize {
        self.bounds[output + 1] - self.bounds[output]
    }

    /// Once the weights are what they will be.
    pub fn find_nonzeros(&mut self) {
        let row_len = self.row_len();
        self.bounds.push(0);
        for row in self.weight.chunks_exact(row_len) {
            let nonzeros = row.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
            self.nonzeros.extend(nonzeros.map(|(at, _)| at as u32));
            self.bounds.push(self.nonzeros.len());
        }
    }

    fn row_len(&self) -> usize {
        self.shape.seen() * self.shape.taps()
    }

    /// Scales and shifts every output.
    pub fn fold(&mut self, affine: impl Iterator<Item = Affine>) {
        let row_len = self.row_len();
        for ((row, bias), affine) in self.weight.chunks_exact_mut(row_len).zip(&mut self.bias).zip(affine) {
            row.iter_mut().for_each(|weight| *weight = (f64::from(*weight) * affine.scale) as f32);
            *bias = (f64::from(*bias) * affine.scale + affine.shift) as f32;
        }
    }
}

/// Batch norm as x·scale + shift.
pub(crate) struct Affine {
    pub scale: f64,
    pub shift: f64,
}

impl Affine {
    pub fn new(weight: f32, bias: f32, mean: f32, var: f32, epsilon: f64) -> Self {
        let scale = f64::from(weight) / (f64::from(var) + epsilon).sqrt();
        Self { scale, shift: f64::from(bias) - f64::from(mean) * scale }
    }
}
