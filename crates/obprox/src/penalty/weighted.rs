//! p(x) = Σ_j w_j λ|x_j| (+ (λ₂/2) x_j² where w_j > 0): a penalty with one weight a feature.

use std::sync::Arc;

use super::{ElasticNet, L1, Penalty};

/// A penalty whose λ is multiplied by a weight of the feature's own; 0 leaves the feature unpenalised.
#[derive(Clone, Debug)]
pub struct Weighted<P> {
    /// The penalty of a feature with weight 1.
    pub base: P,
    /// One weight a feature.
    pub weights: Arc<[f64]>,
}

fn kept(weights: &[f64], features: &[u32]) -> Arc<[f64]> {
    features.iter().map(|&feature| weights[feature as usize]).collect()
}

impl Penalty for Weighted<L1> {
    type Term = L1;

    #[inline]
    fn term(&self, feature: usize) -> L1 {
        L1 { l1: self.base.l1 * self.weights[feature] }
    }

    fn tick(&self, step: f64) -> f64 {
        self.base.tick(step)
    }

    fn keep(&self, features: &[u32]) -> Self {
        Self { base: self.base, weights: kept(&self.weights, features) }
    }
}

impl Penalty for Weighted<ElasticNet> {
    type Term = ElasticNet;

    #[inline]
    fn term(&self, feature: usize) -> ElasticNet {
        self.base.weighted(self.weights[feature])
    }

    fn tick(&self, step: f64) -> f64 {
        self.base.tick(step)
    }

    fn keep(&self, features: &[u32]) -> Self {
        Self { base: self.base, weights: kept(&self.weights, features) }
    }
}
