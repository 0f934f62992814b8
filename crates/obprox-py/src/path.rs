//! Many α, each solved from the one before.

use std::path::PathBuf;

use numpy::ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray2, PyArray3};
use obprox::Model;
use obprox::path::{Lambdas, Path, Refit, Step};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::crew::supervise;
use crate::fit::{Callback, put};
use crate::problem::{Problem, penalties};
use crate::settings::Settings;

/// The models of a path, in the order of its α.
#[pyclass(frozen, module = "obprox._core")]
pub struct Steps {
    steps: Vec<Step>,
    n_features: usize,
    outputs: usize,
    /// Whether a callback ended it before the last α.
    #[pyo3(get)]
    stopped: bool,
}

#[pymethods]
impl Steps {
    fn __len__(&self) -> usize {
        self.steps.len()
    }

    /// x of every α: outputs × features × α.
    fn coefs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray3<f64>> {
        let mut all = Array3::zeros((self.outputs, self.n_features, self.steps.len()));
        for (at, step) in self.steps.iter().enumerate() {
            for (output, block) in step.model.blocks.iter().enumerate() {
                for (&feature, &value) in block.indices.iter().zip(&block.values) {
                    all[[output, feature as usize, at]] = value;
                }
            }
        }
        all.into_pyarray(py)
    }

    /// x of one α: outputs × features.
    fn coef<'py>(&self, py: Python<'py>, at: usize) -> Bound<'py, PyArray2<f64>> {
        dense(&self.steps[at].model).into_pyarray(py)
    }

    /// b of every α: outputs × α.
    fn intercepts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        let b = |(output, at): (usize, usize)| self.steps[at].model.blocks[output].intercept;
        Array2::from_shape_fn((self.outputs, self.steps.len()), b).into_pyarray(py)
    }

    /// The same path of the refits, where they were asked for; else nothing.
    fn relaxed(&self) -> Option<Self> {
        let refit = |step: &Step| {
            let Refit { status, certificate, model, test } = step.relaxed.clone()?;
            Some(Step { status, certificate, model, test, relaxed: None, ..step.clone() })
        };
        let steps = self.steps.iter().map(refit).collect::<Option<Vec<Step>>>()?;
        Some(Self { steps, ..*self })
    }

    /// The figures of each α.
    fn table<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |step: &Step| {
            let dict = PyDict::new(py);
            dict.set_item("lambda_", step.lambda)?;
            dict.set_item("status", step.status.name())?;
            put(&dict, &step.certificate)?;
            dict.set_item("n_iter", step.epochs)?;
            dict.set_item("seconds", step.seconds)?;
            Ok(dict)
        };
        self.steps.iter().map(row).collect()
    }
}

/// The weights of a model, a row for each output.
pub fn dense(model: &Model) -> Array2<f64> {
    let mut weights = Array2::zeros((model.blocks.len(), model.n_features));
    for (output, block) in model.blocks.iter().enumerate() {
        for (&feature, &value) in block.indices.iter().zip(&block.values) {
            weights[[output, feature as usize]] = value;
        }
    }
    weights
}

/// Solves at every α in turn.
#[pyfunction]
#[pyo3(signature = (problem, settings, alphas, l1_ratio, *, relax=false, on_epoch=None, checkpoint=None, threads=0))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn path(
    py: Python<'_>,
    problem: &Problem,
    settings: &Settings,
    alphas: Vec<f64>,
    l1_ratio: f64,
    relax: bool,
    on_epoch: Option<Bound<'_, PyAny>>,
    checkpoint: Option<(PathBuf, bool)>,
    threads: usize,
) -> PyResult<Steps> {
    let pairs = alphas.into_iter().map(|alpha| penalties(alpha, l1_ratio)).collect::<PyResult<Vec<_>>>()?;
    let (problem, settings) = (problem.inner.clone(), settings.inner.clone());
    supervise(py, threads, &mut Callback(on_epoch), move |line| {
        let mut path =
            Path::new(&problem).settings(settings).lambdas(Lambdas::Pairs(pairs)).relaxed(relax).observe(line);
        if let Some((directory, resume)) = checkpoint {
            path = path.checkpoint(directory, resume);
        }
        let steps = path.run()?;
        let (n_features, outputs) = (problem.n_features(), problem.outputs());
        Ok(Steps { steps: steps.steps, n_features, outputs, stopped: steps.stopped })
    })
}
