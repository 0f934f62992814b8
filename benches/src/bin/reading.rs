//! How fast a LIBSVM file is read: best of several, in seconds, one line for each number of threads.
//!
//! `reading.py` runs this beside scikit-learn's reader.

include!("../say.rs");

use std::time::Instant;

use obprox::data::{ReadOptions, read};

fn main() {
    let file = std::env::args().nth(1).expect("usage: reading FILE");
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        let best = pool.install(|| {
            let once = |_| {
                let begun = Instant::now();
                let data = read(&file, &ReadOptions::default()).expect("a readable file");
                std::hint::black_box(data);
                begun.elapsed().as_secs_f64()
            };
            (0..7).map(once).fold(f64::INFINITY, f64::min)
        });
        say!("{threads} {best}");
    }
}
