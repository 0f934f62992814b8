//! A convolution's sizes, and which pixels a kernel meets: forward, and backward to the input.

use crate::planes::{LANES, Planes};
use crate::shape::Shape;

/// A convolution of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Conv {
    /// Kernel, stride, channels.
    pub shape: Shape,
    /// The input.
    pub input: Planes,
}

impl Conv {
    /// Of images; nothing where they have other channels, or the kernel does not fit on them.
    pub fn new(shape: Shape, input: Planes) -> Option<Self> {
        let Shape { inputs, outputs, kernel, stride, groups, .. } = shape;
        let sound = groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups);
        let fits = kernel > 0 && stride > 0 && shape.output_side(input.height.min(input.width)).is_some();
        (sound && fits && inputs == input.channels).then_some(Self { shape, input })
    }

    /// The output.
    pub fn output(&self) -> Planes {
        let side = |side: usize| self.shape.output_side(side).expect("`new` asks whether the kernel fits");
        let Planes { images, height, width, frame, .. } = self.input;
        Planes { images, channels: self.shape.outputs, height: side(height), width: side(width), frame }
    }

    /// The frame that the input must have.
    pub fn input_frame(&self) -> usize {
        self.shape.padding
    }

    /// The frame that the gradient of the output must have for that of the input.
    pub fn output_frame(&self) -> usize {
        let (input, output) = (self.input, self.output());
        let before = (self.shape.kernel - 1).saturating_sub(self.shape.padding).div_ceil(self.shape.stride);
        let after =
            |inside: usize, out: usize| ((inside + self.shape.padding - 1) / self.shape.stride).saturating_sub(out - 1);
        before.max(after(input.height, output.height)).max(after(input.width, output.width))
    }

    /// What the outputs see of the input.
    pub fn forward(&self) -> Stencil {
        let (input, output) = (self.input, self.output());
        let taps = (0..self.shape.taps()).map(|tap| {
            let (down, right) = (tap / self.shape.kernel, tap % self.shape.kernel);
            Tap { number: tap, offset: (down * input.row() + right) * LANES }
        });
        Stencil {
            taps: taps.collect(),
            rows: output.height,
            columns: output.width,
            from: Walk {
                start: (input.lead() - self.shape.padding * input.row() - self.shape.padding) * LANES,
                row: self.shape.stride * input.row() * LANES,
                step: self.shape.stride * LANES,
                plane: input.plane_floats(),
            },
            to: Walk::of(&output),
        }
    }

    /// What the gradient of the input sees of that of the output, which has the frame given: for every remainder of row
    /// and column by the stride.
    pub fn backward(&self, frame: usize) -> Vec<Stencil> {
        let remainders = 0..self.shape.stride * self.shape.stride;
        remainders.map(|at| self.backward_at(frame, at / self.shape.stride, at % self.shape.stride)).collect()
    }

    fn backward_at(&self, frame: usize, down: usize, right: usize) -> Stencil {
        let (input, output) = (self.input, Planes { frame, ..self.output() });
        let (stride, padding) = (self.shape.stride as isize, self.shape.padding as isize);
        // The outputs that a tap joins to a pixel, counted from its own: (remainder + padding − tap)/stride.
        let along = |remainder: usize| -> Vec<(usize, isize)> {
            let moved = |tap: usize| remainder as isize + padding - tap as isize;
            let taps = (0..self.shape.kernel).filter(|&tap| moved(tap).rem_euclid(stride) == 0);
            taps.map(|tap| (tap, moved(tap).div_euclid(stride))).collect()
        };
        let (downs, rights) = (along(down), along(right));
        let least = |along: &[(usize, isize)]| along.iter().map(|pair| pair.1).min().unwrap_or(0);
        let (least_down, least_right) = (least(&downs), least(&rights));
        let mut taps = Vec::new();
        // From the nearest pixel on, as memory is best read: the last tap comes first.
        for &(tap_down, far_down) in downs.iter().rev() {
            for &(tap_right, far_right) in rights.iter().rev() {
                let offset = (far_down - least_down) * output.row() as isize + far_right - least_right;
                taps.push(Tap { number: tap_down * self.shape.kernel + tap_right, offset: offset as usize * LANES });
            }
        }
        let start = output.lead() as isize + least_down * output.row() as isize + least_right;
        let from = Walk { start: start as usize * LANES, ..Walk::of(&output) };
        let to = Walk {
            start: (input.lead() + down * input.row() + right) * LANES,
            row: self.shape.stride * input.row() * LANES,
            step: self.shape.stride * LANES,
            plane: input.plane_floats(),
        };
        let part = |side: usize, remainder: usize| side.saturating_sub(remainder).div_ceil(self.shape.stride);
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
