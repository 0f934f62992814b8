//! Models that are mostly exact zeros:
//!
//! min over (x, b): F = (1/N) Σ loss(yᵢ, x·dᵢ + b) + λ‖x‖₁ + (λ₂/2)‖x‖₂², b never penalised.
//!
//! The library reads data, states the problem, runs a [`Method`] on it and hands back a [`Fit`]: the weights, how the
//! run ended, and a [`Certificate`] of how far the weights can be from the optimum. It never prints and never exits.
//!
//! ```
//! use obprox::data::Synth;
//! use obprox::loss::LossKind;
//! use obprox::{Lambda, MethodKind, Problem, Run, Settings, Status, Terms};
//!
//! # fn main() -> obprox::Result<()> {
//! // `obprox::data::read("train.svm", …)` reads a file; here a problem with 10 true weights of 200 is planted.
//! let data = Synth { rows: 500, cols: 200, support: 10, per_row: 40.0, ..Synth::default() }.generate()?.dataset;
//! let terms = Terms { lambda: Lambda::OfMax(0.1), ..Terms::default() };
//! let problem = Problem::new(data, LossKind::Logistic.build(2), &terms)?;
//!
//! let optimum = problem.fit()?; // the default solver stops at a certified optimum
//! assert_eq!(optimum.status, Status::Converged);
//! assert!(optimum.certificate.relative_gap().unwrap() <= 1e-6);
//!
//! let sparse = Run::new(&problem, Settings::with_method(MethodKind::ObproxSgPlus)).fit()?; // the paper's method by name
//! assert!(sparse.certificate.objective >= optimum.certificate.objective);
//! assert!(sparse.model.nnz() < 200);
//! # Ok(())
//! # }
//! ```
//!
//! A loss of your own implements [`loss::ScalarLoss`], a method [`method::Rule`] or [`Solver`], someone who watches a run
//! implements [`Observer`]; none needs a change in this crate. `ARCHITECTURE.md` shows the rooms and the flow.

mod auto;
mod batches;
pub mod certificate;
mod checkpoint;
pub mod cv;
pub mod data;
mod engine;
mod error;
mod fit;
mod huge;
mod intercept;
mod kept;
pub mod loss;
pub mod memory;
pub mod method;
pub mod metrics;
mod model;
mod observe;
pub mod output;
pub mod path;
pub mod penalty;
mod prefetch;
mod problem;
mod relax;
mod rows;
pub mod sampler;
pub mod schedule;
mod settings;
mod solver;
mod stochastic;
pub mod switch;
mod targets;
mod tuning;
mod wide;

pub use certificate::{Certificate, certify};
pub use checkpoint::has_checkpoint;
pub use cv::CrossValidation;
pub use error::{Error, Result};
pub use fit::{Fit, Run, Status};
pub use model::{Block, Model};
pub use observe::{Control, EpochRecord, Observer, Progress, Round, Stage, Start};
pub use path::{Lambdas, Path};
pub use problem::{Lambda, Point, Problem, Terms};
pub use relax::Relaxed;
pub use rows::remote;
pub use settings::{Method, MethodKind, Settings};
pub use solver::{Ended, Solver, Standing, Support};
pub use targets::{ClassWeights, distinct};
