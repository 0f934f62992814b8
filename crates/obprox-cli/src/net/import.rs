//! `obprox net import`: ONNX → a network that obprox serves.

use std::path::PathBuf;

use clap::Args;
use obprox_infer::{Model, Training, Values};

use super::images::ImageFlags;
use super::values::{MeasureFlags, ValueFlags, accuracy, difference};
use crate::destination::{check_distinct, check_file};
use crate::failure::Failure;
use crate::show::{self, bold, bytes, percent};

/// Read an ONNX file and write it as a compressed network
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Import {
    /// A network as ONNX, from any framework that writes it
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
  obprox net import model.onnx --out net.obz --normalize imagenet
  obprox net import model.onnx --out net.obz --size 224            where the file leaves the size of images open
  obprox net infer net.obz cat.jpg --top 5

What cannot be computed here is refused by the name of the operation.";

impl Import {
    pub fn run(self) -> Result<(), Failure> {
        check_file("--out", &self.out)?;
        check_distinct(&[("NET", Some(&self.net)), ("--out", Some(&self.out))])?;
        let name = self.net.display().to_string();
        let model = Model::read_onnx(&self.net, self.images.side().map(|side| [side, side]))?;
        let model = self.described(model)?;
        let data = self.measure.read(&self.net, &model, self.quiet)?;
        let rounded = model.rounded(self.values.values)?;
        let small = match self.keep_channels {
            true => rounded,
            false => rounded.without_dead_channels().map_err(Failure::about(&name))?.0,
        };
        let size = small.write_compressed(&self.out)?;
        if self.quiet {
            return Ok(());
        }
        let out = bold(&self.out.display().to_string());
        let mut text = format!("{out}: {}, {}\n", small.design(), bytes(size as usize));
        if self.values.values != Values::F32 {
            text += &format!("{}: {}\n", self.values.values, difference(&model, &small)?);
        }
        if let (Some(data), Some(preprocessing)) = (data, &model.training().preprocessing) {
            let (before, after) = (accuracy(&model, preprocessing, &data)?, accuracy(&small, preprocessing, &data)?);
            text += &format!("accuracy: {} as it was, {} in the file\n", percent(before), percent(after));
        }
        show::print(&text)
    }

    /// The network with what the flags say of its images; they need not, of one that is not served from here.
    fn described(&self, model: Model) -> Result<Model, Failure> {
        let shape = model.network().input_shape().to_vec();
        let (design, weights, training) = model.into_parts();
        let Training { preprocessing, labels } = training;
        let preprocessing = match (self.images.is_given(), &shape[..]) {
            (true, &[channels, height, width]) => {
                let mut given = self.images.of_file(&self.net, preprocessing, channels)?;
                if self.images.side().is_none() {
                    (given.height, given.width) = (height, width);
                }
                Some(given)
            }
            _ => preprocessing,
        };
        let labels = self.labels.clone().unwrap_or(labels);
        let name = self.net.display().to_string();
        Model::new(design, weights, Training { preprocessing, labels }).map_err(Failure::about(&name))
    }
}
