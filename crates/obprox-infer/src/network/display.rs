//! Networks and their nodes in words.

use std::fmt;

use super::{Network, Node, Op};

impl Op {
    /// Its name in files and messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Input { .. } => "input",
            Self::Conv { .. } => "conv",
            Self::Linear { .. } => "linear",
            Self::BatchNorm { .. } => "batch-norm",
            Self::Relu => "relu",
            Self::Relu6 => "relu6",
            Self::Silu => "silu",
            Self::HardSwish => "hard-swish",
            Self::HardSigmoid => "hard-sigmoid",
            Self::Gelu => "gelu",
            Self::Sigmoid => "sigmoid",
            Self::Add => "add",
            Self::Multiply => "multiply",
            Self::Concat => "concat",
            Self::MaxPool { .. } => "max-pool",
            Self::AveragePool { .. } => "average-pool",
            Self::AdaptiveAveragePool { .. } => "adaptive-average-pool",
            Self::Upsample { .. } => "upsample",
            Self::Flatten => "flatten",
            Self::Reshape { .. } => "reshape",
            Self::Softmax => "softmax",
        }
    }
}

impl Node {
    /// What it is and where it stands, for errors.
    pub(crate) fn described(&self, id: usize) -> String {
        let op = self.op.name();
        if self.name.is_empty() { format!("node {id} ({op})") } else { format!("{} ({op})", self.name) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layers = self.nodes().iter().filter(|node| matches!(node.op, Op::Conv { .. } | Op::Linear { .. })).count();
        let input: Vec<String> = self.input_shape().iter().map(usize::to_string).collect();
        write!(f, "a network of {layers} layers for {}", input.join("×"))
    }
}
