//! ResNet18 for small images: a 3×3 stem of stride 1 without max pool, then four stages of two basic blocks.

use crate::graph::{Graph, NodeId, Op, Shape};

/// Channels of the stem at width 1.
pub const BASE: usize = 64;

pub fn graph(base: usize, channels: usize, classes: usize) -> Graph {
    let mut graph = Graph::new(channels);
    let stem = graph.conv_norm("conv1", "bn1", Shape::new(channels, base, 3, 1), 0);
    let mut value = graph.relu(stem);
    let mut width = base;
    for stage in 0..4 {
        for block in 0..2 {
            let first = stage > 0 && block == 0;
            let (inputs, stride) = (width, if first { 2 } else { 1 });
            width = base << stage;
            value = basic_block(&mut graph, &format!("layer{}.{block}", stage + 1), inputs, width, stride, value);
        }
    }
    graph.classify("fc", width, classes, value);
    graph
}

fn basic_block(graph: &mut Graph, name: &str, inputs: usize, outputs: usize, stride: usize, input: NodeId) -> NodeId {
    let names = |layer: usize| (format!("{name}.conv{layer}"), format!("{name}.bn{layer}"));
    let ((conv1, bn1), (conv2, bn2)) = (names(1), names(2));
    let inner = graph.conv_norm(&conv1, &bn1, Shape::new(inputs, outputs, 3, stride), input);
    let inner = graph.relu(inner);
    let inner = graph.conv_norm(&conv2, &bn2, Shape::new(outputs, outputs, 3, 1), inner);
    let straight = match stride {
        1 => input,
        _ => {
            let conv = Shape::new(inputs, outputs, 1, stride);
            graph.conv_norm(&format!("{name}.downsample.0"), &format!("{name}.downsample.1"), conv, input)
        }
    };
    let sum = graph.push("", Op::Add, &[inner, straight]);
    graph.relu(sum)
}
