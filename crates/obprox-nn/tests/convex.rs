//! Logistic regression as a network of one layer: with the whole set for a batch, each method must follow `obprox fit`
//! to the rounding of f32.

use burn::module::{Module, Param};
use burn::nn::Linear;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::activation::softplus;
use burn::tensor::{Device, Tensor, TensorData};
use obprox::data::{ReadOptions, read};
use obprox::loss::LossKind;
use obprox::sampler::Batch;
use obprox::schedule::Schedule;
use obprox::switch::{Switch, Unit};
use obprox::{Method, MethodKind, Problem, Run, Settings, Terms};
use obprox_nn::optim::{Anchor, Centre, ObproxSgConfig, ProxSgConfig, ProxSvrgConfig, RdaConfig};

const EPOCHS: u64 = 25;
const GAMMA: f64 = 2.0;
const SCHEDULE: Schedule = Schedule::Decay(0.995);

fn problem() -> Problem {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/planted.svm");
    let data = read(path, &ReadOptions::default()).unwrap();
    Problem::new(data, LossKind::Logistic.build(2), &Terms::default()).unwrap()
}

/// The rows with their labels multiplied in: the loss is the mean of log(1 + exp(−y(x·d + b))).
fn rows(problem: &Problem, device: &Device) -> (Tensor<2>, Tensor<2>) {
    let (n, d) = (problem.n_rows(), problem.n_features());
    let mut dense = vec![0.0f32; n * d];
    for row in 0..n {
        problem.matrix().for_each(row, |column, value| dense[row * d + column] = value as f32);
    }
    let targets = problem.targets().iter().map(|&target| target as f32).collect::<Vec<_>>();
    let tensor = |values, shape: [usize; 2]| Tensor::from_data(TensorData::new(values, shape), device);
    (tensor(dense, [n, d]), tensor(targets, [n, 1]))
}

#[derive(Module, Debug)]
struct Logistic {
    layer: Linear,
}

impl Logistic {
    fn at_zero(features: usize, device: &Device) -> Self {
        let weight = Param::from_tensor(Tensor::zeros([features, 1], device));
        Self { layer: Linear { weight, bias: Some(Param::from_tensor(Tensor::zeros([1], device))) } }
    }

    fn gradients(&self, (inputs, targets): &(Tensor<2>, Tensor<2>)) -> GradientsParams {
        let margins = self.layer.forward(inputs.clone()) * targets.clone();
        GradientsParams::from_grads(softplus(margins.neg(), 1.0).mean().backward(), self)
    }
}

fn trained(method: MethodKind, problem: &Problem) -> Vec<f32> {
    let device = Device::flex().autodiff();
    let rows = rows(problem, &device);
    let lambda = problem.lambda();
    let mut net = Logistic::at_zero(problem.n_features(), &device);
    let mut optimizer: ModuleOptimizer = match method {
        MethodKind::ProxSg => ProxSgConfig::new(lambda).init(),
        MethodKind::ProxSvrg => ProxSvrgConfig::new(lambda).init(),
        MethodKind::Rda => RdaConfig::new(lambda, GAMMA).with_centre(Centre::Zero).init(),
        MethodKind::ObproxSg => ObproxSgConfig::new(lambda, 5).with_orthant_steps(Some(5)).init(),
        _ => ObproxSgConfig::new(lambda, 15).init(),
    };
    for epoch in 0..EPOCHS {
        let gradients = if method == MethodKind::ProxSvrg {
            let anchor = Anchor::new(&net, |net| net.gradients(&rows));
            anchor.reduce(net.gradients(&rows), anchor.module().gradients(&rows))
        } else {
            net.gradients(&rows)
        };
        net = optimizer.step(SCHEDULE.at(1.0, epoch, epoch), net, gradients);
    }
    let mut values = net.layer.weight.val().into_data().try_into_vec().unwrap();
    values.extend(net.layer.bias.unwrap().val().into_data().try_into_vec::<f32>().unwrap());
    values
}

#[test]
fn each_method_follows_the_linear_solver() {
    let problem = problem();
    for method in MethodKind::PAPER {
        let with_settings = match method {
            MethodKind::ObproxSg => {
                Method::ObproxSg { switch: Switch::Fixed { prox: 5, orthant: Some(5), unit: Unit::Epochs } }
            }
            MethodKind::ObproxSgPlus => {
                Method::ObproxSgPlus { switch: Switch::Fixed { prox: 15, orthant: None, unit: Unit::Epochs } }
            }
            MethodKind::Rda => Method::Rda { gamma: GAMMA },
            _ => method.into(),
        };
        let settings =
            Settings { epochs: EPOCHS, batch: Batch::All, schedule: SCHEDULE, ..Settings::with_method(with_settings) };
        let fit = Run::new(&problem, settings).fit().unwrap();
        let expected = fit.point.weights.iter().chain(&fit.point.intercept);
        let found = trained(method, &problem);
        assert_eq!(found.len(), problem.n_features() + 1);
        let scale = fit.point.weights.iter().fold(1.0f64, |most, weight| most.max(weight.abs()));
        let mut zeros = 0;
        for (number, (found, expected)) in found.iter().zip(expected).enumerate() {
            let off = (f64::from(*found) - expected).abs();
            assert!(off <= 2e-5 * scale, "{}: weight {number} is {found}, not {expected}", method.name());
            zeros += usize::from(*found == 0.0);
        }
        let exact = fit.point.weights.iter().filter(|weight| **weight == 0.0).count();
        assert!(zeros.abs_diff(exact) <= 1, "{}: {zeros} zeros for {exact}", method.name());
        assert!(zeros > 0 || method == MethodKind::ProxSg || method == MethodKind::ProxSvrg, "{}", method.name());
    }
}
