//! The slow, obvious twin of the engine: every node of a network by its definition, in f64.

use obprox_infer::Model;
use obprox_infer::network::{Op, Window};

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

/// What comes out of one image, or of one vector as an image of one pixel.
pub fn scores(model: &Model, image: &[f32], [height, width]: [usize; 2]) -> Vec<f64> {
    let mut values: Vec<Value> = Vec::new();
    for node in model.network().nodes() {
        let inputs: Vec<&Value> = node.inputs.iter().map(|&input| &values[input]).collect();
        let value = match &node.op {
            Op::Input { shape } => {
                Value::new(shape[0], height, width, |c, y, x| image[(c * height + y) * width + x].into())
            }
            op => value(model, op, &inputs),
        };
        values.push(value);
    }
    values.pop().unwrap().data
}

fn parameter(model: &Model, name: &str) -> Vec<f64> {
    model.weights().get(name).unwrap().data().iter().map(|&value| value.into()).collect()
}

fn value(model: &Model, op: &Op, inputs: &[&Value]) -> Value {
    let input = inputs[0];
    let optional = |name: &Option<String>, default: f64, count: usize| match name {
        Some(name) => parameter(model, name),
        None => vec![default; count],
    };
    match op {
        Op::Conv { weight, bias, window, groups } => {
            let outputs = model.weights().get(weight).unwrap().shape()[0];
            let bias = optional(bias, 0.0, outputs);
            convolve(window, *groups, &parameter(model, weight), &bias, input)
        }
        Op::Linear { weight, bias } => {
            let [outputs, inputs] = model.weights().get(weight).unwrap().shape() else {
                panic!("{weight} is a matrix")
            };
            let (weight, bias) = (parameter(model, weight), optional(bias, 0.0, *outputs));
            Value::new(*outputs, 1, 1, |o, _, _| {
                bias[o] + (0..*inputs).map(|i| weight[o * inputs + i] * input.data[i]).sum::<f64>()
            })
        }
        Op::BatchNorm { weight, bias, mean, var, epsilon } => {
            let (weight, bias) = (optional(weight, 1.0, input.channels), optional(bias, 0.0, input.channels));
            let (mean, var) = (parameter(model, mean), parameter(model, var));
            input.map(|c, x| (x - mean[c]) / (var[c] + epsilon).sqrt() * weight[c] + bias[c])
        }
        Op::Add | Op::Multiply => {
            let (one, two) = (inputs[0], inputs[1]);
            let at = |value: &Value, c, y, x| match (value.height, value.width) {
                (1, 1) => value.at(c, 0, 0),
                _ => value.at(c, y, x),
            };
            let f = |one: f64, two: f64| if *op == Op::Add { one + two } else { one * two };
            let (height, width) = (one.height.max(two.height), one.width.max(two.width));
            Value::new(one.channels, height, width, |c, y, x| f(at(one, c, y, x), at(two, c, y, x)))
        }
        Op::Concat => {
            let data: Vec<f64> = inputs.iter().flat_map(|input| input.data.iter().copied()).collect();
            Value { channels: inputs.iter().map(|input| input.channels).sum(), data, ..*input }
        }
        Op::MaxPool { window, ceil } => {
            pool(window, *ceil, input, |pixels, _| pixels.fold(f64::NEG_INFINITY, f64::max))
        }
        Op::AveragePool { window, ceil, count_padding } => pool(window, *ceil, input, |pixels, padded| {
            let pixels: Vec<f64> = pixels.collect();
            pixels.iter().sum::<f64>() / if *count_padding { padded } else { pixels.len() } as f64
        }),
        Op::AdaptiveAveragePool { size } => Value::new(input.channels, size[0], size[1], |c, y, x| {
            let span = |at: usize, from: usize, to: usize| at * from / to..((at + 1) * from).div_ceil(to);
            let (rows, columns) = (span(y, input.height, size[0]), span(x, input.width, size[1]));
            let count = (rows.len() * columns.len()) as f64;
            rows.flat_map(|y| columns.clone().map(move |x| (y, x))).map(|(y, x)| input.at(c, y, x)).sum::<f64>() / count
        }),
        Op::Upsample { scale } => {
            Value::new(input.channels, input.height * scale[0], input.width * scale[1], |c, y, x| {
                input.at(c, y / scale[0], x / scale[1])
            })
        }
        Op::Flatten => Value { channels: input.data.len(), height: 1, width: 1, data: input.data.clone() },
        Op::Reshape { shape } => {
            let side = |at: usize| shape.get(at).copied().unwrap_or(1);
            Value { channels: shape[0], height: side(1), width: side(2), data: input.data.clone() }
        }
        Op::Softmax => {
            let pixels = input.height * input.width;
            let sum = |at: usize| (0..input.channels).map(|c| input.data[c * pixels + at].exp()).sum::<f64>();
            Value::new(input.channels, input.height, input.width, |c, y, x| {
                input.at(c, y, x).exp() / sum(y * input.width + x)
            })
        }
        Op::Relu => input.map(|_, x| x.max(0.0)),
        Op::Relu6 => input.map(|_, x| x.clamp(0.0, 6.0)),
        Op::Silu => input.map(|_, x| x / (1.0 + (-x).exp())),
        Op::Sigmoid => input.map(|_, x| 1.0 / (1.0 + (-x).exp())),
        Op::HardSigmoid => input.map(|_, x| (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        Op::HardSwish => input.map(|_, x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        Op::Gelu => input.map(|_, x| x * normal(x)),
        Op::Input { .. } => panic!("only the first node is the input"),
    }
}

/// The distribution of a normal number, by Simpson's rule.
fn normal(x: f64) -> f64 {
    let density = |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let (steps, end) = (2000, x.clamp(-9.0, 9.0));
    let step = end / f64::from(steps);
    let inner = |first: i32| (first..steps).step_by(2).map(|at| density(step * f64::from(at))).sum::<f64>();
    0.5 + step / 3.0 * (density(0.0) + 4.0 * inner(1) + 2.0 * inner(2) + density(end))
}

/// Every window's pixels on the image, and how many it has together with the padding.
fn pool(window: &Window, ceil: bool, input: &Value, f: impl Fn(&mut dyn Iterator<Item = f64>, usize) -> f64) -> Value {
    let sides = [input.height, input.width];
    let [height, width] = [0, 1].map(|axis| window.output_side(axis, sides[axis], ceil).unwrap());
    Value::new(input.channels, height, width, |c, y, x| {
        let mut pixels = Vec::new();
        let mut padded = 0;
        for (ky, kx) in (0..window.kernel[0]).flat_map(|ky| (0..window.kernel[1]).map(move |kx| (ky, kx))) {
            let at = [y * window.stride[0] + ky * window.dilation[0], x * window.stride[1] + kx * window.dilation[1]];
            let on = |axis: usize| (window.padding[axis]..window.padding[axis] + sides[axis]).contains(&at[axis]);
            let on_padding = |axis: usize| at[axis] < window.padding[axis] + sides[axis] + window.padding[axis + 2];
            padded += usize::from(on_padding(0) && on_padding(1));
            if on(0) && on(1) {
                pixels.push(input.at(c, at[0] - window.padding[0], at[1] - window.padding[1]));
            }
        }
        f(&mut pixels.into_iter(), padded)
    })
}

fn convolve(window: &Window, groups: usize, weight: &[f64], bias: &[f64], input: &Value) -> Value {
    let (outputs, of_group) = (bias.len(), input.channels / groups);
    let outputs_of_group = outputs / groups;
    let ([rows, columns], [top, left, ..]) = (window.kernel, window.padding);
    let sides = [input.height, input.width];
    let [height, width] = [0, 1].map(|axis| window.output_side(axis, sides[axis], false).unwrap());
    Value::new(outputs, height, width, |o, y, x| {
        let mut sum = bias[o];
        for (i, ky, kx) in (0..of_group)
            .flat_map(|i| (0..rows).map(move |ky| (i, ky)))
            .flat_map(|(i, ky)| (0..columns).map(move |kx| (i, ky, kx)))
        {
            let down = (y * window.stride[0] + ky * window.dilation[0]).wrapping_sub(top);
            let right = (x * window.stride[1] + kx * window.dilation[1]).wrapping_sub(left);
            if down < input.height && right < input.width {
                let channel = o / outputs_of_group * of_group + i;
                sum += weight[((o * of_group + i) * rows + ky) * columns + kx] * input.at(channel, down, right);
            }
        }
        sum
    })
}
