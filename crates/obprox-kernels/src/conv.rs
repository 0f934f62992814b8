//! A convolution's sizes, and which pixels a kernel meets: forward, and backward to the input.

use crate::planes::{LANES, Planes};

/// A convolution with square kernels, strides and paddings, without bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv {
    /// The input.
    pub input: Planes,
    /// Channels of the output.
    pub outputs: usize,
    /// Side of the kernel.
    pub kernel: usize,
    /// Pixels from one application of the kernel to the next.
    pub stride: usize,
    /// Zeros around the input.
    pub padding: usize,
    /// Parts of the channels that do not see each other.
    pub groups: usize,
}

impl Conv {
    /// The output.
    pub fn output(&self) -> Planes {
        let side = |side: usize| (side + 2 * self.padding - self.kernel) / self.stride + 1;
        let Planes { images, height, width, frame, .. } = self.input;
        Planes { images, channels: self.outputs, height: side(height), width: side(width), frame }
    }

    /// Whether the kernel fits on the input.
    pub fn fits(&self) -> bool {
        let side = self.input.height.min(self.input.width);
        side + 2 * self.padding >= self.kernel && self.stride > 0 && self.kernel > 0
    }

    /// Taps of a kernel.
    pub fn taps(&self) -> usize {
        self.kernel * self.kernel
    }

    /// Channels of the input that an output sees.
    pub fn seen(&self) -> usize {
        self.input.channels / self.groups
    }

    /// Weights of an output.
    pub fn weights_of_output(&self) -> usize {
        self.seen() * self.taps()
    }

    /// Weights.
    pub fn weights(&self) -> usize {
        self.outputs * self.weights_of_output()
    }

    /// The frame that the input must have.
    pub fn input_frame(&self) -> usize {
        self.padding
    }

    /// The frame that the gradient of the output must have for that of the input.
    pub fn output_frame(&self) -> usize {
        let (input, output) = (self.input, self.output());
        let before = (self.kernel - 1).saturating_sub(self.padding).div_ceil(self.stride);
        let after = |inside: usize, out: usize| ((inside + self.padding - 1) / self.stride).saturating_sub(out - 1);
        before.max(after(input.height, output.height)).max(after(input.width, output.width))
    }

    /// What the outputs see of the input.
    pub fn forward(&self) -> Stencil {
        let (input, output) = (self.input, self.output());
        let taps = (0..self.taps()).map(|tap| {
            let (down, right) = (tap / self.kernel, tap % self.kernel);
            Tap { number: tap, offset: (down * input.row() + right) * LANES }
        });
        Stencil {
            taps: taps.collect(),
            rows: output.height,
            columns: output.width,
            from: Walk {
                start: (input.lead() - self.padding * input.row() - self.padding) * LANES,
                row: self.stride * input.row() * LANES,
                step: self.stride * LANES,
                plane: input.plane_floats(),
            },
            to: Walk::of(&output),
        }
    }

    /// What the gradient of the input sees of that of the output, which has the frame given: for every remainder of row
    /// and column by the stride.
    pub fn backward(&self, frame: usize) -> Vec<Stencil> {
        let remainders = 0..self.stride * self.stride;
        remainders.map(|at| self.backward_at(frame, at / self.stride, at % self.stride)).collect()
    }

    fn backward_at(&self, frame: usize, down: usize, right: usize) -> Stencil {
        let (input, output) = (self.input, Planes { frame, ..self.output() });
        let (stride, padding) = (self.stride as isize, self.padding as isize);
        // The outputs that a tap joins to a pixel, counted from its own: (remainder + padding − tap)/stride.
        let along = |remainder: usize| -> Vec<(usize, isize)> {
            let moved = |tap: usize| remainder as isize + padding - tap as isize;
            let taps = (0..self.kernel).filter(|&tap| moved(tap).rem_euclid(stride) == 0);
            taps.map(|tap| (tap, moved(tap).div_euclid(stride))).collect()
        };
        let (downs, rights) = (along(down), along(right));
        let least = |along: &[(usize, isize)]| along.iter().map(|pair| pair.1).min().unwrap_or(0);
        let (least_down, least_right) = (least(&downs), least(&rights));
        let mut taps = Vec::new();
        for &(tap_down, far_down) in &downs {
            for &(tap_right, far_right) in &rights {
                let offset = (far_down - least_down) * output.row() as isize + far_right - least_right;
                taps.push(Tap { number: tap_down * self.kernel + tap_right, offset: offset as usize * LANES });
            }
        }
        let start = output.lead() as isize + least_down * output.row() as isize + least_right;
        let from = Walk { start: start as usize * LANES, ..Walk::of(&output) };
        let to = Walk {
            start: (input.lead() + down * input.row() + right) * LANES,
            row: self.stride * input.row() * LANES,
            step: self.stride * LANES,
            plane: input.plane_floats(),
        };
        let part = |side: usize, remainder: usize| side.saturating_sub(remainder).div_ceil(self.stride);
        Stencil { taps, rows: part(input.height, down), columns: part(input.width, right), from, to }
    }
}

/// A tap of the kernel and the distance of its pixel, in floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tap {
    /// Its number in the kernel.
    pub number: usize,
    /// From the first pixel that the kernel sees.
    pub offset: usize,
}

/// How a plane is gone through, in floats from the beginning of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The first pixel of the first channel.
    pub start: usize,
    /// From one row to the next.
    pub row: usize,
    /// From one pixel to the next.
    pub step: usize,
    /// From one channel to the next.
    pub plane: usize,
}

impl Walk {
    /// Pixel by pixel.
    pub fn of(planes: &Planes) -> Self {
        let (row, plane) = (planes.row() * LANES, planes.plane_floats());
        Self { start: planes.lead() * LANES, row, step: LANES, plane }
    }

    /// Where a pixel of the first channel is.
    #[inline(always)]
    pub fn at(&self, row: usize, column: usize) -> usize {
        self.start + row * self.row + column * self.step
    }
}

/// For each pixel of some planes those of others that weigh in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stencil {
    /// The taps that there are.
    pub taps: Vec<Tap>,
    /// Rows that are computed.
    pub rows: usize,
    /// Columns that are computed.
    pub columns: usize,
    /// What is read.
    pub from: Walk,
    /// What is written.
    pub to: Walk,
}

impl Stencil {
    /// One past the furthest float that is read through a tap `offset` away, in any of the pixels.
    pub fn reach(&self, offset: usize) -> usize {
        match (self.rows, self.columns) {
            (0, _) | (_, 0) => 0,
            (rows, columns) => self.from.at(rows - 1, columns - 1) + offset + LANES,
        }
    }
}
