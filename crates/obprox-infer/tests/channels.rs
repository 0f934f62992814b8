//! Clearing dead channels changes nothing that comes out.

mod common;

use common::{Noise, assert_agrees, random_images, random_model};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::graph::Role;
use obprox_infer::{Architecture, Kind, Model, Weights};

fn narrow(kind: Kind, base: usize) -> Architecture {
    Architecture::new(kind).with_width(base as f64 / kind.full_base() as f64).unwrap()
}

fn changed(model: Model, change: impl FnOnce(&mut Weights)) -> Model {
    let (architecture, mut weights, training) = model.into_parts();
    change(&mut weights);
    Model::new(architecture, weights, training).unwrap()
}

/// Sets the values of a parameter whose first index is `output`.
fn set(weights: &mut Weights, name: &str, output: usize, value: f32) {
    let tensor = weights.get_mut(name).unwrap();
    let row = tensor.len() / tensor.shape()[0];
    tensor.data_mut()[output * row..][..row].fill(value);
}

/// The weights from one input channel to all outputs at one place of the kernel.
fn set_taps(weights: &mut Weights, name: &str, input: usize, value: impl Fn(usize, usize) -> f32) {
    let tensor = weights.get_mut(name).unwrap();
    let [outputs, inputs, kernel, _] = tensor.shape() else { panic!("{name} is a convolution") };
    let (outputs, inputs, kernel) = (*outputs, *inputs, *kernel);
    for output in 0..outputs {
        for at in 0..kernel * kernel {
            tensor.data_mut()[(output * inputs + input) * kernel * kernel + at] = value(at / kernel, at % kernel);
        }
    }
}

/// Clears, checks that the network and its engines still say the same, and gives the channels cleared in a layer.
fn cleared(model: &Model, layer: &str) -> (Model, usize) {
    let images = random_images(model, 2, [12, 12], 1);
    let (clear, channels) = model.without_dead_channels().unwrap();
    for (network, what) in [(model, "original"), (&clear, "cleared")] {
        for kernels in [Kernels::Dense, Kernels::Auto, Kernels::Sparse] {
            let scores = Engine::new(network, kernels, [12, 12]).unwrap().run(&images).unwrap();
            assert_agrees(model, &scores, &images, [12, 12], &format!("{what} {kernels:?}"));
        }
    }
    let cleared = channels.iter().find(|channels| channels.layer == layer).unwrap().cleared;
    (clear, cleared)
}

#[test]
fn nothing_is_cleared_of_a_dense_network() {
    for kind in Kind::ALL {
        let model = random_model(narrow(kind, 4), 1.0, 1);
        let (clear, channels) = model.without_dead_channels().unwrap();
        // Random shifts may keep a relu shut only where no weight opens it, and every weight is there.
        assert!(channels.iter().all(|channels| channels.cleared == 0), "{kind}");
        assert_eq!(clear, model);
    }
}

#[test]
fn a_channel_that_nobody_reads_goes() {
    let model = changed(random_model(narrow(Kind::SmallCnn, 4), 1.0, 2), |weights| {
        set_taps(weights, "conv2.weight", 3, |_, _| 0.0);
    });
    let (clear, count) = cleared(&model, "conv1");
    assert_eq!(count, 1);
    for name in ["bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"] {
        assert_eq!(clear.weights().get(name).unwrap().data()[3], 0.0, "{name}");
    }
    assert_eq!(clear.weights().get("conv1.weight").unwrap().data()[3 * 27..].iter().sum::<f32>(), 0.0);
}

#[test]
fn a_shut_channel_goes_and_an_open_one_stays_before_padding() {
    for (shift, gone) in [(-0.5, 1), (0.5, 0)] {
        let model = changed(random_model(narrow(Kind::SmallCnn, 4), 1.0, 3), |weights| {
            set(weights, "conv1.weight", 2, 0.0);
            set(weights, "bn1.running_mean", 2, 0.0);
            set(weights, "bn1.bias", 2, shift);
        });
        assert_eq!(cleared(&model, "conv1").1, gone, "relu({shift})");
    }
}

#[test]
fn a_constant_that_meets_no_padding_becomes_a_shift() {
    let constant = |weights: &mut Weights| {
        set(weights, "conv1.weight", 2, 0.0);
        set(weights, "bn1.bias", 2, 3.0);
    };
    let centre = |row: usize, column: usize| if (row, column) == (1, 1) { 0.7 } else { 0.0 };
    let model = changed(random_model(narrow(Kind::SmallCnn, 4), 1.0, 4), |weights| {
        constant(weights);
        set_taps(weights, "conv2.weight", 2, centre);
    });
    let (clear, count) = cleared(&model, "conv1");
    assert_eq!(count, 1);
    assert_ne!(clear.weights().get("bn2.running_mean"), model.weights().get("bn2.running_mean"));
    // One weight beside the centre, and the edges would come out wrong.
    let model = changed(model, |weights| {
        set_taps(weights, "conv2.weight", 2, |row, column| centre(row, column) + if row == 0 { 0.1 } else { 0.0 });
    });
    assert_eq!(cleared(&model, "conv1").1, 0);
}

#[test]
fn a_constant_of_a_batch_norm_without_scale() {
    let model = changed(random_model(narrow(Kind::MobileNetV1, 4), 1.0, 5), |weights| {
        // Depthwise outputs meet no padding in the pointwise convolution after them.
        set(weights, "layers.3.bn1.weight", 1, 0.0);
        set(weights, "layers.3.bn1.bias", 1, 2.0);
        // Pointwise outputs meet the padding of the depthwise convolution.
        set(weights, "layers.5.bn2.weight", 1, 0.0);
        set(weights, "layers.5.bn2.bias", 1, 2.0);
    });
    assert_eq!(cleared(&model, "layers.3.conv1").1, 1);
    assert_eq!(cleared(&model, "layers.5.conv2").1, 0);
    // What fed a channel that became a constant is read by nobody.
    assert_eq!(cleared(&model, "layers.2.conv2").1, 1);
}

#[test]
fn constants_reach_the_head() {
    let model = changed(random_model(narrow(Kind::SmallCnn, 4), 1.0, 6), |weights| {
        set(weights, "bn3.weight", 5, 0.0);
        set(weights, "bn3.bias", 5, 1.5);
    });
    let (clear, count) = cleared(&model, "conv3");
    assert_eq!(count, 1);
    assert_ne!(clear.weights().get("fc.bias"), model.weights().get("fc.bias"));
}

#[test]
fn residuals() {
    let dense = random_model(narrow(Kind::ResNet18, 4), 1.0, 7);
    // A branch that adds a constant to a channel that lives on.
    let model = changed(dense.clone(), |weights| {
        set(weights, "layer1.0.conv2.weight", 1, 0.0);
        set(weights, "layer1.0.bn2.bias", 1, 0.4);
    });
    assert_eq!(cleared(&model, "layer1.0.conv2").1, 0);
    // A constant that comes along the straight way and is added to a channel that lives.
    let model = changed(dense.clone(), |weights| {
        set(weights, "layer2.0.bn2.weight", 1, 0.0);
        set(weights, "layer2.0.bn2.bias", 1, -0.3);
        set(weights, "layer2.0.downsample.1.weight", 2, 0.0);
        set(weights, "layer2.0.downsample.1.bias", 2, 0.3);
    });
    assert_eq!(cleared(&model, "layer2.0.conv2").1, 1, "its constant is the shift of the sum");
    assert_eq!(cleared(&model, "layer2.0.downsample.0").1, 0, "the sum lives");
    // A channel that is shut all along a stage.
    let model = changed(dense, |weights| {
        for (conv, norm) in [("conv1", "bn1"), ("layer1.0.conv2", "layer1.0.bn2"), ("layer1.1.conv2", "layer1.1.bn2")] {
            set(weights, &format!("{conv}.weight"), 3, 0.0);
            set(weights, &format!("{norm}.running_mean"), 3, 0.0);
            set(weights, &format!("{norm}.bias"), 3, -0.1);
        }
    });
    for layer in ["conv1", "layer1.0.conv2", "layer1.1.conv2"] {
        assert_eq!(cleared(&model, layer).1, 1, "{layer}");
    }
}

#[test]
fn random_networks_with_random_holes() {
    for seed in 0..24 {
        let kind = Kind::ALL[seed % 3];
        let density = [1.0, 0.5, 0.2, 0.06][seed / 3 % 4];
        let mut noise = Noise::new(100 + seed as u64);
        let model = changed(random_model(narrow(kind, 4), density, seed as u64), |weights| {
            for parameter in narrow(kind, 4).graph().parameters() {
                for output in 0..parameter.shape[0] {
                    match parameter.role {
                        Role::Weight if noise.unit() < 0.25 => set(weights, &parameter.name, output, 0.0),
                        Role::NormWeight if noise.unit() < 0.1 => set(weights, &parameter.name, output, 0.0),
                        Role::NormBias => set(weights, &parameter.name, output, noise.signed()),
                        _ => {}
                    }
                }
            }
        });
        let layer = if kind == Kind::MobileNetV1 { "layers.0.conv1" } else { "conv1" };
        let (clear, _) = cleared(&model, layer);
        let (again, _) = clear.without_dead_channels().unwrap();
        assert_eq!(again, clear, "what is cleared is clear");
        assert!(clear.to_compressed().unwrap().len() <= model.to_compressed().unwrap().len());
    }
}
