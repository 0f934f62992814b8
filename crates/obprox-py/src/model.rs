//! `model.json`, shared with the command; predictions.

use std::path::PathBuf;

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use obprox::loss::{Task, class_probabilities};
use obprox::{Block, Certificate, Model as Inner, memory};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::crew::work;
use crate::error::raise;
use crate::fit::put;
use crate::path::dense;
use crate::problem::loss_kind;

/// Features, and their values.
type Nonzeros<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

/// A linear model.
#[pyclass(frozen, module = "obprox._core")]
pub struct Model {
    inner: Inner,
}

/// The figures of a result, as Python keeps them.
#[derive(FromPyObject)]
#[allow(non_snake_case, reason = "the names of the formulas")]
struct Figures {
    F: f64,
    f: f64,
    l1: f64,
    nnz: usize,
    density: f64,
    gap: Option<f64>,
    kkt: f64,
    gradient_mapping: f64,
}

#[pymethods]
impl Model {
    /// A model of its parts: x, a row for each output, and b.
    #[new]
    #[pyo3(signature = (
        loss, coef, intercept, *, parameter=None, labels=vec![], label_names=vec![], feature_names=None, l1=0.0, l2=0.0,
        penalty=None, offset=false, certificate=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        loss: &str,
        coef: PyReadonlyArray2<'_, f64>,
        intercept: PyReadonlyArray1<'_, f64>,
        parameter: Option<f64>,
        labels: Vec<f64>,
        label_names: Vec<String>,
        feature_names: Option<Vec<String>>,
        l1: f64,
        l2: f64,
        penalty: Option<String>,
        offset: bool,
        certificate: Option<Figures>,
    ) -> PyResult<Self> {
        let kind = loss_kind(loss, parameter)?;
        let (coef, intercept) = (coef.as_array(), intercept.as_array());
        let block = |(weights, &intercept): (numpy::ndarray::ArrayView1<'_, f64>, &f64)| {
            let nonzero = weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
            let (indices, values) = nonzero.map(|(at, &weight)| (at as u32, weight)).unzip();
            Block { intercept, indices, values }
        };
        let blocks: Vec<Block> = coef.rows().into_iter().zip(intercept).map(block).collect();
        let mut used: Vec<u32> = blocks.iter().flat_map(|block| block.indices.iter().copied()).collect();
        used.sort_unstable();
        used.dedup();
        let name = |feature: u32| feature_names.as_ref().map(|names| (feature, names[feature as usize].clone()));
        let built = kind.build(blocks.len());
        let inner = Inner {
            loss: built.name().to_owned(),
            loss_parameter: built.parameter(),
            task: built.task(),
            n_features: coef.ncols(),
            labels,
            label_names,
            names: used.into_iter().filter_map(name).collect(),
            penalty,
            table: None,
            offset,
            blocks,
            lambda: l1,
            l2,
            certificate: certificate.map(|figures| Certificate {
                objective: figures.F,
                loss: figures.f,
                l1: figures.l1,
                nnz: figures.nnz,
                density: figures.density,
                gap: figures.gap,
                kkt: figures.kkt,
                gradient_mapping: figures.gradient_mapping,
                violation_on_zeros: 0.0,
                violation_on_support: 0.0,
                least_scale: 0.0,
            }),
        };
        Ok(Self { inner })
    }

    /// Reads `model.json`.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self { inner: py.detach(|| Inner::load(path)).map_err(|error| raise(py, error))? })
    }

    /// Writes `model.json`, whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(path)).map_err(|error| raise(py, error))
    }

    /// Whether it was learnt beside offsets.
    #[getter]
    fn offset(&self) -> bool {
        self.inner.offset
    }

    /// The loss's name.
    #[getter]
    fn loss(&self) -> &str {
        &self.inner.loss
    }

    /// The loss's parameter.
    #[getter]
    fn parameter(&self) -> Option<f64> {
        self.inner.loss_parameter
    }

    /// Whether it tells classes apart.
    #[getter]
    fn is_classifier(&self) -> bool {
        matches!(self.inner.task, Task::Binary | Task::Classes)
    }

    /// Features it was trained on.
    #[getter]
    fn n_features(&self) -> usize {
        self.inner.n_features
    }

    /// x, a row for each output.
    #[getter]
    fn coef<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (outputs, n_features) = (self.inner.blocks.len(), self.inner.n_features);
        let bytes = 8 * outputs as u128 * n_features as u128;
        memory::check(bytes, || format!("{outputs} × {n_features} weights as an array"))
            .map_err(|error| raise(py, error))?;
        Ok(dense(&self.inner).into_pyarray(py))
    }

    /// The nonzeros of each row of x: their features and their values.
    #[getter]
    fn nonzeros<'py>(&self, py: Python<'py>) -> Vec<Nonzeros<'py>> {
        let block = |block: &Block| (block.indices.clone().into_pyarray(py), block.values.clone().into_pyarray(py));
        self.inner.blocks.iter().map(block).collect()
    }

    /// b of each output.
    #[getter]
    fn intercept<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.inner.blocks.iter().map(|block| block.intercept).collect::<Vec<_>>().into_pyarray(py)
    }

    /// The labels as numbers.
    #[getter]
    fn labels(&self) -> Vec<f64> {
        self.inner.labels.clone()
    }

    /// The names of the labels, where they have some.
    #[getter]
    fn label_names(&self) -> Vec<String> {
        self.inner.label_names.clone()
    }

    /// λ and λ₂.
    #[getter]
    fn penalties(&self) -> (f64, f64) {
        (self.inner.lambda, self.inner.l2)
    }

    /// The figures of the fit, where the file has them.
    #[getter]
    fn certificate<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(certificate) = &self.inner.certificate else { return Ok(None) };
        let figures = PyDict::new(py);
        put(&figures, certificate)?;
        figures.set_item("gradient_mapping", certificate.gradient_mapping)?;
        Ok(Some(figures))
    }
}

/// The probability of each class, of margins: one a row for two classes, else one a class.
#[pyfunction]
#[pyo3(signature = (margins, threads=0))]
pub fn probabilities<'py>(
    py: Python<'py>,
    margins: PyReadonlyArray2<'py, f64>,
    threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let margins = margins.as_array();
    let (rows, outputs) = margins.dim();
    let margins: Vec<f64> = margins.iter().copied().collect();
    let all = work(py, threads, move || Ok(class_probabilities(&margins, outputs)))?;
    Ok(Array2::from_shape_vec((rows, outputs.max(2)), all).expect("one probability a class").into_pyarray(py))
}
