//! The operations that training spends its time in, for the CPU, as a Burn backend extension.
//!
//! [`conv`] and [`norm`] take Burn's own layers. On the CPU, in f32, they run the kernels of this module, forward and
//! backward; on any other device they are the layers' own `forward`. Both give the same numbers up to rounding.

mod dense;
mod depthwise;
mod extension;
mod matrix;
mod normalise;
mod shape;
mod wide;

use burn::backend::{Dispatch, DispatchDevice};
use burn::nn::conv::Conv2d;
use burn::nn::{BatchNorm, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{DType, Device, Tensor};

use extension::TrainingOps;
use shape::ConvShape;

/// A convolution layer.
pub fn conv(layer: &Conv2d, x: Tensor<4>) -> Tensor<4> {
    let weight = layer.weight.val();
    let Some((shape, depthwise)) = known(layer, &x, &weight) else { return layer.forward(x) };
    Tensor::from_dispatch(Dispatch::convolve(x.into_dispatch(), weight.into_dispatch(), shape, depthwise))
}

/// A batch normalisation, and max(x, 0) of it where asked.
pub fn norm(layer: &BatchNorm, x: Tensor<4>, rectify: bool) -> Tensor<4> {
    let device = x.device();
    let training = device.is_autodiff() && layer.training.is_enabled();
    if !on_cpu(&device) || x.dtype() != DType::F32 || (device.is_autodiff() && !training) {
        let x = layer.forward(x);
        return if rectify { relu(x) } else { x };
    }
    let statistics = if training {
        let statistics = Dispatch::channel_statistics(x.clone().inner().into_dispatch());
        let statistics = Tensor::<2>::from_dispatch(statistics);
        keep(layer, &statistics);
        Tensor::from_inner(statistics)
    } else {
        Tensor::stack(vec![layer.running_mean.value(), layer.running_var.value()], 0)
    };
    let parameters = (layer.gamma.val().into_dispatch(), layer.beta.val().into_dispatch());
    let (x, statistics) = (x.into_dispatch(), statistics.into_dispatch());
    Tensor::from_dispatch(Dispatch::normalise(x, parameters.0, parameters.1, statistics, layer.epsilon, rectify))
}

/// Moves the running statistics of a layer towards those of a batch: what evaluation will normalise with.
fn keep(layer: &BatchNorm, statistics: &Tensor<2>) {
    let towards = |running: Tensor<1>, row: usize| {
        let batch = Tensor::from_inner(statistics.clone().narrow(0, row, 1).flatten::<1>(0, 1));
        running.mul_scalar(1.0 - layer.momentum).add(batch.mul_scalar(layer.momentum)).detach()
    };
    layer.running_mean.update(towards(layer.running_mean.value_sync(), 0));
    layer.running_var.update(towards(layer.running_var.value_sync(), 1));
}

/// The sizes of a convolution that the kernels know, and whether each channel sees itself only.
fn known(layer: &Conv2d, x: &Tensor<4>, weight: &Tensor<4>) -> Option<(ConvShape, bool)> {
    let [images, inputs, height, width] = x.dims();
    let [outputs, seen, rows, columns] = weight.dims();
    let padding = match layer.padding {
        PaddingConfig2d::Valid => 0,
        PaddingConfig2d::Explicit(top, left, bottom, right) if [left, bottom, right] == [top; 3] => top,
        _ => return None,
    };
    let depthwise = layer.groups == inputs && inputs == outputs && seen == 1 && inputs > 1;
    let square = rows == columns && layer.stride[0] == layer.stride[1] && layer.dilation == [1, 1];
    let fits = height.min(width) + 2 * padding >= rows;
    let ours = on_cpu(&x.device()) && x.dtype() == DType::F32 && weight.dtype() == DType::F32;
    if !(ours && square && fits && layer.bias.is_none() && (layer.groups == 1 || depthwise)) {
        return None;
    }
    let size = [height, width];
    Some((ConvShape { images, inputs, outputs, size, kernel: rows, stride: layer.stride[0], padding }, depthwise))
}

fn on_cpu(device: &Device) -> bool {
    matches!(device.clone().inner().as_dispatch(), DispatchDevice::Flex(_))
}
