//! PNG and JPEG pictures.

use std::io::Cursor;

use image::{ColorType, DynamicImage, ImageReader, Limits};
use obprox::{Error, Result};

use super::Images;

/// The largest side of a picture that is decoded.
const MOST_SIDE: u32 = 1 << 14;
/// The memory that decoding may take: neither format packs more than a thousand times, so a short file that claims to be a
/// large picture is broken.
const MOST_MEMORY: u64 = 1 << 30;
const MOST_PACKED: u64 = 1 << 10;
const LEAST_MEMORY: u64 = 1 << 20;

pub fn is_picture(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG") || bytes.starts_with(b"\xff\xd8\xff")
}

/// One image: grey where the picture is, three channels otherwise; an alpha channel is left out.
pub fn decode(name: &str, bytes: &[u8]) -> Result<Images> {
    let picture = decode_any(bytes).map_err(|error| Error::file(name, format!("cannot be decoded ({error})")))?;
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let grey = matches!(picture.color(), ColorType::L8 | ColorType::La8 | ColorType::L16 | ColorType::La16);
    if grey {
        return Images::new([1, height, width], picture.into_luma8().into_raw(), None);
    }
    let interleaved = picture.into_rgb8().into_raw();
    let planes = (0..3).flat_map(|channel| interleaved.iter().skip(channel).step_by(3).copied());
    Images::new([3, height, width], planes.collect(), None)
}

fn decode_any(bytes: &[u8]) -> image::ImageResult<DynamicImage> {
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    let mut limits = Limits::default();
    limits.max_image_width = Some(MOST_SIDE);
    limits.max_image_height = Some(MOST_SIDE);
    limits.max_alloc = Some((LEAST_MEMORY + MOST_PACKED * bytes.len() as u64).min(MOST_MEMORY));
    reader.limits(limits);
    reader.decode()
}
