//! `obprox paper nets`: the paper's section on deep networks.
//!
//! Each run leaves its network and its log in a directory, and the page is written anew after each: what was done is
//! never lost, and the same command again goes on from there, within a run from its last epoch.

mod config;
mod page;
mod record;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use obprox::MethodKind;
use obprox_infer::images::{Data, Preprocessing};
use obprox_infer::{Architecture, Kind, Model, Training};
use obprox_nn::train::{Run, Settings};
use obprox_nn::{Net, device, initial_weights};

use self::config::{DataSet, Scale, config};
use self::page::Page;
use self::record::Record;
use crate::destination::check_directory;
use crate::failure::Failure;
use crate::net::{Bar, Log, Origin, images};
use crate::show;
use crate::watch::interrupt;

/// The paper's section on deep networks: five methods, two networks, two data sets
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Nets {
    /// The directory with CIFAR-10's binary files
    #[arg(long, value_name = "DIR")]
    cifar10: Option<PathBuf>,

    /// The directory with Fashion-MNIST's idx files
    #[arg(long, value_name = "DIR")]
    fashion_mnist: Option<PathBuf>,

    /// How much of it: full as the paper has it, small for two CPU cores, tiny to try the command
    #[arg(long, value_name = "SCALE", value_parser = scales(), default_value = "small")]
    scale: String,

    /// Only these networks
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = ["mobilenet-v1", "resnet18"])]
    networks: Vec<String>,

    /// Only these methods
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = PossibleValuesParser::new(MethodKind::PAPER.map(MethodKind::name)))]
    solvers: Vec<String>,

    /// Where the results go, and where an earlier run is continued
    #[arg(long, value_name = "DIR", default_value = "paper-nets")]
    out: PathBuf,

    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  obprox paper nets --cifar10 cifar10/ --fashion-mnist fashion-mnist/
  obprox paper nets --cifar10 cifar10/ --scale full --networks resnet18";

/// One method on every network and every set before the next, those that the paper's claim is about first and the
/// dearest last: a run that is broken off has whole comparisons.
const ORDER: [MethodKind; 5] =
    [MethodKind::ProxSg, MethodKind::ObproxSgPlus, MethodKind::ObproxSg, MethodKind::Rda, MethodKind::ProxSvrg];

fn scales() -> PossibleValuesParser {
    PossibleValuesParser::new(["full", "small", "tiny"])
}

/// A run: which network on which images by which method.
pub struct Cell<'a> {
    pub scale: &'a str,
    pub kind: Kind,
    pub data: &'a DataSet,
    pub method: MethodKind,
}

impl Cell<'_> {
    fn name(&self) -> String {
        format!("{}-{}-{}-{}", self.scale, self.kind.name(), self.data.plain_name(), self.method.name())
    }

    /// The log of the run.
    pub fn log(&self, directory: &Path) -> PathBuf {
        directory.join(self.name() + ".jsonl")
    }

    /// The network it led to.
    fn network(&self, directory: &Path) -> PathBuf {
        directory.join(self.name() + ".safetensors")
    }
}

impl Nets {
    pub fn run(self) -> Result<(), Failure> {
        let sources: Vec<(&DataSet, &Path)> = config()
            .data
            .iter()
            .zip([&self.cifar10, &self.fashion_mnist])
            .filter_map(|(data, path)| Some((data, path.as_deref()?)))
            .collect();
        if sources.is_empty() {
            return Err(Failure::input("--cifar10, --fashion-mnist: name the directory of one at least"));
        }
        check_directory("--out", &self.out)?;
        crate::threads::start(self.threads)?;
        interrupt::listen()?;
        std::fs::create_dir_all(&self.out).map_err(obprox::Error::writing(&self.out))?;
        let done = self.run_all(&sources);
        // A failure must not lose the page of what was done before it.
        let page = Page::write(&self.scale, &self.out)?;
        if !done? {
            show::note("interrupted: what was done is kept; the same command again goes on from there", self.quiet);
        }
        if !self.quiet {
            show::print(&page.terminal())?;
            show::print(&format!("\npage, networks, logs and plots written to {}\n", self.out.display()))?;
        }
        Ok(())
    }

    /// False where Ctrl-C came before the end.
    fn run_all(&self, sources: &[(&DataSet, &Path)]) -> Result<bool, Failure> {
        let scale = &config().scale[&self.scale];
        let preprocessing = Preprocessing::imagenet(32);
        let mut read: Vec<Option<Data>> = sources.iter().map(|_| None).collect();
        for method in ORDER {
            for ((data, path), read) in sources.iter().zip(&mut read) {
                for kind in [Kind::MobileNetV1, Kind::ResNet18] {
                    let cell = Cell { scale: &self.scale, kind, data, method };
                    if !self.wanted(&cell) || Record::read(&cell.log(&self.out))?.is_some() {
                        continue;
                    }
                    let images = match read {
                        Some(images) => images,
                        None => read.insert(self.read(scale, path, &preprocessing)?),
                    };
                    if !self.train(&cell, scale, path, images, &preprocessing)? {
                        return Ok(false);
                    }
                    Page::write(&self.scale, &self.out)?;
                }
            }
        }
        Ok(true)
    }

    /// The images of a scale: some of those for training, drawn at random, and the first of those for testing.
    fn read(&self, scale: &Scale, path: &Path, preprocessing: &Preprocessing) -> Result<Data, Failure> {
        let limit = scale.images.map(|limit| limit as u64);
        let mut data = images(path, None, preprocessing, limit, self.quiet)?;
        if let (Some(test), Some(limit)) = (&data.test, scale.test_images) {
            data.test = Some(test.slice(0, limit.min(test.len())).into());
        }
        Ok(data)
    }

    fn wanted(&self, cell: &Cell) -> bool {
        let among = |names: &[String], name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
        among(&self.networks, cell.kind.name()) && among(&self.solvers, cell.method.name())
    }

    fn train(
        &self,
        cell: &Cell,
        scale: &Scale,
        path: &Path,
        images: &Data,
        preprocessing: &Preprocessing,
    ) -> Result<bool, Failure> {
        let settings: Settings = scale.settings(cell.method, cell.data);
        let architecture = Architecture::new(cell.kind).with_width(scale.width)?.with_classes(images.classes.len())?;
        let device = device().autodiff();
        let net = Net::new(architecture, &initial_weights(architecture, settings.seed)?, &device)?;
        let origin = Origin {
            data: path.display().to_string(),
            test: None,
            start: None,
            threads: rayon::current_num_threads(),
            classes: images.classes.clone(),
        };
        let state = self.out.join("state").join(cell.name());
        let mut bar = Bar::new(&cell.name(), self.quiet);
        let mut log = Log::new(Some(cell.log(&self.out)), origin);
        let run = Run::new(net, images, preprocessing, settings, &device).observe(&mut bar).observe(&mut log);
        let trained = run.checkpoint(&state, true).train()?;
        let mut losses = bar.losses();
        log.finish(&mut losses)?;
        if interrupt::pressed() {
            return Ok(false);
        }
        // Without its log a run has no result; its state stays.
        losses.end(Ok(()))?;
        let training = Training { preprocessing: Some(preprocessing.clone()), labels: images.classes.clone() };
        Model::new(architecture, trained.weights, training)?.write_safetensors(cell.network(&self.out))?;
        // A finished run has no more use for its state, which is as large as its network.
        let _ = std::fs::remove_dir_all(&state);
        Ok(true)
    }
}
