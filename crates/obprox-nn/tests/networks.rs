//! The networks: the weights that go in come out, and what they compute is what inference computes.

mod common;

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Device, Tensor};
use common::{net, preprocessing, stripes};
use obprox_infer::Kind;
use obprox_nn::data::{Augment, Batch, Feed};

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
