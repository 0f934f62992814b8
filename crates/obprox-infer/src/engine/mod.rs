//! Predictions: a network executed on images of one size, zeros skipped where that is faster.
//!
//! Images are executed one by one or, in a batch, eight side by side: each pixel then is eight images, and the smallest
//! plane still fills vectors. Dense kernels gain nothing by that, and eight images fit the caches worse than one: a network
//! that is mostly dense goes one by one in any case, and so do images whose planes fill vectors by themselves. Threads share the images of a batch, or the channels
//! of a single one.

mod choice;
mod convolve;
mod dense;
mod kernel;
mod linear;
mod narrow;
mod plane;
mod program;
mod run;
mod sparse;
mod steps;
mod weights;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use obprox::{Error, Result};
use obprox_kernels::dispatch;
use pulp::{Simd, WithSimd};
use rayon::prelude::*;

pub use choice::{Choice, Kernels};
use program::{Program, Step, compile};

use crate::fused::{ConvShape, FusedNet};
use crate::model::Model;

/// Images that are executed side by side in a batch.
const LANES: usize = 8;

/// Images from which on a group is executed side by side, with lanes left empty, rather than one by one.
const FEWEST_SIDE_BY_SIDE: usize = 6;

/// What became of one convolution or linear layer.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its name among the parameters.
    pub name: String,
    /// Its shape.
    pub conv: ConvShape,
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
    /// Compiles a network for images of `[height, width]`; of a network that takes vectors they are `[1, 1]`.
    pub fn new(model: &Model, kernels: Kernels, size: [usize; 2]) -> Result<Self> {
        let channels = model.channels();
        let shape = match model.network().input_shape() {
            [_] if size == [1, 1] => vec![channels],
            [_] => return Err(Error::Data(format!("takes vectors of {channels} numbers, not images"))),
            _ => vec![channels, size[0], size[1]],
        };
        let [height, width] = size;
        let misfit = |error| Error::Data(format!("images of {height}×{width} pixels do not fit this network: {error}"));
        model.network().shapes(model.weights(), &shape).map_err(misfit)?;
        let net = FusedNet::new(model.network(), model.weights(), &shape)?;
        let program = compile(&net, kernels, dispatch(VectorWidth))?;
        Ok(Self { program, channels, size, workspaces: Mutex::default() })
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
        let mut scores = vec![0.0; count * self.program.outputs];
        let mut chunks = Vec::new();
        let (mut rest_images, mut rest_scores) = (images, scores.as_mut_slice());
        while !rest_images.is_empty() {
            let left = rest_images.len() / image_len;
            let side_by_side = self.program.side_by_side && left >= FEWEST_SIDE_BY_SIDE;
            let (take, lanes) = if side_by_side { (left.min(LANES), LANES) } else { (1, 1) };
            let images = rest_images.split_off(..take * image_len).unwrap_or(&[]);
            let scores = rest_scores.split_off_mut(..take * self.program.outputs).unwrap_or(&mut []);
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
            if threads > 1 { with_others_awake(threads, run) } else { run() }
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
        let mut scores = vec![0.0; lanes * self.program.outputs];
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

    /// What became of each convolution and linear layer.
    pub fn layers(&self) -> &[Layer] {
        &self.program.layers
    }

    /// Numbers that come out of an image: as many as there are classes, where it is those.
    pub fn outputs(&self) -> usize {
        self.program.outputs
    }

    /// The shape of what comes out of an image.
    pub fn output_shape(&self) -> &[usize] {
        &self.program.output_shape
    }

    /// Channels, height and width of an image.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels, self.size[0], self.size[1]]
    }

    fn run_chunk(&self, images: &[f32], scores: &mut [f32], lanes: usize, threads: usize) {
        self.run_steps(images, scores, lanes, threads, |_| {});
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

/// The most threads that are kept from sleeping.
const AWAKE: usize = 8;

/// Runs work of many short steps that threads share. A thread that found nothing to do would sleep, and to wake it for a step
/// takes longer than most of them: until the work is done the others look for their share without a pause.
fn with_others_awake(threads: usize, work: impl FnOnce() + Send) {
    struct Done<'a>(&'a AtomicBool);

    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    let is_done = AtomicBool::new(false);
    // Within the pool: whoever called from outside would sleep through each step.
    rayon::scope(|scope| {
        for _ in 1..threads.min(AWAKE) {
            scope.spawn(|_| {
                while !is_done.load(Ordering::Relaxed) {
                    if rayon::yield_now() != Some(rayon::Yield::Executed) {
                        std::hint::spin_loop();
                    }
                }
            });
        }
        // Also where the work panics.
        let _done = Done(&is_done);
        work();
    });
}

/// Floats in a vector of this machine.
struct VectorWidth;

impl WithSimd for VectorWidth {
    type Output = usize;

    fn with_simd<S: Simd>(self, _: S) -> usize {
        S::F32_LANES
    }
}
