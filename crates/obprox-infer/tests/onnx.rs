//! ONNX: what is written is read as the same network, what is hostile or not known is refused.

mod common;

use common::graphs::random_network;
use common::{assert_agrees, random_images, random_model};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::{Architecture, Kind, Model};

fn agrees(model: &Model, other: &Model, what: &str) {
    let &[_, height, width] = model.network().input_shape() else { panic!("it takes images") };
    let images = random_images(model, 2, [height, width], 3);
    let scores = Engine::new(other, Kernels::Auto, [height, width]).unwrap().run(&images).unwrap();
    assert_agrees(model, &scores, &images, [height, width], what);
}

#[test]
fn random_networks_come_back() {
    let mut written = 0;
    for seed in 0..60 {
        let model = random_network(seed, 0.5);
        let bytes = match model.to_onnx() {
            Ok(bytes) => bytes,
            Err(error) => {
                // The only thing that there is no operation for.
                assert!(error.to_string().contains("adaptive-average-pool"), "{error}");
                continue;
            }
        };
        written += 1;
        let read = Model::from_onnx(&bytes, None).unwrap();
        assert_eq!(read.output_shape(), model.output_shape());
        agrees(&model, &read, &format!("seed {seed}"));
    }
    assert!(written > 30, "{written}");
}

#[test]
fn networks_known_by_name_go_out_and_come_in() {
    for kind in Kind::ALL {
        let model = random_model(Architecture::new(kind).with_width(0.125).unwrap(), 0.3, 5);
        let read = Model::from_onnx(&model.to_onnx().unwrap(), None).unwrap();
        assert_eq!(read.training(), model.training());
        assert_eq!(read.weights(), model.weights());
        agrees(&model, &read, kind.name());
    }
}

#[test]
fn damaged_files_are_refused_or_read() {
    let bytes = random_model(Architecture::new(Kind::SmallCnn).with_width(0.05).unwrap(), 0.3, 5).to_onnx().unwrap();
    for len in (0..bytes.len()).step_by(7) {
        assert!(Model::from_onnx(&bytes[..len], None).is_err(), "cut to {len}");
    }
    // Nothing but an error or a network, whatever byte is another.
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        drop(Model::from_onnx(&damaged, None));
    }
}

/// Files of networks that are no ONNX are read in one place, and that one says where ONNX is.
#[test]
fn where_an_onnx_file_goes_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("net.ONNX");
    let model = random_model(Architecture::new(Kind::SmallCnn).with_width(0.05).unwrap(), 0.3, 5);
    model.write_onnx(&path).unwrap();
    let error = Model::read(&path).unwrap_err().to_string();
    assert!(error.contains("net.ONNX: is an ONNX file by its name: read it by obprox net import"), "{error}");
    // What a file is goes by its content where that tells.
    model.write_compressed(&path).unwrap();
    assert_eq!(Model::read(&path).unwrap(), model);
}

/// A field of a protocol buffer that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = bytes.len();
    while len >= 0x80 {
        out.push(len as u8 | 0x80);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend(bytes);
    out
}

/// A file of these nodes: (operation, input, output).
fn file(nodes: &[(&str, &str, &str)]) -> Vec<u8> {
    let node = |(op, input, output): &(&str, &str, &str)| {
        [field(1, input.as_bytes()), field(2, output.as_bytes()), field(4, op.as_bytes())].concat()
    };
    let mut graph: Vec<u8> = nodes.iter().flat_map(|one| field(1, &node(one))).collect();
    let dimension = |size: u8| field(1, &[8, size]);
    let shape: Vec<u8> = [1, 2, 8, 8].into_iter().flat_map(dimension).collect();
    let of_type = field(1, &[vec![8, 1], field(2, &shape)].concat());
    graph.extend(field(11, &[field(1, b"x"), field(2, &of_type)].concat()));
    graph.extend(field(12, &field(1, b"y")));
    [vec![8, 9], field(7, &graph), field(8, &[16, 17])].concat()
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let message = |nodes: &[(&str, &str, &str)]| match Model::from_onnx(&file(nodes), None) {
        Ok(_) => "taken".to_owned(),
        Err(error) => error.to_string(),
    };
    assert_eq!(message(&[("Relu", "x", "y")]), "taken");
    assert_eq!(message(&[("Dropout", "x", "z"), ("Relu", "z", "y"), ("Sigmoid", "y", "w")]), "taken");
    assert_eq!(message(&[("LSTM", "x", "y")]), "node 0 (LSTM): the operation LSTM, as it is here, is not known");
    assert!(message(&[("Relu", "z", "y")]).contains("takes z, which no node before it makes"));
    assert!(message(&[("Relu", "y", "z"), ("Relu", "z", "y")]).contains("takes y, which no node before it makes"));
    assert!(message(&[("Relu", "x", "x")]).contains("makes x, which is there already"));
    assert!(message(&[("Relu", "x", "z")]).contains("no node makes the output y"));
    assert!(message(&[("Conv", "x", "y")]).contains("lacks a weight"));
    assert!(message(&[]).contains("is no ONNX file, or one without a network"));
    assert!(Model::from_onnx(&[], None).is_err());
    assert!(Model::from_onnx(b"OBZNET", None).is_err());
}

/// Files as other programs write them, with what onnxruntime makes of an input (`fixtures/make.py`).
#[test]
fn files_of_others_compute_what_onnxruntime_computes() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for name in ["same-padding", "in-pieces", "branches"] {
        let model = Model::read_onnx(directory.join(format!("{name}.onnx")), None).unwrap();
        let case = std::fs::read_to_string(directory.join(format!("{name}.json"))).unwrap();
        let case: serde_json::Value = serde_json::from_str(&case).unwrap();
        let numbers = |key: &str| -> Vec<f32> {
            case[key].as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect()
        };
        let &[_, height, width] = model.network().input_shape() else { panic!("it takes images") };
        assert_eq!(serde_json::json!(model.output_shape()), case["shape"], "{name}");
        for kernels in [Kernels::Dense, Kernels::Auto] {
            let found = Engine::new(&model, kernels, [height, width]).unwrap().run(&numbers("input")).unwrap();
            for (found, expected) in found.iter().zip(numbers("output")) {
                assert!((found - expected).abs() < 1e-5 * expected.abs().max(1.0), "{name}: {found} for {expected}");
            }
        }
    }
}
