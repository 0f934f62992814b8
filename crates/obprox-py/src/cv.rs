//! Folds: every α on every split of the rows.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use obprox::cv::{FoldProgress, Score, Split, Validated, mean_and_error};
use obprox::{Control, CrossValidation, EpochRecord, Lambdas, Model};
use pyo3::prelude::*;

use crate::crew::{Caller, supervise};
use crate::error::parameter;
use crate::path::dense;
use crate::problem::{Problem, penalties};
use crate::settings::Settings;

/// The scores of every α on every fold.
#[pyclass(frozen, module = "obprox._core")]
pub struct Scores {
    validated: Validated,
    /// By fold and α, where they were to be kept.
    models: Vec<Vec<Option<Model>>>,
}

#[pymethods]
impl Scores {
    /// The mean loss on the held-out rows: folds × α.
    #[getter]
    fn loss<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.table(py, |score| score.loss)
    }

    /// The same of another blend of the fits and their refits, by its place among those that were tried.
    fn blend(&self, at: usize) -> Self {
        let scores = self.validated.blends[at].1.clone();
        Self { validated: Validated { scores, ..self.validated.clone() }, models: Vec::new() }
    }

    /// Accuracy, R² or concordance on the held-out rows, NaN where there is none: folds × α.
    #[getter]
    fn score<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.table(py, |score| score.score.unwrap_or(f64::NAN))
    }

    /// Weights that are not zero: folds × α.
    #[getter]
    fn nnz<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f64>> {
        self.table(py, |score| score.nnz as f64)
    }

    /// The runs that did not reach the tolerance.
    #[getter]
    fn unconverged(&self) -> usize {
        let folds = self.validated.scores.iter().flat_map(|scores| &scores.folds);
        folds.filter(|fold| fold.status != obprox::Status::Converged).count()
    }

    /// x and b of a fold at an α, where they were to be kept.
    fn model<'py>(&self, py: Python<'py>, fold: usize, at: usize) -> Option<Weights<'py>> {
        let model = self.models.get(fold)?.get(at)?.as_ref()?;
        let intercept: Vec<f64> = model.blocks.iter().map(|block| block.intercept).collect();
        Some((dense(model).into_pyarray(py), intercept.into_pyarray(py)))
    }
}

type Weights<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

impl Scores {
    fn table<'py>(&self, py: Python<'py>, figure: impl Fn(&Score) -> f64) -> Bound<'py, PyArray2<f64>> {
        let scores = &self.validated.scores;
        let folds = scores.first().map_or(0, |scores| scores.folds.len());
        Array2::from_shape_fn((folds, scores.len()), |(fold, at)| figure(&scores[at].folds[fold])).into_pyarray(py)
    }
}

/// Training and test rows of each split, or how many folds to deal.
#[derive(FromPyObject)]
pub enum Folds<'py> {
    Dealt(usize),
    Given(Vec<(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>)>),
}

/// Scores every α on every split. `over_total`: α is 1/(C·W), so a fold's is larger as its rows weigh less.
#[pyfunction]
#[pyo3(signature = (
    problem, settings, alphas, l1_ratio, folds, *, score_weights=None, over_total=false, keep_models=false,
    shares=vec![1.0], seed=0, on_progress=None, checkpoint=None, threads=0
))]
#[allow(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub fn cross_validate(
    py: Python<'_>,
    problem: &Problem,
    settings: &Settings,
    alphas: Vec<f64>,
    l1_ratio: f64,
    folds: Folds<'_>,
    score_weights: Option<PyReadonlyArray1<'_, f64>>,
    over_total: bool,
    keep_models: bool,
    shares: Vec<f64>,
    seed: u64,
    on_progress: Option<Bound<'_, PyAny>>,
    checkpoint: Option<(PathBuf, bool)>,
    threads: usize,
) -> PyResult<Scores> {
    let pairs = alphas.into_iter().map(|alpha| penalties(alpha, l1_ratio)).collect::<PyResult<Vec<_>>>()?;
    let (problem, settings) = (problem.inner.clone(), settings.inner.clone());
    let rows = |array: &PyReadonlyArray1<'_, i64>| -> Vec<u32> {
        array.as_array().iter().map(|&row| u32::try_from(row).unwrap_or(u32::MAX)).collect()
    };
    let (dealt, splits) = match &folds {
        Folds::Dealt(count) => (*count, None),
        Folds::Given(given) => {
            let split = |(train, test)| Split { train: rows(train), test: rows(test) };
            (given.len(), Some(given.iter().map(|(train, test)| split((train, test))).collect::<Vec<_>>()))
        }
    };
    let score_weights = score_weights.map(|weights| weights.as_array().to_vec());
    let done = Arc::new(AtomicUsize::new(0));
    let mut progress = Watched { callback: on_progress, done: Arc::clone(&done), of: dealt * pairs.len() };
    supervise(py, threads, &mut progress, move |line| {
        let (stop, forgo) = (line.listener(), line.forgoer());
        let fits = AtomicUsize::new(0);
        let models = Mutex::new(vec![vec![None; pairs.len()]; if keep_models { dealt } else { 0 }]);
        let watch = |_: &FoldProgress| stop();
        let visit = |fold: usize, at: usize, fit: &obprox::Fit| {
            done.store(fits.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            if keep_models {
                models.lock().expect("nothing panics while it is held")[fold][at] = Some(fit.model.clone());
            }
        };
        let mut cv = CrossValidation::new(&problem)
            .settings(settings)
            .lambdas(Lambdas::Pairs(pairs))
            .folds(dealt)
            .relaxed(&shares)
            .seed(seed)
            .watch(&watch)
            .unsaved(&forgo)
            .visit(&visit);
        if let Some(splits) = splits {
            cv = cv.splits(splits);
        }
        if let Some(weights) = score_weights {
            cv = cv.score_weights(weights);
        }
        if over_total {
            cv = cv.over_total();
        }
        if let Some((directory, resume)) = checkpoint {
            cv = cv.checkpoint(directory, resume);
        }
        let validated = cv.run()?;
        Ok(Scores { validated, models: models.into_inner().expect("nothing panics while it is held") })
    })
}

/// Harrell's concordance of scores with times that are negative where the row is censored; NaN where no pair is known.
#[pyfunction]
pub fn concordance(
    scores: PyReadonlyArray1<'_, f64>,
    times: PyReadonlyArray1<'_, f64>,
    weights: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let [scores, times, weights] = [scores, times, weights].map(|array| array.as_array().to_vec());
    if times.len() != scores.len() || weights.len() != scores.len() {
        let message = format!("{} times and {} weights for {} scores", times.len(), weights.len(), scores.len());
        return Err(parameter("y", message));
    }
    Ok(obprox::metrics::concordance(&scores, &times, |row| weights[row]).unwrap_or(f64::NAN))
}

/// The places of the smallest column mean, and of the first column whose mean is within one standard error of it, in a
/// table of folds × α where smaller is better.
#[pyfunction]
pub fn choose(table: PyReadonlyArray2<'_, f64>) -> (usize, usize) {
    let columns = table.as_array();
    let summaries = columns.columns().into_iter().map(|column| mean_and_error(&column.to_vec()));
    obprox::cv::choose(&summaries.collect::<Vec<_>>())
}

/// A Python function that is told every now and then how many fits are done.
struct Watched<'py> {
    callback: Option<Bound<'py, PyAny>>,
    done: Arc<AtomicUsize>,
    of: usize,
}

impl Caller for Watched<'_> {
    fn listens(&self) -> bool {
        false
    }

    fn epoch(&mut self, _: Python<'_>, _: &EpochRecord) -> PyResult<Control> {
        Ok(Control::Continue)
    }

    fn tick(&mut self, _: Python<'_>) -> PyResult<()> {
        match &self.callback {
            Some(callback) => callback.call1((self.done.load(Ordering::Relaxed), self.of)).map(|_| ()),
            None => Ok(()),
        }
    }
}
