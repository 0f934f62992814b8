//! The networks: the weights that go in come out, and what they compute is what inference computes.

mod common;

use std::sync::Arc;

use burn::module::Module;
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use common::{net, preprocessing, stripes};
use obprox_infer::Kind;
use obprox_nn::Net;
use obprox_nn::data::{Augment, Batch, Feed};
use obprox_nn::net::NamedParam;

#[test]
fn weights_go_in_and_out_unchanged() {
    let device = Device::flex();
    for kind in Kind::ALL {
        let one = net(kind, 2.0, &device);
        let weights = one.weights().unwrap();
        let two = obprox_nn::Net::new(one.architecture(), &weights, &device).unwrap();
        assert_eq!(two.weights().unwrap(), weights);
        one.architecture().check(&weights).unwrap();
        let named: Vec<String> = one.params().into_iter().map(|param| param.name).collect();
        let trained = weights.names().filter(|name| !name.contains("running")).count();
        assert_eq!(named.len(), trained, "{}", kind.name());
        assert!(named.iter().all(|name| weights.get(name).is_some()));
    }
}

#[test]
fn networks_compute_what_burns_own_layers_compute() {
    let device = Device::flex().autodiff();
    for kind in Kind::ALL {
        let net = net(kind, 4.0, &device);
        let (images, _) = batch(16).tensors(&device);
        let scores = |scores: Tensor<2>| scores.into_data().try_into_vec::<f32>().unwrap();
        // In training, where each batch is normalised by itself, and in evaluation.
        let pairs = [
            (net.forward(images.clone()), net.forward_by_burn(images.clone())),
            (net.valid().forward(images.clone().inner()), net.valid().forward_by_burn(images.inner())),
        ];
        for (ours, burns) in pairs {
            let (ours, burns) = (scores(ours), scores(burns));
            let scale = burns.iter().fold(1.0f32, |most, score| most.max(score.abs()));
            let close = ours.iter().zip(&burns).all(|(ours, burns)| (ours - burns).abs() <= 2e-4 * scale);
            assert!(close, "{}: {ours:?}\n{burns:?}", kind.name());
        }
    }
}

/// The gradient of every parameter, by name; of Σ r·scores for some r.
fn gradients(net: &Net, scores: Tensor<2>) -> Vec<(String, Vec<f32>)> {
    let [count, classes] = scores.dims();
    let weigh = (0..count * classes).map(|at| ((at * 7919) % 31) as f32 / 31.0 - 0.5).collect::<Vec<_>>();
    let weigh = Tensor::from_data(TensorData::new(weigh, [count, classes]), &scores.device());
    let found = GradientsParams::from_grads((scores * weigh).sum().backward(), net);
    let values = |param: &NamedParam| match param.rank {
        4 => found.get::<4>(param.id).map(|of| of.into_data()),
        2 => found.get::<2>(param.id).map(|of| of.into_data()),
        _ => found.get::<1>(param.id).map(|of| of.into_data()),
    };
    let vector = |data: TensorData| data.try_into_vec::<f32>().unwrap();
    net.params().iter().map(|param| (param.name.clone(), vector(values(param).unwrap()))).collect()
}

#[test]
fn gradients_are_those_of_burns_own_layers() {
    let device = Device::flex().autodiff();
    for kind in Kind::ALL {
        let net = net(kind, 4.0, &device);
        // Not a multiple of the images that lie side by side.
        let (images, _) = batch(19).tensors(&device);
        let ours = gradients(&net, net.forward(images.clone()));
        let burns = gradients(&net, net.forward_by_burn(images.clone()));
        // Many normalisations over few pixels blow rounding up: as far as Burn's own gradient moves when the images
        // move by a few roundings, ours may be away from it.
        let moved = gradients(&net, net.forward_by_burn(images * (1.0 + 1e-6)));
        for ((name, burns), ((_, ours), (_, moved))) in burns.iter().zip(ours.iter().zip(&moved)) {
            let scale = burns.iter().fold(1e-3f32, |most, value| most.max(value.abs()));
            let far = |other: &[f32]| other.iter().zip(burns).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let (off, moved) = (far(ours), far(moved));
            assert!(off <= 1e-3 * scale + 5.0 * moved, "{} {name}: {off} of {scale}, moved {moved}", kind.name());
        }
    }
}

#[test]
fn zeros_that_are_held_have_no_gradient_and_change_no_other() {
    let device = Device::flex().autodiff();
    for kind in Kind::ALL {
        let mut weights = net(kind, 4.0, &device).weights().unwrap();
        let names: Vec<String> = weights.names().map(str::to_string).collect();
        for name in &names {
            let tensor = weights.get(name).unwrap();
            if tensor.shape().len() < 4 {
                continue;
            }
            let thin = tensor.data().iter().enumerate().map(|(at, value)| if at % 11 < 2 { *value } else { 0.0 });
            let thin = obprox_infer::Tensor::new(tensor.shape().to_vec(), thin.collect()).unwrap();
            weights.insert(name.clone(), thin);
        }
        let mut net = Net::new(net(kind, 4.0, &device).architecture(), &weights, &device).unwrap();
        let (images, _) = batch(19).tensors(&device);
        let free = gradients(&net, net.forward(images.clone()));
        net.hold_zeros(|name| !name.contains("conv2"));
        // Twice: the second time another kernel may be the faster one.
        for _ in 0..2 {
            let held = gradients(&net, net.forward(images.clone()));
            for ((name, free), (_, held)) in free.iter().zip(&held) {
                let weight = weights.get(name).unwrap();
                let silent = weight.shape().len() == 4 && !name.contains("conv2");
                for ((free, held), weight) in free.iter().zip(held).zip(weight.data()) {
                    // The last layer is kept as a row for each output here, as a column in Burn: no zeros in it.
                    let expected = if silent && *weight == 0.0 { 0.0 } else { *free };
                    assert_eq!(expected, *held, "{} {name}", kind.name());
                }
            }
        }
    }
}

fn batch(count: usize) -> Batch {
    let feed = Feed::new(stripes(count, 3), &preprocessing(), count, Augment::NONE, 0);
    feed.plain().next().unwrap()
}

#[test]
fn first_weights_are_a_function_of_the_seed() {
    let architecture = net(Kind::ResNet18, 2.0, &Device::flex()).architecture();
    let draw = |seed| obprox_nn::initial_weights(architecture, seed).unwrap();
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    let weights = draw(1);
    let conv = weights.get("layer2.0.conv2.weight").unwrap();
    let bound = 1.0 / ((conv.len() / conv.shape()[0]) as f32).sqrt();
    let most = conv.data().iter().fold(0.0f32, |most, value| most.max(value.abs()));
    assert!(most <= bound && most > 0.9 * bound, "{most} of {bound}");
}

#[test]
fn batches_are_images_normalised() {
    let images = stripes(10, 3);
    let preprocessing = preprocessing();
    let feed = Feed::new(Arc::clone(&images), &preprocessing, 4, Augment::NONE, 0);
    let batches: Vec<_> = feed.plain().collect();
    assert_eq!(batches.iter().map(|batch| batch.len()).collect::<Vec<_>>(), [4, 4, 2]);
    let mut found = Vec::new();
    for batch in batches {
        found.extend(batch.tensors(&Device::flex()).0.into_data().try_into_vec::<f32>().unwrap());
    }
    assert_eq!(found, preprocessing.apply(&images).unwrap());
}

#[test]
fn an_epoch_is_every_image_once_and_can_be_begun_in_the_middle() {
    let feed = Feed::new(stripes(50, 3), &preprocessing(), 8, Augment::USUAL, 4);
    let whole: Vec<_> = feed.epoch(2, 0).collect();
    assert_eq!(whole.len(), 7);
    let mut classes: Vec<i32> = whole.iter().flat_map(|batch| batch.labels().to_vec()).collect();
    classes.sort_unstable();
    let mut expected: Vec<i32> = (0..50).map(|number| number % 4).collect();
    expected.sort_unstable();
    assert_eq!(classes, expected);
    let rest: Vec<_> = feed.epoch(2, 3).collect();
    assert_eq!(rest, whole[3..]);
    assert_ne!(feed.epoch(3, 0).next(), feed.epoch(2, 0).next());
    // A loader that is dropped early ends its thread.
    drop(feed.epoch(1, 0));
}
