//! `obprox._core`: the library as Python sees it, under the names it has in Rust.
//!
//! No logic lives here. Arguments become checked Rust values, the lock of the interpreter is given back while the
//! library works, results become numpy arrays. What users call is written in Python, in `python/obprox`.

mod arrays;
mod cluster;
mod columns;
mod crew;
mod cv;
mod error;
mod fit;
mod matrix;
mod model;
mod net;
mod operators;
mod path;
mod problem;
mod read;
mod settings;
mod shards;

use pyo3::prelude::*;

/// The compiled part of obprox.
#[pymodule(name = "_core")]
mod core {
    #[pymodule_export]
    use crate::cluster::{Cluster, add_replies, cut_reply, is_kept, work_file, work_rows};
    #[pymodule_export]
    use crate::columns::columns;
    #[pymodule_export]
    use crate::cv::{Scores, choose, concordance, cross_validate};
    #[pymodule_export]
    use crate::fit::{Fit, fit, fit_at_most, relax};
    #[pymodule_export]
    use crate::matrix::Matrix;
    #[pymodule_export]
    use crate::model::{Model, probabilities};
    #[pymodule_export]
    use crate::net::{Network, plain_name, read_tensors, write_tensors};
    #[pymodule_export]
    use crate::operators::{drift, dual_average, on_face, orthant_step, prox_step, rda_weight, rest, soft_threshold};
    #[pymodule_export]
    use crate::path::{Steps, path};
    #[pymodule_export]
    use crate::problem::Problem;
    #[pymodule_export]
    use crate::read::{read_file, write_cache_file};
    #[pymodule_export]
    use crate::settings::Settings;
    #[pymodule_export]
    use crate::shards::Shards;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
