//! MobileNetV1 for small images: a 3×3 stem of stride 1, then 13 blocks of a depthwise 3×3 and a pointwise convolution.

use crate::graph::{Graph, Shape};

/// Channels of the stem at width 1.
pub const BASE: usize = 32;

/// Output channels of each block as multiples of the stem's, and its stride.
const BLOCKS: [(usize, usize); 13] =
    [(2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), (16, 1), (16, 1), (16, 1), (16, 1), (16, 1), (32, 2), (32, 1)];

pub fn graph(base: usize, channels: usize, classes: usize) -> Graph {
    let mut graph = Graph::new(channels);
    let stem = graph.conv_norm("conv1", "bn1", Shape::new(channels, base, 3, 1), 0);
    let mut value = graph.relu(stem);
    let mut width = base;
    for (block, (multiple, stride)) in BLOCKS.into_iter().enumerate() {
        let names = |layer: usize| (format!("layers.{block}.conv{layer}"), format!("layers.{block}.bn{layer}"));
        let ((conv1, bn1), (conv2, bn2)) = (names(1), names(2));
        let each = graph.conv_norm(&conv1, &bn1, Shape::depthwise(width, 3, stride), value);
        let each = graph.relu(each);
        let mixed = graph.conv_norm(&conv2, &bn2, Shape::new(width, base * multiple, 1, 1), each);
        value = graph.relu(mixed);
        width = base * multiple;
    }
    graph.classify("linear", width, classes, value);
    graph
}
