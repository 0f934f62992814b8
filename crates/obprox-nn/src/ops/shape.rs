//! Sizes of a convolution.

/// A convolution of square kernels, strides and paddings, images in the order image, channel, row, column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvShape {
    /// Images.
    pub images: usize,
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Rows and columns of the input.
    pub size: [usize; 2],
    /// Side of the kernel.
    pub kernel: usize,
    /// Pixels from one application of the kernel to the next.
    pub stride: usize,
    /// Zeros around the input.
    pub padding: usize,
}

impl ConvShape {
    /// Rows and columns of the output.
    pub fn output_size(&self) -> [usize; 2] {
        self.size.map(|side| (side + 2 * self.padding - self.kernel) / self.stride + 1)
    }

    /// Pixels of a channel of the input.
    pub fn input_plane(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// Pixels of a channel of the output.
    pub fn output_plane(&self) -> usize {
        self.output_size().iter().product()
    }

    /// The outputs of a row (or column) of `side` pixels that lie on a pixel of the input under the tap at `offset`:
    /// from the first to one past the last.
    pub fn inside(&self, offset: usize, side: usize, outputs: usize) -> std::ops::Range<usize> {
        let first = self.padding.saturating_sub(offset).div_ceil(self.stride).min(outputs);
        // The last is the largest o with o·stride + offset − padding ≤ side − 1.
        let end = (side + self.padding).saturating_sub(offset).div_ceil(self.stride).clamp(first, outputs);
        first..end
    }

    /// The pixel under the tap at `offset` for an output that lies [`inside`](Self::inside).
    pub fn under(&self, output: usize, offset: usize) -> usize {
        output * self.stride + offset - self.padding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_is_where_the_tap_meets_the_image() {
        for (side, kernel, stride, padding) in
            [(5, 3, 1, 1), (8, 3, 2, 1), (7, 3, 2, 1), (4, 1, 2, 0), (3, 5, 1, 2), (2, 3, 2, 1)]
        {
            let shape = ConvShape { images: 1, inputs: 1, outputs: 1, size: [side; 2], kernel, stride, padding };
            let outputs = shape.output_size()[0];
            for offset in 0..kernel {
                let inside = shape.inside(offset, side, outputs);
                for output in 0..outputs {
                    let pixel = (output * stride + offset) as isize - padding as isize;
                    let expected = (0..side as isize).contains(&pixel);
                    assert_eq!(inside.contains(&output), expected, "{shape:?} tap {offset} output {output}");
                    if expected {
                        assert_eq!(shape.under(output, offset), pixel as usize);
                    }
                }
            }
        }
    }
}
