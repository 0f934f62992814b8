//! Penalties on blocks by their definitions.

use std::sync::Arc;

use obprox::penalty::{Bounds, Groups, Penalty};
use obprox::{Point, Problem};

use super::Case;

/// A penalty as its definition has it: features in groups, bounds, shares.
#[derive(Clone, Debug)]
pub enum Plain {
    Box(f64, f64),
    /// The group of each feature, their weights, the share of l1.
    Groups(Vec<u32>, Option<Vec<f64>>, f64),
}

impl Plain {
    pub fn all(features: usize) -> Vec<Self> {
        let of: Vec<u32> = (0..features).map(|feature| (feature % 4).min(feature) as u32).collect();
        let count = 4.min(features);
        let weights: Vec<f64> = (0..count).map(|group| 0.5 + group as f64).collect();
        let mut some_free = weights.clone();
        some_free[0] = 0.0;
        vec![
            Self::Box(0.0, f64::INFINITY),
            Self::Box(-0.05, 0.1),
            Self::Box(f64::NEG_INFINITY, 0.02),
            Self::Groups((0..features as u32).collect(), None, 0.0),
            Self::Groups(of.clone(), None, 0.0),
            Self::Groups(of.clone(), Some(weights.clone()), 0.3),
            Self::Groups(of, Some(some_free), 0.2),
        ]
    }

    pub fn built(&self, features: usize) -> Arc<dyn Penalty> {
        match self {
            Self::Box(low, high) => Arc::new(Bounds::new(vec![*low; features], vec![*high; features]).unwrap()),
            Self::Groups(of, weights, share) => {
                let groups = Groups::new(of.clone()).unwrap().with_l1_share(*share).unwrap();
                Arc::new(match weights {
                    Some(weights) => groups.with_weights(weights.clone()).unwrap(),
                    None => groups,
                })
            }
        }
    }

    pub fn groups(of: &[u32]) -> Vec<Vec<usize>> {
        let mut groups = vec![Vec::new(); *of.iter().max().unwrap() as usize + 1];
        of.iter().enumerate().for_each(|(feature, &group)| groups[group as usize].push(feature));
        groups
    }

    fn weight(weights: &Option<Vec<f64>>, group: usize, size: usize) -> f64 {
        weights.as_ref().map_or((size as f64).sqrt(), |weights| weights[group])
    }

    pub fn value(&self, lambda: f64, x: &[Vec<f64>]) -> f64 {
        match self {
            Self::Box(low, high) => {
                let outside = x.iter().flatten().any(|x| x < low || x > high);
                if outside { f64::INFINITY } else { lambda * x.iter().flatten().map(|x| x.abs()).sum::<f64>() }
            }
            Self::Groups(of, weights, share) => {
                let one = |(group, features): (usize, &Vec<usize>)| {
                    let of_group = || features.iter().flat_map(|&feature| &x[feature]);
                    let weight = Self::weight(weights, group, of_group().count());
                    let l1 = if weight == 0.0 { 0.0 } else { share * of_group().map(|x| x.abs()).sum::<f64>() };
                    l1 + (1.0 - share) * weight * of_group().map(|x| x * x).sum::<f64>().sqrt()
                };
                lambda * Self::groups(of).iter().enumerate().map(one).sum::<f64>()
            }
        }
    }

    pub fn prox(&self, lambda: f64, x: &mut [Vec<f64>], step: f64) {
        let soft = |x: f64, t: f64| x.signum() * (x.abs() - t).max(0.0);
        match self {
            Self::Box(low, high) => {
                x.iter_mut().flatten().for_each(|x| *x = soft(*x, step * lambda).clamp(*low, *high));
            }
            Self::Groups(of, weights, share) => {
                for (group, features) in Self::groups(of).iter().enumerate() {
                    let size = features.len() * x[0].len();
                    let weight = Self::weight(weights, group, size);
                    if weight == 0.0 {
                        continue;
                    }
                    let mut square = 0.0;
                    for &feature in features {
                        x[feature].iter_mut().for_each(|x| {
                            *x = soft(*x, step * lambda * share);
                            square += *x * *x;
                        });
                    }
                    let left = (1.0 - step * lambda * (1.0 - share) * weight / square.sqrt()).max(0.0);
                    features.iter().for_each(|&feature| x[feature].iter_mut().for_each(|x| *x *= left));
                }
            }
        }
    }

    /// The features of each block.
    fn blocks(&self, features: usize) -> Vec<Vec<usize>> {
        match self {
            Self::Box(..) => (0..features).map(|feature| vec![feature]).collect(),
            Self::Groups(of, ..) => Self::groups(of),
        }
    }

    /// The lowest F that proximal steps reach from a point, or from zero, on all blocks at once or on one after the other;
    /// without steps that of the point.
    pub fn lowest(&self, case: &Case, problem: &Problem, steps: usize, from: Option<&Point>) -> f64 {
        let lambda = problem.lambda();
        // Of the columns' own penalties only λ₂ is left, the rest comes from the definition.
        let slow = case.slow(problem);
        let (value, prox) =
            (|x: &[Vec<f64>]| self.value(lambda, x), |x: &mut [Vec<f64>], step: f64| self.prox(lambda, x, step));
        let at_once = slow.proximal(from, steps, &value, &prox).0;
        at_once.min(slow.blockwise(from, steps / 10, &self.blocks(case.n_cols()), &value, &prox))
    }
}
