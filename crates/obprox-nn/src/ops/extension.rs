//! The kernels as operations of Burn's backends: plain on the CPU, and with their gradients under autodiff.

use std::sync::{Arc, Mutex};

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Flex, backend_extension};
use obprox_kernels as kernels;
use obprox_kernels::Planes;

use super::block::{Block, Normalisation};
use super::layer::Layer;
use super::memory::{Cpu, Memory, tensor, values};

/// Mean and variance of each channel of a batch, told by the operation that takes them.
pub type Told = Arc<Mutex<Vec<(f64, f64)>>>;

/// What the CPU backend learns. Framed tensors are batches as [`Planes`] has them.
#[backend_extension(Flex, Autodiff)]
pub trait TrainingOps: Backend {
    /// Images, put into frames.
    fn frame(images: FloatTensor<Self>, planes: Planes) -> FloatTensor<Self>;

    /// Framed images, taken out.
    fn unframe(framed: FloatTensor<Self>, planes: Planes) -> FloatTensor<Self>;

    /// A convolution without bias.
    fn convolve(x: FloatTensor<Self>, weight: FloatTensor<Self>, layer: Layer) -> FloatTensor<Self>;

    /// A convolution, its normalisation, what is added to that, and the rectifier. A weight without values stands for no
    /// convolution, a residual without values for none. The gradient takes the statistics for those of the batch.
    fn block(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        layer: Layer,
        normalisation: Normalisation,
    ) -> FloatTensor<Self>;

    /// The largest of every square of pixels.
    fn largest(x: FloatTensor<Self>, planes: Planes, size: usize) -> FloatTensor<Self>;

    /// The mean of each channel, image by image.
    fn means(x: FloatTensor<Self>, planes: Planes) -> FloatTensor<Self>;
}

/// The shape of a framed tensor.
fn framed(planes: &Planes) -> [usize; 2] {
    [planes.groups(), planes.group_floats()]
}

/// Framed values of this shape, to be written by `work`.
fn make(planes: &Planes, work: impl FnOnce(&mut [f32])) -> Cpu {
    let mut out = Memory::take(planes.floats());
    work(&mut out);
    out.tensor(&framed(planes))
}

impl TrainingOps for Flex {
    fn frame(images: Cpu, planes: Planes) -> Cpu {
        let images = images.to_contiguous();
        make(&planes, |out| planes.gather(values(&images), out))
    }

    fn unframe(framed: Cpu, planes: Planes) -> Cpu {
        let framed = framed.to_contiguous();
        let mut out = Memory::take(planes.images * planes.channels * planes.pixels());
        planes.scatter(values(&framed), &mut out);
        out.tensor(&[planes.images, planes.channels, planes.height, planes.width])
    }

    fn convolve(x: Cpu, weight: Cpu, layer: Layer) -> Cpu {
        let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
        let layer = layer.counted(values(&weight));
        make(&layer.conv.output(), |out| layer.forward(values(&x), values(&weight), out, None))
    }

    fn block(
        x: Cpu,
        weight: Cpu,
        gamma: Cpu,
        beta: Cpu,
        residual: Cpu,
        layer: Layer,
        normalisation: Normalisation,
    ) -> Cpu {
        Block::forward([x, weight, gamma, beta, residual], layer, &normalisation).1
    }

    fn largest(x: Cpu, planes: Planes, size: usize) -> Cpu {
        let x = x.to_contiguous();
        make(&kernels::pooled(&planes, size), |out| kernels::max_pool(&planes, size, values(&x), out))
    }

    fn means(x: Cpu, planes: Planes) -> Cpu {
        let x = x.to_contiguous();
        tensor(kernels::channel_means(&planes, values(&x)), &[planes.images, planes.channels])
    }
}

impl<C: CheckpointStrategy> TrainingOps for Autodiff<Flex, C> {
    fn frame(images: FloatTensor<Self>, planes: Planes) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Frame;

        impl Backward<Flex, 1> for Frame {
            type State = Planes;

            fn backward(self, ops: Ops<Planes, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let dy = grads.consume::<Flex>(&ops.node);
                if let [Some(node)] = ops.parents {
                    grads.register::<Flex>(node.id, Flex::unframe(dy, ops.state));
                }
            }
        }

        match Frame.prepare::<C>([images.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(planes, Flex::frame(images.into_primitive(), planes)),
            OpsKind::UnTracked(prepared) => prepared.finish(Flex::frame(images.into_primitive(), planes)),
        }
    }

    fn unframe(framed: FloatTensor<Self>, planes: Planes) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Unframe;

        impl Backward<Flex, 1> for Unframe {
            type State = Planes;

            fn backward(self, ops: Ops<Planes, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let dy = grads.consume::<Flex>(&ops.node);
                if let [Some(node)] = ops.parents {
                    grads.register::<Flex>(node.id, Flex::frame(dy, ops.state));
                }
            }
        }

        match Unframe.prepare::<C>([framed.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(planes, Flex::unframe(framed.into_primitive(), planes)),
            OpsKind::UnTracked(prepared) => prepared.finish(Flex::unframe(framed.into_primitive(), planes)),
        }
    }

    fn convolve(x: FloatTensor<Self>, weight: FloatTensor<Self>, layer: Layer) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Convolve;

        impl Backward<Flex, 2> for Convolve {
            type State = (Cpu, Cpu, Layer);

            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
                let [x_node, weight_node] = ops.parents;
                let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
                let (x, weight, layer) = ops.state;
                if let Some(node) = weight_node {
                    grads.register::<Flex>(node.id, layer.weight_gradient(&x, &weight, values(&dy)));
                }
                if let Some(node) = x_node {
                    grads.register::<Flex>(node.id, layer.input_gradient(&weight, values(&dy)));
                }
            }
        }

        match Convolve.prepare::<C>([x.node(), weight.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let (x, weight) = (x.into_primitive().to_contiguous(), weight.into_primitive().to_contiguous());
                let layer = layer.counted(values(&weight));
                let out = Flex::convolve(x.clone(), weight.clone(), layer);
                prepared.finish((x, weight, layer), out)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(Flex::convolve(x.into_primitive(), weight.into_primitive(), layer))
            }
        }
    }

    fn block(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        layer: Layer,
        normalisation: Normalisation,
    ) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct WholeBlock;

        impl Backward<Flex, 5> for WholeBlock {
            type State = Block;

            fn backward(self, ops: Ops<Block, 5>, grads: &mut Gradients, _: &mut Checkpointer) {
                let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
                let wanted = ops.parents.each_ref().map(Option::is_some);
                let found = ops.state.backward(dy, wanted);
                for (node, gradient) in ops.parents.into_iter().zip(found) {
                    if let (Some(node), Some(gradient)) = (node, gradient) {
                        grads.register::<Flex>(node.id, gradient);
                    }
                }
            }
        }

        let parts = [x, weight, gamma, beta, residual];
        let nodes = parts.each_ref().map(|part| part.node());
        let parts = parts.map(|part| part.into_primitive());
        let (block, out) = Block::forward(parts, layer, &normalisation);
        match WholeBlock.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(block, out),
            OpsKind::UnTracked(prepared) => prepared.finish(out),
        }
    }

    fn largest(x: FloatTensor<Self>, planes: Planes, size: usize) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Largest;

        impl Backward<Flex, 1> for Largest {
            type State = (Cpu, Cpu, Planes, usize);

            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
                let (x, y, planes, size) = ops.state;
                if let [Some(node)] = ops.parents {
                    let dx = make(&planes, |dx| {
                        kernels::max_pool_gradient(&planes, size, values(&x), values(&y), values(&dy), dx);
                    });
                    grads.register::<Flex>(node.id, dx);
                }
            }
        }

        match Largest.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let x = x.into_primitive().to_contiguous();
                let y = Flex::largest(x.clone(), planes, size);
                prepared.finish((x, y.clone(), planes, size), y)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(Flex::largest(x.into_primitive(), planes, size)),
        }
    }

    fn means(x: FloatTensor<Self>, planes: Planes) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Means;

        impl Backward<Flex, 1> for Means {
            type State = Planes;

            fn backward(self, ops: Ops<Planes, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let dy = grads.consume::<Flex>(&ops.node).to_contiguous();
                if let [Some(node)] = ops.parents {
                    let dx = make(&ops.state, |dx| kernels::channel_means_gradient(&ops.state, values(&dy), dx));
                    grads.register::<Flex>(node.id, dx);
                }
            }
        }

        match Means.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => prepared.finish(planes, Flex::means(x.into_primitive(), planes)),
            OpsKind::UnTracked(prepared) => prepared.finish(Flex::means(x.into_primitive(), planes)),
        }
    }
}
