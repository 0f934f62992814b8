//! Problems whose rows are in shards: on a disk, or on other machines.

use std::ops::Range;
use std::sync::Arc;

use super::{Problem, Terms, View, blockwise, check_feature_weights, check_shape};
use crate::data::{Buffer, Dataset, Matrix, ShardedData};
use crate::loss::{Loss, LossKind, Offset};
use crate::penalty::Regularization;
use crate::rows::remote::{Kept as KeptFeatures, RemoteData, Shard, Statement};
use crate::rows::{Answer, Disk, Remote, Task as Pass};
use crate::targets::{Targets, check_labels};
use crate::{Error, Result};

impl Problem {
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
        problem.with_at_zero()?.with_lambda(terms.lambda)?.with_l2(terms.l2)
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
}

/// Refuses a loss whose rows must be in one memory.
pub(super) fn check_uncoupled(loss: &dyn Loss) -> Result<()> {
    match loss.coupled(&[]) {
        Some(_) => {
            let name = loss.name();
            let message = format!("the {name} loss compares all rows with each other: they must be in one memory");
            Err(Error::parameter("loss", message))
        }
        None => Ok(()),
    }
}
