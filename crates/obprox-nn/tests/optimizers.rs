//! One step on a tensor is the scalar operator of `obprox` on each entry.

use burn::optim::Optimizer;
use burn::optim::momentum::MomentumConfig;
use burn::tensor::{Device, Tensor, TensorData};
use obprox::penalty::{L1, Term};
use obprox_nn::optim::{
    Centre, ObproxSgConfig, Penalized, Phase, PhaseCell, ProxSgConfig, RdaConfig, SmoothConfig, face, hold, prox,
};

/// Powers of two and multiples of them: every operation on these is exact in f32 as in f64, so that equal means equal.
const STEP: f64 = 0.25;
const LAMBDA: f64 = 0.125;

/// Weights and gradients in all combinations of signs, zeros among them, and those that land on the threshold.
fn grid() -> (Vec<f32>, Vec<f32>) {
    let values: Vec<f32> = (-12..=12).map(|number| number as f32 / 32.0).collect();
    let pairs = values.iter().flat_map(|&x| values.iter().map(move |&gradient| (x, 4.0 * gradient)));
    pairs.unzip()
}

fn tensor<const D: usize>(values: &[f32]) -> Tensor<D> {
    let mut shape = [1; D];
    shape[0] = values.len();
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex())
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().unwrap()
}

/// One step of an optimizer on the grid, against a scalar rule.
fn check<const D: usize>(optimizer: &impl Optimizer, rule: impl Fn(f64, f64) -> f64) {
    let (x, gradient) = grid();
    let (stepped, _) = optimizer.step::<D>(STEP, tensor(&x), tensor(&gradient), None);
    for ((x, gradient), stepped) in x.iter().zip(&gradient).zip(values(stepped)) {
        let expected = rule(f64::from(*x), f64::from(*gradient)) as f32;
        assert_eq!(stepped.to_bits(), expected.to_bits(), "x {x} gradient {gradient}: {stepped} for {expected}");
    }
}

#[test]
fn prox_sg_is_the_scalar_prox() {
    let term = L1 { l1: LAMBDA };
    let prox_sg = ProxSgConfig::new(LAMBDA).build();
    check::<2>(&prox_sg, |x, gradient| term.prox(x - STEP * gradient, STEP));
    check::<4>(&prox_sg, |x, gradient| term.prox(x - STEP * gradient, STEP));
    check::<1>(&prox_sg, |x, gradient| x - STEP * gradient);
    let all = ProxSgConfig::new(LAMBDA).with_penalized(Penalized::All).build();
    check::<1>(&all, |x, gradient| term.prox(x - STEP * gradient, STEP));
}

#[test]
fn the_orthant_step_is_the_scalar_one() {
    let term = L1 { l1: LAMBDA };
    let orthant = ObproxSgConfig::new(LAMBDA, 0).build();
    check::<4>(&orthant, |x, gradient| term.face(x, gradient, STEP));
    check::<1>(&orthant, |x, gradient| x - STEP * gradient);
    let all = ObproxSgConfig::new(LAMBDA, 0).with_penalized(Penalized::All).build();
    check::<1>(&all, |x, gradient| term.face(x, gradient, STEP));
}

#[test]
fn rda_is_the_scalar_dual_average() {
    let term = L1 { l1: LAMBDA };
    let zero = RdaConfig::new(LAMBDA, 2.0).with_centre(Centre::Zero).build();
    check::<2>(&zero, |_, gradient| term.dual_average(gradient, 2.0));
    // Around the start, the same rule holds of the move from it: it is one proximal step of 1/γ.
    let start = RdaConfig::new(LAMBDA, 2.0).build();
    check::<2>(&start, |x, gradient| term.prox(x - gradient / 2.0, 0.5));
    check::<1>(&start, |x, gradient| x - gradient / 2.0);
}

#[test]
fn rda_keeps_the_sum_and_the_centre() {
    let rda = RdaConfig::new(LAMBDA, 2.0).build();
    let (mut x, mut state) = (tensor::<2>(&[0.5, -1.0]), None);
    for gradient in [[1.0, 2.0], [3.0, 0.0], [-2.0, 1.0], [0.5, 0.25]] {
        (x, state) = rda.step(STEP, x, tensor(&gradient), state);
    }
    // G = (2.5, 3.25), t = 4, √t = 2: S(c − G/4, λ).
    let expected =
        [0.5 - 2.5 / 4.0, -1.0 - 3.25 / 4.0].map(|moved: f64| obprox::penalty::shrink::shrink(moved, LAMBDA));
    assert_eq!(values(x), expected.map(|value| value as f32));
}

#[test]
fn obprox_sg_switches_by_counted_steps() {
    let term = L1 { l1: LAMBDA };
    for (no, orthant_steps) in [(Some(1), [2, 5]), (None, [2, 3])] {
        let mut config = ObproxSgConfig::new(LAMBDA, 2);
        config.orthant_steps = no;
        let optimizer = config.build();
        let (mut x, mut state) = (vec![0.0f32, 0.5], None);
        for step in 0..=orthant_steps[1] {
            // A gradient that lifts a zero in a Prox-SG step, and cannot in an Orthant step.
            let gradient = [-1.0f32, 1.0];
            let expected: Vec<f32> = x
                .iter()
                .zip(gradient)
                .map(|(&x, gradient)| {
                    let (x, gradient) = (f64::from(x), f64::from(gradient));
                    let orthant = if no.is_some() { step % 3 == 2 } else { step >= 2 };
                    let moved =
                        if orthant { term.face(x, gradient, STEP) } else { term.prox(x - STEP * gradient, STEP) };
                    moved as f32
                })
                .collect();
            let (moved, kept) = optimizer.step::<2>(STEP, tensor(&x), tensor(&gradient), state);
            (x, state) = (values(moved), kept);
            assert_eq!(x, expected, "step {step}");
        }
    }
}

#[test]
fn a_told_optimizer_does_as_it_is_told() {
    let cell = PhaseCell::default();
    let optimizer = ObproxSgConfig::new(LAMBDA, 0).build_told(cell.clone());
    let step = |optimizer: &dyn Fn(Tensor<2>, Tensor<2>) -> Tensor<2>| {
        values(optimizer(tensor(&[0.0, 0.5]), tensor(&[1.0, 1.0])))
    };
    let told = |x, gradient| optimizer.step(STEP, x, gradient, None).0;
    assert_eq!(step(&told), step(&|x, gradient| prox(x, gradient, STEP, LAMBDA)));
    cell.set(Phase::Orthant);
    assert_eq!(step(&told), step(&|x, gradient| face(x, gradient, STEP, LAMBDA)));
    cell.set(Phase::Hold);
    assert_eq!(step(&told), step(&|x, gradient| hold(x, gradient, STEP)));
    assert_eq!(step(&told), [0.0, 0.25], "a held zero stays, the rest is not shrunk");
    cell.set(Phase::Orthant);
    cell.set_trial();
    assert_eq!(step(&told), [-0.25, 0.25], "a trial knows no λ");
    cell.set(Phase::Orthant);
    assert!(!cell.is_trial());
}

#[test]
fn momentum_and_decay_change_the_gradient_that_is_stepped_along() {
    let momentum = MomentumConfig::new().with_momentum(0.5).with_dampening(0.0);
    let smooth = SmoothConfig::new().with_momentum(Some(momentum)).with_weight_decay(4.0);
    let optimizer = ProxSgConfig::new(LAMBDA).with_smooth(smooth).build();
    let term = L1 { l1: LAMBDA };
    let (mut x, mut velocity, mut state) = (0.5f64, 0.0, None);
    for gradient in [1.0, -0.5, 2.0] {
        velocity = 0.5 * velocity + gradient;
        let (moved, kept) = optimizer.step::<2>(STEP, tensor(&[x as f32]), tensor(&[gradient as f32]), state);
        // Implicitly: divided by 1 + αλ₂, which is 2 here.
        x = term.prox(x - STEP * velocity, STEP) / 2.0;
        state = kept;
        assert_eq!(values(moved), [x as f32]);
    }
    // What has one dimension, and no λ, is not decayed.
    let (moved, _) = optimizer.step::<1>(STEP, tensor(&[0.5]), tensor(&[0.0]), None);
    assert_eq!(values(moved), [0.5]);
}

#[test]
fn nan_is_never_a_zero() {
    let nan = f32::NAN;
    let (x, gradient) = ([nan, 1.0, nan, -1.0], [0.0, nan, nan, nan]);
    let optimizers: [&dyn Fn() -> Tensor<2>; 4] = [
        &|| prox(tensor(&x), tensor(&gradient), STEP, LAMBDA),
        &|| face(tensor(&x), tensor(&gradient), STEP, LAMBDA),
        &|| hold(tensor(&x), tensor(&gradient), STEP),
        &|| RdaConfig::new(LAMBDA, 2.0).build().step(STEP, tensor(&x), tensor(&gradient), None).0,
    ];
    for (number, step) in optimizers.into_iter().enumerate() {
        assert!(values(step()).iter().all(|value| value.is_nan()), "step {number}");
    }
}
