//! min over (x, b): (1/N) Σ loss(yᵢ, x·dᵢ + b) + λ‖x‖₁ + (λ₂/2)‖x‖₂²

mod auto;
pub mod certificate;
mod checkpoint;
pub mod cv;
pub mod data;
mod engine;
mod error;
mod fit;
mod huge;
pub mod loss;
pub mod method;
pub mod metrics;
mod model;
mod observe;
pub mod output;
mod pass;
pub mod path;
pub mod penalty;
mod prefetch;
mod problem;
pub mod sampler;
pub mod schedule;
mod stochastic;
pub mod switch;

pub use certificate::{Certificate, certify};
pub use checkpoint::has_checkpoint;
pub use cv::CrossValidation;
pub use error::{Error, Result};
pub use fit::{Fit, Method, Run, Settings, Status};
pub use model::{Block, Model};
pub use observe::{Control, EpochRecord, Observer, Progress, Start};
pub use path::{Lambdas, Path};
pub use problem::{ClassWeights, Lambda, Point, Problem, Terms, distinct};
