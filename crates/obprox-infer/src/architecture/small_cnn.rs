//! A small CNN for quick starts: three 3×3 convolutions of b, 2b and 4b channels, a 2×2 max pool after the first two.

use crate::graph::{Graph, Op, Shape};

/// Channels of the first convolution at width 1.
pub const BASE: usize = 32;

pub fn graph(base: usize, channels: usize, classes: usize) -> Graph {
    let mut graph = Graph::new(channels);
    let (mut value, mut inputs) = (0, channels);
    for (layer, outputs) in [(1, base), (2, 2 * base), (3, 4 * base)] {
        let conv = Shape::new(inputs, outputs, 3, 1);
        let normed = graph.conv_norm(&format!("conv{layer}"), &format!("bn{layer}"), conv, value);
        value = graph.relu(normed);
        if layer < 3 {
            value = graph.push("", Op::MaxPool { size: 2 }, &[value]);
        }
        inputs = outputs;
    }
    graph.classify("fc", inputs, classes, value);
    graph
}
