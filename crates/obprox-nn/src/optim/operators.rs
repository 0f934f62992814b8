//! The scalar operators of `obprox::penalty` on whole tensors.
//!
//! NaN goes through all of them: it is never taken for a zero. Zeros are exact.

use burn::tensor::Tensor;

/// S(x, t) = sign(x)·max(|x| − t, 0) = x − clamp(x, −t, t).
///
/// Within [−t, t] it subtracts a number from itself, which is an exact zero, and a NaN is a NaN whatever clamp makes of
/// it.
pub fn shrink<const D: usize>(x: Tensor<D>, t: f64) -> Tensor<D> {
    if t == 0.0 { x } else { x.clone() - x.clamp(-t, t) }
}

/// The proximal step: S(x − αg, αλ).
pub fn prox<const D: usize>(x: Tensor<D>, gradient: Tensor<D>, step: f64, lambda: f64) -> Tensor<D> {
    shrink(x - gradient.mul_scalar(step), step * lambda)
}

/// The Orthant step: x − α(g + λ sign x) where that keeps the sign of x, else 0. Without λ there is no face, and
/// the coordinate just steps.
pub fn face<const D: usize>(x: Tensor<D>, gradient: Tensor<D>, step: f64, lambda: f64) -> Tensor<D> {
    if lambda == 0.0 {
        return x - gradient.mul_scalar(step);
    }
    let sign = x.clone().sign();
    let trial = x - gradient.mul_scalar(step) - sign.clone().mul_scalar(step * lambda);
    let left = (sign * trial.clone()).lower_equal_elem(0.0);
    trial.mask_fill(left, 0.0)
}

/// A gradient step on the support: zeros stay zeros, nothing is shrunk.
pub fn hold<const D: usize>(x: Tensor<D>, gradient: Tensor<D>, step: f64) -> Tensor<D> {
    let zero = x.clone().equal_elem(0.0);
    (x - gradient.mul_scalar(step)).mask_fill(zero, 0.0)
}

/// The dual averaging step after t gradients of sum G: argmin over x of G·x/t + λ‖x‖₁ + (γ/(2√t))‖x − c‖², which is
/// S(c − G/(γ√t), λ√t/γ).
pub fn dual_average<const D: usize>(
    sum: Tensor<D>,
    centre: Option<Tensor<D>>,
    count: usize,
    gamma: f64,
    lambda: f64,
) -> Tensor<D> {
    let root = (count as f64).sqrt();
    let moved = sum.mul_scalar(-1.0 / (gamma * root));
    let moved = match centre {
        Some(centre) => centre + moved,
        None => moved,
    };
    shrink(moved, lambda * root / gamma)
}
