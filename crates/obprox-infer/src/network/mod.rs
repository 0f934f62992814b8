//! A network as data: what is computed from what, by which tensors. Files hold it, the engine runs it, whatever its name.
//!
//! Nodes come in the order of computing and take values of nodes before them, so that a cycle cannot be written down.
//! The batch is no dimension here: a value is of shape `[channels, height, width]` or `[length]`.

mod check;
mod display;
mod shapes;

use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::weights::Weights;

pub use shapes::Shapes;

/// Index of a node, and of the value it computes.
pub type NodeId = usize;

/// How a kernel passes over an image.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Height and width.
    pub kernel: [usize; 2],
    /// Pixels from one application to the next, down and right.
    pub stride: [usize; 2],
    /// Pixels around the image: top, left, bottom, right.
    pub padding: [usize; 4],
    /// Pixels from one tap of the kernel to the next, down and right.
    pub dilation: [usize; 2],
}

impl Window {
    /// A square kernel that is applied everywhere, padded alike on all sides.
    pub fn square(kernel: usize, stride: usize, padding: usize) -> Self {
        Self { kernel: [kernel; 2], stride: [stride; 2], padding: [padding; 4], dilation: [1; 2] }
    }

    /// Pixels that a kernel reaches over, in a direction.
    pub fn reach(&self, axis: usize) -> usize {
        (self.kernel[axis] - 1) * self.dilation[axis] + 1
    }

    /// Side of the output for a side of the input; `None` where the kernel does not fit. With `ceil` a last window may
    /// hang over the end, if it begins on the image or the padding before it.
    pub fn output_side(&self, axis: usize, side: usize, ceil: bool) -> Option<usize> {
        let (before, after, stride) = (self.padding[axis], self.padding[axis + 2], self.stride[axis]);
        let free = (side + before + after).checked_sub(self.reach(axis))?;
        let whole = free / stride + 1;
        let hangs = ceil && free % stride != 0 && whole * stride < side + before;
        Some(whole + usize::from(hangs))
    }
}

/// What a node computes of its inputs. Strings are names of tensors.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Op {
    /// What the network is given. Images may come in other sizes than this one, as far as the layers allow.
    Input {
        /// `[channels, height, width]` or `[length]`.
        shape: Vec<usize>,
    },
    /// Convolution: weight of outputs × inputs of a group × kernel.
    Conv {
        /// Its weight.
        weight: String,
        /// One number an output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<String>,
        /// How the kernel passes over the image.
        #[serde(flatten)]
        window: Window,
        /// Channels are split into so many groups that do not see each other.
        groups: usize,
    },
    /// Matrix (outputs × inputs) and bias of a vector.
    Linear {
        /// Its matrix.
        weight: String,
        /// One number an output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<String>,
    },
    /// Batch norm in evaluation mode: (x − mean)/√(var + ε)·weight + bias in each channel.
    BatchNorm {
        /// Scale; 1 where it is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        weight: Option<String>,
        /// Shift; 0 where it is missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bias: Option<String>,
        /// Running mean.
        mean: String,
        /// Running variance.
        var: String,
        /// ε.
        epsilon: f64,
    },
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
    /// x·σ(x), also called Swish.
    Silu,
    /// x·min(max(x + 3, 0), 6)/6.
    HardSwish,
    /// min(max(x + 3, 0), 6)/6.
    HardSigmoid,
    /// x·Φ(x), by the error function.
    Gelu,
    /// σ(x) = 1/(1 + e⁻ˣ).
    Sigmoid,
    /// The sum of two values; one may have one pixel a channel for all pixels of the other.
    Add,
    /// The product of two values, likewise.
    Multiply,
    /// The channels of several values, one after the other.
    Concat,
    /// The largest of each window.
    MaxPool {
        /// How the window passes over the image.
        #[serde(flatten)]
        window: Window,
        /// Whether a last window may hang over the end.
        #[serde(default)]
        ceil: bool,
    },
    /// The mean of each window.
    AveragePool {
        /// How the window passes over the image.
        #[serde(flatten)]
        window: Window,
        /// Whether a last window may hang over the end.
        #[serde(default)]
        ceil: bool,
        /// Whether the zeros around the image count.
        count_padding: bool,
    },
    /// Means of as many windows as the output has pixels; one pixel is the mean of the channel.
    AdaptiveAveragePool {
        /// Height and width of the output.
        size: [usize; 2],
    },
    /// Every pixel so many times, down and right.
    Upsample {
        /// How many times.
        scale: [usize; 2],
    },
    /// All values in one vector, channel by channel, row by row.
    Flatten,
    /// The same values in another shape.
    Reshape {
        /// The shape.
        shape: Vec<usize>,
    },
    /// eˣ over the sum of all channels' eˣ.
    Softmax,
}

/// Functions of one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Activation {
    /// x itself.
    #[default]
    Identity,
    /// max(x, 0).
    Relu,
    /// min(max(x, 0), 6).
    Relu6,
    /// x·σ(x).
    Silu,
    /// x·hard-sigmoid(x).
    HardSwish,
    /// min(max(x + 3, 0), 6)/6.
    HardSigmoid,
    /// x·Φ(x).
    Gelu,
    /// 1/(1 + e⁻ˣ).
    Sigmoid,
}

impl Op {
    /// The function that it applies to every number, where it is one.
    pub fn activation(&self) -> Option<Activation> {
        Some(match self {
            Self::Relu => Activation::Relu,
            Self::Relu6 => Activation::Relu6,
            Self::Silu => Activation::Silu,
            Self::HardSwish => Activation::HardSwish,
            Self::HardSigmoid => Activation::HardSigmoid,
            Self::Gelu => Activation::Gelu,
            Self::Sigmoid => Activation::Sigmoid,
            _ => return None,
        })
    }

    /// The tensors that it takes, with what each is to it.
    pub fn tensors(&self) -> Vec<(Role, &str)> {
        match self {
            Self::Conv { weight, bias, .. } | Self::Linear { weight, bias } => {
                let bias = bias.iter().map(|bias| (Role::Bias, bias.as_str()));
                std::iter::once((Role::Weight, weight.as_str())).chain(bias).collect()
            }
            Self::BatchNorm { weight, bias, mean, var, .. } => {
                let weight = weight.iter().map(|name| (Role::NormWeight, name.as_str()));
                let bias = bias.iter().map(|name| (Role::NormBias, name.as_str()));
                let moments = [(Role::RunningMean, mean.as_str()), (Role::RunningVar, var.as_str())];
                weight.chain(bias).chain(moments).collect()
            }
            _ => Vec::new(),
        }
    }
}

pub use crate::graph::Role;

/// One step of the network.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Node {
    /// Name of the layer where it comes from; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What it computes.
    #[serde(flatten)]
    pub op: Op,
    /// Of which values; all of them come earlier in the list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<NodeId>,
}

/// A network: its nodes in the order of computing; the first is the input, the last the output.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Network {
    nodes: Vec<Node>,
}

impl Network {
    /// A network that so far returns its input.
    pub fn new(shape: &[usize]) -> Self {
        Self { nodes: vec![Node { name: String::new(), op: Op::Input { shape: shape.to_vec() }, inputs: Vec::new() }] }
    }

    /// A network of these nodes; whether it is one is checked where it meets its tensors.
    pub fn of_nodes(nodes: Vec<Node>) -> Self {
        Self { nodes }
    }

    /// The nodes, in the order of computing.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Adds a node and returns its value.
    pub fn push(&mut self, name: impl Into<String>, op: Op, inputs: &[NodeId]) -> NodeId {
        self.nodes.push(Node { name: name.into(), op, inputs: inputs.to_vec() });
        self.nodes.len() - 1
    }

    /// The nodes as JSON, as files hold them.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Nodes from JSON, checked as far as they can be without tensors.
    pub fn from_json(text: &str) -> Result<Self> {
        let network: Self = serde_json::from_str(text).map_err(|error| Error::Data(format!("no network: {error}")))?;
        network.check()?;
        Ok(network)
    }

    /// The shape of what it is given, without the batch.
    pub fn input_shape(&self) -> &[usize] {
        match self.nodes.first().map(|node| &node.op) {
            Some(Op::Input { shape }) => shape,
            _ => &[],
        }
    }

    /// Channels of the images, or the length of a vector.
    pub fn channels(&self) -> usize {
        self.input_shape().first().copied().unwrap_or(0)
    }

    /// How many nodes read each value.
    pub fn readers(&self) -> Vec<usize> {
        let mut readers = vec![0; self.nodes.len()];
        self.nodes.iter().flat_map(|node| &node.inputs).for_each(|&input| readers[input] += 1);
        readers
    }

    /// Gives a layer a bias of its own; its name, which no tensor has so far.
    pub(crate) fn add_bias(&mut self, node: NodeId, weights: &Weights) -> String {
        let base = if self.nodes[node].name.is_empty() { format!("node{node}") } else { self.nodes[node].name.clone() };
        let mut name = format!("{base}.bias");
        while weights.get(&name).is_some() {
            name.push('_');
        }
        if let Op::Conv { bias, .. } | Op::Linear { bias, .. } = &mut self.nodes[node].op {
            *bias = Some(name.clone());
        }
        name
    }

    /// How often each tensor is taken.
    pub(crate) fn uses(&self) -> std::collections::HashMap<&str, usize> {
        let mut uses = std::collections::HashMap::new();
        for (_, name) in self.nodes.iter().flat_map(|node| node.op.tensors()) {
            *uses.entry(name).or_insert(0) += 1;
        }
        uses
    }
}
