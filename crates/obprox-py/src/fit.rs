//! One run, and what it leaves.

use std::path::PathBuf;

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use obprox::path::{at_most, at_most_kept};
use obprox::{Certificate, Control, EpochRecord, Fit as Inner, Point, Relaxed, Run};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::crew::{Caller, supervise, work};
use crate::problem::Problem;
use crate::settings::Settings;

/// A finished run.
#[pyclass(frozen, module = "obprox._core")]
pub struct Fit {
    inner: Inner,
    lambda_max: f64,
}

#[pymethods]
impl Fit {
    /// x, a row for each output.
    #[getter]
    fn coef<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        let Point { weights, intercept } = &self.inner.point;
        let outputs = intercept.len();
        Array2::from_shape_fn((outputs, weights.len() / outputs), |(output, feature)| {
            weights[feature * outputs + output]
        })
        .into_pyarray(py)
    }

    /// b of each output.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.point.intercept.clone().into_pyarray(py)
    }

    /// Epochs, or rounds of auto.
    #[getter]
    fn n_iter(&self) -> u64 {
        self.inner.epochs
    }

    /// Steps.
    #[getter]
    fn steps(&self) -> u64 {
        self.inner.iterations
    }

    /// The figures of the result, by the names they have in run logs.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let figures = PyDict::new(py);
        figures.set_item("status", self.inner.status.name())?;
        figures.set_item("lambda_", self.inner.model.lambda)?;
        figures.set_item("l2", self.inner.model.l2)?;
        figures.set_item("lambda_max", self.lambda_max)?;
        put(&figures, &self.inner.certificate)?;
        figures.set_item("gradient_mapping", self.inner.certificate.gradient_mapping)?;
        figures.set_item("seconds", self.inner.seconds)?;
        Ok(figures)
    }

    /// One record an epoch.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.inner.trace.iter().map(|record| figures(py, record)).collect()
    }
}

impl Fit {
    pub fn new(inner: Inner, problem: &obprox::Problem) -> Self {
        Self { inner, lambda_max: problem.lambda_max() }
    }
}

/// Solves a problem. `start` is x, a row for each output, and b, which so many epochs and steps `before` led to; `on_epoch`
/// hears of each epoch and stops the run by returning something true. `checkpoint` is the directory of its state, and whether to go on from what is there.
#[pyfunction]
#[pyo3(signature = (problem, settings, *, start=None, before=(0, 0), on_epoch=None, checkpoint=None, threads=0))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn fit(
    py: Python<'_>,
    problem: &Problem,
    settings: &Settings,
    start: Option<(PyReadonlyArray2<'_, f64>, PyReadonlyArray1<'_, f64>)>,
    before: (u64, u64),
    on_epoch: Option<Bound<'_, PyAny>>,
    checkpoint: Option<(PathBuf, bool)>,
    threads: usize,
) -> PyResult<Fit> {
    let (problem, settings) = (problem.inner.clone(), settings.inner.clone());
    let start = start.map(|(coef, intercept)| Point {
        weights: coef.as_array().t().iter().copied().collect(),
        intercept: intercept.as_array().to_vec(),
    });
    supervise(py, threads, &mut Callback(on_epoch), move |line| {
        let mut run = Run::new(&problem, settings).after(before.0, before.1).observe(line);
        if let Some(start) = &start {
            run = run.start(start);
        }
        if let Some((directory, resume)) = checkpoint {
            run = run.checkpoint(directory, resume);
        }
        Ok(Fit::new(run.fit()?, &problem))
    })
}

/// γ·fit + (1 − γ)·(its refit without penalty on the features it uses).
#[pyfunction]
#[pyo3(signature = (problem, fit, settings, share, *, threads=0))]
pub fn relax(
    py: Python<'_>,
    problem: &Problem,
    fit: &Fit,
    settings: &Settings,
    share: f64,
    threads: usize,
) -> PyResult<Fit> {
    let (problem, settings, lambda_max) = (problem.inner.clone(), settings.inner.clone(), fit.lambda_max);
    let fit = fit.inner.clone();
    let inner = work(py, threads, move || Relaxed::new(&problem, &fit, &settings)?.blend(share))?;
    Ok(Fit { inner, lambda_max })
}

/// Searches the λ that leaves at most so many features; λ₂ stays as it is.
#[pyfunction]
#[pyo3(signature = (problem, settings, most, *, on_epoch=None, checkpoint=None, threads=0))]
pub fn fit_at_most(
    py: Python<'_>,
    problem: &Problem,
    settings: &Settings,
    most: usize,
    on_epoch: Option<Bound<'_, PyAny>>,
    checkpoint: Option<(PathBuf, bool)>,
    threads: usize,
) -> PyResult<Fit> {
    let (problem, settings) = (problem.inner.clone(), settings.inner.clone());
    supervise(py, threads, &mut Callback(on_epoch), move |line| {
        let found = match &checkpoint {
            Some((directory, resume)) => at_most_kept(&problem, most, &settings, Some(line), (directory, *resume))?,
            None => at_most(&problem, most, &settings, Some(line))?,
        };
        Ok(Fit::new(found.fit, &problem))
    })
}

/// A Python function that hears of each epoch.
pub struct Callback<'py>(pub Option<Bound<'py, PyAny>>);

impl Caller for Callback<'_> {
    fn listens(&self) -> bool {
        self.0.is_some()
    }

    fn epoch(&mut self, py: Python<'_>, record: &EpochRecord) -> PyResult<Control> {
        let Some(callback) = &self.0 else { return Ok(Control::Continue) };
        let stop = callback.call1((figures(py, record)?,))?.is_truthy()?;
        Ok(if stop { Control::Stop } else { Control::Continue })
    }
}

/// An epoch by the names its figures have in run logs.
fn figures<'py>(py: Python<'py>, record: &EpochRecord) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("epoch", record.epoch)?;
    dict.set_item("iterations", record.iterations)?;
    dict.set_item("phase", record.phase.name())?;
    dict.set_item("step_size", record.step_size)?;
    if let Some(round) = &record.round {
        dict.set_item("stage", round.stage.name())?;
        dict.set_item("working_set", round.working_set)?;
    }
    if let Some(certificate) = &record.certificate {
        put(&dict, certificate)?;
    }
    dict.set_item("seconds", record.seconds)?;
    Ok(dict)
}

/// The figures that an epoch and a result have in common.
pub fn put(dict: &Bound<'_, PyDict>, certificate: &Certificate) -> PyResult<()> {
    dict.set_item("F", certificate.objective)?;
    dict.set_item("f", certificate.loss)?;
    dict.set_item("l1", certificate.l1)?;
    dict.set_item("nnz", certificate.nnz)?;
    dict.set_item("density", certificate.density)?;
    dict.set_item("gap", certificate.gap)?;
    dict.set_item("relative_gap", certificate.relative_gap())?;
    dict.set_item("kkt", certificate.kkt)
}
