//! What whoever has a shard must know of the problem to work on it.

use std::sync::Arc;

use super::wire::{In, Out, Wire};
use crate::loss::{Loss, LossKind};
use crate::{Error, Result};

/// The problem, as far as rows ask for it: no penalty, and of the other rows only how many there are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    /// The loss: its name and parameter, its outputs, and its width where it is a smoother one.
    pub loss: (String, Option<f64>),
    pub outputs: u64,
    pub width: Option<f64>,
    pub labels: Vec<f64>,
    pub weighing: Weighing,
    /// Whether the rows have offsets with them.
    pub offsets: bool,
    pub intercept: bool,
    /// N and n of all shards.
    pub n_rows: u64,
    pub n_cols: u64,
    /// The features that are left, where they are not all.
    pub kept: Option<Kept>,
}

/// How rows are weighed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Weighing {
    /// The weight of each class.
    pub classes: Option<Vec<f64>>,
    /// What brings the weights to mean 1; nothing where all rows weigh the same.
    pub scale: Option<f64>,
}

impl Weighing {
    /// The weights of some rows, whose own weights are these and whose classes have these numbers.
    pub fn weights(&self, own: Option<&[f64]>, rows: usize, class: impl Fn(usize) -> usize) -> Option<Vec<f64>> {
        let scale = self.scale?;
        let mut weights = own.map_or_else(|| vec![1.0; rows], <[f64]>::to_vec);
        if let Some(classes) = &self.classes {
            weights.iter_mut().enumerate().for_each(|(row, weight)| *weight *= classes[class(row)]);
        }
        weights.iter_mut().for_each(|weight| *weight *= scale);
        Some(weights)
    }
}

/// Features that rise, as a list or a bit each, whichever is shorter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept(pub Arc<[u32]>);

impl Statement {
    /// The loss.
    pub fn build_loss(&self) -> Result<Arc<dyn Loss>> {
        let (name, parameter) = &self.loss;
        let kind = LossKind::from_name(name, *parameter);
        let loss = kind.ok_or_else(|| Error::Data(format!("there is no loss {name:?} on this machine")))?;
        let loss = loss.build(self.outputs as usize);
        match self.width {
            Some(width) => loss.smoother(width).ok_or_else(|| Error::Data("a loss that is no smoother one".into())),
            None => Ok(loss),
        }
    }
}

impl Wire for Statement {
    fn put(&self, out: &mut Out) {
        out.put(&self.loss).put(&self.outputs).put(&self.width).put(&self.labels);
        out.put(&self.weighing.classes).put(&self.weighing.scale);
        out.put(&self.offsets).put(&self.intercept);
        out.put(&self.n_rows).put(&self.n_cols).put(&self.kept);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self {
            loss: input.get()?,
            outputs: input.get()?,
            width: input.get()?,
            labels: input.get()?,
            weighing: Weighing { classes: input.get()?, scale: input.get()? },
            offsets: input.get()?,
            intercept: input.get()?,
            n_rows: input.get()?,
            n_cols: input.get()?,
            kept: input.get()?,
        })
    }
}

impl Wire for Kept {
    fn put(&self, out: &mut Out) {
        let last = self.0.last().map_or(0, |&last| last as usize + 1);
        let as_bits = last / 8 < 4 * self.0.len();
        out.put(&as_bits);
        if !as_bits {
            out.array(&self.0);
            return;
        }
        let mut bits = vec![0u8; last.div_ceil(8)];
        self.0.iter().for_each(|&feature| bits[feature as usize / 8] |= 1 << (feature % 8));
        out.array(&bits);
    }
    fn get(input: &mut In) -> Result<Self> {
        if !input.get::<bool>()? {
            return Ok(Self(input.array()?.into()));
        }
        let bits: Vec<u8> = input.array()?;
        let is_kept = |&feature: &u32| bits[feature as usize / 8] >> (feature % 8) & 1 == 1;
        Ok(Self((0..8 * bits.len() as u32).filter(is_kept).collect::<Vec<u32>>().into()))
    }
}
