//! Refits without shrinkage: min f(x, b) over the features that a penalised fit uses, the others at 0.
//!
//! A penalty does two things at once: it chooses features, and it draws their weights towards 0. A refit keeps the choice
//! alone; a blend γ·penalised + (1 − γ)·refit lies between the two, and which one predicts best is for cross-validation to say.
//! Features that have no penalty are among those of every refit; of several outputs each uses the features of any.
//! Citations: Meinshausen, Relaxed lasso, 2007; Hastie, Tibshirani and Tibshirani, Best subset, forward stepwise or lasso?,
//! 2020.

use crate::certificate::certify;
use crate::fit::{Fit, Run};
use crate::model::Model;
use crate::problem::{Point, Problem};
use crate::settings::{Method, Settings};
use crate::{Error, Result};

/// A penalised fit and the refit on its features.
///
/// ```
/// # use obprox::{Lambda, Problem, Relaxed, Run, Settings, Terms, data::{Dataset, Matrix}, loss::LossKind};
/// # let matrix = Matrix::from_dense(4, 2, &[1.0, 0.5, -1.0, 0.3, 2.0, -0.2, -1.5, 0.1]);
/// # let data = Dataset::new(matrix, vec![1.0, -1.0, 1.5, -2.0]);
/// let problem = Problem::new(data, LossKind::Squared.build(1), &Terms { lambda: Lambda::OfMax(0.3), ..Terms::default() })?;
/// let fit = Run::new(&problem, Settings::default()).fit()?;
/// let relaxed = Relaxed::new(&problem, &fit, &Settings::default())?;
/// assert!(relaxed.fit().certificate.loss < fit.certificate.loss);
/// # Ok::<(), obprox::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Relaxed {
    problem: Problem,
    features: Vec<u32>,
    penalised: Fit,
    refit: Fit,
}

impl Relaxed {
    /// Refits what a fit of a problem uses, by the default solver to the tolerance of the settings.
    pub fn new(problem: &Problem, fit: &Fit, settings: &Settings) -> Result<Self> {
        check(problem)?;
        let (outputs, regularization) = (problem.outputs(), problem.regularization());
        let is_used = |feature: &u32| {
            let at = *feature as usize;
            regularization.blocks.is_none() && regularization.weight(at) == 0.0
                || fit.point.weights[at * outputs..][..outputs].iter().any(|&x| x != 0.0)
        };
        let features: Vec<u32> = (0..problem.n_features() as u32).filter(is_used).collect();
        let alone = problem.unpenalised_on(&features);
        let start = of_features(&fit.point, &features, outputs);
        let settings = Settings { method: Method::Auto, tolerance: settings.tolerance, ..Settings::default() };
        let refit = Run::new(&alone, settings).start(&start).fit()?;
        let mut relaxed = Self { problem: problem.clone(), features, penalised: fit.clone(), refit };
        let point = relaxed.expanded(&relaxed.refit.point);
        relaxed.refit.model = relaxed.model(&point, &relaxed.refit.certificate);
        relaxed.refit.point = point;
        Ok(relaxed)
    }

    /// The same where the fit uses the features that the one before it does, whose refit is the same; else anew.
    pub(crate) fn after(before: Option<Self>, problem: &Problem, fit: &Fit, settings: &Settings) -> Result<Self> {
        let used = |point: &Point| point.weights.iter().map(|&x| x != 0.0).collect::<Vec<bool>>();
        match before.filter(|before| used(&before.penalised.point) == used(&fit.point)) {
            Some(before) => {
                let mut relaxed = Self { problem: problem.clone(), penalised: fit.clone(), ..before };
                relaxed.refit.model = relaxed.model(&relaxed.refit.point, &relaxed.refit.certificate);
                Ok(relaxed)
            }
            None => Self::new(problem, fit, settings),
        }
    }

    /// The refit. Its certificate is that of f on these features: how far it is from their best at most.
    pub fn fit(&self) -> &Fit {
        &self.refit
    }

    /// γ·penalised + (1 − γ)·refit.
    pub fn at(&self, share: f64) -> Point {
        let mix = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| share * a + (1.0 - share) * b).collect();
        let (from, to) = (&self.penalised.point, &self.refit.point);
        Point { weights: mix(&from.weights, &to.weights), intercept: mix(&from.intercept, &to.intercept) }
    }

    /// The same as a fit: the penalised one itself at 1, the refit at 0, and between them with a certificate of f on these
    /// features.
    pub fn blend(&self, share: f64) -> Result<Fit> {
        if !(0.0..=1.0).contains(&share) {
            return Err(Error::parameter("share", format!("{share} must lie between 0 and 1")));
        }
        if share == 1.0 {
            return Ok(self.penalised.clone());
        }
        if share == 0.0 {
            return Ok(self.refit.clone());
        }
        let point = self.at(share);
        let alone = self.problem.unpenalised_on(&self.features);
        let certificate = certify(&alone, &of_features(&point, &self.features, self.problem.outputs()))?;
        Ok(Fit { model: self.model(&point, &certificate), point, certificate, ..self.refit.clone() })
    }

    fn model(&self, point: &Point, certificate: &crate::Certificate) -> Model {
        Model { penalty: Some("relaxed".into()), ..Model::new(&self.problem, point, certificate) }
    }

    /// A point of the features alone as one of all.
    fn expanded(&self, point: &Point) -> Point {
        let (outputs, mut all) = (self.problem.outputs(), Point::zero(&self.problem));
        all.intercept.clone_from(&point.intercept);
        for (&feature, weights) in self.features.iter().zip(point.weights.chunks_exact(outputs)) {
            all.weights[feature as usize * outputs..][..outputs].copy_from_slice(weights);
        }
        all
    }
}

/// Refuses a problem whose penalty is more than one that can be left out.
pub(crate) fn check(problem: &Problem) -> Result<()> {
    problem.check_in_memory("a refit without penalty")?;
    match problem.regularization().holds_without_lambda() {
        None => Ok(()),
        Some(name) => {
            let message = format!("the {name} penalty holds without λ too: there is no refit without it");
            Err(Error::parameter("relax", message))
        }
    }
}

/// A point at some of its features.
fn of_features(point: &Point, features: &[u32], outputs: usize) -> Point {
    let of = |&feature: &u32| &point.weights[feature as usize * outputs..][..outputs];
    Point { weights: features.iter().flat_map(of).copied().collect(), intercept: point.intercept.clone() }
}
