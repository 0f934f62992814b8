//! Training as a whole: it learns, it sparsifies, it stops and resumes.

mod common;

use burn::tensor::Device;
use common::{after, data, net, preprocessing, settings, stripes};
use obprox::switch::Switch;
use obprox::{Control, MethodKind, Status};
use obprox_infer::Kind;
use obprox_infer::images::Data;
use obprox_nn::optim::{Phase, Plan};
use obprox_nn::train::{EpochRecord, Observer, Penalty, Progress, Run, Settings, Trained};

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
    let settings =
        Settings { epochs: 12, penalty: Penalty::new(1e-2), switch: after(5), ..settings(MethodKind::ObproxSgPlus) };
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
        for method in MethodKind::PAPER {
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
    for method in MethodKind::PAPER {
        let settings =
            Settings { epochs: 3, momentum: if method == MethodKind::Rda { 0.0 } else { 0.5 }, ..settings(method) };
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

#[test]
fn a_resumed_descent_is_the_one_without_a_break() {
    let settings = small(Settings::recipe(MethodKind::ObproxSgPlus, 4, Some(0.1)));
    let whole = train(Kind::SmallCnn, 4.0, settings.clone());
    let (directory, device, data, preprocessing) = (tempfile::tempdir().unwrap(), device(), data(), preprocessing());
    let run = |settings: Settings| {
        let net = net(Kind::SmallCnn, 4.0, &device);
        Run::new(net, &data, &preprocessing, settings, &device).checkpoint(directory.path(), true)
    };
    let mut stop = StopAfter(8 + 3);
    let broken = run(settings.clone()).observe(&mut stop).train().unwrap();
    assert_eq!((broken.status, broken.missed(&settings)), (Status::Stopped, Some(0.1)));
    // All of it was planned for so many epochs.
    let message = run(Settings { epochs: 6, ..settings.clone() }).train().unwrap_err().to_string();
    assert!(message.contains("epochs"), "{message}");
    let resumed = run(settings.clone()).train().unwrap();
    assert_eq!(resumed.weights, whole.weights);
    assert_eq!(resumed.missed(&settings), None);
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
    let settings = Settings { switch: Switch::Stalled(1), ..settings(MethodKind::ObproxSgPlus) };
    let whole = train(Kind::SmallCnn, 4.0, settings.clone());
    let (directory, device, data, preprocessing) = (tempfile::tempdir().unwrap(), device(), data(), preprocessing());
    let run = || {
        let net = net(Kind::SmallCnn, 4.0, &device);
        Run::new(net, &data, &preprocessing, settings.clone(), &device).checkpoint(directory.path(), true)
    };
    // One batch an epoch, of test images: this rule asks for no more before the end.
    let mut stop = StopScoring(2);
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
    let settings = Settings { epochs: 1, ..settings(MethodKind::ProxSg) };
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
    let settings = Settings { step: 1e18, epochs: 3, ..settings(MethodKind::ProxSg) };
    let settings = Settings { penalty: Penalty::new(0.0), ..settings };
    let trained = train(Kind::SmallCnn, 4.0, settings);
    assert_eq!(trained.status, Status::Diverged);
    assert!(trained.weights.iter().all(|(_, tensor)| tensor.data().iter().all(|value| value.is_finite())));
}

#[test]
fn a_target_density_is_reached_and_held_whatever_lambda_says() {
    // λ is far too small, or far too large, for the density by itself; it is only a start.
    for (lambda, prox) in [(1e-6, 0), (1.0, 0), (1e-4, 2), (1e-4, 9)] {
        let settings = Settings {
            penalty: Penalty::new(lambda),
            switch: after(prox),
            ..small(Settings::recipe(MethodKind::ObproxSgPlus, 8, Some(0.1)))
        };
        let trained = train(Kind::SmallCnn, 8.0, settings);
        assert_eq!(trained.status, Status::MaxEpochs);
        let last = &trained.last;
        assert!(last.density <= 0.1 && last.density > 0.095, "λ {lambda}: {}", last.density);
        let phases: Vec<Phase> = trained.trace.iter().map(|record| record.phase).collect();
        assert_eq!(&phases[6..], [Phase::Hold; 2], "{phases:?}");
        assert!(trained.trace[6].nonzero == trained.trace[7].nonzero);
        assert_eq!(phases.contains(&Phase::Prox), prox > 0, "{phases:?}");
        assert!(trained.sparsity.dead_layers().is_empty(), "{:?}", trained.sparsity.layers);
        assert_eq!(last.lambda, Some(0.0), "nothing is shrunk in the end");
    }
}

/// For the images of these tests.
fn small(settings: Settings) -> Settings {
    Settings { batch: 32, augment: obprox_nn::data::Augment { flip: false, pad: 1 }, seed: 5, ..settings }
}

#[test]
fn the_recipe_learns_with_one_weight_in_twenty() {
    let trained = train(Kind::SmallCnn, 8.0, small(Settings::recipe(MethodKind::ObproxSgPlus, 16, Some(0.05))));
    assert!(trained.last.density <= 0.05, "density {}", trained.last.density);
    assert!(trained.last.accuracy.unwrap() >= 0.95, "accuracy {:?}", trained.last.accuracy);
    let confusion = trained.confusion.unwrap();
    assert_eq!(confusion.iter().flatten().sum::<u64>(), 128);
    let right: u64 = (0..4).map(|class| confusion[class][class]).sum();
    assert_eq!(right as f64 / 128.0, trained.last.accuracy.unwrap());
}

#[test]
fn every_layer_keeps_its_share() {
    // All of the last layer's weights are tiny: by size alone none of them would stay.
    let device = device();
    let start = net(Kind::SmallCnn, 8.0, &device);
    let architecture = start.architecture();
    let mut weights = start.weights().unwrap();
    let fc = weights.get("fc.weight").unwrap().clone();
    let tiny = fc.data().iter().map(|value| value * 1e-4).collect();
    weights.insert("fc.weight", obprox_infer::Tensor::new(fc.shape().to_vec(), tiny).unwrap());
    let start = obprox_nn::Net::new(architecture, &weights, &device).unwrap();
    let plan = Plan { floor: 0.5, ..Plan::new(0.1) };
    let settings = small(Settings::recipe(MethodKind::ObproxSgPlus, 4, Some(0.1)));
    // So small steps that the sizes stay as they are.
    let settings = Settings { target: Some(plan), step: 1e-9, ..settings };
    let trained = Run::new(start, &data(), &preprocessing(), settings, &device).train().unwrap();
    let fc = trained.sparsity.layers.iter().find(|layer| layer.name == "fc.weight").unwrap();
    assert_eq!(fc.nonzero, (0.5f64 * 0.1 * fc.size as f64).ceil() as usize);
    assert!(trained.last.density <= 0.1);
}

#[test]
fn what_cannot_be_reached_is_refused_at_once() {
    let device = device();
    let refused = |settings: Settings, data: &Data| {
        let net = net(Kind::SmallCnn, 8.0, &device);
        Run::new(net, data, &preprocessing(), settings, &device).train().unwrap_err().to_string()
    };
    let recipe = |density| small(Settings::recipe(MethodKind::ObproxSgPlus, 4, Some(density)));
    assert!(refused(recipe(0.0), &data()).contains("target-density"));
    assert!(refused(recipe(1e-5), &data()).contains("to stay alive"));
    assert!(refused(Settings { penalty: Penalty::new(0.0), ..recipe(0.1) }, &data()).contains("above 0"));
    let images = stripes(64, 1);
    let one = obprox_infer::images::Images::new(images.shape(), images.pixels().to_vec(), Some(vec![2; 64])).unwrap();
    let message = refused(recipe(0.1), &Data { train: one.into(), ..data() });
    assert!(message.contains("one class"), "{message}");
}

#[test]
fn evaluation_takes_its_time_where_it_is_dear() {
    // Half as many images to test on as to train on: a look at them costs a sixth of an epoch.
    let trained = train(Kind::SmallCnn, 4.0, small(Settings::recipe(MethodKind::ObproxSgPlus, 7, Some(0.3))));
    let scored: Vec<u64> =
        trained.trace.iter().filter(|record| record.accuracy.is_some()).map(|record| record.epoch).collect();
    assert_eq!(scored, [3, 6, 7]);
    let with_f: Vec<u64> =
        trained.trace.iter().filter(|record| record.objective.is_some()).map(|record| record.epoch).collect();
    assert_eq!(with_f, [7]);
}

#[test]
fn layers_can_have_a_lambda_of_their_own() {
    let mut settings = Settings { epochs: 3, switch: after(0), ..settings(MethodKind::ObproxSgPlus) };
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

/// Half of the channels go, exactly, whatever steps are underneath and whatever weights go besides; they can be cut out.
#[test]
fn a_share_of_the_channels_is_zero_in_the_end() {
    let recipe = |method, density| small(Settings::recipe(method, 8, density));
    for (settings, share) in [
        (Settings { penalty: Penalty::new(0.0), momentum: 0.0, ..recipe(MethodKind::ProxSg, None) }, 0.5),
        (Settings { penalty: Penalty::new(0.0), ..recipe(MethodKind::ProxSg, None) }, 0.5),
        (recipe(MethodKind::ObproxSgPlus, Some(0.2)), 0.4),
    ] {
        let settings = Settings { target_groups: Some(share), ..settings };
        let trained = train(Kind::SmallCnn, 8.0, settings.clone());
        let groups = trained.groups.unwrap();
        let zero = groups.size - groups.nonzero;
        assert_eq!((groups.size, zero), (56, (56.0 * share).round() as usize));
        // A quarter is chance.
        assert!(trained.last.accuracy.unwrap() >= 0.7, "{settings:?}: {:?}", trained.last.accuracy);
        assert_eq!(trained.missed(&settings), None);
        // The very channels are gone from the network that is cut.
        let architecture = net(Kind::SmallCnn, 8.0, &device()).architecture();
        let model = obprox_infer::Model::new(architecture, trained.weights, obprox_infer::Training::default()).unwrap();
        let cut = model.cut().unwrap();
        let channels = |model: &obprox_infer::Model| -> usize {
            (1..=3).map(|layer| model.weights().get(&format!("conv{layer}.weight")).unwrap().shape()[0]).sum()
        };
        assert!(channels(&cut) <= channels(&model) - zero, "{} of {}", channels(&cut), channels(&model));
    }
}

#[test]
fn channels_that_go_are_refused_where_they_cannot() {
    let device = device();
    let refused = |method, share| {
        let settings = Settings { target_groups: Some(share), ..small(Settings::recipe(method, 2, None)) };
        let net = net(Kind::SmallCnn, 8.0, &device);
        Run::new(net, &data(), &preprocessing(), settings, &device).train().unwrap_err().to_string()
    };
    assert!(refused(MethodKind::Rda, 0.5).contains("target-group-sparsity"));
    assert!(refused(MethodKind::ProxSg, 0.0).contains("above 0"));
    assert!(refused(MethodKind::ProxSg, 0.99).contains("keep their layers alive"));
}

#[test]
fn channels_of_a_resumed_run_go_as_without_a_break() {
    let settings =
        Settings { target_groups: Some(0.5), ..small(Settings::recipe(MethodKind::ObproxSgPlus, 4, Some(0.3))) };
    let whole = train(Kind::SmallCnn, 4.0, settings.clone());
    let (directory, device, data, preprocessing) = (tempfile::tempdir().unwrap(), device(), data(), preprocessing());
    let run = || {
        let net = net(Kind::SmallCnn, 4.0, &device);
        Run::new(net, &data, &preprocessing, settings.clone(), &device).checkpoint(directory.path(), true)
    };
    let mut stop = StopAfter(8 + 11);
    run().observe(&mut stop).train().unwrap();
    assert!(run().train().unwrap().weights == whole.weights, "not the same bits");
}
