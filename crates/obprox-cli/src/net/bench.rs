//! `obprox net bench`: sparse beside dense execution, in one run.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use obprox_infer::engine::{Choice, Engine, Kernels, Layer};
use obprox_infer::{Architecture, Kind, Model};

use crate::failure::Failure;
use crate::flags::{self, start_threads};
use crate::show::{self, bold, grid, percent, plural, seconds, tight};

/// Measure sparse against dense execution
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Bench {
    /// A network, compressed or as safetensors [default: one of random weights]
    net: Option<PathBuf>,

    /// The network of random weights: resnet18, mobilenet-v1 or small-cnn
    #[arg(long, value_name = "NAME", default_value = "resnet18", conflicts_with = "net")]
    arch: Kind,

    /// Its width; 1 is the paper's
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = flags::positive, conflicts_with = "net")]
    width: f64,

    /// Its densities: shares of weights that are not zero, in random places
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0.02", value_parser = density, conflicts_with = "net")]
    density: Vec<f64>,

    /// Sizes of the batches
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "1,64", value_parser = clap::value_parser!(u16).range(1..))]
    batch: Vec<u16>,

    /// Height and width of the images
    #[arg(long, value_name = "PIXELS", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1024))]
    size: u16,

    /// Layer by layer: the time of either kernel, and the density at which skipping zeros stops to pay
    #[arg(long)]
    layers: bool,

    /// Runs of each, of which the fastest counts; the two take turns
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    repeats: u16,

    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

const EXAMPLES: &str = "\
Examples:
  obprox net bench                                                ResNet18 of random weights, 2 % of them not zero
  obprox net bench net.obz                                        your network, dense and as it is
  obprox net bench --density 0.01,0.02,0.05,0.1,0.2,0.5,1         where sparse overtakes dense
  obprox net bench --arch mobilenet-v1 --layers --density 0.1,0.2,0.3,0.4,0.5,0.6,0.8,1";

fn density(text: &str) -> Result<f64, String> {
    match flags::number(text)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be between 0 and 1".into()),
    }
}

impl Bench {
    pub fn run(self) -> Result<(), Failure> {
        let threads = start_threads(self.threads)?;
        let models = self.models()?;
        let architecture = models[0].architecture();
        show::print(&format!(
            "{}\n{}, the fastest of {}\n\n",
            bold(&architecture.to_string()),
            plural(threads as u64, "thread"),
            plural(self.repeats.into(), "run"),
        ))?;
        if self.layers {
            return self.by_layer(&models);
        }
        let mut rows = Vec::new();
        for model in &models {
            let (dense, auto) = (self.engine(model, Kernels::Dense)?, self.engine(model, Kernels::Auto)?);
            let (nonzeros, weights) = weights_of(dense.layers());
            for &batch in &self.batch {
                let times = self.race(&[&dense, &auto], batch.into())?;
                let [dense, auto] = [times[0], times[1]].map(|time| time / f64::from(batch));
                rows.push(vec![
                    percent(nonzeros as f64 / weights as f64),
                    batch.to_string(),
                    seconds(dense),
                    seconds(auto),
                    format!("{:.0}", 1.0 / auto),
                    format!("{:.1}×", dense / auto),
                ]);
            }
        }
        let header = ["density", "batch", "dense/image", "sparse/image", "images/s", "speed-up"];
        show::print(&tight(grid(header.map(str::to_owned).to_vec(), rows)))
    }

    /// The networks to measure: the one given, or one a density.
    fn models(&self) -> Result<Vec<Model>, Failure> {
        if let Some(path) = &self.net {
            return Ok(vec![Model::read(path)?]);
        }
        let architecture = Architecture::new(self.arch).with_width(self.width)?;
        self.density.iter().map(|&density| Ok(Model::random(architecture, density, 0)?)).collect()
    }

    fn engine(&self, model: &Model, kernels: Kernels) -> Result<Engine, Failure> {
        let side = usize::from(self.size);
        Engine::new(model, kernels, [side, side]).map_err(Failure::about("--size"))
    }

    /// The shortest time of each engine for a batch, in seconds.
    fn race(&self, engines: &[&Engine], batch: usize) -> Result<Vec<f64>, Failure> {
        let images = vec![0.5; batch * engines[0].shape().iter().product::<usize>()];
        let mut shortest = vec![f64::INFINITY; engines.len()];
        for _ in 0..self.repeats {
            for (engine, shortest) in engines.iter().zip(&mut shortest) {
                // The first run after another engine's finds the caches cold, which is not what is asked.
                for _ in 0..2 {
                    let start = Instant::now();
                    black_box(engine.run(&images)?);
                    *shortest = shortest.min(start.elapsed().as_secs_f64());
                }
            }
        }
        Ok(shortest)
    }

    fn by_layer(&self, models: &[Model]) -> Result<(), Failure> {
        let repeats = usize::from(self.repeats);
        let measured: Result<Vec<Measured>, Failure> = models
            .iter()
            .map(|model| {
                let (dense, sparse) = (self.engine(model, Kernels::Dense)?, self.engine(model, Kernels::Sparse)?);
                let times = |engine: &Engine| [false, true].map(|side_by_side| engine.profile(side_by_side, repeats));
                Ok(Measured { dense: times(&dense), sparse: times(&sparse), layers: self.chosen(model)? })
            })
            .collect();
        let measured = measured?;
        let mut rows = Vec::new();
        for (at, layer) in measured[0].layers.iter().enumerate() {
            let mut row = vec![layer.name.clone(), shape(layer)];
            for batch in 0..2 {
                let point = |measured: &Measured| {
                    let layer = &measured.layers[at];
                    let density = layer.nonzeros as f64 / layer.weights as f64;
                    (density, measured.sparse[batch][at] / measured.dense[batch][at])
                };
                let points: Vec<(f64, f64)> = measured.iter().map(point).collect();
                row.push(seconds(measured[0].dense[batch][at] / [1.0, 8.0][batch]));
                row.push(match points.len() {
                    1 => format!("{:.1}×", 1.0 / points[0].1),
                    _ => crossover(points).map_or("–".into(), percent),
                });
                let choice = [layer.single, layer.lanes][batch];
                row.push(if choice == Choice::Sparse { "sparse" } else { "dense" }.into());
            }
            rows.push(row);
        }
        let gain = if models.len() == 1 { "speed-up" } else { "crossover" };
        let header = ["layer", "shape", "dense, 1", gain, "chosen", "dense, 8", gain, "chosen"];
        show::print(&tight(grid(header.map(str::to_owned).to_vec(), rows)))
    }

    fn chosen(&self, model: &Model) -> Result<Vec<Layer>, Failure> {
        Ok(self.engine(model, Kernels::Auto)?.layers().to_vec())
    }
}

/// Seconds of each layer, of a single image and of eight side by side.
struct Measured {
    dense: [Vec<f64>; 2],
    sparse: [Vec<f64>; 2],
    layers: Vec<Layer>,
}

fn weights_of(layers: &[Layer]) -> (usize, usize) {
    layers.iter().fold((0, 0), |(nonzeros, weights), layer| (nonzeros + layer.nonzeros, weights + layer.weights))
}

fn shape(layer: &Layer) -> String {
    let conv = layer.conv;
    let kind = if conv.groups > 1 { " depthwise" } else { "" };
    let [height, width] = layer.side;
    format!("{}→{}, {}×{}{kind}, {height}×{width}", conv.inputs, conv.outputs, conv.kernel, conv.kernel)
}

/// The density where the ratio of sparse to dense time passes 1, between two that were measured.
fn crossover(mut points: Vec<(f64, f64)>) -> Option<f64> {
    points.sort_by(|one, two| one.0.total_cmp(&two.0));
    let pair = points.windows(2).find(|pair| pair[0].1 < 1.0 && pair[1].1 >= 1.0)?;
    let ((low, before), (high, after)) = (pair[0], pair[1]);
    Some(low + (high - low) * (1.0 - before) / (after - before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crossovers_lie_between_measurements() {
        let crossing = crossover(vec![(0.4, 1.5), (0.2, 0.5), (0.1, 0.3)]).unwrap();
        assert!((crossing - 0.3).abs() < 1e-12);
        assert_eq!(crossover(vec![(0.1, 0.3), (1.0, 0.9)]), None);
    }
}
