//! The problem: data, loss and penalty.
//!
//! min over (x, b): F = (1/N) Σ wᵢ·loss(yᵢ, x·dᵢ + b) + λ Σ_j w_j|x_j| + (λ₂/2)‖x‖₂², the rows' weights wᵢ scaled to
//! mean 1, b never penalised.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::data::{Buffer, Dataset, Matrix, Recipe, Scaling, ShardedData, standardise};
use crate::loss::{Coupled, Loss, LossKind, Offset, Task};
use crate::memory;
use crate::penalty::{Blockwise, Penalty, Regularization, Separable};
use crate::rows::at_zero::AtZero;
use crate::rows::remote::{Kept as KeptFeatures, RemoteData, Shard, Statement, Weighing};
use crate::rows::{Answer, Disk, Memory, Remote, Shards, Task as Pass, stays_in_rows};
use crate::targets::{ClassWeights, Targets, check_labels, check_weights};
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

    /// States a problem whose rows stay on a disk and are read shard by shard. What is kept in memory for each row is its
    /// target, and its weight where rows have weights.
    pub fn of_shards(shards: Arc<ShardedData>, loss: Arc<dyn Loss>, terms: &Terms) -> Result<Self> {
        let targets = shards.targets()?;
        Self::of_shards_with(shards, targets, loss, terms)
    }

    /// The same with other targets than the shards have, one a row.
    pub fn of_shards_with(
        shards: Arc<ShardedData>,
        targets: impl Into<Buffer<f64>>,
        loss: Arc<dyn Loss>,
        terms: &Terms,
    ) -> Result<Self> {
        let targets = targets.into();
        if targets.len() != shards.n_rows() {
            let message = format!("{} targets for {} rows", targets.len(), shards.n_rows());
            return Err(Error::parameter("targets", message));
        }
        let matrix = Matrix::from_rows(shards.n_cols(), &[]);
        let names = shards.names().map(<[String]>::to_vec);
        let data = Dataset { matrix, targets, names, recipe: shards.recipe().cloned().map(Arc::new) };
        Self::of(data, Some(shards), loss, terms)
    }

    /// States a problem whose rows stay on other machines, which also have the weights of the rows.
    pub fn of_remote(remote: Arc<RemoteData>, loss: Arc<dyn Loss>, terms: &Terms) -> Result<Self> {
        if terms.offset.is_some() {
            return Err(Error::parameter("offset", "rows on other machines have their offsets with them"));
        }
        if terms.standardize || terms.row_weights.is_some() {
            let message = "rows on other machines are worked on as they are, and have their weights with them";
            return Err(Error::parameter("standardize", message));
        }
        let (n_rows, n_cols) = (remote.n_rows(), remote.n_cols());
        check_shape(n_rows, n_cols, loss.outputs())?;
        let weights = check_feature_weights(terms, n_cols)?;
        if LossKind::from_name(loss.name(), loss.parameter()).is_none() {
            return Err(Error::parameter("loss", format!("the {} loss is not known on other machines", loss.name())));
        }
        check_uncoupled(loss.as_ref())?;
        let labels = check_labels(remote.labels(loss.as_ref())?, loss.as_ref())?;
        let (weighing, total) = remote.weigh(&labels, terms.class_weights.as_ref())?;
        let targets = Targets::remote(remote.first_target().unwrap_or(0.0), labels, total, loss.as_ref());
        let blocks = blockwise(terms, None, n_cols, loss.outputs())?;
        let problem = Self {
            matrix: Arc::new(Matrix::from_rows(n_cols, &[])),
            targets,
            names: remote.names().map(Into::into),
            recipe: None,
            loss,
            coupled: None,
            regularization: Regularization { l1: 0.0, l2: 0.0, weights: weights.map(Into::into), blocks },
            intercept: terms.intercept,
            view: View { weighing: Arc::new(weighing), ..View::default() },
            shards: None,
            remote: Some(remote),
            of_rows: None,
            at_zero: Arc::default(),
        };
        problem.looked_at()?.with_lambda(terms.lambda)?.with_l2(terms.l2)
    }

    /// What whoever has a shard must know of this problem.
    pub(crate) fn statement(&self) -> Statement {
        Statement {
            loss: (self.loss.name().into(), self.loss.parameter()),
            outputs: self.loss.outputs() as u64,
            width: self.loss.width(),
            labels: self.labels().to_vec(),
            weighing: self.view.weighing.as_ref().clone(),
            offsets: self.remote.as_ref().is_some_and(|remote| remote.has_offsets()),
            intercept: self.intercept,
            n_rows: self.n_rows() as u64,
            n_cols: self.n_columns_of_data() as u64,
            kept: self.view.kept.clone().map(KeptFeatures),
        }
    }

    /// The rows of a shard on this machine, of a problem that was stated elsewhere; for the rows' own work, which does not
    /// ask for the penalty.
    pub(crate) fn of_remote_shard(shard: &Shard, statement: &Statement) -> Result<Self> {
        let mut loss = statement.build_loss()?;
        let Shard { data, weights, offsets, name } = shard;
        let class = |row: usize| statement.labels.partition_point(|&label| label < data.targets[row]);
        let weights = statement.weighing.weights(weights.as_deref(), data.targets.len(), class);
        let mut targets = Targets::of_remote_shard(data.targets.clone(), weights, &statement.labels, loss.as_ref());
        if let Some(offsets) = offsets {
            let with = Offset::new(loss, offsets, targets.values);
            let with = with.map_err(|error| Error::file(name.clone(), error.to_string()))?;
            (targets.values, loss) = (with.rows().into(), Arc::new(with));
        }
        let matrix = data.matrix.clone().widened(statement.n_cols as usize);
        let matrix = match &statement.kept {
            Some(kept) => matrix.keep_columns(&kept.0),
            None => matrix,
        };
        Ok(Self {
            matrix: Arc::new(matrix.filled()),
            targets,
            names: None,
            recipe: None,
            loss,
            coupled: None,
            regularization: Regularization::l1(0.0),
            intercept: statement.intercept,
            view: View::default(),
            shards: None,
            remote: None,
            of_rows: Some(statement.n_rows as usize),
            at_zero: Arc::default(),
        })
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
        problem.looked_at()?.with_lambda(terms.lambda)?.with_l2(terms.l2)
    }

    /// The problem with what x = 0 tells of it.
    fn looked_at(self) -> Result<Self> {
        Ok(Self { at_zero: Arc::new(AtZero::of(&self)?), ..self })
    }

    /// Whether the rows are in shards, on a disk or on other machines.
    pub fn in_shards(&self) -> bool {
        self.shards.is_some() || self.remote.is_some()
    }

    /// The shards on other machines, where they are there.
    pub fn remote(&self) -> Option<&Arc<RemoteData>> {
        self.remote.as_ref()
    }

    /// The shards that the rows are in, where they are not in memory.
    pub fn shards(&self) -> Option<&ShardedData> {
        self.shards.as_deref()
    }

    /// Asks for rows in memory, for `what`.
    pub(crate) fn check_in_memory(&self, what: &str) -> Result<()> {
        match self.in_shards() {
            true => Err(Error::Data(format!("{what} needs the rows in memory, and these are in shards"))),
            false => Ok(()),
        }
    }

    /// The rows that f is a mean over: those of all shards, where these are of one.
    pub(crate) fn total_rows(&self) -> usize {
        self.of_rows.unwrap_or_else(|| self.n_rows())
    }

    /// Reads the shards that are `wanted`, in their order and one ahead, each as a problem of its rows.
    pub(crate) fn read_shards<'a>(
        &'a self,
        wanted: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = Result<(Range<usize>, Self)>> + 'a {
        let wanted = (0..self.shards.as_ref().map_or(0, |shards| shards.n_shards())).filter(|&at| wanted(at)).collect();
        self.read_rows(self.view.kept.clone(), wanted).map(|shard| {
            let (rows, matrix) = shard?;
            let targets = self.targets.of_shard(rows.clone());
            let view = View { kept: None, ..self.view.clone() };
            let (matrix, of_rows) = (Arc::new(matrix), Some(self.n_rows()));
            Ok((rows, Self { matrix, targets, view, shards: None, of_rows, ..self.clone() }))
        })
    }

    /// The targets and weights of each shard on a disk, as problems without columns.
    pub(crate) fn targets_of_shards(&self) -> impl Iterator<Item = Self> + '_ {
        let ranges = self.shards.iter().flat_map(|shards| shards.ranges());
        ranges.map(|rows| {
            let targets = self.targets.of_shard(rows);
            Self { targets, shards: None, of_rows: Some(self.n_rows()), ..self.clone() }
        })
    }

    /// A pass over the shards at x = 0.
    pub(crate) fn at_zero_of_shards(&self, task: &Pass) -> Result<Answer> {
        match &self.remote {
            Some(_) => Remote::at_zero(self, task),
            None => Disk::at_zero(self, task),
        }
    }

    /// Reads some shards in the order given and one ahead: the rows with some of the columns.
    pub(crate) fn read_rows(
        &self,
        columns: Option<Arc<[u32]>>,
        wanted: Vec<usize>,
    ) -> impl Iterator<Item = Result<(Range<usize>, Matrix)>> + use<> {
        let read = |shards: &Arc<ShardedData>| shards.read(columns, wanted);
        self.shards.as_ref().map(read).into_iter().flatten()
    }

    /// The same rows of a shard with these columns alone; for the rows' own work, which does not ask for the penalty.
    pub(crate) fn with_columns(&self, columns: &[u32]) -> Self {
        Self { matrix: Arc::new(self.matrix.keep_columns(columns)), ..self.clone() }
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
        Self { targets, ..self.clone() }.looked_at()
    }

    /// The same problem on some of its rows alone, which are copied: f is their mean, and λ keeps its meaning.
    pub(crate) fn on_rows(&self, rows: &[u32]) -> Result<Self> {
        let (matrix, targets) = (Arc::new(self.matrix.keep_rows(rows)), self.targets.of_rows(rows)?);
        let view = View { columns: None, ..self.view.clone() };
        let coupled = self.loss.coupled(&targets.values);
        coupled.iter().try_for_each(|coupled| coupled.check(targets.weights.as_deref()))?;
        Self { matrix, targets, coupled, view, ..self.clone() }.looked_at()
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
        Self { loss, ..self.clone() }.looked_at()
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

/// Weights x (feature j, output k at j·K + k) and intercepts b of a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// x.
    pub weights: Vec<f64>,
    /// b, one an output; zeros where the problem has no intercept.
    pub intercept: Vec<f64>,
}

impl Point {
    /// x = 0, b = 0.
    pub fn zero(problem: &Problem) -> Self {
        let outputs = problem.outputs();
        Self { weights: vec![0.0; problem.n_features() * outputs], intercept: vec![0.0; outputs] }
    }

    /// The weights that are not zero, by their place.
    pub(crate) fn nonzeros(&self) -> Vec<(u32, f64)> {
        let nonzero = self.weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
        nonzero.map(|(at, &weight)| (at as u32, weight)).collect()
    }

    /// The same point without what the loss does not see. Of several intercepts a softmax sees the differences alone: they
    /// get mean 0. Where rows are compared with each other there is nothing to see of one: it becomes 0.
    pub(crate) fn settled(mut self, problem: &Problem) -> Self {
        match problem.loss().task() {
            Task::Classes => {
                let mean = self.intercept.iter().sum::<f64>() / self.intercept.len() as f64;
                self.intercept.iter_mut().for_each(|value| *value -= mean);
            }
            Task::Survival => self.intercept.fill(0.0),
            _ => {}
        }
        self
    }

    /// Whether every number is finite.
    pub fn is_finite(&self) -> bool {
        self.weights.iter().chain(&self.intercept).all(|value| value.is_finite())
    }
}

/// Refuses a loss whose rows must be in one memory.
fn check_uncoupled(loss: &dyn Loss) -> Result<()> {
    match loss.coupled(&[]) {
        Some(_) => {
            let name = loss.name();
            let message = format!("the {name} loss compares all rows with each other: they must be in one memory");
            Err(Error::parameter("loss", message))
        }
        None => Ok(()),
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
