//! Flags of the commands that train or measure networks.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use obprox::Method;
use obprox_infer::Kind;
use obprox_infer::images::Preprocessing;
use obprox_nn::data::{Augment, Data, read};
use obprox_nn::optim::Penalized;
use obprox_nn::train::{LayerPenalty, Penalty, Rule, Settings, StepDecay};

use crate::failure::Failure;
use crate::flags::{Rounds, count, not_negative, number, parse_decay, parse_rounds, parse_solver, positive, whole};
use crate::watch;

/// What the images are and how they are brought to the network.
#[derive(Args, Debug)]
#[command(next_help_heading = "The images")]
pub struct ImageFlags {
    /// Train on so many of the images, drawn at random but always the same ones
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub limit: Option<u64>,

    /// Pixels of a side that images are resized to
    #[arg(long, value_name = "PIXELS", default_value = "32", value_parser = clap::value_parser!(u16).range(8..=1024))]
    size: u16,

    /// Channels that images are brought to: 3, or 1 for grey
    #[arg(long, value_name = "N", default_value = "3", value_parser = ["1", "3"])]
    channels: String,

    /// The mean of each channel, of pixels between 0 and 1 [default: ImageNet's]
    #[arg(long, value_name = "M,M,M", value_parser = number, value_delimiter = ',', allow_negative_numbers = true)]
    mean: Vec<f64>,

    /// The standard deviation of each channel [default: ImageNet's]
    #[arg(long, value_name = "S,S,S", value_parser = positive, value_delimiter = ',', allow_negative_numbers = true)]
    std: Vec<f64>,
}

impl ImageFlags {
    /// Size and normalisation.
    pub fn preprocessing(&self) -> Result<Preprocessing, Failure> {
        let channels = if self.channels == "1" { 1 } else { 3 };
        let side = usize::from(self.size);
        let mut preprocessing = match channels {
            // Grey: what ImageNet's channels come to by luma.
            1 => Preprocessing { height: side, width: side, mean: vec![0.459], std: vec![0.225] },
            _ => Preprocessing::imagenet(side),
        };
        for (flag, given, values) in
            [("--mean", &self.mean, &mut preprocessing.mean), ("--std", &self.std, &mut preprocessing.std)]
        {
            if !given.is_empty() && given.len() != channels {
                let (found, wanted) = (given.len(), channels);
                return Err(Failure::input(format!("{flag}: {found} given, and the images have {wanted} channels")));
            }
            if !given.is_empty() {
                *values = given.iter().map(|value| *value as f32).collect();
            }
        }
        Ok(preprocessing)
    }
}

/// Reads training images and, from their own directory or another one, test images.
pub fn images(
    path: &Path,
    test: Option<&PathBuf>,
    preprocessing: &Preprocessing,
    limit: Option<u64>,
    quiet: bool,
) -> Result<Data, Failure> {
    let _waiting = watch::waiting(format!("reading {}", path.display()), quiet);
    let limit = limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let mut data = read(path, preprocessing.shape(), limit)?;
    if let Some(test) = test {
        let other = read(test, preprocessing.shape(), None)?;
        if other.classes != data.classes {
            let (one, two) = (other.classes.join(", "), data.classes.join(", "));
            let message = format!("--test {}: has the classes {one}, and the training images {two}", test.display());
            return Err(Failure::input(message));
        }
        // A directory with two parts is asked for the part that is for testing.
        data.test = Some(other.test.unwrap_or(other.train));
    }
    Ok(data)
}

/// λ and what it weighs on.
#[derive(Args, Debug)]
#[command(next_help_heading = "The problem")]
pub struct PenaltyFlags {
    /// λ
    #[arg(long, value_name = "LAMBDA", default_value = "1e-4", value_parser = not_negative, allow_negative_numbers = true)]
    pub lambda: f64,

    /// What λ weighs on: weights (of two or more dimensions), or all, biases and norms too
    #[arg(long, value_name = "WHICH", default_value = "weights", value_parser = ["weights", "all"])]
    penalize: String,

    /// A λ of its own for a layer, as in layer1.0.conv1=1e-5; can be given several times
    #[arg(long, value_name = "NAME=LAMBDA", value_parser = parse_layer)]
    layer_lambda: Vec<LayerPenalty>,

    /// A layer that is not penalised; can be given several times
    #[arg(long, value_name = "NAME")]
    exclude: Vec<String>,
}

impl PenaltyFlags {
    /// λ of every layer.
    pub fn penalty(&self) -> Penalty {
        let free = self.exclude.iter().map(|name| LayerPenalty { name: name.clone(), lambda: 0.0 });
        Penalty {
            lambda: self.lambda,
            penalized: if self.penalize == "all" { Penalized::All } else { Penalized::Weights },
            layers: self.layer_lambda.iter().cloned().chain(free).collect(),
        }
    }
}

/// How a network is trained.
#[derive(Args, Debug)]
#[command(next_help_heading = "The method")]
pub struct TrainFlags {
    /// The method
    #[arg(long, value_name = "SOLVER", value_parser = solvers(), default_value = "obproxsg-plus")]
    solver: String,

    /// Passes over the images
    #[arg(long, value_name = "N", default_value = "20", value_parser = count, allow_negative_numbers = true)]
    epochs: u64,

    /// Images in a batch
    #[arg(long, value_name = "N", default_value = "128", value_parser = count, allow_negative_numbers = true)]
    batch: u64,

    /// The first step size α
    #[arg(long, value_name = "ALPHA", default_value = "0.1", value_parser = positive, allow_negative_numbers = true)]
    step: f64,

    /// What α is multiplied by every --decay-every epochs
    #[arg(long, value_name = "FACTOR", default_value = "0.1", value_parser = parse_decay, allow_negative_numbers = true)]
    decay: f64,

    /// Epochs from one change of α to the next [default: 3/10 of the epochs, as 60 of 200]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    decay_every: Option<u64>,

    /// N_P, Prox-SG epochs before Orthant [default: half of the epochs; obproxsg 5]
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    np: Option<u64>,

    /// N_O, Orthant epochs before Prox-SG again, or inf [default: inf; obproxsg 5]
    #[arg(long, value_name = "N", value_parser = parse_rounds, allow_negative_numbers = true)]
    no: Option<Rounds>,

    /// When to switch: by --np and --no counted in epochs or iterations; once objective:VALUE or
    /// score:VALUE (test accuracy) is reached; or stalled:N, after N evaluations without a better one
    #[arg(long, value_name = "RULE", default_value = "epochs", value_parser = parse_switch)]
    switch: SwitchRule,

    /// Stop sparsifying at this density: zeros stay, the rest trains on without a penalty
    #[arg(long, value_name = "SHARE", value_parser = parse_share, allow_negative_numbers = true)]
    target_density: Option<f64>,

    /// γ of rda
    #[arg(long, value_name = "GAMMA", default_value = "20", value_parser = positive, allow_negative_numbers = true)]
    gamma: f64,

    /// prox-svrg: take the mean of an epoch's iterates instead of the last
    #[arg(long)]
    average: bool,

    /// Momentum of the gradient
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share, allow_negative_numbers = true)]
    momentum: f64,

    /// The weight λ₂ of (λ₂/2)‖x‖²
    #[arg(long, value_name = "LAMBDA2", default_value = "0", value_parser = not_negative, allow_negative_numbers = true)]
    weight_decay: f64,

    /// Train on the images as they are: neither mirrored nor shifted
    #[arg(long, conflicts_with_all = ["no_flip", "pad"])]
    no_augment: bool,

    /// Never mirror images (writing, digits)
    #[arg(long)]
    no_flip: bool,

    /// Shift images by up to so many pixels
    #[arg(long, value_name = "PIXELS", default_value = "4", value_parser = clap::value_parser!(u16).range(0..=64))]
    pad: u16,

    /// The seed of the first weights, the batches and the augmentation
    #[arg(long, value_name = "SEED", default_value = "0", value_parser = whole, allow_negative_numbers = true)]
    pub seed: u64,

    /// Compute F and accuracy every so many epochs; at the end always
    #[arg(long, value_name = "EPOCHS", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    eval_every: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum SwitchRule {
    Epochs,
    Iterations,
    Measured(Rule),
}

impl TrainFlags {
    /// The settings of the run, checked but for what the network and the images decide.
    pub fn settings(&self, penalty: Penalty) -> Result<Settings, Failure> {
        let method = parse_solver(&self.solver);
        let augment = match self.no_augment {
            true => Augment::NONE,
            false => Augment { flip: !self.no_flip, pad: self.pad.into() },
        };
        Ok(Settings {
            method,
            penalty,
            epochs: self.epochs,
            batch: usize::try_from(self.batch).unwrap_or(usize::MAX),
            step: self.step,
            decay: StepDecay { factor: self.decay, every: self.decay_every.unwrap_or((self.epochs * 3).div_ceil(10)) },
            switch: self.switch(method)?,
            target_density: self.target_density,
            gamma: self.gamma,
            average: self.average && method == Method::ProxSvrg,
            momentum: self.momentum,
            weight_decay: self.weight_decay,
            augment,
            seed: self.seed,
            eval_every: self.eval_every,
        })
    }

    fn switch(&self, method: Method) -> Result<Rule, Failure> {
        let (prox, orthant) = match method {
            Method::ObproxSg => (5, Some(5)),
            _ => (self.epochs.div_ceil(2), None),
        };
        let (prox, orthant) = (self.np.unwrap_or(prox), self.no.map_or(orthant, |rounds| rounds.0));
        match self.switch {
            SwitchRule::Epochs => Ok(Rule::Epochs { prox, orthant }),
            SwitchRule::Iterations => match self.np {
                Some(prox) => Ok(Rule::Iterations { prox, orthant: self.no.and_then(|rounds| rounds.0) }),
                None => Err(Failure::input("--switch iterations: needs --np, the number of them")),
            },
            SwitchRule::Measured(rule) => match (self.np, self.no) {
                (None, None) => Ok(rule),
                (Some(_), _) => Err(Failure::input("--np: cannot be used with a --switch that measures")),
                _ => Err(Failure::input("--no: cannot be used with a --switch that measures")),
            },
        }
    }

    /// The flags that were given but have no meaning for the method.
    pub fn unused(&self) -> Vec<&'static str> {
        let method = parse_solver(&self.solver);
        let switches = matches!(method, Method::ObproxSg | Method::ObproxSgPlus);
        [
            ("--np", self.np.is_some(), switches),
            ("--no", self.no.is_some(), switches),
            ("--switch", self.switch != SwitchRule::Epochs, switches),
            ("--average", self.average, method == Method::ProxSvrg),
        ]
        .into_iter()
        .filter(|(_, given, used)| *given && !used)
        .map(|(flag, ..)| flag)
        .collect()
    }
}

/// The names of the networks, for clap.
pub fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name))
}

fn solvers() -> PossibleValuesParser {
    PossibleValuesParser::new(Method::PAPER.map(Method::name))
}

fn parse_share(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|share| *share < 1.0).ok_or("must be at least 0 and below 1".into())
}

fn parse_layer(text: &str) -> Result<LayerPenalty, String> {
    let (name, lambda) = text.split_once('=').ok_or("must be NAME=LAMBDA, as in fc=1e-5")?;
    let lambda = not_negative(lambda).map_err(|why| format!("λ {why}"))?;
    if name.is_empty() { Err("names no layer".into()) } else { Ok(LayerPenalty { name: name.to_owned(), lambda }) }
}

fn parse_switch(text: &str) -> Result<SwitchRule, String> {
    let target = |value| number(value).map_err(|why| format!("what is to be reached {why}"));
    Ok(match text.split_once(':').unwrap_or((text, "")) {
        ("epochs", "") => SwitchRule::Epochs,
        ("iterations", "") => SwitchRule::Iterations,
        ("objective", value) => SwitchRule::Measured(Rule::Objective(target(value)?)),
        ("score", value) => SwitchRule::Measured(Rule::Score(target(value)?)),
        ("stalled", value) => SwitchRule::Measured(Rule::Stalled(count(value)?)),
        _ => return Err("must be epochs, iterations, objective:VALUE, score:VALUE or stalled:N".into()),
    })
}

/// A rule in the words of `--switch`.
pub fn switch_words(rule: Rule) -> String {
    match rule {
        Rule::Epochs { .. } => "epochs".into(),
        Rule::Iterations { .. } => "iterations".into(),
        Rule::Objective(value) => format!("objective:{value}"),
        Rule::Score(value) => format!("score:{value}"),
        Rule::Stalled(count) => format!("stalled:{count}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        images: ImageFlags,
        #[command(flatten)]
        penalty: PenaltyFlags,
        #[command(flatten)]
        train: TrainFlags,
    }

    fn line(text: &str) -> Result<Line, String> {
        let words = std::iter::once("test").chain(text.split_whitespace());
        Line::try_parse_from(words).map_err(|error| error.to_string())
    }

    fn settings(text: &str) -> Result<Settings, String> {
        let line = line(text)?;
        line.train.settings(line.penalty.penalty()).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn two_hundred_epochs_are_the_papers_settings() {
        for method in Method::PAPER {
            let given = settings(&format!("--epochs 200 --solver {}", method.name())).unwrap();
            assert_eq!(given, Settings::paper(method));
        }
    }

    #[test]
    fn flags_reach_the_settings() {
        let given = settings("--switch stalled:3 --target-density 0.02 --no-flip --pad 2 --momentum 0.9").unwrap();
        assert_eq!((given.switch, given.target_density), (Rule::Stalled(3), Some(0.02)));
        assert_eq!((given.augment, given.momentum), (Augment { flip: false, pad: 2 }, 0.9));
        let counted = settings("--switch iterations --np 30 --no 10").unwrap();
        assert_eq!(counted.switch, Rule::Iterations { prox: 30, orthant: Some(10) });
        let penalty = line("--layer-lambda fc=1e-5 --exclude conv1 --penalize all").unwrap().penalty.penalty();
        assert_eq!(penalty.of("fc.weight", 2), 1e-5);
        assert_eq!(penalty.of("conv1.weight", 4), 0.0);
        assert_eq!(penalty.of("conv10.weight", 4), 1e-4, "a name is no mere beginning");
        assert_eq!(penalty.of("bn1.bias", 1), 1e-4);
    }

    #[test]
    fn bad_values_are_refused() {
        for text in [
            "--switch iterations",
            "--switch score:0.9 --np 3",
            "--switch often",
            "--switch stalled:0",
            "--target-density 1",
            "--layer-lambda fc",
            "--layer-lambda =1",
            "--layer-lambda fc=-1",
            "--solver auto",
            "--channels 2",
        ] {
            assert!(settings(text).is_err(), "{text}");
        }
        assert!(line("--mean 0.5").unwrap().images.preprocessing().is_err());
        assert_eq!(line("--mean 0.1,0.2,0.3").unwrap().images.preprocessing().unwrap().mean, [0.1, 0.2, 0.3]);
    }

    #[test]
    fn words_are_read_and_given_back() {
        for words in ["objective:0.25", "score:0.9", "stalled:3"] {
            let SwitchRule::Measured(rule) = parse_switch(words).unwrap() else { panic!("{words}") };
            assert_eq!(switch_words(rule), words);
        }
    }
}
