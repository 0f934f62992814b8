//! Random networks with every operation, adds, concats and holes.

use obprox_infer::network::{NodeId, Op, Window};
use obprox_infer::{Model, Network, Tensor, Training, Weights};

use super::Noise;

pub struct Builder {
    pub network: Network,
    pub weights: Weights,
    pub noise: Noise,
    /// The shape of each value.
    pub shapes: Vec<[usize; 3]>,
    density: f32,
    count: usize,
}

impl Builder {
    pub fn new(seed: u64, shape: [usize; 3], density: f32) -> Self {
        let network = Network::new(&shape);
        Self { network, weights: Weights::new(), noise: Noise::new(seed), shapes: vec![shape], density, count: 0 }
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.noise.unit() * end as f32) as usize
    }

    fn tensor(&mut self, name: &str, shape: &[usize], value: impl Fn(&mut Noise) -> f32) -> String {
        let data = (0..shape.iter().product()).map(|_| value(&mut self.noise)).collect();
        self.weights.insert(name, Tensor::new(shape, data).unwrap());
        name.to_owned()
    }

    pub fn push(&mut self, name: &str, op: Op, inputs: &[NodeId], shape: [usize; 3]) -> NodeId {
        self.shapes.push(shape);
        self.network.push(name, op, inputs)
    }

    /// Weights of which some rows are all zero.
    fn weight(&mut self, name: &str, shape: &[usize]) -> String {
        let scale = (3.0 / shape[1..].iter().product::<usize>() as f32).sqrt();
        let density = self.density;
        let name = self.tensor(name, shape, |noise| {
            let (value, there) = (scale * noise.signed(), noise.unit() < density);
            if there { value } else { 0.0 }
        });
        let row = shape[1..].iter().product::<usize>();
        for output in 0..shape[0] {
            if self.noise.unit() < 0.2 {
                self.weights.get_mut(&name).unwrap().data_mut()[output * row..][..row].fill(0.0);
            }
        }
        name
    }

    pub fn conv(&mut self, from: NodeId, outputs: usize, window: Window, groups: usize, bias: bool) -> NodeId {
        self.count += 1;
        let layer = format!("conv{}", self.count);
        let [channels, height, width] = self.shapes[from];
        let weight =
            self.weight(&format!("{layer}.weight"), &[outputs, channels / groups, window.kernel[0], window.kernel[1]]);
        let bias = bias.then(|| self.tensor(&format!("{layer}.bias"), &[outputs], |noise| 0.3 * noise.signed()));
        let sides = [height, width];
        let [height, width] = [0, 1].map(|axis| window.output_side(axis, sides[axis], false).unwrap());
        self.push(&layer, Op::Conv { weight, bias, window, groups }, &[from], [outputs, height, width])
    }

    pub fn norm(&mut self, from: NodeId) -> NodeId {
        self.count += 1;
        let layer = format!("norm{}", self.count);
        let shape = self.shapes[from];
        let affine = self.noise.unit() < 0.9;
        let holes = |noise: &mut Noise| if noise.unit() < 0.2 { 0.0 } else { 0.5 + noise.unit() };
        let weight = affine.then(|| self.tensor(&format!("{layer}.weight"), &shape[..1], holes));
        let bias = affine.then(|| self.tensor(&format!("{layer}.bias"), &shape[..1], |noise| 0.5 * noise.signed()));
        let mean = self.tensor(&format!("{layer}.running_mean"), &shape[..1], |noise| 0.3 * noise.signed());
        let var = self.tensor(&format!("{layer}.running_var"), &shape[..1], |noise| 0.5 + noise.unit());
        self.push(&layer, Op::BatchNorm { weight, bias, mean, var, epsilon: 1e-3 }, &[from], shape)
    }

    pub fn activation(&mut self, from: NodeId) -> NodeId {
        let all = [Op::Relu, Op::Relu, Op::Relu6, Op::Silu, Op::HardSwish, Op::HardSigmoid, Op::Gelu, Op::Sigmoid];
        let op = all[self.below(all.len())].clone();
        self.push("", op, &[from], self.shapes[from])
    }

    /// Squeeze and excite: every channel times a number that all channels have a say in.
    fn excite(&mut self, from: NodeId) -> NodeId {
        let shape = self.shapes[from];
        let pooled = self.push("", Op::AdaptiveAveragePool { size: [1, 1] }, &[from], [shape[0], 1, 1]);
        let less = self.conv(pooled, 2, Window::square(1, 1, 0), 1, true);
        let less = self.activation(less);
        let scale = self.conv(less, shape[0], Window::square(1, 1, 0), 1, true);
        let scale = self.push("", Op::HardSigmoid, &[scale], [shape[0], 1, 1]);
        self.push("", Op::Multiply, &[from, scale], shape)
    }

    fn window(&mut self, from: NodeId) -> Window {
        let side = self.shapes[from][1].min(self.shapes[from][2]);
        let kernels: &[[usize; 2]] =
            if side >= 5 { &[[1, 1], [3, 3], [5, 5], [1, 3], [3, 2]] } else { &[[1, 1], [3, 3]] };
        let kernel = kernels[self.below(kernels.len())];
        let dilation = if side >= 7 && self.below(4) == 0 { [2, 2] } else { [1, 1] };
        let reach = |axis: usize| (kernel[axis] - 1) * dilation[axis];
        let (down, right) = (reach(0) / 2, reach(1) / 2);
        let padding =
            if self.below(4) == 0 && side >= 7 { [0; 4] } else { [down, right, reach(0) - down, reach(1) - right] };
        let stride = [[1, 1], [1, 1], [2, 2], [3, 1]][self.below(4)];
        Window { kernel, stride, padding, dilation }
    }

    /// One random step from a value on.
    pub fn step(&mut self, from: NodeId) -> NodeId {
        let shape @ [channels, height, width] = self.shapes[from];
        match self.below(12) {
            0..=3 => {
                let (outputs, bias) = (1 + self.below(9), self.below(2) == 0);
                let window = self.window(from);
                let made = self.conv(from, outputs, window, 1, bias);
                let made = if self.below(2) == 0 { self.norm(made) } else { made };
                if self.below(3) == 0 { made } else { self.activation(made) }
            }
            4 => {
                let (multiple, window) = (1 + self.below(2), self.window(from));
                let made = self.conv(from, channels * multiple, window, channels, false);
                self.norm(made)
            }
            5 => self.norm(from),
            6 => self.excite(from),
            7 => {
                let made = self.conv(from, channels, Window::square(3, 1, 1), 1, true);
                let op = if self.below(3) == 0 { Op::Multiply } else { Op::Add };
                let added = self.push("", op, &[from, made], shape);
                self.activation(added)
            }
            8 => {
                let outputs = 1 + self.below(4);
                let made = self.conv(from, outputs, Window::square(1, 1, 0), 1, true);
                self.push("", Op::Concat, &[from, made], [channels + outputs, height, width])
            }
            9 if height >= 3 && width >= 3 => {
                let window = [Window::square(2, 2, 0), Window::square(3, 2, 1), Window::square(3, 1, 1)][self.below(3)];
                let (ceil, count_padding) = (self.below(2) == 0, self.below(2) == 0);
                let [rows, columns] = [0, 1].map(|axis| window.output_side(axis, shape[axis + 1], ceil).unwrap());
                let op = match self.below(2) {
                    0 => Op::MaxPool { window, ceil },
                    _ => Op::AveragePool { window, ceil, count_padding },
                };
                self.push("", op, &[from], [channels, rows, columns])
            }
            10 if height * width < 150 => {
                self.push("", Op::Upsample { scale: [2, 1] }, &[from], [channels, 2 * height, width])
            }
            _ => self.activation(from),
        }
    }

    /// Flattened, in one way or another, and classified.
    pub fn classify(&mut self, from: NodeId, classes: usize) -> NodeId {
        let [channels, ..] = self.shapes[from];
        let size = [[1, 1], [2, 2], [3, 2]][self.below(3)];
        let pooled = self.push("", Op::AdaptiveAveragePool { size }, &[from], [channels, size[0], size[1]]);
        let length = channels * size[0] * size[1];
        let op = if self.below(2) == 0 { Op::Flatten } else { Op::Reshape { shape: vec![length] } };
        let flat = self.push("", op, &[pooled], [length, 1, 1]);
        let weight = self.weight("fc.weight", &[classes, length]);
        let bias = (self.below(2) == 0).then(|| self.tensor("fc.bias", &[classes], |noise| noise.signed()));
        self.push("fc", Op::Linear { weight, bias }, &[flat], [classes, 1, 1])
    }

    pub fn model(self) -> Model {
        Model::new(self.network, self.weights, Training::default()).unwrap()
    }
}

/// A network of some random steps, that ends in scores, their shares, or an image.
pub fn random_network(seed: u64, density: f32) -> Model {
    let mut builder = Builder::new(seed, [[3, 9, 9], [1, 12, 7], [4, 6, 14]][seed as usize % 3], density);
    let mut value = 0;
    for _ in 0..4 + builder.below(8) {
        // Now and then from a value before the last one: then some are read twice, some by nobody.
        let from = if builder.below(8) == 0 { builder.below(value + 1) } else { value };
        value = builder.step(from);
    }
    match builder.below(4) {
        0 => {}
        1 => {
            let scores = builder.classify(value, 4);
            builder.push("", Op::Softmax, &[scores], [4, 1, 1]);
        }
        _ => {
            builder.classify(value, 5);
        }
    }
    builder.model()
}
