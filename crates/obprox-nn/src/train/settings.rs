//! How a network is trained.

use obprox::{Error, Method, Result};
use serde::{Deserialize, Serialize};

use super::{Penalty, Rule};
use crate::data::Augment;

/// The step size by epochs: multiplied by a factor every so many of them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepDecay {
    /// The factor.
    pub factor: f64,
    /// Epochs from one multiplication to the next.
    pub every: u64,
}

impl StepDecay {
    /// α in an epoch, counted from 0.
    pub fn at(self, first: f64, epoch: u64) -> f64 {
        first * self.factor.powf((epoch / self.every) as f64)
    }
}

/// Everything that decides on the course of a run but the network and the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The method; `auto` is none for networks.
    pub method: Method,
    /// λ.
    pub penalty: Penalty,
    /// Passes over the training images.
    pub epochs: u64,
    /// Images in a batch.
    pub batch: usize,
    /// The first step size α.
    pub step: f64,
    /// How α moves.
    pub decay: StepDecay,
    /// When Prox-SG gives way to Orthant; used by the two methods that switch.
    pub switch: Rule,
    /// Sparse enough: at this density of what is penalised its zeros are held, and nothing is shrunk any more.
    pub target_density: Option<f64>,
    /// γ of RDA.
    pub gamma: f64,
    /// Whether Prox-SVRG takes the mean of an epoch's iterates instead of the last.
    pub average: bool,
    /// Momentum of the gradient; 0 is none.
    pub momentum: f64,
    /// The weight λ₂ of (λ₂/2)‖x‖²; 0 is none.
    pub weight_decay: f64,
    /// What is done to images before they are trained on.
    pub augment: Augment,
    /// The seed of batches and augmentation.
    pub seed: u64,
    /// Computes F and accuracy every so many epochs; at the end always.
    pub eval_every: u64,
}

impl Settings {
    /// The paper's settings of a method: λ = 1e-4, batches of 128, 200 epochs, α = 0.1 ×0.1 every 60 epochs.
    pub fn paper(method: Method) -> Self {
        let switch = if method == Method::ObproxSg { Rule::PAPER } else { Rule::PAPER_PLUS };
        Self {
            method,
            penalty: Penalty::new(1e-4),
            epochs: 200,
            batch: 128,
            step: 0.1,
            decay: StepDecay { factor: 0.1, every: 60 },
            switch,
            target_density: None,
            gamma: 20.0,
            average: false,
            momentum: 0.0,
            weight_decay: 0.0,
            augment: Augment::USUAL,
            seed: 0,
            eval_every: 1,
        }
    }

    /// Whether the method switches between two kinds of steps.
    pub fn switches(&self) -> bool {
        matches!(self.method, Method::ObproxSg | Method::ObproxSgPlus)
    }

    /// Checks ranges, and what does not go together; `test` says whether there are images to score on.
    pub fn check(&self, test: bool) -> Result<()> {
        let positive = |name, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(Error::parameter(name, format!("{value} must be a finite number above 0"))),
        };
        let share = |name, value: f64| match (0.0..1.0).contains(&value) {
            true => Ok(()),
            false => Err(Error::parameter(name, format!("{value} must be at least 0 and below 1"))),
        };
        if self.method == Method::Auto {
            return Err(Error::parameter(
                "solver",
                "auto solves linear problems only: name one of the paper's methods",
            ));
        }
        positive("step", self.step)?;
        positive("gamma", self.gamma)?;
        if !(self.decay.factor > 0.0 && self.decay.factor <= 1.0) {
            return Err(Error::parameter("decay", format!("{} must lie above 0 and be at most 1", self.decay.factor)));
        }
        for (name, count) in
            [("batch", self.batch as u64), ("decay-every", self.decay.every), ("eval-every", self.eval_every)]
        {
            if count == 0 {
                return Err(Error::parameter(name, "must be at least 1"));
            }
        }
        share("momentum", self.momentum)?;
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            return Err(Error::parameter("weight-decay", format!("{} must not be negative", self.weight_decay)));
        }
        if self.method == Method::Rda && (self.momentum > 0.0 || self.weight_decay > 0.0) {
            return Err(Error::parameter(
                "momentum",
                "rda averages its gradients: it takes no momentum or weight decay",
            ));
        }
        if let Some(target) = self.target_density {
            share("target-density", target)?;
            if !self.switches() {
                let message =
                    format!("only obproxsg and obproxsg-plus can hold a density, {} cannot", self.method.name());
                return Err(Error::parameter("target-density", message));
            }
        }
        if self.switches() { self.switch.check(test) } else { Ok(()) }
    }

    /// The settings in which another run differs, by name. The number of epochs is none of them: a run may go on for
    /// longer than was planned.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let fields = |settings: &Self| match serde_json::to_value(settings) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (ours, theirs) = (fields(self), fields(other));
        let differ = |name: &&String| name.as_str() != "epochs" && ours.get(*name) != theirs.get(*name);
        ours.keys().filter(differ).map(|name| name.replace('_', "-")).collect()
    }
}
