//! Convolutions against loops that anyone can read, over random shapes and patterns of zeros.

mod common;

use common::{Naive, assert_close, numbers};
use obprox_kernels::{Conv, Kernel, Moments, Planes, Shape, forward, input_gradient, weight_gradient};
use proptest::prelude::*;

/// Shapes that fit: images, channels, side lengths, kernel, stride, padding, groups.
fn convs() -> impl Strategy<Value = Conv> {
    let sizes = (1usize..40, 1usize..5, 1usize..5, 1usize..10, 1usize..10);
    let kernel = (prop::sample::select(vec![1usize, 2, 3, 5]), 1usize..4, 0usize..3);
    let groups = prop::sample::select(vec![0usize, 1, 1, 2]);
    (sizes, kernel, groups, any::<bool>()).prop_filter_map("the kernel fits", |(sizes, kernel, groups, bare)| {
        let (images, inputs, outputs, height, width) = sizes;
        let (kernel, stride, padding) = kernel;
        // No group at all stands for channels that see themselves only.
        let (inputs, outputs, groups) = match groups {
            0 => (inputs, inputs, inputs),
            groups => (inputs * groups, outputs * groups, groups),
        };
        let frame = usize::from(!bare);
        let input = Planes { frame, ..Planes::new([images, inputs, height, width]) };
        Conv::new(Shape { inputs, outputs, kernel, stride, padding, groups }, input)
    })
}

struct Found {
    y: Vec<f32>,
    dx: Vec<f32>,
    dw: Vec<f32>,
    moments: Vec<(f64, f64)>,
}

fn run(conv: &Conv, kernel: Kernel, x: &[f32], weights: &[f32], dy: &[f32]) -> Found {
    let (input, output) = (conv.input, conv.output());
    // What was in the memory before must not matter.
    let fresh = |planes: &Planes| vec![f32::NAN; planes.floats()];
    let (mut planes, mut dy_planes) = (fresh(&input), fresh(&output));
    input.gather(x, &mut planes);
    output.gather(dy, &mut dy_planes);
    let (mut y, mut dx, mut dw) = (fresh(&output), fresh(&input), vec![f32::NAN; weights.len()]);
    let mut moments = Moments::new(&output);
    forward(conv, kernel, &planes, weights, &mut y, Some(&mut moments));
    input_gradient(conv, kernel, weights, &dy_planes, &mut dx);
    weight_gradient(conv, kernel, &planes, weights, &dy_planes, &mut dw);
    let back = |of: &Planes, planes: &[f32]| {
        let mut images = vec![0.0; of.images * of.channels * of.pixels()];
        of.scatter(planes, &mut images);
        let within = images.iter().filter(|value| **value != 0.0).count();
        let all = planes.iter().filter(|value| **value != 0.0).count();
        assert!(within == all, "{conv:?}: frames and lanes without an image are zero");
        images
    };
    Found { y: back(&output, &y), dx: back(&input, &dx), dw, moments: moments.finish(&output) }
}

fn bits(values: &[f32]) -> Vec<u32> {
    // A sum of nothing is 0, a sum of products with zeros may be −0: the same number.
    values.iter().map(|value| (value + 0.0).to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn convolutions_are_the_naive_ones((conv, density, seed) in (convs(), 0u64..4, any::<u64>())) {
        let output = conv.output();
        let x = numbers(conv.input.images * conv.input.channels * conv.input.pixels(), seed, 3);
        let weights = numbers(conv.shape.weights(), seed ^ 1, density);
        let dy = numbers(output.images * output.channels * output.pixels(), seed ^ 2, 3);
        let naive = Naive::run(&conv, &x, &weights, &dy);
        let (dense, sparse) = (run(&conv, Kernel::Dense, &x, &weights, &dy), run(&conv, Kernel::Sparse, &x, &weights, &dy));
        assert_close(&dense.y, &naive.y, "output");
        assert_close(&dense.dx, &naive.dx, "gradient of the input");
        assert_close(&dense.dw, &naive.dw, "gradient of the weights");
        prop_assert_eq!(bits(&dense.y), bits(&sparse.y));
        prop_assert_eq!(bits(&dense.dx), bits(&sparse.dx));
        let held: Vec<f32> = dense.dw.iter().zip(&weights).map(|(dw, w)| if *w == 0.0 { 0.0 } else { *dw }).collect();
        prop_assert_eq!(bits(&held), bits(&sparse.dw));
        for (channel, (mean, variance)) in dense.moments.iter().enumerate() {
            let (naive_mean, naive_variance) = naive.moments(&conv, channel);
            prop_assert!((mean - naive_mean).abs() <= 1e-4 * (1.0 + naive_mean.abs()));
            prop_assert!((variance - naive_variance).abs() <= 1e-4 * (1.0 + naive_variance));
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let input = Planes::new([35, 20, 7, 5]);
    let conv = Conv::new(Shape::new(20, 33, 3, 1), input).unwrap();
    let x = numbers(35 * 20 * 35, 1, 3);
    let weights = numbers(conv.shape.weights(), 2, 2);
    let dy = numbers(35 * 33 * 35, 3, 3);
    let of = |threads: usize, kernel| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let found = pool.install(|| run(&conv, kernel, &x, &weights, &dy));
        let moments = found.moments.iter().map(|(mean, variance)| (mean.to_bits(), variance.to_bits()));
        (bits(&found.y), bits(&found.dx), bits(&found.dw), moments.collect::<Vec<_>>())
    };
    for kernel in [Kernel::Dense, Kernel::Sparse] {
        assert_eq!(of(1, kernel), of(3, kernel));
    }
}

/// Layers so wide that their sums are kept part by part, and planes so large that they are gone through part by part.
#[test]
fn wide_layers_are_the_naive_ones() {
    for (channels, outputs, side, kernel) in [(70, 37, 6, 3), (330, 17, 5, 1), (3, 9, 21, 3), (2, 3, 33, 1)] {
        let input = Planes::new([18, channels, side, side]);
        let conv = Conv::new(Shape::new(channels, outputs, kernel, 1), input).unwrap();
        let x = numbers(18 * channels * input.pixels(), 5, 3);
        let weights = numbers(conv.shape.weights(), 6, 2);
        let dy = numbers(18 * outputs * conv.output().pixels(), 7, 3);
        let naive = Naive::run(&conv, &x, &weights, &dy);
        let dense = run(&conv, Kernel::Dense, &x, &weights, &dy);
        assert_close(&dense.y, &naive.y, "output");
        assert_close(&dense.dx, &naive.dx, "gradient of the input");
        assert_close(&dense.dw, &naive.dw, "gradient of the weights");
        let sparse = run(&conv, Kernel::Sparse, &x, &weights, &dy);
        assert_eq!((bits(&dense.y), bits(&dense.dx)), (bits(&sparse.y), bits(&sparse.dx)));
        let held: Vec<f32> = dense.dw.iter().zip(&weights).map(|(dw, w)| if *w == 0.0 { 0.0 } else { *dw }).collect();
        assert_eq!(bits(&held), bits(&sparse.dw));
    }
}
