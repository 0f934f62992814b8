//! The operations that training spends its time in, for the CPU, as a Burn backend extension over `obprox-kernels`.
//!
//! [`Framed`] is a batch of images as the kernels have it; [`conv`], [`block`], [`max_pool`] and [`channel_means`] go
//! from one to the next, forward and backward, and take Burn's own layers. [`conv_images`] and [`norm_images`] are the
//! same for single layers between Burn's own: they put images into frames and take them out again, and where the
//! kernels do not know a layer or a device, they are the layer's own `forward`. All give the same numbers up to rounding.

mod block;
mod choice;
mod extension;
mod layer;
mod memory;

use std::sync::{Arc, Mutex};

use burn::backend::{Dispatch, DispatchDevice};
use burn::nn::conv::Conv2d;
use burn::nn::{BatchNorm, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor, TensorData};
use obprox_kernels::{Conv, Planes, Shape};

use block::{Normalisation, Statistics};
use extension::TrainingOps;
use layer::Layer;

/// Whether the weights of a layer that are zero may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zeros {
    /// They may: they have a gradient like any other weight.
    #[default]
    Free,
    /// They stay zero: nobody looks at their gradient, so it is not computed and given as zero.
    Held,
}

/// A batch of images on the CPU, side by side and in frames.
#[derive(Clone, Debug)]
pub struct Framed {
    tensor: Tensor<2>,
    planes: Planes,
}

impl Framed {
    /// Whether the kernels know such images.
    pub fn knows(images: &Tensor<4>) -> bool {
        on_cpu(&images.device()) && images.dtype() == DType::F32 && images.dims().iter().all(|side| *side > 0)
    }

    /// Puts images into frames.
    pub fn new(images: Tensor<4>) -> Self {
        let planes = Planes::new(images.dims());
        Self { tensor: Tensor::from_dispatch(Dispatch::frame(images.into_dispatch(), planes)), planes }
    }

    /// Takes the images out again.
    pub fn images(self) -> Tensor<4> {
        Tensor::from_dispatch(Dispatch::unframe(self.tensor.into_dispatch(), self.planes))
    }

    /// Images, channels, rows, columns.
    pub fn dims(&self) -> [usize; 4] {
        [self.planes.images, self.planes.channels, self.planes.height, self.planes.width]
    }

    /// Both added up.
    pub fn plus(self, other: Self) -> Self {
        Self { tensor: self.tensor + other.tensor, planes: self.planes }
    }

    /// max(·, 0).
    pub fn rectified(self) -> Self {
        Self { tensor: relu(self.tensor), planes: self.planes }
    }
}

/// A convolution layer that [`knows`] the images.
pub fn conv(layer: &Conv2d, x: Framed, zeros: Zeros) -> Framed {
    let conv = known(layer, x.planes).expect("a layer that the kernels know");
    let weight = layer.weight.val().into_dispatch();
    let tensor = Dispatch::convolve(x.tensor.into_dispatch(), weight, Layer::new(conv, zeros));
    Framed { tensor: Tensor::from_dispatch(tensor), planes: conv.output() }
}

/// A convolution where there is one, a normalisation, what is added to it where there is something, and max(·, 0) of
/// all that where asked.
pub fn block(
    layer: Option<(&Conv2d, Zeros)>,
    norm: &BatchNorm,
    x: Framed,
    residual: Option<Framed>,
    rectify: bool,
) -> Framed {
    let device = x.tensor.device();
    let nothing = || Tensor::<1>::from_data(block::nothing(), &device).into_dispatch();
    let (conv, zeros, weight) = match layer {
        Some((layer, zeros)) => {
            let conv = known(layer, x.planes).expect("a layer that the kernels know");
            (conv, zeros, layer.weight.val().into_dispatch())
        }
        None => (itself(x.planes), Zeros::Free, nothing()),
    };
    let planes = if layer.is_some() { conv.output() } else { x.planes };
    let told = Arc::new(Mutex::new(Vec::new()));
    let training = device.is_autodiff();
    let statistics = if training { Statistics::OfBatch(told.clone()) } else { Statistics::Given(running(norm)) };
    let normalisation = Normalisation { epsilon: norm.epsilon, rectify, statistics };
    let residual = residual.map_or_else(nothing, |residual| residual.tensor.into_dispatch());
    let (gamma, beta) = (norm.gamma.val().into_dispatch(), norm.beta.val().into_dispatch());
    let layer = Layer::new(conv, zeros);
    let tensor = Dispatch::block(x.tensor.into_dispatch(), weight, gamma, beta, residual, layer, normalisation);
    if training {
        let told = told.lock().map(|told| told.clone()).unwrap_or_default();
        keep(norm, &told, &device);
    }
    Framed { tensor: Tensor::from_dispatch(tensor), planes }
}

/// The largest of every square of `size` by `size` pixels.
pub fn max_pool(x: Framed, size: usize) -> Framed {
    let planes = obprox_kernels::pooled(&x.planes, size);
    Framed { tensor: Tensor::from_dispatch(Dispatch::largest(x.tensor.into_dispatch(), x.planes, size)), planes }
}

/// The mean of each channel, image by image.
pub fn channel_means(x: Framed) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::means(x.tensor.into_dispatch(), x.planes))
}

/// A convolution layer between others of Burn's own.
pub fn conv_images(layer: &Conv2d, x: Tensor<4>, zeros: Zeros) -> Tensor<4> {
    if !knows(layer, &x) {
        return layer.forward(x);
    }
    conv(layer, Framed::new(x), zeros).images()
}

/// A batch normalisation between others of Burn's own, and max(x, 0) of it where asked.
pub fn norm_images(layer: &BatchNorm, x: Tensor<4>, rectify: bool) -> Tensor<4> {
    if !Framed::knows(&x) || (x.device().is_autodiff() && !layer.training.is_enabled()) {
        let x = layer.forward(x);
        return if rectify { relu(x) } else { x };
    }
    block(None, layer, Framed::new(x), None, rectify).images()
}

/// Whether the kernels know a layer of such images: square kernels, strides and paddings, no bias, f32, on the CPU.
pub fn knows(layer: &Conv2d, x: &Tensor<4>) -> bool {
    Framed::knows(x) && layer.weight.val().dtype() == DType::F32 && known(layer, Planes::new(x.dims())).is_some()
}

fn known(layer: &Conv2d, input: Planes) -> Option<Conv> {
    let [outputs, seen, rows, columns] = layer.weight.dims();
    let padding = match layer.padding {
        PaddingConfig2d::Valid => 0,
        PaddingConfig2d::Explicit(top, left, bottom, right) if [left, bottom, right] == [top; 3] => top,
        _ => return None,
    };
    let square = rows == columns && layer.stride[0] == layer.stride[1] && layer.dilation == [1, 1];
    let (stride, groups) = (layer.stride[0], layer.groups);
    let shape = Shape { inputs: seen * groups, outputs, kernel: rows, stride, padding, groups };
    Conv::new(shape, input).filter(|_| square && layer.bias.is_none())
}

/// The convolution that changes nothing: the sizes of a block without one.
fn itself(input: Planes) -> Conv {
    Conv { shape: Shape::depthwise(input.channels, 1, 1), input }
}

/// Means and variances that evaluation normalises with.
fn running(norm: &BatchNorm) -> Vec<(f64, f64)> {
    let values = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
    let pairs = values(norm.running_mean.value()).into_iter().zip(values(norm.running_var.value()));
    pairs.collect()
}

/// Moves the running statistics of a layer towards those of a batch.
fn keep(layer: &BatchNorm, statistics: &[(f64, f64)], device: &Device) {
    let towards = |running: Tensor<1>, batch: Vec<f32>| {
        let count = batch.len();
        let batch = Tensor::<1>::from_data(TensorData::new(batch, [count]), device);
        running.mul_scalar(1.0 - layer.momentum).add(batch.mul_scalar(layer.momentum)).detach()
    };
    let means = statistics.iter().map(|(mean, _)| *mean as f32).collect();
    let variances = statistics.iter().map(|(_, variance)| *variance as f32).collect();
    layer.running_mean.update(towards(layer.running_mean.value_sync(), means));
    layer.running_var.update(towards(layer.running_var.value_sync(), variances));
}

fn on_cpu(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Flex(_))
}
