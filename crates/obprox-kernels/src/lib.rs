//! The kernels that networks spend their time in, for CPUs: forward and backward, with all weights or without the zeros.
//!
//! * [`Planes`]: how a batch lies in memory.
//! * [`forward`], [`input_gradient`], [`weight_gradient`]: convolutions.

mod conv;
mod convolve;
mod gradient;
mod machine;
mod moments;
mod planes;
mod raw;
mod weights;

pub use conv::Conv;
pub use convolve::{Kernel, forward, input_gradient};
pub use gradient::weight_gradient;
pub use moments::Moments;
pub use planes::{LANES, Planes};
