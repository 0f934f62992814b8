//! `obprox net infer`: a network and images → one class a line.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use obprox::output::write_whole;
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::images::{self, Images, Preprocessing};
use obprox_infer::{Model, Training};

use crate::destination::{Destination, check_distinct, check_file};
use crate::failure::Failure;
use crate::show::{self, percent, plural, seconds};

/// Predict the classes of images
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Infer {
    /// A network that obprox net compress wrote; safetensors that tell of their images do too
    net: PathBuf,

    /// PNG and JPEG pictures, idx and CIFAR-10 files, folders of class-named folders; compressed or not
    #[arg(required = true)]
    inputs: Vec<PathBuf>,

    /// Where to write the predictions [default: standard output]
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(OsString))]
    out: Option<OsString>,

    /// So many of the likeliest classes
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    top: u16,

    /// Images that are prepared and predicted at a time
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..))]
    batch: u16,

    /// Multiply every weight, zero or not
    #[arg(long)]
    dense: bool,

    /// Threads [default: one a core]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Say nothing but predictions and errors
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  obprox net infer net.obz cat.png dog.jpg --top 3
  obprox net infer net.obz t10k-images-idx3-ubyte.gz --out classes.txt
  obprox net infer net.obz test_batch.bin | cut -f 2

A line has the image, and for each of the likeliest classes its name and probability, with tabs between. Where the
images come with labels, the share that is right is shown.";

/// Images under the name of their file.
struct Source {
    name: String,
    images: Images,
    /// A file of one picture: its lines need no number.
    single: bool,
}

impl Infer {
    pub fn run(self) -> Result<(), Failure> {
        let out = self.out.clone().map_or(Destination::Stdout, Destination::from);
        if let Destination::File(path) = &out {
            check_file("--out", path)?;
            for (name, input) in [("NET", &self.net)].into_iter().chain(self.inputs.iter().map(|path| ("INPUT", path)))
            {
                check_distinct(&[(name, Some(input)), ("--out", Some(path))])?;
            }
        }
        crate::threads::start(self.threads)?;
        let model = Model::read(&self.net)?;
        let name = self.net.display().to_string();
        let Training { preprocessing, labels } = model.training().clone();
        let preprocessing = preprocessing.ok_or_else(|| {
            Failure::input(format!("{name}: does not tell how its images were normalised; obprox net compress adds it"))
        })?;
        let kernels = if self.dense { Kernels::Dense } else { Kernels::Auto };
        let size = [preprocessing.height, preprocessing.width];
        let engine = Engine::new(&model, kernels, size).map_err(Failure::about(&name))?;
        if engine.outputs() != model.classes() {
            let shape = engine.output_shape();
            return Err(Failure::input(format!("{name}: gives {shape:?} numbers an image, and no scores of classes")));
        }
        let sources: Result<Vec<Source>, Failure> =
            self.inputs.iter().map(|path| read(path, &preprocessing, &labels)).collect();
        let sources = sources?;

        let mut tally = Tally::default();
        let mut write = |out: &mut dyn Write| -> Result<(), Failure> {
            for source in &sources {
                self.predict(&engine, &preprocessing, &labels, source, &mut tally, out)?;
            }
            Ok(())
        };
        match &out {
            Destination::File(path) => {
                let mut lines = Vec::new();
                write(&mut lines)?;
                write_whole(path, |out| out.write_all(&lines))?;
            }
            Destination::Stdout => {
                let mut out = BufWriter::new(io::stdout().lock());
                write(&mut out)?;
                out.flush().map_err(show::stdout_failure)?;
            }
        }
        self.summary(&tally);
        Ok(())
    }

    fn predict(
        &self,
        engine: &Engine,
        preprocessing: &Preprocessing,
        labels: &[String],
        source: &Source,
        tally: &mut Tally,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let Source { name, images, single } = source;
        for first in (0..images.len()).step_by(self.batch.into()) {
            let batch = images.slice(first, self.batch.into());
            let prepared = preprocessing.apply(&batch).map_err(Failure::about(name))?;
            let start = Instant::now();
            let scores = engine.run(&prepared).map_err(Failure::about(name))?;
            tally.seconds += start.elapsed().as_secs_f64();
            for (at, scores) in scores.chunks_exact(engine.outputs()).enumerate() {
                let best = likeliest(scores, self.top.into());
                tally.count(best[0].0, batch.labels().map(|labels| labels[at]));
                let number = if *single { String::new() } else { format!(":{}", first + at) };
                let classes: String = best
                    .iter()
                    .map(|&(class, probability)| match labels.get(class) {
                        Some(label) => format!("\t{label}\t{probability:.4}"),
                        None => format!("\t{class}\t{probability:.4}"),
                    })
                    .collect();
                writeln!(out, "{name}{number}{classes}").map_err(show::stdout_failure)?;
            }
        }
        Ok(())
    }

    fn summary(&self, tally: &Tally) {
        if tally.images > 1 || tally.labelled > 0 {
            let rate = tally.images as f64 / tally.seconds;
            let images = plural(tally.images, "image");
            show::note(&format!("{images} in {}: {rate:.0} a second", seconds(tally.seconds)), self.quiet);
        }
        if tally.labelled > 0 {
            let (right, labelled) = (tally.right, tally.labelled);
            let share = percent(right as f64 / labelled as f64);
            show::note(&format!("{right} of {labelled} right: accuracy {share}"), self.quiet);
        }
    }
}

#[derive(Default)]
struct Tally {
    images: u64,
    labelled: u64,
    right: u64,
    seconds: f64,
}

impl Tally {
    fn count(&mut self, class: usize, label: Option<u32>) {
        self.images += 1;
        self.labelled += u64::from(label.is_some());
        self.right += u64::from(label == Some(class as u32));
    }
}

fn read(path: &Path, preprocessing: &Preprocessing, labels: &[String]) -> Result<Source, Failure> {
    let name = path.display().to_string();
    if !path.is_dir() {
        let images = images::read(path)?;
        let single = images.len() == 1 && images.labels().is_none();
        return Ok(Source { name, images, single });
    }
    let folder = images::read_folder(path, preprocessing.shape())?;
    // A folder's classes are counted in its own order; the network knows them by name.
    let known = |class: &String| labels.iter().position(|label| label == class).map(|at| at as u32);
    let numbers: Option<Vec<u32>> = folder.classes.iter().map(known).collect();
    let images = match numbers {
        Some(numbers) => folder.images.relabelled(|label| numbers[label as usize]),
        None => folder.images.unlabelled(),
    };
    Ok(Source { name, images, single: false })
}

/// The classes of the largest scores and their probabilities, the largest first.
fn likeliest(scores: &[f32], count: usize) -> Vec<(usize, f64)> {
    let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = scores.iter().map(|score| f64::from(score - largest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    let mut classes: Vec<(usize, f64)> = weights.iter().map(|weight| weight / sum).enumerate().collect();
    classes.sort_by(|one, two| two.1.total_cmp(&one.1));
    classes.truncate(count);
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_a_softmax() {
        let best = likeliest(&[0.0, 2f32.ln(), f32::MIN], 2);
        assert_eq!([best[0].0, best[1].0], [1, 0]);
        assert!((best[0].1 - 2.0 / 3.0).abs() < 1e-6 && (best[1].1 - 1.0 / 3.0).abs() < 1e-6);
        assert_eq!(likeliest(&[1e30, 0.0], 9), [(0, 1.0), (1, 0.0)]);
    }
}
