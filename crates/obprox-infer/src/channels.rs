//! Channels that cannot reach the output, cleared: the network computes the same with fewer of them.

use obprox::Result;

use crate::fused::{Affine, Fused, FusedConv, FusedNet};
use crate::graph::Role;
use crate::liveness::Liveness;
use crate::model::Model;
use crate::weights::Weights;

/// What became of the channels of one convolution.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channels {
    /// The convolution's name among the parameters.
    pub layer: String,
    /// Channels that it makes.
    pub total: usize,
    /// Channels that are all zero now.
    pub cleared: usize,
}

impl Model {
    /// The same network with the channels that cannot change its output cleared, and what was cleared in each
    /// convolution. Such a channel's parameters are all zero: those of the convolution and of the batch norm that make
    /// it, and those that read it. Where it was a constant, the readers' batch norm or bias makes up for it, and the
    /// output agrees to rounding; where it was zero or nobody read it, to the bit.
    pub fn without_dead_channels(&self) -> Result<(Self, Vec<Channels>)> {
        let mut model = self.clone();
        let mut before = None;
        // Weights that are cleared may have been the only ones to stand in the way of clearing others.
        loop {
            let cleared = model.clear_dead_channels()?;
            if before.as_ref() == Some(&cleared) {
                return Ok((Self::new(model.architecture, model.weights, model.training)?, cleared));
            }
            before = Some(cleared);
        }
    }

    fn clear_dead_channels(&mut self) -> Result<Vec<Channels>> {
        let net = FusedNet::new(&self.architecture.graph(), &self.weights)?;
        let liveness = Liveness::new(&net);
        let mut channels = Vec::new();
        for (step, made) in net.steps.iter().zip(1..) {
            match step {
                Fused::Conv(conv) => {
                    clear_conv(conv, made, &liveness, &mut self.weights);
                    let needed = &liveness.needed[made];
                    let cleared = needed.iter().filter(|needed| !**needed).count();
                    channels.push(Channels { layer: conv.conv_name.clone(), total: needed.len(), cleared });
                }
                Fused::Head { name, input, .. } => clear_head(name, *input, &liveness, &mut self.weights),
                Fused::MaxPool { .. } => {}
            }
        }
        Ok(channels)
    }
}

fn clear_conv(conv: &FusedConv, made: usize, liveness: &Liveness, weights: &mut Weights) {
    let row_len = conv.row(0).len();
    for output in 0..conv.conv.outputs {
        let needed = liveness.needed[made][output];
        let constant = liveness.constant_row(conv, output);
        let keeps_row = needed && constant.is_none();
        let reads = |channel: usize| liveness.left_out(conv.input, channel).is_none();
        let kept = conv.all_taps(output).map(|(channel, ..)| keeps_row && reads(channel));
        let row = &mut values(weights, &conv.conv_name, Role::Weight)[output * row_len..][..row_len];
        for (weight, kept) in row.iter_mut().zip(kept) {
            *weight = if kept { *weight } else { 0.0 };
        }
        let norm = NORM.map(|role| values(weights, &conv.norm_name, role)[output]);
        let residual = liveness.residual(conv, output);
        let new = match (needed, constant) {
            (false, _) => [0.0; 4],
            (true, Some(constant)) => [0.0, (constant + residual) as f32, 0.0, 0.0],
            (true, None) => {
                let [weight, bias, mean, var] = norm;
                // The batch norm scales what the weights give, so the compensation is taken before the scale.
                let shift = match liveness.compensation(conv, output) {
                    0.0 => 0.0,
                    compensation => compensation / Affine::new((&weight, &bias), (&mean, &var)).scale,
                };
                [weight, (f64::from(bias) + residual) as f32, (f64::from(mean) - shift) as f32, var]
            }
        };
        for (role, new) in NORM.into_iter().zip(new) {
            values(weights, &conv.norm_name, role)[output] = new;
        }
    }
}

fn clear_head(name: &str, input: usize, liveness: &Liveness, weights: &mut Weights) {
    let channels = liveness.needed[input].len();
    let mut shifts = Vec::new();
    for row in values(weights, name, Role::Weight).chunks_exact_mut(channels) {
        let mut shift = 0.0;
        for (channel, weight) in row.iter_mut().enumerate() {
            if let Some(constant) = liveness.left_out(input, channel) {
                shift += f64::from(*weight) * constant;
                *weight = 0.0;
            }
        }
        shifts.push(shift);
    }
    for (bias, shift) in values(weights, name, Role::Bias).iter_mut().zip(shifts) {
        *bias = (f64::from(*bias) + shift) as f32;
    }
}

const NORM: [Role; 4] = [Role::NormWeight, Role::NormBias, Role::RunningMean, Role::RunningVar];

/// The values of a parameter that the network was checked to have.
fn values<'a>(weights: &'a mut Weights, layer: &str, role: Role) -> &'a mut [f32] {
    weights.get_mut(&format!("{layer}.{}", role.suffix())).map_or(&mut [], |tensor| tensor.data_mut())
}
