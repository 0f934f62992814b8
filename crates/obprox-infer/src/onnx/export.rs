//! [`Model`] → ONNX, in operations of version 20.

use obprox::{Error, Result};

use super::proto::{self, Attribute, Info, kind};
use crate::model::Model;
use crate::network::{Node, NodeId, Op, Shapes, Window};

/// The version that brought Gelu.
const OPSET: i64 = 20;
/// What the file tells of images and classes, as JSON among its metadata.
pub(super) const METADATA_KEY: &str = "obprox";

pub fn model(model: &Model) -> Result<proto::Model> {
    let network = model.network();
    let shapes = network.shapes(model.weights(), network.input_shape())?;
    let mut exporter = Exporter { shapes: &shapes, graph: proto::Graph::default() };
    for (name, tensor) in model.weights().iter() {
        exporter.tensor(name, tensor.shape(), tensor.data());
    }
    let info = |id: NodeId, shapes: &Shapes| Info {
        name: value(id),
        shape: std::iter::once(None).chain(shapes[id].iter().map(|&size| Some(size as i64))).collect(),
    };
    let last = network.nodes().len() - 1;
    exporter.graph.inputs.push(info(0, &shapes));
    exporter.graph.outputs.push(info(last, &shapes));
    for (id, node) in network.nodes().iter().enumerate() {
        exporter.node(id, node)?;
    }
    let training = serde_json::to_string(model.training()).map_err(|error| Error::Data(error.to_string()))?;
    Ok(proto::Model { graph: exporter.graph, opset: OPSET, metadata: vec![(METADATA_KEY.into(), training)] })
}

struct Exporter<'a> {
    shapes: &'a Shapes,
    graph: proto::Graph,
}

/// The name of a value.
fn value(id: NodeId) -> String {
    if id == 0 { "input".into() } else { format!("value{id}") }
}

fn number(name: &str, number: i64) -> Attribute {
    Attribute { name: name.into(), number, kind: kind::ATTRIBUTE_NUMBER, ..Attribute::default() }
}

fn numbers(name: &str, numbers: &[usize]) -> Attribute {
    let numbers = numbers.iter().map(|&number| number as i64).collect();
    Attribute { name: name.into(), numbers, kind: kind::ATTRIBUTE_NUMBERS, ..Attribute::default() }
}

fn float(name: &str, float: f32) -> Attribute {
    Attribute { name: name.into(), float, kind: kind::ATTRIBUTE_FLOAT, ..Attribute::default() }
}

fn text(name: &str, text: &str) -> Attribute {
    Attribute { name: name.into(), text: text.into(), kind: kind::ATTRIBUTE_TEXT, ..Attribute::default() }
}

fn window(window: &Window) -> Vec<Attribute> {
    vec![
        numbers("kernel_shape", &window.kernel),
        numbers("strides", &window.stride),
        numbers("pads", &window.padding),
        numbers("dilations", &window.dilation),
    ]
}

impl Exporter<'_> {
    fn tensor(&mut self, name: &str, shape: &[usize], data: &[f32]) {
        self.graph.initializers.push(proto::Tensor {
            name: name.into(),
            shape: shape.iter().map(|&size| size as i64).collect(),
            kind: kind::FLOAT,
            raw: data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ..proto::Tensor::default()
        });
    }

    fn push(&mut self, name: &str, op: &str, inputs: Vec<String>, output: String, attributes: Vec<Attribute>) {
        let node = proto::Node {
            inputs,
            outputs: vec![output],
            name: name.into(),
            op: op.into(),
            domain: String::new(),
            attributes,
        };
        self.graph.nodes.push(node);
    }

    fn node(&mut self, id: NodeId, node: &Node) -> Result<()> {
        let mut inputs: Vec<String> = node.inputs.iter().map(|&input| value(input)).collect();
        let plain = |name: &'static str| (name, Vec::new());
        let (op, attributes) = match &node.op {
            Op::Input { .. } => return Ok(()),
            Op::Conv { weight, bias, window: around, groups } => {
                inputs.push(weight.clone());
                inputs.extend(bias.clone());
                let mut attributes = window(around);
                attributes.push(number("group", *groups as i64));
                ("Conv", attributes)
            }
            Op::Linear { weight, bias } => {
                inputs.push(weight.clone());
                inputs.extend(bias.clone());
                ("Gemm", vec![number("transB", 1)])
            }
            Op::BatchNorm { weight, bias, mean, var, epsilon } => {
                let channels = self.shapes[id][0];
                for (given, what, value) in [(weight, "scale", 1.0), (bias, "shift", 0.0)] {
                    inputs.push(match given {
                        Some(name) => name.clone(),
                        None => {
                            let name = format!("value{id}.{what}");
                            self.tensor(&name, &[channels], &vec![value; channels]);
                            name
                        }
                    });
                }
                inputs.extend([mean.clone(), var.clone()]);
                ("BatchNormalization", vec![float("epsilon", *epsilon as f32)])
            }
            Op::Relu => plain("Relu"),
            Op::Relu6 => {
                for (what, bound) in [("least", 0.0), ("most", 6.0)] {
                    let name = format!("value{id}.{what}");
                    self.tensor(&name, &[], &[bound]);
                    inputs.push(name);
                }
                plain("Clip")
            }
            Op::Silu => {
                let sigmoid = format!("value{id}.sigmoid");
                self.push("", "Sigmoid", inputs.clone(), sigmoid.clone(), Vec::new());
                inputs.push(sigmoid);
                plain("Mul")
            }
            Op::HardSwish => plain("HardSwish"),
            Op::HardSigmoid => ("HardSigmoid", vec![float("alpha", 1.0 / 6.0), float("beta", 0.5)]),
            Op::Gelu => plain("Gelu"),
            Op::Sigmoid => plain("Sigmoid"),
            Op::Add => plain("Add"),
            Op::Multiply => plain("Mul"),
            Op::Concat => ("Concat", vec![number("axis", 1)]),
            Op::MaxPool { window: around, ceil } => {
                let mut attributes = window(around);
                attributes.push(number("ceil_mode", (*ceil).into()));
                ("MaxPool", attributes)
            }
            Op::AveragePool { window: around, ceil, count_padding } => {
                let mut attributes = window(around);
                attributes.push(number("ceil_mode", (*ceil).into()));
                attributes.push(number("count_include_pad", (*count_padding).into()));
                ("AveragePool", attributes)
            }
            Op::AdaptiveAveragePool { size: [1, 1] } => plain("GlobalAveragePool"),
            Op::AdaptiveAveragePool { size } => ("AveragePool", window(&self.even_window(id, node, *size)?)),
            Op::Upsample { scale } => {
                let scales = [1.0, 1.0, scale[0] as f32, scale[1] as f32];
                let name = format!("value{id}.scales");
                self.tensor(&name, &[4], &scales);
                inputs.extend([String::new(), name]);
                let modes = [("mode", "nearest"), ("nearest_mode", "floor")];
                let modes = modes.into_iter().chain([("coordinate_transformation_mode", "asymmetric")]);
                ("Resize", modes.map(|(name, value)| text(name, value)).collect())
            }
            Op::Flatten => ("Flatten", vec![number("axis", 1)]),
            Op::Reshape { shape } => {
                // Zero stands for the batch as it is.
                let sizes = std::iter::once(0).chain(shape.iter().map(|&size| size as i64));
                let tensor = proto::Tensor {
                    name: format!("value{id}.shape"),
                    shape: vec![shape.len() as i64 + 1],
                    kind: kind::INT64,
                    raw: sizes.flat_map(|size: i64| size.to_le_bytes()).collect(),
                    ..proto::Tensor::default()
                };
                inputs.push(tensor.name.clone());
                self.graph.initializers.push(tensor);
                plain("Reshape")
            }
            Op::Softmax => ("Softmax", vec![number("axis", 1)]),
        };
        self.push(&node.name, op, inputs, value(id), attributes);
        Ok(())
    }

    /// ONNX has no pooling to a size; where the windows are all alike it is pooling by them.
    fn even_window(&self, id: NodeId, node: &Node, size: [usize; 2]) -> Result<Window> {
        let from = &self.shapes[node.inputs[0]];
        let sides = [from[1], from[2]];
        if (0..2).any(|axis| !sides[axis].is_multiple_of(size[axis])) {
            let what = node.described(id);
            let message = format!("{what} pools {sides:?} pixels to {size:?}, which ONNX has no operation for");
            return Err(Error::Data(message));
        }
        let kernel = [sides[0] / size[0], sides[1] / size[1]];
        Ok(Window { kernel, stride: kernel, padding: [0; 4], dilation: [1; 2] })
    }
}
