//! A problem as dense columns, and coordinate descent on it: slow, obvious, and nothing of it taken from the library.
//!
//! Coordinate descent does not mind how the columns are scaled, and it never raises F: started from a point that
//! another solver calls optimal, it finds whatever that point has left.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod plain;

use std::sync::Arc;

use obprox::data::{Dataset, Matrix};
use obprox::loss::LossKind;
use obprox::penalty::Penalty;
use obprox::{Lambda, Point, Problem, Terms};

/// A problem; the intercept, where there is one, is a last column of ones without penalty.
#[derive(Clone, Debug)]
pub struct Case {
    pub loss: LossKind,
    /// K.
    pub outputs: usize,
    pub rows: Vec<Vec<f64>>,
    pub labels: Vec<f64>,
    pub lambda: Lambda,
    pub l2: f64,
    pub feature_weights: Option<Vec<f64>>,
    /// Instead of λ‖x‖₁.
    pub penalty: Option<Arc<dyn Penalty>>,
    pub row_weights: Option<Vec<f64>>,
    pub intercept: bool,
    /// Stored as a dense matrix, else by its nonzeros.
    pub dense: bool,
}

impl Case {
    pub fn new(loss: LossKind, rows: Vec<Vec<f64>>, labels: Vec<f64>, lambda: Lambda) -> Self {
        let outputs = if loss == LossKind::Softmax { obprox::distinct(&labels).len() } else { 1 };
        Self {
            loss,
            outputs,
            rows,
            labels,
            lambda,
            l2: 0.0,
            feature_weights: None,
            penalty: None,
            row_weights: None,
            intercept: true,
            dense: false,
        }
    }

    pub fn n_cols(&self) -> usize {
        self.rows[0].len()
    }

    pub fn problem(&self) -> Problem {
        let n_cols = self.n_cols();
        let matrix = if self.dense {
            Matrix::from_dense(self.rows.len(), n_cols, &self.rows.concat())
        } else {
            let sparse = |row: &Vec<f64>| {
                let entries = row.iter().enumerate().filter(|(_, value)| **value != 0.0);
                entries.map(|(column, &value)| (column as u32, value)).collect()
            };
            Matrix::from_rows(n_cols, &self.rows.iter().map(sparse).collect::<Vec<_>>())
        };
        let terms = Terms {
            lambda: self.lambda,
            l2: self.l2,
            feature_weights: self.feature_weights.clone(),
            penalty: self.penalty.clone(),
            row_weights: self.row_weights.clone(),
            intercept: self.intercept,
            ..Terms::default()
        };
        let data = Dataset::new(matrix, self.labels.clone());
        Problem::new(data, self.loss.build(self.outputs), &terms).unwrap()
    }

    /// The same at the λ that the problem has.
    pub fn slow(&self, problem: &Problem) -> Slow {
        let (n_rows, n_cols) = (self.rows.len(), self.n_cols());
        let mut columns: Vec<Vec<f64>> =
            (0..n_cols).map(|column| self.rows.iter().map(|row| row[column]).collect()).collect();
        let weights = self.feature_weights.clone().unwrap_or_else(|| vec![1.0; n_cols]);
        let mut penalties: Vec<(f64, f64)> = weights
            .iter()
            .map(|&weight| if weight == 0.0 { (0.0, 0.0) } else { (problem.lambda() * weight, self.l2) })
            .collect();
        if self.intercept {
            columns.push(vec![1.0; n_rows]);
            penalties.push((0.0, 0.0));
        }
        let row_weights = self.row_weights.clone().unwrap_or_else(|| vec![1.0; n_rows]);
        let total: f64 = row_weights.iter().sum();
        Slow {
            loss: self.loss,
            outputs: self.outputs,
            n_features: n_cols,
            columns,
            penalties,
            targets: problem.targets().to_vec(),
            row_weights: row_weights.iter().map(|weight| weight / total).collect(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Slow {
    loss: LossKind,
    outputs: usize,
    n_features: usize,
    columns: Vec<Vec<f64>>,
    /// (λ, λ₂) of each column.
    penalties: Vec<(f64, f64)>,
    targets: Vec<f64>,
    /// With sum 1.
    row_weights: Vec<f64>,
}

/// A loss of all rows together has tests of its own.
const ONE_ROW: &str = "a row by itself has no such loss: tests/cox.rs";

/// ℓ(m; y).
fn value(loss: LossKind, m: &[f64], y: f64) -> f64 {
    match loss {
        LossKind::Logistic => (-(y * m[0]).abs()).exp().ln_1p() + (-y * m[0]).max(0.0),
        LossKind::Squared => (m[0] - y).powi(2) / 2.0,
        LossKind::SquaredHinge => (1.0 - y * m[0]).max(0.0).powi(2),
        LossKind::Huber(delta) => {
            let r = (m[0] - y).abs();
            if r <= delta { r * r / 2.0 } else { delta * r - delta * delta / 2.0 }
        }
        LossKind::Poisson => m[0].exp() - y * m[0],
        LossKind::Gamma => y * (-m[0]).exp() + m[0],
        LossKind::Tweedie(p) => y * ((1.0 - p) * m[0]).exp() / (p - 1.0) + ((2.0 - p) * m[0]).exp() / (2.0 - p),
        LossKind::NegativeBinomial(theta) => (y + theta) * (theta + m[0].exp()).ln() - y * m[0],
        LossKind::Softmax => {
            let top = m.iter().copied().fold(f64::MIN, f64::max);
            m.iter().map(|m| (m - top).exp()).sum::<f64>().ln() + top - m[y as usize]
        }
        LossKind::Cox(_) => unreachable!("{ONE_ROW}"),
    }
}

/// ∂ℓ/∂m_k and a curvature to step by: the true one, or the largest there is where that can vanish.
fn derivatives(loss: LossKind, m: &[f64], y: f64, k: usize) -> (f64, f64) {
    match loss {
        LossKind::Logistic => {
            let p = 1.0 / (1.0 + (y * m[0]).exp());
            (-y * p, p * (1.0 - p))
        }
        LossKind::Squared => (m[0] - y, 1.0),
        LossKind::SquaredHinge => (-2.0 * y * (1.0 - y * m[0]).max(0.0), 2.0),
        LossKind::Huber(delta) => ((m[0] - y).clamp(-delta, delta), 1.0),
        LossKind::Poisson => (m[0].exp() - y, m[0].exp()),
        LossKind::Gamma => (1.0 - y * (-m[0]).exp(), y * (-m[0]).exp()),
        LossKind::Tweedie(p) => {
            let (pull, rise) = (y * ((1.0 - p) * m[0]).exp(), ((2.0 - p) * m[0]).exp());
            (rise - pull, (2.0 - p) * rise + (p - 1.0) * pull)
        }
        LossKind::NegativeBinomial(theta) => {
            let share = m[0].exp() / (theta + m[0].exp());
            ((y + theta) * share - y, (y + theta) * share * (1.0 - share))
        }
        LossKind::Softmax => {
            let p = 1.0 / m.iter().map(|other| (other - m[k]).exp()).sum::<f64>();
            (if k == y as usize { p - 1.0 } else { p }, p * (1.0 - p))
        }
        LossKind::Cox(_) => unreachable!("{ONE_ROW}"),
    }
}

fn soft(z: f64, t: f64) -> f64 {
    z.signum() * (z.abs() - t).max(0.0)
}

impl Slow {
    fn mean_loss(&self, margins: &[Vec<f64>]) -> f64 {
        let of = |row: usize| self.row_weights[row] * value(self.loss, &margins[row], self.targets[row]);
        (0..self.targets.len()).filter(|&row| self.row_weights[row] > 0.0).map(of).sum()
    }

    fn penalty(&self, x: &[Vec<f64>]) -> f64 {
        let of =
            |(x, &(l1, l2)): (&Vec<f64>, &(f64, f64))| x.iter().map(|x| l1 * x.abs() + l2 * x * x / 2.0).sum::<f64>();
        x.iter().zip(&self.penalties).map(of).sum()
    }

    fn margins(&self, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let of = |row: usize, k: usize| self.columns.iter().zip(x).map(|(column, x)| column[row] * x[k]).sum();
        (0..self.targets.len()).map(|row| (0..self.outputs).map(|k| of(row, k)).collect()).collect()
    }

    /// The coefficients of a point, a column at a time.
    fn coefficients(&self, point: &Point) -> Vec<Vec<f64>> {
        let mut x: Vec<Vec<f64>> = point.weights.chunks(self.outputs).map(<[f64]>::to_vec).collect();
        if self.columns.len() > self.n_features {
            x.push(point.intercept.clone());
        }
        x
    }

    /// F of a point.
    pub fn objective(&self, point: &Point) -> f64 {
        let x = self.coefficients(point);
        self.mean_loss(&self.margins(&x)) + self.penalty(&x)
    }

    /// The lowest F that coordinate descent reaches from a point; from zero where there is none.
    pub fn descend(&self, from: Option<&Point>, sweeps: usize) -> f64 {
        let zero = vec![vec![0.0; self.outputs]; self.columns.len()];
        let mut x = from.map_or(zero, |point| self.coefficients(point));
        let mut margins = self.margins(&x);
        let mut before = self.mean_loss(&margins) + self.penalty(&x);
        for sweep in 0..sweeps {
            for (at, column) in self.columns.iter().enumerate() {
                for (k, x) in x[at].iter_mut().enumerate() {
                    self.step(x, &mut margins, column, self.penalties[at], k);
                }
            }
            if sweep % 10 == 9 {
                margins = self.margins(&x);
                let now = self.mean_loss(&margins) + self.penalty(&x);
                if now >= before - 1e-13 * before.abs() {
                    return now.min(before);
                }
                before = now;
            }
        }
        before
    }

    /// The lowest F that accelerated proximal steps reach from a point, with a penalty that is given by its value and its
    /// proximal step in place; that of the columns is λ₂ alone. The intercept's column, which comes last, is left alone.
    pub fn proximal(
        &self,
        from: Option<&Point>,
        steps: usize,
        penalty: &dyn Fn(&[Vec<f64>]) -> f64,
        prox: &dyn Fn(&mut [Vec<f64>], f64),
    ) -> (f64, Vec<Vec<f64>>) {
        let zero = vec![vec![0.0; self.outputs]; self.columns.len()];
        let mut x = from.map_or(zero, |point| self.coefficients(point));
        let smooth = |x: &[Vec<f64>]| {
            let square = |x: &Vec<f64>| x.iter().map(|x| x * x / 2.0).sum::<f64>();
            let l2: f64 = x.iter().zip(&self.penalties).map(|(x, (_, l2))| l2 * square(x)).sum();
            self.mean_loss(&self.margins(x)) + l2
        };
        let add = |x: &[Vec<f64>], by: f64, d: &[Vec<f64>]| -> Vec<Vec<f64>> {
            x.iter().zip(d).map(|(x, d)| x.iter().zip(d).map(|(x, d)| x + by * d).collect()).collect()
        };
        let (mut y, mut momentum, mut bound) = (x.clone(), 1.0f64, 1.0f64);
        let mut best = (smooth(&x) + penalty(&x[..self.n_features]), x.clone());
        for _ in 0..steps {
            let gradient = self.gradient(&y);
            let at = smooth(&y);
            let next = loop {
                let mut next = add(&y, -1.0 / bound, &gradient);
                prox(&mut next[..self.n_features], 1.0 / bound);
                let step = add(&next, -1.0, &y);
                let dot = |a: &[Vec<f64>], b: &[Vec<f64>]| -> f64 {
                    a.iter().flatten().zip(b.iter().flatten()).map(|(a, b)| a * b).sum()
                };
                let above = at + dot(&gradient, &step) + 0.5 * bound * dot(&step, &step);
                if smooth(&next) <= above + 1e-14 * at.abs() || bound > 1e12 {
                    break next;
                }
                bound *= 2.0;
            };
            let now = smooth(&next) + penalty(&next[..self.n_features]);
            // Momentum that leads uphill is given up.
            let after = if now > best.0 { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
            y = add(&next, (momentum - 1.0) / after, &add(&next, -1.0, &x));
            if after == 1.0 {
                y = next.clone();
            }
            momentum = after;
            x = next;
            if now < best.0 {
                best = (now, x.clone());
            }
        }
        best
    }

    /// The lowest F that proximal steps reach from a point, one block of columns after the other, each as long as that block
    /// alone allows: so it does not matter how columns are scaled. The intercept's column is a block.
    pub fn blockwise(
        &self,
        from: Option<&Point>,
        sweeps: usize,
        blocks: &[Vec<usize>],
        penalty: &dyn Fn(&[Vec<f64>]) -> f64,
        prox: &dyn Fn(&mut [Vec<f64>], f64),
    ) -> f64 {
        let zero = vec![vec![0.0; self.outputs]; self.columns.len()];
        let mut x = from.map_or(zero, |point| self.coefficients(point));
        let square = |x: &Vec<f64>| x.iter().map(|x| x * x / 2.0).sum::<f64>();
        let total = |x: &[Vec<f64>]| {
            let l2: f64 = x.iter().zip(&self.penalties).map(|(x, (_, l2))| l2 * square(x)).sum();
            self.mean_loss(&self.margins(x)) + l2 + penalty(&x[..self.n_features])
        };
        let intercept = (self.columns.len() > self.n_features).then(|| vec![self.n_features]);
        let blocks: Vec<&Vec<usize>> = blocks.iter().chain(&intercept).collect();
        let mut bounds = vec![1.0f64; blocks.len()];
        let mut now = total(&x);
        for _ in 0..sweeps {
            let before = now;
            for (block, bound) in blocks.iter().zip(&mut bounds) {
                let margins = self.margins(&x);
                *bound = (*bound / 4.0).max(1e-30);
                for _ in 0..200 {
                    let mut stepped = x.clone();
                    for &at in *block {
                        (0..self.outputs).for_each(|k| stepped[at][k] -= self.slope(&margins, &x, at, k) / *bound);
                    }
                    prox(&mut stepped[..self.n_features], 1.0 / *bound);
                    let mut trial = x.clone();
                    block.iter().for_each(|&at| trial[at].clone_from(&stepped[at]));
                    let after = total(&trial);
                    if after < now {
                        (x, now) = (trial, after);
                        break;
                    }
                    if trial == x {
                        break;
                    }
                    *bound *= 4.0;
                }
            }
            if now >= before - 1e-13 * before.abs() {
                break;
            }
        }
        now
    }

    fn gradient(&self, x: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let margins = self.margins(x);
        (0..x.len()).map(|at| (0..self.outputs).map(|k| self.slope(&margins, x, at, k)).collect()).collect()
    }

    /// The slope of the smooth part along one coefficient.
    fn slope(&self, margins: &[Vec<f64>], x: &[Vec<f64>], at: usize, k: usize) -> f64 {
        let row = |(row, entry): (usize, &f64)| match self.row_weights[row] {
            0.0 => 0.0,
            weight => weight * entry * derivatives(self.loss, &margins[row], self.targets[row], k).0,
        };
        self.columns[at].iter().enumerate().map(row).sum::<f64>() + self.penalties[at].1 * x[at][k]
    }

    /// One coordinate, moved where that lowers F.
    fn step(&self, x: &mut f64, margins: &mut [Vec<f64>], column: &[f64], (l1, l2): (f64, f64), k: usize) {
        let (mut slope, mut curvature) = (l2 * *x, l2);
        for (row, &entry) in column.iter().enumerate().filter(|(_, entry)| **entry != 0.0) {
            let (first, second) = derivatives(self.loss, &margins[row], self.targets[row], k);
            slope += self.row_weights[row] * first * entry;
            curvature += self.row_weights[row] * second * entry * entry;
        }
        if curvature <= 0.0 || !curvature.is_finite() {
            return;
        }
        let change = |margins: &mut [Vec<f64>], by: f64| {
            column.iter().zip(margins).for_each(|(entry, margins)| margins[k] += entry * by);
        };
        let local = |margins: &[Vec<f64>], x: f64| {
            let touched = (0..column.len()).filter(|&row| column[row] != 0.0 && self.row_weights[row] > 0.0);
            let losses = touched.map(|row| self.row_weights[row] * value(self.loss, &margins[row], self.targets[row]));
            losses.sum::<f64>() + l1 * x.abs() + l2 * x * x / 2.0
        };
        let before = local(margins, *x);
        for _ in 0..40 {
            let next = soft(*x - slope / curvature, l1 / curvature);
            if next == *x {
                return;
            }
            change(margins, next - *x);
            if local(margins, next) <= before {
                *x = next;
                return;
            }
            change(margins, *x - next);
            curvature *= 2.0;
        }
    }
}
