//! A network as a plain list of layers: what is computed from what, and which parameters it takes.
//!
//! Parameters carry PyTorch's names: a layer's name, a dot, and what the parameter is to the layer.

pub use obprox_kernels::Shape;

/// Index of a node, and of the value it computes.
pub type NodeId = usize;

/// PyTorch's default of `torch.nn.BatchNorm2d`.
pub const BATCH_NORM_EPSILON: f32 = 1e-5;

/// What a node computes of its inputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// The image: so many channels.
    Input {
        /// Channels of the image.
        channels: usize,
    },
    /// Convolution without bias (a batch norm follows).
    Conv(Shape),
    /// Batch norm in evaluation mode: (x − mean)/√(var + ε)·weight + bias.
    BatchNorm {
        /// Channels of its input.
        channels: usize,
    },
    /// max(x, 0).
    Relu,
    /// The sum of two values of one shape.
    Add,
    /// The largest of each square of so many pixels, without overlap.
    MaxPool {
        /// Side of the square.
        size: usize,
    },
    /// The mean of each channel over all pixels.
    GlobalAveragePool,
    /// Matrix and bias: the scores of the classes.
    Linear {
        /// Length of its input.
        inputs: usize,
        /// Length of its output.
        outputs: usize,
    },
}

/// One step of the network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// Name of the layer in PyTorch's parameter names; empty where it has no parameters.
    pub name: String,
    /// What it computes.
    pub op: Op,
    /// Of which values; all of them come earlier in the list.
    pub inputs: Vec<NodeId>,
}

/// What a parameter is to its layer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// Weight of a convolution or a linear layer: what the penalty makes sparse.
    Weight,
    /// Bias of a linear layer.
    Bias,
    /// Scale of a batch norm.
    NormWeight,
    /// Shift of a batch norm.
    NormBias,
    /// Running mean of a batch norm; not trained by gradients.
    RunningMean,
    /// Running variance of a batch norm; not trained by gradients.
    RunningVar,
}

impl Role {
    /// Whether it is counted from batches rather than trained.
    pub fn is_moment(self) -> bool {
        matches!(self, Self::RunningMean | Self::RunningVar)
    }

    /// The part of a parameter's name after the last dot.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Weight | Self::NormWeight => "weight",
            Self::Bias | Self::NormBias => "bias",
            Self::RunningMean => "running_mean",
            Self::RunningVar => "running_var",
        }
    }
}

/// A parameter that a network asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// PyTorch's name.
    pub name: String,
    /// PyTorch's shape.
    pub shape: Vec<usize>,
    /// What it is to its layer.
    pub role: Role,
}

impl Node {
    /// The name of one of its parameters.
    pub fn parameter(&self, role: Role) -> String {
        format!("{}.{}", self.name, role.suffix())
    }

    /// Its parameters, in PyTorch's order.
    pub fn parameters(&self) -> Vec<Parameter> {
        let one = |role: Role, shape: &[usize]| Parameter { name: self.parameter(role), shape: shape.to_vec(), role };
        match self.op {
            Op::Conv(conv) => vec![one(Role::Weight, &conv.weight_shape())],
            Op::BatchNorm { channels } => [Role::NormWeight, Role::NormBias, Role::RunningMean, Role::RunningVar]
                .map(|role| one(role, &[channels]))
                .into(),
            Op::Linear { inputs, outputs } => vec![one(Role::Weight, &[outputs, inputs]), one(Role::Bias, &[outputs])],
            Op::Input { .. } | Op::Relu | Op::Add | Op::MaxPool { .. } | Op::GlobalAveragePool => Vec::new(),
        }
    }
}

/// A network: its nodes in the order of computing; the first is the image, the last the scores.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    nodes: Vec<Node>,
}

impl Graph {
    /// A network that so far returns the image.
    pub fn new(channels: usize) -> Self {
        Self { nodes: vec![Node { name: String::new(), op: Op::Input { channels }, inputs: Vec::new() }] }
    }

    /// The nodes, in the order of computing.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The value computed last.
    pub fn last(&self) -> NodeId {
        self.nodes.len() - 1
    }

    /// Adds a node and returns its value.
    pub fn push(&mut self, name: impl Into<String>, op: Op, inputs: &[NodeId]) -> NodeId {
        assert!(inputs.iter().all(|&input| input < self.nodes.len()), "a node takes values that come before it");
        self.nodes.push(Node { name: name.into(), op, inputs: inputs.to_vec() });
        self.last()
    }

    /// Convolution and batch norm, which go together in every network here.
    pub fn conv_norm(&mut self, conv_name: &str, norm_name: &str, conv: Shape, input: NodeId) -> NodeId {
        let convolved = self.push(conv_name, Op::Conv(conv), &[input]);
        self.push(norm_name, Op::BatchNorm { channels: conv.outputs }, &[convolved])
    }

    /// max(x, 0) of a value.
    pub fn relu(&mut self, input: NodeId) -> NodeId {
        self.push("", Op::Relu, &[input])
    }

    /// Mean of each channel, and the scores of the classes: how every network here ends.
    pub fn classify(&mut self, name: &str, inputs: usize, outputs: usize, input: NodeId) -> NodeId {
        let pooled = self.push("", Op::GlobalAveragePool, &[input]);
        self.push(name, Op::Linear { inputs, outputs }, &[pooled])
    }

    /// Every parameter of the network, in the order of computing.
    pub fn parameters(&self) -> Vec<Parameter> {
        self.nodes.iter().flat_map(Node::parameters).collect()
    }

    /// Channels of each value.
    pub fn channels(&self) -> Vec<usize> {
        let mut channels: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            channels.push(match node.op {
                Op::Input { channels } | Op::BatchNorm { channels } => channels,
                Op::Conv(conv) => conv.outputs,
                Op::Linear { outputs, .. } => outputs,
                Op::Relu | Op::Add | Op::MaxPool { .. } | Op::GlobalAveragePool => channels[node.inputs[0]],
            });
        }
        channels
    }
}
