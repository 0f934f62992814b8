//! The kernels that networks spend their time in, for CPUs: forward and backward, with all weights or without the zeros.
//!
//! * [`Planes`]: how a batch lies in memory; [`Shape`]: a convolution's sizes.
//! * [`forward`], [`input_gradient`], [`weight_gradient`]: convolutions.
//! * [`normalise`], [`normalise_gradient`]: batch normalisation with what is added and rectified after it.
//! * [`max_pool`], [`channel_means`] and their gradients.

mod conv;
mod convolve;
mod gradient;
mod machine;
mod moments;
mod norm;
mod planes;
mod pool;
mod raw;
mod shape;
mod weights;

pub use conv::Conv;
pub use convolve::{Kernel, forward, input_gradient};
pub use gradient::weight_gradient;
pub use machine::{dispatch, dispatch_to_eight};
pub use moments::Moments;
pub use norm::{Affine, Gate, normalise, normalise_gradient, statistics};
pub use planes::{LANES, Planes};
pub use pool::{channel_means, channel_means_gradient, max_pool, max_pool_gradient, pooled};
pub use shape::Shape;
