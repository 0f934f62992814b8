//! The model of a Newton step: which minimiser it goes to, and the Hessian that it is made of.

use std::ops::Range;

use super::blockwise::{self, InSet};
use super::cached::CachedHessian;
use super::expansion::Expansion;
use super::products::Asked;
use super::{Auto, Optimum, products};
use crate::Result;
use crate::huge::Huge;
use crate::penalty::ElasticNet;
use crate::rows::{Job, Model};
use crate::tuning::descent::{COORDINATES_A_SWEEP, LARGEST_BLOCK, LEAST_SWEEPS};
use crate::tuning::newton::{ACTIVE, CLOSELY, EXACTLY, LONGEST, MOST_MISSING, ROUGHER, ROUGHLY};
use crate::tuning::products::OF_SAMPLE;
use crate::tuning::quadratic::LARGE;
use crate::tuning::{HOLLOW, LARGE_HESSIAN, SMALL_HESSIAN};

impl Optimum {
    /// The coordinates of some features there, and their slopes; the intercept's where one is to come last.
    fn in_set(&self, features: &[u32], terms: &[ElasticNet], size: usize) -> (Vec<f64>, Vec<f64>) {
        let of = |(&feature, term): (&u32, &ElasticNet)| {
            let x = self.point.weights[feature as usize];
            (x, self.gradient[feature as usize] + term.l2 * x)
        };
        let intercept = (size > features.len()).then(|| (self.point.intercept[0], self.intercept));
        features.iter().zip(terms).map(of).chain(intercept).unzip()
    }
}

impl Auto<'_> {
    /// A point near the minimum of a model that is f itself, by descent along the columns, and what it was to leave of the
    /// violation; nothing where columns are not the way.
    pub(super) fn along_columns(
        &mut self,
        outputs: &Range<usize>,
        at: &Expansion,
        share: f64,
    ) -> Result<Option<(Vec<f64>, f64)>> {
        let Expansion { terms, x, u, blocks } = at;
        let is_small = |blocks: &InSet| blocks.largest() <= LARGEST_BLOCK;
        if !self.plan.along_columns || self.trust.slow || !blocks.as_ref().is_none_or(is_small) {
            return Ok(None);
        }
        let tolerance = 0.5 * share;
        let most = x.len() * (LEAST_SWEEPS + x.len() / COORDINATES_A_SWEEP);
        let model = Model { terms, x, u, damping: 0.0, blocks: blocks.as_ref(), most };
        Ok(Some((self.rows.descend(outputs.start, model, tolerance)?, tolerance)))
    }

    /// A point near the minimum of the model around a point; `share` is what may be left of the violation there.
    pub(super) fn minimum(
        &mut self,
        outputs: &Range<usize>,
        at: &Expansion,
        share: f64,
        begins: bool,
        stops: &mut dyn FnMut() -> bool,
    ) -> Result<Vec<f64>> {
        let Expansion { terms, x, u, blocks } = at;
        let is_alone = outputs.len() == 1;
        if let Some(blocks) = blocks {
            let most = if is_alone { self.plan.largest_hessian } else { self.plan.jointly };
            if x.len() > most {
                return self.accelerated(outputs, at, blocks, ROUGHLY * share);
            }
        }
        let is_hollow = is_alone && blocks.is_none() && x.len() > SMALL_HESSIAN && {
            let hollow = if x.len() <= LARGE_HESSIAN { HOLLOW } else { 1.0 };
            hollow * self.rows.entries()? < (x.len() * x.len()) as f64
        };
        let is_large = is_alone && x.len() > self.plan.largest_hessian;
        if (is_large || is_hollow) && self.plan.by_products {
            let part = self.trust.part;
            // What a sample does not know is worth no digits.
            let tolerance = if part > 1 { (ROUGHLY * share).max(OF_SAMPLE) } else { ROUGHLY * share };
            let asked = Asked { damping: self.trust.damping, tolerance, part };
            return products::minimum(&mut *self.rows, outputs, at, asked, stops);
        }
        if is_large || is_hollow {
            let model = Model { terms, x, u, damping: self.trust.damping, blocks: None, most: usize::MAX };
            let tolerance = ROUGHLY * share * if share < 1.0 { ROUGHER } else { 1.0 };
            return self.rows.descend(outputs.start, model, tolerance);
        }
        let mut cached =
            self.cached.take().filter(|cached| cached.outputs == *outputs && cached.is_damped_by(self.trust.damping));
        if let Some(known) = &mut cached {
            let wanted = at.active(1.0);
            let missing: Vec<usize> = (0..x.len()).filter(|&at| !known.holds[at] && wanted[at]).collect();
            if !missing.is_empty() && !self.extend(known, &missing, terms)? {
                cached = None;
            }
        }
        if cached.is_none() {
            let active = at.active(ACTIVE);
            let all: Vec<usize> = (0..x.len()).filter(|&at| !is_alone || active[at]).collect();
            let order = if is_alone { self.rows.order(all) } else { all };
            let hessian = self.hessian(outputs, &order, terms)?;
            let near = if begins {
                self.path.optima[0].as_ref().map(|optimum| optimum.lambda)
            } else {
                Some(self.problem().lambda())
            };
            cached = Some(CachedHessian {
                near,
                ..CachedHessian::new(hessian, order, x.len(), outputs.clone(), self.trust.damping)
            });
        }
        self.cached = cached;
        let tolerance = match self.set.len() {
            LARGE.. => share * ROUGHLY,
            _ if self.plan.is_exact => EXACTLY,
            _ => share * CLOSELY,
        };
        let foreseen = if begins { self.foreseen(at) } else { None };
        Ok(self.cached.as_mut().expect("made above").minimum(foreseen.as_ref().unwrap_or(at), tolerance))
    }

    /// The same by products with the Hessian, for a penalty on blocks.
    fn accelerated(
        &mut self,
        outputs: &Range<usize>,
        at: &Expansion,
        blocks: &InSet,
        tolerance: f64,
    ) -> Result<Vec<f64>> {
        let squares = self.rows.numbers(&Job::Diagonal { outputs: outputs.clone(), part: 1 })?;
        let added: Vec<f64> = squares.iter().zip(&at.terms).map(|(h, term)| self.trust.damping * h + term.l2).collect();
        let diagonal: Vec<f64> = squares.iter().zip(&added).map(|(h, added)| h + added).collect();
        blockwise::accelerated(at, blocks, &diagonal, tolerance, |v| {
            let mut product = self.rows.numbers(&Job::Product { outputs: outputs.clone(), v, part: 1 })?;
            product.iter_mut().zip(&added).zip(v).for_each(|((sum, added), v)| *sum += added * v);
            Ok(product)
        })
    }

    /// The point where a fit starts, with slopes that make up for what the Hessian does not know.
    ///
    /// Where the Hessian changes steadily along a path, t = ln λ, one made at t_H misses a change of the slopes on the way
    /// from t_a to t_b that is in proportion to (t_a + t_b)/2 − t_H. What it missed on the way to this start can be seen.
    pub(super) fn foreseen(&self, at: &Expansion) -> Option<Expansion> {
        let ([Some(from), Some(before)], Some(cached)) = (&self.path.optima, &self.cached) else { return None };
        if at.blocks.is_some() {
            return None;
        }
        let to = self.problem().lambda();
        let (length, length_before) = ((to / from.lambda).ln(), (from.lambda / before.lambda).ln());
        let near = cached.near?;
        let distance = |a: f64, b: f64| 0.5 * (a / near * (b / near)).ln();
        let ratio = length / length_before * distance(from.lambda, to) / distance(before.lambda, from.lambda);
        // The Hessian may be of the middle of the way before, which then tells nothing.
        if !(ratio.abs() <= LONGEST && length * length_before > 0.0) {
            return None;
        }
        let (x, slopes) = before.in_set(&self.set, &at.terms, at.x.len());
        let step: Vec<f64> = cached.order.iter().map(|&index| at.x[index] - x[index]).collect();
        let mut u = at.u.clone();
        for (row, foretold) in cached.quadratic.times(&step).into_iter().enumerate() {
            let index = cached.order[row];
            // Without the damping: f does not have it, and where optima are many it would push from one to another.
            let curvature = cached.quadratic.row(row)[row] - at.terms[index].l2;
            let damped = cached.damping / (1.0 + cached.damping) * curvature * step[row];
            u[index] += ratio * (at.u[index] - slopes[index] - (foretold - damped));
        }
        Some(Expansion { u, ..at.clone() })
    }

    /// Takes some more indices into a Hessian; false where another one had better be made.
    fn extend(&mut self, cached: &mut CachedHessian, indices: &[usize], terms: &[ElasticNet]) -> Result<bool> {
        // With few features a Hessian costs little, and a new one serves better than an old one that has grown.
        let is_alone = cached.outputs.len() == 1;
        if indices.len() > MOST_MISSING || self.plan.renews || !is_alone {
            return Ok(false);
        }
        let mut lines = self.rows.hessian_lines(cached.outputs.start, indices)?;
        for (line, &at) in lines.iter_mut().zip(indices) {
            line[at] += terms[at].l2 + self.trust.damping * line[at];
        }
        let all_bend = lines.iter().zip(indices).all(|(line, &at)| line[at] > 0.0);
        if all_bend {
            cached.extend(indices, &lines);
        }
        Ok(all_bend)
    }

    /// The damped Hessian on the ordered coordinates of the working set.
    fn hessian(&mut self, outputs: &Range<usize>, order: &[usize], terms: &[ElasticNet]) -> Result<Huge<f64>> {
        let size = order.len();
        let terms: Vec<ElasticNet> = order.iter().map(|&at| terms[at]).collect();
        let mut gram = self.rows.hessian(outputs.clone(), order)?;
        let hessian = &mut gram[..];
        // A column of rows that are all flat, as those beyond Huber's δ, would have no scale to step by: it gets that
        // of rows with all the curvature there can be.
        if outputs.len() == 1 && (0..size).any(|at| hessian[at * size + at] + terms[at].l2 == 0.0) {
            let steepest = self.problem().loss().smoothness().unwrap_or(1.0) / self.problem().n_rows() as f64;
            let squares = self.rows.squares(order)?;
            for at in (0..size).filter(|at| terms[*at].l2 == 0.0) {
                let diagonal = &mut hessian[at * size + at];
                *diagonal = if *diagonal == 0.0 { steepest * squares[at] } else { *diagonal };
            }
        }
        for at in 0..size {
            // Relative to the column itself: the units of the others do not matter.
            let diagonal = &mut hessian[at * size + at];
            *diagonal += terms[at].l2 + self.trust.damping * *diagonal;
            for other in 0..at {
                hessian[other * size + at] = hessian[at * size + other];
            }
        }
        Ok(gram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;
    use crate::data::{Dataset, Matrix};
    use crate::loss::LossKind;
    use crate::problem::Terms;
    use crate::tuning::FEW;

    #[test]
    fn a_hessian_that_grows_is_the_one_made_at_once() {
        let (n_rows, n_cols) = (90, FEW + 30);
        let value = |row: usize, column: usize| ((row * 131 + column * 37 + row * column) % 101) as f64 / 50.0 - 1.0;
        let present = |row: usize, column: usize| (row * 7 + column * (3 + row % 4)).is_multiple_of(5);
        let rows: Vec<Vec<(u32, f64)>> = (0..n_rows)
            .map(|row| (0..n_cols).filter(|&j| present(row, j)).map(|j| (j as u32, value(row, j))).collect())
            .collect();
        let targets = (0..n_rows).map(|row| f64::from(row % 3 == 0)).collect();
        let data = Dataset::new(Matrix::from_rows(n_cols, &rows), targets);
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms { l2: 0.5, ..Terms::default() }).unwrap();
        let mut auto = Auto::new(&problem, None, None).unwrap();
        auto.measure().unwrap();
        let terms = |auto: &Auto| -> Vec<ElasticNet> {
            let of = auto.set.iter().map(|&feature| auto.term(feature as usize));
            of.chain([ElasticNet { l1: 0.0, l2: 0.0 }]).collect()
        };

        // Some features, then others before, between and after them.
        auto.set = (5..60).step_by(3).collect();
        auto.rows.select(&auto.set).unwrap();
        let order = auto.rows.order((0..=auto.set.len()).collect());
        let hessian = auto.hessian(&(0..1), &order, &terms(&auto)).unwrap();
        let mut cached = CachedHessian::new(hessian, order, auto.set.len() + 1, 0..1, auto.trust.damping);
        let mut features = auto.set.clone();
        features.extend([0, 6, 7, 300]);
        features.sort_unstable();
        cached.move_to(&auto.set, &features);
        auto.set = features;
        auto.rows.select(&auto.set).unwrap();
        let missing: Vec<usize> = (0..auto.set.len()).filter(|&at| !cached.holds[at]).collect();
        assert_eq!(missing.len(), 4);
        let of_all = terms(&auto);
        assert!(auto.extend(&mut cached, &missing, &of_all).unwrap());

        let order = auto.rows.order((0..=auto.set.len()).collect());
        let full = auto.hessian(&(0..1), &order, &of_all).unwrap();
        let size = order.len();
        assert_eq!((cached.order.len(), cached.quadratic.hessian().len()), (size, size * size));
        let index = |at: usize| cached.order.iter().position(|&other| other == at).expect("every index is in it");
        for (row, &a) in order.iter().enumerate() {
            for (column, &b) in order.iter().enumerate() {
                let (grown, made) = (cached.quadratic.hessian()[index(a) * size + index(b)], full[row * size + column]);
                // Hessians are made of values in single precision.
                assert!((grown - made).abs() <= 1e-6 * made.abs().max(1e-3), "{a}, {b}: {grown} and {made}");
            }
        }
    }
}
