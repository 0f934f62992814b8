//! `.obz` and safetensors.

use obprox_infer::{Architecture, Kind, Model, Weights};

use crate::Reader;

fn model(seed: u64) -> Model {
    let architecture = Architecture::new(Kind::SmallCnn).with_width(0.1).expect("the width is sound");
    Model::random(architecture, 0.1, seed).expect("the network is sound")
}

fn compressed() -> Vec<Vec<u8>> {
    [1, 2].map(|seed| model(seed).to_compressed().expect("memory does not fail")).to_vec()
}

/// The same file with its header, and all tensors, as they are instead of as frames of zstd: what is changed in it is read.
pub fn unfolded(file: &[u8]) -> Vec<u8> {
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes")) as usize;
    let (header, body) = file[PREFIX..].split_at(number(12));
    let unfold = |frame: &[u8]| zstd::decode_all(frame).expect("it was written here");
    let header = if number(28) == 0 { header.to_vec() } else { unfold(header) };
    let mut header: serde_json::Value = serde_json::from_slice(&header).expect("it was written here");
    let is_frame = header.as_object_mut().expect("a header is an object").remove("unfolded").is_some();
    let body = if is_frame { unfold(body) } else { body.to_vec() };
    let header = header.to_string().into_bytes();
    let mut plain = file[..KNOWN].to_vec();
    plain.extend((header.len() as u32).to_le_bytes());
    plain.extend([0; 16]);
    plain.extend(header.iter().chain(&body));
    fitted(&plain, file).expect("it is longer than its prefix")
}

/// A compressed network that is not what was written is refused.
pub fn whole() -> Reader {
    let seeds = compressed();
    let sound = seeds.clone();
    Reader::new("obz", seeds, move |bytes| {
        let outcome = Model::from_compressed(bytes);
        let is_sound = sound.iter().any(|seed| seed == bytes);
        // Whoever sets out to make the sum fit can: it is against accidents. Then it fits the very bytes that were taken.
        // Versions before the present one are read too.
        let fits = || fitted(bytes, bytes).is_some_and(|fitted| fitted == bytes);
        assert!(!is_sound || outcome.is_ok(), "{:?}", outcome.err());
        assert!(is_sound || outcome.is_err() || fits());
        outcome.is_ok()
    })
}

/// The bytes before the header; magic and version are the first of them.
const PREFIX: usize = 32;
const KNOWN: usize = 12;

/// The file with a length, a sum and a beginning that fit.
fn fitted(bytes: &[u8], sound: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = bytes.to_vec();
    let (prefix, rest) = bytes.split_at_mut_checked(PREFIX)?;
    prefix[..KNOWN].copy_from_slice(&sound[..KNOWN]);
    prefix[16..24].copy_from_slice(&((PREFIX + rest.len()) as u64).to_le_bytes());
    prefix[24..28].copy_from_slice(&crc32fast::hash(rest).to_le_bytes());
    Some(bytes)
}

pub fn forged() -> Reader {
    let seeds: Vec<Vec<u8>> = compressed().iter().map(|file| unfolded(file)).collect();
    let sound = seeds[0].clone();
    let names = model(1).weights().len();
    Reader::new("obz-forged", seeds, move |bytes| {
        let Some(model) = fitted(bytes, &sound).and_then(|bytes| Model::from_compressed(&bytes).ok()) else {
            return false;
        };
        // What is taken has the shape of a network that is known, and is written again as it was read.
        assert_eq!(model.weights().len(), names);
        let again = Model::from_compressed(&model.to_compressed().expect("memory does not fail"));
        assert_eq!(again.expect("it was written here").weights().len(), names);
        true
    })
}

pub fn forged_weights() -> Reader {
    let written = |seed| model(seed).weights().to_compressed().expect("memory does not fail");
    let seeds = [1, 2].map(|seed| unfolded(&written(seed))).to_vec();
    let sound = seeds[0].clone();
    Reader::new("obz-weights-forged", seeds, move |bytes| {
        fitted(bytes, &sound).is_some_and(|bytes| Weights::from_compressed(&bytes).is_ok())
    })
}

pub fn safetensors() -> Reader {
    let sound = model(1);
    let names = sound.weights().len();
    Reader::new("safetensors", vec![sound.to_safetensors().expect("memory does not fail")], move |bytes| {
        Model::from_safetensors(bytes).is_ok_and(|model| {
            assert_eq!(model.weights().len(), names);
            true
        })
    })
}

/// The same network as a graph.
fn graph(seed: u64) -> Model {
    let (design, weights, training) = model(seed).into_parts();
    Model::new(design.network(), weights, training).expect("it was sound by name")
}

pub fn forged_graph() -> Reader {
    let seeds = [1, 2].map(|seed| unfolded(&graph(seed).to_compressed().expect("memory does not fail"))).to_vec();
    let sound = seeds[0].clone();
    Reader::new("obz-graph-forged", seeds, move |bytes| {
        let Some(model) = fitted(bytes, &sound).and_then(|bytes| Model::from_compressed(&bytes).ok()) else {
            return false;
        };
        let again = Model::from_compressed(&model.to_compressed().expect("memory does not fail"));
        assert!(again.expect("it was written here") == model);
        true
    })
}

pub fn onnx() -> Reader {
    let seeds = [1, 2].map(|seed| graph(seed).to_onnx().expect("it has operations for all")).to_vec();
    Reader::new("onnx", seeds, move |bytes| {
        Model::from_onnx(bytes, None).is_ok_and(|model| {
            let again = model.to_onnx().ok().map(|bytes| Model::from_onnx(&bytes, None).is_ok());
            assert!(again != Some(false), "what is written is read");
            true
        })
    })
}
