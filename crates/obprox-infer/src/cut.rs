//! Dead channels cut out: a network of smaller layers that computes the same, for any runtime.

use obprox::Result;

use crate::channels::{Cleared, cleared};
use crate::fused::{Fused, FusedConv, FusedNet, ValueId};
use crate::liveness::{mixes, sources};
use crate::model::Model;
use crate::network::{Network, Node, Op};
use crate::weights::{Tensor, Weights};

impl Model {
    /// The same network without the channels that cannot change its output. What is added, multiplied or seen channel by
    /// channel keeps a channel as long as any of it is needed, so that every layer stays a plain one.
    pub fn cut(&self) -> Result<Self> {
        let mut model = self.clone();
        // A layer that is smaller may be all that stood in the way of another.
        loop {
            let next = model.cut_once()?;
            if next.parameters() >= model.parameters() {
                return Ok(model);
            }
            model = next;
        }
    }

    fn cut_once(&self) -> Result<Self> {
        let Cleared { network, weights, needed, .. } = cleared(self)?;
        let net = FusedNet::new(&network, &weights, network.input_shape())?;
        let kept = kept_together(&net, needed);
        let (network, weights) = sliced(&network, &weights, &net, &kept);
        Self::new(network, weights, self.training().clone())
    }
}

impl Model {
    /// Numbers in all tensors.
    pub fn parameters(&self) -> usize {
        self.weights().iter().map(|(_, tensor)| tensor.len()).sum()
    }

    /// Products that a dense runtime adds up for an input of the size that the network names.
    pub fn multiply_adds(&self) -> Result<usize> {
        self.products(|conv| conv.weight.len())
    }

    /// Those of them that are not by a weight of zero.
    pub fn nonzero_multiply_adds(&self) -> Result<usize> {
        self.products(|conv| conv.weight.iter().filter(|weight| **weight != 0.0).count())
    }

    fn products(&self, of_pixel: impl Fn(&FusedConv) -> usize) -> Result<usize> {
        let net = FusedNet::new(self.network(), self.weights(), self.network().input_shape())?;
        let of_step = |(step, [_, height, width]): (&Fused, &[usize; 3])| match step {
            Fused::Conv(conv) if conv.origin.conv.is_some() => of_pixel(conv) * height * width,
            _ => 0,
        };
        Ok(net.steps.iter().zip(&net.sizes[1..]).map(of_step).sum())
    }
}

/// The channels of each value that stay, when those stay together that must.
pub(crate) fn kept_together(net: &FusedNet, mut kept: Vec<Vec<bool>>) -> Vec<Vec<bool>> {
    kept[0].fill(true);
    kept[net.output].fill(true);
    loop {
        let before = count(&kept);
        net.steps.iter().zip(1..).for_each(|(step, made)| keep_step(net, step, made, &mut kept));
        if count(&kept) > before {
            continue;
        }
        // A layer without channels is none.
        kept.iter_mut().filter(|channels| !channels.contains(&true)).for_each(|channels| channels[0] = true);
        if count(&kept) == before {
            return kept;
        }
    }
}

fn keep_step(net: &FusedNet, step: &Fused, made: ValueId, kept: &mut [Vec<bool>]) {
    match step {
        Fused::Conv(conv) => keep_conv(conv, made, kept),
        step if mixes(step) => {
            kept[made].fill(true);
            step.inputs().iter().for_each(|&input| kept[input].fill(true));
        }
        step => {
            for channel in 0..net.channels(made) {
                let mut any = kept[made][channel];
                sources(net, step, channel, |value, channel| any |= kept[value][channel]);
                kept[made][channel] = any;
                sources(net, step, channel, |value, channel| kept[value][channel] = any);
            }
        }
    }
}

fn keep_conv(conv: &FusedConv, made: ValueId, kept: &mut [Vec<bool>]) {
    if conv.origin.frozen || conv.shape.groups > 1 && !conv.shape.is_depthwise() {
        kept[conv.input].fill(true);
        kept[made].fill(true);
    }
    if conv.shape.is_depthwise() {
        let multiple = conv.shape.outputs / conv.shape.inputs;
        for channel in 0..conv.shape.inputs {
            let outputs = channel * multiple..(channel + 1) * multiple;
            let any = kept[conv.input][channel] || kept[made][outputs.clone()].contains(&true);
            kept[conv.input][channel] = any;
            kept[made][outputs].fill(any);
        }
    }
    if let Some(residual) = conv.residual {
        let both: Vec<bool> = kept[made].iter().zip(&kept[residual]).map(|(one, two)| *one || *two).collect();
        kept[residual].clone_from(&both);
        kept[made] = both;
    }
}

fn count(kept: &[Vec<bool>]) -> usize {
    kept.iter().flatten().filter(|kept| **kept).count()
}

/// The network and its tensors with the kept channels alone.
fn sliced(network: &Network, weights: &Weights, net: &FusedNet, kept: &[Vec<bool>]) -> (Network, Weights) {
    let mut small = Weights::new();
    let mut nodes = Vec::with_capacity(network.nodes().len());
    for (id, node) in network.nodes().iter().enumerate() {
        let outputs = &kept[net.values[id]];
        let mut op = node.op.clone();
        match &mut op {
            Op::Conv { weight, bias, groups, .. } => {
                let inputs = &kept[net.values[node.inputs[0]]];
                match *groups {
                    1 => slice(weights, &mut small, weight, &[outputs, inputs]),
                    _ => slice(weights, &mut small, weight, &[outputs]),
                }
                if *groups > 1 {
                    *groups = *groups * inputs.iter().filter(|kept| **kept).count() / inputs.len();
                }
                bias.iter().for_each(|bias| slice(weights, &mut small, bias, &[outputs]));
            }
            Op::Linear { weight, bias } => {
                slice(weights, &mut small, weight, &[outputs, &kept[net.values[node.inputs[0]]]]);
                bias.iter().for_each(|bias| slice(weights, &mut small, bias, &[outputs]));
            }
            Op::BatchNorm { .. } => {
                node.op.tensors().iter().for_each(|(_, name)| slice(weights, &mut small, name, &[outputs]));
            }
            // What mixes channels keeps all of them.
            Op::Reshape { shape } => shape[0] = outputs.iter().filter(|kept| **kept).count(),
            _ => {}
        }
        nodes.push(Node { name: node.name.clone(), op, inputs: node.inputs.clone() });
    }
    (Network::of_nodes(nodes), small)
}

/// A tensor with some of its first indices, and of its second ones.
fn slice(weights: &Weights, small: &mut Weights, name: &str, kept: &[&Vec<bool>]) {
    let Some(tensor) = weights.get(name) else { return };
    let mut shape = tensor.shape().to_vec();
    let rows = kept[0];
    let row: usize = shape[1..].iter().product();
    let of_column = kept.get(1).map_or(row, |columns| row / columns.len());
    let mut data = Vec::new();
    for (row, _) in tensor.data().chunks_exact(row).zip(rows).filter(|(_, kept)| **kept) {
        match kept.get(1) {
            None => data.extend(row),
            Some(columns) => {
                let columns = row.chunks_exact(of_column).zip(columns.iter()).filter(|(_, kept)| **kept);
                columns.for_each(|(column, _)| data.extend(column));
            }
        }
    }
    for (size, kept) in shape.iter_mut().zip(kept) {
        *size = kept.iter().filter(|kept| **kept).count();
    }
    if let Ok(tensor) = Tensor::new(shape, data) {
        small.insert(name, tensor);
    }
}
