//! How large the files of a network are: `sizes FILE…` prints a row for each, ONNX, safetensors or compressed, and for its
//! weights as they are, as bf16 and as int8: the dense file, what `zstd -19` makes of it, and ours, in kB.

#![allow(clippy::print_stdout, reason = "a measurement prints its figures")]

use obprox_infer::{Model, Values};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!(
        "| network | values | density | dense | zstd -19 | compressed | of zstd's |\n|---|---|---|---|---|---|---|"
    );
    for file in std::env::args().skip(1) {
        let model = if file.ends_with(".onnx") { Model::read_onnx(&file, None)? } else { Model::read(&file)? };
        for values in Values::ALL {
            let model = model.rounded(values)?;
            let (sizes, compressed) = (model.dense_sizes()?, model.to_compressed()?.len());
            let (nonzeros, all) = model.density();
            let kilo = |bytes: usize| bytes as f64 / 1e3;
            println!(
                "| {} | {values} | {:.1} % | {:.1} | {:.1} | {:.1} | {:.3} |",
                std::path::Path::new(&file).file_stem().unwrap_or_default().display(),
                100.0 * nonzeros as f64 / all as f64,
                kilo(sizes.bytes),
                kilo(sizes.zstd),
                kilo(compressed),
                compressed as f64 / sizes.zstd as f64,
            );
        }
    }
    Ok(())
}
