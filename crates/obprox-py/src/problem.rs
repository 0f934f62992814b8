//! Data, loss and penalty.

use std::sync::Arc;

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use obprox::data::Dataset;
use obprox::loss::{LossKind, MultiSquared};
use obprox::penalty::{Bounds, Groups, Penalty};
use obprox::{ClassWeights, Lambda, Lambdas, Problem as Inner, Terms};
use pyo3::prelude::*;

use crate::cluster::Cluster;
use crate::crew::work;
use crate::error::{parameter, raise};
use crate::matrix::Matrix;
use crate::shards::Shards;

/// Rows in memory, or in files.
#[derive(FromPyObject)]
enum Rows<'py> {
    Memory(PyRef<'py, Matrix>),
    Files(PyRef<'py, Shards>),
}

/// What is minimised: (1/W) Σ wᵢ·loss(yᵢ, x·dᵢ + b) + α·(r‖x‖₁ + (1 − r)/2·‖x‖₂²).
#[pyclass(frozen, module = "obprox._core")]
pub struct Problem {
    pub inner: Inner,
}

#[pymethods]
impl Problem {
    /// States a problem without penalty. Targets are numbers, or the numbers of classes from 0, whose weights come as
    /// pairs of number and weight, or balanced.
    #[new]
    #[pyo3(signature = (
        matrix, targets, loss, *, parameter=None, row_weights=None, class_weights=None, balanced=false, labels=None,
        offset=None, feature_weights=None, bounds=None, groups=None, group_weights=None, group_l1=0.0, many=None,
        fit_intercept=true, threads=0
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        py: Python<'_>,
        matrix: Rows<'_>,
        targets: PyReadonlyArray1<'_, f64>,
        loss: &str,
        parameter: Option<f64>,
        row_weights: Option<PyReadonlyArray1<'_, f64>>,
        class_weights: Option<Vec<(f64, f64)>>,
        balanced: bool,
        labels: Option<Vec<f64>>,
        offset: Option<PyReadonlyArray1<'_, f64>>,
        feature_weights: Option<PyReadonlyArray1<'_, f64>>,
        bounds: Option<(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>)>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
        group_weights: Option<PyReadonlyArray1<'_, f64>>,
        group_l1: f64,
        many: Option<PyReadonlyArray2<'_, f64>>,
        fit_intercept: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let kind = loss_kind(loss, parameter)?;
        let targets: Vec<f64> = targets.as_array().to_vec();
        let n_rows = match &matrix {
            Rows::Memory(matrix) => matrix.inner.n_rows(),
            Rows::Files(shards) => shards.inner.n_rows(),
        };
        if targets.len() != n_rows {
            return Err(self::parameter("y", format!("{} targets for {n_rows} rows", targets.len())));
        }
        let vector = |array: Option<PyReadonlyArray1<'_, f64>>| array.map(|array| array.as_array().to_vec());
        let many = many.map(|many| {
            let outputs = many.as_array().ncols();
            MultiSquared::new(many.as_array().iter().copied().collect(), outputs)
        });
        let many = many.transpose().map_err(|error| raise(py, error))?;
        let weights = vector(feature_weights);
        let bounds = bounds.map(|(low, high)| (low.as_array().to_vec(), high.as_array().to_vec()));
        let groups = groups.map(|groups| groups.as_array().to_vec());
        let penalty = penalty(bounds, weights.as_ref(), groups, vector(group_weights), group_l1);
        let penalty = penalty.map_err(|error| raise(py, error))?;
        let terms = Terms {
            lambda: Lambda::Value(0.0),
            row_weights: vector(row_weights),
            offset: vector(offset),
            class_weights: if balanced { Some(ClassWeights::Balanced) } else { class_weights.map(ClassWeights::Given) },
            labels,
            feature_weights: weights.filter(|_| penalty.is_none()),
            penalty,
            intercept: fit_intercept,
            ..Terms::default()
        };
        let classes = match (&terms.labels, kind) {
            (Some(labels), LossKind::Softmax) => labels.len(),
            (None, LossKind::Softmax) => obprox::distinct(&targets).len(),
            _ => 1,
        };
        let inner = match matrix {
            Rows::Files(shards) => {
                let shards = Arc::clone(&shards.inner);
                work(py, threads, move || Inner::of_shards_with(shards, targets, kind.build(classes), &terms))
            }
            Rows::Memory(matrix) => {
                let matrix = matrix.inner.clone();
                work(py, threads, move || match many {
                    Some(many) => Inner::new(Dataset::new(matrix, many.rows()), Arc::new(many), &terms),
                    None => Inner::new(Dataset::new(matrix, targets), kind.build(classes), &terms),
                })
            }
        };
        Ok(Self { inner: inner? })
    }

    /// States a problem of rows that are elsewhere, which have their targets and weights with them.
    #[staticmethod]
    #[pyo3(signature = (
        cluster, loss, *, parameter=None, class_weights=None, balanced=false, feature_weights=None, bounds=None,
        groups=None, group_weights=None, group_l1=0.0, fit_intercept=true, threads=0
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn remote(
        py: Python<'_>,
        cluster: &Cluster,
        loss: &str,
        parameter: Option<f64>,
        class_weights: Option<Vec<(f64, f64)>>,
        balanced: bool,
        feature_weights: Option<PyReadonlyArray1<'_, f64>>,
        bounds: Option<(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>)>,
        groups: Option<PyReadonlyArray1<'_, u32>>,
        group_weights: Option<PyReadonlyArray1<'_, f64>>,
        group_l1: f64,
        fit_intercept: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let kind = loss_kind(loss, parameter)?;
        let vector = |array: Option<PyReadonlyArray1<'_, f64>>| array.map(|array| array.as_array().to_vec());
        let weights = vector(feature_weights);
        let bounds = bounds.map(|(low, high)| (low.as_array().to_vec(), high.as_array().to_vec()));
        let groups = groups.map(|groups| groups.as_array().to_vec());
        let penalty = penalty(bounds, weights.as_ref(), groups, vector(group_weights), group_l1);
        let penalty = penalty.map_err(|error| raise(py, error))?;
        let terms = Terms {
            lambda: Lambda::Value(0.0),
            class_weights: if balanced { Some(ClassWeights::Balanced) } else { class_weights.map(ClassWeights::Given) },
            feature_weights: weights.filter(|_| penalty.is_none()),
            penalty,
            intercept: fit_intercept,
            ..Terms::default()
        };
        let data = Arc::clone(&cluster.inner);
        let inner = work(py, threads, move || {
            let classes = if kind == LossKind::Softmax { data.distinct_labels()?.len() } else { 1 };
            Inner::of_remote(data, kind.build(classes), &terms)
        })?;
        Ok(Self { inner })
    }

    /// The same problem with the penalty α·(r‖x‖₁ + (1 − r)/2·‖x‖₂²); the data is shared.
    fn with_alpha(&self, py: Python<'_>, alpha: f64, l1_ratio: f64) -> PyResult<Self> {
        let (l1, l2) = penalties(alpha, l1_ratio)?;
        let inner = self.inner.clone().with_lambda(Lambda::Value(l1)).and_then(|problem| problem.with_l2(l2));
        Ok(Self { inner: inner.map_err(|error| raise(py, error))? })
    }

    /// The same problem with λ as the command takes it, "1/N", "0.1max" or a number, and λ₂; the data is shared.
    fn with_lambda(&self, py: Python<'_>, lambda_: &str, l2: f64) -> PyResult<Self> {
        let number = |text: &str| {
            text.parse::<f64>().map_err(|_| parameter("lambda", format!("{text:?} is none of 1/N, 0.1max or a number")))
        };
        let lambda = match (lambda_, lambda_.strip_suffix("max")) {
            ("1/N", _) => Lambda::OverN,
            (_, Some(share)) => Lambda::OfMax(number(share)?),
            _ => Lambda::Value(number(lambda_)?),
        };
        let inner = self.inner.clone().with_lambda(lambda).and_then(|problem| problem.with_l2(l2));
        Ok(Self { inner: inner.map_err(|error| raise(py, error))? })
    }

    /// λ.
    #[getter]
    fn lambda_(&self) -> f64 {
        self.inner.lambda()
    }

    /// The α that C stands for: 1/(C·W), where the sum of the losses and not their mean is weighed by C.
    fn alpha_of(&self, c: f64) -> PyResult<f64> {
        match c > 0.0 {
            true => Ok(1.0 / (c * self.inner.total_weight())),
            false => Err(parameter("C", format!("{c} must be positive"))),
        }
    }

    /// α from the smallest that leaves x = 0 down to eps times that, evenly spaced on a logarithmic scale.
    fn alphas(&self, py: Python<'_>, l1_ratio: f64, count: usize, eps: Option<f64>) -> PyResult<Vec<f64>> {
        if l1_ratio == 0.0 {
            return Err(parameter(
                "alphas",
                "there is no grid of its own at l1_ratio=0, where no α leaves x = 0: give one",
            ));
        }
        if self.inner.lambda_max() == 0.0 {
            // x = 0 is optimal whatever α is, as with a constant y.
            return Ok(vec![f64::EPSILON; count]);
        }
        let grid = Lambdas::Spaced { count, ratio: eps }.values(&self.inner).map_err(|error| raise(py, error))?;
        Ok(grid.into_iter().map(|lambda| lambda / l1_ratio).collect())
    }

    /// Margins a row: 1, or the number of classes.
    #[getter]
    fn outputs(&self) -> usize {
        self.inner.outputs()
    }

    /// λ_max, the smallest λ at which x = 0 is optimal.
    #[getter]
    fn lambda_max(&self) -> f64 {
        self.inner.lambda_max()
    }
}

/// The penalty on blocks, where one is asked for.
fn penalty(
    bounds: Option<(Vec<f64>, Vec<f64>)>,
    weights: Option<&Vec<f64>>,
    groups: Option<Vec<u32>>,
    group_weights: Option<Vec<f64>>,
    l1_share: f64,
) -> obprox::Result<Option<Arc<dyn Penalty>>> {
    if let Some((low, high)) = bounds {
        return Ok(Some(Arc::new(Bounds::new(low, high)?.with_weights(weights.cloned()))));
    }
    let Some(groups) = groups else { return Ok(None) };
    let penalty = Groups::new(groups)?.with_l1_share(l1_share)?;
    Ok(Some(match group_weights {
        Some(weights) => Arc::new(penalty.with_weights(weights)?),
        None => Arc::new(penalty),
    }))
}

/// λ and λ₂.
pub fn penalties(alpha: f64, l1_ratio: f64) -> PyResult<(f64, f64)> {
    match (0.0..=1.0).contains(&l1_ratio) {
        true => Ok((alpha * l1_ratio, alpha * (1.0 - l1_ratio))),
        false => Err(parameter("l1_ratio", format!("{l1_ratio} must lie between 0 and 1"))),
    }
}

/// The loss of a name.
pub fn loss_kind(name: &str, parameter: Option<f64>) -> PyResult<LossKind> {
    match LossKind::from_name(name, parameter) {
        Some(LossKind::Huber(delta)) if !(delta.is_finite() && delta > 0.0) => {
            Err(self::parameter("delta", format!("{delta} must be a positive finite number")))
        }
        Some(kind) => Ok(kind),
        None if name == "tweedie" => Err(self::parameter("power", "must lie between 1 and 2")),
        None if name == "negative-binomial" => Err(self::parameter("theta", "must be a positive finite number")),
        None => Err(self::parameter("loss", format!("there is no loss {name:?}"))),
    }
}
