//! Compressed networks: lossless, small, and nothing hostile gets in.

mod common;

use common::{Noise, random_model};
use obprox_infer::{Architecture, Kind, Model, Tensor, Weights};
use proptest::prelude::*;
use serde_json::{Value, json};

fn narrow(kind: Kind, base: usize) -> Architecture {
    Architecture::new(kind).with_width(base as f64 / kind.full_base() as f64).unwrap()
}

fn message(bytes: &[u8]) -> String {
    Model::from_compressed(bytes).unwrap_err().to_string()
}

/// A file whose length and checksum agree, whatever is in it.
fn sealed(header: &[u8], body: &[u8]) -> Vec<u8> {
    let rest = [header, body].concat();
    let mut file = b"OBZNET\x1a\n\x02\0\0\0".to_vec();
    file.extend((header.len() as u32).to_le_bytes());
    file.extend((32 + rest.len() as u64).to_le_bytes());
    file.extend(crc32fast::hash(&rest).to_le_bytes());
    file.extend([0; 4]);
    file.extend(rest);
    file
}

/// The header and the tensors of a file.
fn opened(file: &[u8]) -> (Value, Vec<u8>) {
    let end = 32 + u32::from_le_bytes(file[12..16].try_into().unwrap()) as usize;
    (serde_json::from_slice(&file[32..end]).unwrap(), file[end..].to_vec())
}

/// A sound file with its header changed.
fn with_header(file: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let (mut header, body) = opened(file);
    change(&mut header);
    sealed(header.to_string().as_bytes(), &body)
}

/// Where a tensor lies in a file, and its entry in the header.
fn tensor(file: &[u8], name: &str) -> (usize, Value) {
    let (header, body) = opened(file);
    let mut at = file.len() - body.len();
    for entry in header["tensors"].as_array().unwrap() {
        if entry["name"] == name {
            return (at, entry.clone());
        }
        at += entry["bytes"].as_u64().unwrap() as usize;
    }
    panic!("{name} is not there");
}

#[test]
fn what_is_written_is_read_to_the_same_bits() {
    let directory = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        for (density, seed) in [(0.0, 1), (0.001, 2), (0.02, 3), (0.3, 4), (0.7, 5), (1.0, 6)] {
            let model = random_model(narrow(kind, 8), density, seed);
            let path = directory.path().join("net.obz");
            let size = model.write_compressed(&path).unwrap();
            assert_eq!(size, std::fs::metadata(&path).unwrap().len());
            assert_eq!(Model::read(&path).unwrap(), model, "{kind} {density}");
        }
    }
}

#[test]
fn odd_values_are_kept() {
    let (architecture, mut weights, training) = random_model(narrow(Kind::SmallCnn, 8), 0.1, 7).into_parts();
    let odd = [-0.0, f32::MIN_POSITIVE / 4.0, f32::MAX, f32::MIN];
    weights.get_mut("conv2.weight").unwrap().data_mut()[100..104].copy_from_slice(&odd);
    let model = Model::new(architecture, weights, training).unwrap();
    let read = Model::from_compressed(&model.to_compressed().unwrap()).unwrap();
    let bits = |model: &Model| -> Vec<u32> {
        model.weights().iter().flat_map(|(_, tensor)| tensor.data().iter().map(|value| value.to_bits())).collect()
    };
    assert_eq!(bits(&read), bits(&model));
}

#[test]
fn the_smallest_coding_is_taken() {
    let coding = |density: f32| {
        let file = random_model(narrow(Kind::SmallCnn, 16), density, 8).to_compressed().unwrap();
        tensor(&file, "conv3.weight").1["coding"].as_str().unwrap().to_owned()
    };
    assert_eq!([0.02, 0.2, 0.6, 1.0].map(coding), ["gaps", "gaps", "bitmap", "dense"]);
}

#[test]
fn a_full_resnet18_of_two_percent_takes_a_25th() {
    let model = random_model(Architecture::new(Kind::ResNet18), 0.02, 9);
    let (dense, sparse) = (model.to_safetensors().unwrap().len(), model.to_compressed().unwrap().len());
    assert!(25 * sparse <= dense, "{sparse} of {dense} bytes");
    // Beside the values the positions take 7.2 bits, and the batch norms and the header are dense.
    let nonzeros: usize = model.weights().iter().map(|(_, tensor)| tensor.nnz()).sum();
    assert!((sparse as f64) < 1.02 * nonzeros as f64 * (32.0 + 7.2) / 8.0, "{sparse} bytes for {nonzeros} values");
}

#[test]
fn truncated_and_damaged_files_are_refused() {
    let file = random_model(narrow(Kind::SmallCnn, 2), 0.2, 10).to_compressed().unwrap();
    for len in 0..file.len() {
        assert!(Model::from_compressed(&file[..len]).is_err(), "cut to {len} bytes");
    }
    for at in 0..file.len() {
        for bit in 0..8 {
            let mut damaged = file.clone();
            damaged[at] ^= 1 << bit;
            assert!(Model::from_compressed(&damaged).is_err(), "bit {bit} of byte {at}");
        }
    }
    assert!(message(&[&file[..], b"x"].concat()).starts_with("has another length than it says"));
    assert!(message(b"short").starts_with("is too short for a compressed network"));
    assert!(message(&[b'x'; 100]).starts_with("is no compressed network of obprox"));
    let newer = [&file[..8], &[3], &file[9..]].concat();
    assert!(message(&newer).starts_with("is of another version of obprox"));
}

#[test]
fn hostile_headers_are_refused() {
    let file = random_model(narrow(Kind::SmallCnn, 4), 0.2, 11).to_compressed().unwrap();
    type Case = (&'static str, fn(&mut Value));
    let cases: [Case; 17] = [
        ("header that is not one", |header| *header = json!([1, 2])),
        ("header that is not one", |header| header["tensors"] = json!("all")),
        ("header that is not one", |header| header["tensors"][0]["bytes"] = json!(-1)),
        ("header that is not one", |header| header["tensors"][0]["coding"] = json!("zip")),
        ("header that is not one", |header| header["architecture"]["kind"] = json!("vgg")),
        ("width: ", |header| header["architecture"]["base"] = json!(u64::MAX)),
        ("classes: ", |header| header["architecture"]["classes"] = json!(0)),
        ("is too small a file", |header| header["architecture"]["base"] = json!(4096)),
        ("not a parameter of the network", |header| header["architecture"]["base"] = json!(5)),
        ("not a parameter of the network", |header| header["tensors"][0]["name"] = json!("other.weight")),
        ("not a parameter of the network", |header| header["tensors"][0]["shape"] = json!([u64::MAX, u64::MAX])),
        ("is there twice", |header| header["tensors"][1] = header["tensors"][0].clone()),
        ("which is missing", |header| header["tensors"] = json!([])),
        ("another size", |header| header["tensors"][0]["bytes"] = json!(3)),
        ("beyond the end of the file", |header| header["tensors"][0]["bytes"] = json!(u64::MAX)),
        ("deviations", |header| header["preprocessing"]["std"] = json!([0, 0, 0])),
        ("names 1 classes", |header| header["labels"] = json!(["one"])),
    ];
    for (expected, change) in cases {
        let hostile = with_header(&file, change);
        let found = Model::from_compressed(&hostile).map(|_| ()).map_err(|error| error.to_string());
        let found = found.expect_err(expected);
        assert!(found.contains(expected) || expected == "which is missing", "{found}: {expected}");
        assert!(!found.contains('\n'));
    }
    let past_end = sealed(b"{}", b"");
    let past_end = [&past_end[..12], &[0xff; 4], &past_end[16..]].concat();
    assert!(message(&past_end).starts_with("has a header beyond its end"));
}

#[test]
fn hostile_tensors_are_refused() {
    let file = random_model(narrow(Kind::SmallCnn, 4), 0.1, 12).to_compressed().unwrap();
    let (at, entry) = tensor(&file, "conv2.weight");
    assert_eq!(entry["coding"], "gaps");
    let (_, body) = opened(&file);
    let start = at - (file.len() - body.len());
    let (bytes, nonzeros) = (entry["bytes"].as_u64().unwrap() as usize, entry["nonzeros"].as_u64().unwrap() as usize);
    let header = serde_json::to_vec(&opened(&file).0).unwrap();
    let damaged = |change: &dyn Fn(&mut [u8])| {
        let mut body = body.clone();
        change(&mut body[start..start + bytes]);
        Model::from_compressed(&sealed(&header, &body)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(damaged(&|_| {}), Ok(()));
    let corrupt = |result: Result<(), String>| result.unwrap_err().contains("conv2.weight has corrupt positions");
    // A parameter that shifts everything out, gaps without an end, gaps beyond the end, a zero kept as a value.
    assert!(corrupt(damaged(&|tensor| tensor[0] = 255)));
    assert!(corrupt(damaged(&|tensor| tensor[0] = 31)));
    assert!(corrupt(damaged(&|tensor| tensor[1..bytes - 4 * nonzeros].fill(255))));
    assert!(corrupt(damaged(&|tensor| tensor[1] = 255)));
    assert!(corrupt(damaged(&|tensor| tensor[bytes - 4..].fill(0))));
    let not_finite = damaged(&|tensor| tensor[bytes - 4..].copy_from_slice(&f32::NAN.to_le_bytes()));
    assert_eq!(not_finite.unwrap_err(), "conv2.weight holds a value that is not finite");
}

/// Tensors of a network that only its maker can run.
fn foreign_weights() -> Weights {
    let tensors = [
        ("embed.weight", vec![3, 4], vec![0.0, 1.5, 0.0, -0.0, 0.0, 0.0, f32::INFINITY, 0.0, 0.0, 0.0, -2.0, 0.0]),
        ("gain", vec![], vec![2.5]),
        ("none", vec![0, 7], vec![]),
    ];
    tensors.into_iter().map(|(name, shape, data)| (name.to_owned(), Tensor::new(shape, data).unwrap())).collect()
}

#[test]
fn tensors_of_any_network_come_back_to_the_bit() {
    let bits = |weights: &Weights| -> Vec<(String, Vec<usize>, Vec<u32>)> {
        let one = |(name, tensor): (&str, &Tensor)| {
            (name.to_owned(), tensor.shape().to_vec(), tensor.data().iter().map(|value| value.to_bits()).collect())
        };
        weights.iter().map(one).collect()
    };
    let file = foreign_weights().to_compressed().unwrap();
    assert_eq!(bits(&Weights::from_compressed(&file).unwrap()), bits(&foreign_weights()));
    assert!(message(&file).contains("names no layers"));
    // And those of a known network are tensors too.
    let model = random_model(narrow(Kind::SmallCnn, 4), 0.2, 13);
    assert_eq!(&Weights::from_compressed(&model.to_compressed().unwrap()).unwrap(), model.weights());
}

#[test]
fn tensors_of_any_network_do_not_unfold_to_anything() {
    let file = foreign_weights().to_compressed().unwrap();
    for shape in [json!([3, 4_000_000_000u64]), json!([1u64 << 32, 1u64 << 32]), json!([20_000, 1000])] {
        let hostile = with_header(&file, |header| header["tensors"][0]["shape"] = shape.clone());
        let error = Weights::from_compressed(&hostile).unwrap_err().to_string();
        assert!(error.starts_with("is too small a file"), "{shape}: {error}");
    }
    let twice = with_header(&file, |header| header["tensors"][1] = header["tensors"][0].clone());
    assert!(Weights::from_compressed(&twice).unwrap_err().to_string().contains("embed.weight is there twice"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Random damage behind a checksum that agrees: an error or a network, and never anything else.
    #[test]
    fn damage_that_the_checksum_misses(seed in 0u64..1000, places in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6)) {
        let kind = Kind::ALL[seed as usize % 3];
        let mut noise = Noise::new(seed);
        let file = random_model(narrow(kind, 1), noise.unit(), seed % 7).to_compressed().unwrap();
        let (header, body) = file[32..].split_at(u32::from_le_bytes(file[12..16].try_into().unwrap()) as usize);
        let (mut header, mut body) = (header.to_vec(), body.to_vec());
        for (at, value) in places {
            let part = if at % 2 == 0 { &mut header } else { &mut body };
            let len = part.len();
            part[at as usize % len] = value;
        }
        if let Ok(model) = Model::from_compressed(&sealed(&header, &body)) {
            let again = Model::from_compressed(&model.to_compressed().unwrap()).unwrap();
            prop_assert_eq!(again, model);
        }
    }

    /// Any values come back to the bit.
    #[test]
    fn any_tensor_comes_back(values in prop::collection::vec(prop_oneof![4 => Just(0.0f32), 1 => -1e3f32..1e3], 36)) {
        let (architecture, mut weights, training) = random_model(narrow(Kind::SmallCnn, 2).with_channels(2).unwrap(), 0.5, 1).into_parts();
        weights.get_mut("conv1.weight").unwrap().data_mut().copy_from_slice(&values);
        let model = Model::new(architecture, weights, training).unwrap();
        prop_assert_eq!(&Model::from_compressed(&model.to_compressed().unwrap()).unwrap(), &model);
    }
}
