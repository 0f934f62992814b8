//! Images brought to another size and number of channels, as PIL (and so torchvision) does it: bilinear, with a wider
//! triangle where the image shrinks, rows first, rounded to bytes after each direction.

use obprox::{Error, Result};
use rayon::prelude::*;

use super::Images;

impl Images {
    /// The images in another shape of channels, height and width. Grey spreads over all channels, colour becomes grey
    /// by luma; other changes of the number of channels are refused.
    pub fn fitted(&self, [channels, height, width]: [usize; 3]) -> Result<Self> {
        let from = self.channels;
        if from != channels && from != 1 && (from, channels) != (3, 1) {
            return Err(Error::Data(format!("images of {from} channels cannot be made into images of {channels}")));
        }
        let size = channels.checked_mul(height).and_then(|size| size.checked_mul(width));
        let Some(size) = size.filter(|&size| size > 0 && size <= isize::MAX as usize / self.len().max(1)) else {
            return Err(Error::Data(format!("images cannot be made {channels}×{height}×{width}")));
        };
        let across = Taps::new(self.width, width);
        let down = Taps::new(self.height, height);
        let mut pixels = vec![0; self.len() * size];
        pixels.par_chunks_mut(size).enumerate().for_each(|(index, out)| {
            let grey;
            let image = match (from, channels) {
                (3, 1) => {
                    grey = luma(self.image(index));
                    &grey
                }
                _ => self.image(index),
            };
            let planes = image.chunks_exact(self.height * self.width).cycle();
            for (out, plane) in out.chunks_exact_mut(height * width).zip(planes) {
                resize_plane(plane, self.width, &across, &down, out);
            }
        });
        Self::new([channels, height, width], pixels, self.labels.clone())
    }
}

/// ITU-R 601, in 16 bits of fraction.
fn luma(image: &[u8]) -> Vec<u8> {
    let plane = image.len() / 3;
    let (red, rest) = image.split_at(plane);
    let (green, blue) = rest.split_at(plane);
    let mix =
        |((&r, &g), &b)| ((19595 * u32::from(r) + 38470 * u32::from(g) + 7471 * u32::from(b) + 0x8000) >> 16) as u8;
    red.iter().zip(green).zip(blue).map(mix).collect()
}

fn resize_plane(plane: &[u8], plane_width: usize, across: &Taps, down: &Taps, out: &mut [u8]) {
    let width = across.0.len();
    let narrowed: Vec<u8> =
        plane.chunks_exact(plane_width).flat_map(|row| across.0.iter().map(|tap| tap.of(|at| row[at]))).collect();
    for (out, tap) in out.chunks_exact_mut(width).zip(&down.0) {
        for (column, out) in out.iter_mut().enumerate() {
            *out = tap.of(|at| narrowed[at * width + column]);
        }
    }
}

/// For each pixel of the output of which pixels of the input it is the mean.
struct Taps(Vec<Tap>);

struct Tap {
    first: usize,
    weights: Vec<f32>,
}

impl Taps {
    fn new(from: usize, to: usize) -> Self {
        let scale = from as f64 / to as f64;
        let reach = scale.max(1.0);
        let taps = (0..to).map(|at| {
            let centre = (at as f64 + 0.5) * scale;
            let first = (centre - reach + 0.5).max(0.0) as usize;
            let end = ((centre + reach + 0.5) as usize).min(from);
            let triangle = |pixel: usize| (1.0 - ((pixel as f64 + 0.5 - centre) / reach).abs()).max(0.0);
            let sum: f64 = (first..end).map(triangle).sum();
            Tap { first, weights: (first..end).map(|pixel| (triangle(pixel) / sum) as f32).collect() }
        });
        Self(taps.collect())
    }
}

impl Tap {
    fn of(&self, pixel: impl Fn(usize) -> u8) -> u8 {
        let pairs = self.weights.iter().enumerate();
        let sum: f32 = pairs.map(|(offset, weight)| weight * f32::from(pixel(self.first + offset))).sum();
        (sum + 0.5) as u8
    }
}
