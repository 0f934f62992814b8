//! Dead channels cut out: smaller layers, the same output.

mod common;

use common::graphs::{Builder, random_network};
use common::{assert_agrees, random_images, random_model};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::network::{Op, Window};
use obprox_infer::{Architecture, Kind, Model, Tensor, Weights};

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

/// A network of a few channels with what ties them: adds, concatenations, factors, layers that see one channel alone.
fn tiny(seed: u64) -> Model {
    let mut builder = Builder::new(seed, [2, 5, 5], 1.0);
    let mut value = 0;
    for step in 0..4 {
        let shape @ [channels, height, width] = builder.shapes[value];
        let made = match builder.below(5) + usize::from(step == 0) * 5 {
            0 if channels <= 3 => {
                let other = builder.conv(value, channels, Window::square(3, 1, 1), 1, true);
                let op = if builder.below(3) == 0 { Op::Multiply } else { Op::Add };
                builder.push("", op, &[value, other], shape)
            }
            1 if channels <= 3 => {
                let other = builder.conv(value, 2, Window::square(1, 1, 0), 1, true);
                builder.push("", Op::Concat, &[value, other], [channels + 2, height, width])
            }
            2 if channels <= 3 => {
                let made = builder.conv(value, channels, Window::square(3, 1, 1), channels, false);
                builder.norm(made)
            }
            _ if step < 3 => builder.conv(value, 2, Window::square(3, 1, 1), 1, true),
            _ => value,
        };
        value = builder.push("", Op::Relu, &[made], builder.shapes[made]);
    }
    builder.conv(value, 2, Window::square(1, 1, 0), 1, true);
    // No hole but those that are made.
    let (design, weights, training) = builder.model().into_parts();
    let filled = weights.iter().map(|(name, tensor)| {
        let data = tensor.data().iter().map(|&value| if value == 0.0 { 0.3 } else { value }).collect();
        (name.to_owned(), Tensor::new(tensor.shape().to_vec(), data).unwrap())
    });
    Model::new(design, filled.collect(), training).unwrap()
}

/// What makes each channel of each convolution but the last: names of tensors, and the row in all of them.
fn makers(model: &Model) -> Vec<(Vec<String>, usize)> {
    let nodes = model.network().nodes();
    let mut makers = Vec::new();
    for (at, node) in nodes.iter().enumerate().filter(|(at, _)| at + 1 < nodes.len()) {
        let Op::Conv { weight, bias, .. } = &node.op else { continue };
        let mut names = vec![weight.clone()];
        names.extend(bias.clone());
        for reader in nodes.iter().filter(|reader| reader.inputs.contains(&at)) {
            if let Op::BatchNorm { weight, bias, .. } = &reader.op {
                names.extend(weight.iter().chain(bias).cloned());
            }
        }
        let rows = model.weights().get(weight).unwrap().shape()[0];
        makers.extend((0..rows).map(|row| (names.clone(), row)));
    }
    makers
}

/// The groups are what a search through all sets of channels finds: the smallest that can be zero and cut out, each of them
/// and nothing else.
#[test]
fn groups_are_the_smallest_sets_that_can_go() {
    let (mut found, mut joint) = (0, 0);
    for seed in 0..40 {
        let model = tiny(seed);
        let makers = makers(&model);
        assert!(makers.len() <= 12, "seed {seed}: {}", makers.len());
        let rows = |weights: &Weights, name: &str| weights.get(name).map_or(0, |tensor| tensor.shape()[0]);
        let goes = |set: u32| {
            let (design, mut weights, training) = model.clone().into_parts();
            let mut fewer = std::collections::BTreeMap::new();
            for (_, (names, row)) in makers.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1) {
                *fewer.entry(names[0].clone()).or_insert(0) += 1;
                for name in names {
                    let tensor = weights.get_mut(name).unwrap();
                    let len = tensor.len() / tensor.shape()[0];
                    tensor.data_mut()[row * len..][..len].fill(0.0);
                }
            }
            if fewer.iter().any(|(name, count)| rows(&weights, name) == *count) {
                return false;
            }
            let cut = Model::new(design, weights, training).unwrap().cut().unwrap();
            makers.iter().all(|(names, _)| {
                let left = rows(model.weights(), &names[0]) - fewer.get(&names[0]).unwrap_or(&0);
                // So many went, and they are those that are zero.
                let values = cut.weights().get(&names[0]).map_or(&[][..], Tensor::data);
                let len = (values.len() / left.max(1)).max(1);
                rows(cut.weights(), &names[0]) == left
                    && values.chunks(len).all(|row| row.iter().any(|value| *value != 0.0))
            })
        };
        let can: Vec<u32> = (1..1 << makers.len()).filter(|&set| goes(set)).collect();
        let mut least: Vec<u32> = Vec::new();
        for &set in &can {
            if !can.iter().any(|&other| other != set && other & set == other) {
                least.push(set);
            }
        }
        let number = |(name, row): &(String, usize)| {
            makers.iter().position(|(names, its)| &names[0] == name && its == row).map_or(0, |at| 1 << at)
        };
        let mut groups: Vec<u32> = model
            .channel_groups()
            .unwrap()
            .iter()
            .map(|group| group.iter().map(number).fold(0, |a, b| a | b))
            .collect();
        groups.sort_unstable();
        assert_eq!(groups, least, "seed {seed}: {}", model.network().to_json());
        found += groups.len();
        joint += groups.iter().filter(|group| group.count_ones() > 1).count();
    }
    assert!(found > 100 && joint > 20, "{found} groups, {joint} of several layers");
}
