//! Channels that come and go together, found from the layers: what adds two values ties their channels, what sees one
//! channel alone ties it to what it makes of it. A group whose parameters are all zero leaves nothing behind, and
//! [`Model::cut`] takes it out.

use std::collections::BTreeMap;

use obprox::Result;

use crate::activation::apply;
use crate::fused::{Fused, FusedConv, FusedNet, ValueId};
use crate::liveness::{mixes, sources};
use crate::model::Model;
use crate::network::{Activation, Network, NodeId};

/// Rows of tensors: a tensor's name, and an index of its first dimension.
pub type Group = Vec<(String, usize)>;

impl Model {
    /// The groups of channels that can be taken out: for each the rows of the parameters that make it. Channels of the
    /// input and the output are in none, nor are those that something looks at which cannot do with fewer.
    pub fn channel_groups(&self) -> Result<Vec<Group>> {
        let network = self.network();
        let net = FusedNet::new(network, self.weights(), network.input_shape())?;
        let mut ties = Ties::new(&net);
        ties.fix_all(0);
        ties.fix_all(net.output);
        for (step, made) in net.steps.iter().zip(1..) {
            ties.step(&net, step, made);
        }
        let mut groups: BTreeMap<usize, Group> = BTreeMap::new();
        for (step, made) in net.steps.iter().zip(1..) {
            let Fused::Conv(conv) = step else { continue };
            for channel in 0..conv.shape.outputs {
                let root = ties.root(ties.number(made, channel));
                if !ties.fixed[root] {
                    groups.entry(root).or_default().extend(rows(network, conv, channel));
                }
            }
        }
        Ok(groups.into_values().collect())
    }
}

/// The rows of parameters that make a channel; moments of a batch norm are no parameters.
fn rows(network: &Network, conv: &FusedConv, channel: usize) -> Group {
    let nodes = [conv.origin.conv, conv.origin.norm].into_iter().flatten();
    let tensors = nodes.flat_map(|node: NodeId| network.nodes()[node].op.tensors());
    let trained = tensors.filter(|(role, _)| !role.is_moment());
    trained.map(|(_, name)| (name.to_owned(), channel)).collect()
}

/// Channels of values, and which of them are one.
struct Ties {
    parents: Vec<usize>,
    /// Whether a root stays, whatever its parameters.
    fixed: Vec<bool>,
    /// The number of the first channel of each value.
    first: Vec<usize>,
}

impl Ties {
    fn new(net: &FusedNet) -> Self {
        let mut count = 0;
        let mut first = Vec::with_capacity(net.sizes.len());
        for [channels, ..] in &net.sizes {
            first.push(count);
            count += channels;
        }
        Self { parents: (0..count).collect(), fixed: vec![false; count], first }
    }

    fn number(&self, value: ValueId, channel: usize) -> usize {
        self.first[value] + channel
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }

    fn tie(&mut self, one: (ValueId, usize), two: (ValueId, usize)) {
        let (one, two) = (self.number(one.0, one.1), self.number(two.0, two.1));
        let (one, two) = (self.root(one), self.root(two));
        let (low, high) = (one.min(two), one.max(two));
        self.parents[high] = low;
        self.fixed[low] |= self.fixed[high];
    }

    fn fix_all(&mut self, value: ValueId) {
        let end = self.first.get(value + 1).copied().unwrap_or(self.parents.len());
        for at in self.first[value]..end {
            let root = self.root(at);
            self.fixed[root] = true;
        }
    }

    fn step(&mut self, net: &FusedNet, step: &Fused, made: ValueId) {
        match step {
            Fused::Conv(conv) => self.conv(conv, made),
            step if mixes(step) => {
                self.fix_all(made);
                step.inputs().into_iter().for_each(|input| self.fix_all(input));
            }
            step => (0..net.channels(made)).for_each(|channel| {
                sources(net, step, channel, |value, source| self.tie((made, channel), (value, source)));
            }),
        }
        let activation = match step {
            Fused::Conv(conv) => conv.activation,
            Fused::Apply { activation, .. } => *activation,
            _ => Activation::Identity,
        };
        // What is not zero where its input is leaves something behind, unless it is a factor of something that is zero.
        let is_factor = || {
            let mut readers = net.steps.iter().filter(|step| step.inputs().contains(&made));
            readers.all(|reader| matches!(reader, Fused::Multiply { .. }))
        };
        if apply(activation, 0.0) != 0.0 && !is_factor() {
            self.fix_all(made);
        }
    }

    fn conv(&mut self, conv: &FusedConv, made: ValueId) {
        if conv.origin.frozen || conv.shape.groups > 1 && !conv.shape.is_depthwise() {
            self.fix_all(conv.input);
            self.fix_all(made);
        }
        let multiple = conv.shape.outputs / conv.shape.groups;
        for channel in 0..conv.shape.outputs {
            if conv.shape.is_depthwise() {
                self.tie((made, channel), (conv.input, channel / multiple));
            }
            if let Some(residual) = conv.residual {
                self.tie((made, channel), (residual, channel));
            }
        }
    }
}
