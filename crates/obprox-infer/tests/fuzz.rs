//! Broken networks and pictures: an error or something sound, never a panic, never memory for what a file only claims.

mod common;
#[path = "../../obprox/tests/common/mutate.rs"]
mod mutate;

use common::random_model;
use mutate::every_case;
use obprox_infer::images::{read, read_labels};
use obprox_infer::{Architecture, Kind, Model, Weights};

fn model(seed: u64) -> Model {
    random_model(Architecture::new(Kind::SmallCnn).with_width(0.1).unwrap(), 0.1, seed)
}

#[test]
fn compressed_networks_are_whole_or_refused() {
    let seeds = [model(1).to_compressed().unwrap(), model(2).to_compressed().unwrap()];
    every_case("obz", &seeds, 1500, |bytes, _, _| {
        let outcome = Model::from_compressed(bytes);
        assert_eq!(outcome.is_ok(), seeds.iter().any(|seed| seed == bytes), "{:?}", outcome.err());
    });
}

#[test]
fn compressed_weights() {
    let seeds = [model(1).weights().to_compressed().unwrap()];
    every_case("weights", &seeds, 1000, |bytes, seed, _| {
        assert_eq!(Weights::from_compressed(bytes).is_ok(), bytes == seed);
    });
}

#[test]
fn safetensors() {
    let sound = model(1);
    let seeds = [sound.to_safetensors().unwrap()];
    every_case("safetensors", &seeds, 1500, |bytes, _, _| {
        let Ok(model) = Model::from_safetensors(bytes) else { return };
        // What is taken has the shape of a network that is known.
        assert_eq!(model.weights().len(), sound.weights().len());
    });
}

#[test]
fn pictures() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pictures.bin");
    let sizes = |sizes: &[u32]| sizes.iter().flat_map(|size| size.to_be_bytes()).collect::<Vec<u8>>();
    let images = [&[0, 0, 8, 3][..], &sizes(&[3, 4, 5]), &[7; 60]].concat();
    let labels = [&[0, 0, 8, 1][..], &sizes(&[3]), &[1, 2, 3]].concat();
    let cifar: Vec<u8> = (0..2).flat_map(|image| std::iter::once(image).chain([9; 3072])).collect();
    let picture = |image: image::RgbImage, format| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let square = image::RgbImage::from_fn(8, 6, |x, y| image::Rgb([x as u8 * 20, y as u8 * 30, 5]));
    let png = picture(square.clone(), image::ImageFormat::Png);
    let jpeg = picture(square, image::ImageFormat::Jpeg);
    let mut taken = 0;
    every_case("pictures", &[images, labels, cifar, png, jpeg], 2500, |bytes, _, _| {
        std::fs::write(&path, bytes).unwrap();
        if let Ok(images) = read(&path) {
            assert_eq!(images.pixels().len(), images.len() * images.image_len());
            assert!(images.labels().is_none_or(|labels| labels.len() == images.len()));
            taken += 1;
        }
        let _ = read_labels(&path);
    });
    assert!(taken > 20, "{taken} mutations could be read");
}
