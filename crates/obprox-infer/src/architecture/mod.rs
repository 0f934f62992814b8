//! The networks that are known by name: ResNet18, MobileNetV1 and a small CNN, for images of about 32×32 pixels.
//!
//! Every layer's width is a multiple of the first one's (`base`), so that a network is told by four numbers, and all of
//! them can be read off the shapes of its parameters.

mod mobilenet_v1;
mod recognise;
mod resnet18;
mod small_cnn;

use std::fmt;
use std::str::FromStr;

use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::graph::{self, Graph, Role};
use crate::network::{Network, Op, Window};
pub use recognise::plain_name;

/// A family of networks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Kind {
    /// 18 layers with residual connections; 3×3 stem of stride 1, no max pool. torchvision's parameter names.
    #[serde(rename = "resnet18")]
    ResNet18,
    /// 13 blocks of a depthwise and a pointwise convolution; strides as is usual for 32×32.
    #[serde(rename = "mobilenet-v1")]
    MobileNetV1,
    /// Three convolutions with max pools between, for quick starts.
    #[serde(rename = "small-cnn")]
    SmallCnn,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ResNet18, Self::MobileNetV1, Self::SmallCnn];

    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::ResNet18 => "resnet18",
            Self::MobileNetV1 => "mobilenet-v1",
            Self::SmallCnn => "small-cnn",
        }
    }

    /// Channels of the first convolution at width 1.
    pub fn full_base(self) -> usize {
        match self {
            Self::ResNet18 => resnet18::BASE,
            Self::MobileNetV1 => mobilenet_v1::BASE,
            Self::SmallCnn => small_cnn::BASE,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("not a network: one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// A network of a family: how wide, for which images, for how many classes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    kind: Kind,
    base: usize,
    channels: usize,
    classes: usize,
}

/// The widest first layer: far beyond any use, small enough that no size computed of it overflows.
const MOST_CHANNELS: usize = 1 << 12;
/// The same for classes.
const MOST_CLASSES: usize = 1 << 20;

impl Architecture {
    /// A network of width 1 (the paper's) for images of 3 channels and 10 classes.
    pub fn new(kind: Kind) -> Self {
        Self { kind, base: kind.full_base(), channels: 3, classes: 10 }
    }

    /// The same with the channels of every layer multiplied by `width`, rounded in the first layer.
    pub fn with_width(self, width: f64) -> Result<Self> {
        let base = (self.kind.full_base() as f64 * width).round();
        if !(base >= 1.0 && base <= MOST_CHANNELS as f64) {
            let (least, most) = (1.0 / self.kind.full_base() as f64, MOST_CHANNELS / self.kind.full_base());
            return Err(Error::parameter("width", format!("{width} is not between {least} and {most}")));
        }
        Ok(Self { base: base as usize, ..self })
    }

    /// The same for images of so many channels.
    pub fn with_channels(self, channels: usize) -> Result<Self> {
        match (1..=MOST_CHANNELS).contains(&channels) {
            true => Ok(Self { channels, ..self }),
            false => Err(Error::parameter("channels", format!("{channels} is not between 1 and {MOST_CHANNELS}"))),
        }
    }

    /// The same for so many classes.
    pub fn with_classes(self, classes: usize) -> Result<Self> {
        match (1..=MOST_CLASSES).contains(&classes) {
            true => Ok(Self { classes, ..self }),
            false => Err(Error::parameter("classes", format!("{classes} is not between 1 and {MOST_CLASSES}"))),
        }
    }

    /// For what came from a file: every number checked.
    pub(crate) fn checked(self) -> Result<Self> {
        let Self { base, channels, classes, kind } = self;
        Self::new(kind)
            .with_width(base as f64 / kind.full_base() as f64)?
            .with_channels(channels)?
            .with_classes(classes)
    }

    /// The family.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Channels of the first convolution.
    pub fn base(&self) -> usize {
        self.base
    }

    /// Channels relative to the network of width 1.
    pub fn width(&self) -> f64 {
        self.base as f64 / self.kind.full_base() as f64
    }

    /// Channels of the images.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The layers.
    pub fn graph(&self) -> Graph {
        match self.kind {
            Kind::ResNet18 => resnet18::graph(self.base, self.channels, self.classes),
            Kind::MobileNetV1 => mobilenet_v1::graph(self.base, self.channels, self.classes),
            Kind::SmallCnn => small_cnn::graph(self.base, self.channels, self.classes),
        }
    }
}

/// The side of the images that these networks are made for; others do too.
const NOMINAL_SIDE: usize = 32;

impl Architecture {
    /// The same layers as a network that is told node by node.
    pub fn network(&self) -> Network {
        let mut network = Network::new(&[self.channels, NOMINAL_SIDE, NOMINAL_SIDE]);
        // A mean over the pixels and a vector are two nodes there, and one here: numbers shift.
        let mut ids = vec![0];
        for node in self.graph().nodes().iter().skip(1) {
            let inputs: Vec<usize> = node.inputs.iter().map(|&input| ids[input]).collect();
            let mut id = network.push(&node.name, node.network_op(), &inputs);
            if matches!(node.op, graph::Op::GlobalAveragePool) {
                id = network.push("", Op::Flatten, &[id]);
            }
            ids.push(id);
        }
        network
    }
}

impl graph::Node {
    fn network_op(&self) -> Op {
        let name = |role: Role| self.parameter(role);
        match self.op {
            graph::Op::Input { channels } => Op::Input { shape: vec![channels, NOMINAL_SIDE, NOMINAL_SIDE] },
            graph::Op::Conv(conv) => Op::Conv {
                weight: name(Role::Weight),
                bias: None,
                window: Window::square(conv.kernel, conv.stride, conv.padding),
                groups: conv.groups,
            },
            graph::Op::BatchNorm { .. } => Op::BatchNorm {
                weight: Some(name(Role::NormWeight)),
                bias: Some(name(Role::NormBias)),
                mean: name(Role::RunningMean),
                var: name(Role::RunningVar),
                epsilon: f64::from(graph::BATCH_NORM_EPSILON),
            },
            graph::Op::Relu => Op::Relu,
            graph::Op::Add => Op::Add,
            graph::Op::MaxPool { size } => Op::MaxPool { window: Window::square(size, size, 0), ceil: false },
            graph::Op::GlobalAveragePool => Op::AdaptiveAveragePool { size: [1, 1] },
            graph::Op::Linear { .. } => Op::Linear { weight: name(Role::Weight), bias: Some(name(Role::Bias)) },
        }
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, channels, classes, .. } = self;
        let (more_channels, more_classes) =
            (if *channels == 1 { "" } else { "s" }, if *classes == 1 { "" } else { "es" });
        write!(f, "{kind}, width {}, {channels} channel{more_channels}, {classes} class{more_classes}", self.width())
    }
}
