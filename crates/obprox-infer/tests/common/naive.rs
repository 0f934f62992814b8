//! The slow, obvious twin of the engine: every layer of the graph by its definition, in f64.

use obprox_infer::Model;
use obprox_infer::graph::{BATCH_NORM_EPSILON, Op, Role, Shape};

/// Channels × height × width.
struct Value {
    channels: usize,
    height: usize,
    width: usize,
    data: Vec<f64>,
}

impl Value {
    fn new(channels: usize, height: usize, width: usize, at: impl Fn(usize, usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(channels * height * width);
        for c in 0..channels {
            for y in 0..height {
                data.extend((0..width).map(|x| at(c, y, x)));
            }
        }
        Self { channels, height, width, data }
    }

    fn at(&self, c: usize, y: usize, x: usize) -> f64 {
        self.data[(c * self.height + y) * self.width + x]
    }

    fn map(&self, f: impl Fn(usize, f64) -> f64) -> Self {
        Self::new(self.channels, self.height, self.width, |c, y, x| f(c, self.at(c, y, x)))
    }
}

/// The scores of one image.
pub fn scores(model: &Model, image: &[f32], [height, width]: [usize; 2]) -> Vec<f64> {
    let graph = model.architecture().graph();
    let mut values: Vec<Value> = Vec::new();
    for node in graph.nodes() {
        let parameter = |role: Role| -> Vec<f64> {
            let tensor = model.weights().get(&node.parameter(role)).unwrap();
            tensor.data().iter().map(|&value| value.into()).collect()
        };
        let input = node.inputs.first().map(|&input| &values[input]);
        let value = match node.op {
            Op::Input { channels } => {
                Value::new(channels, height, width, |c, y, x| image[(c * height + y) * width + x].into())
            }
            Op::Conv(conv) => convolve(&conv, &parameter(Role::Weight), input.unwrap()),
            Op::BatchNorm { .. } => {
                let (weight, bias) = (parameter(Role::NormWeight), parameter(Role::NormBias));
                let (mean, var) = (parameter(Role::RunningMean), parameter(Role::RunningVar));
                let epsilon = f64::from(BATCH_NORM_EPSILON);
                input.unwrap().map(|c, x| (x - mean[c]) / (var[c] + epsilon).sqrt() * weight[c] + bias[c])
            }
            Op::Relu => input.unwrap().map(|_, x| x.max(0.0)),
            Op::Add => {
                let (one, two) = (&values[node.inputs[0]], &values[node.inputs[1]]);
                Value::new(one.channels, one.height, one.width, |c, y, x| one.at(c, y, x) + two.at(c, y, x))
            }
            Op::MaxPool { size } => {
                let input = input.unwrap();
                Value::new(input.channels, input.height / size, input.width / size, |c, y, x| {
                    let square = (0..size * size).map(|i| input.at(c, size * y + i / size, size * x + i % size));
                    square.fold(f64::NEG_INFINITY, f64::max)
                })
            }
            Op::GlobalAveragePool => {
                let input = input.unwrap();
                let pixels = input.height * input.width;
                Value::new(input.channels, 1, 1, |c, _, _| {
                    input.data[c * pixels..][..pixels].iter().sum::<f64>() / pixels as f64
                })
            }
            Op::Linear { inputs, outputs } => {
                let (weight, bias, input) = (parameter(Role::Weight), parameter(Role::Bias), input.unwrap());
                Value::new(outputs, 1, 1, |o, _, _| {
                    bias[o] + (0..inputs).map(|i| weight[o * inputs + i] * input.data[i]).sum::<f64>()
                })
            }
        };
        values.push(value);
    }
    values.pop().unwrap().data
}

fn convolve(conv: &Shape, weight: &[f64], input: &Value) -> Value {
    let Shape { inputs, outputs, kernel, stride, padding, groups } = *conv;
    let (of_group, outputs_of_group) = (inputs / groups, outputs / groups);
    let side = |side: usize| conv.output_side(side).unwrap();
    Value::new(outputs, side(input.height), side(input.width), |o, y, x| {
        let mut sum = 0.0;
        for i in 0..of_group {
            for ky in 0..kernel {
                for kx in 0..kernel {
                    let (down, right) =
                        ((y * stride + ky).wrapping_sub(padding), (x * stride + kx).wrapping_sub(padding));
                    if down < input.height && right < input.width {
                        let channel = o / outputs_of_group * of_group + i;
                        sum +=
                            weight[((o * of_group + i) * kernel + ky) * kernel + kx] * input.at(channel, down, right);
                    }
                }
            }
        }
        sum
    })
}
