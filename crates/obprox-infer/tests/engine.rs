//! The engine against its slow twin.

mod common;

use common::{assert_agrees, random_images, random_model};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::{Architecture, Kind};
use rayon::prelude::*;

const KERNELS: [Kernels; 3] = [Kernels::Dense, Kernels::Sparse, Kernels::Auto];

fn narrow(kind: Kind, base: usize) -> Architecture {
    Architecture::new(kind).with_width(base as f64 / kind.full_base() as f64).unwrap()
}

#[test]
fn every_network_at_every_density() {
    for kind in Kind::ALL {
        for (density, seed) in [(1.0, 1), (0.5, 2), (0.1, 3), (0.02, 4), (0.0, 5)] {
            let model = random_model(narrow(kind, 6), density, seed);
            let images = random_images(&model, 7, [32, 32], seed);
            for kernels in KERNELS {
                let engine = Engine::new(&model, kernels, [32, 32]).unwrap();
                let scores = engine.run(&images).unwrap();
                assert_agrees(&model, &scores, &images, [32, 32], &format!("{kind} {density} {kernels:?}"));
            }
        }
    }
}

#[test]
fn every_size_of_images_and_batches() {
    for (kind, base) in [(Kind::ResNet18, 5), (Kind::MobileNetV1, 3), (Kind::SmallCnn, 7)] {
        let model = random_model(narrow(kind, base).with_channels(1).unwrap().with_classes(3).unwrap(), 0.4, 6);
        for (size, count) in [([28, 28], 1), ([20, 24], 9), ([33, 17], 14), ([9, 64], 6), ([5, 4], 3)] {
            let images = random_images(&model, count, size, 7);
            for kernels in KERNELS {
                let engine = Engine::new(&model, kernels, size).unwrap();
                // Twice: a second run finds the first one's values in its buffers.
                for _ in 0..2 {
                    let scores = engine.run(&images).unwrap();
                    assert_agrees(&model, &scores, &images, size, &format!("{kind} {size:?} × {count} {kernels:?}"));
                }
            }
        }
    }
}

#[test]
fn same_bits_for_any_number_of_threads() {
    let model = random_model(narrow(Kind::ResNet18, 16), 0.3, 8);
    let engine = Engine::new(&model, Kernels::Auto, [32, 32]).unwrap();
    let images = random_images(&model, 12, [32, 32], 9);
    // Of one image the threads share every layer, and a batch of twelve has another form.
    for images in [&images[..], &images[..3 * 32 * 32]] {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| engine.run(images).unwrap())
        };
        let scores = with(1);
        for threads in [2, 3, 8] {
            // Several at a time in one pool, too.
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let runs: Vec<Vec<f32>> =
                pool.install(|| (0..5).into_par_iter().map(|_| engine.run(images).unwrap()).collect());
            assert!(runs.iter().all(|found| *found == scores));
            assert_eq!(with(threads), scores);
        }
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    let model = random_model(narrow(Kind::SmallCnn, 4), 0.5, 10);
    let error = Engine::new(&model, Kernels::Auto, [3, 3]).unwrap_err();
    assert!(error.to_string().starts_with("images of 3×3 pixels do not fit this network"), "{error}");
    let engine = Engine::new(&model, Kernels::Auto, [8, 8]).unwrap();
    assert!(engine.run(&[0.0; 100]).unwrap_err().to_string().starts_with("100 values are no images of 3×8×8"));
    assert!(engine.run(&[]).unwrap().is_empty());
}
