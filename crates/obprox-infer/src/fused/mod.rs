//! A network as its executors see it: batch norm folded into the convolution before it, addition and activation taken
//! along, reshaping that moves nothing left out. A vector is an image of one pixel, a matrix a convolution of it.

mod conv;

use obprox::{Error, Result};

pub use conv::ConvShape;
pub(crate) use conv::{Affine, FusedConv, Origin};

use crate::network::{Activation, Network, Node, NodeId, Op, Window};
use crate::weights::Weights;

/// Index of a value: the input is 0, and each step makes the next.
pub(crate) type ValueId = usize;

/// A step of the network. Most are convolutions, so that a box around them would save nothing.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)]
pub(crate) enum Fused {
    Conv(FusedConv),
    Apply {
        input: ValueId,
        activation: Activation,
    },
    MaxPool {
        input: ValueId,
        window: Window,
    },
    AveragePool {
        input: ValueId,
        window: Window,
        count_padding: bool,
    },
    AdaptivePool {
        input: ValueId,
    },
    Upsample {
        input: ValueId,
        scale: [usize; 2],
    },
    Flatten {
        input: ValueId,
    },
    /// The same numbers in another shape of several pixels.
    Reshape {
        input: ValueId,
    },
    Add {
        inputs: [ValueId; 2],
    },
    Multiply {
        inputs: [ValueId; 2],
    },
    Concat {
        inputs: Vec<ValueId>,
    },
    Softmax {
        input: ValueId,
    },
}

impl Fused {
    /// The values that it reads.
    pub fn inputs(&self) -> Vec<ValueId> {
        match self {
            Self::Conv(conv) => [conv.input].into_iter().chain(conv.residual).collect(),
            Self::Apply { input, .. }
            | Self::MaxPool { input, .. }
            | Self::AveragePool { input, .. }
            | Self::AdaptivePool { input }
            | Self::Upsample { input, .. }
            | Self::Flatten { input }
            | Self::Reshape { input }
            | Self::Softmax { input } => vec![*input],
            Self::Add { inputs } | Self::Multiply { inputs } => inputs.to_vec(),
            Self::Concat { inputs } => inputs.clone(),
        }
    }
}

/// The steps of a network and the sizes of its values.
#[derive(Clone, Debug)]
pub(crate) struct FusedNet {
    /// Step s makes value s + 1.
    pub steps: Vec<Fused>,
    /// Channels, height and width of each value.
    pub sizes: Vec<[usize; 3]>,
    /// The value of each node; several nodes may be made by one step.
    pub values: Vec<ValueId>,
    /// The value that comes out, and its shape.
    pub output: ValueId,
    pub output_shape: Vec<usize>,
}

impl FusedNet {
    /// Folds and fuses, for inputs of a shape.
    pub fn new(network: &Network, weights: &Weights, input: &[usize]) -> Result<Self> {
        let shapes = network.shapes(weights, input)?;
        let net = Self {
            steps: Vec::new(),
            sizes: vec![size_of(&shapes[0])],
            values: vec![0],
            output: 0,
            output_shape: shapes[shapes.len() - 1].clone(),
        };
        let readers = network.readers();
        let mut fuser = Fuser { weights, uses: network.uses(), shared: vec![readers[0] > 1], net };
        for (id, node) in network.nodes().iter().enumerate().skip(1) {
            let value = fuser.value(id, node, size_of(&shapes[id]))?;
            fuser.net.values.push(value);
            fuser.shared.resize(fuser.net.sizes.len(), false);
            fuser.shared[value] |= readers[id] > 1;
        }
        let mut net = fuser.net;
        net.output = net.values[net.values.len() - 1];
        for (step, size) in net.steps.iter_mut().zip(&net.sizes[1..]) {
            let Fused::Conv(conv) = step else { continue };
            if conv.weight.iter().chain(&conv.bias).any(|value| !value.is_finite()) {
                let name = &conv.name;
                return Err(Error::Data(format!("{name}: its values are too large to be folded into weights")));
            }
            debug_assert_eq!(conv.shape.outputs, size[0]);
            conv.find_nonzeros();
        }
        Ok(net)
    }

    /// Channels of a value.
    pub fn channels(&self, value: ValueId) -> usize {
        self.sizes[value][0]
    }
}

/// A vector is an image of one pixel.
fn size_of(shape: &[usize]) -> [usize; 3] {
    match *shape {
        [channels, height, width] => [channels, height, width],
        _ => [shape[0], 1, 1],
    }
}

struct Fuser<'a> {
    weights: &'a Weights,
    uses: std::collections::HashMap<&'a str, usize>,
    /// Values that more than one node reads: nothing may be added to the step that makes them.
    shared: Vec<bool>,
    net: FusedNet,
}

impl Fuser<'_> {
    fn value(&mut self, id: NodeId, node: &Node, size: [usize; 3]) -> Result<ValueId> {
        let inputs: Vec<ValueId> = node.inputs.iter().map(|&input| self.net.values[input]).collect();
        let input = inputs.first().copied().unwrap_or(0);
        let from = self.net.sizes[input];
        let step = match &node.op {
            Op::Conv { .. } | Op::Linear { .. } => Fused::Conv(self.conv(id, node, input, size)),
            Op::BatchNorm { .. } => match self.fold_norm(id, node, input) {
                Some(value) => return Ok(value),
                None => Fused::Conv(self.lone_norm(id, node, input, size[0])),
            },
            Op::Add => match self.take_along([inputs[0], inputs[1]]) {
                Some(value) => return Ok(value),
                None => Fused::Add { inputs: [inputs[0], inputs[1]] },
            },
            Op::Multiply => Fused::Multiply { inputs: [inputs[0], inputs[1]] },
            Op::Concat if inputs.len() == 1 => return Ok(input),
            Op::Concat => Fused::Concat { inputs },
            Op::MaxPool { window, .. } => Fused::MaxPool { input, window: *window },
            Op::AveragePool { window, count_padding, .. } => {
                Fused::AveragePool { input, window: *window, count_padding: *count_padding }
            }
            Op::AdaptiveAveragePool { .. } if from == size => return Ok(input),
            Op::AdaptiveAveragePool { .. } => Fused::AdaptivePool { input },
            Op::Upsample { scale } => Fused::Upsample { input, scale: *scale },
            Op::Flatten | Op::Reshape { .. } if from == size => return Ok(input),
            Op::Flatten => Fused::Flatten { input },
            Op::Reshape { .. } if size[1..] == [1, 1] => Fused::Flatten { input },
            Op::Reshape { .. } => Fused::Reshape { input },
            Op::Softmax => Fused::Softmax { input },
            op => {
                let activation = op.activation().unwrap_or_default();
                match self.plain_conv(input).filter(|conv| conv.activation == Activation::Identity) {
                    Some(conv) => {
                        conv.activation = activation;
                        return Ok(input);
                    }
                    None => Fused::Apply { input, activation },
                }
            }
        };
        self.net.steps.push(step);
        self.net.sizes.push(size);
        Ok(self.net.steps.len())
    }

    /// The convolution that makes a value which nobody else reads.
    fn plain_conv(&mut self, value: ValueId) -> Option<&mut FusedConv> {
        if self.shared[value] || value == 0 {
            return None;
        }
        match &mut self.net.steps[value - 1] {
            Fused::Conv(conv) => Some(conv),
            _ => None,
        }
    }

    /// Lets the convolution that makes the later of two values add the other one.
    fn take_along(&mut self, [one, two]: [ValueId; 2]) -> Option<ValueId> {
        let (made, other) = (one.max(two), one.min(two));
        if self.net.sizes[made] != self.net.sizes[other] || made == other {
            return None;
        }
        let conv = self.plain_conv(made).filter(|conv| conv.is_plain())?;
        conv.residual = Some(other);
        Some(made)
    }

    fn tensor(&self, name: &str) -> &[f32] {
        self.weights.get(name).map_or(&[], |tensor| tensor.data())
    }

    fn is_shared(&self, node: &Node) -> bool {
        node.op.tensors().iter().any(|(_, name)| self.uses[name] > 1)
    }

    fn conv(&self, id: NodeId, node: &Node, input: ValueId, [outputs, ..]: [usize; 3]) -> FusedConv {
        let (weight, bias, window, groups) = match &node.op {
            Op::Conv { weight, bias, window, groups } => (weight, bias, *window, *groups),
            Op::Linear { weight, bias } => (weight, bias, Window::square(1, 1, 0), 1),
            _ => unreachable!("only layers with weights come here"),
        };
        let shape = ConvShape { inputs: self.net.channels(input), outputs, groups, window };
        let bias = bias.as_ref().map_or_else(|| vec![0.0; outputs], |bias| self.tensor(bias).to_vec());
        let origin = Origin { conv: Some(id), norm: None, frozen: self.is_shared(node) };
        FusedConv::new(&layer_name(id, node), origin, shape, self.tensor(weight).to_vec(), bias, input)
    }

    /// Scales and shifts of a batch norm.
    fn affine(&self, node: &Node, channels: usize) -> Vec<Affine> {
        let Op::BatchNorm { weight, bias, mean, var, epsilon } = &node.op else { return Vec::new() };
        let optional = |name: &Option<String>| name.as_ref().map(|name| self.tensor(name));
        let (weight, bias, mean, var) = (optional(weight), optional(bias), self.tensor(mean), self.tensor(var));
        let of = |at: usize| {
            let (weight, bias) = (weight.map_or(1.0, |weight| weight[at]), bias.map_or(0.0, |bias| bias[at]));
            Affine::new(weight, bias, mean[at], var[at], *epsilon)
        };
        (0..channels).map(of).collect()
    }

    fn is_whole_norm(node: &Node) -> bool {
        matches!(&node.op, Op::BatchNorm { weight: Some(_), bias: Some(_), .. })
    }

    fn fold_norm(&mut self, id: NodeId, node: &Node, input: ValueId) -> Option<ValueId> {
        let affine = self.affine(node, self.net.channels(input));
        let frozen = self.is_shared(node) || !Self::is_whole_norm(node);
        let conv = self.plain_conv(input).filter(|conv| conv.is_plain() && conv.origin.norm.is_none())?;
        conv.fold(affine.into_iter());
        conv.origin.norm = Some(id);
        conv.origin.frozen |= frozen;
        Some(input)
    }

    /// A batch norm after anything else is a convolution of one pixel and one channel each.
    fn lone_norm(&self, id: NodeId, node: &Node, input: ValueId, channels: usize) -> FusedConv {
        let shape =
            ConvShape { inputs: channels, outputs: channels, groups: channels, window: Window::square(1, 1, 0) };
        let frozen = self.is_shared(node) || !Self::is_whole_norm(node);
        let origin = Origin { conv: None, norm: Some(id), frozen };
        let (weight, bias) = (vec![1.0; channels], vec![0.0; channels]);
        let mut conv = FusedConv::new(&layer_name(id, node), origin, shape, weight, bias, input);
        conv.fold(self.affine(node, channels).into_iter());
        conv
    }
}

fn layer_name(id: NodeId, node: &Node) -> String {
    if node.name.is_empty() { format!("node {id}") } else { node.name.clone() }
}
