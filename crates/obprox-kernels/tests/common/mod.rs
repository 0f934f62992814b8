//! Numbers to test with, and the slow, obvious twin of a convolution.
#![allow(dead_code, reason = "each test takes what it needs")]

use obprox_kernels::Conv;

/// Numbers between −1 and 1, of which so many in three are not zero.
pub fn numbers(count: usize, seed: u64, nonzero: u64) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let mut number = || if next() % 3 < nonzero { (next() % 2001) as f32 / 1000.0 - 1.0 } else { 0.0 };
    (0..count).map(|_| number()).collect()
}

pub fn assert_close(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let scale = expected.iter().fold(1.0f32, |most, value| most.max(value.abs()));
    for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= 2e-5 * scale, "{what} {number}: {found} for {expected}");
    }
}

/// Output and gradients of a convolution, in the order image, channel, row, column.
pub struct Naive {
    pub y: Vec<f32>,
    pub dx: Vec<f32>,
    pub dw: Vec<f32>,
}

impl Naive {
    pub fn run(conv: &Conv, x: &[f32], weights: &[f32], dy: &[f32]) -> Self {
        let (input, output) = (conv.input, conv.output());
        let (seen, each) = (conv.shape.seen(), conv.shape.outputs / conv.shape.groups);
        let mut y = vec![0.0f64; dy.len()];
        let mut dx = vec![0.0f64; x.len()];
        let mut dw = vec![0.0f64; weights.len()];
        for image in 0..input.images {
            for o in 0..conv.shape.outputs {
                for pixel in 0..output.pixels() {
                    let (row, column) = (pixel / output.width, pixel % output.width);
                    let out = (image * conv.shape.outputs + o) * output.pixels() + pixel;
                    for number in 0..seen * conv.shape.taps() {
                        let (channel, tap) = (o / each * seen + number / conv.shape.taps(), number % conv.shape.taps());
                        let at_row =
                            (row * conv.shape.stride + tap / conv.shape.kernel).wrapping_sub(conv.shape.padding);
                        let at_column =
                            (column * conv.shape.stride + tap % conv.shape.kernel).wrapping_sub(conv.shape.padding);
                        if at_row >= input.height || at_column >= input.width {
                            continue;
                        }
                        let plane = (image * input.channels + channel) * input.pixels();
                        let from = plane + at_row * input.width + at_column;
                        let at = o * seen * conv.shape.taps() + number;
                        y[out] += f64::from(weights[at]) * f64::from(x[from]);
                        dx[from] += f64::from(weights[at]) * f64::from(dy[out]);
                        dw[at] += f64::from(x[from]) * f64::from(dy[out]);
                    }
                }
            }
        }
        let narrow = |values: Vec<f64>| values.into_iter().map(|value| value as f32).collect();
        Self { y: narrow(y), dx: narrow(dx), dw: narrow(dw) }
    }

    /// Mean and variance of a channel of the output.
    pub fn moments(&self, conv: &Conv, channel: usize) -> (f64, f64) {
        let pixels = conv.output().pixels();
        let planes = || self.y.chunks_exact(pixels).skip(channel).step_by(conv.shape.outputs).flatten();
        let count = planes().count() as f64;
        let mean = planes().map(|value| f64::from(*value)).sum::<f64>() / count;
        (mean, planes().map(|value| (f64::from(*value) - mean).powi(2)).sum::<f64>() / count)
    }
}
