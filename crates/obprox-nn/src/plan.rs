//! What of a network is computed in one go by the CPU's kernels.
//!
//! A convolution, the normalisation after it, a sum that this goes into and the rectifier after that are one task, where
//! nobody else takes the values in between.

use obprox_infer::graph::{Node, Op};

/// Something to compute.
#[derive(Clone, Debug)]
pub struct Task {
    pub work: Work,
    /// The values it takes.
    pub inputs: Vec<usize>,
    /// The value it gives.
    pub output: usize,
    /// The inputs that no later task takes.
    pub done: Vec<usize>,
}

/// What a task does; layers are numbered among those of their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A convolution where there is one, and what follows; a second input is added.
    Block {
        conv: Option<usize>,
        norm: usize,
        rectify: bool,
    },
    Conv {
        conv: usize,
    },
    Relu,
    Add,
    MaxPool {
        size: usize,
    },
    Means,
    Linear {
        linear: usize,
    },
}

/// The tasks of a network whose nodes have these layers.
pub fn tasks(nodes: &[(&Node, usize)]) -> Vec<Task> {
    let takers =
        |value: usize| -> Vec<usize> { (0..nodes.len()).filter(|&at| nodes[at].0.inputs.contains(&value)).collect() };
    // The node that alone takes a value, if it does so once.
    let only = |value: usize, op: fn(&Op) -> bool| match takers(value)[..] {
        [at] if op(&nodes[at].0.op) => Some(at),
        _ => None,
    };
    let mut absorbed = vec![false; nodes.len()];
    let mut tasks = Vec::new();
    for (at, (node, layer)) in nodes.iter().enumerate().skip(1) {
        if absorbed[at] {
            continue;
        }
        let conv = matches!(node.op, Op::Conv(_)).then_some(*layer);
        let norm = match node.op {
            Op::Conv(_) => only(at, |op| matches!(op, Op::BatchNorm { .. })),
            Op::BatchNorm { .. } => Some(at),
            _ => None,
        };
        let mut inputs = node.inputs.clone();
        let (work, output) = if let Some(norm) = norm {
            let mut last = norm;
            // Both sides of a sum may be normalised: it goes to the first of them.
            let sum = only(norm, |op| *op == Op::Add).filter(|&sum| nodes[sum].0.inputs[0] == norm);
            if let Some(sum) = sum {
                inputs.push(nodes[sum].0.inputs[1]);
                last = sum;
            }
            let relu = only(last, |op| *op == Op::Relu);
            last = relu.unwrap_or(last);
            [Some(norm), sum, relu].into_iter().flatten().for_each(|at| absorbed[at] = true);
            (Work::Block { conv, norm: nodes[norm].1, rectify: relu.is_some() }, last)
        } else {
            (plain(node.op, *layer), at)
        };
        tasks.push(Task { work, inputs, output, done: Vec::new() });
    }
    // A sum's other side may be computed after the convolution that it is added to.
    tasks.sort_by_key(|task| task.output);
    for value in 0..nodes.len() {
        if let Some(last) = tasks.iter_mut().rev().find(|task| task.inputs.contains(&value)) {
            last.done.push(value);
        }
    }
    tasks
}

fn plain(op: Op, layer: usize) -> Work {
    match op {
        Op::Conv(_) => Work::Conv { conv: layer },
        Op::BatchNorm { .. } => Work::Block { conv: None, norm: layer, rectify: false },
        Op::Relu => Work::Relu,
        Op::Add => Work::Add,
        Op::MaxPool { size } => Work::MaxPool { size },
        Op::GlobalAveragePool => Work::Means,
        Op::Linear { .. } => Work::Linear { linear: layer },
        Op::Input { .. } => unreachable!("the image is the first node only"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use obprox_infer::{Architecture, Kind};

    #[test]
    fn a_residual_network_is_blocks() {
        let graph = Architecture::new(Kind::ResNet18).graph();
        let nodes: Vec<(&Node, usize)> = graph.nodes().iter().map(|node| (node, 0)).collect();
        let tasks = tasks(&nodes);
        let count = |test: fn(&Task) -> bool| tasks.iter().filter(|task| test(task)).count();
        assert_eq!(count(|task| matches!(task.work, Work::Block { conv: Some(_), .. })), 20);
        assert_eq!(count(|task| matches!(task.work, Work::Block { .. }) && task.inputs.len() == 2), 8);
        assert_eq!(count(|task| matches!(task.work, Work::Block { rectify: false, .. })), 3, "those beside a block");
        assert_eq!(tasks.len(), 22, "and the mean, and the scores");
        // Nothing is taken before it is there, or after it is gone.
        let mut there = vec![0];
        for task in &tasks {
            assert!(task.inputs.iter().all(|input| there.contains(input)));
            there.retain(|value| !task.done.contains(value));
            there.push(task.output);
        }
        assert_eq!(there.len(), 1);
    }
}
