//! How a network is trained.

use obprox::switch::{Switch, Unit};
use obprox::{Error, MethodKind, Result};
use serde::{Deserialize, Serialize};

use super::{Penalty, Schedule};
use crate::data::Augment;
use crate::optim::Plan;

/// Everything that decides on the course of a run but the network and the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The method; `auto` is none for networks.
    pub method: MethodKind,
    /// λ. Where a density is asked for it is the λ of a start, and weighs layers against each other.
    pub penalty: Penalty,
    /// Passes over the training images.
    pub epochs: u64,
    /// Images in a batch.
    pub batch: usize,
    /// The first step size α.
    pub step: f64,
    /// How α moves.
    pub schedule: Schedule,
    /// When Prox-SG gives way to Orthant; used by the two methods that switch.
    pub switch: Switch,
    /// The density that the run ends with at most, held in closed loop: λ follows what is still to be lost.
    pub target: Option<Plan>,
    /// The share of the groups of channels that the run ends with as zeros, exactly; they can be cut out.
    #[serde(default)]
    pub target_groups: Option<f64>,
    /// γ of RDA.
    pub gamma: f64,
    /// Whether Prox-SVRG takes the mean of an epoch's iterates instead of the last.
    pub average: bool,
    /// Momentum of the gradient; 0 is none.
    pub momentum: f64,
    /// The weight λ₂ of (λ₂/2)‖x‖² over the weights of two or more dimensions and whatever else is penalised; 0 is none.
    pub weight_decay: f64,
    /// What is done to images before they are trained on.
    pub augment: Augment,
    /// The seed of batches and augmentation.
    pub seed: u64,
    /// Computes F and accuracy every so many epochs, and at the end always. Without a number F is computed at the end
    /// alone, and the accuracy as often as costs little.
    pub eval_every: Option<u64>,
}

impl Settings {
    /// The paper's settings of a method: λ = 1e-4, batches of 128, 200 epochs, α = 0.1 ×0.1 every 60 epochs.
    pub fn paper(method: MethodKind) -> Self {
        let switch = match method {
            MethodKind::ObproxSg => Switch::PAPER,
            _ => Switch::Fixed { prox: 100, orthant: None, unit: Unit::Epochs },
        };
        Self {
            method,
            penalty: Penalty::new(1e-4),
            epochs: 200,
            batch: 128,
            step: 0.1,
            schedule: Schedule::Steps { factor: 0.1, every: 60 },
            switch,
            target: None,
            target_groups: None,
            gamma: 20.0,
            average: false,
            momentum: 0.0,
            weight_decay: 0.0,
            augment: Augment::USUAL,
            seed: 0,
            eval_every: Some(1),
        }
    }

    /// The settings that train best, by measurement (`benches/NETS.md`): momentum, a step size that rises over half an
    /// epoch and falls to nothing, a little weight decay. With a density asked for the steps are Orthant steps from the
    /// first on, until it is reached and zeros are held.
    pub fn recipe(method: MethodKind, epochs: u64, density: Option<f64>) -> Self {
        let momentum = if method == MethodKind::Rda { 0.0 } else { 0.9 };
        let switch = match (method, density) {
            (MethodKind::ObproxSg, _) => Switch::PAPER,
            (_, Some(_)) => Switch::Fixed { prox: 0, orthant: None, unit: Unit::Epochs },
            (_, None) => Switch::Fixed { prox: epochs.div_ceil(2), orthant: None, unit: Unit::Epochs },
        };
        Self {
            epochs,
            step: 0.2,
            schedule: Schedule::Cosine { warmup: 0.5 },
            switch,
            target: density.map(Plan::new),
            momentum,
            weight_decay: if method == MethodKind::Rda { 0.0 } else { 5e-3 },
            eval_every: None,
            ..Self::paper(method)
        }
    }

    /// Whether the method switches between two kinds of steps.
    pub fn switches(&self) -> bool {
        matches!(self.method, MethodKind::ObproxSg | MethodKind::ObproxSgPlus)
    }

    /// Checks ranges, and what does not go together; `test` says whether there are images to score on.
    pub fn check(&self, test: bool) -> Result<()> {
        let positive = |name, value: f64| match value.is_finite() && value > 0.0 {
            true => Ok(()),
            false => Err(Error::parameter(name, format!("{value} must be a finite number above 0"))),
        };
        if self.method == MethodKind::Auto {
            return Err(Error::parameter(
                "solver",
                "auto solves linear problems only: name one of the paper's methods",
            ));
        }
        positive("step", self.step)?;
        positive("gamma", self.gamma)?;
        self.schedule.check()?;
        for (name, count) in [("batch", self.batch as u64), ("eval-every", self.eval_every.unwrap_or(1))] {
            if count == 0 {
                return Err(Error::parameter(name, "must be at least 1"));
            }
        }
        if !(0.0..1.0).contains(&self.momentum) {
            return Err(Error::parameter("momentum", format!("{} must be at least 0 and below 1", self.momentum)));
        }
        if !(self.weight_decay.is_finite() && self.weight_decay >= 0.0) {
            return Err(Error::parameter("weight-decay", format!("{} must not be negative", self.weight_decay)));
        }
        if self.method == MethodKind::Rda && (self.momentum > 0.0 || self.weight_decay > 0.0) {
            return Err(Error::parameter(
                "momentum",
                "rda averages its gradients: it takes no momentum or weight decay",
            ));
        }
        self.check_target()?;
        if self.target_groups.is_some() && matches!(self.method, MethodKind::Rda | MethodKind::ProxSvrg) {
            let message = format!("{} makes its steps of more than the last weights: name another", self.method.name());
            return Err(Error::parameter("target-group-sparsity", message));
        }
        if self.switches() { self.switch.check_for_network(test) } else { Ok(()) }
    }

    fn check_target(&self) -> Result<()> {
        let Some(plan) = &self.target else { return Ok(()) };
        plan.check()?;
        if !self.switches() {
            let message = format!("only obproxsg and obproxsg-plus can hold a density, {} cannot", self.method.name());
            return Err(Error::parameter("target-density", message));
        }
        if self.penalty.lambda == 0.0 && self.penalty.layers.iter().all(|layer| layer.lambda == 0.0) {
            let message = "needs a λ above 0: it says what is penalised, and its size is found on the way";
            return Err(Error::parameter("target-density", message));
        }
        Ok(())
    }

    /// The settings in which another run differs, by name. The number of epochs is none of them where nothing is planned
    /// towards the end: such a run may go on for longer than it was to.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let fields = |settings: &Self| match serde_json::to_value(settings) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (ours, theirs) = (fields(self), fields(other));
        let open = !self.schedule.knows_its_end() && self.target.is_none() && self.target_groups.is_none();
        let free = |name: &str| open && name == "epochs";
        let differ = |name: &&String| !free(name) && ours.get(*name) != theirs.get(*name);
        ours.keys().filter(differ).map(|name| name.replace('_', "-")).collect()
    }
}
