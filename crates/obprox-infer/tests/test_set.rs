//! Compressed, read again and predicted without its zeros, a network says the same of a whole test set.

mod common;

use std::path::Path;

use common::random_model;
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::images::read;
use obprox_infer::{Architecture, Kind, Model};

/// CIFAR-10's 10000 test images, where they are at hand (OBPROX_DATA).
#[test]
fn the_same_class_for_every_image() {
    let Some(data) = std::env::var_os("OBPROX_DATA") else {
        return;
    };
    let images = read(Path::new(&data).join("cifar10/test_batch.bin.xz")).unwrap();
    let model = random_model(Architecture::new(Kind::ResNet18).with_width(0.125).unwrap(), 0.05, 1);
    let (small, _) = model.without_dead_channels().unwrap();
    let small = Model::from_compressed(&small.to_compressed().unwrap()).unwrap();
    let prepared = model.training().preprocessing.as_ref().unwrap().apply(&images).unwrap();
    let scores = |model: &Model, kernels: Kernels| Engine::new(model, kernels, [32, 32]).unwrap().run(&prepared);
    let (dense, sparse) = (scores(&model, Kernels::Dense).unwrap(), scores(&small, Kernels::Auto).unwrap());
    for (at, (dense, sparse)) in dense.chunks_exact(10).zip(sparse.chunks_exact(10)).enumerate() {
        let scale = dense.iter().fold(1.0, |scale: f32, score| scale.max(score.abs()));
        let far = largest_difference(dense, sparse);
        assert!(far <= 1e-5 * scale, "image {at}: {sparse:?} where {dense:?} is right");
        let class = largest(sparse);
        // Scores of two classes that are equal to rounding may come out in either order.
        assert!(dense[largest(dense)] - dense[class] <= 1e-5 * scale, "image {at}: class {class}");
    }
    assert!(
        dense.chunks_exact(10).any(|other| largest_difference(other, &dense[..10]) > 0.01),
        "images make no difference"
    );
}

fn largest(scores: &[f32]) -> usize {
    (0..scores.len()).max_by(|&one, &two| scores[one].total_cmp(&scores[two])).unwrap()
}

fn largest_difference(one: &[f32], two: &[f32]) -> f32 {
    one.iter().zip(two).map(|(one, two)| (one - two).abs()).fold(0.0, f32::max)
}
