//! Dead channels cut out: smaller layers, the same output.

mod common;

use common::graphs::random_network;
use common::{assert_agrees, random_images, random_model};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::{Architecture, Kind, Model};

#[test]
fn random_networks_compute_the_same_when_cut() {
    let mut smaller = 0;
    for seed in 0..80 {
        let model = random_network(seed, [1.0, 0.5, 0.15][seed as usize % 3]);
        let cut = model.cut().unwrap();
        assert!(cut.parameters() <= model.parameters() + 64, "seed {seed}");
        smaller += usize::from(cut.parameters() < model.parameters());
        let &[_, height, width] = model.network().input_shape() else { panic!("it takes images") };
        let images = random_images(&model, 2, [height, width], seed);
        // Every weight multiplied: what any other runtime does.
        let scores = Engine::new(&cut, Kernels::Dense, [height, width]).unwrap().run(&images).unwrap();
        assert_agrees(&model, &scores, &images, [height, width], &format!("seed {seed}"));
        let again = cut.cut().unwrap();
        assert!(cut.multiply_adds().unwrap() <= model.multiply_adds().unwrap());
        assert_eq!(again.parameters(), cut.parameters(), "what is cut is cut, seed {seed}");
    }
    assert!(smaller > 40, "{smaller}");
}

#[test]
fn nothing_is_cut_of_a_dense_network() {
    for kind in Kind::ALL {
        let model = random_model(Architecture::new(kind).with_width(0.125).unwrap(), 1.0, 1);
        assert_eq!(model.cut().unwrap(), model, "{kind}: it is still known by name");
    }
}

/// A channel that every layer of a stage makes zero goes from all of them at once.
#[test]
fn channels_that_are_added_go_together() {
    let architecture = Architecture::new(Kind::ResNet18).with_width(0.125).unwrap();
    let (design, mut weights, training) = random_model(architecture, 1.0, 2).into_parts();
    let makers = [("conv1", "bn1"), ("layer1.0.conv2", "layer1.0.bn2"), ("layer1.1.conv2", "layer1.1.bn2")];
    let shut = |weights: &mut obprox_infer::Weights, names: &[(&str, &str)]| {
        for (conv, norm) in names {
            let row = weights.get(&format!("{conv}.weight")).unwrap().len() / 8;
            weights.get_mut(&format!("{conv}.weight")).unwrap().data_mut()[3 * row..4 * row].fill(0.0);
            for what in ["weight", "bias"] {
                weights.get_mut(&format!("{norm}.{what}")).unwrap().data_mut()[3] = 0.0;
            }
        }
    };
    let channels = |weights: &obprox_infer::Weights| {
        let cut = Model::new(design.clone(), weights.clone(), training.clone()).unwrap().cut().unwrap();
        makers.map(|(conv, _)| cut.weights().get(&format!("{conv}.weight")).unwrap().shape()[0])
    };
    shut(&mut weights, &makers[..2]);
    assert_eq!(channels(&weights), [8, 8, 8], "one of three still makes it");
    shut(&mut weights, &makers[2..]);
    assert_eq!(channels(&weights), [7, 7, 7]);
}

/// Whatever groups are made zero, they leave nothing behind: the layers are smaller by all of them, the output is the
/// same, and a group that only half went stays whole.
#[test]
fn groups_of_channels_are_what_can_go() {
    let (mut found, mut joint) = (0, 0);
    for seed in 0..80 {
        let model = random_network(seed, 1.0);
        let groups = model.channel_groups().unwrap();
        found += groups.len();
        joint +=
            groups.iter().filter(|group| group.iter().filter(|(name, _)| name.starts_with("conv")).count() > 2).count();
        let (design, mut weights, training) = model.clone().into_parts();
        let mut gone = std::collections::HashMap::new();
        for (at, group) in groups.iter().enumerate() {
            // A layer keeps one channel at least, and with it what is tied to that one.
            let last = |(name, _): &(String, usize)| {
                gone.get(name).copied().unwrap_or(0) + 1 >= weights.get(name).unwrap().shape()[0]
            };
            if !(at + seed as usize).is_multiple_of(2) || group.iter().any(last) {
                continue;
            }
            for (name, row) in group {
                let tensor = weights.get_mut(name).unwrap();
                let len = tensor.len() / tensor.shape()[0];
                tensor.data_mut()[row * len..][..len].fill(0.0);
                *gone.entry(name.clone()).or_insert(0) += 1;
            }
        }
        let zeroed = Model::new(design, weights, training).unwrap();
        let cut = zeroed.cut().unwrap();
        for (name, count) in gone {
            let before = model.weights().get(&name).unwrap().shape()[0];
            let after = cut.weights().get(&name).map_or(0, |tensor| tensor.shape()[0]);
            assert!(after <= before - count, "seed {seed}: {name} has {after} of {before} without {count}");
        }
        let &[_, height, width] = model.network().input_shape() else { panic!("it takes images") };
        let images = random_images(&zeroed, 1, [height, width], seed);
        let scores = Engine::new(&cut, Kernels::Dense, [height, width]).unwrap().run(&images).unwrap();
        assert_agrees(&zeroed, &scores, &images, [height, width], &format!("seed {seed}"));
    }
    assert!(found > 500 && joint > 50, "{found} groups, {joint} of several layers");
}

#[test]
fn groups_of_a_residual_network() {
    let model = random_model(Architecture::new(Kind::ResNet18).with_width(0.0625).unwrap(), 1.0, 2);
    let groups = model.channel_groups().unwrap();
    // Each stage has the channels that its blocks add to, and two layers between of their own.
    assert_eq!(groups.len(), (4 + 8 + 16 + 32) * 3);
    let stem = groups.iter().find(|group| group.contains(&("conv1.weight".to_owned(), 2))).unwrap();
    let names = ["conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv2.weight", "layer1.1.bn2.bias"];
    assert!(names.iter().all(|name| stem.contains(&((*name).to_owned(), 2))), "{stem:?}");
    assert_eq!(stem.len(), 9);
}
