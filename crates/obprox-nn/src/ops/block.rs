//! A convolution, its normalisation, what is added and the rectifier as one operation.
//!
//! Statistics are taken while the convolution writes, and the gradient between the two parts never becomes a tensor.

use burn::backend::TensorData;
use obprox_kernels as kernels;
use obprox_kernels::{Affine, Gate, Moments, Planes};

use super::extension::Told;
use super::layer::Layer;
use super::memory::{Cpu, Memory, tensor, values};

/// What is done after the convolution.
#[derive(Clone, Debug)]
pub struct Normalisation {
    /// ε.
    pub epsilon: f64,
    /// Whether max(·, 0) comes last.
    pub rectify: bool,
    pub statistics: Statistics,
}

/// Where means and variances come from.
#[derive(Clone, Debug)]
pub enum Statistics {
    /// From the batch; they are told.
    OfBatch(Told),
    /// From earlier batches.
    Given(Vec<(f64, f64)>),
}

/// What the gradient needs.
#[derive(Clone, Debug)]
pub struct Block {
    layer: Layer,
    /// Where there is no convolution, x is what is normalised.
    convolved: Option<(Cpu, Cpu)>,
    /// What is normalised.
    y: Cpu,
    affine: Affine,
    rectify: bool,
    residual: bool,
    /// The output, where its sign cannot be had from y.
    z: Option<Cpu>,
}

impl Block {
    /// x, weight, γ, β and residual to the output.
    pub fn forward(parts: [Cpu; 5], layer: Layer, normalisation: &Normalisation) -> (Self, Cpu) {
        let [x, weight, gamma, beta, residual] = parts.map(|part| part.to_contiguous());
        let there = |tensor: &Cpu| tensor.layout().num_elements() > 0;
        let layer = layer.counted(values(&weight));
        let (planes, with) = (planes(&layer, there(&weight)), there(&residual));
        let mut moments = None;
        let (convolved, y) = if there(&weight) {
            let of_batch = matches!(normalisation.statistics, Statistics::OfBatch(_));
            moments = of_batch.then(|| Moments::new(&planes));
            let mut y = Memory::take(planes.floats());
            layer.forward(values(&x), values(&weight), &mut y, moments.as_mut());
            (Some((x, weight)), framed(y, &planes))
        } else {
            (None, x)
        };
        let statistics = match &normalisation.statistics {
            Statistics::Given(statistics) => statistics.clone(),
            Statistics::OfBatch(told) => {
                let taken = || kernels::statistics(&planes, values(&y));
                let statistics = moments.map_or_else(taken, |moments| moments.finish(&planes));
                if let Ok(mut told) = told.lock() {
                    told.clone_from(&statistics);
                }
                statistics
            }
        };
        let affine = Affine::new(&statistics, values(&gamma), values(&beta), normalisation.epsilon);
        let rectify = normalisation.rectify;
        let mut out = Memory::take(planes.floats());
        let more = with.then(|| values(&residual));
        kernels::normalise(&planes, values(&y), &affine, more, rectify, &mut out);
        let out = framed(out, &planes);
        let z = (with && rectify).then(|| out.clone());
        (Self { layer, convolved, y, affine, rectify, residual: with, z }, out)
    }

    /// The gradients of x, weight, γ, β and residual that are wanted.
    pub fn backward(self, mut dy: Cpu, wanted: [bool; 5]) -> [Option<Cpu>; 5] {
        let planes = planes(&self.layer, self.convolved.is_some());
        // A residual's gradient is what came through the rectifier, so it needs a place of its own.
        let mut dx = self.residual.then(|| Memory::take(planes.floats()));
        let gate = match (&self.z, self.rectify) {
            (Some(z), _) => Gate::Output(values(z)),
            (None, true) => Gate::Normalised,
            (None, false) => Gate::Open,
        };
        let (y, through) = (values(&self.y), dy.storage_mut::<f32>());
        let [gamma, beta] = kernels::normalise_gradient(&planes, y, &self.affine, gate, through, dx.as_deref_mut());
        let (dx, residual) = match dx {
            Some(dx) => (framed(dx, &planes), Some(dy)),
            None => (dy, None),
        };
        // What is no longer needed is there for what comes.
        drop((self.y, self.z));
        let channels = [planes.channels];
        let (gamma, beta) = (Some(tensor(gamma, &channels)), Some(tensor(beta, &channels)));
        let Some((x, weight)) = self.convolved else {
            return [Some(dx), None, gamma, beta, residual];
        };
        let dw = wanted[1].then(|| self.layer.weight_gradient(&x, &weight, values(&dx)));
        drop(x);
        let through = wanted[0].then(|| self.layer.input_gradient(&weight, values(&dx)));
        [through, dw, gamma, beta, residual]
    }
}

/// The shape of what is normalised.
fn planes(layer: &Layer, convolved: bool) -> Planes {
    if convolved { layer.conv.output() } else { layer.conv.input }
}

fn framed(values: Memory, planes: &Planes) -> Cpu {
    values.tensor(&[planes.groups(), planes.group_floats()])
}

/// A tensor without values, which stands for none.
pub fn nothing() -> TensorData {
    TensorData::new(Vec::<f32>::new(), [0])
}
