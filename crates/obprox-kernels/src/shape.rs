//! The shape of a convolution, whatever the images: what a network's description and its kernels both speak of.

/// Kernels, strides and paddings are the same in both directions, as in every network here; there is no bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Height and width of the kernel.
    pub kernel: usize,
    /// Pixels from one application of the kernel to the next.
    pub stride: usize,
    /// Zeros around the input.
    pub padding: usize,
    /// Channels are split into so many groups that do not see each other; `inputs` of them is a depthwise convolution.
    pub groups: usize,
}

impl Shape {
    /// Every channel sees every channel.
    pub fn new(inputs: usize, outputs: usize, kernel: usize, stride: usize) -> Self {
        Self { inputs, outputs, kernel, stride, padding: kernel / 2, groups: 1 }
    }

    /// Every channel sees itself.
    pub fn depthwise(channels: usize, kernel: usize, stride: usize) -> Self {
        Self { groups: channels, ..Self::new(channels, channels, kernel, stride) }
    }

    /// Shape of the weight: outputs, inputs of a group, kernel, kernel.
    pub fn weight_shape(&self) -> [usize; 4] {
        [self.outputs, self.inputs / self.groups, self.kernel, self.kernel]
    }

    /// Side of the output for a side of the input; `None` where the kernel does not fit.
    pub fn output_side(&self, side: usize) -> Option<usize> {
        Some((side + 2 * self.padding).checked_sub(self.kernel)? / self.stride + 1)
    }

    /// Taps of a kernel.
    pub fn taps(&self) -> usize {
        self.kernel * self.kernel
    }

    /// Channels of the input that an output sees.
    pub fn seen(&self) -> usize {
        self.inputs / self.groups
    }

    /// Weights of an output.
    pub fn weights_of_output(&self) -> usize {
        self.seen() * self.taps()
    }

    /// Weights.
    pub fn weights(&self) -> usize {
        self.outputs * self.weights_of_output()
    }
}
