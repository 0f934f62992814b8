//! What training costs: our kernels beside Burn's own, and a step of each method beside the whole training step.
//!
//! `cargo run --release -p obprox-nn --example speed -- [ROUNDS [BATCH [WIDTH [NETWORK]]]]`
//!
//! Everything is measured in turn, round after round, and the best of each is taken: a neighbour's burst then hits all
//! alike, or none.

include!("../../../benches/src/say.rs");

use std::time::Instant;

use burn::module::Module;
use burn::optim::{GradientsParams, ModuleOptimizer, SgdConfig};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use obprox_infer::{Architecture, Kind};
use obprox_nn::optim::{Anchor, ObproxSgConfig, ProxSgConfig, RdaConfig};
use obprox_nn::{Net, initial_weights};

const LAMBDA: f64 = 1e-4;
const STEP: f64 = 0.1;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual| words.get(at).map_or(usual, |word| word.parse::<f64>().expect("numbers"));
    let (rounds, batch, width) = (number(0, 5.0) as usize, number(1, 128.0) as usize, number(2, 1.0));
    let only: Option<Kind> = words.get(3).map(|word| word.parse().expect("a network"));
    say!("batches of {batch}, width {width}, {rounds} rounds, {} threads\n", rayon::current_num_threads());
    for kind in [Kind::MobileNetV1, Kind::ResNet18].into_iter().filter(|kind| only.is_none_or(|only| only == *kind)) {
        let bench = Bench::new(kind, width, batch);
        bench.kernels(rounds);
        bench.steps(rounds);
    }
}

struct Bench {
    net: Net,
    images: Tensor<4>,
    labels: Tensor<1, Int>,
}

impl Bench {
    fn new(kind: Kind, width: f64, batch: usize) -> Self {
        let device = Device::flex().autodiff();
        let architecture = Architecture::new(kind).with_width(width).expect("a sound width");
        let weights = initial_weights(architecture, 0).expect("a sound architecture");
        let net = Net::new(architecture, &weights, &device).expect("the weights are of the architecture");
        let pixels = (0..batch * 3072).map(|at| ((at * 7919) % 255) as f32 / 255.0 - 0.5).collect::<Vec<_>>();
        let images = Tensor::from_data(TensorData::new(pixels, [batch, 3, 32, 32]), &device);
        let labels = (0..batch).map(|at| (at % 10) as i32).collect::<Vec<_>>();
        let labels = Tensor::from_data(TensorData::new(labels, [batch]), &device);
        Self { net, images, labels }
    }

    fn gradients(&self, net: &Net, forward: impl Fn(&Net, Tensor<4>) -> Tensor<2>) -> GradientsParams {
        let scores = forward(net, self.images.clone());
        let [count] = self.labels.dims();
        let loss = log_softmax(scores, 1).gather(1, self.labels.clone().reshape([count, 1])).mean().neg();
        GradientsParams::from_grads(loss.backward(), net)
    }

    /// Forward and backward, by our kernels and by Burn's own layers.
    fn kernels(&self, rounds: usize) {
        let name = self.net.architecture().kind().name();
        let (mut ours, mut burns) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..rounds {
            ours = ours.min(seconds(|| drop(self.gradients(&self.net, Net::forward))));
            burns = burns.min(seconds(|| drop(self.gradients(&self.net, Net::forward_by_burn))));
        }
        let [count] = self.labels.dims();
        let rate = |seconds: f64| count as f64 / seconds;
        say!("| {name}, forward and backward | images/s | relative |\n|---|---|---|");
        say!("| Burn's own layers | {:.1} | 1.00× |", rate(burns));
        say!("| obprox-nn | {:.1} | {:.2}× |\n", rate(ours), burns / ours);
    }

    /// A whole training step with each optimizer, and the optimizer's part of it.
    fn steps(&self, rounds: usize) {
        let phases = |prox| ObproxSgConfig::new(LAMBDA, prox).init();
        let mut entries: Vec<(&str, ModuleOptimizer, f64)> = [
            ("Burn's SGD", SgdConfig::new().init()),
            ("Prox-SG", ProxSgConfig::new(LAMBDA).init()),
            ("RDA", RdaConfig::new(LAMBDA, 20.0).init()),
            ("Prox-SVRG", ProxSgConfig::new(LAMBDA).init()),
            ("OBProx-SG, Prox-SG steps", phases(usize::MAX)),
            ("OBProx-SG, Orthant steps", phases(0)),
        ]
        .map(|(name, optimizer)| (name, optimizer, f64::INFINITY))
        .into();
        let anchor = Anchor::new(&self.net, |net| self.gradients(net, Net::forward));
        let mut pass = f64::INFINITY;
        for _ in 0..rounds {
            for (name, optimizer, step) in &mut entries {
                let net = self.net.clone().fork(&self.images.device());
                let begun = Instant::now();
                let mut gradients = self.gradients(&net, Net::forward);
                pass = pass.min(begun.elapsed().as_secs_f64());
                // The second gradient of Prox-SVRG is its nature; what its step adds is counted here.
                let at_anchor = (*name == "Prox-SVRG").then(|| self.gradients(anchor.module(), Net::forward));
                let begun = Instant::now();
                if let Some(at_anchor) = at_anchor {
                    gradients = anchor.reduce(gradients, at_anchor);
                }
                drop(optimizer.step(STEP, net, gradients));
                *step = step.min(begun.elapsed().as_secs_f64());
            }
        }
        let name = self.net.architecture().kind().name();
        say!("| {name}, a training step with | step | share of the training step | throughput |\n|---|---|---|---|");
        let base = pass + entries[0].2;
        for (name, _, step) in &entries {
            let whole = pass + step;
            say!("| {name} | {:.1} ms | {:.2} % | {:.3}× |", 1e3 * step, 100.0 * step / whole, base / whole);
        }
        say!("");
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64()
}
