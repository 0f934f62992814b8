//! The recipe on real images, where OBPROX_DATA names a directory with them.

use std::path::PathBuf;

use burn::tensor::Device;
use obprox::{MethodKind, Status};
use obprox_infer::images::{Preprocessing, read_directory};
use obprox_infer::{Architecture, Kind};
use obprox_nn::data::Augment;
use obprox_nn::optim::Phase;
use obprox_nn::train::{Run, Settings};
use obprox_nn::{Net, initial_weights};

#[test]
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn a_tenth_of_a_small_network_tells_clothes_apart() {
    let path = std::env::var_os("OBPROX_DATA").map(|root| PathBuf::from(root).join("fashion-mnist"));
    let Some(path) = path.filter(|path| path.is_dir()) else {
        eprintln!("skipped: OBPROX_DATA names no directory with fashion-mnist");
        return;
    };
    // Half the size and half the channels: some seconds of training.
    let preprocessing = Preprocessing { height: 14, width: 14, mean: vec![0.286], std: vec![0.353] };
    let data = read_directory(&path, preprocessing.shape(), Some(3000)).unwrap();
    let architecture = Architecture::new(Kind::SmallCnn).with_width(0.5).unwrap().with_channels(1).unwrap();
    let device = Device::flex().autodiff();
    let net = Net::new(architecture, &initial_weights(architecture, 0).unwrap(), &device).unwrap();
    let recipe = Settings::recipe(MethodKind::ObproxSgPlus, 6, Some(0.1));
    let settings = Settings { batch: 64, augment: Augment { flip: true, pad: 0 }, ..recipe };
    let trained = Run::new(net, &data, &preprocessing, settings, &device).train().unwrap();
    assert_eq!((trained.status, trained.last.phase), (Status::MaxEpochs, Phase::Hold));
    assert!(trained.last.density <= 0.1, "density {}", trained.last.density);
    assert!(trained.sparsity.dead_layers().is_empty());
    assert!(trained.last.accuracy.unwrap() >= 0.72, "accuracy {:?}", trained.last.accuracy);
}
