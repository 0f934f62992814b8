//! Training: min over the weights of (1/N) Σ cross-entropy + Σ_j λ_j ‖x_j‖₁, by any of the methods.
//!
//! ```text
//! Data ─► Feed ─► Run { net, settings } ◄─► observers
//!                    └─► Trained { weights, status, trace }
//! ```

mod checkpoint;
mod evaluate;
mod observe;
mod optimizer;
mod penalty;
mod run;
mod schedule;
mod settings;
mod training;

pub use checkpoint::has_checkpoint;
pub use evaluate::{Score, evaluate};
pub use observe::{EpochRecord, Observer, Progress, Start};
pub use penalty::{Count, LayerDensity, LayerPenalty, Penalty, Sparsity};
pub use run::{Run, Trained};
pub use schedule::{Place, Schedule};
pub use settings::Settings;
