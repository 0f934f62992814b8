//! A convolution layer as the operations see it: its sizes, its zeros, and which kernel runs.

use obprox_kernels as kernels;
use obprox_kernels::{Conv, Moments};

use super::Zeros;
use super::choice::{self, Part};
use super::memory::{Cpu, Memory, values};

/// Sizes, and what is known of the weights.
#[derive(Clone, Copy, Debug)]
pub struct Layer {
    pub conv: Conv,
    /// Whether weights that are zero have a gradient.
    pub zeros: Zeros,
    /// Weights that are not zero, once they are counted.
    nonzero: usize,
}

impl Layer {
    pub fn new(conv: Conv, zeros: Zeros) -> Self {
        Self { conv, zeros, nonzero: conv.shape.weights() }
    }

    /// With its zeros counted.
    pub fn counted(self, weights: &[f32]) -> Self {
        Self { nonzero: weights.iter().filter(|weight| **weight != 0.0).count(), ..self }
    }

    /// The output. A weight that is zero adds nothing, so it may be left out whether it is held or not.
    pub fn forward(&self, x: &[f32], weights: &[f32], out: &mut [f32], moments: Option<&mut Moments>) {
        choice::run(&self.conv, Part::Forward, self.nonzero, |kernel| {
            kernels::forward(&self.conv, kernel, x, weights, out, moments);
        });
    }

    /// The gradient of the input.
    pub fn input_gradient(&self, weight: &Cpu, dy: &[f32]) -> Cpu {
        let input = self.conv.input;
        let mut dx = Memory::take(input.floats());
        choice::run(&self.conv, Part::InputGradient, self.nonzero, |kernel| {
            kernels::input_gradient(&self.conv, kernel, values(weight), dy, &mut dx);
        });
        dx.tensor(&[input.groups(), input.group_floats()])
    }

    /// The gradient of the weights: 0 for zeros that are held, whichever kernel runs.
    pub fn weight_gradient(&self, x: &Cpu, weight: &Cpu, dy: &[f32]) -> Cpu {
        let held = self.zeros == Zeros::Held;
        let mut dw = Memory::take(self.conv.shape.weights());
        let nonzero = if held { self.nonzero } else { self.conv.shape.weights() };
        choice::run(&self.conv, Part::WeightGradient, nonzero, |kernel| {
            kernels::weight_gradient(&self.conv, kernel, values(x), values(weight), dy, &mut dw);
        });
        if held {
            let zeros = dw.iter_mut().zip(values(weight)).filter(|(_, weight)| **weight == 0.0);
            zeros.for_each(|(gradient, _)| *gradient = 0.0);
        }
        dw.tensor(weight.layout().shape())
    }
}
