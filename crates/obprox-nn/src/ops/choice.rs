//! Whether a layer multiplies all its weights or leaves the zeros out: what took less time lately.
//!
//! Both give the same bits, so the clock decides nothing but the time. What a layer takes is remembered for its sizes:
//! with all weights in seconds, with a list in seconds a weight.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Instant;

use obprox_kernels::{Conv, Kernel};

/// What is computed of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    Forward,
    InputGradient,
    WeightGradient,
}

/// What a layer took.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    dense: Option<f64>,
    /// For one weight.
    sparse: Option<f64>,
}

static TAKEN: Mutex<Option<HashMap<(Conv, Part), Taken>>> = Mutex::new(None);

/// Above this density a list has never won; below it, it is tried.
const TRIED_BELOW: f64 = 0.5;
/// Below this density all weights are not even tried.
const CLEAR: f64 = 0.05;
/// A time that was once reached is believed a little less every time it is not.
const FADING: f64 = 1.05;

/// Runs a part of a layer by the kernel that took less, and remembers what it takes.
pub fn run<R>(conv: &Conv, part: Part, nonzero: usize, work: impl FnOnce(Kernel) -> R) -> R {
    let kernel = choose(conv, part, nonzero);
    let begun = Instant::now();
    let result = work(kernel);
    remember(conv, part, kernel, nonzero, begun.elapsed().as_secs_f64());
    result
}

fn choose(conv: &Conv, part: Part, nonzero: usize) -> Kernel {
    let density = nonzero as f64 / conv.shape.weights().max(1) as f64;
    if density > TRIED_BELOW {
        return Kernel::Dense;
    }
    let taken = TAKEN.lock().ok().and_then(|taken| taken.as_ref()?.get(&(*conv, part)).copied()).unwrap_or_default();
    match (taken.dense, taken.sparse) {
        (Some(dense), Some(sparse)) if sparse * nonzero as f64 > dense => Kernel::Dense,
        (None, Some(_)) if density > CLEAR => Kernel::Dense,
        _ => Kernel::Sparse,
    }
}

fn remember(conv: &Conv, part: Part, kernel: Kernel, nonzero: usize, seconds: f64) {
    let Ok(mut all) = TAKEN.lock() else { return };
    let taken = all.get_or_insert_default().entry((*conv, part)).or_default();
    let (kept, seconds) = match kernel {
        Kernel::Dense => (&mut taken.dense, seconds),
        Kernel::Sparse => (&mut taken.sparse, seconds / nonzero.max(1) as f64),
    };
    *kept = Some(kept.map_or(seconds, |before| seconds.min(before * FADING)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use obprox_kernels::{Planes, Shape};

    #[test]
    fn the_faster_one_is_chosen() {
        // Sizes that no other test has.
        let input = Planes::new([7, 10, 5, 3]);
        let conv = Conv::new(Shape::new(10, 100, 1, 1), input).unwrap();
        let part = Part::Forward;
        assert_eq!(choose(&conv, part, 900), Kernel::Dense);
        assert_eq!(choose(&conv, part, 300), Kernel::Sparse, "tried once");
        remember(&conv, part, Kernel::Sparse, 300, 3.0);
        assert_eq!(choose(&conv, part, 300), Kernel::Dense, "the other one is tried too");
        remember(&conv, part, Kernel::Dense, 300, 2.0);
        assert_eq!(choose(&conv, part, 300), Kernel::Dense);
        assert_eq!(choose(&conv, part, 100), Kernel::Sparse);
    }
}
