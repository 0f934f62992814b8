//! ℓ(m; i) = ℓ₀(m + oᵢ; yᵢ): a loss whose margins have a known part.
//!
//! Offsets and targets lie with the loss, and the target of a row is its number i. So a row takes both along wherever it
//! goes: into a sample, a shard or out of a fold, and nothing that works on rows has to know.

use std::fmt;
use std::sync::Arc;

use super::{Coupled, Loss, Task};
use crate::data::Buffer;
use crate::{Error, Result};

/// A loss with an offset for each row and output.
#[derive(Clone)]
pub(crate) struct Offset {
    loss: Arc<dyn Loss>,
    offsets: Arc<[f64]>,
    targets: Buffer<f64>,
}

impl Offset {
    /// The loss of rows that have these targets, K offsets a row.
    pub fn new(loss: Arc<dyn Loss>, offsets: &[f64], targets: Buffer<f64>) -> Result<Self> {
        let expected = targets.len() * loss.outputs();
        if offsets.len() != expected {
            let message = format!("{} numbers where {expected} are needed, one for each row and output", offsets.len());
            return Err(Error::parameter("offset", message));
        }
        match offsets.iter().position(|offset| !offset.is_finite()) {
            Some(at) => Err(Error::parameter("offset", format!("number {} is {}, not finite", at + 1, offsets[at]))),
            None => Ok(Self { loss, offsets: offsets.into(), targets }),
        }
    }

    /// The targets of a problem with this loss: the numbers of its rows.
    pub fn rows(&self) -> Vec<f64> {
        (0..self.targets.len()).map(|row| row as f64).collect()
    }

    fn of(&self, row: f64) -> &[f64] {
        let outputs = self.loss.outputs();
        &self.offsets[row as usize * outputs..][..outputs]
    }

    /// Many rows as the loss below knows them: margins with their offsets, and targets.
    fn below(&self, margins: &[f64], rows: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let outputs = self.loss.outputs();
        let mut moved = margins.to_vec();
        for (margins, &row) in moved.chunks_exact_mut(outputs).zip(rows) {
            margins.iter_mut().zip(self.of(row)).for_each(|(margin, offset)| *margin += offset);
        }
        (moved, rows.iter().map(|&row| self.truth(row)).collect())
    }

    fn moved(&self, margins: &[f64], row: f64) -> Vec<f64> {
        margins.iter().zip(self.of(row)).map(|(margin, offset)| margin + offset).collect()
    }
}

impl fmt::Debug for Offset {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:?} with offsets", self.loss)
    }
}

impl Loss for Offset {
    fn name(&self) -> &str {
        self.loss.name()
    }

    fn task(&self) -> Task {
        self.loss.task()
    }

    fn outputs(&self) -> usize {
        self.loss.outputs()
    }

    fn parameter(&self) -> Option<f64> {
        self.loss.parameter()
    }

    fn truth(&self, target: f64) -> f64 {
        self.targets[target as usize]
    }

    fn offset(&self, target: f64) -> Option<&[f64]> {
        Some(self.of(target))
    }

    fn value(&self, margins: &[f64], target: f64) -> f64 {
        self.loss.value(&self.moved(margins, target), self.truth(target))
    }

    fn gradient(&self, margins: &[f64], target: f64, gradient: &mut [f64]) {
        self.loss.gradient(&self.moved(margins, target), self.truth(target), gradient);
    }

    fn curvature(&self, margins: &[f64], target: f64, curvature: &mut [f64]) -> bool {
        self.loss.curvature(&self.moved(margins, target), self.truth(target), curvature)
    }

    fn upper_curvature(&self, margins: &[f64], target: f64, curvature: &mut [f64]) -> bool {
        self.loss.upper_curvature(&self.moved(margins, target), self.truth(target), curvature)
    }

    fn hessian(&self, margins: &[f64], target: f64, hessian: &mut [f64]) -> bool {
        self.loss.hessian(&self.moved(margins, target), self.truth(target), hessian)
    }

    fn smoothness(&self) -> Option<f64> {
        self.loss.smoothness()
    }

    fn slope_range(&self, target: f64) -> Option<(f64, f64)> {
        self.loss.slope_range(self.truth(target))
    }

    /// sup over m of u·m − ℓ₀(m + o) = ℓ₀*(u) − u·o.
    fn conjugate(&self, dual: &[f64], target: f64) -> Option<f64> {
        let known: f64 = dual.iter().zip(self.of(target)).map(|(dual, offset)| dual * offset).sum();
        self.loss.conjugate(dual, self.truth(target)).map(|conjugate| conjugate - known)
    }

    fn coupled(&self, rows: &[f64]) -> Option<Arc<dyn Coupled>> {
        let targets: Vec<f64> = rows.iter().map(|&row| self.truth(row)).collect();
        let offsets = rows.iter().map(|&row| self.of(row)[0]).collect();
        Some(Arc::new(CoupledOffset { loss: self.loss.coupled(&targets)?, offsets }))
    }

    fn smoother(&self, width: f64) -> Option<Arc<dyn Loss>> {
        let loss = self.loss.smoother(width)?;
        Some(Arc::new(Self { loss, ..self.clone() }))
    }

    fn gradients(&self, margins: &[f64], targets: &[f64], gradients: &mut [f64]) {
        let (margins, targets) = self.below(margins, targets);
        self.loss.gradients(&margins, &targets, gradients);
    }

    fn expand(&self, margins: &[f64], targets: &[f64], gradients: &mut [f64], curvatures: &mut [f64]) -> bool {
        let (margins, targets) = self.below(margins, targets);
        self.loss.expand(&margins, &targets, gradients, curvatures)
    }

    fn total(&self, margins: &[f64], targets: &[f64]) -> f64 {
        let (margins, targets) = self.below(margins, targets);
        self.loss.total(&margins, &targets)
    }
}

/// A loss of all margins together whose margins have a known part.
#[derive(Debug)]
struct CoupledOffset {
    loss: Arc<dyn Coupled>,
    offsets: Vec<f64>,
}

impl CoupledOffset {
    fn moved(&self, margins: &[f64]) -> Vec<f64> {
        margins.iter().zip(&self.offsets).map(|(margin, offset)| margin + offset).collect()
    }
}

impl Coupled for CoupledOffset {
    fn check(&self, weights: Option<&[f64]>) -> Result<()> {
        self.loss.check(weights)
    }

    fn total(&self, margins: &[f64], weights: Option<&[f64]>) -> f64 {
        self.loss.total(&self.moved(margins), weights)
    }

    fn least(&self, weights: Option<&[f64]>) -> f64 {
        self.loss.least(weights)
    }

    fn expand(&self, margins: &[f64], weights: Option<&[f64]>, slopes: &mut [f64], curvatures: &mut [f64]) {
        self.loss.expand(&self.moved(margins), weights, slopes, curvatures);
    }

    /// As of one margin: ℓ₀*(s∇ℓ) − Σ s wᵢ∂ᵢℓ·oᵢ.
    fn conjugate(&self, scale: f64, margins: &[f64], weights: Option<&[f64]>) -> f64 {
        let moved = self.moved(margins);
        let (mut slopes, mut curvatures) = (vec![0.0; margins.len()], vec![0.0; margins.len()]);
        self.loss.expand(&moved, weights, &mut slopes, &mut curvatures);
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let known = |(row, (slope, offset)): (usize, (&f64, &f64))| weight(row) * slope * offset;
        let known: f64 = slopes.iter().zip(&self.offsets).enumerate().map(known).sum();
        self.loss.conjugate(scale, &moved, weights) - scale * known
    }

    fn events(&self, weights: Option<&[f64]>) -> usize {
        self.loss.events(weights)
    }
}
