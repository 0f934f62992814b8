//! A convolution, its normalisation, what is added and the rectifier as one operation.
//!
//! Statistics are taken while the convolution writes, and the gradient between the two parts never becomes a tensor.

use burn::backend::TensorData;
use obprox_kernels as kernels;
use obprox_kernels::{Affine, Gate, Moments, Planes};

use super::extension::Told;
use super::layer::Layer;
use super::memory::{Cpu, into_values, leave, leave_tensor, take, tensor, values};

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
            let mut y = take(planes.floats());
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
        let mut out = take(planes.floats());
        let more = with.then(|| values(&residual));
        kernels::normalise(&planes, values(&y), &affine, more, rectify, &mut out);
        let out = framed(out, &planes);
        let z = (with && rectify).then(|| out.clone());
        leave_tensor(residual);
        (Self { layer, convolved, y, affine, rectify, residual: with, z }, out)
    }

    /// The gradients of x, weight, γ, β and residual that are wanted.
    pub fn backward(self, dy: Cpu, wanted: [bool; 5]) -> [Option<Cpu>; 5] {
        let planes = planes(&self.layer, self.convolved.is_some());
        let mut dy = into_values(dy);
        // A residual's gradient is what came through the rectifier, so it needs a place of its own.
        let mut dx = self.residual.then(|| take(planes.floats()));
        let gate = match (&self.z, self.rectify) {
            (Some(z), _) => Gate::Output(values(z)),
            (None, true) => Gate::Normalised,
            (None, false) => Gate::Open,
        };
        let affine = &self.affine;
        let [gamma, beta] =
            kernels::normalise_gradient(&planes, values(&self.y), affine, gate, &mut dy, dx.as_deref_mut());
        let (dx, residual) = match dx {
            Some(dx) => (dx, Some(framed(dy, &planes))),
            None => (dy, None),
        };
        leave_tensor(self.y);
        self.z.map(leave_tensor);
        let channels = [planes.channels];
        let (gamma, beta) = (Some(tensor(gamma, &channels)), Some(tensor(beta, &channels)));
        let Some((x, weight)) = self.convolved else {
            return [Some(framed(dx, &planes)), None, gamma, beta, residual];
        };
        let dw = wanted[1].then(|| self.layer.weight_gradient(&x, &weight, &dx));
        leave_tensor(x);
        let through = wanted[0].then(|| self.layer.input_gradient(&weight, &dx));
        leave(dx);
        [through, dw, gamma, beta, residual]
    }

    /// Leaves its memory to others, where no gradient will be asked for.
    pub fn leave(self) {
        leave_tensor(self.y);
        self.convolved.map(|(x, _)| leave_tensor(x));
    }
}

/// The shape of what is normalised.
fn planes(layer: &Layer, convolved: bool) -> Planes {
    if convolved { layer.conv.output() } else { layer.conv.input }
}

fn framed(values: Vec<f32>, planes: &Planes) -> Cpu {
    tensor(values, &[planes.groups(), planes.group_floats()])
}

/// A tensor without values, which stands for none.
pub fn nothing() -> TensorData {
    TensorData::new(Vec::<f32>::new(), [0])
}
