//! `obprox net train`: images → a sparse network.

use std::path::{Path, PathBuf};

use clap::Args;
use obprox::Status;
use obprox_infer::images::Data;
use obprox_infer::{Architecture, Kind, Model, Training, Values, Weights};
use obprox_nn::train::{Run, Trained, has_checkpoint};
use obprox_nn::{Net, device, initial_weights};
use obprox_report::Report;

use super::flags::{PenaltyFlags, TrainFlags, kinds};
use super::images::{ImageFlags, images};
use super::log::{Log, Origin};
use super::progress::Bar;
use super::show::{self as page, Outcome};
use super::values::{ValueFlags, accuracy};
use crate::destination::{check_directory, check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{ReportFlags, count, positive};
use crate::show::{self, pairs, percent};
use crate::watch::interrupt;

/// Train a sparse network on images: min f(x) + λ‖x‖₁, f the mean cross-entropy
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Train {
    /// A directory of MNIST-like idx files, of CIFAR-10's binary files, or of class-named folders of
    /// pictures (in train and test, if you like)
    data: PathBuf,

    /// Images to score on, where they are not found in DATA
    #[arg(long, value_name = "DIR")]
    test: Option<PathBuf>,

    /// The network
    #[arg(long, value_name = "NETWORK", value_parser = kinds(), default_value = "small-cnn", conflicts_with = "start")]
    model: String,

    /// Channels of every layer, relative to the full network
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = positive, allow_negative_numbers = true)]
    #[arg(conflicts_with = "start")]
    width: f64,

    /// Begin with the weights of this file: safetensors, of obprox or of PyTorch, or a compressed network
    #[arg(long, value_name = "FILE")]
    start: Option<PathBuf>,

    /// Where to write the network: safetensors with PyTorch's parameter names, or compressed where the
    /// name ends in .obz
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    values: ValueFlags,

    /// Where to write the record of the run, one JSON object a line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Save the whole state here after every epoch
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,

    /// Go on from the state in --checkpoint; the result is that of a run without a break, to the bit
    #[arg(long, requires = "checkpoint")]
    resume: bool,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    /// Threads [default: one a core]; results do not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Train on so many of the images, drawn at random but always the same ones
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true, help_heading = "The images")]
    limit: Option<u64>,

    /// Channels that images are brought to: 3, or 1 for grey
    #[arg(long, value_name = "N", default_value = "3", value_parser = ["1", "3"], help_heading = "The images")]
    channels: String,

    #[command(flatten)]
    images: ImageFlags,

    #[command(flatten)]
    penalty: PenaltyFlags,

    #[command(flatten)]
    method: TrainFlags,

    #[command(flatten)]
    report: ReportFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox net train fashion-mnist/ --target-density 0.05 --out net.obz --report report.html
  obprox net train cifar10/ --model resnet18 --width 0.25 --epochs 60 --log run.jsonl
  obprox net train photos/ --model mobilenet-v1 --limit 5000 --target-density 0.02
  obprox net train cifar10/ --start dense.safetensors --switch stalled:3 --out sparse.safetensors
  obprox net train cifar10/ --epochs 200 --checkpoint state --resume";

impl Train {
    pub fn run(self) -> Result<(), Failure> {
        // ---- everything that can be refused before a file is read --------------------------------------------
        let settings = self.method.settings(self.penalty.penalty())?;
        let preprocessing = self.images.for_training(if self.channels == "1" { 1 } else { 3 })?;
        self.check_paths()?;
        let threads = crate::threads::start(self.threads)?;
        interrupt::listen()?;
        for flag in self.method.unused() {
            show::note(&format!("{flag} has no effect on the solver {}", settings.method.name()), self.quiet);
        }

        // ---- images and the network --------------------------------------------------------------------------
        let data = images(&self.data, self.test.as_ref(), &preprocessing, self.limit, self.quiet)?;
        settings.check(data.test.is_some())?;
        let (architecture, weights) = self.network(&data, preprocessing.channels())?;
        let device = device().autodiff();
        let net = Net::new(architecture, &weights, &device)?;

        // ---- the run -----------------------------------------------------------------------------------------
        let wanted = self.log.is_some() || self.report.wanted();
        let mut log = wanted.then(|| Log::new(self.log.clone(), self.origin(threads, &data)));
        let mut bar = Bar::new("train", self.quiet);
        let mut run = Run::new(net, &data, &preprocessing, settings.clone(), &device).observe(&mut bar);
        if let Some(log) = &mut log {
            run = run.observe(log);
        }
        if let Some(directory) = &self.checkpoint {
            show::announce_checkpoint(directory, self.resume, has_checkpoint(directory), self.quiet);
            run = run.checkpoint(directory, self.resume);
        }
        let trained = run.train()?;

        // ---- what is kept and told ---------------------------------------------------------------------------
        let (mut written, mut losses, mut rounding) = (Vec::new(), bar.losses(), None);
        let saved = self.checkpoint.as_ref().filter(|_| losses.is_empty());
        if let Some(path) = &self.out {
            let labels = data.classes.clone();
            let training = Training { preprocessing: Some(preprocessing.clone()), labels };
            let model = Model::new(architecture, trained.weights.clone(), training)?;
            let rounded = model.rounded(self.values.values)?;
            written.extend(losses.write("network", path, |path| write(&rounded, path))?);
            if self.values.values != Values::F32 && !self.quiet {
                let [before, after] = [&model, &rounded].map(|model| accuracy(model, &preprocessing, &data));
                let (before, after) = (percent(before?), percent(after?));
                rounding = Some(format!("{}: accuracy {before} before, {after} after rounding", self.values.values));
            }
        }
        if let Some(log) = log {
            let (runs, log) = log.finish(&mut losses)?;
            written.extend(log);
            written.extend(self.report.write(&Report::new(runs), &mut losses));
        }
        written.extend(saved.map(|directory| format!("checkpoint in {}", directory.display())));
        if trained.status == Status::Stopped {
            let kept = if written.is_empty() { "ended after the step under way".into() } else { written.join(", ") };
            show::note(&format!("interrupted: {kept}"), self.quiet);
        }
        if !self.quiet {
            show::print(&page::train(&Outcome {
                data: &self.data.display().to_string(),
                architecture,
                settings: &settings,
                images: data.train.len(),
                test_images: data.test.as_ref().map_or(0, |test| test.len()),
                trained: &trained,
                written: &written,
            }))?;
            rounding.map_or(Ok(()), |told| show::print(&pairs([("values", told)])))?;
        }
        losses.end(kept_its_promise(&trained, settings.target.map_or(0.0, |plan| plan.target)))
    }

    /// The network and the weights it begins with.
    fn network(&self, data: &Data, channels: usize) -> Result<(Architecture, Weights), Failure> {
        let Some(path) = &self.start else {
            let kind: Kind = self.model.parse().map_err(Failure::input)?;
            let architecture = Architecture::new(kind)
                .with_width(self.width)?
                .with_channels(channels)?
                .with_classes(data.classes.len())?;
            return Ok((architecture, initial_weights(architecture, self.method.seed)?));
        };
        let (design, weights, _) = Model::read(path)?.into_parts();
        let architecture = design.architecture().map_err(Failure::about(&path.display().to_string()))?;
        let wrong = |what: String| Err(Failure::input(format!("--start {}: {what}", path.display())));
        if architecture.channels() != channels {
            return wrong(format!("takes images of {} channels, and they have {channels}", architecture.channels()));
        }
        if architecture.classes() != data.classes.len() {
            let (has, wants) = (data.classes.len(), architecture.classes());
            return wrong(format!("knows {wants} classes, and the images have {has}"));
        }
        Ok((architecture, weights))
    }

    fn check_paths(&self) -> Result<(), Failure> {
        self.report.check()?;
        let writes = [("--out", self.out.as_deref()), ("--log", self.log.as_deref()), self.report.writes()];
        for (flag, path) in writes {
            if let Some(path) = path {
                check_file(flag, path)?;
            }
        }
        check_distinct(&[("--start", self.start.as_deref()), ("--log", self.log.as_deref())])?;
        check_distinct(&writes)?;
        if self.values.values != Values::F32 && !self.out.as_deref().is_some_and(is_compressed) {
            return Err(Failure::input("--values: only a compressed file has other values: say --out FILE.obz"));
        }
        match &self.checkpoint {
            Some(directory) => check_directory("--checkpoint", directory),
            None => Ok(()),
        }
    }

    fn origin(&self, threads: usize, data: &Data) -> Origin {
        let name = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        Origin {
            data: self.data.display().to_string(),
            test: name(&self.test),
            start: name(&self.start),
            threads,
            classes: data.classes.clone(),
        }
    }
}

/// An error where a run did not come to what it was to come to.
fn kept_its_promise(trained: &Trained, asked: f64) -> Result<(), Failure> {
    match trained.status {
        Status::Diverged => {
            Err(Failure::other("the run diverged: a loss or a weight was no longer finite; try a smaller --step"))
        }
        Status::Missed => {
            let why = page::missed(trained, asked).unwrap_or_default();
            Err(Failure::other(format!("the target density was not reached: {why}")))
        }
        _ => Ok(()),
    }
}

/// As the name of the file asks for: small, or as PyTorch reads it.
fn write(model: &Model, path: &Path) -> Result<(), Failure> {
    if is_compressed(path) {
        let (small, _) = model.without_dead_channels().map_err(Failure::about(&path.display().to_string()))?;
        small.write_compressed(path)?;
        return Ok(());
    }
    Ok(model.write_safetensors(path)?)
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "obz")
}
