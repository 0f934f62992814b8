//! Which channels of which values matter to the output.
//!
//! A channel that is the same number k everywhere can be left out if whoever reads it makes up for it by its bias. That
//! is exact for a weight that never meets the padding; a weight that does would have seen k inside the image and zero
//! around it, so that such a channel stays, unless k = 0.
//!
//! Where channels are cleared rather than cut out, one that is left out is computed all the same, as zero: so a step
//! without weights may leave out only what is zero when its inputs are.

use crate::activation::apply;
use crate::fused::{Fused, FusedConv, FusedNet, ValueId};
use crate::network::Window;

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
    pub fn kept(&self, value: ValueId) -> Vec<usize> {
        let needed = &self.needed[value];
        (0..needed.len()).filter(|&channel| needed[channel]).collect()
    }

    /// W∗x + b of a row, where it is the same everywhere; such a row needs no weights.
    pub fn constant_row(&self, conv: &FusedConv, output: usize) -> Option<f64> {
        row_constant(conv, output, &self.constant[conv.input])
    }

    /// The constant that a channel would have been, where it is left out.
    pub fn left_out(&self, value: ValueId, channel: usize) -> Option<f64> {
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

/// Tells of the channels that a channel of a step without weights is made of; nothing where all are mixed.
pub(crate) fn sources(net: &FusedNet, step: &Fused, channel: usize, mut tell: impl FnMut(ValueId, usize)) {
    match step {
        Fused::Apply { input, .. }
        | Fused::MaxPool { input, .. }
        | Fused::AveragePool { input, .. }
        | Fused::AdaptivePool { input }
        | Fused::Upsample { input, .. } => tell(*input, channel),
        Fused::Flatten { input } => {
            let [_, height, width] = net.sizes[*input];
            tell(*input, channel / (height * width));
        }
        Fused::Add { inputs } | Fused::Multiply { inputs } => inputs.iter().for_each(|&input| tell(input, channel)),
        Fused::Concat { inputs } => {
            let mut first = 0;
            for &input in inputs {
                let channels = net.channels(input);
                if (first..first + channels).contains(&channel) {
                    tell(input, channel - first);
                }
                first += channels;
            }
        }
        Fused::Conv(_) | Fused::Reshape { .. } | Fused::Softmax { .. } => {}
    }
}

/// Whether every channel of a step is made of all channels of its input, in ways that are not looked into.
pub(crate) fn mixes(step: &Fused) -> bool {
    matches!(step, Fused::Reshape { .. } | Fused::Softmax { .. })
}

/// A tap that reads a pixel of the image wherever it is applied.
fn stays_inside(window: &Window, (row, column): (usize, usize)) -> bool {
    let inside = |axis: usize, at: usize| {
        let (before, after) = (window.padding[axis], window.padding[axis + 2]);
        let (first, last) = (at * window.dilation[axis], window.reach(axis) - 1 - at * window.dilation[axis]);
        first >= before && last >= after
    };
    inside(0, row) && inside(1, column)
}

fn constants(net: &FusedNet) -> Vec<Vec<Option<f64>>> {
    let mut constant: Vec<Vec<Option<f64>>> = vec![vec![None; net.channels(0)]];
    for (step, size) in net.steps.iter().zip(&net.sizes[1..]) {
        let of = |channel: usize| constant_of(net, step, channel, &constant);
        let made = (0..size[0]).map(of).collect();
        constant.push(made);
    }
    constant
}

fn constant_of(net: &FusedNet, step: &Fused, channel: usize, constant: &[Vec<Option<f64>>]) -> Option<f64> {
    let mut inputs: [Option<f64>; 2] = [None; 2];
    let mut count = 0;
    sources(net, step, channel, |value, channel| {
        inputs[count] = constant[value][channel];
        count += 1;
    });
    match step {
        Fused::Conv(conv) if conv.origin.frozen => None,
        Fused::Conv(conv) => {
            let own = row_constant(conv, channel, &constant[conv.input])?;
            let residual = conv.residual.map_or(Some(0.0), |residual| constant[residual][channel])?;
            (apply(conv.activation, 0.0) == 0.0).then(|| apply(conv.activation, own + residual))
        }
        Fused::Apply { activation, .. } if apply(*activation, 0.0) != 0.0 => None,
        Fused::Apply { activation, .. } => Some(apply(*activation, inputs[0]?)),
        // Windows that count zeros around the image, or hang over its end, see the edge of a constant.
        Fused::AveragePool { window, count_padding, .. } if *count_padding && window.padding != [0; 4] => {
            inputs[0].filter(|constant| *constant == 0.0)
        }
        Fused::Add { .. } => Some(inputs[0]? + inputs[1]?),
        Fused::Multiply { .. } if inputs.contains(&Some(0.0)) => Some(0.0),
        Fused::Multiply { .. } => Some(inputs[0]? * inputs[1]?),
        Fused::Reshape { .. } | Fused::Softmax { .. } => None,
        _ => inputs[0],
    }
}

/// W∗x + b of a row, where it is the same everywhere.
fn row_constant(conv: &FusedConv, output: usize, input: &[Option<f64>]) -> Option<f64> {
    conv.taps(output).try_fold(f64::from(conv.bias[output]), |sum, (channel, row, column, weight)| {
        let value = input[channel]?;
        let inside = value == 0.0 || stays_inside(&conv.shape.window, (row, column));
        inside.then_some(sum + f64::from(weight) * value)
    })
}

/// The largest set of constant channels that can all be left out at once: starts from all and drops what cannot.
fn absorbed(net: &FusedNet, constant: &[Vec<Option<f64>>]) -> Vec<Vec<bool>> {
    let mut absorbed: Vec<Vec<bool>> =
        constant.iter().map(|channels| channels.iter().map(Option::is_some).collect()).collect();
    absorbed[net.output].fill(false);
    for step in &net.steps {
        match step {
            Fused::Conv(conv) if conv.origin.frozen => {
                absorbed[conv.input].fill(false);
                conv.residual.into_iter().for_each(|residual| absorbed[residual].fill(false));
            }
            Fused::Conv(conv) => {
                for output in 0..conv.shape.outputs {
                    for (channel, row, column, _) in conv.taps(output) {
                        let zero = constant[conv.input][channel] == Some(0.0);
                        absorbed[conv.input][channel] &= zero || stays_inside(&conv.shape.window, (row, column));
                    }
                }
            }
            step if mixes(step) => step.inputs().iter().for_each(|&input| absorbed[input].fill(false)),
            _ => {}
        }
    }
    while (net.steps.iter().zip(1..)).fold(false, |changed, (step, made)| {
        (0..net.channels(made))
            .fold(changed, |changed, channel| agree(net, (step, made), channel, constant, &mut absorbed) || changed)
    }) {}
    absorbed
}

/// What is left out must be zero for those who only pass it on, and the other way round; whether anything changed.
fn agree(
    net: &FusedNet,
    (step, made): (&Fused, ValueId),
    channel: usize,
    constant: &[Vec<Option<f64>>],
    absorbed: &mut [Vec<bool>],
) -> bool {
    let after = absorbed[made][channel];
    if let Fused::Conv(conv) = step {
        let holds = conv.residual.is_none_or(|residual| absorbed[residual][channel]);
        absorbed[made][channel] &= holds;
        return after && !holds;
    }
    let (mut all, mut by_zero) = (true, false);
    sources(net, step, channel, |value, channel| {
        all &= absorbed[value][channel];
        by_zero |= absorbed[value][channel] && constant[value][channel] == Some(0.0);
    });
    let holds = all || matches!(step, Fused::Multiply { .. }) && by_zero;
    let mut changed = after && !holds;
    absorbed[made][channel] &= holds;
    if !absorbed[made][channel] {
        sources(net, step, channel, |value, channel| changed |= std::mem::take(&mut absorbed[value][channel]));
    }
    changed
}

fn needed(net: &FusedNet, constant: &[Vec<Option<f64>>], absorbed: &[Vec<bool>]) -> Vec<Vec<bool>> {
    let mut needed: Vec<Vec<bool>> = net.sizes.iter().map(|size| vec![false; size[0]]).collect();
    needed[net.output].fill(true);
    for (at, step) in net.steps.iter().enumerate().rev() {
        let made = at + 1;
        let (before, after) = needed.split_at_mut(made);
        let outputs = (0..net.channels(made)).filter(|&output| after[0][output]);
        let mut need = |value: ValueId, channel: usize| before[value][channel] |= !absorbed[value][channel];
        match step {
            Fused::Conv(conv) => {
                for output in outputs {
                    // A row that is constant needs nothing but its bias, if that can be set.
                    if conv.origin.frozen || row_constant(conv, output, &constant[conv.input]).is_none() {
                        conv.taps(output).for_each(|(channel, ..)| need(conv.input, channel));
                    }
                    if let Some(residual) = conv.residual {
                        need(residual, output);
                    }
                }
            }
            step if mixes(step) => step.inputs().iter().for_each(|&input| before[input].fill(true)),
            step => outputs.for_each(|output| sources(net, step, output, &mut need)),
        }
    }
    needed
}
