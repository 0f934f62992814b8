//! Half-space steps around Burn's own optimizers, held to a slow twin that knows one group at a time.

use burn::module::{Module, Param};
use burn::optim::{AdamConfig, AdamWConfig, GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::{Device, Tensor};
use obprox_nn::optim::{GroupControl, Rows};

/// Eight rows of four inputs and their shifts; the outputs are added up to one number.
#[derive(Module, Debug)]
struct Rowed {
    weight: Param<Tensor<2>>,
    shift: Param<Tensor<1>>,
    out: Param<Tensor<2>>,
}

const ROWS: usize = 8;
const STEPS: u64 = 40;

fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut bits = seed;
    let mut next = || {
        bits = bits.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (bits >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn tensor<const D: usize>(shape: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    Tensor::<1>::from_floats(numbers(shape.iter().product(), seed).as_slice(), device).reshape(shape)
}

impl Rowed {
    fn new(device: &Device) -> Self {
        Self {
            weight: Param::from_tensor(tensor([ROWS, 4], 1, device)),
            shift: Param::from_tensor(tensor([ROWS], 2, device)),
            out: Param::from_tensor(tensor([ROWS, 1], 3, device)),
        }
    }

    fn forward(&self, inputs: Tensor<2>) -> Tensor<2> {
        let hidden = inputs.matmul(self.weight.val().transpose()) + self.shift.val().unsqueeze();
        burn::tensor::activation::relu(hidden).matmul(self.out.val())
    }

    fn groups(&self) -> Vec<Rows> {
        (0..ROWS).map(|row| vec![(self.weight.id, row), (self.shift.id, row)]).collect()
    }

    /// The parameters of each group.
    fn rows(&self) -> Vec<Vec<f32>> {
        let weight: Vec<f32> = self.weight.val().into_data().try_into_vec().unwrap();
        let shift: Vec<f32> = self.shift.val().into_data().try_into_vec().unwrap();
        weight.chunks(4).zip(shift).map(|(row, shift)| [row, &[shift]].concat()).collect()
    }
}

fn train(
    mut optimizer: ModuleOptimizer,
    rate: f64,
    share: f64,
    mut watch: impl FnMut(&Rowed, &Rowed, &Rowed),
) -> Rowed {
    let device = Device::flex().autodiff();
    let mut module = Rowed::new(&device);
    let control = GroupControl::new(share, STEPS, &module, &module.groups()).unwrap();
    let (inputs, targets) = (tensor([32, 4], 4, &device), tensor([32, 1], 5, &device));
    for step in 1..=STEPS {
        let loss = (module.forward(inputs.clone()) - targets.clone()).powi_scalar(2).mean();
        let gradients = GradientsParams::from_grads(loss.backward(), &module);
        let before = module.clone();
        let trial = optimizer.step(rate, module, gradients);
        module = control.project(&before, trial.clone(), step);
        watch(&before, &trial, &module);
    }
    assert_eq!(control.count(&module), ((share * ROWS as f64).round() as usize, ROWS));
    module
}

#[test]
fn any_optimizer_ends_with_the_share_that_was_asked_for() {
    let momentum = burn::optim::momentum::MomentumConfig::new();
    let optimizers: [(ModuleOptimizer, f64); 4] = [
        (SgdConfig::new().init(), 0.1),
        (SgdConfig::new().with_momentum(Some(momentum)).init(), 0.05),
        (AdamConfig::new().init(), 0.02),
        (AdamWConfig::new().init(), 0.02),
    ];
    for (optimizer, rate) in optimizers {
        let module = train(optimizer, rate, 0.5, |_, _, _| {});
        let zero = |row: &Vec<f32>| row.iter().all(|value| *value == 0.0);
        assert_eq!(module.rows().iter().filter(|row| zero(row)).count(), ROWS / 2);
        // What only reads them is no part of the groups.
        assert!(module.out.val().into_data().try_into_vec::<f32>().unwrap().iter().all(|value| *value != 0.0));
    }
}

/// One threshold explains each step: groups at or below it are zero, the others shrink by it along their direction.
#[test]
fn every_step_is_a_half_space_step_with_one_lambda() {
    let (mut zeros, mut shrunk) = (0, 0);
    train(SgdConfig::new().init(), 0.1, 0.5, |before, trial, after| {
        let norm = |row: &[f32]| row.iter().map(|value| value * value).sum::<f32>().sqrt();
        let (x, z, y) = (before.rows(), trial.rows(), after.rows());
        let size = |group: usize| {
            let inner: f32 = x[group].iter().zip(&z[group]).map(|(x, z)| x * z).sum();
            inner / norm(&x[group]) / 5f32.sqrt()
        };
        let gone: Vec<bool> = y.iter().map(|row| norm(row) == 0.0).collect();
        let was: Vec<bool> = x.iter().map(|row| norm(row) == 0.0).collect();
        assert!((0..ROWS).all(|group| gone[group] || !was[group]), "what is zero stays zero");
        let fresh: Vec<usize> = (0..ROWS).filter(|&group| gone[group] && !was[group]).collect();
        let threshold = fresh.iter().map(|&group| size(group)).fold(0.0, f32::max);
        for group in (0..ROWS).filter(|&group| !gone[group]) {
            assert!(size(group) >= threshold, "the smallest go first");
            let expected = if fresh.is_empty() { 1.0 } else { 1.0 - threshold * 5f32.sqrt() / norm(&z[group]) };
            for (z, y) in z[group].iter().zip(&y[group]) {
                assert!((z * expected - y).abs() < 1e-5, "{z} became {y}");
            }
            shrunk += usize::from(!fresh.is_empty() && expected < 1.0);
        }
        zeros += fresh.len();
    });
    assert!(zeros == ROWS / 2 && shrunk > 0, "{zeros}, {shrunk}");
}

#[test]
fn groups_that_cannot_be_are_refused() {
    let device = Device::flex().autodiff();
    let module = Rowed::new(&device);
    let refused = |share, groups: &[Rows]| GroupControl::new(share, STEPS, &module, groups).unwrap_err().to_string();
    assert!(refused(1.0, &module.groups()).contains("above 0 and below 1"));
    assert!(refused(0.5, &[]).contains("no channels"));
    assert!(refused(0.99, &module.groups()).contains("alive"));
    assert!(refused(0.5, &Rowed::new(&device).groups()).contains("does not have all parameters"));
}
