//! How a problem is solved, from Python's keywords.

use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Switch, Words};
use obprox::{Method, MethodKind, Settings as Inner};
use pyo3::prelude::*;

use crate::error::parameter;

/// The settings of a run; what is None is the library's own choice for the solver.
#[pyclass(frozen, module = "obprox._core")]
pub struct Settings {
    pub inner: Inner,
}

/// A number, or a word.
#[derive(FromPyObject)]
enum Given {
    Number(f64),
    Word(String),
}

#[pymethods]
impl Settings {
    #[new]
    #[pyo3(signature = (
        solver="auto", *, max_iter=None, tol=1e-6, batch=None, step=None, schedule="decay", decay=None,
        n_p=None, n_o=None, switch=None, gamma=None, average=false, seed=0
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        solver: &str,
        max_iter: Option<u64>,
        tol: f64,
        batch: Option<Given>,
        step: Option<Given>,
        schedule: &str,
        decay: Option<f64>,
        n_p: Option<u64>,
        n_o: Option<f64>,
        switch: Option<&str>,
        gamma: Option<f64>,
        average: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let method = MethodKind::ALL.into_iter().find(|method| method.name() == solver).ok_or_else(|| {
            let names = MethodKind::ALL.map(MethodKind::name).join(", ");
            parameter("solver", format!("{solver:?} is none of {names}"))
        })?;
        let method = match (Method::from(method), method.switch()) {
            (Method::Rda { gamma: default }, _) => Method::Rda { gamma: gamma.unwrap_or(default) },
            (Method::ProxSvrg { .. }, _) => Method::ProxSvrg { average },
            (Method::ObproxSg { .. }, Some(paper)) => Method::ObproxSg { switch: rule(paper, switch, n_p, n_o)? },
            (Method::ObproxSgPlus { .. }, Some(paper)) => {
                Method::ObproxSgPlus { switch: rule(paper, switch, n_p, n_o)? }
            }
            (method, _) => method,
        };
        let defaults = Inner::with_method(method);
        let batch = match batch {
            None => defaults.batch,
            Some(Given::Number(rows)) if rows >= 1.0 && rows.fract() == 0.0 => Batch::Rows(rows as usize),
            Some(Given::Word(word)) if word == "all" => Batch::All,
            _ => return Err(parameter("batch", "must be a whole number, at least 1, or \"all\"")),
        };
        let step = match step {
            None => defaults.step,
            Some(Given::Number(value)) => StepSize::Value(value),
            Some(Given::Word(word)) if word == "auto" => StepSize::Auto,
            Some(Given::Word(word)) => {
                return Err(parameter("step", format!("{word:?} is no number and not auto")));
            }
        };
        let schedule = match schedule {
            "decay" => decay.map_or(defaults.schedule, Schedule::Decay),
            "constant" => Schedule::Constant,
            "1/k" => Schedule::OverK,
            "1/sqrt-k" => Schedule::OverSqrtK,
            _ => return Err(parameter("schedule", format!("{schedule:?} is none of decay, constant, 1/k, 1/sqrt-k"))),
        };
        let inner = Inner {
            epochs: max_iter.unwrap_or(defaults.epochs),
            batch,
            step,
            schedule,
            tolerance: tol,
            seed,
            ..defaults
        };
        Ok(Self { inner })
    }

    /// At most this many epochs, or rounds of auto.
    #[getter]
    fn max_iter(&self) -> u64 {
        self.inner.epochs
    }

    /// The relative duality gap to stop at.
    #[getter]
    fn tol(&self) -> f64 {
        self.inner.tolerance
    }
}

/// The switch of a method that has one: where nothing is said, as the paper has it.
fn rule(paper: Switch, words: Option<&str>, n_p: Option<u64>, n_o: Option<f64>) -> PyResult<Switch> {
    let Switch::Fixed { prox, orthant, unit } = paper else { return Ok(paper) };
    let wrong = || parameter("switch", "must be epochs, iterations, adaptive or objective:VALUE");
    let unit = match words.map(Words::of_problem) {
        None => unit,
        Some(Ok(Words::Counted(unit))) => unit,
        // There is no test data to score on here.
        Some(Ok(Words::Measured(Switch::Score(_))) | Err(_)) => return Err(wrong()),
        Some(Ok(Words::Measured(switch))) => return Ok(switch),
    };
    let orthant = match n_o {
        None => orthant,
        Some(f64::INFINITY) => None,
        Some(rounds) if rounds >= 0.0 && rounds.fract() == 0.0 => Some(rounds as u64),
        Some(rounds) => return Err(parameter("n_o", format!("{rounds} must be a whole number or infinity"))),
    };
    Ok(Switch::Fixed { prox: n_p.unwrap_or(prox), orthant, unit })
}
