//! Compressed networks: lossless, small, and nothing hostile gets in.

mod common;

use common::files::{opened, sealed, sealed_as};
use common::{Noise, random_model};
use obprox_infer::{Architecture, Kind, Model, Pattern, Tensor, Values, Weights};
use proptest::prelude::*;
use serde_json::{Value, json};

fn narrow(kind: Kind, base: usize) -> Architecture {
    Architecture::new(kind).with_width(base as f64 / kind.full_base() as f64).unwrap()
}

fn message(bytes: &[u8]) -> String {
    Model::from_compressed(bytes).unwrap_err().to_string()
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
        at += parts(entry).iter().sum::<usize>();
    }
    panic!("{name} is not there");
}

/// Bytes of the parts of a tensor.
fn parts(entry: &Value) -> Vec<usize> {
    entry["parts"].as_array().unwrap().iter().map(|part| part.as_u64().unwrap() as usize).collect()
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
    // The positions take 7.2 bits, the values 24 of their digits and signs and a few of their exponents.
    let nonzeros: usize = model.weights().iter().map(|(_, tensor)| tensor.nnz()).sum();
    assert!((sparse as f64) < nonzeros as f64 * (24.0 + 4.0 + 7.2) / 8.0, "{sparse} bytes for {nonzeros} values");
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
    let newer = [&file[..8], &[4], &file[9..]].concat();
    assert!(message(&newer).starts_with("is of another version of obprox"));
}

#[test]
fn hostile_headers_are_refused() {
    let file = random_model(narrow(Kind::SmallCnn, 4), 0.2, 11).to_compressed().unwrap();
    type Case = (&'static str, fn(&mut Value));
    let cases: [Case; 21] = [
        ("header that is not one", |header| *header = json!([1, 2])),
        ("header that is not one", |header| header["tensors"] = json!("all")),
        ("header that is not one", |header| header["tensors"][0]["parts"][0] = json!(-1)),
        ("header that is not one", |header| header["tensors"][0]["values"] = json!("int4")),
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
        ("another size", |header| header["tensors"][0]["parts"] = json!([0])),
        ("another size", |header| header["tensors"][0]["values"] = json!("int8")),
        ("another size", |header| header["tensors"][0]["bytes"] = json!(3)),
        ("beyond the end of the file", |header| header["tensors"][0]["parts"][0] = json!(u64::MAX)),
        ("too small a file", |header| header["unfolded"] = json!(u64::MAX)),
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
    assert_eq!((&entry["coding"], &entry["values"]), (&json!("gaps"), &json!("planes")));
    let (header, body) = opened(&file);
    let start = at - (file.len() - body.len());
    let parts = parts(&entry);
    let (places, all) = (parts[0], parts.iter().sum::<usize>());
    let header = header.to_string();
    let damaged = |change: &dyn Fn(&mut [u8])| {
        let mut body = body.clone();
        change(&mut body[start..start + all]);
        Model::from_compressed(&sealed(header.as_bytes(), &body)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(damaged(&|_| {}), Ok(()));
    let corrupt = |result: Result<(), String>| result.unwrap_err().contains("conv2.weight has corrupt");
    // A parameter that shifts everything out, gaps without an end, gaps beyond the end, a frame that is none.
    assert!(corrupt(damaged(&|tensor| tensor[0] = 255)));
    assert!(corrupt(damaged(&|tensor| tensor[0] = 31)));
    assert!(corrupt(damaged(&|tensor| tensor[1..places].fill(255))));
    assert!(corrupt(damaged(&|tensor| tensor[1] = 255)));
    let last = all - parts[4];
    assert!(parts[4] < entry["nonzeros"].as_u64().unwrap() as usize, "exponents are a frame");
    assert!(corrupt(damaged(&|tensor| tensor[last..].fill(0))));
}

/// A linear layer of two outputs and eight inputs in a file of its own, its values told as the header says.
fn layer(entry: Value, body: &[u8]) -> Result<Model, String> {
    let mut entry = entry;
    entry["name"] = json!("w");
    entry["shape"] = json!([2, 8]);
    let graph = json!([{"op": "input", "shape": [8]}, {"op": "linear", "name": "l", "inputs": [0], "weight": "w"}]);
    let header = json!({"graph": graph, "tensors": [entry]}).to_string();
    Model::from_compressed(&sealed(header.as_bytes(), body)).map_err(|error| error.to_string())
}

#[test]
fn scales_and_steps_are_read_and_what_they_cannot_be_is_refused() {
    let entry = |nonzeros: usize, parts: [usize; 3]| json!({"coding": "bitmap", "nonzeros": nonzeros, "values": "int8", "parts": parts});
    let scales = |one: f32, two: f32| [one.to_le_bytes(), two.to_le_bytes()].concat();
    let body =
        |scales: Vec<u8>, steps: [i8; 3]| [&[0b101, 0b1000_0000][..], &scales, &steps.map(|step| step as u8)].concat();
    let model = layer(entry(3, [2, 8, 3]), &body(scales(0.5, 0.25), [2, -3, 127])).unwrap();
    let mut expected = [0.0; 16];
    (expected[0], expected[2], expected[15]) = (1.0, -1.5, 31.75);
    assert_eq!(model.weights().get("w").unwrap().data(), expected);
    for (entry, body, why) in [
        // A step of 0, a scale of 0, one that is not finite, too few steps, more values than there are places.
        (entry(3, [2, 8, 3]), body(scales(0.5, 0.25), [2, 0, 127]), "corrupt positions"),
        (entry(3, [2, 8, 3]), body(scales(0.5, 0.0), [2, -3, 127]), "corrupt positions"),
        (entry(3, [2, 8, 3]), body(scales(f32::INFINITY, 0.25), [2, -3, 127]), "not finite"),
        (entry(3, [2, 8, 2]), body(scales(0.5, 0.25), [2, -3, 127])[..12].to_vec(), "corrupt values"),
        (entry(17, [2, 8, 3]), body(scales(0.5, 0.25), [2, -3, 127]), "another size"),
        (entry(usize::MAX, [2, 8, 3]), body(scales(0.5, 0.25), [2, -3, 127]), "another size"),
    ] {
        let found = layer(entry, &body).unwrap_err();
        assert!(found.contains(why), "{found}: {why}");
    }
}

/// A file of version 1: a network known by name, no graph, one run of values as they are.
#[test]
fn files_of_version_1_are_read() {
    let model = random_model(narrow(Kind::SmallCnn, 2), 0.3, 15);
    let (mut header, _) = opened(&model.to_compressed().unwrap());
    let (mut body, mut entries) = (Vec::new(), Vec::new());
    for (name, tensor) in model.weights().iter() {
        let start = body.len();
        for values in tensor.data().chunks(8) {
            let bits = values.iter().enumerate().map(|(at, value)| u8::from(value.to_bits() != 0) << at);
            body.push(bits.sum::<u8>());
        }
        let values = tensor.data().iter().filter(|value| value.to_bits() != 0);
        let nonzeros = values.clone().count();
        values.for_each(|value| body.extend(value.to_le_bytes()));
        let (shape, bytes) = (tensor.shape(), body.len() - start);
        entries.push(json!({"name": name, "shape": shape, "coding": "bitmap", "nonzeros": nonzeros, "bytes": bytes}));
    }
    header["tensors"] = json!(entries);
    header.as_object_mut().unwrap().remove("unfolded");
    assert!(header.get("graph").is_none() && header.get("architecture").is_some());
    assert_eq!(Model::from_compressed(&sealed_as(1, header.to_string().as_bytes(), &body)).unwrap(), model);
}

/// A file of version 2, as it was written before: one run of values as they are.
#[test]
fn files_of_version_2_are_read() {
    let entry = json!({"name": "w", "shape": [2, 8], "coding": "bitmap", "nonzeros": 2, "bytes": 10});
    let graph = json!([{"op": "input", "shape": [8]}, {"op": "linear", "name": "l", "inputs": [0], "weight": "w"}]);
    let header = json!({"graph": graph, "tensors": [entry]}).to_string();
    let body = [&[0b10, 0b1][..], &1.5f32.to_le_bytes(), &(-2.0f32).to_le_bytes()].concat();
    let model = Model::from_compressed(&sealed_as(2, header.as_bytes(), &body)).unwrap();
    let mut expected = [0.0; 16];
    (expected[1], expected[8]) = (1.5, -2.0);
    assert_eq!(model.weights().get("w").unwrap().data(), expected);
    // Gaps of k = 1: one zero, then six.
    let gaps = header.replace("bitmap", "gaps");
    let body = [&[1, 0b0001_1110][..], &body[2..]].concat();
    let same = Model::from_compressed(&sealed_as(2, gaps.as_bytes(), &body)).unwrap();
    assert_eq!(same.weights(), model.weights());
    let zero = [&body[..6], &[0; 4]].concat();
    assert!(message(&sealed_as(2, gaps.as_bytes(), &zero)).contains("corrupt positions"));
}

#[test]
fn a_header_is_not_unfolded_to_anything() {
    let file = random_model(narrow(Kind::SmallCnn, 4), 0.1, 12).to_compressed().unwrap();
    let with_full = |full: u32| [&file[..28], &full.to_le_bytes(), &file[32..]].concat();
    assert!(message(&with_full(u32::MAX)).contains("a header that is too long"));
    assert!(message(&with_full(100)).contains("another size"));
    assert!(message(&with_full(u32::from_le_bytes(file[28..32].try_into().unwrap()) + 1)).contains("another size"));
}

#[test]
fn rounded_networks_are_smaller_and_stay_what_they_are() {
    for kind in Kind::ALL {
        let model = random_model(narrow(kind, 4), 0.2, 14);
        let mut last = model.to_compressed().unwrap().len();
        for values in [Values::Bf16, Values::Int8] {
            let rounded = model.rounded(values).unwrap();
            let file = rounded.to_compressed().unwrap();
            // To the bit, however often.
            let read = Model::from_compressed(&file).unwrap();
            assert_eq!(read, rounded);
            assert_eq!(read.rounded(values).unwrap(), rounded);
            assert_eq!(read.to_compressed().unwrap(), file);
            assert!(file.len() < last, "{kind} {values}: {} after {last}", file.len());
            last = file.len();
            for (name, tensor) in model.weights().iter().filter(|(_, tensor)| tensor.shape().len() < 2) {
                assert_eq!(rounded.weights().get(name), Some(tensor), "{name} is no weight");
            }
        }
        let entry = tensor(&model.rounded(Values::Int8).unwrap().to_compressed().unwrap(), "conv1.weight");
        assert!(kind != Kind::SmallCnn || entry.1["values"] != "planes", "{}", entry.1);
    }
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

/// Whatever the density and the pattern, the file is no larger than what zstd makes of all values.
#[test]
fn no_file_is_larger_than_zstd_makes_of_the_dense_one() {
    let check = |model: &Model, what: &str| {
        let (file, dense) = (model.to_compressed().unwrap().len(), model.dense_sizes().unwrap().zstd);
        // The headers of networks of a few hundred bytes differ by some bytes either way.
        assert!(file <= dense + 64, "{what}: {file} bytes, and zstd makes {dense} of the dense file");
    };
    for kind in Kind::ALL {
        // What has more values than are tried as one frame, too.
        for base in [1, 10] {
            for density in [0.01, 0.09, 0.3, 0.7, 1.0] {
                for pattern in [Pattern::Even, Pattern::Uneven] {
                    let model = Model::random_with(narrow(kind, base), density, pattern, base as u64).unwrap();
                    check(&model, &format!("{kind} {base}, {density}, {pattern:?}"));
                    if base == 1 && pattern == Pattern::Uneven {
                        for values in [Values::Bf16, Values::Int8] {
                            check(&model.rounded(values).unwrap(), &format!("{kind}, {density}, {values}"));
                        }
                    }
                }
            }
        }
    }
    // Weights times a mask: half of the zeros are negative.
    for density in [0.05, 0.15, 0.5] {
        let (architecture, mut weights, training) = random_model(narrow(Kind::ResNet18, 10), 1.0, 2).into_parts();
        let names: Vec<String> = weights.names().map(str::to_owned).collect();
        let mut noise = Noise::new(3);
        for name in names {
            let tensor = weights.get_mut(&name).unwrap();
            if tensor.shape().len() > 1 {
                let mut mask = || f32::from(u8::from(noise.unit() < density));
                tensor.data_mut().iter_mut().for_each(|value| *value *= mask());
            }
        }
        let model = Model::new(architecture, weights, training).unwrap();
        assert_eq!(Model::from_compressed(&model.to_compressed().unwrap()).unwrap(), model);
        for values in Values::ALL {
            check(&model.rounded(values).unwrap(), &format!("times a mask of {density}, {values}"));
        }
    }
    // Nothing at all, the same everywhere, few different values, and what two tensors have in common.
    let (architecture, weights, training) = random_model(narrow(Kind::ResNet18, 4), 1.0, 1).into_parts();
    type Change = fn(usize, f32) -> f32;
    let changes: [Change; 4] =
        [|_, _| 0.0, |_, _| 0.25, |at, _| (at % 7) as f32 - 3.0, |at, _| ((at * at) % 4093) as f32];
    for (number, change) in changes.into_iter().enumerate() {
        let changed = weights.iter().map(|(name, tensor)| {
            let data = tensor.data().iter().enumerate().map(|(at, &value)| change(at, value).abs()).collect();
            (name.to_owned(), Tensor::new(tensor.shape().to_vec(), data).unwrap())
        });
        check(
            &Model::new(architecture.clone(), changed.collect(), training.clone()).unwrap(),
            &format!("case {number}"),
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Random damage behind a checksum that agrees: an error or a network, and never anything else.
    #[test]
    fn damage_that_the_checksum_misses(seed in 0u64..1000, places in prop::collection::vec((any::<u16>(), any::<u8>()), 1..6)) {
        let kind = Kind::ALL[seed as usize % 3];
        let mut noise = Noise::new(seed);
        let file = random_model(narrow(kind, 1), noise.unit(), seed % 7).to_compressed().unwrap();
        let (header, mut body) = opened(&file);
        let mut header = header.to_string().into_bytes();
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
