//! Networks of any shape: random graphs against the slow twin, their files, and what is refused.

mod common;

use common::files::{opened, sealed};
use common::graphs::random_network;
use common::{Noise, assert_agrees, random_images, random_model};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::network::{Op, Window};
use obprox_infer::{Architecture, Kind, Model, Network, Tensor, Training, Weights};
use serde_json::{Value, json};

const KERNELS: [Kernels; 3] = [Kernels::Dense, Kernels::Sparse, Kernels::Auto];

#[test]
fn random_networks_compute_what_their_nodes_say() {
    for seed in 0..60 {
        let model = random_network(seed, [1.0, 0.5, 0.1][seed as usize % 3]);
        let &[_, height, width] = model.network().input_shape() else { panic!("it takes images") };
        let size = [height, width];
        let images = random_images(&model, if seed % 4 == 0 { 7 } else { 1 }, size, seed);
        for kernels in KERNELS {
            let scores = Engine::new(&model, kernels, size).unwrap().run(&images).unwrap();
            assert_agrees(
                &model,
                &scores,
                &images,
                size,
                &format!("seed {seed} {kernels:?}\n{}", model.network().to_json()),
            );
        }
        // And cleared of what is dead.
        let (clear, _) = model.without_dead_channels().unwrap();
        for kernels in KERNELS {
            let scores = Engine::new(&clear, kernels, size).unwrap().run(&images).unwrap();
            assert_agrees(&model, &scores, &images, size, &format!("cleared, seed {seed} {kernels:?}"));
        }
    }
}

#[test]
fn files_hold_the_graph() {
    for seed in 0..20 {
        let model = random_network(seed, 0.3);
        let file = model.to_compressed().unwrap();
        assert_eq!(file[8], 3, "the version");
        assert_eq!(Model::from_compressed(&file).unwrap(), model);
        assert_eq!(Model::from_safetensors(&model.to_safetensors().unwrap()).unwrap(), model);
    }
}

#[test]
fn networks_known_by_name_are_graphs_too() {
    for kind in Kind::ALL {
        let known = random_model(Architecture::new(kind).with_width(0.125).unwrap(), 0.3, 5);
        let graph = Model::new(known.network().clone(), known.weights().clone(), known.training().clone()).unwrap();
        let images = random_images(&known, 3, [32, 32], 1);
        let run = |model: &Model| Engine::new(model, Kernels::Auto, [32, 32]).unwrap().run(&images).unwrap();
        assert_eq!(run(&known), run(&graph));
        assert!(graph.design().architecture().is_err());
    }
}

/// A perceptron takes vectors.
#[test]
fn vectors_go_in_as_pixels() {
    let mut network = Network::new(&[5]);
    let linear = |name: &str| Op::Linear { weight: format!("{name}.weight"), bias: Some(format!("{name}.bias")) };
    let first = network.push("one", linear("one"), &[0]);
    let first = network.push("", Op::Gelu, &[first]);
    network.push("two", linear("two"), &[first]);
    let mut noise = Noise::new(1);
    let shapes = [("one.weight", vec![7, 5]), ("one.bias", vec![7]), ("two.weight", vec![3, 7]), ("two.bias", vec![3])];
    let weights: Weights = shapes
        .into_iter()
        .map(|(name, shape)| {
            let data = (0..shape.iter().product()).map(|_| noise.signed()).collect();
            (name.to_owned(), Tensor::new(shape, data).unwrap())
        })
        .collect();
    let model = Model::new(network, weights, Training::default()).unwrap();
    let inputs = random_images(&model, 9, [1, 1], 2);
    for kernels in KERNELS {
        let scores = Engine::new(&model, kernels, [1, 1]).unwrap().run(&inputs).unwrap();
        assert_agrees(&model, &scores, &inputs, [1, 1], "a perceptron");
    }
    let error = Engine::new(&model, Kernels::Auto, [8, 8]).unwrap_err().to_string();
    assert_eq!(error, "takes vectors of 5 numbers, not images");
}

fn small() -> Model {
    let mut network = Network::new(&[2, 6, 6]);
    let conv = Op::Conv { weight: "c.weight".into(), bias: None, window: Window::square(3, 1, 1), groups: 1 };
    let conv = network.push("c", conv, &[0]);
    let conv = network.push("", Op::Relu, &[conv]);
    let pooled = network.push("", Op::MaxPool { window: Window::square(2, 2, 0), ceil: false }, &[conv]);
    let flat = network.push("", Op::Flatten, &[pooled]);
    network.push("l", Op::Linear { weight: "l.weight".into(), bias: None }, &[flat]);
    let tensor = |shape: &[usize]| Tensor::new(shape, vec![0.5; shape.iter().product()]).unwrap();
    let weights = [("c.weight", tensor(&[3, 2, 3, 3])), ("l.weight", tensor(&[4, 27]))];
    let weights = weights.into_iter().map(|(name, tensor)| (name.to_owned(), tensor)).collect();
    Model::new(network, weights, Training::default()).unwrap()
}

#[test]
fn hostile_graphs_are_refused() {
    let file = small().to_compressed().unwrap();
    let (header, body) = opened(&file);
    type Case = (&'static str, fn(&mut Value));
    let cases: [Case; 22] = [
        ("node 2 (relu): takes the value of node 2", |h| h["graph"][2]["inputs"] = json!([2])),
        ("which does not come before it", |h| h["graph"][2]["inputs"] = json!([4])),
        ("takes 1 values, and is given 0", |h| h["graph"][2]["inputs"] = json!([])),
        ("takes 2 values, and is given 1", |h| h["graph"][2]["op"] = json!("add")),
        ("header that is not one", |h| h["graph"][2]["op"] = json!("lstm")),
        ("header that is not one", |h| h["graph"][2]["inputs"] = json!([-1])),
        ("header that is not one", |h| h["graph"] = json!({"nodes": 1})),
        ("a network of 0 nodes", |h| h["graph"] = json!([])),
        ("the first node is the input", |h| h["graph"][2] = h["graph"][0].clone()),
        ("is empty or too large", |h| h["graph"][0]["shape"] = json!([2, 4097, 6])),
        ("is empty or too large", |h| h["graph"][0]["shape"] = json!([u64::MAX, 6, 6])),
        ("[channels, height, width] or [length]", |h| h["graph"][0]["shape"] = json!([2, 6, 6, 6])),
        ("see 2 of 3 channels", |h| h["graph"][0]["shape"] = json!([3, 6, 6])),
        ("not between 1 and", |h| h["graph"][1]["stride"] = json!([0, 1])),
        ("not between 1 and", |h| h["graph"][1]["dilation"] = json!([u64::MAX, 1])),
        ("a padding of", |h| h["graph"][1]["padding"] = json!([u64::MAX, 0, 0, 0])),
        ("0 groups", |h| h["graph"][1]["groups"] = json!(0)),
        ("is padded by more than its window", |h| h["graph"][3]["padding"] = json!([2, 2, 2, 2])),
        ("its tensor gone is missing", |h| h["graph"][1]["weight"] = json!("gone")),
        ("takes 27 values, and is given 12", |h| h["graph"][0]["shape"] = json!([2, 4, 4])),
        ("is too small a file", |h| {
            h["graph"][0]["shape"] = json!([60_000_000, 1, 1]);
            h["graph"][1]["groups"] = json!(1);
            h["graph"].as_array_mut().unwrap().truncate(2);
            h["graph"][1]["kernel"] = json!([1, 1]);
            h["graph"][1]["padding"] = json!([0, 0, 0, 0]);
            h["tensors"][0]["shape"] = json!([1, 60_000_000, 1, 1]);
        }),
        ("tells of two networks", |h| {
            h["architecture"] = json!({"kind": "small-cnn", "base": 4, "channels": 3, "classes": 10});
        }),
    ];
    for (expected, change) in cases {
        let mut hostile = header.clone();
        change(&mut hostile);
        let found = Model::from_compressed(&sealed(hostile.to_string().as_bytes(), &body)).map(|_| ());
        let found = found.expect_err(expected).to_string();
        assert!(
            found.contains(expected) || expected == "is too small a file" && found.contains("too large"),
            "{found}: {expected}"
        );
    }
    // Brackets without end are no reason to run out of stack.
    let deep = format!("{{\"graph\":{}", "[".repeat(100_000));
    let nested = sealed(deep.as_bytes(), &body);
    assert!(Model::from_compressed(&nested).unwrap_err().to_string().contains("header that is not one"));
}
