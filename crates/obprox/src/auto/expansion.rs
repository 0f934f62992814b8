//! A point as the model of a Newton step sees it: what f is expanded around.

use super::blockwise::InSet;
use crate::penalty::{ElasticNet, L1, Term};

/// The coordinates of the working set, output after output, the intercept of each last where there is one.
#[derive(Clone)]
pub(super) struct Expansion {
    pub terms: Vec<ElasticNet>,
    pub x: Vec<f64>,
    /// The slopes of the smooth part.
    pub u: Vec<f64>,
    /// The penalty, where it is one on blocks: then the terms have no kinks.
    pub blocks: Option<InSet>,
}

impl Expansion {
    /// What the gap will be, about, if no other features have a say; `unit` is that of the margins, `size` that of F.
    pub fn gap(&self, unit: f64, size: f64) -> f64 {
        let Self { terms, x, u, .. } = self;
        let slope = |at: usize| u[at] - terms[at].l2 * x[at];
        let room = |at: usize| if terms[at].l2 > 0.0 { f64::INFINITY } else { terms[at].l1 / slope(at).abs() };
        let scale = (0..x.len()).filter(|&at| terms[at].l1 > 0.0).map(room).fold(1.0, f64::min);
        let open = |at: usize| match terms[at] {
            // Without a penalty: as the certificate has it for an intercept.
            ElasticNet { l1: 0.0, l2: 0.0 } => slope(at).abs() * (2.0 * unit + x[at].abs()),
            term if term.l2 > 0.0 => term.value(x[at]) + term.conjugate(slope(at)) + x[at] * slope(at),
            term => term.value(x[at]) + scale * x[at] * slope(at),
        };
        // A dual point that has to be scaled loses by its square.
        (1.0 - scale) * (1.0 - scale) * size + (0..x.len()).map(open).sum::<f64>()
    }

    /// By how much F would fall on the way to z, were its smooth part straight.
    pub fn expected(&self, z: &[f64]) -> f64 {
        let Self { terms, x, u, blocks } = self;
        let moving = (0..x.len()).filter(|&at| z[at] != x[at]);
        let apart: f64 = moving.map(|at| u[at] * (z[at] - x[at]) + terms[at].l1 * (z[at].abs() - x[at].abs())).sum();
        apart + blocks.as_ref().map_or(0.0, |blocks| blocks.change(x, z))
    }

    /// The penalty of another point.
    pub fn penalty(&self, x: &[f64]) -> f64 {
        let apart: f64 = self.terms.iter().zip(x).map(|(term, &x)| term.value(x)).sum();
        apart + self.blocks.as_ref().map_or(0.0, |blocks| blocks.value(x))
    }

    /// Which coordinates a step may move: those that are not zero, or whose slopes have at least this share of what a zero
    /// withstands.
    pub fn active(&self, share: f64) -> Vec<bool> {
        let Self { terms, x, u, blocks } = self;
        match blocks {
            Some(blocks) => blocks.active(x, u, share),
            None => (0..x.len()).map(|at| x[at] != 0.0 || u[at].abs() >= share * terms[at].l1).collect(),
        }
    }

    /// The largest violation of a condition.
    pub fn violation(&self) -> f64 {
        if let Some(blocks) = &self.blocks {
            return blocks.violation(&self.x, &self.u);
        }
        let of = |at: usize| L1 { l1: self.terms[at].l1 }.violation(self.x[at], self.u[at]);
        (0..self.x.len()).fold(0.0, |most: f64, at| most.max(of(at)))
    }
}
