//! The idx files of MNIST and Fashion-MNIST: a magic number that tells type and dimensions, big-endian sizes, bytes.

use std::path::{Path, PathBuf};

use obprox::data::read_bytes;
use obprox::{Error, Result};

use super::{Images, MOST_BYTES};

/// Unsigned bytes in three dimensions.
const IMAGES: [u8; 4] = [0, 0, 8, 3];
/// Unsigned bytes in one dimension.
const LABELS: [u8; 4] = [0, 0, 8, 1];

/// The parts of the usual names by which the labels of images are found.
const USUAL_NAMES: (&str, &str) = ("images-idx3", "labels-idx1");

pub fn is_images(bytes: &[u8]) -> bool {
    bytes.starts_with(&IMAGES)
}

pub fn is_labels(bytes: &[u8]) -> bool {
    bytes.starts_with(&LABELS)
}

/// Reads the labels of an idx file, plain or compressed.
pub fn read_labels(path: impl AsRef<Path>) -> Result<Vec<u32>> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let bytes = read_bytes(path, MOST_BYTES)?;
    if !is_labels(&bytes) {
        return Err(Error::file(name, "byte 0: is no idx file of labels (it would start with 00 00 08 01)"));
    }
    let [count] = sizes(&name, &bytes)?;
    let labels = body(&name, &bytes, &[count])?;
    Ok(labels.iter().map(|&label| label.into()).collect())
}

pub fn parse_images(name: &str, bytes: Vec<u8>, labels: Option<(PathBuf, Vec<u32>)>) -> Result<Images> {
    let [count, height, width] = sizes(name, &bytes)?;
    if height == 0 || width == 0 {
        return Err(Error::file(name, format!("byte 8: images of {height}×{width} pixels have nothing in them")));
    }
    let pixels = body(name, &bytes, &[count, height, width])?.to_vec();
    let labels = match labels {
        Some((path, labels)) if labels.len() != count => {
            let (path, labels) = (path.display(), labels.len());
            return Err(Error::file(name, format!("has {count} images, and {path} has {labels} labels")));
        }
        labels => labels.map(|(_, labels)| labels),
    };
    Images::new([1, height, width], pixels, labels)
}

/// The labels that lie beside images under the usual name; compressed or not, whatever the images are.
pub fn labels_beside(path: &Path) -> Result<Option<(PathBuf, Vec<u32>)>> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.contains(USUAL_NAMES.0)) else {
        return Ok(None);
    };
    let name = name.replace(USUAL_NAMES.0, USUAL_NAMES.1);
    let bare = [".gz", ".xz", ".bz2", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let names = [name.clone(), bare.to_owned(), format!("{bare}.gz")];
    match names.iter().map(|name| path.with_file_name(name)).find(|path| path.is_file()) {
        Some(path) => read_labels(&path).map(|labels| Some((path, labels))),
        None => Ok(None),
    }
}

fn sizes<const N: usize>(name: &str, bytes: &[u8]) -> Result<[usize; N]> {
    let mut sizes = [0; N];
    for (dimension, size) in sizes.iter_mut().enumerate() {
        let at = 4 + 4 * dimension;
        let Some(&[a, b, c, d]) = bytes.get(at..at + 4) else {
            return Err(Error::file(
                name,
                format!("byte {}: the idx header ends early: get the file again", bytes.len()),
            ));
        };
        *size = u32::from_be_bytes([a, b, c, d]) as usize;
    }
    Ok(sizes)
}

/// What follows the header, which must be exactly what the sizes promise.
fn body<'a>(name: &str, bytes: &'a [u8], sizes: &[usize]) -> Result<&'a [u8]> {
    let header = 4 + 4 * sizes.len();
    let expected = crate::weights::element_count(sizes).and_then(|count| count.checked_add(header));
    if expected != Some(bytes.len()) {
        let expected = expected.map_or("more than can be counted".to_owned(), |expected| expected.to_string());
        let found = bytes.len();
        let message = format!("byte 4: sizes {sizes:?} make {expected} bytes, and the file has {found}: get it again");
        return Err(Error::file(name, message));
    }
    Ok(&bytes[header..])
}
