//! `obprox net compress`: safetensors → a small file without zeros.

use std::path::PathBuf;

use clap::Args;
use obprox_infer::images::Data;
use obprox_infer::{Channels, DenseSizes, Model, Values};

use super::before_after::BeforeAfter;
use super::images::ImageFlags;
use super::values::{MeasureFlags, ValueFlags, accuracy, difference};
use crate::destination::{check_distinct, check_file};
use crate::failure::Failure;
use crate::show::{self, bold, grid, pairs, percent, tight};
use crate::watch;

/// Write a trained network as a small file without its zeros
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Compress {
    /// A network as safetensors, written here or by PyTorch, or one that is compressed already
    net: PathBuf,

    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Keep channels that cannot change the output: every parameter stays what it is, to the bit
    #[arg(long)]
    keep_channels: bool,

    /// Names of the classes, with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    labels: Option<Vec<String>>,

    /// A table of the layers: density, channels
    #[arg(long)]
    layers: bool,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    values: ValueFlags,

    #[command(flatten)]
    measure: MeasureFlags,

    #[command(flatten)]
    images: ImageFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox net compress model.safetensors --out net.obz
  obprox net compress from-pytorch.safetensors --out net.obz --normalize imagenet
  obprox net compress model.safetensors --out net.obz --normalize 0.286/0.353 --size 28
  obprox net compress model.safetensors --out net.obz --values int8 --data fashion-mnist/";

impl Compress {
    pub fn run(self) -> Result<(), Failure> {
        check_file("--out", &self.out)?;
        check_distinct(&[("NET", Some(&self.net)), ("--out", Some(&self.out))])?;
        let model = self.described(Model::read(&self.net)?)?;
        let data = self.measure.read(&self.net, &model, self.quiet)?;
        let name = self.net.display().to_string();
        let waiting = watch::waiting(format!("compressing {name}"), self.quiet);
        let rounded = model.rounded(self.values.values)?;
        let (small, channels) = match self.keep_channels {
            true => (rounded, Vec::new()),
            false => rounded.without_dead_channels().map_err(Failure::about(&name))?,
        };
        let size = small.write_compressed(&self.out)?;
        drop(waiting);
        if self.quiet {
            return Ok(());
        }
        self.report(&model, &small, &channels, size as usize, data.as_ref())
    }

    /// The network with what the flags say of its images.
    fn described(&self, model: Model) -> Result<Model, Failure> {
        let channels = model.channels();
        let (design, weights, mut training) = model.into_parts();
        let known = training.preprocessing.take();
        training.preprocessing = Some(self.images.of_file(&self.net, known, channels)?);
        if let Some(labels) = &self.labels {
            training.labels.clone_from(labels);
        }
        Model::new(design, weights, training).map_err(Failure::about(&self.net.display().to_string()))
    }

    fn report(
        &self,
        model: &Model,
        small: &Model,
        channels: &[Channels],
        size: usize,
        data: Option<&Data>,
    ) -> Result<(), Failure> {
        let mut rows = vec![("network", model.design().to_string())];
        if !channels.is_empty() {
            let (cleared, total) =
                channels.iter().fold((0, 0), |(cleared, total), layer| (cleared + layer.cleared, total + layer.total));
            rows.push(("channels", format!("{cleared} of {total} removed: the output cannot tell")));
        }
        if self.values.values != Values::F32 {
            rows.push(("values", format!("{}: {}", self.values.values, difference(model, small)?)));
        }
        // What predicts from the file leaves dead channels out.
        let mut table = BeforeAfter::new(model, &small.cut()?)?;
        {
            let _waiting = watch::waiting("comparing with zstd".into(), false);
            let DenseSizes { bytes, zstd } = model.dense_sizes()?;
            table.size("file: safetensors", bytes, size);
            table.size("file: its zstd -19", zstd, size);
        }
        if let (Some(data), Some(preprocessing)) = (data, &model.training().preprocessing) {
            let [before, after] = [model, small].map(|model| accuracy(model, preprocessing, data));
            table.share("accuracy", before?, after?);
        }
        table.times(model, small)?;
        let mut text = format!("{}\n{}\n{}", bold(&self.out.display().to_string()), pairs(rows), table.text());
        if self.layers {
            text += "\n";
            text += &layer_table(small, channels);
        }
        show::print(&text)
    }
}

fn layer_table(model: &Model, channels: &[Channels]) -> String {
    let header = ["layer", "weights", "nonzero", "density", "channels"].map(str::to_owned).to_vec();
    let rows = model.weight_names().filter_map(|name| {
        let tensor = model.weights().get(name)?;
        let layer = name.trim_end_matches(".weight");
        let known = channels.iter().find(|channels| channels.layer == layer);
        let kept = known.map_or(String::new(), |known| format!("{} of {}", known.total - known.cleared, known.total));
        let density = percent(tensor.nnz() as f64 / tensor.len() as f64);
        Some(vec![layer.to_owned(), tensor.len().to_string(), tensor.nnz().to_string(), density, kept])
    });
    tight(grid(header, rows.collect()))
}
