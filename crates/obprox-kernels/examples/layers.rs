//! What a layer takes: forward, gradient of the input, gradient of the weights, with all weights and with few.
//!
//! `cargo run --release -p obprox-kernels --example layers -- [ROUNDS [DENSITY [LAYER]]]`
#![allow(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::time::Instant;

use obprox_kernels::{Conv, Kernel, Planes, Shape, forward, input_gradient, weight_gradient};

/// Channels in and out, side, kernel, stride, groups: layers of ResNet18, MobileNetV1 and the small CNN.
const LAYERS: [[usize; 6]; 14] = [
    [3, 32, 32, 3, 1, 1],
    [32, 64, 16, 3, 1, 1],
    [64, 128, 8, 3, 1, 1],
    [64, 64, 32, 3, 1, 1],
    [64, 128, 32, 3, 2, 1],
    [64, 128, 32, 1, 2, 1],
    [128, 128, 16, 3, 1, 1],
    [256, 256, 8, 3, 1, 1],
    [512, 512, 4, 3, 1, 1],
    [32, 64, 32, 1, 1, 1],
    [512, 512, 4, 1, 1, 1],
    [1024, 1024, 2, 1, 1, 1],
    [32, 32, 32, 3, 1, 32],
    [512, 512, 4, 3, 1, 512],
];

fn main() {
    // From within the pool, so that its only thread can be asked for its time.
    let pool = rayon::ThreadPoolBuilder::new().build().expect("a pool of threads");
    pool.install(table);
}

fn table() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: f64| words.get(at).map_or(usual, |word| word.parse().expect("numbers"));
    let (rounds, density) = (number(0, 3.0) as usize, number(1, 0.03));
    println!("batches of 128, density {density}, {} threads; GFLOP/s of all weights", rayon::current_num_threads());
    println!("| layer | forward | input gradient | weight gradient | sparse, ms: forward | input | weight |");
    println!("|---|---|---|---|---|---|---|");
    let only = |at: usize| words.get(2).is_none_or(|word| word.parse() == Ok(at));
    let layers = LAYERS.into_iter().enumerate().filter(|(at, _)| only(*at));
    for (_, [inputs, outputs, side, kernel, stride, groups]) in layers {
        let input = Planes::new([128, inputs, side, side]);
        let shape = Shape { groups, ..Shape::new(inputs, outputs, kernel, stride) };
        let conv = Conv::new(shape, input).expect("layers that fit");
        let some = |count: usize| (0..count).map(|at| ((at * 7919) % 255) as f32 / 255.0 - 0.5).collect::<Vec<_>>();
        let (x, dy) = (some(input.floats() + 16), some(conv.output().floats() + 16));
        let (mut y, mut dx, mut dw) = (some(dy.len()), some(x.len()), some(shape.weights()));
        let (x, dy) = (aligned(&x), aligned(&dy));
        let (y, dx) = (aligned_mut(&mut y), aligned_mut(&mut dx));
        let dense = some(shape.weights());
        let kept = |at: usize| ((at.wrapping_mul(2654435761)) % 1000) as f64 / 1000.0 < density;
        let sparse: Vec<f32> = dense.iter().enumerate().map(|(at, w)| if kept(at) { *w } else { 0.0 }).collect();
        let mut best = [f64::INFINITY; 6];
        for _ in 0..rounds {
            for (kernel, weights, at) in [(Kernel::Dense, &dense, 0), (Kernel::Sparse, &sparse, 3)] {
                let times = [
                    seconds(|| forward(&conv, kernel, x, weights, y, None)),
                    seconds(|| input_gradient(&conv, kernel, weights, dy, dx)),
                    seconds(|| weight_gradient(&conv, kernel, x, weights, dy, &mut dw)),
                ];
                best[at..at + 3].iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
            }
        }
        let flops = 2.0 * 128.0 * (shape.weights() * conv.output().pixels()) as f64;
        print!("| {inputs}→{outputs}, {side}², {kernel}×{kernel}/{stride}, {groups} groups ");
        best[..3].iter().for_each(|time| print!("| {:.0} ({:.2} ms) ", flops / time / 1e9, 1e3 * time));
        best[3..].iter().zip(&best).for_each(|(time, dense)| print!("| {:.2} = {:.1}× ", 1e3 * time, dense / time));
        println!("|");
    }
}

/// Seconds of a piece of work; on one thread those that the machine really gave it, where it tells.
fn seconds(work: impl FnOnce()) -> f64 {
    let given = || {
        // The system counts a thread's time up to now only where the thread lets others run.
        std::thread::yield_now();
        let told = std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .filter(|_| rayon::current_num_threads() == 1)?;
        told.split(' ').next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds * 1e-9)
    };
    let (begun, before) = (Instant::now(), given());
    work();
    match (before, given()) {
        (Some(before), Some(after)) => after - before,
        _ => begun.elapsed().as_secs_f64(),
    }
}

/// All but sixteen floats, from the beginning of a cache line on.
fn aligned(values: &[f32]) -> &[f32] {
    let skip = values.as_ptr().align_offset(64);
    &values[skip..][..values.len() - 16]
}

fn aligned_mut(values: &mut [f32]) -> &mut [f32] {
    let (skip, len) = (values.as_ptr().align_offset(64), values.len() - 16);
    &mut values[skip..][..len]
}
