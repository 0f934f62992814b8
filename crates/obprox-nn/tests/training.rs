//! Training as a whole: it learns, it sparsifies, it stops and resumes.

mod common;

use burn::tensor::Device;
use common::{data, net, preprocessing, settings};
use obprox::{Control, Method};
use obprox_infer::Kind;
use obprox_nn::optim::Phase;
use obprox_nn::train::{EpochRecord, Observer, Penalty, Progress, Rule, Run, Settings, Status, Trained};

fn device() -> Device {
    Device::flex().autodiff()
}

fn train(kind: Kind, base: f64, settings: Settings) -> Trained {
    let device = device();
    Run::new(net(kind, base, &device), &data(), &preprocessing(), settings, &device).train().unwrap()
}

#[test]
fn a_tiny_network_learns_and_becomes_sparse() {
    // A weight that no gradient holds up is moved by λ·Σα in all, 0.07 here: nearly as far as the first weights reach.
    let settings = Settings {
        epochs: 12,
        penalty: Penalty::new(1e-2),
        switch: Rule::Epochs { prox: 5, orthant: None },
        ..settings(Method::ObproxSgPlus)
    };
    let trained = train(Kind::SmallCnn, 8.0, settings);
    assert_eq!(trained.status, Status::MaxEpochs);
    let last = &trained.last;
    assert!(last.accuracy.unwrap() >= 0.95, "accuracy {:?}", last.accuracy);
    assert!(last.density <= 0.30, "density {}", last.density);
    assert!(last.objective.unwrap() < trained.trace[0].objective.unwrap());
    // In the Orthant phase the support only shrinks.
    let orthant: Vec<&EpochRecord> = trained.trace.iter().filter(|record| record.phase == Phase::Orthant).collect();
    assert_eq!(orthant.len(), 7);
    assert!(orthant.windows(2).all(|pair| pair[1].nonzero <= pair[0].nonzero));
    // What is told is what the weights say.
    let nonzero: usize =
        trained.weights.iter().filter(|(_, tensor)| tensor.shape().len() >= 2).map(|(_, t)| t.nnz()).sum();
    assert_eq!(nonzero, last.nonzero);
    assert_eq!(trained.sparsity.penalized.nonzero, nonzero);
}

#[test]
fn every_method_lowers_f_on_every_network() {
    for (kind, base) in [(Kind::SmallCnn, 4.0), (Kind::ResNet18, 2.0), (Kind::MobileNetV1, 4.0)] {
        for method in Method::PAPER {
            let trained = train(kind, base, Settings { epochs: 2, ..settings(method) });
            assert_eq!(trained.status, Status::MaxEpochs);
            let losses: Vec<f64> = trained.trace.iter().map(|record| record.batch_loss).collect();
            assert!(losses[1] < losses[0], "{} {}: {losses:?}", kind.name(), method.name());
        }
    }
}

/// Says stop after so many steps.
struct StopAfter(u64);

impl Observer for StopAfter {
    fn step(&mut self, _: &Progress) -> Control {
        self.0 -= 1;
        if self.0 == 0 { Control::Stop } else { Control::Continue }
    }
}

#[test]
fn a_resumed_run_is_the_run_without_a_break_to_the_bit() {
    for method in Method::PAPER {
        let settings =
            Settings { epochs: 3, momentum: if method == Method::Rda { 0.0 } else { 0.5 }, ..settings(method) };
        let whole = train(Kind::SmallCnn, 4.0, settings.clone());
        let directory = tempfile::tempdir().unwrap();
        let device = device();
        let data = data();
        let preprocessing = preprocessing();
        let run = |settings: Settings, resume: bool| {
            let net = net(Kind::SmallCnn, 4.0, &device);
            Run::new(net, &data, &preprocessing, settings, &device).checkpoint(directory.path(), resume)
        };
        // Broken off in the middle of the second epoch, then once more at the end of it.
        let mut stop = StopAfter(8 + 3);
        let broken = run(settings.clone(), false).observe(&mut stop).train().unwrap();
        assert_eq!((broken.status, broken.trace.len()), (Status::Stopped, 1));
        assert_ne!(broken.weights, whole.weights);
        let second = run(Settings { epochs: 2, ..settings.clone() }, true).train().unwrap();
        assert_eq!((second.status, second.trace.len()), (Status::MaxEpochs, 2));
        let resumed = run(settings.clone(), true).train().unwrap();
        assert_eq!(resumed.weights, whole.weights, "{}", method.name());
        let figures = |trained: &Trained| -> Vec<EpochRecord> {
            trained.trace.iter().map(|record| EpochRecord { seconds: 0.0, ..record.clone() }).collect()
        };
        assert_eq!(figures(&resumed), figures(&whole), "{}", method.name());
    }
}

/// Says stop the so manieth time that figures are computed.
struct StopScoring(u64);

impl Observer for StopScoring {
    fn evaluating(&mut self, _: f64) -> Control {
        self.0 -= 1;
        if self.0 == 0 { Control::Stop } else { Control::Continue }
    }
}

#[test]
fn figures_that_were_stopped_are_computed_when_the_run_is_resumed() {
    // The switch hangs on the figures: one that is missing would move it.
    let settings = Settings { switch: Rule::Stalled(1), ..settings(Method::ObproxSgPlus) };
    let whole = train(Kind::SmallCnn, 4.0, settings.clone());
    let (directory, device, data, preprocessing) = (tempfile::tempdir().unwrap(), device(), data(), preprocessing());
    let run = || {
        let net = net(Kind::SmallCnn, 4.0, &device);
        Run::new(net, &data, &preprocessing, settings.clone(), &device).checkpoint(directory.path(), true)
    };
    // Two batches an epoch: those of training images, then those of test images.
    let mut stop = StopScoring(4);
    let broken = run().observe(&mut stop).train().unwrap();
    assert_eq!((broken.status, broken.trace.len()), (Status::Stopped, 1));
    let resumed = run().train().unwrap();
    assert_eq!(resumed.weights, whole.weights);
    assert!(resumed.trace.iter().all(|record| record.accuracy.is_some()));
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (device, data, preprocessing) = (device(), data(), preprocessing());
    let run = |base: f64, settings: Settings| {
        let net = net(Kind::SmallCnn, base, &device);
        Run::new(net, &data, &preprocessing, settings, &device).checkpoint(directory.path(), true).train()
    };
    let settings = Settings { epochs: 1, ..settings(Method::ProxSg) };
    run(2.0, settings.clone()).unwrap();
    let message = run(4.0, settings.clone()).unwrap_err().to_string();
    assert!(message.contains("another network"), "{message}");
    let message = run(2.0, Settings { seed: 9, ..settings.clone() }).unwrap_err().to_string();
    assert!(message.contains("other settings"), "{message}");
    let file = directory.path().join("checkpoint.obprox-net");
    let bytes = std::fs::read(&file).unwrap();
    for (damage, bytes) in [
        ("cut", bytes[..bytes.len() / 2].to_vec()),
        ("a changed byte", {
            let mut bytes = bytes.clone();
            bytes[2000] ^= 1;
            bytes
        }),
        ("empty", Vec::new()),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let message = run(2.0, settings.clone()).unwrap_err().to_string();
        assert!(message.contains("not a whole obprox checkpoint"), "{damage}: {message}");
    }
}

#[test]
fn a_diverged_run_keeps_the_last_good_weights() {
    let settings = Settings { step: 1e18, epochs: 3, ..settings(Method::ProxSg) };
    let settings = Settings { penalty: Penalty::new(0.0), ..settings };
    let trained = train(Kind::SmallCnn, 4.0, settings);
    assert_eq!(trained.status, Status::Diverged);
    assert!(trained.weights.iter().all(|(_, tensor)| tensor.data().iter().all(|value| value.is_finite())));
}

#[test]
fn a_target_density_is_held() {
    // Strong enough to fall below a half within some epochs, and by little from step to step.
    let settings = Settings {
        epochs: 8,
        penalty: Penalty::new(2e-2),
        switch: Rule::Epochs { prox: 1, orthant: None },
        target_density: Some(0.5),
        ..settings(Method::ObproxSgPlus)
    };
    let trained = train(Kind::SmallCnn, 8.0, settings);
    let held: Vec<&EpochRecord> = trained.trace.iter().filter(|record| record.phase == Phase::Hold).collect();
    assert!(held.len() >= 2, "{:?}", trained.trace.iter().map(|record| record.density).collect::<Vec<_>>());
    assert!(held.iter().all(|record| record.density <= 0.5 && record.density > 0.4));
    assert!(held.windows(2).all(|pair| pair[0].nonzero == pair[1].nonzero));
}

#[test]
fn layers_can_have_a_lambda_of_their_own() {
    let mut settings =
        Settings { epochs: 3, switch: Rule::Epochs { prox: 0, orthant: None }, ..settings(Method::ObproxSgPlus) };
    let layer = |name: &str, lambda| obprox_nn::train::LayerPenalty { name: name.into(), lambda };
    settings.penalty.layers = vec![layer("conv1", 0.0), layer("fc.weight", 10.0)];
    let trained = train(Kind::SmallCnn, 4.0, settings.clone());
    let nnz = |name: &str| trained.weights.get(name).map(|tensor| (tensor.nnz(), tensor.len())).unwrap();
    assert_eq!(nnz("conv1.weight").0, nnz("conv1.weight").1, "left free");
    assert_eq!(nnz("fc.weight").0, 0, "ten is far too much");
    assert!(nnz("conv3.weight").0 < nnz("conv3.weight").1);
    assert_eq!(nnz("bn1.weight").0, nnz("bn1.weight").1, "norms are not penalised");
    settings.penalty.layers = vec![layer("conv9", 0.0)];
    let device = device();
    let refused = Run::new(net(Kind::SmallCnn, 4.0, &device), &data(), &preprocessing(), settings, &device).train();
    assert!(refused.unwrap_err().to_string().contains("no layer conv9"));
}
