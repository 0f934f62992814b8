//! A network as a Burn module, built from the same description that inference has.
//!
//! The layers are Burn's own; [`Graph`](obprox_infer::graph::Graph) says what is computed from what. Parameters go to
//! and from [`Weights`], under PyTorch's names.

use burn::module::{Module, Param, ParamId, RunningState};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, PaddingConfig2d};
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;
use burn::tensor::{Device, Tensor, TensorData};
use obprox::{Error, Result};
use obprox_infer::graph::{Node, Op, Role, Shape};
use obprox_infer::{Architecture, Weights};

use crate::ops::{self, Framed, Zeros};
use crate::plan::{Task, Work, tasks};

/// A network that can be trained.
#[derive(Module, Debug)]
pub struct Net {
    convs: Vec<Conv2d>,
    norms: Vec<BatchNorm>,
    linears: Vec<Linear>,
    #[module(skip)]
    architecture: Architecture,
    #[module(skip)]
    steps: Vec<Step>,
    #[module(skip)]
    tasks: Vec<Task>,
    /// What is known of the zeros of each convolution.
    #[module(skip)]
    zeros: Vec<Zeros>,
}

/// A node of the graph, with the number of its layer among those of its kind.
#[derive(Clone, Debug)]
struct Step {
    node: Node,
    layer: usize,
    /// The values that no later step takes.
    done: Vec<usize>,
}

/// A value on the way: images, or the numbers of each image.
enum Value {
    Framed(Framed),
    Flat(Tensor<2>),
}

impl Value {
    fn framed(self) -> Framed {
        match self {
            Self::Framed(framed) => framed,
            Self::Flat(_) => unreachable!("images come before their means"),
        }
    }
}

/// A parameter that gradients train.
#[derive(Clone, Debug)]
pub struct NamedParam {
    /// PyTorch's name.
    pub name: String,
    /// Burn's identity.
    pub id: ParamId,
    /// Its number of dimensions.
    pub rank: usize,
}

impl Net {
    /// The network of these weights, on a device.
    pub fn new(architecture: Architecture, weights: &Weights, device: &Device) -> Result<Self> {
        architecture.check(weights)?;
        let (mut convs, mut norms, mut linears) = (Vec::new(), Vec::new(), Vec::new());
        let mut steps = Vec::new();
        for node in architecture.graph().nodes() {
            let part = Part { node, weights, device };
            let layer = match node.op {
                Op::Conv(conv) => push(&mut convs, part.conv(conv)?),
                Op::BatchNorm { channels } => push(&mut norms, part.norm(channels)?),
                Op::Linear { .. } => push(&mut linears, part.linear()?),
                Op::Input { .. } | Op::Relu | Op::Add | Op::MaxPool { .. } | Op::GlobalAveragePool => 0,
            };
            steps.push(Step { node: node.clone(), layer, done: Vec::new() });
        }
        for value in 0..steps.len() {
            let takers: Vec<usize> = (0..steps.len()).filter(|&at| steps[at].node.inputs.contains(&value)).collect();
            if let Some(&last) = takers.last() {
                steps[last].done.push(value);
            }
        }
        let nodes: Vec<(&Node, usize)> = steps.iter().map(|step| (&step.node, step.layer)).collect();
        let (tasks, zeros) = (tasks(&nodes), vec![Zeros::Free; convs.len()]);
        Ok(Self { convs, norms, linears, architecture, steps, tasks, zeros })
    }

    /// What it is.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Says which parameters' zeros stay zeros in the steps to come, by name: their gradients are then not computed, and
    /// given as zero.
    pub fn hold_zeros(&mut self, held: impl Fn(&str) -> bool) {
        for Step { node, layer, .. } in &self.steps {
            if let Op::Conv(_) = node.op {
                let held = held(&node.parameter(Role::Weight));
                self.zeros[*layer] = if held { Zeros::Held } else { Zeros::Free };
            }
        }
    }

    /// The scores of the classes, image by image.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        // Gradients by statistics of earlier batches are not what the kernels compute.
        let frozen = images.device().is_autodiff() && self.norms.iter().any(|norm| !norm.training.is_enabled());
        if frozen || !Framed::knows(&images) { self.forward_by_burn(images) } else { self.forward_framed(images) }
    }

    /// The same by Burn's own layers: the slow twin that [`forward`](Self::forward) is held to.
    pub fn forward_by_burn(&self, images: Tensor<4>) -> Tensor<2> {
        let mut values: Vec<Option<Tensor<4>>> = vec![None; self.steps.len()];
        values[0] = Some(images);
        for (at, step) in self.steps.iter().enumerate().skip(1) {
            let mut take = |input: usize| {
                let value = &mut values[step.node.inputs[input]];
                let last = step.done.contains(&step.node.inputs[input]);
                // A value that no later step takes is handed over, so that it can be worked on in place.
                if last { value.take() } else { value.clone() }.expect("inputs come before the nodes that take them")
            };
            let value = match step.node.op {
                Op::Input { .. } => unreachable!("the image is the first node only"),
                Op::Conv(_) => self.convs[step.layer].forward(take(0)),
                Op::BatchNorm { .. } => self.norms[step.layer].forward(take(0)),
                Op::Relu => relu(take(0)),
                Op::Add => take(0) + take(1),
                Op::MaxPool { size } => max_pool2d(take(0), MaxPoolOptions::new([size; 2])),
                Op::GlobalAveragePool => mean_of_channels(take(0)),
                Op::Linear { .. } => {
                    let input = take(0);
                    let [count, channels, ..] = input.dims();
                    let scores = self.linears[step.layer].forward(input.reshape([count, channels]));
                    let [count, classes] = scores.dims();
                    scores.reshape([count, classes, 1, 1])
                }
            };
            values[at] = Some(value);
        }
        let scores = values.pop().flatten().expect("the last node is the scores");
        let [count, classes, ..] = scores.dims();
        scores.reshape([count, classes])
    }

    fn forward_framed(&self, images: Tensor<4>) -> Tensor<2> {
        let mut values: Vec<Option<Value>> = (0..self.steps.len()).map(|_| None).collect();
        values[0] = Some(Value::Framed(Framed::new(images)));
        for task in &self.tasks {
            let mut take = |input: usize| {
                let number = task.inputs[input];
                match &mut values[number] {
                    value if task.done.contains(&number) => value.take(),
                    Some(Value::Framed(framed)) => Some(Value::Framed(framed.clone())),
                    Some(Value::Flat(flat)) => Some(Value::Flat(flat.clone())),
                    None => None,
                }
                .expect("inputs come before the tasks that take them")
            };
            let value = match task.work {
                Work::Block { conv, norm, rectify } => {
                    let conv = conv.map(|conv| (&self.convs[conv], self.zeros[conv]));
                    let residual = (task.inputs.len() > 1).then(|| take(1).framed());
                    Value::Framed(ops::block(conv, &self.norms[norm], take(0).framed(), residual, rectify))
                }
                Work::Conv { conv } => Value::Framed(ops::conv(&self.convs[conv], take(0).framed(), self.zeros[conv])),
                Work::Relu => Value::Framed(take(0).framed().rectified()),
                Work::Add => Value::Framed(take(0).framed().plus(take(1).framed())),
                Work::MaxPool { size } => Value::Framed(ops::max_pool(take(0).framed(), size)),
                Work::Means => Value::Flat(ops::channel_means(take(0).framed())),
                Work::Linear { linear } => match take(0) {
                    Value::Flat(flat) => Value::Flat(self.linears[linear].forward(flat)),
                    Value::Framed(_) => unreachable!("the means come before the scores"),
                },
            };
            values[task.output] = Some(value);
        }
        match values.pop().flatten() {
            Some(Value::Flat(scores)) => scores,
            _ => unreachable!("the last node is the scores"),
        }
    }

    /// Its parameters and running statistics by PyTorch's names.
    pub fn weights(&self) -> Result<Weights> {
        let mut weights = Weights::new();
        for step in &self.steps {
            let mut put = |role: Role, data: TensorData| -> Result<()> {
                let name = step.node.parameter(role);
                let shape = data.shape().to_vec();
                let values = data.try_into_vec::<f32>().map_err(|error| Error::Data(format!("{name}: {error:?}")))?;
                weights.insert(name, obprox_infer::Tensor::new(shape, values)?);
                Ok(())
            };
            match step.node.op {
                Op::Conv(_) => put(Role::Weight, self.convs[step.layer].weight.val().into_data())?,
                Op::BatchNorm { .. } => {
                    let norm = &self.norms[step.layer];
                    put(Role::NormWeight, norm.gamma.val().into_data())?;
                    put(Role::NormBias, norm.beta.val().into_data())?;
                    put(Role::RunningMean, norm.running_mean.value_sync().into_data())?;
                    put(Role::RunningVar, norm.running_var.value_sync().into_data())?;
                }
                Op::Linear { .. } => {
                    let linear = &self.linears[step.layer];
                    // PyTorch keeps a row for each output, Burn a column.
                    put(Role::Weight, linear.weight.val().transpose().into_data())?;
                    if let Some(bias) = &linear.bias {
                        put(Role::Bias, bias.val().into_data())?;
                    }
                }
                Op::Input { .. } | Op::Relu | Op::Add | Op::MaxPool { .. } | Op::GlobalAveragePool => {}
            }
        }
        Ok(weights)
    }

    /// Takes in the last batch's statistics. Burn lays them aside until the layer is next computed, and its records do
    /// not know of them.
    pub(crate) fn settle(&self) {
        for norm in &self.norms {
            norm.running_mean.value_sync();
            norm.running_var.value_sync();
        }
    }

    /// The parameters that gradients train, in the order of computing.
    pub fn params(&self) -> Vec<NamedParam> {
        let mut params = Vec::new();
        for Step { node, layer, .. } in &self.steps {
            let mut put = |role, id, rank| params.push(NamedParam { name: node.parameter(role), id, rank });
            match node.op {
                Op::Conv(_) => put(Role::Weight, self.convs[*layer].weight.id, 4),
                Op::BatchNorm { .. } => {
                    put(Role::NormWeight, self.norms[*layer].gamma.id, 1);
                    put(Role::NormBias, self.norms[*layer].beta.id, 1);
                }
                Op::Linear { .. } => {
                    put(Role::Weight, self.linears[*layer].weight.id, 2);
                    if let Some(bias) = &self.linears[*layer].bias {
                        put(Role::Bias, bias.id, 1);
                    }
                }
                Op::Input { .. } | Op::Relu | Op::Add | Op::MaxPool { .. } | Op::GlobalAveragePool => {}
            }
        }
        params
    }
}

fn push<T>(layers: &mut Vec<T>, layer: T) -> usize {
    layers.push(layer);
    layers.len() - 1
}

fn mean_of_channels(images: Tensor<4>) -> Tensor<4> {
    let [count, channels, height, width] = images.dims();
    images.reshape([count, channels, height * width]).mean_dim(2).reshape([count, channels, 1, 1])
}

/// Makes the layer of a node from its weights.
struct Part<'a> {
    node: &'a Node,
    weights: &'a Weights,
    device: &'a Device,
}

impl Part<'_> {
    fn conv(&self, conv: Shape) -> Result<Conv2d> {
        let pad = conv.padding;
        let config = Conv2dConfig::new([conv.inputs, conv.outputs], [conv.kernel; 2])
            .with_stride([conv.stride; 2])
            .with_groups(conv.groups)
            .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
            .with_bias(false);
        Ok(Conv2d { weight: Param::from_tensor(self.tensor(Role::Weight)?), ..config.init(self.device) })
    }

    fn norm(&self, channels: usize) -> Result<BatchNorm> {
        Ok(BatchNorm {
            gamma: Param::from_tensor(self.tensor(Role::NormWeight)?),
            beta: Param::from_tensor(self.tensor(Role::NormBias)?),
            running_mean: RunningState::new(self.tensor(Role::RunningMean)?),
            running_var: RunningState::new(self.tensor(Role::RunningVar)?),
            ..BatchNormConfig::new(channels).init(self.device)
        })
    }

    fn linear(&self) -> Result<Linear> {
        let weight = self.tensor::<2>(Role::Weight)?.transpose();
        Ok(Linear { weight: Param::from_tensor(weight), bias: Some(Param::from_tensor(self.tensor(Role::Bias)?)) })
    }

    fn tensor<const D: usize>(&self, role: Role) -> Result<Tensor<D>> {
        let name = self.node.parameter(role);
        let tensor = self.weights.get(&name).ok_or_else(|| Error::Data(format!("{name} is missing")))?;
        let data = TensorData::new(tensor.data().to_vec(), tensor.shape());
        Ok(Tensor::from_data(data, self.device))
    }
}
