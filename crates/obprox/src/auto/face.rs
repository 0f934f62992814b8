//! A step on the face of a model: what the paper's Orthant step does, with a Newton step.

/// Coordinates of one face, their signs fixed: each is not zero, or has no kink.
pub(crate) struct Face {
    /// Where they are among all coordinates, which rise.
    pub indices: Vec<usize>,
    pub l1: Vec<f64>,
    pub z: Vec<f64>,
    /// The slopes of the model's smooth part.
    pub u: Vec<f64>,
}

impl Face {
    /// The face of a point, its slopes still zero.
    pub fn of(z: &[f64], l1: impl Fn(usize) -> f64) -> Self {
        let indices: Vec<usize> = (0..z.len()).filter(|&at| z[at] != 0.0 || l1(at) == 0.0).collect();
        let (l1, z): (Vec<f64>, Vec<f64>) = indices.iter().map(|&at| (l1(at), z[at])).unzip();
        Self { u: vec![0.0; z.len()], indices, l1, z }
    }

    /// The slopes of the whole model, which is smooth on the face, downwards.
    pub fn descent(&self) -> Vec<f64> {
        let slope = |at: usize| -(self.u[at] + if self.l1[at] == 0.0 { 0.0 } else { self.l1[at].copysign(self.z[at]) });
        (0..self.z.len()).map(slope).collect()
    }

    /// Goes along a step as far as the model falls: what crosses zero stays there. `slopes_at` gives the slopes at a point of
    /// the face, and what else the caller wants of the last one; true where the point lies on a smaller face.
    pub fn walk<T>(&self, step: &[f64], mut slopes_at: impl FnMut(&[f64]) -> (T, Vec<f64>)) -> (Vec<f64>, T, bool) {
        // How far the face reaches along the step.
        let mut reach = 1.0f64;
        for (at, &delta) in step.iter().enumerate() {
            if self.l1[at] > 0.0 && (self.z[at] + delta) * self.z[at] < 0.0 {
                reach = reach.min(-self.z[at] / delta);
            }
        }
        let mut size = 1.0;
        loop {
            // At the end of the face's reach the model has fallen for sure; before, only its slopes can tell.
            let last = size <= reach;
            let mut dropped = false;
            let trial = |(at, &delta): (usize, &f64)| {
                let (z, trial) = (self.z[at], self.z[at] + size * delta);
                let crosses = self.l1[at] > 0.0 && trial * z <= 1e-15 * z * z;
                dropped |= crosses;
                if crosses { 0.0 } else { trial }
            };
            let to: Vec<f64> = step.iter().enumerate().map(trial).collect();
            let (found, slopes) = slopes_at(&to);
            let change = |at: usize| {
                let smooth = 0.5 * (self.u[at] + slopes[at]) * (to[at] - self.z[at]);
                smooth + self.l1[at] * (to[at].abs() - self.z[at].abs())
            };
            if last || (0..to.len()).map(change).sum::<f64>() < 0.0 {
                return (to, found, dropped);
            }
            size = (0.5 * size).max(reach);
        }
    }
}

/// Solves A·step = residual by conjugate gradients, at most so many: `precondition` is near A⁻¹, `multiply` is A, and `done`
/// is asked about the residual. The step, and whether it is done.
pub(crate) fn conjugate_gradients(
    mut residual: Vec<f64>,
    most: usize,
    precondition: impl Fn(&[f64]) -> Vec<f64>,
    multiply: impl Fn(&[f64]) -> Vec<f64>,
    done: impl Fn(&[f64]) -> bool,
) -> Option<(Vec<f64>, bool)> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let mut step = vec![0.0; residual.len()];
    let mut direction = precondition(&residual);
    let mut square = dot(&residual, &direction);
    for _ in 0..most {
        if done(&residual) {
            return Some((step, true));
        }
        let product = multiply(&direction);
        let size = square / dot(&direction, &product);
        if !(size > 0.0 && size.is_finite()) {
            break;
        }
        step.iter_mut().zip(&direction).for_each(|(step, direction)| *step += size * direction);
        residual.iter_mut().zip(&product).for_each(|(residual, product)| *residual -= size * product);
        let next = precondition(&residual);
        let before = std::mem::replace(&mut square, dot(&residual, &next));
        let share = square / before;
        direction.iter_mut().zip(next).for_each(|(direction, next)| *direction = next + share * *direction);
    }
    let done = done(&residual);
    step.iter().all(|delta| delta.is_finite()).then_some((step, done))
}
