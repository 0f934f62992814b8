//! Normalisations and pools against plain sums in f64 and finite differences.

mod common;

use common::{assert_close, numbers};
use obprox_kernels::{
    Affine, Gate, Planes, channel_means, channel_means_gradient, max_pool, max_pool_gradient, normalise,
    normalise_gradient, pooled, statistics,
};
use proptest::prelude::*;

fn framed(planes: &Planes, images: &[f32]) -> Vec<f32> {
    let mut out = vec![f32::NAN; planes.floats()];
    planes.gather(images, &mut out);
    out
}

fn images(planes: &Planes, framed: &[f32]) -> Vec<f32> {
    let mut out = vec![0.0; planes.images * planes.channels * planes.pixels()];
    planes.scatter(framed, &mut out);
    out
}

/// Nothing but the images is anything but zero.
fn assert_clean(planes: &Planes, framed: &[f32]) {
    let count = |values: &[f32]| values.iter().filter(|value| **value != 0.0).count();
    assert_eq!(count(framed), count(&images(planes, framed)), "{planes:?}");
}

/// A batch normalisation in f64: what goes in, and the loss Σ weigh·y.
struct Naive<'a> {
    planes: Planes,
    gamma: &'a [f32],
    beta: &'a [f32],
    residual: Option<&'a [f32]>,
    rectify: bool,
}

const EPSILON: f64 = 1e-5;

impl Naive<'_> {
    fn output(&self, x: &[f64]) -> Vec<f64> {
        let (pixels, channels) = (self.planes.pixels(), self.planes.channels);
        let channel = |at: usize| at / pixels % channels;
        let mut out = vec![0.0; x.len()];
        for number in 0..channels {
            let of = |at: &usize| channel(*at) == number;
            let all: Vec<usize> = (0..x.len()).filter(of).collect();
            let mean = all.iter().map(|&at| x[at]).sum::<f64>() / all.len() as f64;
            let variance = all.iter().map(|&at| (x[at] - mean).powi(2)).sum::<f64>() / all.len() as f64;
            for at in all {
                let more = self.residual.map_or(0.0, |residual| f64::from(residual[at]));
                let scaled = (x[at] - mean) / (variance + EPSILON).sqrt();
                let y = f64::from(self.gamma[number]) * scaled + f64::from(self.beta[number]) + more;
                out[at] = if self.rectify { y.max(0.0) } else { y };
            }
        }
        out
    }

    fn loss(&self, x: &[f64], weigh: &[f32]) -> f64 {
        self.output(x).iter().zip(weigh).map(|(y, weigh)| y * f64::from(*weigh)).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn normalisations_are_the_naive_ones(
        shape in (2usize..35, 1usize..4, 1usize..6, 1usize..6),
        rectify: bool,
        with_residual: bool,
        seed: u64,
    ) {
        let planes = Planes::new([shape.0, shape.1, shape.2, shape.3]);
        let count = planes.images * planes.channels * planes.pixels();
        let some = |salt: u64, count: usize| numbers(count, seed ^ salt, 3);
        // A mean far from zero must not eat up the variance.
        let x: Vec<f32> = some(1, count).iter().map(|value| value + 20.0).collect();
        let (residual, weigh) = (some(2, count), some(3, count));
        let (gamma, beta) = (some(4, planes.channels), some(5, planes.channels));
        let residual = with_residual.then_some(&residual[..]);
        let naive = Naive { planes, gamma: &gamma, beta: &beta, residual, rectify };
        let wide: Vec<f64> = x.iter().map(|value| f64::from(*value)).collect();

        let x_planes = framed(&planes, &x);
        let affine = Affine::new(&statistics(&planes, &x_planes), &gamma, &beta, EPSILON);
        let mut out = vec![f32::NAN; planes.floats()];
        let residual_planes = residual.map(|residual| framed(&planes, residual));
        normalise(&planes, &x_planes, &affine, residual_planes.as_deref(), rectify, &mut out);
        let expected: Vec<f32> = naive.output(&wide).iter().map(|value| *value as f32).collect();
        for (found, expected) in images(&planes, &out).iter().zip(&expected) {
            prop_assert!((found - expected).abs() < 2e-3, "{found} for {expected}");
        }

        let mut dy = framed(&planes, &weigh);
        let mut dx = vec![f32::NAN; planes.floats()];
        let gate = match (rectify, with_residual) {
            (false, _) => Gate::Open,
            (true, false) => Gate::Normalised,
            (true, true) => Gate::Output(&out),
        };
        let [dgamma, dbeta] =
            normalise_gradient(&planes, &x_planes, &affine, gate, &mut dy, with_residual.then_some(&mut dx[..]));
        let dx = if with_residual { &dx } else { &dy };
        assert_clean(&planes, dx);
        let found = images(&planes, dx);
        for at in (0..count).step_by(count / 7 + 1) {
            let moved = |by: f64| {
                let mut x = wide.clone();
                x[at] += by;
                naive.loss(&x, &weigh)
            };
            let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            prop_assert!((f64::from(found[at]) - difference).abs() < 2e-2 * (1.0 + difference.abs()),
                "{} for {difference}", found[at]);
        }
        // γ and β move the output along x̂ and 1, and a residual moves it as it is.
        let through: Vec<f64> = naive.output(&wide).iter().zip(&weigh)
            .map(|(y, weigh)| if rectify && *y <= 0.0 { 0.0 } else { f64::from(*weigh) }).collect();
        for channel in 0..planes.channels {
            let of = |at: usize| at / planes.pixels() % planes.channels == channel;
            let flat: f64 = (0..count).filter(|&at| of(at)).map(|at| through[at]).sum();
            prop_assert!((f64::from(dbeta[channel]) - flat).abs() < 1e-3 * (1.0 + flat.abs()));
            let one = [1.0].repeat(planes.channels);
            let plain = Naive { gamma: &one, beta: &vec![0.0; planes.channels], residual: None, rectify: false, ..naive };
            let tilted: f64 = plain.output(&wide).iter().zip(&through).enumerate()
                .filter(|(at, _)| of(*at)).map(|(_, (scaled, dy))| scaled * dy).sum();
            prop_assert!((f64::from(dgamma[channel]) - tilted).abs() < 1e-2 * (1.0 + tilted.abs()));
        }
        if with_residual {
            let found = images(&planes, &dy);
            prop_assert!(found.iter().zip(&through).all(|(found, through)| f64::from(*found) == *through));
        }
    }

    #[test]
    fn pools_are_the_naive_ones(shape in (1usize..35, 1usize..4, 2usize..9, 2usize..9), size in 1usize..3, seed: u64) {
        let planes = Planes::new([shape.0, shape.1, shape.2, shape.3]);
        let small = pooled(&planes, size);
        let x = numbers(planes.images * planes.channels * planes.pixels(), seed, 3);
        let weigh = numbers(small.images * small.channels * small.pixels(), seed ^ 1, 3);
        let (mut y, mut expected_dx) = (Vec::new(), vec![0.0f32; x.len()]);
        for (out, weigh) in weigh.iter().enumerate() {
            let (plane, row, column) = (out / small.pixels(), out % small.pixels() / small.width, out % small.width);
            let at = |number: usize| {
                let (down, right) = (number / size, number % size);
                plane * planes.pixels() + (row * size + down) * planes.width + column * size + right
            };
            let best = (0..size * size).rev().max_by(|a, b| x[at(*a)].total_cmp(&x[at(*b)])).unwrap();
            y.push(x[at(best)]);
            expected_dx[at(best)] += weigh;
        }
        let x_planes = framed(&planes, &x);
        let mut out = vec![f32::NAN; small.floats()];
        max_pool(&planes, size, &x_planes, &mut out);
        prop_assert_eq!(&images(&small, &out), &y);
        let mut dx = vec![f32::NAN; planes.floats()];
        max_pool_gradient(&planes, size, &x_planes, &out, &framed(&small, &weigh), &mut dx);
        assert_clean(&planes, &dx);
        prop_assert_eq!(&images(&planes, &dx), &expected_dx);

        let means: Vec<f32> = x.chunks_exact(planes.pixels()).map(|of| of.iter().sum::<f32>() / of.len() as f32).collect();
        assert_close(&channel_means(&planes, &x_planes), &means, "means");
        channel_means_gradient(&planes, &means, &mut dx);
        assert_clean(&planes, &dx);
        let each: Vec<f32> = means.iter().flat_map(|mean| [mean / planes.pixels() as f32].repeat(planes.pixels())).collect();
        assert_close(&images(&planes, &dx), &each, "gradient of means");
    }
}

#[test]
fn nan_goes_through() {
    let planes = Planes::new([2, 1, 2, 2]);
    let x = framed(&planes, &[f32::NAN, 1.0, 2.0, 3.0, 1.0, 1.0, f32::NAN, 0.0]);
    let affine = Affine::new(&[(0.0, 1.0)], &[1.0], &[0.0], 0.0);
    let mut out = vec![0.0; planes.floats()];
    normalise(&planes, &x, &affine, None, true, &mut out);
    let found = images(&planes, &out);
    assert!(found[0].is_nan() && found[6].is_nan() && found[1] == 1.0);
    let small = pooled(&planes, 2);
    let mut out = vec![0.0; small.floats()];
    max_pool(&planes, 2, &x, &mut out);
    assert!(images(&small, &out).iter().all(|value| value.is_nan()));
}
