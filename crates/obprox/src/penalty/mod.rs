//! Penalties: sums of convex terms with their kinks at zero.
//!
//! l1 and the elastic net are sums over coordinates: a method asks a [`Term`] for one at a time and never learns which
//! penalty it serves. Any other is a [`Penalty`] on blocks of coordinates, which may come from outside.

pub(crate) mod block;
mod bounds;
mod elastic_net;
mod group;
mod l1;
pub mod shrink;

use std::sync::Arc;

pub(crate) use block::OnBlocks;
pub use block::{Block, Blocks, Blockwise, Penalty, Smooth};
pub use bounds::Bounds;
pub use elastic_net::ElasticNet;
pub use group::Groups;
pub use l1::L1;

/// The penalty of one coordinate.
pub trait Term: Copy {
    /// p(x).
    fn value(self, x: f64) -> f64;
    /// The proximal step: argmin over u of p(u) + (u − z)²/(2α).
    fn prox(self, z: f64, step: f64) -> f64;
    /// The Orthant step from x with gradient g: on the face of x the penalty is smooth, and the trial point is
    /// projected back on the face. A penalised zero stays zero; a coordinate without kink just steps.
    fn face(self, x: f64, gradient: f64, step: f64) -> f64;
    /// The value of x after proximal (or Orthant) steps without gradient, which took the penalty's clock
    /// `elapsed` on: see [`Separable::tick`].
    fn rest(self, x: f64, elapsed: f64) -> f64;
    /// k proximal steps of size α under the constant gradient g.
    fn drift(self, x: f64, gradient: f64, step: f64, k: u64) -> f64;
    /// The same, with the sum of the k iterates.
    fn drift_sum(self, x: f64, gradient: f64, step: f64, k: u64) -> (f64, f64);
    /// The dual averaging step: argmin over u of g·u + p(u) + β u²/2.
    fn dual_average(self, gradient: f64, beta: f64) -> f64;
    /// The distance of 0 from g + ∂p(x): zero exactly where the coordinate is optimal.
    fn violation(self, x: f64, gradient: f64) -> f64;
    /// p*(u) = sup over x of u·x − p(x); infinite where u lies outside the domain.
    fn conjugate(self, dual: f64) -> f64;
    /// The half-width of ∂p(0): the slope that a zero withstands. 0 where the term has no kink.
    fn kink(self) -> f64;
}

/// A penalty that is a sum over coordinates.
pub trait Separable: Clone + Send + Sync {
    /// The term of a coordinate.
    type Term: Term;
    /// The term of feature j.
    fn term(&self, feature: usize) -> Self::Term;
    /// How far a step of size α takes the clock that [`Term::rest`] reads. One number serves every coordinate, so
    /// that catching up after any number of missed steps is one subtraction and one shrink.
    fn tick(&self, step: f64) -> f64;
    /// The penalty of the features that are kept, in their new order.
    fn keep(&self, features: &[u32]) -> Self;
}

/// λ, λ₂ and the features' weights: the penalty as a problem states it.
///
/// p(x) = Σ_j w_j·λ|x_j| + (λ₂/2) Σ_{w_j > 0} x_j². A weight of 0 frees the feature of both parts. A penalty on blocks
/// stands in for the first part, with (λ₂/2)‖x‖² for the second.
#[derive(Clone, Debug)]
pub struct Regularization {
    /// λ.
    pub l1: f64,
    /// λ₂.
    pub l2: f64,
    /// One weight a feature; none means 1 for all.
    pub weights: Option<Arc<[f64]>>,
    /// The penalty, where it is one on blocks.
    pub blocks: Option<Blockwise>,
}

impl Regularization {
    /// λ‖x‖₁ alone.
    pub fn l1(lambda: f64) -> Self {
        Self { l1: lambda, l2: 0.0, weights: None, blocks: None }
    }

    /// The penalty on blocks, where it is one.
    pub(crate) fn on_blocks(&self) -> Option<OnBlocks<'_>> {
        self.blocks.as_ref().map(|blocks| blocks.with(self.l1, self.l2))
    }

    /// What the penalty on blocks is called, where it is one.
    pub fn name(&self) -> Option<&str> {
        self.blocks.as_ref().map(|blocks| blocks.penalty().name())
    }

    /// The name of a penalty on blocks that is one where λ is 0 too, as bounds are.
    pub(crate) fn holds_without_lambda(&self) -> Option<&str> {
        let blocks = self.blocks.as_ref()?;
        let without = blocks.with(0.0, 0.0);
        let holds = (0..without.blocks.len()).any(|block| without.kind(block) != block::Kind::Free);
        holds.then(|| blocks.penalty().name())
    }

    /// The weight of a feature.
    #[inline]
    pub fn weight(&self, feature: usize) -> f64 {
        self.weights.as_ref().map_or(1.0, |weights| weights[feature])
    }
}

impl Separable for Regularization {
    type Term = ElasticNet;

    #[inline]
    fn term(&self, feature: usize) -> ElasticNet {
        if self.blocks.is_some() {
            // The kinks are those of the blocks.
            return ElasticNet { l1: 0.0, l2: self.l2 };
        }
        match &self.weights {
            None => ElasticNet { l1: self.l1, l2: self.l2 },
            // A weight of 0 frees the feature of both parts.
            Some(weights) => match weights[feature] {
                0.0 => ElasticNet { l1: 0.0, l2: 0.0 },
                weight => ElasticNet { l1: self.l1 * weight, l2: self.l2 },
            },
        }
    }

    #[inline]
    fn tick(&self, step: f64) -> f64 {
        if self.l2 == 0.0 { step } else { (step * self.l2).ln_1p() }
    }

    fn keep(&self, features: &[u32]) -> Self {
        let kept = |weights: &Arc<[f64]>| features.iter().map(|&feature| weights[feature as usize]).collect();
        debug_assert!(self.blocks.is_none(), "blocks stay whole");
        Self { weights: self.weights.as_ref().map(kept), blocks: None, ..*self }
    }
}
