//! The kernels against Burn's own layers and against finite differences.

use burn::module::{Module, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use obprox_nn::ops::{self, Zeros};

fn device() -> Device {
    Device::flex().autodiff()
}

/// Numbers between −1.5 and 1.5 that are the same in every run; Burn's own generator is shared by all threads.
fn random<const D: usize>(shape: [usize; D], device: &Device) -> Tensor<D> {
    let count = shape.iter().product::<usize>();
    let mut state = count as u64;
    let values = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1u64 << 24) as f32 * 3.0 - 1.5
    });
    Tensor::from_data(TensorData::new(values.take(count).collect::<Vec<_>>(), shape), device)
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0f32, |most, value| most.max(value.abs()));
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * scale, "{what} {number}: {found} for {expected}");
    }
}

/// channels in and out, kernel, stride, groups, images, height, width
const CONVS: [Conv; 12] = [
    (3, 8, 3, 1, 1, [2, 9, 7]),
    (4, 6, 3, 2, 1, [3, 8, 8]),
    (5, 7, 1, 1, 1, [2, 6, 6]),
    (5, 7, 1, 2, 1, [9, 5, 4]),
    (6, 4, 5, 1, 1, [1, 3, 3]),
    (2, 3, 3, 1, 1, [67, 4, 4]),
    (6, 6, 3, 1, 6, [2, 11, 9]),
    (6, 6, 3, 2, 6, [3, 8, 7]),
    (4, 4, 3, 2, 4, [2, 2, 2]),
    (9, 9, 3, 1, 9, [3, 4, 4]),
    (3, 3, 3, 1, 3, [2, 1, 1]),
    (2, 2, 3, 1, 2, [1, 1, 17]),
];

type Conv = (usize, usize, usize, usize, usize, [usize; 3]);

fn layer((inputs, outputs, kernel, stride, groups, _): Conv, device: &Device) -> Conv2d {
    let pad = kernel / 2;
    let config = Conv2dConfig::new([inputs, outputs], [kernel; 2])
        .with_stride([stride; 2])
        .with_groups(groups)
        .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
        .with_bias(false);
    let weight = Param::from_tensor(random([outputs, inputs / groups, kernel, kernel], device));
    Conv2d { weight, ..config.init(device) }
}

#[test]
fn convolutions_are_burns_own_forward_and_backward() {
    let device = device();
    for conv in CONVS {
        let [images, height, width] = conv.5;
        let layer = layer(conv, &device);
        let x = random([images, conv.0, height, width], &device).require_grad();
        let weigh = random(layer.forward(x.clone()).dims(), &device);
        let run = |forward: &dyn Fn(Tensor<4>) -> Tensor<4>| {
            let y = forward(x.clone());
            let gradients = (y.clone() * weigh.clone()).sum().backward();
            (values(y), values(x.grad(&gradients).unwrap()), values(layer.weight.val().grad(&gradients).unwrap()))
        };
        let ours = run(&|x| ops::conv_images(&layer, x, Zeros::Free));
        let burns = run(&|x| layer.forward(x));
        assert_close(&ours.0, &burns.0, 1e-5, &format!("{conv:?} output"));
        assert_close(&ours.1, &burns.1, 1e-5, &format!("{conv:?} gradient of the input"));
        assert_close(&ours.2, &burns.2, 1e-5, &format!("{conv:?} gradient of the weights"));
        // The same without autodiff, as in evaluation.
        let plain = ops::conv_images(&layer.valid(), x.clone().inner(), Zeros::Free);
        assert_close(&values(plain), &burns.0, 1e-5, &format!("{conv:?} in evaluation"));
    }
}

/// Central differences of Σ r·f(x) in some of the entries of x, in f32; f is linear or nearly so over the step.
fn assert_is_gradient(x: &Tensor<4>, gradient: &[f32], tolerance: f32, loss: impl Fn(Tensor<4>) -> f64, what: &str) {
    let data = values(x.clone());
    let step = 1.0 / 64.0;
    for at in (0..data.len()).step_by(data.len() / 23 + 1) {
        let moved = |by: f32| {
            let mut data = data.clone();
            data[at] += by;
            loss(Tensor::from_data(TensorData::new(data, x.dims()), &x.device()))
        };
        let difference = ((moved(step) - moved(-step)) / (2.0 * f64::from(step))) as f32;
        let scale = gradient.iter().fold(1.0f32, |most, value| most.max(value.abs()));
        assert!(
            (difference - gradient[at]).abs() <= tolerance * scale,
            "{what} {at}: {} for {difference}",
            gradient[at]
        );
    }
}

fn weighed(y: Tensor<4>, weigh: &Tensor<4>) -> f64 {
    let (y, weigh) = (values(y), values(weigh.clone()));
    y.iter().zip(weigh).map(|(y, weigh)| f64::from(*y) * f64::from(weigh)).sum()
}

#[test]
fn convolutions_have_the_gradients_of_finite_differences() {
    let device = device();
    for conv in CONVS {
        let [images, height, width] = conv.5;
        let layer = layer(conv, &device);
        let x = random([images.min(3), conv.0, height, width], &device).require_grad();
        let weigh = random(ops::conv_images(&layer, x.clone(), Zeros::Free).dims(), &device);
        let gradients = (ops::conv_images(&layer, x.clone(), Zeros::Free) * weigh.clone()).sum().backward();
        let gradient = values(x.grad(&gradients).unwrap());
        let loss = |x: Tensor<4>| weighed(ops::conv_images(&layer, x, Zeros::Free), &weigh);
        assert_is_gradient(&x, &gradient, 1e-3, loss, &format!("{conv:?} input"));
        let gradient = values(layer.weight.val().grad(&gradients).unwrap());
        let loss = |weight: Tensor<4>| {
            let mut moved = layer.clone();
            moved.weight = Param::from_tensor(weight);
            weighed(ops::conv_images(&moved, x.clone(), Zeros::Free), &weigh)
        };
        assert_is_gradient(&layer.weight.val(), &gradient, 1e-3, loss, &format!("{conv:?} weights"));
    }
}

/// A normalisation away from the identity.
fn norm(channels: usize, device: &Device) -> BatchNorm {
    let mut norm = BatchNormConfig::new(channels).init(device);
    let some = random([channels], device) / 3.0;
    norm.gamma = Param::from_tensor((some.clone() + 1.0).detach());
    norm.beta = Param::from_tensor(some.detach());
    norm
}

#[test]
fn normalisations_are_burns_own_forward_and_backward() {
    let device = device();
    for (shape, rectify) in [([4, 3, 5, 7], false), ([4, 3, 5, 7], true), ([32, 2, 1, 1], true), ([3, 5, 8, 8], true)] {
        let (ours, burns) = {
            let layer = norm(shape[1], &device);
            // Clones share their running statistics; a round trip does not.
            (layer.valid().train(), layer)
        };
        let x = (random(shape, &device) * 3.0 + 1.0).detach().require_grad();
        let weigh = random(shape, &device);
        let run = |layer: &BatchNorm, forward: &dyn Fn(&BatchNorm, Tensor<4>) -> Tensor<4>| {
            let y = forward(layer, x.clone());
            let gradients = (y.clone() * weigh.clone()).sum().backward();
            let of = |tensor: &Param<Tensor<1>>| values(tensor.val().grad(&gradients).unwrap());
            [values(y), values(x.grad(&gradients).unwrap()), of(&layer.gamma), of(&layer.beta)]
        };
        let stock = |layer: &BatchNorm, x| if rectify { relu(layer.forward(x)) } else { layer.forward(x) };
        let (found, expected) =
            (run(&ours, &|layer, x| ops::norm_images(layer, x, rectify)), run(&burns, &|layer, x| stock(layer, x)));
        for (what, (found, expected)) in ["output", "dx", "dγ", "dβ"].iter().zip(found.iter().zip(&expected)) {
            assert_close(found, expected, 3e-5, &format!("{shape:?} rectify {rectify} {what}"));
        }
        for (found, expected) in [(&ours.running_mean, &burns.running_mean), (&ours.running_var, &burns.running_var)] {
            assert_close(&values(found.value_sync()), &values(expected.value_sync()), 1e-5, "running statistics");
        }
        // In evaluation the running statistics are used.
        let plain = x.clone().inner();
        let (found, expected) = (ops::norm_images(&ours.valid(), plain.clone(), rectify), stock(&burns.valid(), plain));
        assert_close(&values(found), &values(expected), 1e-5, "in evaluation");
    }
}

#[test]
fn nan_goes_through_a_rectified_norm() {
    let device = Device::flex();
    let layer = norm(1, &device.clone().autodiff()).valid();
    let x = Tensor::<4>::from_data([[[[f32::NAN, 1.0]]]], &device);
    assert!(values(ops::norm_images(&layer, x, true))[0].is_nan());
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let device = device();
            let mut all = Vec::new();
            for conv in CONVS {
                let [images, height, width] = conv.5;
                let layer = layer(conv, &device);
                let norm = norm(conv.1, &device);
                let x = random([images, conv.0, height, width], &device).require_grad();
                let y = ops::norm_images(&norm, ops::conv_images(&layer, x.clone(), Zeros::Free), true);
                let gradients = (y.clone() * y).sum().backward();
                all.extend(values(x.grad(&gradients).unwrap()));
                all.extend(values(layer.weight.val().grad(&gradients).unwrap()));
                all.extend(values(norm.gamma.val().grad(&gradients).unwrap()));
            }
            all.iter().map(|value| value.to_bits()).collect::<Vec<_>>()
        })
    };
    assert_eq!(run(1), run(3));
}
