//! ℓ(m) = Σ_t [W_t ln Σ_{j ∈ R_t} wⱼe^(mⱼ) − Σ_{i ∈ D_t} wᵢmᵢ]: minus the logarithm of Cox's partial likelihood.
//!
//! A target is a time, negative where the row is censored at it. R_t are the rows still at risk at t (|yⱼ| ≥ t), D_t those
//! whose event is at t, W_t their weight. So hazards of rows are compared at each event, and nothing is assumed of how they
//! move in time. Ties of events at one time: Breslow's as above; Efron's takes the tied rows out of the sum one share after
//! the other, W_t/d Σ_{l<d} ln(Σ_{R_t} − (l/d) Σ_{D_t}), d being their number.
//!
//! Sums over the risk sets are running sums from the last time back, so all here costs O(N) (Efron's dual value d for each
//! tied row). Each is kept as a multiple of e^top, top the largest margin in it: no margin is too large.
//!
//! Curvature. H = Σ_t W_t (diag(p_t) − p_tp_tᵀ), p_t the softmax of R_t. What is given out is the diagonal of Σ_t W_t diag(p_t),
//! and a model of a step that also has a free intercept then lies above ℓ everywhere near: Σ_t W_t p_tp_tᵀ is at least
//! p̄p̄ᵀ/Σ W_t with p̄ = Σ_t W_tp_t, which is what minimising over the intercept takes away.
//!
//! Dual. With p_t of some margins and e_t the tied rows' share of D_t by weight, s·p_t + (1 − s)·e_t is a distribution on R_t,
//! and Σ_t W_t of it less the events is s·∇ℓ. So ℓ*(s∇ℓ) ≤ Σ_t W_t KL(s·p_t + (1 − s)·e_t ‖ w), an equality at s = 1.
//!
//! Citations: Cox, Regression models and life-tables, 1972; Efron, The efficiency of Cox's likelihood function for censored
//! data, 1977; Simon, Friedman, Hastie and Tibshirani, Regularization paths for Cox's proportional hazards model via
//! coordinate descent, 2011.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Coupled, Loss, Task};
use crate::{Error, Result};

/// How events at one time are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ties {
    /// As if they came one after the other, in no order that is known.
    #[default]
    Efron,
    /// As if each saw all of the others.
    Breslow,
}

/// Minus the logarithm of the partial likelihood. A row by itself has no loss: see [`Coupled`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cox {
    /// What is done about ties.
    pub ties: Ties,
}

impl Loss for Cox {
    fn name(&self) -> &str {
        match self.ties {
            Ties::Efron => "cox",
            Ties::Breslow => "cox-breslow",
        }
    }

    fn task(&self) -> Task {
        Task::Survival
    }

    fn outputs(&self) -> usize {
        1
    }

    fn value(&self, _margins: &[f64], _target: f64) -> f64 {
        f64::NAN
    }

    fn gradient(&self, _margins: &[f64], _target: f64, gradient: &mut [f64]) {
        gradient[0] = f64::NAN;
    }

    fn curvature(&self, _margins: &[f64], _target: f64, curvature: &mut [f64]) -> bool {
        curvature[0] = f64::NAN;
        true
    }

    fn smoothness(&self) -> Option<f64> {
        None
    }

    fn conjugate(&self, _dual: &[f64], _target: f64) -> Option<f64> {
        Some(f64::INFINITY)
    }

    fn refuses(&self, target: f64) -> Option<&'static str> {
        (target == 0.0).then_some("give a time that is not 0, negative where the row is censored")
    }

    fn coupled(&self, targets: &[f64]) -> Option<Arc<dyn Coupled>> {
        Some(Arc::new(RiskSets::new(targets, self.ties)))
    }
}

/// Tied rows up to which Efron's dual value is exact; beyond them it is bounded by its ends.
const MANY_TIES: usize = 512;

/// The rows in the order of their times.
#[derive(Debug)]
struct RiskSets {
    ties: Ties,
    order: Vec<u32>,
    /// Where the rows of each time end, from the first time to the last.
    ends: Vec<u32>,
    is_event: Vec<bool>,
}

/// What is known of a time at which there are events. Sums are multiples of e^top.
struct Risk {
    /// Which time.
    time: usize,
    top: f64,
    /// Σ wⱼe^(mⱼ) over the rows at risk, and Σ wⱼe^(mⱼ)(mⱼ − top).
    sum: f64,
    moment: f64,
    /// The same of the events, their number and their weight.
    tied: f64,
    tied_moment: f64,
    count: usize,
    weight: f64,
}

/// A sum over rows that grows.
struct Running {
    top: f64,
    sum: f64,
    moment: f64,
}

impl Running {
    fn add(&mut self, weight: f64, margin: f64) {
        if margin > self.top {
            let (fall, by) = (self.top - margin, (self.top - margin).exp());
            // Nothing is at risk before the first row, and 0 · −∞ is no number.
            (self.sum, self.moment) =
                if self.sum == 0.0 { (0.0, 0.0) } else { (self.sum * by, by * (self.moment + fall * self.sum)) };
            self.top = margin;
        }
        let share = weight * (margin - self.top).exp();
        self.sum += share;
        // What has underflown is far below.
        self.moment += if share == 0.0 { 0.0 } else { share * (margin - self.top) };
    }
}

impl Risk {
    /// Its terms: the share of the tied rows that is out of the sum, and the term's weight.
    fn terms(&self, ties: Ties) -> impl Iterator<Item = (f64, f64)> + use<> {
        let count = if ties == Ties::Efron { self.count } else { 1 };
        let (d, each) = (count as f64, self.weight / count as f64);
        (0..count).map(move |l| (l as f64 / d, each))
    }

    /// The sum of a term.
    fn at_risk(&self, share: f64) -> f64 {
        self.sum - share * self.tied
    }
}

fn weight_of(weights: Option<&[f64]>, row: usize) -> f64 {
    weights.map_or(1.0, |weights| weights[row])
}

impl RiskSets {
    fn new(targets: &[f64], ties: Ties) -> Self {
        let time = |row: u32| targets[row as usize].abs();
        let mut order: Vec<u32> = (0..targets.len() as u32).collect();
        order.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
        let is_last = |at: &usize| order.get(at + 1).is_none_or(|&next| time(next) != time(order[*at]));
        let ends = (0..order.len()).filter(is_last).map(|at| at as u32 + 1).collect();
        Self { ties, ends, is_event: targets.iter().map(|&target| target > 0.0).collect(), order }
    }

    /// The rows of a time.
    fn rows(&self, time: usize) -> impl Iterator<Item = usize> {
        let first = if time == 0 { 0 } else { self.ends[time - 1] };
        let range: Range<usize> = first as usize..self.ends[time] as usize;
        self.order[range].iter().map(|&row| row as usize)
    }

    /// The times at which there are events, from the first to the last.
    fn risks(&self, margins: &[f64], weights: Option<&[f64]>) -> Vec<Risk> {
        let mut risks = Vec::new();
        let mut running = Running { top: f64::NEG_INFINITY, sum: 0.0, moment: 0.0 };
        for time in (0..self.ends.len()).rev() {
            let counts = |row: &usize| weight_of(weights, *row) > 0.0;
            self.rows(time).filter(counts).for_each(|row| running.add(weight_of(weights, row), margins[row]));
            let Running { top, sum, moment } = running;
            let mut risk = Risk { time, top, sum, moment, tied: 0.0, tied_moment: 0.0, count: 0, weight: 0.0 };
            for row in self.rows(time).filter(|row| self.is_event[*row]).filter(counts) {
                let (weight, above) = (weight_of(weights, row), margins[row] - top);
                let share = weight * above.exp();
                risk.count += 1;
                risk.weight += weight;
                risk.tied += share;
                risk.tied_moment += if share == 0.0 { 0.0 } else { share * above };
            }
            if risk.count > 0 {
                risks.push(risk);
            }
        }
        risks.reverse();
        risks
    }

    /// W_t KL(s·p_t + (1 − s)·e_t ‖ w) of one time, of rows with these margins.
    fn divergence(&self, scale: f64, risk: &Risk, margins: &[f64], weights: Option<&[f64]>) -> f64 {
        let is_many = self.ties == Ties::Efron && risk.count > MANY_TIES;
        let tied: Vec<(f64, f64)> = match is_many {
            true => Vec::new(),
            false => {
                let rows = self.rows(risk.time).filter(|&row| self.is_event[row] && weight_of(weights, row) > 0.0);
                rows.map(|row| (weight_of(weights, row), (margins[row] - risk.top).exp())).collect()
            }
        };
        let of_term = |(share, each): (f64, f64)| {
            let (at_risk, kept) = (risk.at_risk(share), 1.0 - share);
            let ends = |moment: f64, mass: f64| moment / at_risk - mass * at_risk.ln();
            if is_many {
                // KL is convex: no more than its share of both ends.
                let here = ends(risk.moment - share * risk.tied_moment, 1.0);
                return each * (scale * here - (1.0 - scale) * (risk.weight * kept).ln());
            }
            let others = (risk.sum - risk.tied).max(0.0) / at_risk;
            let mut sum = ends(risk.moment - risk.tied_moment, others) + others * scale.ln();
            sum *= scale;
            for &(weight, rate) in &tied {
                let density = scale * rate / at_risk + (1.0 - scale) / (risk.weight * kept);
                if density > 0.0 {
                    sum += weight * kept * density * density.ln();
                }
            }
            each * sum
        };
        risk.terms(self.ties).map(of_term).sum()
    }
}

impl Coupled for RiskSets {
    fn check(&self, weights: Option<&[f64]>) -> Result<()> {
        match self.events(weights) {
            0 => Err(Error::Data("every row is censored: an event is needed to learn from (a positive time)".into())),
            _ => Ok(()),
        }
    }

    fn total(&self, margins: &[f64], weights: Option<&[f64]>) -> f64 {
        let of = |risk: &Risk| {
            let terms = risk.terms(self.ties).map(|(share, each)| each * (risk.top + risk.at_risk(share).ln()));
            let rows = self.rows(risk.time).filter(|&row| self.is_event[row] && weight_of(weights, row) > 0.0);
            terms.sum::<f64>() - rows.map(|row| weight_of(weights, row) * margins[row]).sum::<f64>()
        };
        self.risks(margins, weights).iter().map(of).sum()
    }

    fn least(&self, weights: Option<&[f64]>) -> f64 {
        // The tied rows alone are at risk, with one hazard.
        let of = |risk: &Risk| -> f64 {
            risk.terms(self.ties).map(|(share, each)| each * (risk.weight * (1.0 - share)).ln()).sum()
        };
        self.risks(&vec![0.0; self.order.len()], weights).iter().map(of).sum()
    }

    fn expand(&self, margins: &[f64], weights: Option<&[f64]>, slopes: &mut [f64], curvatures: &mut [f64]) {
        let risks = self.risks(margins, weights);
        let mut risks = risks.iter().peekable();
        // Σ of the terms' weights over their sums so far, as a multiple of e^−top.
        let (mut level, mut top) = (0.0, f64::INFINITY);
        for time in 0..self.ends.len() {
            let mut own = 0.0;
            if let Some(risk) = risks.next_if(|risk| risk.time == time) {
                level *= if level == 0.0 { 0.0 } else { (risk.top - top).exp() };
                top = risk.top;
                for (share, each) in risk.terms(self.ties) {
                    level += each / risk.at_risk(share);
                    own += share * each / risk.at_risk(share);
                }
            }
            for row in self.rows(time) {
                (slopes[row], curvatures[row]) = (0.0, 0.0);
                if weight_of(weights, row) > 0.0 {
                    let is_event = self.is_event[row];
                    let rate = if level == 0.0 { 0.0 } else { (margins[row] - top).exp() };
                    curvatures[row] = rate * (level - if is_event { own } else { 0.0 });
                    slopes[row] = curvatures[row] - f64::from(is_event);
                }
            }
        }
    }

    fn conjugate(&self, scale: f64, margins: &[f64], weights: Option<&[f64]>) -> f64 {
        // At no share of p there is none of its logarithm.
        let scale = scale.max(f64::MIN_POSITIVE);
        let of = |risk: &Risk| self.divergence(scale, risk, margins, weights);
        self.risks(margins, weights).iter().map(of).sum()
    }

    fn events(&self, weights: Option<&[f64]>) -> usize {
        (0..self.is_event.len()).filter(|&row| self.is_event[row] && weight_of(weights, row) > 0.0).count()
    }
}
