//! A network as its executors see it: batch norm folded into the convolution before it, addition and relu taken along.
//!
//! What remains is a chain of a few kinds of steps. A convolution computes relu?(W∗x + b + residual?).

use obprox::{Error, Result};

use crate::graph::{BATCH_NORM_EPSILON, Graph, NodeId, Op, Role, Shape};
use crate::weights::Weights;

/// Index of a value: the image is 0, and each step but the last one makes the next.
pub(crate) type ValueId = usize;

/// A convolution with all that follows it.
#[derive(Clone, Debug)]
pub(crate) struct FusedConv {
    /// The layers' names among the parameters.
    pub conv_name: String,
    pub norm_name: String,
    pub conv: Shape,
    /// Outputs × inputs of a group × kernel × kernel, scaled by the batch norm.
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
    pub relu: bool,
}

impl FusedConv {
    /// Weights of one output: inputs of a group × kernel × kernel.
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
        let Shape { inputs, outputs, kernel, groups, .. } = self.conv;
        let first = output / (outputs / groups) * (inputs / groups);
        (first + at / (kernel * kernel), at / kernel % kernel, at % kernel, row[at])
    }

    /// Number of nonzero weights.
    pub fn nnz(&self) -> usize {
        self.nonzeros.len()
    }

    /// Number of nonzero weights of an output.
    pub fn row_nnz(&self, output: usize) -> usize {
        self.bounds[output + 1] - self.bounds[output]
    }

    fn find_nonzeros(&mut self) {
        let row_len = self.row_len();
        self.bounds.push(0);
        for row in self.weight.chunks_exact(row_len) {
            let nonzeros = row.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
            self.nonzeros.extend(nonzeros.map(|(at, _)| at as u32));
            self.bounds.push(self.nonzeros.len());
        }
    }

    fn row_len(&self) -> usize {
        self.weight.len() / self.conv.outputs
    }
}

/// A step of the network.
#[derive(Clone, Debug)]
pub(crate) enum Fused {
    Conv(FusedConv),
    /// The largest of each square of `size` pixels.
    MaxPool {
        input: ValueId,
        size: usize,
    },
    /// The mean of each channel, then a matrix (outputs × inputs) and a bias: the scores.
    Head {
        name: String,
        input: ValueId,
        weight: Vec<f32>,
        bias: Vec<f32>,
    },
}

impl Fused {
    /// The value that it makes its own of.
    pub fn input(&self) -> ValueId {
        match self {
            Self::Conv(FusedConv { input, .. }) | Self::MaxPool { input, .. } | Self::Head { input, .. } => *input,
        }
    }
}

/// The steps of a network and the channels of its values.
#[derive(Clone, Debug)]
pub(crate) struct FusedNet {
    /// Step s makes value s + 1; the last one makes the scores.
    pub steps: Vec<Fused>,
    /// Channels of each value.
    pub channels: Vec<usize>,
}

impl FusedNet {
    /// Folds and fuses. The graph is one of our architectures' and the weights are checked against it.
    pub fn new(graph: &Graph, weights: &Weights) -> Result<Self> {
        let nodes = graph.nodes();
        let mut values: Vec<Option<ValueId>> = vec![None; nodes.len()];
        values[0] = Some(0);
        let mut net = Self { steps: Vec::new(), channels: vec![graph.channels()[0]] };
        // The node whose value the newest step makes; nodes that only prolong that step move it.
        for (id, node) in nodes.iter().enumerate().skip(1) {
            let input = node.inputs[0];
            let tensor = |role: Role| {
                let name = node.parameter(role);
                weights.get(&name).map(|tensor| tensor.data()).ok_or_else(|| Error::Data(format!("{name} is missing")))
            };
            match node.op {
                // Made together with its batch norm.
                Op::Input { .. } | Op::Conv(_) | Op::GlobalAveragePool => {}
                Op::BatchNorm { .. } => {
                    let conv_node = &nodes[input];
                    let Op::Conv(conv) = conv_node.op else { return Err(unknown()) };
                    let weight = weights.get(&conv_node.parameter(Role::Weight)).map(|tensor| tensor.data().to_vec());
                    let mut fused = FusedConv {
                        conv_name: conv_node.name.clone(),
                        norm_name: node.name.clone(),
                        conv,
                        weight: weight.ok_or_else(unknown)?,
                        nonzeros: Vec::new(),
                        bounds: Vec::new(),
                        bias: Vec::with_capacity(conv.outputs),
                        input: values[conv_node.inputs[0]].ok_or_else(unknown)?,
                        residual: None,
                        relu: false,
                    };
                    let row_len = fused.row_len();
                    let norms = tensor(Role::NormWeight)?.iter().zip(tensor(Role::NormBias)?);
                    let moments = tensor(Role::RunningMean)?.iter().zip(tensor(Role::RunningVar)?);
                    for ((row, norm), moment) in fused.weight.chunks_exact_mut(row_len).zip(norms).zip(moments) {
                        let affine = Affine::new(norm, moment);
                        row.iter_mut().for_each(|weight| *weight = (f64::from(*weight) * affine.scale) as f32);
                        fused.bias.push(affine.shift as f32);
                    }
                    if fused.weight.iter().chain(&fused.bias).any(|value| !value.is_finite()) {
                        let name = &node.name;
                        return Err(Error::Data(format!("{name}: its values are too large to be folded into weights")));
                    }
                    fused.find_nonzeros();
                    values[id] = Some(net.push(Fused::Conv(fused), conv.outputs));
                }
                Op::Relu => values[id] = Some(net.prolong(values[input], |conv| conv.relu = true)?),
                Op::Add => {
                    // The operand that is made last takes the other one along.
                    let (one, two) = (values[input], values[node.inputs[1]]);
                    values[id] = Some(net.prolong(one.max(two), |conv| conv.residual = one.min(two))?);
                }
                Op::MaxPool { size } => {
                    let input = values[input].ok_or_else(unknown)?;
                    let channels = net.channels[input];
                    values[id] = Some(net.push(Fused::MaxPool { input, size }, channels));
                }
                Op::Linear { outputs, .. } => {
                    let pooled: NodeId = nodes[input].inputs[0];
                    let head = Fused::Head {
                        name: node.name.clone(),
                        input: values[pooled].ok_or_else(unknown)?,
                        weight: tensor(Role::Weight)?.to_vec(),
                        bias: tensor(Role::Bias)?.to_vec(),
                    };
                    values[id] = Some(net.push(head, outputs));
                }
            }
        }
        Ok(net)
    }

    fn push(&mut self, step: Fused, channels: usize) -> ValueId {
        self.steps.push(step);
        self.channels.push(channels);
        self.steps.len()
    }

    /// Lets the newest step, which must be the convolution that makes `value`, do more.
    fn prolong(&mut self, value: Option<ValueId>, more: impl FnOnce(&mut FusedConv)) -> Result<ValueId> {
        let newest = self.steps.len();
        match self.steps.last_mut() {
            Some(Fused::Conv(conv)) if value == Some(newest) && !conv.relu => {
                more(conv);
                Ok(newest)
            }
            _ => Err(unknown()),
        }
    }
}

/// Batch norm as x·scale + shift.
pub(crate) struct Affine {
    pub scale: f64,
    pub shift: f64,
}

impl Affine {
    pub fn new((weight, bias): (&f32, &f32), (mean, var): (&f32, &f32)) -> Self {
        let scale = f64::from(*weight) / (f64::from(*var) + f64::from(BATCH_NORM_EPSILON)).sqrt();
        Self { scale, shift: f64::from(*bias) - f64::from(*mean) * scale }
    }
}

/// For graphs that no architecture makes.
fn unknown() -> Error {
    Error::Data("the network has layers in an order that cannot be executed".into())
}
