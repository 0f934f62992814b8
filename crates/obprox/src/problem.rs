//! The problem: data, loss and penalty.
//!
//! min over (x, b): F = (1/N) Σ wᵢ·loss(yᵢ, x·dᵢ + b) + λ Σ_j w_j|x_j| + (λ₂/2)‖x‖₂², the rows' weights wᵢ scaled to
//! mean 1, b never penalised.

mod point;
mod shards;
mod views;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use self::point::Point;
use self::shards::check_uncoupled;
use crate::data::{Dataset, Matrix, Recipe, Scaling, ShardedData, standardise};
use crate::loss::{Coupled, Loss, Offset};
use crate::memory;
use crate::penalty::{Blockwise, Penalty, Regularization};
use crate::rows::at_zero::AtZero;
use crate::rows::remote::{RemoteData, Weighing};
use crate::rows::{Disk, Memory, Remote, Shards, stays_in_rows};
use crate::targets::{ClassWeights, Targets, check_weights};
use crate::{Error, Result};

/// What a fit takes for a weight, at the least: the weight, its slope and bound, and what the solver keeps of it.
const BYTES_A_WEIGHT: u128 = 48;

/// How λ is given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Lambda {
    /// 1/N, the paper's choice.
    OverN,
    /// A fraction of λ_max, the smallest λ at which x = 0 is optimal.
    OfMax(f64),
    /// The number itself.
    Value(f64),
}

/// What a problem adds to its data and loss.
#[derive(Clone, Debug)]
pub struct Terms {
    /// λ.
    pub lambda: Lambda,
    /// λ₂, the weight of ½‖x‖₂².
    pub l2: f64,
    /// A weight of λ for each feature; 0 leaves it unpenalised.
    pub feature_weights: Option<Vec<f64>>,
    /// A penalty on blocks instead of λ‖x‖₁.
    pub penalty: Option<Arc<dyn Penalty>>,
    /// A weight for each row; scaled to mean 1.
    pub row_weights: Option<Vec<f64>>,
    /// A weight for the rows of each class.
    pub class_weights: Option<ClassWeights>,
    /// The labels of all rows there are, rising, where these rows may lack some.
    pub labels: Option<Vec<f64>>,
    /// What is added to the margins of each row, K numbers a row: known beforehand, and not learnt.
    pub offset: Option<Vec<f64>>,
    /// Whether there is an intercept b.
    pub intercept: bool,
    /// Whether columns are scaled to unit deviation first; weights are reported in the original units.
    pub standardize: bool,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            lambda: Lambda::OverN,
            l2: 0.0,
            feature_weights: None,
            penalty: None,
            row_weights: None,
            class_weights: None,
            labels: None,
            offset: None,
            intercept: true,
            standardize: false,
        }
    }
}

/// Data, loss and penalty; cheap to clone, since the data is shared.
#[derive(Clone, Debug)]
pub struct Problem {
    matrix: Arc<Matrix>,
    targets: Targets,
    names: Option<Arc<[String]>>,
    recipe: Option<Arc<Recipe>>,
    loss: Arc<dyn Loss>,
    /// The loss of all rows, where it is one of their margins together.
    coupled: Option<Arc<dyn Coupled>>,
    regularization: Regularization,
    intercept: bool,
    view: View,
    /// Where the rows are not in memory: then the matrix has none.
    shards: Option<Arc<ShardedData>>,
    /// Where they are on other machines: then there are no targets either, but for one.
    remote: Option<Arc<RemoteData>>,
    /// Where the rows are a shard: how many there are of all shards.
    of_rows: Option<usize>,
    at_zero: Arc<AtZero>,
}

/// What the features that are worked on are of those of the data.
#[derive(Clone, Debug, Default)]
struct View {
    scaling: Option<Arc<Scaling>>,
    /// The features one after the other, where they were taken out of the rows.
    columns: Option<Arc<Matrix>>,
    /// The features that are read of those of a shard, where they are not all.
    kept: Option<Arc<[u32]>>,
    /// Features that were left out because their weights are 0 at the optimum; the density still counts them.
    left_out: usize,
    /// How rows on other machines are weighed.
    weighing: Arc<Weighing>,
}

impl Problem {
    /// States a problem. Everything about it is checked here, once.
    pub fn new(data: Dataset, loss: Arc<dyn Loss>, terms: &Terms) -> Result<Self> {
        Self::of(data, None, loss, terms)
    }

    fn of(data: Dataset, mut shards: Option<Arc<ShardedData>>, loss: Arc<dyn Loss>, terms: &Terms) -> Result<Self> {
        let (n_rows, n_cols) = (data.targets.len(), data.matrix.n_cols());
        check_shape(n_rows, n_cols, loss.outputs())?;
        let weights = check_feature_weights(terms, n_cols)?;
        if let Some(recipe) = &data.recipe {
            recipe.check_loss(loss.as_ref())?;
        }
        let mut targets = match &shards {
            Some(shards) => {
                check_uncoupled(loss.as_ref())?;
                Targets::of_shards(data.targets, &shards.ranges().collect::<Vec<_>>(), loss.as_ref(), terms)?
            }
            None => Targets::new(data.targets, loss.as_ref(), terms)?,
        };
        let mut loss = loss;
        if let Some(offsets) = &terms.offset {
            let with = Offset::new(loss, offsets, targets.values)?;
            (targets.values, loss) = (with.rows().into(), Arc::new(with));
        }
        let coupled = loss.coupled(&targets.values);
        coupled.iter().try_for_each(|coupled| coupled.check(targets.weights.as_deref()))?;
        // An intercept changes nothing where rows are compared with each other; beside it a model of f is a good one.
        let intercept = terms.intercept || coupled.is_some();
        let (matrix, scaling) = if let Some(all) = shards.take_if(|_| terms.standardize) {
            let scaling = Arc::new(all.scaling(intercept)?);
            shards = Some(Arc::new(Arc::unwrap_or_clone(all).scaled(Arc::clone(&scaling))?));
            (data.matrix, Some(scaling))
        } else if terms.standardize {
            let (matrix, scaling) = standardise(&data.matrix, intercept);
            (matrix, Some(Arc::new(scaling)))
        } else {
            (data.matrix.filled(), None)
        };
        let blocks = blockwise(terms, scaling.as_deref(), n_cols, loss.outputs())?;
        let problem = Self {
            matrix: Arc::new(matrix),
            targets,
            names: data.names.map(Into::into),
            recipe: data.recipe,
            loss,
            coupled,
            regularization: Regularization { l1: 0.0, l2: 0.0, weights: weights.map(Into::into), blocks },
            intercept,
            view: View { scaling, ..View::default() },
            shards,
            remote: None,
            of_rows: None,
            at_zero: Arc::default(),
        };
        problem.with_at_zero()?.with_lambda(terms.lambda)?.with_l2(terms.l2)
    }

    /// The problem with what x = 0 tells of it.
    fn with_at_zero(self) -> Result<Self> {
        Ok(Self { at_zero: Arc::new(AtZero::of(&self)?), ..self })
    }

    /// For each feature the largest |∂f/∂x_j| there can be at any point, where that is known and features are many.
    pub(crate) fn steepest(&self) -> Option<&[f32]> {
        self.at_zero.steepest.as_deref()
    }

    /// The optimum of b at x = 0.
    pub(crate) fn intercept_at_zero(&self) -> &[f64] {
        &self.at_zero.intercept
    }

    /// ∂f/∂x there, where it was kept.
    pub(crate) fn slopes_at_zero(&self) -> Option<&[f64]> {
        self.at_zero.slopes.as_deref()
    }

    /// The rows, for whoever has jobs for them.
    pub(crate) fn rows(&self) -> Box<dyn Shards> {
        if self.remote.is_some() {
            return Box::new(Remote::rows(Arc::new(self.clone()), stays_in_rows(self)));
        }
        if self.in_shards() {
            return Box::new(Disk::rows(Arc::new(self.clone()), stays_in_rows(self)));
        }
        Box::new(Memory::new(Arc::new(self.clone()), stays_in_rows(self)))
    }

    /// The features one after the other, where they were taken out of the rows.
    pub(crate) fn columns(&self) -> Option<&Matrix> {
        self.view.columns.as_deref()
    }

    /// Weights and intercepts, those of features that were left out included.
    pub(crate) fn n_coordinates(&self) -> usize {
        let intercept = usize::from(self.intercept && self.coupled.is_none());
        (self.n_features() + self.view.left_out + intercept) * self.outputs()
    }

    /// The rows in memory; none where they are read from [shards](Self::of_shards).
    pub fn matrix(&self) -> &Matrix {
        &self.matrix
    }

    /// Entries of the rows that are not zero, wherever they are.
    pub fn nnz(&self) -> usize {
        match (&self.remote, &self.shards) {
            (Some(remote), _) => remote.nnz(),
            (_, Some(shards)) => shards.nnz(),
            _ => self.matrix.nnz(),
        }
    }

    /// The columns of the data, those that are left out of the problem included.
    pub(crate) fn n_columns_of_data(&self) -> usize {
        match (&self.remote, &self.shards) {
            (Some(remote), _) => remote.n_cols(),
            (_, Some(shards)) => shards.n_cols(),
            _ => self.matrix.n_cols(),
        }
    }

    /// Whether rows have offsets.
    pub fn has_offset(&self) -> bool {
        self.loss.offset(self.targets.values[0]).is_some()
    }

    /// The mean loss of x = 0, the intercept being at its own optimum.
    pub(crate) fn null_loss(&self) -> f64 {
        self.at_zero.loss
    }

    /// Targets as the loss wants them: ±1, class numbers or values; the numbers of the rows where the loss keeps theirs.
    pub fn targets(&self) -> &[f64] {
        &self.targets.values
    }

    /// The labels behind the targets, in increasing order; empty for regression.
    pub fn labels(&self) -> &[f64] {
        &self.targets.labels
    }

    /// Names of the features, where the data has them.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// How the features were made of a table's columns, where the data is one.
    pub fn recipe(&self) -> Option<&Recipe> {
        self.recipe.as_deref()
    }

    /// The weight of a row; 1 on average.
    #[inline]
    pub fn row_weight(&self, row: usize) -> f64 {
        self.targets.weight(row)
    }

    /// The weights of the rows, where they are not all 1.
    pub fn row_weights(&self) -> Option<&[f64]> {
        self.targets.weights.as_deref()
    }

    /// The sum of the rows' weights as they were given: N where there are none. 1/(C·this) is the λ of a C that weighs
    /// the sum of the losses instead of the mean.
    pub fn total_weight(&self) -> f64 {
        self.targets.total_weight
    }

    /// The loss.
    pub fn loss(&self) -> &dyn Loss {
        self.loss.as_ref()
    }

    /// The loss of all rows, where it is one of their margins together.
    pub fn coupled(&self) -> Option<&dyn Coupled> {
        self.coupled.as_deref()
    }

    /// The penalty.
    pub fn regularization(&self) -> &Regularization {
        &self.regularization
    }

    /// λ.
    pub fn lambda(&self) -> f64 {
        self.regularization.l1
    }

    /// The smallest λ at which x = 0 is optimal, the intercept being at its own optimum.
    pub fn lambda_max(&self) -> f64 {
        self.at_zero.lambda_max
    }

    /// The least that a duality gap is measured against: see [`crate::certificate`].
    pub(crate) fn least_scale(&self) -> f64 {
        self.at_zero.least_scale
    }

    /// How far margins may be expected to lie from those at x = 0: the deviation of real targets, about 1 for classes. A
    /// loss that grows only linearly lets them lie further away.
    pub(crate) fn margin_unit(&self) -> f64 {
        self.at_zero.margin_unit
    }

    /// Whether there is an intercept; where rows are compared with each other it changes nothing, and ends as 0.
    pub fn has_intercept(&self) -> bool {
        self.intercept
    }

    /// N.
    pub fn n_rows(&self) -> usize {
        self.remote.as_ref().map_or_else(|| self.targets.values.len(), |remote| remote.n_rows())
    }

    /// n.
    pub fn n_features(&self) -> usize {
        self.view.columns.as_ref().map_or(self.matrix.n_cols(), |columns| columns.n_rows())
    }

    /// Margins a row: 1, or the number of classes.
    pub fn outputs(&self) -> usize {
        self.loss.outputs()
    }

    /// How the columns were scaled, where they were.
    pub fn scaling(&self) -> Option<&Scaling> {
        self.view.scaling.as_deref()
    }
}

/// Whether a problem is of a size that can be solved.
fn check_shape(n_rows: usize, n_cols: usize, outputs: usize) -> Result<()> {
    if n_rows == 0 {
        return Err(Error::Data("there are no rows to learn from".into()));
    }
    if n_rows >= u32::MAX as usize {
        return Err(Error::Data(format!("{n_rows} rows: at most {} are supported", u32::MAX - 1)));
    }
    if n_cols.checked_mul(outputs).is_none_or(|size| size >= u32::MAX as usize) {
        return Err(Error::Data(format!("{n_cols} columns × {outputs} outputs are too many")));
    }
    // A single stray index can ask for more memory than there is; say so instead of falling over it later.
    let bytes = BYTES_A_WEIGHT * n_cols as u128 * outputs as u128;
    memory::check(bytes, || format!("{n_cols} columns (is an index in the data wrong?)"))
}

fn check_feature_weights(terms: &Terms, n_cols: usize) -> Result<Option<&[f64]>> {
    let weights = terms.feature_weights.as_deref();
    check_weights("feature weights", weights, n_cols, "features")?;
    if let Some(at) = weights.unwrap_or_default().iter().position(|weight| weight.is_subnormal()) {
        let message = "is too small to divide by; give 0 to leave the feature free, or more";
        return Err(Error::parameter("feature weights", format!("number {} {message}", at + 1)));
    }
    Ok(weights)
}

/// The penalty on blocks, in the units of the scaled columns.
fn blockwise(terms: &Terms, scaling: Option<&Scaling>, features: usize, outputs: usize) -> Result<Option<Blockwise>> {
    let Some(penalty) = &terms.penalty else { return Ok(None) };
    if terms.feature_weights.is_some() {
        let message = format!("the {} penalty has weights of its own", penalty.name());
        return Err(Error::parameter("feature weights", message));
    }
    let scaled = scaling.and_then(|scaling| penalty.in_units(&scaling.scale));
    Blockwise::new(scaled.unwrap_or_else(|| Arc::clone(penalty)), features, outputs).map(Some)
}
