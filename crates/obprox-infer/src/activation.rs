//! Functions of one number, as networks apply them.

use crate::network::Activation;

/// The function's value, in f64: for constants and for those who check.
pub fn apply(activation: Activation, x: f64) -> f64 {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let hard = |x: f64| (x + 3.0).clamp(0.0, 6.0) / 6.0;
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Relu6 => x.clamp(0.0, 6.0),
        Activation::Silu => x * sigmoid(x),
        Activation::HardSwish => x * hard(x),
        Activation::HardSigmoid => hard(x),
        Activation::Gelu => 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)),
        Activation::Sigmoid => sigmoid(x),
    }
}

/// The function of every number, in place. Values of one row: the choice is made outside of the loop.
#[inline(always)]
pub fn apply_to(activation: Activation, values: &mut [f32]) {
    let each = |values: &mut [f32], f: fn(f32) -> f32| values.iter_mut().for_each(|value| *value = f(*value));
    let hard = |x: f32| (x + 3.0).clamp(0.0, 6.0) * (1.0 / 6.0);
    match activation {
        Activation::Identity => {}
        Activation::Relu => values.iter_mut().for_each(|value| *value = value.max(0.0)),
        Activation::Relu6 => values.iter_mut().for_each(|value| *value = value.clamp(0.0, 6.0)),
        Activation::HardSwish => values.iter_mut().for_each(|value| *value *= hard(*value)),
        Activation::HardSigmoid => values.iter_mut().for_each(|value| *value = hard(*value)),
        Activation::Silu => each(values, |x| x / (1.0 + (-x).exp())),
        Activation::Sigmoid => each(values, |x| 1.0 / (1.0 + (-x).exp())),
        Activation::Gelu => each(values, |x| apply(Activation::Gelu, x.into()) as f32),
    }
}

/// The error function: its series near zero, the continued fraction of its complement beyond.
fn erf(x: f64) -> f64 {
    let size = x.abs();
    let value = if size < 2.5 {
        let (mut term, mut sum) = (size, size);
        for n in 1..60 {
            term *= -size * size / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    } else if size < 6.0 {
        let fraction = (1..60).rev().fold(0.0, |fraction, n| f64::from(n) / 2.0 / (size + fraction));
        1.0 - (-size * size).exp() / ((size + fraction) * std::f64::consts::PI.sqrt())
    } else {
        1.0
    };
    value.copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 8] = [
        Activation::Identity,
        Activation::Relu,
        Activation::Relu6,
        Activation::Silu,
        Activation::HardSwish,
        Activation::HardSigmoid,
        Activation::Gelu,
        Activation::Sigmoid,
    ];

    #[test]
    fn the_fast_ones_are_the_exact_ones() {
        for activation in ALL {
            let mut values: Vec<f32> = (-2000..2000).map(|at| at as f32 / 130.0).chain([-200.0, 200.0]).collect();
            let exact: Vec<f64> = values.iter().map(|&value| apply(activation, value.into())).collect();
            apply_to(activation, &mut values);
            for (value, exact) in values.into_iter().zip(exact) {
                assert!((f64::from(value) - exact).abs() <= 1e-6 * exact.abs().max(1.0), "{activation:?}: {exact}");
            }
        }
    }

    /// From tables.
    #[test]
    fn the_error_function() {
        let table = [(0.0, 0.0), (0.5, 0.5204998778130465), (1.0, 0.8427007929497149), (2.0, 0.9953222650189527)];
        let beyond = [(2.6, 0.9997639655834707), (3.0, 0.9999779095030014), (4.0, 0.9999999845827421), (9.0, 1.0)];
        for (x, expected) in table.into_iter().chain(beyond) {
            assert!((erf(x) - expected).abs() < 1e-12 && (erf(-x) + expected).abs() < 1e-12, "erf({x}) = {}", erf(x));
        }
    }
}
