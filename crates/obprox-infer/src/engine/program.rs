//! A fused network → the steps of its execution for images of one size: planes, buffers, kernels.

use std::collections::HashMap;

use obprox::Result;

use super::choice::{Choice, Kernels};
use super::convolve::Kernel;
use super::kernel::{Finish, NO_CHANNEL};
use super::plane::{Phases, Plane, tiles};
use super::{LANES, Layer, sparse};
use crate::fused::{Fused, FusedConv, FusedNet, ValueId};
use crate::liveness::{Liveness, sources};
use crate::network::{Activation, Window};

/// Index of a buffer of the workspace.
pub type Slot = usize;

/// What a step without weights does to planes.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Apply(Activation),
    Pool { window: Window, mean: Option<bool> },
    AdaptivePool,
    Upsample([usize; 2]),
    Combine { multiply: bool },
    Copy,
}

/// A plane that is read: whose, and which of them.
pub type Pick = (usize, usize);

/// A step of the execution.
#[derive(Clone, Debug)]
pub enum Step {
    /// The channels of the images that are read, into planes.
    Load {
        channels: Vec<usize>,
        plane: Plane,
        to: Slot,
    },
    /// Planes laid out for convolutions that cannot read them as they are.
    Split {
        from: Slot,
        to: Slot,
        channels: usize,
        phases: Phases,
    },
    /// A convolution; the kernels for one image and for images side by side.
    Conv {
        from: Slot,
        residual: Option<Slot>,
        to: Slot,
        plane: Plane,
        finish: Finish,
        activation: Activation,
        single: Kernel,
        lanes: Kernel,
    },
    /// Each plane of one or two others.
    Each {
        operands: Vec<(Slot, Plane)>,
        to: Slot,
        plane: Plane,
        work: Work,
        picks: Vec<[Pick; 2]>,
    },
    /// Single pixels, one after the other: where each lies.
    Gather {
        from: Slot,
        to: Slot,
        offsets: Vec<usize>,
    },
    /// All pixels of all planes into planes of another size.
    Reshape {
        from: Slot,
        from_plane: Plane,
        to: Slot,
        plane: Plane,
        channels: [usize; 2],
    },
    Softmax {
        from: Slot,
        to: Slot,
        plane: Plane,
        channels: usize,
    },
    /// What comes out.
    Store {
        from: Slot,
        plane: Plane,
        channels: usize,
    },
}

/// All that a run needs to know.
#[derive(Clone, Debug)]
pub struct Program {
    pub steps: Vec<Step>,
    /// Pixels of each buffer.
    pub slots: Vec<usize>,
    pub layers: Vec<Layer>,
    /// Numbers that come out of an image, and their shape.
    pub outputs: usize,
    pub output_shape: Vec<usize>,
    /// Whether the images of a batch are executed side by side.
    pub side_by_side: bool,
}

/// Floats that a tile may read beyond the last plane of a buffer.
pub const OVERREAD: usize = 128;

/// What a weight costs in a tile beside its multiply-adds, counted in those of one vector.
const EACH_TILE: usize = 4;

/// Bytes of a value that stay near, and how much longer it takes to read more.
const NEAR: usize = 1 << 20;
const FAR: f64 = 1.25;

/// Compiles a network; `unit` floats are a vector of this machine.
pub fn compile(net: &FusedNet, kernels: Kernels, unit: usize) -> Result<Program> {
    let liveness = (kernels != Kernels::Dense).then(|| Liveness::new(net));
    let kept = net.sizes.iter().enumerate().map(|(value, size)| match &liveness {
        Some(liveness) => liveness.kept(value),
        None => (0..size[0]).collect(),
    });
    let kept = kept.collect();
    let frames = frames(net);
    let planes = net.sizes.iter().map(|&[_, height, width]| Plane::new(height, width, frames[&[height, width]]));
    Compiler { net, kernels, unit, liveness, kept, planes: planes.collect() }.program()
}

/// Zeros around planes of each size: planes of one size are alike, so that they can be added.
fn frames(net: &FusedNet) -> HashMap<[usize; 2], usize> {
    let mut frames: HashMap<[usize; 2], usize> = net.sizes.iter().map(|size| ([size[1], size[2]], 1)).collect();
    for (step, size) in net.steps.iter().zip(&net.sizes[1..]) {
        let Fused::Conv(conv) = step else { continue };
        let window = &conv.shape.window;
        let asked = match reads_planes(net, conv, size) {
            true => window.padding.into_iter().max().unwrap_or(0),
            // The columns that the kernel reads beyond those that it writes.
            false => ((window.reach(1) - 1) / window.stride[1]).div_ceil(2),
        };
        frames.entry([size[1], size[2]]).and_modify(|frame| *frame = asked.max(*frame));
    }
    frames
}

/// Whether a convolution reads the planes of its input as they lie.
fn reads_planes(net: &FusedNet, conv: &FusedConv, made: &[usize; 3]) -> bool {
    conv.shape.window.stride == [1, 1] && net.sizes[conv.input][1..] == made[1..]
}

pub(super) struct Compiler<'a> {
    pub net: &'a FusedNet,
    pub kernels: Kernels,
    pub unit: usize,
    /// `None` where nothing may be left out.
    pub liveness: Option<Liveness>,
    /// The channels of each value that are computed.
    pub kept: Vec<Vec<usize>>,
    /// Of each value.
    pub planes: Vec<Plane>,
}

/// A place in memory before it has a slot: a value, or the phases of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Value(ValueId),
    Phases(ValueId, Phases),
}

impl Compiler<'_> {
    fn program(&self) -> Result<Program> {
        let places = self.places();
        let (slot_of, slots) = self.allocate(&places);
        let slot = |place: Place| slot_of[places.iter().position(|&(made, _)| made == place).unwrap_or(0)];
        let mut steps = Vec::new();
        let mut layers = Vec::new();
        let side_by_side = self.side_by_side();
        for &(place, _) in &places {
            let to = slot(place);
            let made = match place {
                Place::Value(0) => {
                    steps.push(Step::Load { channels: self.kept[0].clone(), plane: self.planes[0], to });
                    continue;
                }
                Place::Phases(value, phases) => {
                    let (from, channels) = (slot(Place::Value(value)), self.kept[value].len());
                    steps.push(Step::Split { from, to, channels, phases });
                    continue;
                }
                Place::Value(made) => made,
            };
            let Fused::Conv(conv) = &self.net.steps[made - 1] else {
                steps.push(self.plain_step(made, to, &|value| slot(Place::Value(value))));
                continue;
            };
            let from = slot(self.source(conv, made));
            let residual = conv.residual.map(|residual| slot(Place::Value(residual)));
            let [single, lanes] = self.kernels(conv, made)?;
            let batch = if side_by_side { &lanes } else { &single };
            layers.push(self.layer(conv, made, [&single, batch].map(Kernel::choice)));
            let (plane, finish, activation) = (self.planes[made], self.finish(conv, made), conv.activation);
            steps.push(Step::Conv { from, residual, to, plane, finish, activation, single, lanes });
        }
        let (output, channels) = (self.net.output, self.kept[self.net.output].len());
        steps.push(Step::Store { from: slot(Place::Value(output)), plane: self.planes[output], channels });
        let output_shape = self.net.output_shape.clone();
        let outputs = output_shape.iter().product();
        Ok(Program { steps, slots, layers, outputs, output_shape, side_by_side })
    }

    /// A step without weights.
    fn plain_step(&self, made: ValueId, to: Slot, slot: &dyn Fn(ValueId) -> Slot) -> Step {
        let (step, plane, channels) = (&self.net.steps[made - 1], self.planes[made], self.kept[made].len());
        let inputs = step.inputs();
        let (from, from_plane) = (slot(inputs[0]), self.planes[inputs[0]]);
        let work = match step {
            Fused::Apply { activation, .. } => Work::Apply(*activation),
            Fused::MaxPool { window, .. } => Work::Pool { window: *window, mean: None },
            Fused::AveragePool { window, count_padding, .. } => {
                Work::Pool { window: *window, mean: Some(*count_padding) }
            }
            Fused::AdaptivePool { .. } => Work::AdaptivePool,
            Fused::Upsample { scale, .. } => Work::Upsample(*scale),
            Fused::Add { .. } => Work::Combine { multiply: false },
            Fused::Multiply { .. } => Work::Combine { multiply: true },
            Fused::Concat { .. } => Work::Copy,
            Fused::Flatten { .. } => return Step::Gather { from, to, offsets: self.flattened(inputs[0], made) },
            Fused::Softmax { .. } => return Step::Softmax { from, to, plane, channels },
            Fused::Reshape { .. } | Fused::Conv(_) => {
                let channels = [self.kept[inputs[0]].len(), channels];
                return Step::Reshape { from, from_plane, to, plane, channels };
            }
        };
        let operands = inputs.iter().map(|&input| (slot(input), self.planes[input])).collect();
        Step::Each { operands, to, plane, work, picks: self.picks(step, &inputs, made) }
    }

    /// The planes that each plane of a step is made of.
    fn picks(&self, step: &Fused, inputs: &[ValueId], made: ValueId) -> Vec<[Pick; 2]> {
        let positions: Vec<_> = inputs.iter().map(|&input| self.positions(input)).collect();
        let pick = |&channel: &usize| {
            let mut picks = [(0, 0); 2];
            let mut count = 0;
            sources(self.net, step, channel, |value, channel| {
                // Both may be the same value.
                let operand = inputs.iter().position(|&input| input == value).unwrap_or(0);
                let position = positions[operand][channel].unwrap_or(0);
                debug_assert!(positions[operand][channel].is_some(), "what is read is computed");
                picks[count] = (operand, position);
                count += 1;
            });
            picks
        };
        self.kept[made].iter().map(pick).collect()
    }

    /// Where the numbers of a vector lie in the planes that they come from.
    fn flattened(&self, input: ValueId, made: ValueId) -> Vec<usize> {
        let (plane, positions) = (self.planes[input], self.positions(input));
        let pixels = plane.height * plane.width;
        let offset = |&entry: &usize| {
            let (position, at) = (positions[entry / pixels].unwrap_or(0), entry % pixels);
            position * plane.len + plane.origin() + at / plane.width * plane.row + at % plane.width
        };
        self.kept[made].iter().map(offset).collect()
    }

    /// Everything that is computed, in order, with the last place whose step reads it.
    fn places(&self) -> Vec<(Place, usize)> {
        let mut places = vec![(Place::Value(0), 0)];
        for (step, made) in self.net.steps.iter().zip(1..) {
            let mut reads: Vec<Place> = step.inputs().into_iter().map(Place::Value).collect();
            if let Fused::Conv(conv) = step {
                let source = self.source(conv, made);
                if source != reads[0] && places.iter().all(|(place, _)| *place != source) {
                    places.push((source, 0));
                    touch(&mut places, reads[0]);
                }
                reads[0] = source;
            }
            places.push((Place::Value(made), 0));
            reads.into_iter().for_each(|read| touch(&mut places, read));
        }
        let end = places.len();
        if let Some((_, last_reader)) = places.iter_mut().find(|(place, _)| *place == Place::Value(self.net.output)) {
            *last_reader = end;
        }
        places
    }

    /// A slot for each place; a slot is free again after the last reader, so that few of them stay in the caches.
    fn allocate(&self, places: &[(Place, usize)]) -> (Vec<Slot>, Vec<usize>) {
        let mut slots: Vec<usize> = Vec::new();
        let mut busy_until: Vec<usize> = Vec::new();
        let mut slot_of = Vec::with_capacity(places.len());
        for (at, &(place, last_reader)) in places.iter().enumerate() {
            let slot = busy_until.iter().position(|&until| until < at).unwrap_or(slots.len());
            if slot == slots.len() {
                slots.push(0);
                busy_until.push(0);
            }
            busy_until[slot] = last_reader.max(at);
            slots[slot] = slots[slot].max(self.pixels(place));
            slot_of.push(slot);
        }
        (slot_of, slots)
    }

    /// Pixels of all planes of a place.
    fn pixels(&self, place: Place) -> usize {
        match place {
            Place::Value(value) => self.kept[value].len() * self.planes[value].len,
            Place::Phases(value, phases) => self.kept[value].len() * phases.count() * phases.len,
        }
    }

    /// Where each channel of a value is among those that are computed.
    pub fn positions(&self, value: ValueId) -> Vec<Option<usize>> {
        let mut positions = vec![None; self.net.channels(value)];
        for (position, &channel) in self.kept[value].iter().enumerate() {
            positions[channel] = Some(position);
        }
        positions
    }

    fn source(&self, conv: &FusedConv, made: ValueId) -> Place {
        match self.phases(conv, made) {
            Some(phases) => Place::Phases(conv.input, phases),
            None => Place::Value(conv.input),
        }
    }

    /// The layout that a convolution reads, where that is not its input as it lies.
    pub fn phases(&self, conv: &FusedConv, made: ValueId) -> Option<Phases> {
        let (from, to) = (self.planes[conv.input], self.planes[made]);
        let direct = to.is_number() || reads_planes(self.net, conv, &self.net.sizes[made]);
        (!direct).then(|| Phases::new(from, to, &conv.shape.window))
    }

    fn finish(&self, conv: &FusedConv, made: ValueId) -> Finish {
        let positions = conv.residual.map(|residual| self.positions(residual));
        let bounds = match conv.activation {
            Activation::Relu => Some([0.0, f32::INFINITY]),
            Activation::Relu6 => Some([0.0, 6.0]),
            _ => None,
        };
        let mut finish = Finish { bias: Vec::new(), residual: Vec::new(), bounds };
        for &output in &self.kept[made] {
            finish.bias.push(match &self.liveness {
                None => conv.bias[output],
                Some(liveness) => {
                    let own = liveness
                        .constant_row(conv, output)
                        .unwrap_or_else(|| f64::from(conv.bias[output]) + liveness.compensation(conv, output));
                    (own + liveness.residual(conv, output)) as f32
                }
            });
            let residual = positions.as_ref().and_then(|positions| positions[output]);
            finish.residual.push(residual.map_or(NO_CHANNEL, |position| position as u32));
        }
        finish
    }

    /// Whether the images of a batch are faster side by side: where kernels skip zeros, dense ones gain nothing, and where
    /// planes are too small for vectors or images so small that several of them stay near.
    fn side_by_side(&self) -> bool {
        let (mut sparse, mut dense, mut costs) = (0, 0, [0.0; 2]);
        for (step, made) in self.net.steps.iter().zip(1..) {
            let Fused::Conv(conv) = step else { continue };
            let (plane, nonzeros) = (&self.planes[made], self.nonzeros(conv, made));
            let pixels = plane.height * plane.width;
            match self.choice(conv, made, LANES) {
                Choice::Sparse => sparse += nonzeros * pixels,
                Choice::Dense => dense += self.weights(conv, made) * pixels,
            }
            let read = self.kept[conv.input].len() * self.planes[conv.input].len * LANES * size_of::<f32>();
            let distance = if read > NEAR { FAR } else { 1.0 };
            for (cost, lanes, distance) in [(0, 1, 1.0), (1, LANES, distance)] {
                let tiles = tiles(plane, lanes, self.unit, sparse::tile(self.unit));
                let passes: usize = tiles.iter().map(|tile| tile.rows * tile.vectors + EACH_TILE).sum();
                costs[cost] += (nonzeros * passes) as f64 * distance / lanes as f64;
            }
        }
        let [single, lanes] = costs;
        sparse > dense && lanes < single
    }

    fn layer(&self, conv: &FusedConv, made: ValueId, [single, batch]: [Choice; 2]) -> Layer {
        Layer {
            name: conv.name.clone(),
            conv: conv.shape,
            weights: conv.weight.len(),
            nonzeros: conv.nnz(),
            outputs_kept: self.kept[made].len(),
            side: [self.planes[made].height, self.planes[made].width],
            single,
            batch,
        }
    }
}

/// The newest place reads another one.
fn touch(places: &mut [(Place, usize)], read: Place) {
    let newest = places.len() - 1;
    if let Some((_, last_reader)) = places.iter_mut().find(|(place, _)| *place == read) {
        *last_reader = newest;
    }
}
