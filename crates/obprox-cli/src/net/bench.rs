//! `obprox net bench`: sparse beside dense execution, in one run.

use std::path::PathBuf;

use clap::Args;
use obprox_infer::engine::{Choice, Engine, Kernels, Layer};
use obprox_infer::{Architecture, DenseSizes, Kind, Model, Pattern};

use super::before_after::fastest;
use crate::failure::Failure;
use crate::flags;
use crate::show::{self, bold, bytes, grid, percent, plural, seconds, tight};

/// Measure sparse against dense execution
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Bench {
    /// A network, compressed or as safetensors [default: one of random weights]
    net: Option<PathBuf>,

    /// The network of random weights: resnet18, mobilenet-v1 or small-cnn
    #[arg(long, alias = "arch", value_name = "NETWORK", default_value = "resnet18", conflicts_with = "net")]
    model: Kind,

    /// Its width; 1 is the paper's
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = flags::positive, conflicts_with = "net")]
    width: f64,

    /// Its densities: shares of weights that are not zero, in random places
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_value = "0.02", value_parser = share, conflicts_with = "net")]
    density: Vec<f64>,

    /// Spread them as training does: more in small layers, more in some channels
    #[arg(long, conflicts_with = "net")]
    uneven: bool,

    /// Sizes of the batches
    #[arg(long, value_name = "SIZES", value_delimiter = ',', default_value = "1,64", value_parser = clap::value_parser!(u16).range(1..))]
    batch: Vec<u16>,

    /// Height and width of the images [default: those that the network names]
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    size: Option<u16>,

    /// Layer by layer: the time of either kernel, for an image alone and for one of a batch; or, given several densities,
    /// the density at which skipping zeros stops to pay
    #[arg(long)]
    layers: bool,

    /// The sizes of its files instead of times
    #[arg(long, conflicts_with_all = ["batch", "size", "layers", "repeats"])]
    sizes: bool,

    /// Runs of each, of which the fastest counts; they take turns
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
  obprox net bench --sizes                                        what its files take
  obprox net bench --density 0.01,0.02,0.05,0.1,0.2,0.5,1         where sparse overtakes dense
  obprox net bench --model mobilenet-v1 --layers --density 0.1,0.2,0.3,0.4,0.5,0.6,0.8,1";

fn share(text: &str) -> Result<f64, String> {
    match flags::number(text)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be between 0 and 1".into()),
    }
}

impl Bench {
    pub fn run(self) -> Result<(), Failure> {
        let threads = crate::threads::start(self.threads)?;
        let models = self.models()?;
        let design = models[0].design();
        if self.sizes {
            return by_size(&models);
        }
        // A size that does not fit is refused before anything is shown.
        self.engine(&models[0], Kernels::Auto)?;
        show::print(&format!(
            "{}\n{}, the fastest of {}\n\n",
            bold(&design.to_string()),
            plural(threads as u64, "thread"),
            plural(self.repeats.into(), "run"),
        ))?;
        if self.layers {
            return self.by_layer(&models);
        }
        self.by_network(&models)
    }

    /// Whole networks: what an image takes with dense kernels, with sparse ones, and with the faster one a layer.
    fn by_network(&self, models: &[Model]) -> Result<(), Failure> {
        let mut rows = Vec::new();
        let mut points = vec![Vec::new(); self.batch.len()];
        for model in models {
            let dense = self.engine(model, Kernels::Dense)?;
            let (sparse, auto) = (self.engine(model, Kernels::Sparse)?, self.engine(model, Kernels::Auto)?);
            let density = density(model);
            for (&batch, points) in self.batch.iter().zip(&mut points) {
                let times = fastest([&dense, &sparse, &auto], batch.into(), self.repeats.into())?;
                let [dense, sparse, auto] = times.map(|time| time / f64::from(batch));
                points.push((density, sparse / dense));
                let mut row = vec![percent(density), batch.to_string()];
                row.extend([dense, sparse, auto].map(seconds));
                row.extend([format!("{:.0}", 1.0 / auto), format!("{:.1}×", dense / auto)]);
                rows.push(row);
            }
        }
        let header = ["density", "batch", "dense/image", "sparse/image", "chosen/image", "images/s", "speed-up"];
        let mut text = tight(grid(header.map(str::to_owned).to_vec(), rows));
        for (batch, points) in self.batch.iter().zip(points) {
            if let Some(density) = crossover(points) {
                text += &format!("\nSkipping zeros pays below a density of {} at batch {batch}.", percent(density));
            }
        }
        show::print(&(text.trim_end().to_owned() + "\n"))
    }

    /// The networks to measure: the one given, or one a density.
    fn models(&self) -> Result<Vec<Model>, Failure> {
        if let Some(path) = &self.net {
            return Ok(vec![Model::read(path)?]);
        }
        let architecture = Architecture::new(self.model).with_width(self.width)?;
        let pattern = if self.uneven { Pattern::Uneven } else { Pattern::Even };
        let model = |&density: &f64| Ok(Model::random_with(architecture, density, pattern, 0)?);
        self.density.iter().map(model).collect()
    }

    fn engine(&self, model: &Model, kernels: Kernels) -> Result<Engine, Failure> {
        let size = match (self.size.map(usize::from), model.network().input_shape()) {
            (Some(side), _) => [side, side],
            (None, &[_, height, width]) => [height, width],
            (None, _) => [1, 1],
        };
        Engine::new(model, kernels, size).map_err(Failure::about("--size"))
    }

    fn by_layer(&self, models: &[Model]) -> Result<(), Failure> {
        let repeats = usize::from(self.repeats);
        let measured: Result<Vec<Measured>, Failure> = models
            .iter()
            .map(|model| {
                let (dense, sparse) = (self.engine(model, Kernels::Dense)?, self.engine(model, Kernels::Sparse)?);
                let times = |engine: &Engine| [false, true].map(|batch| engine.profile(batch, repeats));
                Ok(Measured { dense: times(&dense), sparse: times(&sparse), layers: self.chosen(model)? })
            })
            .collect();
        show::print(&match measured?.as_slice() {
            [one] => by_kernel(one),
            several => by_density(several),
        })
    }

    fn chosen(&self, model: &Model) -> Result<Vec<Layer>, Failure> {
        Ok(self.engine(model, Kernels::Auto)?.layers().to_vec())
    }
}

/// What each network takes on disk.
fn by_size(models: &[Model]) -> Result<(), Failure> {
    let of_dense = |size: usize, dense: usize| format!("{}, 1/{:.1}", bytes(size), dense as f64 / size as f64);
    let rows: Result<Vec<Vec<String>>, Failure> = models
        .iter()
        .map(|model| {
            let (DenseSizes { bytes: dense, zstd }, compressed) = (model.dense_sizes()?, model.to_compressed()?.len());
            Ok(vec![percent(density(model)), bytes(dense), of_dense(zstd, dense), of_dense(compressed, dense)])
        })
        .collect();
    let header = ["density", "dense", "dense, zstd -19", "compressed"].map(str::to_owned).to_vec();
    show::print(&format!("{}\n\n{}", bold(&models[0].design().to_string()), tight(grid(header, rows?))))
}

/// Seconds of each layer for an image: a single one, and one of a batch.
struct Measured {
    dense: [Vec<f64>; 2],
    sparse: [Vec<f64>; 2],
    layers: Vec<Layer>,
}

/// One network: what each layer takes with either kernel, and which one it gets.
fn by_kernel(Measured { dense, sparse, layers }: &Measured) -> String {
    let name = |choice: Choice| if choice == Choice::Sparse { "sparse" } else { "dense" };
    let rows = layers.iter().enumerate().map(|(at, layer)| {
        let mut row = vec![layer.name.clone(), shape(layer), percent(density_of(layer))];
        for (dense, sparse) in dense.iter().zip(sparse) {
            row.extend([seconds(dense[at]), seconds(sparse[at]), format!("{:.1}×", dense[at] / sparse[at])]);
        }
        row.push(match (name(layer.single), name(layer.batch)) {
            (single, batch) if single == batch => single.into(),
            (single, batch) => format!("{single}, {batch}"),
        });
        row
    });
    let header = [
        "layer",
        "shape",
        "density",
        "dense, alone",
        "sparse, alone",
        "gain",
        "dense, batch",
        "sparse, batch",
        "gain",
        "chosen",
    ];
    tight(grid(header.map(str::to_owned).to_vec(), rows.collect()))
}

/// One network at several densities: below which density each layer is better off without its zeros.
fn by_density(measured: &[Measured]) -> String {
    let rows = measured[0].layers.iter().enumerate().map(|(at, layer)| {
        let mut row = vec![layer.name.clone(), shape(layer)];
        for batch in 0..2 {
            let point = |one: &Measured| (density_of(&one.layers[at]), one.sparse[batch][at] / one.dense[batch][at]);
            row.push(crossover(measured.iter().map(point).collect()).map_or("–".into(), percent));
        }
        row
    });
    let header = ["layer", "shape", "crossover, alone", "crossover, batch"];
    tight(grid(header.map(str::to_owned).to_vec(), rows.collect()))
}

fn density(model: &Model) -> f64 {
    let (nonzeros, weights) = model.density();
    nonzeros as f64 / weights as f64
}

fn density_of(layer: &Layer) -> f64 {
    layer.nonzeros as f64 / layer.weights as f64
}

fn shape(layer: &Layer) -> String {
    let conv = layer.conv;
    let kind = if conv.groups > 1 { " depthwise" } else { "" };
    let ([height, width], [rows, columns]) = (layer.side, conv.window.kernel);
    format!("{}→{}, {rows}×{columns}{kind}, {height}×{width}", conv.inputs, conv.outputs)
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
