//! PNG and JPEG pictures.

use std::io::Cursor;

use obprox::{Error, Result};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;

use super::Images;

/// The largest side of a picture that is decoded.
const MOST_SIDE: usize = 1 << 14;
/// The memory that decoding may take: neither format packs more than a thousand times, so a short file that claims to be a
/// large picture is broken.
const MOST_MEMORY: usize = 1 << 30;
const MOST_PACKED: usize = 1 << 10;
const LEAST_MEMORY: usize = 1 << 20;

const PNG: &[u8] = b"\x89PNG";

pub fn is_picture(bytes: &[u8]) -> bool {
    bytes.starts_with(PNG) || bytes.starts_with(b"\xff\xd8\xff")
}

/// One image: grey where the picture is, three channels otherwise; an alpha channel is left out.
pub fn decode(name: &str, bytes: &[u8]) -> Result<Images> {
    let picture = if bytes.starts_with(PNG) { decode_png(bytes) } else { decode_jpeg(bytes) };
    let picture = picture.map_err(|flaw| Error::file(name, format!("cannot be decoded ({flaw})")))?;
    let samples = picture.samples;
    let channels = if samples < 3 { 1 } else { 3 };
    let planes = (0..channels).flat_map(|channel| picture.values.iter().skip(channel).step_by(samples).copied());
    Images::new([channels, picture.height, picture.width], planes.collect(), None)
}

/// Pixel by pixel.
struct Picture {
    width: usize,
    height: usize,
    /// Values of a pixel: grey, red with green and blue, either with alpha.
    samples: usize,
    values: Vec<u8>,
}

/// What is wrong with a picture.
type Flaw = String;

/// Palettes are looked up, few bits become 8, and of 16 the upper 8 are kept.
fn decode_png(bytes: &[u8]) -> std::result::Result<Picture, Flaw> {
    let flaw = |error: png::DecodingError| error.to_string();
    let limits = png::Limits { bytes: allowance(bytes) };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(png::Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().map_err(flaw)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let size = reader.output_buffer_size().unwrap_or(usize::MAX);
    check_size(width, height, size, bytes)?;
    let mut values = vec![0; size];
    reader.next_frame(&mut values).map_err(flaw)?;
    Ok(Picture { width, height, samples: reader.output_color_type().0.samples(), values })
}

fn decode_jpeg(bytes: &[u8]) -> std::result::Result<Picture, Flaw> {
    let options = DecoderOptions::default().set_max_width(MOST_SIDE).set_max_height(MOST_SIDE);
    let mut decoder = zune_jpeg::JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    let (colours, samples) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        _ => (ColorSpace::RGB, 3),
    };
    check_size(width, height, samples * width * height, bytes)?;
    decoder.set_options(options.jpeg_set_out_colorspace(colours));
    let values = decoder.decode().map_err(|error| error.to_string())?;
    match values.len() == samples * width * height {
        true => Ok(Picture { width, height, samples, values }),
        false => Err("it has another number of pixels than it says".into()),
    }
}

fn allowance(bytes: &[u8]) -> usize {
    MOST_PACKED.saturating_mul(bytes.len()).saturating_add(LEAST_MEMORY).min(MOST_MEMORY)
}

fn check_size(width: usize, height: usize, size: usize, bytes: &[u8]) -> std::result::Result<(), Flaw> {
    if width.max(height) > MOST_SIDE {
        return Err(format!("it is {width}×{height}: sides go up to {MOST_SIDE}"));
    }
    match size <= allowance(bytes) {
        true => Ok(()),
        false => Err(format!("it says that it is {width}×{height}, and the file is too short for that")),
    }
}
