//! A fused network → the steps of its execution for images of one size: planes, buffers, kernels.

use std::sync::Arc;

use obprox::{Error, Result};

use super::choice::{Choice, Kernels, choose};
use super::convolve::Kernel;
use super::dense::{self, DenseWeights};
use super::kernel::{Finish, NO_CHANNEL};
use super::narrow::{self, NarrowWeights};
use super::plane::{Phases, Plane, tiles};
use super::sparse::{self, SparseWeights, Tap};
use super::{LANES, Layer};
use crate::fused::{Fused, FusedConv, FusedNet};
use crate::liveness::Liveness;

/// Index of a buffer of the workspace.
pub type Slot = usize;

/// A step of the execution.
#[derive(Clone, Debug)]
pub enum Step {
    /// The channels of the images that are read, into planes.
    Load { channels: Vec<usize>, plane: Plane, to: Slot },
    /// Planes taken apart for convolutions of stride 2.
    Split { from: Slot, to: Slot, channels: usize, phases: Phases },
    /// A convolution; the kernels for one image and for images side by side.
    Conv { from: Slot, residual: Option<Slot>, to: Slot, plane: Plane, finish: Finish, single: Kernel, lanes: Kernel },
    /// The largest of each square.
    MaxPool { from: Slot, to: Slot, channels: usize, size: usize, from_plane: Plane, plane: Plane },
    /// Means of the planes, then classes × channels weights and a bias.
    Head { from: Slot, plane: Plane, channels: usize, weight: Vec<f32>, bias: Vec<f32> },
}

/// All that a run needs to know.
#[derive(Clone, Debug)]
pub struct Program {
    pub steps: Vec<Step>,
    /// Pixels of each buffer.
    pub slots: Vec<usize>,
    pub layers: Vec<Layer>,
    pub classes: usize,
    /// Whether the images of a batch are executed side by side.
    pub side_by_side: bool,
}

/// Floats that a tile may read beyond the last plane of a buffer.
pub const OVERREAD: usize = 128;

/// Compiles a network for images of `[height, width]`; `unit` floats are a vector of this machine.
pub fn compile(net: &FusedNet, kernels: Kernels, [height, width]: [usize; 2], unit: usize) -> Result<Program> {
    let liveness = (kernels != Kernels::Dense).then(|| Liveness::new(net));
    let kept = net.channels.iter().enumerate().map(|(value, &channels)| match &liveness {
        Some(liveness) => liveness.kept(value),
        None => (0..channels).collect(),
    });
    let kept = kept.collect();
    let mut compiler = Compiler { net, kernels, unit, liveness, kept, planes: vec![Plane::new(height, width)] };
    for step in &net.steps {
        let from = compiler.planes[step.input()];
        let sides = match step {
            Fused::Conv(conv) => conv.conv.output_side(from.height).zip(conv.conv.output_side(from.width)),
            Fused::MaxPool { size, .. } => Some((from.height / size, from.width / size)),
            Fused::Head { .. } => Some((1, 1)),
        };
        let (height, width) = sides
            .filter(|&(height, width)| height > 0 && width > 0)
            .ok_or_else(|| Error::Data(format!("images of {height}×{width} pixels are too small for this network")))?;
        compiler.planes.push(Plane::new(height, width));
    }
    compiler.program()
}

struct Compiler<'a> {
    net: &'a FusedNet,
    kernels: Kernels,
    unit: usize,
    /// `None` where nothing may be left out.
    liveness: Option<Liveness>,
    /// The channels of each value that are computed.
    kept: Vec<Vec<usize>>,
    /// Of each value.
    planes: Vec<Plane>,
}

/// A place in memory before it has a slot: a value, or the phases of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Value(usize),
    Phases(usize),
}

impl Compiler<'_> {
    fn program(&self) -> Result<Program> {
        let places = self.places();
        let (slot_of, slots) = self.allocate(&places);
        let slot = |place: Place| slot_of[places.iter().position(|&(made, _)| made == place).unwrap_or(0)];
        let mut steps = Vec::new();
        let mut layers = Vec::new();
        let mut classes = 0;
        let side_by_side = self.side_by_side();
        for &(place, _) in &places {
            let to = slot(place);
            match place {
                Place::Value(0) => {
                    steps.push(Step::Load { channels: self.kept[0].clone(), plane: self.planes[0], to });
                }
                Place::Phases(value) => {
                    let (from, channels) = (slot(Place::Value(value)), self.kept[value].len());
                    steps.push(Step::Split { from, to, channels, phases: self.phases(value) });
                }
                Place::Value(made) => match &self.net.steps[made - 1] {
                    Fused::Conv(conv) => {
                        let from = slot(self.source(conv));
                        let residual = conv.residual.map(|residual| slot(Place::Value(residual)));
                        let [single, lanes] = self.kernels(conv, made)?;
                        let batch = if side_by_side { &lanes } else { &single };
                        layers.push(self.layer(conv, made, [&single, batch].map(Kernel::choice)));
                        let (plane, finish) = (self.planes[made], self.finish(conv, made));
                        steps.push(Step::Conv { from, residual, to, plane, finish, single, lanes });
                    }
                    Fused::MaxPool { input, size } => steps.push(Step::MaxPool {
                        from: slot(Place::Value(*input)),
                        to,
                        channels: self.kept[*input].len(),
                        size: *size,
                        from_plane: self.planes[*input],
                        plane: self.planes[made],
                    }),
                    Fused::Head { input, weight, bias, .. } => {
                        classes = bias.len();
                        steps.push(self.head(slot(Place::Value(*input)), *input, weight, bias));
                    }
                },
            }
        }
        Ok(Program { steps, slots, layers, classes, side_by_side })
    }

    /// Everything that is computed, in order, and the last of them that reads it.
    fn places(&self) -> Vec<(Place, usize)> {
        let mut places = vec![(Place::Value(0), 0)];
        for (step, made) in self.net.steps.iter().zip(1..) {
            if let Fused::Conv(conv) = step
                && let Place::Phases(value) = self.source(conv)
                && !places.iter().any(|&(place, _)| place == Place::Phases(value))
            {
                places.push((Place::Phases(value), 0));
                touch(&mut places, Place::Value(value));
            }
            places.push((Place::Value(made), 0));
            match step {
                Fused::Conv(conv) => touch(&mut places, self.source(conv)),
                other => touch(&mut places, Place::Value(other.input())),
            }
            if let Fused::Conv(FusedConv { residual: Some(residual), .. }) = step {
                touch(&mut places, Place::Value(*residual));
            }
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
            Place::Phases(value) => self.kept[value].len() * Phases::COUNT * self.phases(value).len,
        }
    }

    /// Where each channel of a value is among those that are computed.
    fn positions(&self, value: usize) -> Vec<Option<usize>> {
        let mut positions = vec![None; self.net.channels[value]];
        for (position, &channel) in self.kept[value].iter().enumerate() {
            positions[channel] = Some(position);
        }
        positions
    }

    fn source(&self, conv: &FusedConv) -> Place {
        if conv.conv.stride == 1 { Place::Value(conv.input) } else { Place::Phases(conv.input) }
    }

    /// All convolutions of stride 2 that read a value make planes of one size.
    fn phases(&self, value: usize) -> Phases {
        let Plane { height, width, .. } = self.planes[value];
        Phases::new(self.planes[value], Plane::new(height.div_ceil(2), width.div_ceil(2)))
    }

    fn finish(&self, conv: &FusedConv, made: usize) -> Finish {
        let positions = conv.residual.map(|residual| self.positions(residual));
        let mut finish = Finish { bias: Vec::new(), residual: Vec::new(), relu: conv.relu };
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

    /// From a pixel of the output to the pixel that a weight reads, both counted from their first pixel in the frame.
    fn offset(&self, conv: &FusedConv, position: usize, row: usize, column: usize) -> Result<u32> {
        let (stride, padding) = (conv.conv.stride, conv.conv.padding);
        if !(1..=2).contains(&stride) || padding > 1 {
            return Err(Error::Data("convolutions are of stride 1 or 2, and padded by one pixel at most".into()));
        }
        let (down, right) = (row + 1 - padding, column + 1 - padding);
        let offset = match stride {
            1 => {
                let plane = self.planes[conv.input];
                position * plane.len + down * plane.row + right
            }
            _ => {
                let phases = self.phases(conv.input);
                let phase = down % 2 * 2 + right % 2;
                (position * Phases::COUNT + phase) * phases.len + down / 2 * phases.row + right / 2
            }
        };
        u32::try_from(offset).map_err(|_| Error::Data("the images are too large for this network".into()))
    }

    /// The kernels of a convolution for a single image and for images side by side.
    fn kernels(&self, conv: &FusedConv, made: usize) -> Result<[Kernel; 2]> {
        let density = self.density(conv, made);
        let choices = [1, LANES].map(|lanes| choose(self.kernels, &conv.conv, density, lanes));
        let plane = &self.planes[made];
        let narrow = plane.width < self.unit;
        let columns = if choices.contains(&Choice::Dense) { self.columns(conv)? } else { Vec::new() };
        let sparse = choices.contains(&Choice::Sparse).then(|| self.sparse_weights(conv, made)).transpose()?;
        let dense = (choices[1] == Choice::Dense || choices[0] == Choice::Dense && !narrow)
            .then(|| self.dense_weights(conv, made, &columns));
        let (sparse, dense) = (sparse.map(Arc::new), dense.map(Arc::new));
        let kernel = |choice: Choice, lanes: usize| match (choice, &sparse, &dense) {
            (Choice::Dense, ..) if lanes == 1 && narrow => {
                Kernel::Narrow { weights: self.narrow_weights(conv, made, &columns) }
            }
            (Choice::Dense, _, Some(weights)) => {
                Kernel::Dense { weights: weights.clone(), tiles: tiles(plane, lanes, self.unit, dense::TILE) }
            }
            (_, Some(weights), _) => {
                Kernel::Sparse { weights: weights.clone(), tiles: tiles(plane, lanes, self.unit, sparse::TILE) }
            }
            (_, None, _) => unreachable!("the weights of every choice were made"),
        };
        Ok([kernel(choices[0], 1), kernel(choices[1], LANES)])
    }

    /// Whether kernels that skip zeros do most of the multiply-adds: they are faster side by side, dense ones are not.
    fn side_by_side(&self) -> bool {
        let (mut sparse, mut dense) = (0, 0);
        for (step, made) in self.net.steps.iter().zip(1..) {
            let Fused::Conv(conv) = step else { continue };
            let pixels = self.planes[made].height * self.planes[made].width;
            match choose(self.kernels, &conv.conv, self.density(conv, made), LANES) {
                Choice::Sparse => sparse += self.nonzeros(conv, made) * pixels,
                Choice::Dense => dense += self.weights(conv, made) * pixels,
            }
        }
        sparse > dense
    }

    /// Weights between channels that are there, zero or not.
    fn weights(&self, conv: &FusedConv, made: usize) -> usize {
        self.kept[made].len() * self.kept[conv.input].len() * conv.conv.kernel.pow(2) / conv.conv.groups
    }

    /// Nonzero weights of the outputs that are there.
    fn nonzeros(&self, conv: &FusedConv, made: usize) -> usize {
        self.kept[made].iter().map(|&output| conv.row_nnz(output)).sum()
    }

    fn density(&self, conv: &FusedConv, made: usize) -> f64 {
        self.nonzeros(conv, made) as f64 / self.weights(conv, made).max(1) as f64
    }

    /// Whether an output needs no weights.
    fn is_constant(&self, conv: &FusedConv, output: usize) -> bool {
        self.liveness.as_ref().is_some_and(|liveness| liveness.constant_row(conv, output).is_some())
    }

    fn sparse_weights(&self, conv: &FusedConv, made: usize) -> Result<SparseWeights> {
        let positions = self.positions(conv.input);
        let mut weights = SparseWeights { taps: Vec::new(), bounds: vec![0] };
        for &output in &self.kept[made] {
            let zeros = (self.kernels == Kernels::Dense).then(|| conv.all_taps(output));
            let nonzeros = (zeros.is_none() && !self.is_constant(conv, output)).then(|| conv.taps(output));
            for (channel, row, column, weight) in zeros.into_iter().flatten().chain(nonzeros.into_iter().flatten()) {
                // A channel that has no position is left out, or read by no row that matters.
                if let Some(position) = positions[channel] {
                    weights.taps.push(Tap { offset: self.offset(conv, position, row, column)?, weight });
                }
            }
            weights.bounds.push(weights.taps.len());
        }
        Ok(weights)
    }

    /// What a dense kernel multiplies in each row: where the weights are in the row, and where their pixels are.
    fn columns(&self, conv: &FusedConv) -> Result<Vec<(usize, u32)>> {
        let positions = self.positions(conv.input);
        let mut columns = Vec::new();
        for (at, (channel, row, column, _)) in conv.all_taps(0).enumerate() {
            if let Some(position) = positions[channel] {
                columns.push((at, self.offset(conv, position, row, column)?));
            }
        }
        Ok(columns)
    }

    /// The rows of the outputs that are computed; `None` where an output needs no weights.
    fn rows<'a>(&self, conv: &'a FusedConv, made: usize) -> Vec<Option<&'a [f32]>> {
        let row = |&output: &usize| (!self.is_constant(conv, output)).then(|| conv.row(output));
        self.kept[made].iter().map(row).collect()
    }

    fn dense_weights(&self, conv: &FusedConv, made: usize, columns: &[(usize, u32)]) -> DenseWeights {
        let rows = self.rows(conv, made);
        let mut weights = Vec::with_capacity(rows.len().div_ceil(dense::GROUP) * columns.len());
        for group in rows.chunks(dense::GROUP) {
            let weight = |output: usize, at: usize| group.get(output).copied().flatten().map_or(0.0, |row| row[at]);
            weights.extend(columns.iter().map(|&(at, _)| std::array::from_fn(|output| weight(output, at))));
        }
        DenseWeights { weights, offsets: columns.iter().map(|&(_, offset)| offset).collect() }
    }

    fn narrow_weights(&self, conv: &FusedConv, made: usize, columns: &[(usize, u32)]) -> NarrowWeights {
        let rows = self.rows(conv, made);
        let block = narrow::block(self.unit);
        let mut weights = Vec::with_capacity(rows.len().next_multiple_of(block) * columns.len());
        for group in rows.chunks(block) {
            for &(at, _) in columns {
                weights.extend(group.iter().map(|row| row.map_or(0.0, |row| row[at])));
                weights.resize(weights.len().next_multiple_of(block), 0.0);
            }
        }
        NarrowWeights { weights, block, offsets: columns.iter().map(|&(_, offset)| offset).collect() }
    }

    fn layer(&self, conv: &FusedConv, made: usize, [single, batch]: [Choice; 2]) -> Layer {
        Layer {
            name: conv.conv_name.clone(),
            conv: conv.conv,
            weights: conv.weight.len(),
            nonzeros: conv.nnz(),
            outputs_kept: self.kept[made].len(),
            side: [self.planes[made].height, self.planes[made].width],
            single,
            batch,
        }
    }

    fn head(&self, from: Slot, input: usize, weight: &[f32], bias: &[f32]) -> Step {
        let kept = &self.kept[input];
        let rows = || weight.chunks_exact(self.net.channels[input]);
        let mut bias = bias.to_vec();
        if let Some(liveness) = &self.liveness {
            for (bias, row) in bias.iter_mut().zip(rows()) {
                let left_out = |(channel, weight): (usize, &f32)| {
                    liveness.left_out(input, channel).map(|constant| f64::from(*weight) * constant)
                };
                *bias = (f64::from(*bias) + row.iter().enumerate().filter_map(left_out).sum::<f64>()) as f32;
            }
        }
        let weight = rows().flat_map(|row| kept.iter().map(|&channel| row[channel])).collect();
        Step::Head { from, plane: self.planes[input], channels: kept.len(), weight, bias }
    }
}

/// The newest place reads another one.
fn touch(places: &mut [(Place, usize)], read: Place) {
    let newest = places.len() - 1;
    if let Some((_, last_reader)) = places.iter_mut().find(|(place, _)| *place == read) {
        *last_reader = newest;
    }
}
