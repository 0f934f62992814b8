//! Bytes → what a network takes: brought to its size, scaled to [0, 1], shifted and scaled by channel.

use obprox::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Images;

/// How images are prepared: resized to `height × width`, then (x/255 − mean)/std in each channel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preprocessing {
    /// Rows of the network's input.
    pub height: usize,
    /// Columns of the network's input.
    pub width: usize,
    /// Mean of each channel.
    pub mean: Vec<f32>,
    /// Standard deviation of each channel.
    pub std: Vec<f32>,
}

/// The largest side that a network is fed with.
const MOST_SIDE: usize = 1 << 12;

impl Preprocessing {
    /// The means and deviations of ImageNet, in use for 3 channels whatever the data.
    pub fn imagenet(side: usize) -> Self {
        Self { height: side, width: side, mean: vec![0.485, 0.456, 0.406], std: vec![0.229, 0.224, 0.225] }
    }

    /// Values in [0, 1], as they are.
    pub fn plain(side: usize, channels: usize) -> Self {
        Self { height: side, width: side, mean: vec![0.0; channels], std: vec![1.0; channels] }
    }

    /// Channels of the network's input.
    pub fn channels(&self) -> usize {
        self.mean.len()
    }

    /// Channels, height and width of the network's input.
    pub fn shape(&self) -> [usize; 3] {
        [self.channels(), self.height, self.width]
    }

    /// That it can be applied.
    pub fn check(&self) -> Result<()> {
        let Self { height, width, mean, std } = self;
        if ![height, width].iter().all(|side| (1..=MOST_SIDE).contains(*side)) {
            return Err(Error::Data(format!("images of {height}×{width}: sides go from 1 to {MOST_SIDE}")));
        }
        if mean.len() != std.len() || mean.is_empty() {
            let (means, stds) = (mean.len(), std.len());
            return Err(Error::Data(format!("{means} means and {stds} deviations: one of each a channel")));
        }
        match mean.iter().all(|mean| mean.is_finite()) && std.iter().all(|std| *std > 0.0 && std.is_finite()) {
            true => Ok(()),
            false => Err(Error::Data("means must be finite, deviations finite and above zero".into())),
        }
    }

    /// Images as the network takes them, image by image, channel by channel, row by row.
    pub fn apply(&self, images: &Images) -> Result<Vec<f32>> {
        let fitted;
        let images = if images.shape() == self.shape() {
            images
        } else {
            fitted = images.fitted(self.shape())?;
            &fitted
        };
        let mut values = vec![0.0; images.pixels().len()];
        self.normalise(images.pixels(), &mut values);
        Ok(values)
    }

    /// The second half of [`apply`](Self::apply), for images that have the network's size already.
    pub fn normalise(&self, pixels: &[u8], values: &mut [f32]) {
        let plane = self.height * self.width;
        let planes = values.par_chunks_mut(plane).zip(pixels.par_chunks(plane)).enumerate();
        planes.with_min_len(64).for_each(|(index, (values, pixels))| {
            let channel = index % self.channels();
            let (mean, std) = (self.mean[channel], self.std[channel]);
            for (value, &pixel) in values.iter_mut().zip(pixels) {
                *value = (f32::from(pixel) / 255.0 - mean) / std;
            }
        });
    }
}
