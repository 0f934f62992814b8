//! The kernels as operations of Burn's backends: plain on the CPU, and with their gradients under autodiff.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, TensorData, backend_extension};

use super::normalise::{self, Affine, NormShape};
use super::shape::ConvShape;
use super::{dense, depthwise};

/// What the CPU backend learns.
#[backend_extension(Flex, Autodiff)]
pub trait TrainingOps: Backend {
    /// A convolution without bias; `depthwise` where each channel sees itself only.
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        shape: ConvShape,
        depthwise: bool,
    ) -> FloatTensor<Self>;

    /// Mean and variance of each channel, as two rows. Without gradient: [`normalise`](TrainingOps::normalise) has it.
    fn channel_statistics(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// γ(x − mean)/√(variance + ε) + β, and max(·, 0) of it where `rectify`. Its gradient takes the statistics for
    /// those of the batch.
    fn normalise(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        statistics: FloatTensor<Self>,
        epsilon: f64,
        rectify: bool,
    ) -> FloatTensor<Self>;
}

type Cpu = FloatTensor<Flex>;

impl TrainingOps for Flex {
    fn convolve(x: Cpu, weight: Cpu, shape: ConvShape, depthwise: bool) -> Cpu {
        let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
        let forward = if depthwise { depthwise::forward } else { dense::forward };
        let [rows, columns] = shape.output_size();
        tensor(forward(&shape, values(&x), values(&weight)), &[shape.images, shape.outputs, rows, columns])
    }

    fn channel_statistics(x: Cpu) -> Cpu {
        let (x, shape) = channels(&x);
        tensor(normalise::statistics(shape, values(&x)), &[2, shape.channels])
    }

    fn normalise(x: Cpu, gamma: Cpu, beta: Cpu, statistics: Cpu, epsilon: f64, rectify: bool) -> Cpu {
        let affine = affine(&statistics, &gamma, &beta, epsilon);
        let (x, shape) = channels(&x);
        tensor(normalise::forward(shape, values(&x), &affine, rectify), x.layout().shape())
    }
}

impl<C: CheckpointStrategy> TrainingOps for Autodiff<Flex, C> {
    fn convolve(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        shape: ConvShape,
        depthwise: bool,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Convolve;

        impl Backward<Flex, 2> for Convolve {
            type State = (Cpu, Cpu, ConvShape, bool);

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [x_node, weight_node] = ops.parents;
                let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
                let (x, weight, shape, depthwise) = ops.state;
                if let Some(node) = weight_node {
                    let gradient = if depthwise { depthwise::weight_gradient } else { dense::weight_gradient };
                    let gradient = gradient(&shape, values(&x), values(&dy));
                    grads.register::<Flex>(node.id, tensor(gradient, weight.layout().shape()));
                }
                if let Some(node) = x_node {
                    let gradient = if depthwise { depthwise::input_gradient } else { dense::input_gradient };
                    let gradient = gradient(&shape, values(&weight), values(&dy));
                    grads.register::<Flex>(node.id, tensor(gradient, x.layout().shape()));
                }
            }
        }

        match Convolve.prepare::<C>([x.node(), weight.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (x, weight) = (x.into_primitive().to_contiguous(), weight.into_primitive().to_contiguous());
                let out = Flex::convolve(x.clone(), weight.clone(), shape, depthwise);
                prepared.finish((x, weight, shape, depthwise), out)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(Flex::convolve(x.into_primitive(), weight.into_primitive(), shape, depthwise))
            }
        }
    }

    fn channel_statistics(x: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct None;

        impl Backward<Flex, 0> for None {
            type State = ();
            fn backward(self, _: Ops<(), 0>, _: &mut Gradients, _: &mut Checkpointer) {}
        }

        match None.prepare::<C>([]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish((), Flex::channel_statistics(x.into_primitive())),
            OpsKind::UnTracked(prepared) => prepared.finish(Flex::channel_statistics(x.into_primitive())),
        }
    }

    fn normalise(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        statistics: FloatTensor<Self>,
        epsilon: f64,
        rectify: bool,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Normalise;

        impl Backward<Flex, 3> for Normalise {
            type State = (Cpu, Affine, bool);

            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, _: &mut Checkpointer) {
                let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
                let (x, affine, rectify) = ops.state;
                let (x, shape) = channels(&x);
                let [dx, gamma, beta] = normalise::backward(shape, values(&x), &affine, rectify, values(&dy));
                let channels = [shape.channels];
                let gradients = [tensor(dx, x.layout().shape()), tensor(gamma, &channels), tensor(beta, &channels)];
                for (node, gradient) in ops.parents.into_iter().zip(gradients) {
                    if let Some(node) = node {
                        grads.register::<Flex>(node.id, gradient);
                    }
                }
            }
        }

        let nodes = [x.node(), gamma.node(), beta.node()];
        let (x, statistics) = (x.into_primitive().to_contiguous(), statistics.into_primitive());
        let (gamma, beta) = (gamma.into_primitive(), beta.into_primitive());
        let affine = affine(&statistics, &gamma, &beta, epsilon);
        let out = Flex::normalise(x.clone(), gamma, beta, statistics, epsilon, rectify);
        match Normalise.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish((x, affine, rectify), out),
            OpsKind::UnTracked(prepared) => prepared.finish(out),
        }
    }
}

fn affine(statistics: &Cpu, gamma: &Cpu, beta: &Cpu, epsilon: f64) -> Affine {
    let [statistics, gamma, beta] = [statistics, gamma, beta].map(|tensor| tensor.to_contiguous());
    Affine::new(values(&statistics), values(&gamma), values(&beta), epsilon)
}

/// A tensor of images as its channels.
fn channels(x: &Cpu) -> (Cpu, NormShape) {
    let x = x.to_contiguous();
    let shape = x.layout().shape();
    let shape = NormShape { channels: shape[1], plane: shape[2] * shape[3] };
    (x, shape)
}

/// The values of a tensor that is contiguous.
fn values(tensor: &Cpu) -> &[f32] {
    tensor.as_slice::<f32>().expect("the callers make tensors contiguous")
}

fn tensor(values: Vec<f32>, shape: &[usize]) -> Cpu {
    Cpu::from_data(TensorData::new(values, shape))
}
