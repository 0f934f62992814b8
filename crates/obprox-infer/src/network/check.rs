//! That a network from a file is one: nodes in order, numbers within bounds, as many inputs as each operation takes.

use obprox::{Error, Result};

use super::{Network, Node, Op, Window};

/// Far beyond any use, small enough that no size computed of them overflows.
const MOST_NODES: usize = 1 << 16;
const MOST_SIDE: usize = 1 << 12;
const MOST_CHANNELS: usize = 1 << 24;
/// Values a node may compute of an image: a gigabyte.
pub(super) const MOST_VALUES: usize = 1 << 28;

impl Network {
    /// Everything that can be told without tensors.
    pub fn check(&self) -> Result<()> {
        if self.nodes().is_empty() || self.nodes().len() > MOST_NODES {
            let count = self.nodes().len();
            return Err(Error::Data(format!("a network of {count} nodes: it has 1 to {MOST_NODES}")));
        }
        for (id, node) in self.nodes().iter().enumerate() {
            check_node(id, node).map_err(|flaw| Error::Data(format!("{}: {flaw}", node.described(id))))?;
        }
        Ok(())
    }
}

pub(super) fn check_node(id: usize, node: &Node) -> std::result::Result<(), String> {
    let asked = match &node.op {
        Op::Input { .. } => 0..=0,
        Op::Add | Op::Multiply => 2..=2,
        Op::Concat => 1..=MOST_NODES,
        _ => 1..=1,
    };
    if matches!(node.op, Op::Input { .. }) != (id == 0) {
        return Err("the first node is the input, and no other one is".into());
    }
    if !asked.contains(&node.inputs.len()) {
        return Err(format!("takes {} values, and is given {}", asked.start(), node.inputs.len()));
    }
    if let Some(input) = node.inputs.iter().find(|&&input| input >= id) {
        return Err(format!("takes the value of node {input}, which does not come before it"));
    }
    match &node.op {
        Op::Input { shape } | Op::Reshape { shape } => check_shape(shape),
        Op::Conv { window, groups, .. } => {
            check_window(window)?;
            match (1..=MOST_CHANNELS).contains(groups) {
                true => Ok(()),
                false => Err(format!("{groups} groups")),
            }
        }
        Op::MaxPool { window, .. } | Op::AveragePool { window, .. } => {
            check_window(window)?;
            match (0..2).all(|axis| window.padding[axis].max(window.padding[axis + 2]) < window.reach(axis)) {
                true => Ok(()),
                false => Err("is padded by more than its window".into()),
            }
        }
        Op::AdaptiveAveragePool { size: sides } | Op::Upsample { scale: sides } => check_sides(sides),
        Op::BatchNorm { epsilon, .. } if !(*epsilon >= 0.0 && epsilon.is_finite()) => Err(format!("ε is {epsilon}")),
        _ => Ok(()),
    }
}

fn check_sides(sides: &[usize]) -> std::result::Result<(), String> {
    match sides.iter().find(|side| !(1..=MOST_SIDE).contains(*side)) {
        Some(side) => Err(format!("{side} is not between 1 and {MOST_SIDE}")),
        None => Ok(()),
    }
}

fn check_window(window: &Window) -> std::result::Result<(), String> {
    let Window { kernel, stride, padding, dilation } = window;
    [kernel, stride, dilation].iter().try_for_each(|sides| check_sides(*sides))?;
    match padding.iter().find(|side| **side > MOST_SIDE) {
        Some(side) => Err(format!("a padding of {side} is more than {MOST_SIDE}")),
        None => Ok(()),
    }
}

/// Channels, height and width; or a length.
pub(super) fn check_shape(shape: &[usize]) -> std::result::Result<(), String> {
    let fits = match shape {
        [length] => (1..=MOST_CHANNELS).contains(length),
        [channels, sides @ ..] if sides.len() == 2 => {
            (1..=MOST_CHANNELS).contains(channels) && check_sides(sides).is_ok()
        }
        _ => return Err(format!("a value of shape {shape:?}: [channels, height, width] or [length] can be computed")),
    };
    match fits && shape.iter().product::<usize>() <= MOST_VALUES {
        true => Ok(()),
        false => Err(format!("a value of shape {shape:?} is empty or too large")),
    }
}
