//! The working set: which features a round works on.

use rayon::prelude::*;

use super::Auto;
use crate::Result;
use crate::penalty::{OnBlocks, Separable, Term};
use crate::tuning::select::{FEW_NEW, NEAR, ROOM, ROOM_ALONG_COLUMNS};
use crate::tuning::{FEW, LARGE_HESSIAN};

impl Auto<'_> {
    /// Makes a new working set, or keeps the one at hand where it holds all that is needed; whether features are new in it.
    pub(super) fn renew_set(&mut self) -> Result<bool> {
        let mut wanted = self.select(1.0);
        let known = |feature: &u32| self.set.binary_search(feature).is_ok();
        if wanted.iter().all(known) && self.set.len() <= 2 * wanted.len().max(FEW / 4) {
            return Ok(false);
        }
        if self.path.floor.is_some() || self.trust.slow {
            // It shall serve for some λ to come, or for the rounds to come by one Hessian, if it can have one.
            let more = self.select(NEAR);
            if more.len() < LARGE_HESSIAN {
                wanted = more;
            }
        }
        let new = wanted.iter().filter(|feature| !known(feature)).count();
        if new > 0 && new <= self.set.len() / FEW_NEW {
            // The set and its Hessian go on, with some more.
            wanted.extend(&self.set);
            wanted.sort_unstable();
            wanted.dedup();
        } else {
            self.cached = None;
        }
        // That of several outputs is small, and made anew.
        self.cached = self.cached.take().filter(|cached| cached.outputs.len() == 1);
        if let Some(cached) = &mut self.cached {
            cached.move_to(&self.set, &wanted);
        }
        self.set = wanted;
        self.rows.select(&self.set)?;
        Ok(new > 0)
    }

    /// The largest slope there is, as a multiple of the λ_j it has to overcome.
    pub(super) fn steepness(&self) -> f64 {
        let outputs = self.problem().outputs();
        let regularization = self.problem().regularization();
        if let Some(penalty) = regularization.on_blocks() {
            let least = |block: usize| penalty.least_lambda(block, &penalty.gather(block, &self.gradient));
            let blocks = (0..penalty.blocks.len()).into_par_iter().map(least);
            return blocks.filter(|least| least.is_finite()).reduce(|| 0.0, f64::max) / penalty.lambda;
        }
        let steepness = |(at, slope): (usize, &f64)| {
            let kink = regularization.term(at / outputs).kink();
            if kink > 0.0 { slope.abs() / kink } else { 0.0 }
        };
        self.gradient.par_iter().with_min_len(1 << 14).enumerate().map(steepness).reduce(|| 0.0, f64::max)
    }

    /// What is not zero or not penalised, and the worst violators, as many again.
    ///
    /// With a `reach` below 1 those that are near to violating are taken in as well.
    fn select(&self, reach: f64) -> Vec<u32> {
        let outputs = self.problem().outputs();
        if self.plan.takes_all {
            return (0..self.problem().n_features() as u32).collect();
        }
        if let Some(penalty) = self.problem().regularization().on_blocks() {
            return self.select_blocks(penalty, reach);
        }
        // What to do with a feature: nothing, or how badly it is wanted (without end where it must be there).
        let want = |feature: usize| {
            let span = feature * outputs..(feature + 1) * outputs;
            let kink = self.term(feature).kink();
            if kink == 0.0 || self.point.weights[span.clone()].iter().any(|&x| x != 0.0) {
                return Some((f64::INFINITY, feature as u32));
            }
            let slope = self.gradient[span].iter().fold(0.0, |most: f64, slope| most.max(slope.abs()));
            (slope > reach * kink).then_some((slope / kink, feature as u32))
        };
        let features = (0..self.problem().n_features()).into_par_iter().with_min_len(1 << 14);
        self.worst(self.problem().n_features(), features.filter_map(want).collect())
    }

    /// The same of blocks, whose features are taken together.
    fn select_blocks(&self, penalty: OnBlocks, reach: f64) -> Vec<u32> {
        let lambda = self.fall.stretch * penalty.lambda;
        let want = |block: usize| {
            if penalty.gather(block, &self.point.weights).iter().any(|&x| x != 0.0) {
                return Some((f64::INFINITY, block as u32));
            }
            let least = penalty.least_lambda(block, &penalty.gather(block, &self.gradient));
            (least > reach * lambda).then_some((least / lambda, block as u32))
        };
        let count = penalty.blocks.len();
        let chosen = self.worst(count, (0..count).into_par_iter().filter_map(want).collect());
        let outputs = self.problem().outputs() as u32;
        let of = |&block: &u32| penalty.blocks.coordinates(block as usize).iter().map(move |&at| at / outputs);
        let mut features: Vec<u32> = chosen.iter().flat_map(of).collect();
        // Outputs of a feature that are blocks by themselves bring the others along.
        features.sort_unstable();
        features.dedup();
        features
    }

    /// What must be there, and the most wanted of the others, as many again; in order. There are `count` to choose from.
    fn worst(&self, count: usize, wanted: Vec<(f64, u32)>) -> Vec<u32> {
        let (must, mut violators): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(wish, _)| *wish == f64::INFINITY);
        let mut chosen: Vec<u32> = must.into_iter().map(|(_, feature)| feature).collect();
        // As many again, or a few more than that at first; hardly ever are more features wanted than there are rows.
        let (part, most) = if self.plan.along_columns { ROOM_ALONG_COLUMNS } else { ROOM };
        let at_first = (count / part).min(self.problem().n_rows()).clamp(16, most);
        let room = chosen.len().max(at_first);
        if violators.len() > room {
            violators.select_nth_unstable_by(room, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            violators.truncate(room);
        }
        chosen.extend(violators.iter().map(|&(_, feature)| feature));
        chosen.sort_unstable();
        chosen
    }
}
