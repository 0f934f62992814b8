//! What each operation of ONNX is here.

use super::import::{Constant, Flawed, Importer, Made, constant};
use super::proto::{Attribute, Node};
use crate::network::{NodeId, Op, Window};
use crate::weights::Tensor;

impl Node {
    fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    fn number(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.number)
    }

    fn float(&self, name: &str, default: f32) -> f32 {
        self.attribute(name).map_or(default, |attribute| attribute.float)
    }

    fn text(&self, name: &str, default: &str) -> String {
        self.attribute(name).map_or(default.into(), |attribute| String::from_utf8_lossy(&attribute.text).into_owned())
    }

    fn numbers(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|attribute| &attribute.numbers[..])
    }
}

fn sizes<const N: usize>(numbers: &[i64], what: &str) -> Flawed<[usize; N]> {
    let sizes: Option<Vec<usize>> = numbers.iter().map(|&number| usize::try_from(number).ok()).collect();
    sizes.and_then(|sizes| sizes.try_into().ok()).ok_or_else(|| format!("{what} {numbers:?} is not known"))
}

impl Importer {
    pub fn operation(&mut self, node: &Node) -> Flawed<Made> {
        let plain = match node.op.as_str() {
            "Relu" => Op::Relu,
            "Sigmoid" => Op::Sigmoid,
            "HardSwish" => Op::HardSwish,
            "GlobalAveragePool" => Op::AdaptiveAveragePool { size: [1, 1] },
            "Gelu" if node.text("approximate", "none") == "none" => Op::Gelu,
            "Swish" if node.float("alpha", 1.0) == 1.0 => Op::Silu,
            "HardSigmoid" if is_about(node.float("alpha", 0.2), 1.0 / 6.0) && node.float("beta", 0.5) == 0.5 => {
                Op::HardSigmoid
            }
            "Flatten" if node.number("axis", 1) == 1 => Op::Flatten,
            "Clip" => self.clip(node)?,
            "Resize" | "Upsample" => self.resize(node)?,
            "Softmax" => self.softmax(node)?,
            "MaxPool" if node.outputs.len() == 1 => {
                Op::MaxPool { window: self.pool_window(node)?, ceil: node.number("ceil_mode", 0) != 0 }
            }
            "AveragePool" => Op::AveragePool {
                window: self.pool_window(node)?,
                ceil: node.number("ceil_mode", 0) != 0,
                count_padding: node.number("count_include_pad", 0) != 0,
            },
            "Dropout" | "Identity" => return self.input(node, 0).map(Made::Value),
            "Constant" => return node_constant(node).map(Made::Constant),
            "Conv" => return self.conv(node),
            "Gemm" => return self.gemm(node),
            "MatMul" => return self.matmul(node),
            "BatchNormalization" => return self.batch_norm(node),
            "Add" | "Sub" | "Mul" | "Div" => return self.arithmetic(node),
            "Concat" => return self.concat(node),
            "ReduceMean" => return self.reduce_mean(node),
            "Reshape" | "Squeeze" | "Unsqueeze" => return self.reshape(node),
            other => return Err(format!("the operation {other}, as it is here, is not known")),
        };
        let input = self.input(node, 0)?;
        self.push("", plain, &[input])
    }

    fn shape(&self, id: NodeId) -> &[usize] {
        &self.shapes[id]
    }

    /// The window of a convolution or a pool; `auto_pad` is worked out from the size of the input.
    fn window(&self, node: &Node, kernel: [usize; 2], input: NodeId) -> Flawed<Window> {
        let pair = |name: &str| node.numbers(name).map_or(Ok([1, 1]), |numbers| sizes(numbers, name));
        let (stride, dilation) = (pair("strides")?, pair("dilations")?);
        if kernel.contains(&0) || stride.contains(&0) || dilation.contains(&0) {
            return Err("has a kernel, a stride or a dilation of zero".into());
        }
        let mut window = Window { kernel, stride, padding: [0; 4], dilation };
        match node.text("auto_pad", "NOTSET").as_str() {
            "NOTSET" => {
                window.padding = node.numbers("pads").map_or(Ok([0; 4]), |numbers| sizes(numbers, "pads"))?;
            }
            "VALID" => {}
            same @ ("SAME_UPPER" | "SAME_LOWER") => {
                for axis in 0..2 {
                    let side = *self.shape(input).get(axis + 1).ok_or("takes images")?;
                    let reach = (kernel[axis] - 1).saturating_mul(dilation[axis]).saturating_add(1);
                    let whole = (side.div_ceil(stride[axis]) - 1) * stride[axis];
                    let padding = whole.saturating_add(reach).saturating_sub(side);
                    let less = padding / 2;
                    let (before, after) =
                        if same == "SAME_UPPER" { (less, padding - less) } else { (padding - less, less) };
                    (window.padding[axis], window.padding[axis + 2]) = (before, after);
                }
            }
            other => return Err(format!("auto_pad {other} is not known")),
        }
        Ok(window)
    }

    fn pool_window(&self, node: &Node) -> Flawed<Window> {
        let kernel = sizes(node.numbers("kernel_shape").unwrap_or(&[]), "a kernel of shape")?;
        self.window(node, kernel, self.input(node, 0)?)
    }

    fn conv(&mut self, node: &Node) -> Flawed<Made> {
        let input = self.input(node, 0)?;
        let (weight, bias) = (self.weight(node, 1)?, self.optional(node, 2)?);
        let &[_, _, rows, columns] = self.weights.get(&weight).map_or(&[][..], |tensor| tensor.shape()) else {
            return Err("convolutions of two dimensions are known".into());
        };
        if let Some(told) = node.numbers("kernel_shape").filter(|told| **told != [rows as i64, columns as i64]) {
            return Err(format!("kernel_shape {told:?} where the weight is of {rows}×{columns}"));
        }
        let window = self.window(node, [rows, columns], input)?;
        let [groups] = sizes(&[node.number("group", 1)], "group")?;
        let name = layer(&weight);
        self.push(&name, Op::Conv { weight, bias, window, groups }, &[input])
    }

    /// A matrix as it is, or turned.
    fn matrix(&mut self, node: &Node, turned: bool) -> Flawed<String> {
        let name = self.weight(node, 1)?;
        let tensor = self.weights.get(&name).filter(|tensor| tensor.shape().len() == 2);
        let tensor = tensor.ok_or("takes a matrix of two dimensions")?;
        if !turned {
            return Ok(name);
        }
        let [rows, columns] = [tensor.shape()[0], tensor.shape()[1]];
        let data = (0..columns).flat_map(|column| (0..rows).map(move |row| row * columns + column));
        let data = data.map(|at| tensor.data()[at]).collect();
        self.add_weight(format!("{name}.T"), &[columns, rows], data)
    }

    fn gemm(&mut self, node: &Node) -> Flawed<Made> {
        let factors = [node.float("alpha", 1.0), node.float("beta", 1.0)];
        if factors != [1.0, 1.0] || node.number("transA", 0) != 0 {
            return Err("with alpha, beta or transA is not known".into());
        }
        let input = self.input(node, 0)?;
        let weight = self.matrix(node, node.number("transB", 0) == 0)?;
        let bias = self.optional(node, 2)?;
        let name = layer(&weight);
        self.push(&name, Op::Linear { weight, bias }, &[input])
    }

    fn matmul(&mut self, node: &Node) -> Flawed<Made> {
        let input = self.input(node, 0)?;
        let weight = self.matrix(node, true)?;
        let name = layer(&weight);
        self.push(&name, Op::Linear { weight, bias: None }, &[input])
    }

    fn batch_norm(&mut self, node: &Node) -> Flawed<Made> {
        if node.number("training_mode", 0) != 0 {
            return Err("is in training: export the network for inference".into());
        }
        let input = self.input(node, 0)?;
        let (weight, bias) = (Some(self.weight(node, 1)?), Some(self.weight(node, 2)?));
        let (mean, var) = (self.weight(node, 3)?, self.weight(node, 4)?);
        let epsilon = f64::from(node.float("epsilon", 1e-5));
        let name = weight.as_deref().map_or(String::new(), layer);
        self.push(&name, Op::BatchNorm { weight, bias, mean, var, epsilon }, &[input])
    }

    /// Of two values, or of one and a number a channel.
    fn arithmetic(&mut self, node: &Node) -> Flawed<Made> {
        let (one, two) = (self.constant(node, 0).cloned(), self.constant(node, 1).cloned());
        let (input, constant, swapped) = match (one, two) {
            (None, None) => {
                let pair = [self.input(node, 0)?, self.input(node, 1)?];
                return match node.op.as_str() {
                    "Add" => self.push("", Op::Add, &pair),
                    "Mul" => self.push("", Op::Multiply, &pair),
                    other => Err(format!("the operation {other} of two values is not known")),
                };
            }
            (None, Some(Constant::Floats(constant))) => (self.input(node, 0)?, constant, false),
            (Some(Constant::Floats(constant)), None) => (self.input(node, 1)?, constant, true),
            _ => return Err("of two constants, or of whole numbers, is not known".into()),
        };
        let numbers = self.by_channel(input, &constant)?;
        let each = |f: fn(f32) -> f32| numbers.iter().map(|&number| f(number)).collect::<Vec<f32>>();
        let (scale, shift) = match (node.op.as_str(), swapped) {
            ("Add", _) => (each(|_| 1.0), numbers),
            ("Sub", false) => (each(|_| 1.0), each(|number| -number)),
            ("Sub", true) => (each(|_| -1.0), numbers),
            ("Mul", _) => (numbers.clone(), each(|_| 0.0)),
            ("Div", false) => (each(|number| 1.0 / number), each(|_| 0.0)),
            (other, _) => return Err(format!("the operation {other} of a constant by a value is not known")),
        };
        if let Some(made) = self.take_bias(input, &scale, &shift)? {
            return Ok(made);
        }
        let base = format!("{}.affine", node.outputs[0]);
        let channels = [scale.len()];
        let mut tensor = |what: &str, data| self.add_weight(format!("{base}.{what}"), &channels, data);
        let (zeros, ones) = (vec![0.0; scale.len()], vec![1.0; scale.len()]);
        let (weight, bias) = (Some(tensor("weight", scale)?), Some(tensor("bias", shift)?));
        let (mean, var) = (tensor("mean", zeros)?, tensor("var", ones)?);
        self.push("", Op::BatchNorm { weight, bias, mean, var, epsilon: 0.0 }, &[input])
    }

    /// What is added right after a matrix is its bias.
    fn take_bias(&mut self, input: NodeId, scale: &[f32], shift: &[f32]) -> Flawed<Option<Made>> {
        let is_newest = input + 1 == self.network.nodes().len();
        let node = &self.network.nodes()[input];
        let Op::Linear { weight, bias: None } = &node.op else { return Ok(None) };
        // Whoever else reads the product would read the sum.
        if !is_newest || scale.iter().any(|scale| *scale != 1.0) {
            return Ok(None);
        }
        let (name, weight, from) = (node.name.clone(), weight.clone(), node.inputs[0]);
        let bias = self.add_weight(format!("{weight}.bias"), &[shift.len()], shift.to_vec())?;
        self.push(&name, Op::Linear { weight, bias: Some(bias) }, &[from]).map(Some)
    }

    /// A constant as one number a channel of a value.
    fn by_channel(&self, input: NodeId, constant: &Tensor) -> Flawed<Vec<f32>> {
        let shape = self.shape(input);
        let (channels, data) = (shape[0], constant.data());
        // Dimensions are matched from the last one on; the batch is the one before the channels.
        let mut sizes = constant.shape().to_vec();
        while sizes.len() < shape.len() + 1 {
            sizes.insert(0, 1);
        }
        let matches = sizes.len() == shape.len() + 1 && sizes[0] == 1 && sizes[2..].iter().all(|&size| size == 1);
        match data.len() {
            1 => Ok(vec![data[0]; channels]),
            len if matches && len == channels => Ok(data.to_vec()),
            _ => Err(format!("a constant of shape {:?} and a value of {shape:?}", constant.shape())),
        }
    }

    fn concat(&mut self, node: &Node) -> Flawed<Made> {
        let inputs: Flawed<Vec<NodeId>> = (0..node.inputs.len()).map(|at| self.input(node, at)).collect();
        let inputs = inputs?;
        let dimensions = inputs.first().map_or(0, |&input| self.shape(input).len() as i64 + 1);
        match node.number("axis", 1) {
            axis if axis == 1 || axis == 1 - dimensions => self.push("", Op::Concat, &inputs),
            axis => Err(format!("along axis {axis} is not known: channels are axis 1")),
        }
    }

    /// Numbers of an attribute, or of a constant input where newer versions have them.
    fn axes(&self, node: &Node, name: &str, at: usize) -> Option<Vec<i64>> {
        match (node.numbers(name), self.constant(node, at)) {
            (Some(numbers), _) => Some(numbers.to_vec()),
            (None, Some(Constant::Numbers(numbers))) => Some(numbers.clone()),
            _ => None,
        }
    }

    fn reduce_mean(&mut self, node: &Node) -> Flawed<Made> {
        let input = self.input(node, 0)?;
        let mut axes = self.axes(node, "axes", 1).unwrap_or_default();
        axes.iter_mut().filter(|axis| **axis < 0).for_each(|axis| *axis += 4);
        axes.sort_unstable();
        if axes != [2, 3] || self.shape(input).len() != 3 {
            return Err("over other axes than those of the image is not known".into());
        }
        let pooled = self.push("", Op::AdaptiveAveragePool { size: [1, 1] }, &[input])?;
        match (pooled, node.number("keepdims", 1)) {
            (Made::Value(pooled), 0) => self.push("", Op::Flatten, &[pooled]),
            (pooled, _) => Ok(pooled),
        }
    }

    fn reshape(&mut self, node: &Node) -> Flawed<Made> {
        let input = self.input(node, 0)?;
        let given = self.shape(input).to_vec();
        let all: usize = given.iter().product();
        let shape: Vec<usize> = match node.op.as_str() {
            "Reshape" => {
                let sizes = self.axes(node, "shape", 1).ok_or("to a shape that is computed is not known")?;
                let (_, rest) = sizes.split_first().ok_or("to no shape")?;
                let size = |(at, &size): (usize, &i64)| match size {
                    0 => given.get(at).copied(),
                    -1 => {
                        let others = rest.iter().filter(|size| **size != -1).map(|&size| size.max(1) as usize);
                        all.checked_div(others.product())
                    }
                    size => usize::try_from(size).ok(),
                };
                rest.iter().enumerate().map(size).collect::<Option<_>>().ok_or("to a shape that is not one")?
            }
            // Only a pixel can come and go: [channels] and [channels, 1, 1] are the same numbers.
            "Squeeze" if given.len() == 3 && given[1..] == [1, 1] => vec![all],
            "Unsqueeze" if given.len() == 1 => vec![all, 1, 1],
            other => return Err(format!("the operation {other}, as it is here, is not known")),
        };
        match shape[..] {
            [length] if length == all => self.push("", Op::Flatten, &[input]),
            _ => self.push("", Op::Reshape { shape }, &[input]),
        }
    }

    fn clip(&self, node: &Node) -> Flawed<Op> {
        let bound = |at: usize, name: &str, default: f32| match self.constant(node, at) {
            Some(Constant::Floats(tensor)) if tensor.len() == 1 => tensor.data()[0],
            _ => node.float(name, default),
        };
        match [bound(1, "min", f32::MIN), bound(2, "max", f32::MAX)] {
            [0.0, 6.0] => Ok(Op::Relu6),
            [0.0, f32::MAX] => Ok(Op::Relu),
            [least, most] => Err(format!("to {least} … {most} is not known: 0 … 6 is")),
        }
    }

    fn softmax(&self, node: &Node) -> Flawed<Op> {
        let dimensions = self.shape(self.input(node, 0)?).len() as i64 + 1;
        match node.number("axis", -1) {
            axis if axis == 1 || axis == 1 - dimensions => Ok(Op::Softmax),
            axis => Err(format!("along axis {axis} is not known: channels are axis 1")),
        }
    }

    fn resize(&self, node: &Node) -> Flawed<Op> {
        let shape = self.shape(self.input(node, 0)?);
        if node.text("mode", "nearest") != "nearest" || shape.len() != 3 {
            return Err("other than of images to the nearest pixel is not known".into());
        }
        let at = if node.op == "Upsample" { 1 } else { 2 };
        let scales = match (self.constant(node, at), self.constant(node, 3), node.attribute("scales")) {
            (Some(Constant::Floats(scales)), ..) if scales.len() == 4 => scales.data().to_vec(),
            (_, Some(Constant::Numbers(sizes)), _) if sizes.len() == 4 => {
                (0..4).map(|at| if at == 0 { 1.0 } else { sizes[at] as f32 / shape[at - 1] as f32 }).collect()
            }
            (_, _, Some(attribute)) if attribute.floats.len() == 4 => attribute.floats.clone(),
            _ => return Err("by scales that are computed is not known".into()),
        };
        match scales[..] {
            [1.0, 1.0, down, right] if [down, right].iter().all(|scale| *scale >= 1.0 && scale.fract() == 0.0) => {
                Ok(Op::Upsample { scale: [down as usize, right as usize] })
            }
            _ => Err(format!("by {scales:?} is not known: whole multiples of height and width are")),
        }
    }
}

fn node_constant(node: &Node) -> Flawed<Constant> {
    if let Some(tensor) = node.attribute("value").and_then(|attribute| attribute.tensor.as_ref()) {
        return constant(tensor);
    }
    let single = |value: f32| Tensor::new(Vec::new(), vec![value]).map_err(|error| error.to_string());
    match (node.attribute("value_float"), node.numbers("value_ints"), node.attribute("value_int")) {
        (Some(attribute), ..) => single(attribute.float).map(Constant::Floats),
        (_, Some(numbers), _) => Ok(Constant::Numbers(numbers.to_vec())),
        (_, _, Some(attribute)) => Ok(Constant::Numbers(vec![attribute.number])),
        _ => Err("of this kind is not known".into()),
    }
}

fn is_about(one: f32, two: f32) -> bool {
    (one - two).abs() < 1e-4
}

/// The layer that a weight is of.
fn layer(weight: &str) -> String {
    weight.trim_end_matches(".T").trim_end_matches(".weight").to_owned()
}
