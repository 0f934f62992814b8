//! Which channels of which values matter to the output.
//!
//! A channel that is the same number k everywhere can be left out if whoever reads it makes up for it by its bias. That
//! is exact for a weight that never meets the padding; a weight that does would have seen k inside the image and zero
//! around it, so that such a channel stays, unless k = 0.

use crate::fused::{Fused, FusedConv, FusedNet};

/// What is known of every channel of every value.
pub(crate) struct Liveness {
    /// The number that a channel is everywhere.
    constant: Vec<Vec<Option<f64>>>,
    /// Constant channels that can be left out; their readers add `constant` times their weights to their bias.
    absorbed: Vec<Vec<bool>>,
    /// Channels that must be there for the output to be what it is.
    pub needed: Vec<Vec<bool>>,
}

impl Liveness {
    pub fn new(net: &FusedNet) -> Self {
        let constant = constants(net);
        let absorbed = absorbed(net, &constant);
        let needed = needed(net, &constant, &absorbed);
        Self { constant, absorbed, needed }
    }

    /// The channels of a value that have to be computed.
    pub fn kept(&self, value: usize) -> Vec<usize> {
        let needed = &self.needed[value];
        (0..needed.len()).filter(|&channel| needed[channel]).collect()
    }

    /// W∗x + b of a row, where it is the same everywhere; such a row needs no weights.
    pub fn constant_row(&self, conv: &FusedConv, output: usize) -> Option<f64> {
        row_constant(conv, output, &self.constant[conv.input])
    }

    /// The constant that a channel would have been, where it is left out.
    pub fn left_out(&self, value: usize, channel: usize) -> Option<f64> {
        self.constant[value][channel].filter(|_| self.absorbed[value][channel])
    }

    /// What the channels that are left out would have given to a row.
    pub fn compensation(&self, conv: &FusedConv, output: usize) -> f64 {
        let taps = conv.taps(output);
        taps.filter_map(|(channel, _, _, weight)| Some(f64::from(weight) * self.left_out(conv.input, channel)?)).sum()
    }

    /// What the residual would have added to an output, where it is left out.
    pub fn residual(&self, conv: &FusedConv, output: usize) -> f64 {
        conv.residual.and_then(|residual| self.left_out(residual, output)).unwrap_or(0.0)
    }
}

/// A tap that reads a pixel of the image wherever it is applied.
fn stays_inside(conv: &FusedConv, (row, column): (usize, usize)) -> bool {
    let padding = conv.conv.padding;
    padding == 0 || (row, column) == (padding, padding)
}

fn constants(net: &FusedNet) -> Vec<Vec<Option<f64>>> {
    let mut constant: Vec<Vec<Option<f64>>> = vec![vec![None; net.channels[0]]];
    for (step, &channels) in net.steps.iter().zip(&net.channels[1..]) {
        constant.push(match step {
            Fused::Conv(conv) => (0..channels)
                .map(|output| {
                    let own = row_constant(conv, output, &constant[conv.input])?;
                    let residual = conv.residual.map_or(Some(0.0), |residual| constant[residual][output])?;
                    let sum = own + residual;
                    Some(if conv.relu { sum.max(0.0) } else { sum })
                })
                .collect(),
            Fused::MaxPool { input, .. } => constant[*input].clone(),
            Fused::Head { .. } => vec![None; channels],
        });
    }
    constant
}

/// W∗x + b of a row, where it is the same everywhere.
fn row_constant(conv: &FusedConv, output: usize, input: &[Option<f64>]) -> Option<f64> {
    conv.taps(output).try_fold(f64::from(conv.bias[output]), |sum, (channel, row, column, weight)| {
        let value = input[channel]?;
        (value == 0.0 || stays_inside(conv, (row, column))).then_some(sum + f64::from(weight) * value)
    })
}

/// The largest set of constant channels that can all be left out at once: starts from all and drops what cannot.
fn absorbed(net: &FusedNet, constant: &[Vec<Option<f64>>]) -> Vec<Vec<bool>> {
    let mut absorbed: Vec<Vec<bool>> =
        constant.iter().map(|channels| channels.iter().map(Option::is_some).collect()).collect();
    for step in &net.steps {
        let Fused::Conv(conv) = step else { continue };
        for output in 0..conv.conv.outputs {
            for (channel, row, column, _) in conv.taps(output) {
                let zero = constant[conv.input][channel] == Some(0.0);
                absorbed[conv.input][channel] &= zero || stays_inside(conv, (row, column));
            }
        }
    }
    loop {
        let mut changed = false;
        for (step, made) in net.steps.iter().zip(1..) {
            // Two lines of `absorbed` are written in turn.
            #[allow(clippy::needless_range_loop)]
            for channel in 0..net.channels[made] {
                // What is left out must be zero for those who only pass it on.
                let (pair, both) = match step {
                    Fused::MaxPool { input, .. } => (*input, true),
                    Fused::Conv(FusedConv { residual: Some(residual), .. }) => (*residual, false),
                    _ => continue,
                };
                let (before, after) = (absorbed[pair][channel], absorbed[made][channel]);
                if after && !before {
                    absorbed[made][channel] = false;
                    changed = true;
                }
                if both && before && !after {
                    absorbed[pair][channel] = false;
                    changed = true;
                }
            }
        }
        if !changed {
            return absorbed;
        }
    }
}

fn needed(net: &FusedNet, constant: &[Vec<Option<f64>>], absorbed: &[Vec<bool>]) -> Vec<Vec<bool>> {
    let mut needed: Vec<Vec<bool>> = net.channels.iter().map(|&channels| vec![false; channels]).collect();
    if let Some(scores) = needed.last_mut() {
        scores.fill(true);
    }
    for (at, step) in net.steps.iter().enumerate().rev() {
        let made = at + 1;
        let (before, after) = needed.split_at_mut(made);
        let outputs = (0..net.channels[made]).filter(|&output| after[0][output]);
        let mut need = |value: usize, channel: usize| before[value][channel] |= !absorbed[value][channel];
        match step {
            Fused::Conv(conv) => {
                for output in outputs {
                    // A row that is constant needs nothing but its bias.
                    if row_constant(conv, output, &constant[conv.input]).is_none() {
                        conv.taps(output).for_each(|(channel, ..)| need(conv.input, channel));
                    }
                    if let Some(residual) = conv.residual {
                        need(residual, output);
                    }
                }
            }
            Fused::MaxPool { input, .. } => outputs.for_each(|channel| need(*input, channel)),
            Fused::Head { input, weight, .. } => {
                let inputs = net.channels[*input];
                for (at, _) in weight.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                    need(*input, at % inputs);
                }
            }
        }
    }
    needed
}
