//! The scalar operators of every method, entry by entry over arrays of any shape.
//!
//! They are here to be looked at and to be compared with: `obprox.torch` is tested against them.

use numpy::ndarray::Zip;
use numpy::{IntoPyArray, PyArrayDyn, PyReadonlyArrayDyn};
use obprox::penalty::{ElasticNet, Term, shrink};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

type Input<'py> = PyReadonlyArrayDyn<'py, f64>;
type Output<'py> = PyResult<Bound<'py, PyArrayDyn<f64>>>;

/// S(x, t) = sign(x)·max(|x| − t, 0), entry by entry.
#[pyfunction]
pub fn soft_threshold<'py>(py: Python<'py>, x: Input<'py>, t: f64) -> Output<'py> {
    Ok(x.as_array().mapv(|x| shrink::shrink(x, t)).into_pyarray(py))
}

/// The projection of a trial point on the orthant face of x: itself where it kept the sign of x, else 0.
#[pyfunction]
pub fn on_face<'py>(py: Python<'py>, trial: Input<'py>, x: Input<'py>) -> Output<'py> {
    pairwise(py, &trial, &x, shrink::on_face)
}

/// A Prox-SG step: S(x − αg, αλ)/(1 + αλ₂).
#[pyfunction]
#[pyo3(signature = (x, gradient, step, l1, l2=0.0))]
pub fn prox_step<'py>(
    py: Python<'py>,
    x: Input<'py>,
    gradient: Input<'py>,
    step: f64,
    l1: f64,
    l2: f64,
) -> Output<'py> {
    let term = ElasticNet { l1, l2 };
    pairwise(py, &x, &gradient, |x, gradient| term.prox(x - step * gradient, step))
}

/// An Orthant step: x − α(g + λ sign x), divided by 1 + αλ₂, where that keeps the sign of x, else 0. A zero stays zero,
/// unless λ is 0.
#[pyfunction]
#[pyo3(signature = (x, gradient, step, l1, l2=0.0))]
pub fn orthant_step<'py>(
    py: Python<'py>,
    x: Input<'py>,
    gradient: Input<'py>,
    step: f64,
    l1: f64,
    l2: f64,
) -> Output<'py> {
    let term = ElasticNet { l1, l2 };
    pairwise(py, &x, &gradient, |x, gradient| term.face(x, gradient, step))
}

/// The dual averaging step: argmin over u of g·u + λ|u| + (λ₂ + β)u²/2.
#[pyfunction]
#[pyo3(signature = (gradient, beta, l1, l2=0.0))]
pub fn dual_average<'py>(py: Python<'py>, gradient: Input<'py>, beta: f64, l1: f64, l2: f64) -> Output<'py> {
    let term = ElasticNet { l1, l2 };
    Ok(gradient.as_array().mapv(|gradient| term.dual_average(gradient, beta)).into_pyarray(py))
}

/// The weight of RDA after t gradients with this sum: −(√t/γ)·S(sum/t, λ) where λ₂ = 0.
#[pyfunction]
#[pyo3(signature = (gradient_sum, t, gamma, l1, l2=0.0))]
pub fn rda_weight<'py>(py: Python<'py>, gradient_sum: Input<'py>, t: u64, gamma: f64, l1: f64, l2: f64) -> Output<'py> {
    let term = ElasticNet { l1, l2 };
    let t = t as f64;
    let weight = |sum: f64| if sum == 0.0 { 0.0 } else { term.dual_average(sum / t, gamma / t.sqrt()) };
    Ok(gradient_sum.as_array().mapv(weight).into_pyarray(py))
}

/// k proximal steps of size α under the constant gradient g, in closed form: a coordinate of Prox-SVRG that k batches
/// did not touch.
#[pyfunction]
#[pyo3(signature = (x, gradient, step, l1, k, l2=0.0))]
pub fn drift<'py>(
    py: Python<'py>,
    x: Input<'py>,
    gradient: Input<'py>,
    step: f64,
    l1: f64,
    k: u64,
    l2: f64,
) -> Output<'py> {
    let term = ElasticNet { l1, l2 };
    pairwise(py, &x, &gradient, |x, gradient| term.drift(x, gradient, step, k))
}

/// x after Prox-SG or Orthant steps without gradient: `elapsed` is Σα of the missed steps, or Σ ln(1 + αλ₂) where λ₂ > 0.
#[pyfunction]
#[pyo3(signature = (x, elapsed, l1, l2=0.0))]
pub fn rest<'py>(py: Python<'py>, x: Input<'py>, elapsed: f64, l1: f64, l2: f64) -> Output<'py> {
    let term = ElasticNet { l1, l2 };
    Ok(x.as_array().mapv(|x| term.rest(x, elapsed)).into_pyarray(py))
}

fn pairwise<'py>(py: Python<'py>, a: &Input<'py>, b: &Input<'py>, operator: impl Fn(f64, f64) -> f64) -> Output<'py> {
    let (a, b) = (a.as_array(), b.as_array());
    if a.shape() != b.shape() {
        return Err(PyValueError::new_err(format!("shapes {:?} and {:?} differ", a.shape(), b.shape())));
    }
    Ok(Zip::from(a).and(b).map_collect(|&a, &b| operator(a, b)).into_pyarray(py))
}
