//! idx, CIFAR-10, PNG and JPEG.

use obprox_infer::images::{read, read_labels};

use crate::{Reader, Scratch};

/// An idx file of bytes.
fn idx(sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let sizes_of: Vec<u8> = sizes.iter().flat_map(|size| size.to_be_bytes()).collect();
    [&[0, 0, 8, sizes.len() as u8][..], &sizes_of, values].concat()
}

pub fn labels() -> Reader {
    let scratch = Scratch::new("labels.idx");
    Reader::new("idx-labels", vec![idx(&[3], &[1, 2, 3])], move |bytes| {
        read_labels(scratch.holding(bytes)).is_ok_and(|labels| {
            assert!(labels.len() < bytes.len());
            true
        })
    })
}

/// Images as they are, without a compression.
pub fn raw() -> Reader {
    let images = idx(&[3, 4, 5], &[7; 60]);
    let cifar: Vec<u8> = (0..2).flat_map(|image| std::iter::once(image).chain([9; 3072])).collect();
    images_in("idx-and-cifar", "images.bin", vec![images, cifar])
}

pub fn pictures() -> Reader {
    let square = image::RgbImage::from_fn(8, 6, |x, y| image::Rgb([x as u8 * 20, y as u8 * 30, 5]));
    let picture = |format| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        square.write_to(&mut bytes, format).expect("memory does not fail");
        bytes.into_inner()
    };
    images_in("pictures", "picture", vec![picture(image::ImageFormat::Png), picture(image::ImageFormat::Jpeg)])
}

fn images_in(name: &'static str, file: &'static str, seeds: Vec<Vec<u8>>) -> Reader {
    let scratch = Scratch::new(file);
    Reader::new(name, seeds, move |bytes| {
        let path = scratch.holding(bytes);
        let Ok(images) = read(&path) else { return false };
        assert_eq!(images.pixels().len(), images.len() * images.image_len());
        assert!(images.labels().is_none_or(|labels| labels.len() == images.len()));
        true
    })
}
