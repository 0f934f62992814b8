//! A small data set that needs no file, and a network for it.

#![allow(dead_code, reason = "each test takes what it needs")]

use std::sync::Arc;

use burn::tensor::Device;
use obprox::MethodKind;
use obprox::switch::{Switch, Unit};
use obprox_infer::images::{Data, Images, Preprocessing};
use obprox_infer::{Architecture, Kind};
use obprox_nn::data::Augment;
use obprox_nn::train::{Penalty, Schedule, Settings};
use obprox_nn::{Net, initial_weights};

/// Side of the images.
pub const SIDE: usize = 12;

/// Stripes that lie, stand, or run along either diagonal, at any place and under noise.
pub fn stripes(count: usize, seed: u64) -> Arc<Images> {
    let mut state = seed;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for number in 0..count {
        let (class, shift) = (number as u32 % 4, next(4) as usize);
        for row in 0..SIDE {
            for column in 0..SIDE {
                let along = [row, column, row + column, row + SIDE - column][class as usize];
                let bright = if ((along + shift) / 2).is_multiple_of(2) { 150 } else { 60 };
                pixels.push((bright + next(60)) as u8);
            }
        }
        labels.push(class);
    }
    Arc::new(Images::new([1, SIDE, SIDE], pixels, Some(labels)).unwrap())
}

pub fn data() -> Data {
    let classes = ["lying", "standing", "falling", "rising"].map(String::from).to_vec();
    Data { train: stripes(256, 1), test: Some(stripes(128, 2)), classes }
}

pub fn preprocessing() -> Preprocessing {
    Preprocessing { height: SIDE, width: SIDE, mean: vec![0.5], std: vec![0.25] }
}

pub fn net(kind: Kind, base: f64, device: &Device) -> Net {
    let architecture = Architecture::new(kind)
        .with_width(base / kind.full_base() as f64)
        .and_then(|architecture| architecture.with_channels(1))
        .and_then(|architecture| architecture.with_classes(4))
        .unwrap();
    Net::new(architecture, &initial_weights(architecture, 3).unwrap(), device).unwrap()
}

pub fn settings(method: MethodKind) -> Settings {
    Settings {
        penalty: Penalty::new(2e-3),
        epochs: 4,
        batch: 32,
        schedule: Schedule::Steps { factor: 0.1, every: 8 },
        switch: after(2),
        augment: Augment { flip: false, pad: 1 },
        gamma: 20.0,
        seed: 5,
        ..Settings::paper(method)
    }
}

/// So many epochs of Prox-SG, then Orthant.
pub fn after(epochs: u64) -> Switch {
    Switch::Fixed { prox: epochs, orthant: None, unit: Unit::Epochs }
}
