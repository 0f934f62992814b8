//! Flags of the commands that train networks and measure F.

use clap::Args;
use clap::builder::PossibleValuesParser;
use obprox::MethodKind;
use obprox::switch::{Switch, Unit, Words};
use obprox_infer::Kind;
use obprox_nn::data::Augment;
use obprox_nn::optim::Penalized;
use obprox_nn::train::{LayerPenalty, Penalty, Schedule, Settings};

use crate::failure::Failure;
use crate::flags::{Rounds, count, not_negative, parse_decay, parse_rounds, parse_solver, positive, whole};

/// λ and what it weighs on.
#[derive(Args, Debug)]
#[command(next_help_heading = "The problem")]
pub struct PenaltyFlags {
    /// λ; with --target-density a start only, which also weighs layers against each other
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

    /// All settings that are not given: default (momentum, a cosine with warm-up, weight decay), or paper
    #[arg(long, value_name = "RECIPE", default_value = "default", value_parser = ["default", "paper"])]
    recipe: String,

    /// End with at most this density, held in closed loop: λ follows what is still to be lost, then zeros
    /// stay and the rest trains on without a penalty
    #[arg(long, value_name = "SHARE", value_parser = parse_target, allow_negative_numbers = true)]
    target_density: Option<f64>,

    /// End with this share of the channels zero, exactly, held in closed loop by half-space steps; net compress and net
    /// export cut them out. With --lambda 0 channels alone become zero
    #[arg(long, value_name = "SHARE", value_parser = parse_target, allow_negative_numbers = true)]
    target_group_sparsity: Option<f64>,

    /// Passes over the images
    #[arg(long, value_name = "N", default_value = "20", value_parser = count, allow_negative_numbers = true)]
    epochs: u64,

    /// Images in a batch
    #[arg(long, value_name = "N", default_value = "128", value_parser = count, allow_negative_numbers = true)]
    batch: u64,

    /// The first step size α, or the largest where it rises before [default: 0.2; paper 0.1]
    #[arg(long, value_name = "ALPHA", value_parser = positive, allow_negative_numbers = true)]
    step: Option<f64>,

    /// How α moves: cosine (up over --warmup, down to nothing), or decay [default: cosine; paper decay]
    #[arg(long, value_name = "RULE", value_parser = ["cosine", "decay"])]
    schedule: Option<String>,

    /// Epochs over which α rises, of the cosine [default: 0.5]
    #[arg(long, value_name = "EPOCHS", value_parser = not_negative, allow_negative_numbers = true)]
    warmup: Option<f64>,

    /// What α is multiplied by every --decay-every epochs [default: 0.1]
    #[arg(long, value_name = "FACTOR", value_parser = parse_decay, allow_negative_numbers = true)]
    decay: Option<f64>,

    /// Epochs from one decay of α to the next [default: 3/10 of the epochs, as 60 of 200]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    decay_every: Option<u64>,

    /// N_P, Prox-SG epochs before Orthant [default: half of the epochs, 0 with --target-density; obproxsg 5]
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    np: Option<u64>,

    /// N_O, Orthant epochs before Prox-SG again, or inf [default: inf; obproxsg 5]
    #[arg(long, value_name = "N", value_parser = parse_rounds, allow_negative_numbers = true)]
    no: Option<Rounds>,

    /// When to switch: by --np and --no counted in epochs or iterations; once objective:VALUE or
    /// score:VALUE (test accuracy) is reached; or stalled:N, after N evaluations without a better one
    #[arg(long, value_name = "RULE", default_value = "epochs", value_parser = Words::of_network)]
    switch: Words,

    /// γ of rda
    #[arg(long, value_name = "GAMMA", default_value = "20", value_parser = positive, allow_negative_numbers = true)]
    gamma: f64,

    /// prox-svrg: take the mean of an epoch's iterates instead of the last
    #[arg(long)]
    average: bool,

    /// Momentum of the gradient [default: 0.9; paper and rda 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share, allow_negative_numbers = true)]
    momentum: Option<f64>,

    /// The weight λ₂ of (λ₂/2)‖x‖² over all weights of two or more dimensions [default: 5e-3; paper and rda 0]
    #[arg(long, value_name = "LAMBDA2", value_parser = not_negative, allow_negative_numbers = true)]
    weight_decay: Option<f64>,

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

    /// Compute F and accuracy every so many epochs; at the end always [default: F at the end alone, accuracy
    /// as often as costs little; paper 1]
    #[arg(long, value_name = "EPOCHS", value_parser = count, allow_negative_numbers = true)]
    eval_every: Option<u64>,
}

impl TrainFlags {
    /// The settings of the run, checked but for what the network and the images decide.
    pub fn settings(&self, penalty: Penalty) -> Result<Settings, Failure> {
        let method = parse_solver(&self.solver);
        let augment = match self.no_augment {
            true => Augment::NONE,
            false => Augment { flip: !self.no_flip, pad: self.pad.into() },
        };
        let recipe = Settings::recipe(method, self.epochs, self.target_density);
        let recipe = match self.recipe == "paper" {
            true => Settings { epochs: self.epochs, target: recipe.target, ..Settings::paper(method) },
            false => recipe,
        };
        Ok(Settings {
            penalty,
            batch: usize::try_from(self.batch).unwrap_or(usize::MAX),
            step: self.step.unwrap_or(recipe.step),
            schedule: self.schedule(recipe.schedule)?,
            switch: self.switch(method)?,
            gamma: self.gamma,
            average: self.average && method == MethodKind::ProxSvrg,
            momentum: self.momentum.unwrap_or(recipe.momentum),
            weight_decay: self.weight_decay.unwrap_or(recipe.weight_decay),
            augment,
            target_groups: self.target_group_sparsity,
            seed: self.seed,
            eval_every: self.eval_every.or(recipe.eval_every),
            ..recipe
        })
    }

    fn schedule(&self, recipe: Schedule) -> Result<Schedule, Failure> {
        let decays = self.decay.is_some() || self.decay_every.is_some();
        let decay = match self.schedule.as_deref() {
            Some(word) => word == "decay",
            None => decays || (self.warmup.is_none() && !recipe.knows_its_end()),
        };
        match decay {
            true if self.warmup.is_some() => Err(Failure::input("--warmup: goes with --schedule cosine")),
            false if decays => Err(Failure::input("--decay and --decay-every: go with --schedule decay")),
            true => Ok(Schedule::Steps {
                factor: self.decay.unwrap_or(0.1),
                every: self.decay_every.unwrap_or((self.epochs * 3).div_ceil(10)),
            }),
            false => Ok(Schedule::Cosine { warmup: self.warmup.unwrap_or(0.5) }),
        }
    }

    fn switch(&self, method: MethodKind) -> Result<Switch, Failure> {
        let (prox, orthant) = match method {
            MethodKind::ObproxSg => (5, Some(5)),
            // With a density to reach, every step counts.
            _ if self.target_density.is_some() => (0, None),
            _ => (self.epochs.div_ceil(2), None),
        };
        let (prox, orthant) = (self.np.unwrap_or(prox), self.no.map_or(orthant, |rounds| rounds.0));
        match self.switch {
            Words::Counted(unit @ Unit::Epochs) => Ok(Switch::Fixed { prox, orthant, unit }),
            Words::Counted(unit @ Unit::Iterations) => match self.np {
                Some(prox) => Ok(Switch::Fixed { prox, orthant: self.no.and_then(|rounds| rounds.0), unit }),
                None => Err(Failure::input("--switch iterations: needs --np, the number of them")),
            },
            Words::Measured(rule) => match (self.np, self.no) {
                (None, None) => Ok(rule),
                (Some(_), _) => Err(Failure::input("--np: cannot be used with a --switch that measures")),
                _ => Err(Failure::input("--no: cannot be used with a --switch that measures")),
            },
        }
    }

    /// The flags that were given but have no meaning for the method.
    pub fn unused(&self) -> Vec<&'static str> {
        let method = parse_solver(&self.solver);
        let switches = matches!(method, MethodKind::ObproxSg | MethodKind::ObproxSgPlus);
        [
            ("--np", self.np.is_some(), switches),
            ("--no", self.no.is_some(), switches),
            ("--switch", self.switch != Words::Counted(Unit::Epochs), switches),
            ("--average", self.average, method == MethodKind::ProxSvrg),
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
    PossibleValuesParser::new(MethodKind::PAPER.map(MethodKind::name))
}

fn parse_share(text: &str) -> Result<f64, String> {
    not_negative(text).ok().filter(|share| *share < 1.0).ok_or("must be at least 0 and below 1".into())
}

fn parse_target(text: &str) -> Result<f64, String> {
    let share = not_negative(text).ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or("must lie above 0 and below 1, as in 0.05".into())
}

fn parse_layer(text: &str) -> Result<LayerPenalty, String> {
    let (name, lambda) = text.split_once('=').ok_or("must be NAME=LAMBDA, as in fc=1e-5")?;
    let lambda = not_negative(lambda).map_err(|why| format!("λ {why}"))?;
    if name.is_empty() { Err("names no layer".into()) } else { Ok(LayerPenalty { name: name.to_owned(), lambda }) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
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
        for method in MethodKind::PAPER {
            let given = settings(&format!("--recipe paper --epochs 200 --solver {}", method.name())).unwrap();
            assert_eq!(given, Settings::paper(method));
        }
    }

    #[test]
    fn without_flags_it_is_the_recipe() {
        for method in MethodKind::PAPER {
            let given = settings(&format!("--solver {}", method.name())).unwrap();
            assert_eq!(given, Settings::recipe(method, 20, None));
        }
        let given = settings("--target-density 0.05 --epochs 6").unwrap();
        assert_eq!(given, Settings::recipe(MethodKind::ObproxSgPlus, 6, Some(0.05)));
        let decayed = settings("--decay-every 4").unwrap().schedule;
        assert_eq!(decayed, Schedule::Steps { factor: 0.1, every: 4 });
        assert_eq!(settings("--recipe paper --warmup 2").unwrap().schedule, Schedule::Cosine { warmup: 2.0 });
    }

    #[test]
    fn flags_reach_the_settings() {
        let given = settings("--switch stalled:3 --target-density 0.02 --no-flip --pad 2 --momentum 0.9").unwrap();
        assert_eq!((given.switch, given.target.map(|plan| plan.target)), (Switch::Stalled(3), Some(0.02)));
        assert_eq!(settings("--target-group-sparsity 0.5").unwrap().target_groups, Some(0.5));
        assert_eq!((given.augment, given.momentum), (Augment { flip: false, pad: 2 }, 0.9));
        let counted = settings("--switch iterations --np 30 --no 10").unwrap();
        assert_eq!(counted.switch, Switch::Fixed { prox: 30, orthant: Some(10), unit: Unit::Iterations });
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
            "--target-density 0",
            "--target-group-sparsity 1",
            "--schedule cosine --decay 0.5",
            "--decay-every 3 --warmup 1",
            "--layer-lambda fc",
            "--layer-lambda =1",
            "--layer-lambda fc=-1",
            "--solver auto",
        ] {
            assert!(settings(text).is_err(), "{text}");
        }
    }
}
