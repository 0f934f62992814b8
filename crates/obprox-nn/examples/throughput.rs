//! Images a second of whole training steps: forward, backward, and a step of the optimizer.
//!
//! `throughput NETWORK [WIDTH [STEPS [BATCH [CHANNELS SIDE [DENSITY [profile]]]]]]`
//!
//! With a density below 1 all but so many of each layer's weights are zero, and held. Prints the best step, what all
//! steps took of the processors, and the peak of memory, in one line of JSON that `benches/nets/run` reads.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use burn::optim::{GradientsParams, SgdConfig};
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};
use obprox_infer::{Architecture, Kind, Weights};
use obprox_nn::{Net, initial_weights};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let kind: Kind = words.first().map_or("small-cnn", |word| word).parse().expect("a network");
    let number = |at: usize, usual: f64| words.get(at).map_or(usual, |word| word.parse::<f64>().expect("numbers"));
    let (width, steps, batch) = (number(1, 1.0), number(2, 5.0) as usize, number(3, 128.0) as usize);
    let (channels, side, density) = (number(4, 3.0) as usize, number(5, 32.0) as usize, number(6, 1.0));
    let device = Device::flex().autodiff();
    let architecture = Architecture::new(kind)
        .with_width(width)
        .expect("a sound width")
        .with_channels(channels)
        .expect("some channels");
    let weights = thinned(initial_weights(architecture, 0).expect("a sound architecture"), density);
    let mut net = Net::new(architecture, &weights, &device).expect("the weights are of the architecture");
    net.hold_zeros(|_| density < 1.0);
    let pixels = (0..batch * channels * side * side).map(|at| ((at * 7919) % 255) as f32 / 255.0 - 0.5);
    let pixels = TensorData::new(pixels.collect::<Vec<_>>(), [batch, channels, side, side]);
    let labels = TensorData::new((0..batch).map(|at| (at % 10) as i32).collect::<Vec<_>>(), [batch]);
    let mut optimizer = SgdConfig::new().init();
    let (mut best, mut before) = (f64::INFINITY, 0.0);
    for number in 0..steps + 2 {
        if number == 2 {
            before = processor_seconds();
        }
        let begun = Instant::now();
        let images = Tensor::<4>::from_data(pixels.clone(), &device);
        let labels = Tensor::<1, Int>::from_data(labels.clone(), &device);
        let scores = net.forward(images);
        let loss = log_softmax(scores, 1).gather(1, labels.reshape([batch, 1])).mean().neg();
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        net = optimizer.step(1e-3, net, gradients);
        best = best.min(begun.elapsed().as_secs_f64());
    }
    let processor = (processor_seconds() - before) / steps as f64;
    println!(
        "{{\"images_per_second\": {:.2}, \"per_processor_second\": {:.2}, \"peak_mb\": {:.1}}}",
        batch as f64 / best,
        batch as f64 / processor,
        peak()
    );
}

/// The time that processors gave to all threads, where the system tells; to a machine that others use too it means more than
/// the wall's.
fn processor_seconds() -> f64 {
    // The system counts a thread's time up to now only where the thread lets others run.
    std::thread::yield_now();
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let told = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    told.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum::<f64>() * 1e-9
}

/// Only so many of each convolution's weights, spread as training spreads them: no layer is left without any.
fn thinned(weights: Weights, density: f64) -> Weights {
    let mut thin = Weights::new();
    for (name, tensor) in weights.iter() {
        let kept = |at: usize| (at.wrapping_mul(2654435761) >> 7) % 10_000 < (density * 10_000.0) as usize;
        let thinned = tensor.shape().len() == 4 && density < 1.0;
        let values = tensor.data().iter().enumerate();
        let values = values.map(|(at, value)| if thinned && !kept(at) { 0.0 } else { *value }).collect();
        let tensor = obprox_infer::Tensor::new(tensor.shape().to_vec(), values).expect("the shape it had");
        thin.insert(name.to_string(), tensor);
    }
    thin
}

/// The most memory that was resident, in MB, where the system tells.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok()).map_or(0.0, |kilobytes| kilobytes / 1e3)
}
