//! Networks from and to safetensors.

mod common;

use std::collections::HashMap;

use common::random_model;
use obprox_infer::{Architecture, Kind, Model};
use safetensors::tensor::{Dtype, TensorView};

fn small(kind: Kind) -> Architecture {
    Architecture::new(kind).with_width(4.0 / kind.full_base() as f64).unwrap()
}

/// A file as others write it: names changed, no metadata of ours.
fn foreign(model: &Model, rename: impl Fn(&str) -> String, more: &[(&str, Dtype, Vec<usize>, Vec<u8>)]) -> Vec<u8> {
    let mut parts: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = Vec::new();
    for (name, tensor) in model.weights().iter() {
        let bytes = tensor.data().iter().flat_map(|value| value.to_le_bytes()).collect();
        parts.push((rename(name), Dtype::F32, tensor.shape().to_vec(), bytes));
    }
    parts.extend(more.iter().cloned().map(|(name, dtype, shape, bytes)| (name.to_owned(), dtype, shape, bytes)));
    let views = parts
        .iter()
        .map(|(name, dtype, shape, bytes)| (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap()));
    safetensors::serialize(views, None::<HashMap<String, String>>).unwrap()
}

fn message(bytes: &[u8]) -> String {
    Model::from_safetensors(bytes).unwrap_err().to_string()
}

#[test]
fn parameters_are_those_of_the_well_known_networks() {
    // Counts of trainable parameters: torchvision's resnet18 without its 7×7 stem and 1000 classes, and the usual
    // MobileNetV1 for CIFAR-10.
    for (kind, count) in [(Kind::ResNet18, 11_173_962), (Kind::MobileNetV1, 3_217_226)] {
        let parameters = Architecture::new(kind).graph().parameters();
        let trainable = parameters.iter().filter(|parameter| !parameter.name.contains("running"));
        assert_eq!(
            trainable.map(|parameter| parameter.shape.iter().product::<usize>()).sum::<usize>(),
            count,
            "{kind}"
        );
    }
    let names: Vec<String> =
        Architecture::new(Kind::ResNet18).graph().parameters().into_iter().map(|parameter| parameter.name).collect();
    for name in ["conv1.weight", "bn1.running_var", "layer2.0.downsample.0.weight", "layer4.1.bn2.bias", "fc.bias"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    assert_eq!(names.len(), 62 + 40);
}

#[test]
fn what_is_written_is_read_to_the_same_bits() {
    let directory = tempfile::tempdir().unwrap();
    for kind in Kind::ALL {
        let model = random_model(small(kind).with_channels(1).unwrap().with_classes(7).unwrap(), 0.3, 1);
        let path = directory.path().join(kind.name());
        model.write_safetensors(&path).unwrap();
        assert_eq!(Model::read_safetensors(&path).unwrap(), model);
        // A file is a matter of the network alone: checkpoints and builds are compared byte for byte.
        let again = || model.to_safetensors().unwrap();
        assert!((0..16).all(|_| again() == std::fs::read(&path).unwrap()));
    }
}

/// To the byte what the format's own library writes, which takes it apart again.
#[test]
fn files_are_those_of_the_library_of_the_format() {
    let model = random_model(small(Kind::MobileNetV1), 0.3, 6);
    let bytes = model.to_safetensors().unwrap();
    let (_, header) = safetensors::SafeTensors::read_metadata(&bytes).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    for (name, tensor) in model.weights().iter() {
        let view = file.tensor(name).unwrap();
        let values: Vec<u8> = tensor.data().iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!((view.dtype(), view.shape(), view.data()), (Dtype::F32, tensor.shape(), &values[..]), "{name}");
    }
    let again = safetensors::serialize(file.tensors(), Some(header.metadata().clone().unwrap())).unwrap();
    assert!(again == bytes);
}

/// A file whose header says one thing more, or another.
#[test]
fn headers_that_lie_are_refused() {
    let whole = foreign(&random_model(small(Kind::SmallCnn), 1.0, 7), str::to_owned, &[]);
    let length = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(whole[8..8 + length].to_vec()).unwrap();
    let told = |header: &str, values: &[u8]| {
        message(&[&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), values].concat())
    };
    let values = &whole[8 + length..];
    let first = header.find("data_offsets\":[0,").unwrap();
    for (lie, why) in [
        (header.replacen("[0,", "[4,", 1), "are not where they should be"),
        (header.replacen("[0,", "[18446744073709551615,", 1), "are not where they should be"),
        (header.replacen("F32", "F16", 1), "bytes of type F16"),
        (header[..first].to_owned(), "its header"),
        (header.replacen('{', "{\"__metadata__\":3,", 1), "its metadata"),
    ] {
        assert!(told(&lie, values).contains(why), "{why}: {}", told(&lie, values));
    }
    assert!(told(&header, &[values, &[0; 4]].concat()).contains("its tensors take"));
    assert!(told(&header, &values[4..]).contains("are not where they should be"));
    assert!(message(&u64::MAX.to_le_bytes()).contains("ends within its header"));
}

#[test]
fn networks_of_others_are_recognised() {
    for kind in Kind::ALL {
        let architecture = small(kind).with_classes(3).unwrap();
        let model = random_model(architecture, 0.3, 2);
        let counter = ("module.bn1.num_batches_tracked", Dtype::I64, vec![], vec![7, 0, 0, 0, 0, 0, 0, 0]);
        let bytes = foreign(&model, |name| format!("module.{name}"), &[counter]);
        let read = Model::from_safetensors(&bytes).unwrap();
        assert_eq!((read.design().architecture().unwrap(), read.weights()), (architecture, model.weights()));
        assert_eq!(read.training(), &Default::default());
    }
    let model = random_model(small(Kind::ResNet18), 0.3, 3);
    let alias = |name: &str| name.replace("downsample", "shortcut").replace("fc.", "linear.");
    assert_eq!(Model::from_safetensors(&foreign(&model, alias, &[])).unwrap().weights(), model.weights());
}

#[test]
fn narrow_types_widen() {
    let model = random_model(small(Kind::SmallCnn), 1.0, 4);
    let fc = model.weights().get("fc.bias").unwrap().len();
    let without = |name: &str| if name == "fc.bias" { "module.x.num_batches_tracked".into() } else { name.to_owned() };
    for (dtype, one) in [(Dtype::F16, [0x00, 0x3c]), (Dtype::BF16, [0x80, 0x3f])] {
        let bytes = foreign(&model, without, &[("fc.bias", dtype, vec![fc], one.repeat(fc))]);
        let read = Model::from_safetensors(&bytes).unwrap();
        assert_eq!(read.weights().get("fc.bias").unwrap().data(), vec![1.0; fc]);
    }
    let bytes = foreign(&model, without, &[("fc.bias", Dtype::F64, vec![fc], vec![0; 8 * fc])]);
    assert_eq!(message(&bytes), "fc.bias is of type F64: save it as F32, F16 or BF16");
}

#[test]
fn what_is_no_network_is_refused() {
    let model = random_model(small(Kind::ResNet18), 0.3, 5);
    let same = |name: &str| name.to_owned();
    assert!(message(b"PK\x03\x04...").starts_with("is PyTorch's own format, not safetensors"));
    assert!(message(&[]).starts_with("is no sound safetensors file"));
    assert!(message(&model.to_safetensors().unwrap()[..4000]).starts_with("is no sound safetensors file"));
    let deeper = foreign(&model, same, &[("layer1.2.conv1.weight", Dtype::F32, vec![1], vec![0; 4])]);
    assert!(message(&deeper).ends_with("has no parameter layer1.2.conv1.weight"));
    let missing = foreign(&model, |name| name.replace("layer3.1.bn2.bias", "gone"), &[]);
    assert!(message(&missing).contains("asks for a parameter layer3.1.bn2.bias, which is missing"));
    let twice = foreign(&model, same, &[("module.fc.bias", Dtype::F32, vec![10], vec![0; 40])]);
    assert!(message(&twice).starts_with("holds the parameter fc.bias twice"));
    let nan = foreign(
        &model,
        |name| if name == "fc.bias" { "module.x.num_batches_tracked".into() } else { name.to_owned() },
        &[("fc.bias", Dtype::F32, vec![10], f32::NAN.to_le_bytes().repeat(10))],
    );
    assert_eq!(message(&nan), "fc.bias holds a value that is not finite");
    let other = foreign(&model, |name| format!("backbone.{name}"), &[]);
    assert!(message(&other).starts_with("its parameters are of no known network"));
}
