//! A problem as the textbook has it: dense rows, plain loops, formulas from the paper and from FACTS.
//!
//! Nothing here is taken from the library but the names. The intercept is a last column of ones without penalty, so
//! that no formula needs to mention it.

use obprox::loss::LossKind;
use obprox::{Point, Problem};

#[derive(Clone, Debug)]
pub struct Plain {
    pub loss: LossKind,
    /// K, the margins a row.
    pub outputs: usize,
    pub rows: Vec<Vec<f64>>,
    /// ±1, class numbers or values.
    pub targets: Vec<f64>,
    /// Scaled to mean 1.
    pub row_weights: Vec<f64>,
    /// λ and λ₂ of each column.
    pub l1: Vec<f64>,
    pub l2: Vec<f64>,
    pub intercept: bool,
}

/// S(z, t) = sign(z)·max(|z| − t, 0).
pub fn soft(z: f64, t: f64) -> f64 {
    if z > t {
        z - t
    } else if z < -t {
        z + t
    } else {
        0.0
    }
}

/// A loss of all rows together has tests of its own.
const ONE_ROW: &str = "a row by itself has no such loss: tests/cox.rs";

/// ℓ(m; y).
pub fn loss_value(loss: LossKind, m: &[f64], y: f64) -> f64 {
    match loss {
        LossKind::Logistic if y * m[0] < -30.0 => -y * m[0],
        LossKind::Logistic => (-y * m[0]).exp().ln_1p(),
        LossKind::Squared => (m[0] - y).powi(2) / 2.0,
        LossKind::SquaredHinge => (1.0 - y * m[0]).max(0.0).powi(2),
        LossKind::Huber(delta) => {
            let r = (m[0] - y).abs();
            if r <= delta { r * r / 2.0 } else { delta * r - delta * delta / 2.0 }
        }
        LossKind::Poisson => m[0].exp() - y * m[0],
        LossKind::Gamma => y / m[0].exp() + m[0],
        LossKind::Tweedie(p) => m[0].exp().powf(2.0 - p) / (2.0 - p) - y * m[0].exp().powf(1.0 - p) / (1.0 - p),
        LossKind::NegativeBinomial(theta) => (y + theta) * (theta + m[0].exp()).ln() - y * m[0],
        LossKind::Softmax => m.iter().map(|m| m.exp()).sum::<f64>().ln() - m[y as usize],
        LossKind::Cox(_) => unreachable!("{ONE_ROW}"),
    }
}

/// ∇ℓ(m; y).
pub fn loss_gradient(loss: LossKind, m: &[f64], y: f64) -> Vec<f64> {
    match loss {
        LossKind::Logistic => vec![-y / (1.0 + (y * m[0]).exp())],
        LossKind::Squared => vec![m[0] - y],
        LossKind::SquaredHinge => vec![-2.0 * y * (1.0 - y * m[0]).max(0.0)],
        LossKind::Huber(delta) => vec![(m[0] - y).clamp(-delta, delta)],
        LossKind::Poisson => vec![m[0].exp() - y],
        LossKind::Gamma => vec![1.0 - y / m[0].exp()],
        LossKind::Tweedie(p) => vec![m[0].exp().powf(2.0 - p) - y * m[0].exp().powf(1.0 - p)],
        LossKind::NegativeBinomial(theta) => vec![(y + theta) * m[0].exp() / (theta + m[0].exp()) - y],
        LossKind::Softmax => {
            let sum: f64 = m.iter().map(|m| m.exp()).sum();
            m.iter().enumerate().map(|(k, m)| m.exp() / sum - if k == y as usize { 1.0 } else { 0.0 }).collect()
        }
        LossKind::Cox(_) => unreachable!("{ONE_ROW}"),
    }
}

/// The largest ℓ″; of those without a bound, for margins up to 3.
pub fn largest_curvature(loss: LossKind) -> f64 {
    match loss {
        LossKind::Logistic => 0.25,
        LossKind::Softmax => 0.5,
        LossKind::Squared | LossKind::Huber(_) => 1.0,
        LossKind::SquaredHinge => 2.0,
        LossKind::Poisson | LossKind::Gamma | LossKind::Tweedie(_) | LossKind::NegativeBinomial(_) => 3f64.exp(),
        LossKind::Cox(_) => unreachable!("{ONE_ROW}"),
    }
}

impl Plain {
    /// Coordinates, the intercept's included: column j, output k at j·K + k.
    pub fn size(&self) -> usize {
        self.l1.len() * self.outputs
    }

    pub fn margins(&self, row: usize, x: &[f64]) -> Vec<f64> {
        let of = |k: usize| self.rows[row].iter().enumerate().map(|(j, d)| d * x[j * self.outputs + k]).sum();
        (0..self.outputs).map(of).collect()
    }

    /// (1/|B|) Σ wᵢ∇ℓᵢ over some rows.
    pub fn batch_gradient(&self, x: &[f64], rows: &[u32]) -> Vec<f64> {
        let mut gradient = vec![0.0; self.size()];
        for &row in rows {
            let row = row as usize;
            let pull = loss_gradient(self.loss, &self.margins(row, x), self.targets[row]);
            for (j, d) in self.rows[row].iter().enumerate() {
                for (k, pull) in pull.iter().enumerate() {
                    gradient[j * self.outputs + k] += self.row_weights[row] * d * pull / rows.len() as f64;
                }
            }
        }
        gradient
    }

    pub fn gradient(&self, x: &[f64]) -> Vec<f64> {
        self.batch_gradient(x, &(0..self.rows.len() as u32).collect::<Vec<_>>())
    }

    /// f.
    pub fn mean_loss(&self, x: &[f64]) -> f64 {
        let of = |row: usize| self.row_weights[row] * loss_value(self.loss, &self.margins(row, x), self.targets[row]);
        (0..self.rows.len()).map(of).sum::<f64>() / self.rows.len() as f64
    }

    /// (λ, λ₂) of a coordinate.
    pub fn penalty(&self, at: usize) -> (f64, f64) {
        (self.l1[at / self.outputs], self.l2[at / self.outputs])
    }

    /// F.
    pub fn objective(&self, x: &[f64]) -> f64 {
        let penalty = |(at, x): (usize, &f64)| {
            let (l1, l2) = self.penalty(at);
            l1 * x.abs() + l2 * x * x / 2.0
        };
        self.mean_loss(x) + x.iter().enumerate().map(penalty).sum::<f64>()
    }

    /// The distance of 0 from ∂F in each coordinate.
    pub fn violations(&self, x: &[f64]) -> Vec<f64> {
        let gradient = self.gradient(x);
        let of = |at: usize| {
            let (l1, l2) = self.penalty(at);
            let slope = gradient[at] + l2 * x[at];
            if x[at] == 0.0 { (slope.abs() - l1).max(0.0) } else { (slope + l1 * x[at].signum()).abs() }
        };
        (0..self.size()).map(of).collect()
    }

    /// S(z, αλ)/(1 + αλ₂) in each coordinate of z = x − αg.
    pub fn prox_step(&self, x: &[f64], gradient: &[f64], step: f64) -> Vec<f64> {
        let of = |at: usize| {
            let (l1, l2) = self.penalty(at);
            soft(x[at] - step * gradient[at], step * l1) / (1.0 + step * l2)
        };
        (0..self.size()).map(of).collect()
    }

    /// A step size at which a step on any batch contracts.
    pub fn safe_step(&self) -> f64 {
        let norm = |row: usize| self.row_weights[row] * self.rows[row].iter().map(|d| d * d).sum::<f64>();
        let worst = (0..self.rows.len()).map(norm).fold(0.0, f64::max);
        1.0 / (largest_curvature(self.loss) * worst).max(1e-3)
    }

    /// The optimum, by accelerated proximal gradients with restarts and backtracking, slowly and tightly.
    pub fn solve(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.size()];
        let (mut ahead, mut momentum, mut step) = (x.clone(), 1.0f64, self.safe_step());
        for _ in 0..40_000 {
            let gradient = self.gradient(&ahead);
            let (value, next, moved) = loop {
                let next = self.prox_step(&ahead, &gradient, step);
                let moved: Vec<f64> = next.iter().zip(&ahead).map(|(a, b)| a - b).collect();
                let linear: f64 = gradient.iter().zip(&moved).map(|(g, d)| g * d).sum();
                let squares: f64 = moved.iter().map(|d| d * d).sum();
                let value = self.mean_loss(&ahead);
                let bound = value + linear + squares / (2.0 * step);
                if self.mean_loss(&next) <= bound + 1e-14 * (1.0 + bound.abs()) {
                    break (squares.sqrt(), next, moved);
                }
                step /= 2.0;
            };
            if value <= 1e-13 * step.min(1.0) {
                return next;
            }
            // Momentum that points uphill is dropped.
            let uphill: f64 = moved.iter().zip(next.iter().zip(&x)).map(|(d, (new, old))| d * (old - new)).sum();
            let before = if uphill > 0.0 { 1.0 } else { momentum };
            momentum = (1.0 + (1.0 + 4.0 * before * before).sqrt()) / 2.0;
            let factor = if uphill > 0.0 { 0.0 } else { (before - 1.0) / momentum };
            ahead = next.iter().zip(&x).map(|(new, old)| new + factor * (new - old)).collect();
            x = next;
        }
        x
    }

    pub fn point(&self, x: &[f64]) -> Point {
        let features = if self.intercept { self.size() - self.outputs } else { self.size() };
        let intercept = if self.intercept { x[features..].to_vec() } else { vec![0.0; self.outputs] };
        Point { weights: x[..features].to_vec(), intercept }
    }

    pub fn flat(&self, point: &Point) -> Vec<f64> {
        let intercept: &[f64] = if self.intercept { &point.intercept } else { &[] };
        point.weights.iter().chain(intercept).copied().collect()
    }

    /// The same penalty and data at another λ, next to the library's problem at that λ.
    pub fn at_lambda(&self, problem: &Problem, lambda: f64) -> (Problem, Self) {
        let factor = lambda / problem.lambda();
        let l1 = self.l1.iter().map(|l1| l1 * factor).collect();
        (problem.clone().with_lambda(obprox::Lambda::Value(lambda)).unwrap(), Self { l1, ..self.clone() })
    }
}
