//! A batch of images in memory: sixteen images side by side, each channel in a frame of zeros.
//!
//! A pixel is sixteen floats, one of each image of a group: a whole vector, or a few. So no plane is too small for
//! vectors, a stride costs nothing, and a weight of a kernel is a number and a distance in memory. The frame lets a
//! kernel read its padding like any other pixel. It is shared: what is right of a row is left of the next, what is below
//! a channel is above the next.
//!
//! Everyone who writes planes leaves zeros in the frames, and in the lanes of images that are not there in gradients.

use rayon::prelude::*;

/// Images side by side.
pub const LANES: usize = 16;

/// The shape of a batch. Lengths are counted in pixels where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planes {
    /// Images.
    pub images: usize,
    /// Channels of an image.
    pub channels: usize,
    /// Rows of a channel.
    pub height: usize,
    /// Columns of a channel.
    pub width: usize,
    /// Zeros around a channel.
    pub frame: usize,
}

impl Planes {
    /// With the frame that kernels of three by three need.
    pub fn new([images, channels, height, width]: [usize; 4]) -> Self {
        Self { images, channels, height, width, frame: 1 }
    }

    /// Groups of images.
    pub fn groups(&self) -> usize {
        self.images.div_ceil(LANES)
    }

    /// Images in a group; only the last may have fewer than there are lanes.
    pub fn images_in(&self, group: usize) -> usize {
        LANES.min(self.images - group * LANES)
    }

    /// From one row to the next.
    pub fn row(&self) -> usize {
        self.width + self.frame
    }

    /// From one channel to the next.
    pub fn plane(&self) -> usize {
        (self.height + self.frame) * self.row()
    }

    /// The frame above the first channel of a group: the first pixel comes after it.
    pub fn lead(&self) -> usize {
        self.frame * self.row() + self.frame
    }

    /// From one group to the next.
    pub fn group(&self) -> usize {
        self.lead() + self.channels * self.plane()
    }

    /// Floats of a group.
    pub fn group_floats(&self) -> usize {
        self.group() * LANES
    }

    /// Floats of a channel.
    pub fn plane_floats(&self) -> usize {
        self.plane() * LANES
    }

    /// Floats of a batch.
    pub fn floats(&self) -> usize {
        self.groups() * self.group_floats()
    }

    /// Pixels of a channel without its frame.
    pub fn pixels(&self) -> usize {
        self.height * self.width
    }

    /// The same with other channels.
    pub fn with_channels(self, channels: usize) -> Self {
        Self { channels, ..self }
    }

    /// The channels of a group, each with the frame right of and below it.
    pub fn channels_of<'a>(&self, group: &'a [f32]) -> std::slice::ChunksExact<'a, f32> {
        group[self.lead() * LANES..].chunks_exact(self.plane_floats())
    }

    /// The channels of a group, to be written.
    pub fn channels_of_mut<'a>(&self, group: &'a mut [f32]) -> std::slice::ChunksExactMut<'a, f32> {
        group[self.lead() * LANES..].chunks_exact_mut(self.plane_floats())
    }

    /// The rows of a channel without their frame.
    pub fn rows<'a>(&self, channel: &'a [f32]) -> impl Iterator<Item = &'a [f32]> + use<'a> {
        let width = self.width * LANES;
        channel.chunks_exact(self.row() * LANES).take(self.height).map(move |row| &row[..width])
    }

    /// The rows of a channel without their frame, to be written.
    pub fn rows_mut<'a>(&self, channel: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> + use<'a> {
        let width = self.width * LANES;
        channel.chunks_exact_mut(self.row() * LANES).take(self.height).map(move |row| &mut row[..width])
    }

    /// Makes the frame above the first channel zero.
    pub fn clear_lead(&self, group: &mut [f32]) {
        group[..self.lead() * LANES].fill(0.0);
    }

    /// Makes the frame right of and below a channel zero.
    #[inline(always)]
    pub fn clear_frame(&self, channel: &mut [f32]) {
        let (row, width) = (self.row() * LANES, self.width * LANES);
        for row in channel.chunks_exact_mut(row).take(self.height) {
            row[width..].fill(0.0);
        }
        channel[self.height * row..].fill(0.0);
    }

    /// From images in the order image, channel, row, column.
    pub fn gather(&self, images: &[f32], out: &mut [f32]) {
        assert_eq!(out.len(), self.floats(), "the planes fit their slice");
        let (pixels, image_len) = (self.pixels(), self.channels * self.pixels());
        out.par_chunks_mut(self.group_floats()).enumerate().for_each(|(number, group)| {
            self.clear_lead(group);
            let count = self.images_in(number);
            for (channel, out) in self.channels_of_mut(group).enumerate() {
                self.clear_frame(out);
                let from: [&[f32]; LANES] = std::array::from_fn(|lane| {
                    // Lanes of images that are not there repeat the last one, and are made zero below.
                    let image = number * LANES + lane.min(count - 1);
                    &images[image * image_len + channel * pixels..][..pixels]
                });
                for (y, row) in self.rows_mut(out).enumerate() {
                    for (x, pixel) in row.chunks_exact_mut(LANES).enumerate() {
                        let at = y * self.width + x;
                        pixel.iter_mut().zip(from).for_each(|(to, from)| *to = from[at]);
                        pixel[count..].fill(0.0);
                    }
                }
            }
        });
    }

    /// To images in the order image, channel, row, column.
    pub fn scatter(&self, planes: &[f32], images: &mut [f32]) {
        assert_eq!(planes.len(), self.floats(), "the planes fit their slice");
        let (pixels, image_len) = (self.pixels(), self.channels * self.pixels());
        let groups = images.par_chunks_mut(LANES * image_len).zip(planes.par_chunks(self.group_floats()));
        groups.for_each(|(images, group)| {
            for (lane, image) in images.chunks_exact_mut(image_len).enumerate() {
                for (to, channel) in image.chunks_exact_mut(pixels).zip(self.channels_of(group)) {
                    for (to, row) in to.chunks_exact_mut(self.width).zip(self.rows(channel)) {
                        to.iter_mut().zip(row.iter().skip(lane).step_by(LANES)).for_each(|(to, from)| *to = *from);
                    }
                }
            }
        });
    }

    /// The same images in another frame.
    pub fn reframe(&self, planes: &[f32], frame: usize) -> (Self, Vec<f32>) {
        let to = Self { frame, ..*self };
        let mut out = vec![0.0; to.floats()];
        let groups = out.par_chunks_mut(to.group_floats()).zip(planes.par_chunks(self.group_floats()));
        groups.for_each(|(out, group)| {
            for (out, channel) in to.channels_of_mut(out).zip(self.channels_of(group)) {
                to.rows_mut(out).zip(self.rows(channel)).for_each(|(out, row)| out.copy_from_slice(row));
            }
        });
        (to, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_come_back_as_they_went() {
        for (shape, frame) in [([1, 1, 1, 1], 1), ([17, 3, 5, 2], 1), ([16, 2, 4, 4], 0), ([33, 1, 3, 7], 2)] {
            let planes = Planes { frame, ..Planes::new(shape) };
            let images: Vec<f32> = (1..=shape.iter().product::<usize>()).map(|value| value as f32).collect();
            let mut framed = vec![f32::NAN; planes.floats()];
            planes.gather(&images, &mut framed);
            assert_eq!(framed.iter().filter(|value| **value != 0.0).count(), images.len(), "all else is zero");
            let mut back = vec![0.0; images.len()];
            planes.scatter(&framed, &mut back);
            assert_eq!(back, images);
            let (wider, wide) = planes.reframe(&framed, 3);
            wider.scatter(&wide, &mut back);
            assert_eq!(back, images);
        }
    }
}
