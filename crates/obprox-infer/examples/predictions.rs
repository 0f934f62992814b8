//! How fast a network predicts: `predictions FILE BATCH REPEATS [SIDE]` prints the images a second of the fastest of so many
//! batches, dense and with zeros skipped where that pays, as JSON. FILE is ONNX, safetensors or compressed; the threads
//! are those of `RAYON_NUM_THREADS`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use std::hint::black_box;
use std::time::Instant;

use obprox_infer::Model;
use obprox_infer::engine::{Engine, Kernels};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, batch, repeats, ..] = &words[..] else { return Err("predictions FILE BATCH REPEATS [SIDE]".into()) };
    let (batch, repeats): (usize, usize) = (batch.parse()?, repeats.parse()?);
    let model = if file.ends_with(".onnx") { Model::read_onnx(file, None)? } else { Model::read(file)? };
    let size = match (words.get(3), model.network().input_shape()) {
        (Some(side), _) => [side.parse()?; 2],
        (None, &[_, height, width]) => [height, width],
        _ => [1, 1],
    };
    let mut rates = Vec::new();
    for kernels in [Kernels::Dense, Kernels::Auto] {
        let engine = Engine::new(&model, kernels, size)?;
        let images = vec![0.5; batch * engine.shape().iter().product::<usize>()];
        let mut least = f64::INFINITY;
        for _ in 0..repeats {
            let start = Instant::now();
            black_box(engine.run(&images)?);
            least = least.min(start.elapsed().as_secs_f64());
        }
        rates.push(batch as f64 / least);
        if words.get(4).is_some_and(|word| word == "layers") {
            let times = engine.profile(batch > 1, repeats);
            for (layer, seconds) in engine.layers().iter().zip(times) {
                let weights = layer.nonzeros as f64 * (layer.side[0] * layer.side[1]) as f64;
                let (conv, [height, width]) = (layer.conv, layer.side);
                let [rows, columns] = conv.window.kernel;
                eprintln!(
                    "{:40} {:4}→{:4} {rows}×{columns} {height}×{width} {:5.1} % {:8.1} µs {:6.1} GFLOP/s {:?} {:?}",
                    layer.name,
                    conv.inputs,
                    conv.outputs,
                    100.0 * layer.nonzeros as f64 / layer.weights as f64,
                    1e6 * seconds,
                    2e-9 * weights / seconds,
                    layer.single,
                    layer.batch,
                );
            }
        }
    }
    println!("{{\"dense\": {:.3}, \"chosen\": {:.3}}}", rates[0], rates[1]);
    Ok(())
}
