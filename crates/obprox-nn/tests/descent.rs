//! The closed loop around any module: the steps that PyTorch takes on the same problem.

use burn::module::{Module, Param, ParamId};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor, TensorData};
use obprox_nn::optim::{Begun, DensityControl, ObproxSgConfig, Phase, PhaseCell, Plan, SmoothConfig};
use serde::{Deserialize, Serialize};

/// Σ h (x − b)²/2 over two matrices, which are penalised, and a vector, which is not.
#[derive(Module, Debug)]
struct Three {
    first: Param<Tensor<2>>,
    second: Param<Tensor<2>>,
    free: Param<Tensor<1>>,
}

/// What both sides make of it; PyTorch's test reads the same file.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Course {
    phases: Vec<String>,
    weights: Vec<Vec<f32>>,
}

fn filled<const D: usize>(shape: [usize; D], device: &Device, number: impl Fn(usize) -> f32) -> Tensor<D> {
    let values: Vec<f32> = (0..shape.iter().product()).map(number).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn gradient<const D: usize>(param: &Param<Tensor<D>>) -> Tensor<D> {
    let x = param.val().inner();
    let (shape, device) = (x.dims(), x.device());
    let goal = filled(shape, &device, |at| ((at * 5) % 13) as f32 / 4.0 - 1.5);
    let curve = filled(shape, &device, |at| 0.5 + (at % 4) as f32 / 4.0);
    (x - goal) * curve
}

fn optimizer(cell: &PhaseCell) -> ModuleOptimizer {
    let momentum = MomentumConfig::new().with_momentum(0.5).with_dampening(0.0);
    let smooth = SmoothConfig::new().with_momentum(Some(momentum)).with_weight_decay(0.125);
    ObproxSgConfig::new(0.01, 0).with_smooth(smooth).build_told(cell.clone()).into()
}

fn course() -> Course {
    const STEPS: u64 = 40;
    let device = Device::flex().autodiff();
    let start = |at: usize| ((at * 7) % 11) as f32 / 8.0 - 0.625;
    let mut net = Three {
        first: Param::initialized(ParamId::new(), filled([6, 8], &device, start).require_grad()),
        second: Param::initialized(ParamId::new(), filled([3, 6], &device, start).require_grad()),
        free: Param::initialized(ParamId::new(), filled([5], &device, start).require_grad()),
    };
    let cell = PhaseCell::default();
    let mut optimizer = optimizer(&cell);
    let lambdas = [(net.first.id, 0.01), (net.second.id, 0.01)];
    let control = DensityControl::new(Plan::new(0.25), STEPS, &net, lambdas).unwrap();
    let (mut phases, mut begun, mut held) = (Vec::new(), None, false);
    for step in 0..STEPS {
        let phase = match (held, step < 3) {
            (true, _) => Phase::Hold,
            (_, true) => Phase::Prox,
            _ => Phase::Orthant,
        };
        phases.push(phase.name().to_owned());
        cell.set(phase);
        let mut gradients = GradientsParams::new();
        gradients.register(net.first.id, gradient(&net.first));
        gradients.register(net.second.id, gradient(&net.second));
        gradients.register(net.free.id, gradient(&net.free));
        if phase == Phase::Orthant {
            let (nonzero, size) = control.count(&net);
            let begun = *begun.get_or_insert(Begun { step, density: nonzero as f64 / size as f64 });
            cell.set_trial();
            let trial = optimizer.step(0.125, net.clone(), gradients);
            let (next, controlled) = control.project(&net, trial, phase, begun, step + 1);
            (net, held) = (next, controlled.reached);
        } else {
            net = optimizer.step(0.125, net, gradients);
        }
    }
    let values = |data: TensorData| data.try_into_vec::<f32>().unwrap();
    let weights =
        [net.first.val().into_data(), net.second.val().into_data(), net.free.val().into_data()].map(values).to_vec();
    Course { phases, weights }
}

#[test]
fn the_course_is_the_one_that_pytorch_takes() {
    let course = course();
    let left = course.weights[..2].iter().flatten().filter(|value| **value != 0.0).count();
    // A quarter of 66 at most; weights at the same place of both matrices are equal, and go together.
    assert!((15..=16).contains(&left), "{left}");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/descent.json");
    if std::env::var_os("OBPROX_WRITE_DESCENT").is_some() {
        std::fs::write(path, serde_json::to_string(&course).unwrap() + "\n").unwrap();
    }
    let kept: Course = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(course.phases, kept.phases);
    for (ours, theirs) in course.weights.iter().flatten().zip(kept.weights.iter().flatten()) {
        assert!((*ours == 0.0) == (*theirs == 0.0) && (ours - theirs).abs() < 1e-5, "{ours} {theirs}");
    }
}
