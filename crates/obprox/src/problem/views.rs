//! The same problem seen otherwise: at another λ, on some of its rows or features, with another loss.

use std::sync::Arc;

use super::{Lambda, Problem, View};
use crate::loss::Loss;
use crate::penalty::{Regularization, Separable};
use crate::{Error, Result};

impl Problem {
    /// The same problem at another λ; the data is shared.
    pub fn with_lambda(mut self, lambda: Lambda) -> Result<Self> {
        let value = match lambda {
            Lambda::OverN => 1.0 / self.n_rows() as f64,
            Lambda::OfMax(fraction) => fraction * self.lambda_max(),
            Lambda::Value(value) => value,
        };
        if !(value.is_finite() && value >= 0.0) {
            return Err(Error::parameter("lambda", format!("{value} must be a finite number, not negative")));
        }
        self.regularization.l1 = value;
        Ok(self)
    }

    /// The same problem at another λ₂; the data is shared.
    pub fn with_l2(mut self, l2: f64) -> Result<Self> {
        if !(l2.is_finite() && l2 >= 0.0) {
            return Err(Error::parameter("l2", format!("{l2} must be a finite number, not negative")));
        }
        self.regularization.l2 = l2;
        Ok(self)
    }

    /// The same problem learnt from the other rows; the data is shared. The held-out rows weigh nothing and the weights
    /// of the rest are brought to mean 1 again, so f is the mean over the rest and λ keeps its meaning; λ_max is that
    /// of the rest. Columns that were standardised keep the scale they have on all rows.
    pub fn holding_out(&self, rows: &[u32]) -> Result<Self> {
        self.check_in_memory("cross-validation")?;
        let targets = self.targets.holding_out(rows)?;
        self.coupled.iter().try_for_each(|coupled| coupled.check(targets.weights.as_deref()))?;
        Self { targets, ..self.clone() }.with_at_zero()
    }

    /// The same problem on some of its rows alone, which are copied: f is their mean, and λ keeps its meaning.
    pub(crate) fn on_rows(&self, rows: &[u32]) -> Result<Self> {
        let (matrix, targets) = (Arc::new(self.matrix.keep_rows(rows)), self.targets.of_rows(rows)?);
        let view = View { columns: None, ..self.view.clone() };
        let coupled = self.loss.coupled(&targets.values);
        coupled.iter().try_for_each(|coupled| coupled.check(targets.weights.as_deref()))?;
        Self { matrix, targets, coupled, view, ..self.clone() }.with_at_zero()
    }

    /// The same problem feature by feature: on these features alone, which rise and are numbered anew, or on all. It has
    /// the same optimum where the others are 0 there. Names, scaling and rows stay with the whole problem.
    pub(crate) fn by_columns(&self, features: Option<&[u32]>) -> Self {
        let columns = Some(Arc::new(self.matrix.transposed(features)));
        let problem = features.map_or_else(|| self.clone(), |features| self.without_others(features));
        Self { view: View { columns, ..problem.view.clone() }, ..problem }
    }

    /// The same problem on these features alone, which rise and are numbered anew; the others are left out of the rows. It
    /// has the same optimum where they are 0 there. Names and scaling stay with the whole problem.
    pub(crate) fn on_features(&self, features: &[u32]) -> Self {
        let mut problem = self.without_others(features);
        problem.matrix = Arc::new(self.matrix.keep_columns(features));
        if self.in_shards() {
            let before = |&feature: &u32| self.view.kept.as_ref().map_or(feature, |kept| kept[feature as usize]);
            problem.view.kept = Some(features.iter().map(before).collect());
        }
        problem
    }

    /// The same without penalty on these features alone, whatever it was, in the units of the scaled columns and without names.
    pub(crate) fn unpenalised_on(&self, features: &[u32]) -> Self {
        let view = View { scaling: None, ..self.view.clone() };
        let plain = Self { regularization: Regularization::l1(0.0), view, names: None, recipe: None, ..self.clone() };
        plain.on_features(features)
    }

    fn without_others(&self, features: &[u32]) -> Self {
        let view = View { left_out: self.n_features() - features.len(), ..self.view.clone() };
        let at_zero = Arc::new(self.at_zero.of_features(features));
        Self { view, at_zero, regularization: self.regularization.keep(features), ..self.clone() }
    }

    /// The same problem with another loss for the same targets; λ keeps its value.
    pub(crate) fn with_loss(&self, loss: Arc<dyn Loss>) -> Result<Self> {
        Self { loss, ..self.clone() }.with_at_zero()
    }
}
