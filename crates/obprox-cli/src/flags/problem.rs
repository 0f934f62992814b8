//! What is minimised: the loss, λ and the weights.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use obprox::data::{Buffer, Dataset, ShardedData, read_vector};
use obprox::loss::{Loss, LossKind, Task, Ties, Tweedie};
use obprox::{ClassWeights, Lambda, Problem, Terms, distinct};

use super::penalty::PenaltyFlags;
use super::{not_negative, number, positive};
use crate::failure::Failure;
use crate::input::shown;
use crate::watch;

const LOSSES: [&str; 10] = [
    "logistic",
    "squared",
    "squared-hinge",
    "huber",
    "poisson",
    "gamma",
    "tweedie",
    "negative-binomial",
    "softmax",
    "cox",
];

/// The flags that state the problem.
#[derive(Args, Debug)]
#[command(next_help_heading = "The problem")]
pub struct ProblemFlags {
    /// The loss; softmax is for several classes, squared and huber for numbers, poisson and negative-binomial for
    /// counts, gamma for positive amounts, tweedie for amounts that may be zero, cox for times to an event (negative
    /// where the row is censored, or with --event)
    #[arg(long, value_name = "LOSS", default_value = "logistic", value_parser = LOSSES)]
    loss: String,

    /// Where the Huber loss turns from quadratic to linear [default: 1.345]
    #[arg(long, value_name = "DELTA", value_parser = positive, allow_negative_numbers = true)]
    huber_delta: Option<f64>,

    /// The power p of the Tweedie loss, whose variance is in proportion to mean^p [default: 1.5]
    #[arg(long, value_name = "P", value_parser = tweedie_power, allow_negative_numbers = true)]
    tweedie_power: Option<f64>,

    /// θ of the negative binomial loss, whose variance is mean + mean²/θ [default: 1]
    #[arg(long, value_name = "THETA", value_parser = positive, allow_negative_numbers = true)]
    theta: Option<f64>,

    /// How the cox loss counts events at the same time [default: efron]
    #[arg(long, value_name = "HOW", value_enum)]
    ties: Option<TiesName>,

    /// λ₂, the weight of ½‖x‖₂² (elastic net)
    #[arg(long, value_name = "LAMBDA2", default_value = "0", value_parser = not_negative, allow_negative_numbers = true)]
    pub l2: f64,

    /// Leave out the intercept, which is otherwise fitted and never penalised
    #[arg(long)]
    no_intercept: bool,

    /// Scale columns to unit deviation while training; weights come out in the data's units
    #[arg(long)]
    pub standardize: bool,

    /// A file with the weight of each row, one a line
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,

    /// A file with what is added to the margin of each row, one a line: known beforehand, such as the logarithm of an
    /// exposure, and not learnt
    #[arg(long, value_name = "FILE")]
    pub offset: Option<PathBuf>,

    /// A file with the penalty's weight for each feature, one a line; 0 leaves it unpenalised
    #[arg(long, value_name = "FILE")]
    pub feature_weights: Option<PathBuf>,

    #[command(flatten)]
    pub penalty: PenaltyFlags,

    /// Weights of the classes: balanced, or label:weight pairs such as -1:2,1:1
    #[arg(long, value_name = "WEIGHTS", value_parser = parse_class_weights, allow_hyphen_values = true)]
    class_weight: Option<ClassWeights>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TiesName {
    Efron,
    Breslow,
}

impl ProblemFlags {
    /// Whether the flags go together; reads nothing.
    pub fn check(&self) -> Result<(), Failure> {
        for (flag, parameter, loss) in self.parameters() {
            if parameter.is_some() && self.loss != loss {
                return Err(Failure::input(format!("{flag}: the {} loss has no such parameter", self.loss)));
            }
        }
        if self.ties.is_some() && self.loss != "cox" {
            return Err(Failure::input(format!("--ties: the {} loss has no such parameter", self.loss)));
        }
        if self.offset.is_some() && self.loss == "softmax" {
            return Err(Failure::input(
                "--offset: the softmax loss has a margin for each class, and an offset is for one",
            ));
        }
        let has_classes = matches!(self.loss().task(), Task::Binary | Task::Classes);
        if self.class_weight.is_some() && !has_classes {
            return Err(Failure::input(format!("--class-weight: the {} loss has no classes", self.loss)));
        }
        self.penalty.check(self.feature_weights.is_some())
    }

    /// The loss; of softmax, that of two classes, since the data is not known yet.
    pub fn loss(&self) -> Arc<dyn Loss> {
        self.kind().build(2)
    }

    fn kind(&self) -> LossKind {
        if let Some(TiesName::Breslow) = self.ties {
            return LossKind::Cox(Ties::Breslow);
        }
        let parameter = self.parameters().into_iter().find_map(|(_, parameter, _)| parameter);
        LossKind::from_name(&self.loss, parameter).expect("clap lets only known names through")
    }

    /// The parameters of losses: the flag, what was given, and whose it is.
    fn parameters(&self) -> [(&'static str, Option<f64>, &'static str); 3] {
        [
            ("--huber-delta", self.huber_delta, "huber"),
            ("--tweedie-power", self.tweedie_power, "tweedie"),
            ("--theta", self.theta, "negative-binomial"),
        ]
    }

    /// Reads the weights and states the problem.
    pub fn problem(&self, data: Dataset, file: &Path, lambda: Lambda, quiet: bool) -> Result<Problem, Failure> {
        let terms = self.terms(data.matrix.n_cols(), lambda)?;
        let _waiting = watch::waiting("preparing the problem".into(), quiet);
        let loss = self.kind().build(self.classes(|| Ok(data.targets.clone()))?);
        Problem::new(data, loss, &terms).map_err(Failure::about(&shown(file)))
    }

    /// The same of rows that are read shard by shard.
    pub fn problem_of_shards(&self, data: Arc<ShardedData>, lambda: Lambda, quiet: bool) -> Result<Problem, Failure> {
        let terms = self.terms(data.n_cols(), lambda)?;
        let _waiting = watch::waiting("preparing the problem".into(), quiet);
        let loss = self.kind().build(self.classes(|| data.targets())?);
        Ok(Problem::of_shards(data, loss, &terms)?)
    }

    /// The classes that the loss is made for.
    fn classes(&self, targets: impl FnOnce() -> obprox::Result<Buffer<f64>>) -> Result<usize, Failure> {
        Ok(if self.kind() == LossKind::Softmax { distinct(&targets()?).len() } else { 1 })
    }

    fn terms(&self, n_cols: usize, lambda: Lambda) -> Result<Terms, Failure> {
        let vector = |path: &Option<PathBuf>| path.as_ref().map(read_vector).transpose();
        let weights = vector(&self.feature_weights)?;
        let penalty = self.penalty.read(n_cols, weights.as_deref())?;
        Ok(Terms {
            lambda,
            l2: self.l2,
            feature_weights: weights.filter(|_| penalty.is_none()),
            penalty,
            row_weights: vector(&self.weights)?,
            class_weights: self.class_weight.clone(),
            labels: None,
            offset: vector(&self.offset)?,
            intercept: !self.no_intercept,
            standardize: self.standardize,
        })
    }
}

fn tweedie_power(text: &str) -> Result<f64, String> {
    let power = number(text)?;
    if Tweedie::is_power(power) { Ok(power) } else { Err("must lie between 1 and 2; 1 is poisson, 2 is gamma".into()) }
}

/// `balanced` or `label:weight,…`.
fn parse_class_weights(text: &str) -> Result<ClassWeights, String> {
    if text == "balanced" {
        return Ok(ClassWeights::Balanced);
    }
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    for pair in text.split(',') {
        let (label, weight) = pair.split_once(':').ok_or("give balanced, or label:weight pairs such as -1:2,1:1")?;
        let label = number(label.trim()).map_err(|why| format!("the label {label:?} {why}"))?;
        let weight = not_negative(weight.trim()).map_err(|why| format!("the weight {weight:?} {why}"))?;
        if pairs.iter().any(|(known, _)| *known == label) {
            return Err(format!("the label {label} is given twice"));
        }
        pairs.push((label, weight));
    }
    Ok(ClassWeights::Given(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_weights_are_pairs() {
        assert_eq!(parse_class_weights("balanced"), Ok(ClassWeights::Balanced));
        assert_eq!(parse_class_weights("-1:2,1:0.5"), Ok(ClassWeights::Given(vec![(-1.0, 2.0), (1.0, 0.5)])));
        assert!(["", "1", "1:-2", "a:1", "1:2,1:3", "1:2,"].iter().all(|text| parse_class_weights(text).is_err()));
    }

    #[test]
    fn every_name_is_a_loss() {
        assert!(LOSSES.iter().all(|name| LossKind::from_name(name, None).is_some()));
    }
}
