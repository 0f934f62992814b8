//! Channels that cannot reach the output, cleared: the network computes the same with fewer of them.

use obprox::Result;

use crate::fused::{Affine, Fused, FusedConv, FusedNet};
use crate::liveness::Liveness;
use crate::model::Model;
use crate::network::{Network, NodeId, Op};
use crate::weights::{Tensor, Weights};

/// What became of the channels of one layer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channels {
    /// The layer's name.
    pub layer: String,
    /// Channels that it makes.
    pub total: usize,
    /// Channels that are all zero now.
    pub cleared: usize,
}

impl Model {
    /// The same network with the channels that cannot change its output cleared, and what was cleared in each layer.
    /// Such a channel's parameters are all zero: those of the convolution and of the batch norm that make it, and those
    /// that read it. Where it was a constant, the readers' batch norm or bias makes up for it, and the output agrees to
    /// rounding; where it was zero or nobody read it, to the bit.
    pub fn without_dead_channels(&self) -> Result<(Self, Vec<Channels>)> {
        let Cleared { network, weights, channels, .. } = cleared(self)?;
        let (design, _, training) = self.clone().into_parts();
        let design = design.with_network(network);
        Ok((Self::new(design, weights, training)?, channels))
    }
}

/// A network whose dead channels are cleared.
pub(crate) struct Cleared {
    pub network: Network,
    pub weights: Weights,
    /// What was cleared in each layer.
    pub channels: Vec<Channels>,
    /// Which channels of which value are needed.
    pub needed: Vec<Vec<bool>>,
}

pub(crate) fn cleared(model: &Model) -> Result<Cleared> {
    let (mut network, mut weights) = (model.network().clone(), model.weights().clone());
    let mut before = None;
    // Weights that are cleared may have been the only ones to stand in the way of clearing others.
    loop {
        let (channels, needed) = clear(&mut network, &mut weights)?;
        if before.as_ref() == Some(&channels) {
            return Ok(Cleared { network, weights, channels, needed });
        }
        before = Some(channels);
    }
}

fn clear(network: &mut Network, weights: &mut Weights) -> Result<(Vec<Channels>, Vec<Vec<bool>>)> {
    let net = FusedNet::new(network, weights, network.input_shape())?;
    let liveness = Liveness::new(&net);
    let mut channels = Vec::new();
    for (step, made) in net.steps.iter().zip(1..) {
        let Fused::Conv(conv) = step else { continue };
        // The scores are all needed, and a batch norm by itself makes no channels.
        if conv.origin.conv.is_some() && made != net.output {
            let needed = &liveness.needed[made];
            let cleared = needed.iter().filter(|needed| !**needed).count();
            channels.push(Channels { layer: conv.name.clone(), total: needed.len(), cleared });
        }
        if !conv.origin.frozen {
            clear_conv(conv, &liveness, made, network, weights);
        }
    }
    Ok((channels, liveness.needed))
}

/// What an output is to be: whether it keeps its weights, and what is added before and after its batch norm.
struct Change {
    keeps_row: bool,
    needed: bool,
    /// In units of what the batch norm makes.
    shift: f64,
    /// Added by a residual that is left out.
    residual: f64,
}

fn clear_conv(conv: &FusedConv, liveness: &Liveness, made: usize, network: &mut Network, weights: &mut Weights) {
    let mut changes = Vec::with_capacity(conv.shape.outputs);
    for output in 0..conv.shape.outputs {
        let needed = liveness.needed[made][output];
        let constant = liveness.constant_row(conv, output);
        let keeps_row = needed && constant.is_none();
        let residual = if needed { liveness.residual(conv, output) } else { 0.0 };
        let shift = constant.unwrap_or_else(|| liveness.compensation(conv, output));
        changes.push(Change { keeps_row, needed, shift, residual });
    }
    if let Some(node) = conv.origin.conv {
        clear_weight(conv, node, liveness, &changes, network, weights);
    }
    match conv.origin.norm {
        Some(norm) => {
            if let Some(bias) = conv.origin.conv.and_then(|node| bias_name(network, node)) {
                let bias = values(weights, &bias);
                bias.iter_mut().zip(&changes).filter(|(_, c)| !c.keeps_row).for_each(|(bias, _)| *bias = 0.0);
            }
            clear_norm(norm, &changes, network, weights);
        }
        None => clear_bias(conv, &changes, network, weights),
    }
}

fn clear_weight(
    conv: &FusedConv,
    node: NodeId,
    liveness: &Liveness,
    changes: &[Change],
    network: &Network,
    weights: &mut Weights,
) {
    let (Op::Conv { weight, .. } | Op::Linear { weight, .. }) = &network.nodes()[node].op else { return };
    let row_len = conv.row(0).len();
    for ((output, change), row) in changes.iter().enumerate().zip(values(weights, weight).chunks_exact_mut(row_len)) {
        let reads = |channel: usize| liveness.left_out(conv.input, channel).is_none();
        let kept = conv.all_taps(output).map(|(channel, ..)| change.keeps_row && reads(channel));
        for (weight, kept) in row.iter_mut().zip(kept) {
            *weight = if kept { *weight } else { 0.0 };
        }
    }
}

fn clear_norm(norm: NodeId, changes: &[Change], network: &Network, weights: &mut Weights) {
    let Op::BatchNorm { weight: Some(weight), bias: Some(bias), mean, var, epsilon } = &network.nodes()[norm].op else {
        return;
    };
    let names = [weight, bias, mean, var];
    for (output, change) in changes.iter().enumerate() {
        let [weight, bias, mean, var] = names.map(|name| values(weights, name)[output]);
        // Nothing is divided by zero: where ε is none the variance stays.
        let no_var = if *epsilon > 0.0 { 0.0 } else { var };
        let new = match change {
            Change { needed: false, .. } => [0.0, 0.0, 0.0, no_var],
            Change { keeps_row: false, shift, residual, .. } => [0.0, (shift + residual) as f32, 0.0, no_var],
            Change { shift, residual, .. } => {
                // The batch norm scales what the weights give, so the compensation is taken before the scale.
                let before = match shift {
                    0.0 => 0.0,
                    shift => shift / Affine::new(weight, bias, mean, var, *epsilon).scale,
                };
                [weight, (f64::from(bias) + residual) as f32, (f64::from(mean) - before) as f32, var]
            }
        };
        for (name, new) in names.into_iter().zip(new) {
            values(weights, name)[output] = new;
        }
    }
}

fn clear_bias(conv: &FusedConv, changes: &[Change], network: &mut Network, weights: &mut Weights) {
    let Some(node) = conv.origin.conv else { return };
    let new = changes.iter().zip(&conv.bias).map(|(change, bias)| match change {
        Change { needed: false, .. } => 0.0,
        Change { keeps_row: false, shift, residual, .. } => (shift + residual) as f32,
        Change { shift, residual, .. } => (f64::from(*bias) + shift + residual) as f32,
    });
    let new: Vec<f32> = new.collect();
    let name = match bias_name(network, node) {
        Some(name) => name,
        None if new.iter().all(|bias| *bias == 0.0) => return,
        None => network.add_bias(node, weights),
    };
    if let Ok(tensor) = Tensor::new(vec![new.len()], new) {
        weights.insert(name, tensor);
    }
}

fn bias_name(network: &Network, node: NodeId) -> Option<String> {
    match &network.nodes()[node].op {
        Op::Conv { bias, .. } | Op::Linear { bias, .. } => bias.clone(),
        _ => None,
    }
}

/// The values of a parameter that the network was checked to have.
fn values<'a>(weights: &'a mut Weights, name: &str) -> &'a mut [f32] {
    weights.get_mut(name).map_or(&mut [], |tensor| tensor.data_mut())
}
