//! Predictions: a network executed on images of one size, zeros skipped where that is faster.
//!
//! Images are executed one by one or, in a batch, eight side by side: each pixel then is a vector of eight images, and
//! the smallest plane still fills vectors. Dense kernels gain nothing by that, and eight images fit the caches worse than
//! one: a network that is mostly dense goes one by one in any case. Threads share the images of a batch, or the channels
//! of a single one.

mod choice;
mod convolve;
mod dense;
mod kernel;
mod narrow;
mod plane;
mod program;
mod sparse;

use std::sync::Mutex;
use std::time::Instant;

use obprox::{Error, Result};
use obprox_kernels::dispatch_to_eight;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

pub use choice::{Choice, Kernels};
use convolve::{Buffers, convolve};
use plane::Plane;
use program::{OVERREAD, Program, Step, compile};

use crate::fused::FusedNet;
use crate::graph::Shape;
use crate::model::Model;

/// Images that are executed side by side in a batch.
const LANES: usize = 8;

/// Images from which on a group is executed side by side, with lanes left empty, rather than one by one.
const FEWEST_SIDE_BY_SIDE: usize = 6;

/// What became of one convolution.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its name among the parameters.
    pub name: String,
    /// Its shape.
    pub conv: Shape,
    /// Number of its weights.
    pub weights: usize,
    /// Those that are not zero.
    pub nonzeros: usize,
    /// Outputs that are computed at all.
    pub outputs_kept: usize,
    /// Height and width of its output.
    pub side: [usize; 2],
    /// The kernel for single images.
    pub single: Choice,
    /// The kernel for batches.
    pub batch: Choice,
}

/// A network compiled for images of one size.
///
/// ```
/// use obprox_infer::engine::{Engine, Kernels};
/// use obprox_infer::{Architecture, Kind, Model, Training};
/// # use obprox_infer::{Tensor, Weights};
/// # let architecture = Architecture::new(Kind::SmallCnn);
/// # let parameters = architecture.graph().parameters();
/// # let weights: Weights = parameters.into_iter().map(|one| (one.name, Tensor::zeros(one.shape))).collect();
/// # let model = Model::new(architecture, weights, Training::default()).unwrap();
/// let engine = Engine::new(&model, Kernels::Auto, [32, 32]).unwrap();
/// let images = vec![0.5; 2 * 3 * 32 * 32]; // two images of three channels, prepared as the network was trained
/// let scores = engine.run(&images).unwrap();
/// assert_eq!(scores.len(), 2 * 10);
/// ```
#[derive(Debug)]
pub struct Engine {
    program: Program,
    channels: usize,
    size: [usize; 2],
    workspaces: Mutex<Vec<Workspace>>,
}

/// Buffers that a run writes to and the next run reuses.
#[derive(Default, Debug)]
struct Workspace {
    slots: Vec<Vec<f32>>,
}

impl Engine {
    /// Compiles a network for images of `[height, width]`.
    pub fn new(model: &Model, kernels: Kernels, size: [usize; 2]) -> Result<Self> {
        let net = FusedNet::new(&model.architecture().graph(), model.weights())?;
        let program = compile(&net, kernels, size, dispatch_to_eight(VectorWidth))?;
        Ok(Self { program, channels: model.architecture().channels(), size, workspaces: Mutex::default() })
    }

    /// The scores of each class for each image, image by image. The images are given one after the other, channel by
    /// channel, row by row, normalised as the network was trained ([`Preprocessing`](crate::images::Preprocessing)).
    pub fn run(&self, images: &[f32]) -> Result<Vec<f32>> {
        let image_len = self.channels * self.size[0] * self.size[1];
        if !images.len().is_multiple_of(image_len) {
            let [height, width] = self.size;
            let message = format!("{} values are no images of {}×{height}×{width}", images.len(), self.channels);
            return Err(Error::Data(message));
        }
        let count = images.len() / image_len;
        let mut scores = vec![0.0; count * self.program.classes];
        let mut chunks = Vec::new();
        let (mut rest_images, mut rest_scores) = (images, scores.as_mut_slice());
        while !rest_images.is_empty() {
            let left = rest_images.len() / image_len;
            let side_by_side = self.program.side_by_side && left >= FEWEST_SIDE_BY_SIDE;
            let (take, lanes) = if side_by_side { (left.min(LANES), LANES) } else { (1, 1) };
            let images = rest_images.split_off(..take * image_len).unwrap_or(&[]);
            let scores = rest_scores.split_off_mut(..take * self.program.classes).unwrap_or(&mut []);
            chunks.push((images, scores, lanes));
        }
        let threads = rayon::current_num_threads();
        // Threads that would wait for the last chunks of an uneven batch share the channels of each instead.
        if threads > 1 && (chunks.len() % threads == 0 || chunks.len() >= 4 * threads) {
            chunks.into_par_iter().for_each(|(images, scores, lanes)| self.run_chunk(images, scores, lanes, 1));
        } else {
            let run = || {
                chunks.into_iter().for_each(|(images, scores, lanes)| self.run_chunk(images, scores, lanes, threads))
            };
            // Within the pool a layer wakes one thread less: whoever called from outside would sleep through each of them.
            if threads > 1 { rayon::scope(|_| run()) } else { run() }
        }
        Ok(scores)
    }

    /// Seconds that each convolution takes for an image, the least of `repeats` runs: for a single one, or in a batch as
    /// this engine executes batches; by all threads. Taking planes apart into every second pixel counts for the
    /// convolution that follows.
    pub fn profile(&self, batch: bool, repeats: usize) -> Vec<f64> {
        let lanes = if batch && self.program.side_by_side { LANES } else { 1 };
        let image_len = self.shape().iter().product::<usize>();
        let images = vec![0.5; lanes * image_len];
        let mut scores = vec![0.0; lanes * self.program.classes];
        let mut least = vec![f64::INFINITY; self.program.layers.len()];
        for _ in 0..repeats {
            let mut times = vec![0.0; least.len()];
            let (mut layer, mut last) = (0, Instant::now());
            self.run_steps(&images, &mut scores, lanes, rayon::current_num_threads(), |step| {
                let now = Instant::now();
                if let Step::Split { .. } | Step::Conv { .. } = step {
                    times[layer] += (now - last).as_secs_f64();
                }
                layer += usize::from(matches!(step, Step::Conv { .. }));
                last = now;
            });
            least.iter_mut().zip(times).for_each(|(least, time)| *least = least.min(time / lanes as f64));
        }
        least
    }

    /// What became of each convolution.
    pub fn layers(&self) -> &[Layer] {
        &self.program.layers
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.program.classes
    }

    /// Channels, height and width of an image.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.size[0], self.size[1]]
    }

    fn run_chunk(&self, images: &[f32], scores: &mut [f32], lanes: usize, threads: usize) {
        self.run_steps(images, scores, lanes, threads, |_| {});
    }

    /// Executes every step on images side by side, and tells when one is done.
    fn run_steps(&self, images: &[f32], scores: &mut [f32], lanes: usize, threads: usize, mut done: impl FnMut(&Step)) {
        let mut workspace = self.take_workspace();
        let slots = &mut workspace.slots;
        slots.resize_with(self.program.slots.len(), Vec::new);
        for (slot, pixels) in slots.iter_mut().zip(&self.program.slots) {
            let floats = pixels * lanes + OVERREAD;
            if slot.len() < floats {
                slot.resize(floats, 0.0);
            }
        }
        for step in &self.program.steps {
            match step {
                Step::Load { channels, plane, to } => {
                    let image_len = self.channels * plane.height * plane.width;
                    load(images, image_len, channels, plane, &mut slots[*to], lanes);
                }
                Step::Split { from, to, channels, phases } => {
                    let mut out = std::mem::take(&mut slots[*to]);
                    let planes = slots[*from].chunks_exact(phases.from.len * lanes).take(*channels);
                    let split = out.chunks_exact_mut(plane::Phases::COUNT * phases.len * lanes);
                    planes.zip(split).for_each(|(plane, split)| phases.split(plane, split, lanes));
                    slots[*to] = out;
                }
                Step::Conv { from, residual, to, plane, finish, single, lanes: side_by_side } => {
                    let mut out = std::mem::take(&mut slots[*to]);
                    let kernel = if lanes == 1 { single } else { side_by_side };
                    let residual = residual.map_or(&[] as &[f32], |residual| &slots[residual]);
                    let buffers = Buffers { input: &slots[*from], residual, out: &mut out };
                    convolve(kernel, finish, *plane, lanes, buffers, threads);
                    slots[*to] = out;
                }
                Step::MaxPool { from, to, channels, size, from_plane, plane } => {
                    let mut out = std::mem::take(&mut slots[*to]);
                    let planes = slots[*from].chunks_exact(from_plane.len * lanes).take(*channels);
                    for (input, out) in planes.zip(out.chunks_exact_mut(plane.len * lanes)) {
                        max_pool(input, from_plane, *size, out, plane, lanes);
                    }
                    slots[*to] = out;
                }
                Step::Head { from, plane, channels, weight, bias } => {
                    let planes = slots[*from].chunks_exact(plane.len * lanes).take(*channels);
                    head(planes, plane, weight, bias, scores, lanes);
                }
            }
            done(step);
        }
        self.give_back(workspace);
    }

    fn take_workspace(&self) -> Workspace {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        workspaces.pop().unwrap_or_default()
    }

    fn give_back(&self, workspace: Workspace) {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        workspaces.push(workspace);
    }
}

/// Images into planes, side by side; lanes without an image are zero.
fn load(images: &[f32], image_len: usize, channels: &[usize], plane: &Plane, out: &mut [f32], lanes: usize) {
    let pixels = plane.height * plane.width;
    for (&channel, out) in channels.iter().zip(out.chunks_exact_mut(plane.len * lanes)) {
        out.fill(0.0);
        for (lane, image) in images.chunks_exact(image_len).enumerate() {
            let rows = image[channel * pixels..][..pixels].chunks_exact(plane.width);
            for (y, row) in rows.enumerate() {
                let out = &mut out[(plane.origin() + y * plane.row) * lanes..];
                for (out, &pixel) in out.iter_mut().skip(lane).step_by(lanes).zip(row) {
                    *out = pixel;
                }
            }
        }
    }
}

fn max_pool(input: &[f32], from: &Plane, size: usize, out: &mut [f32], to: &Plane, lanes: usize) {
    for y in 0..to.height {
        let out = &mut out[(to.origin() + y * to.row) * lanes..][..to.width * lanes];
        out.fill(f32::NEG_INFINITY);
        for row in from.rows(input, lanes).skip(size * y).take(size) {
            for (out, pixels) in out.chunks_exact_mut(lanes).zip(row.chunks_exact(size * lanes)) {
                for pixel in pixels.chunks_exact(lanes) {
                    out.iter_mut().zip(pixel).for_each(|(out, &pixel)| *out = out.max(pixel));
                }
            }
        }
    }
    to.clear_frame(out, lanes);
}

fn head<'a>(
    planes: impl Iterator<Item = &'a [f32]>,
    plane: &Plane,
    weight: &[f32],
    bias: &[f32],
    scores: &mut [f32],
    lanes: usize,
) {
    let pixels = (plane.height * plane.width) as f32;
    let means: Vec<[f32; LANES]> = planes
        .map(|values| {
            let mut sums = [0.0; LANES];
            for pixel in plane.rows(values, lanes).flat_map(|row| row.chunks_exact(lanes)) {
                sums.iter_mut().zip(pixel).for_each(|(sum, pixel)| *sum += pixel);
            }
            sums.map(|sum| sum / pixels)
        })
        .collect();
    let classes = bias.len();
    for (class, bias) in bias.iter().enumerate() {
        let mut sums = [*bias; LANES];
        for (weight, means) in weight[class * means.len()..].iter().zip(&means) {
            sums.iter_mut().zip(means).for_each(|(sum, mean)| *sum += weight * mean);
        }
        for (scores, sum) in scores.chunks_exact_mut(classes).zip(sums) {
            scores[class] = sum;
        }
    }
}

/// Floats in a vector of this machine.
struct VectorWidth;

impl WithSimd for VectorWidth {
    type Output = usize;

    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}
