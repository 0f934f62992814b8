//! How a problem is solved: the method, and what the loop around it goes by.

use serde::{Deserialize, Serialize};

use crate::sampler::Batch;
use crate::schedule::{Schedule, StepSize};
use crate::switch::Switch;
use crate::{Error, Result};

/// The methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MethodKind {
    /// Finds the support, then proves the optimum.
    Auto,
    /// OBProx-SG: Prox-SG and Orthant steps in turn.
    #[serde(rename = "obproxsg")]
    ObproxSg,
    /// OBProx-SG+: Prox-SG steps, then Orthant steps for good.
    #[serde(rename = "obproxsg-plus")]
    ObproxSgPlus,
    /// The proximal stochastic gradient method.
    ProxSg,
    /// Regularised dual averaging.
    Rda,
    /// Proximal stochastic gradients with variance reduction.
    ProxSvrg,
}

impl MethodKind {
    /// All of them: the paper's five in the order of its tables, then `auto`.
    pub const ALL: [Self; 6] =
        [Self::ProxSg, Self::Rda, Self::ProxSvrg, Self::ObproxSg, Self::ObproxSgPlus, Self::Auto];

    /// The paper's five, in the order of its tables.
    pub const PAPER: [Self; 5] = [Self::ProxSg, Self::Rda, Self::ProxSvrg, Self::ObproxSg, Self::ObproxSgPlus];

    /// The name on the command line and in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::ObproxSg => "obproxsg",
            Self::ObproxSgPlus => "obproxsg-plus",
            Self::ProxSg => "prox-sg",
            Self::Rda => "rda",
            Self::ProxSvrg => "prox-svrg",
        }
    }

    /// The paper's rule, of a method that switches.
    pub fn switch(self) -> Option<Switch> {
        Method::from(self).switch()
    }
}

/// A method with what it alone goes by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Method {
    /// Finds the support, then proves the optimum.
    Auto,
    /// OBProx-SG: Prox-SG and Orthant steps in turn.
    ObproxSg {
        /// When one kind gives way to the other.
        switch: Switch,
    },
    /// OBProx-SG+: Prox-SG steps, then Orthant steps for good.
    ObproxSgPlus {
        /// When.
        switch: Switch,
    },
    /// The proximal stochastic gradient method.
    ProxSg,
    /// Regularised dual averaging.
    Rda {
        /// γ, the weight of the strongly convex part.
        gamma: f64,
    },
    /// Proximal stochastic gradients with variance reduction.
    ProxSvrg {
        /// Whether it takes the mean of an epoch's iterates instead of the last.
        average: bool,
    },
    /// One from outside this crate: [`Run::rule`](crate::Run::rule) and [`Run::solver`](crate::Run::solver) put it here.
    Own {
        /// What logs call it.
        name: String,
        /// When a rule that has two kinds of steps changes between them.
        switch: Option<Switch>,
    },
}

impl From<MethodKind> for Method {
    /// A method as the paper has it.
    fn from(kind: MethodKind) -> Self {
        match kind {
            MethodKind::Auto => Self::Auto,
            MethodKind::ObproxSg => Self::ObproxSg { switch: Switch::PAPER },
            MethodKind::ObproxSgPlus => Self::ObproxSgPlus { switch: Switch::PAPER_PLUS },
            MethodKind::ProxSg => Self::ProxSg,
            MethodKind::Rda => Self::Rda { gamma: 0.1 },
            MethodKind::ProxSvrg => Self::ProxSvrg { average: false },
        }
    }
}

impl Method {
    /// The name on the command line and in logs.
    pub fn name(&self) -> &str {
        match self {
            Self::Auto => MethodKind::Auto.name(),
            Self::ObproxSg { .. } => MethodKind::ObproxSg.name(),
            Self::ObproxSgPlus { .. } => MethodKind::ObproxSgPlus.name(),
            Self::ProxSg => MethodKind::ProxSg.name(),
            Self::Rda { .. } => MethodKind::Rda.name(),
            Self::ProxSvrg { .. } => MethodKind::ProxSvrg.name(),
            Self::Own { name, .. } => name,
        }
    }

    /// When Prox-SG gives way to Orthant, in a method that has both.
    pub fn switch(&self) -> Option<Switch> {
        match self {
            Self::ObproxSg { switch } | Self::ObproxSgPlus { switch } => Some(*switch),
            Self::Own { switch, .. } => *switch,
            Self::Auto | Self::ProxSg | Self::Rda { .. } | Self::ProxSvrg { .. } => None,
        }
    }

    fn check(&self, validation: bool) -> Result<()> {
        if let Self::Rda { gamma } = *self
            && !(gamma.is_finite() && gamma > 0.0)
        {
            return Err(Error::parameter("gamma", format!("{gamma} must be a positive finite number")));
        }
        let Some(switch) = self.switch() else { return Ok(()) };
        switch.check()?;
        match switch {
            Switch::Score(_) if !validation => {
                Err(Error::parameter("switch", "a switch on the score needs test data to score on"))
            }
            _ => Ok(()),
        }
    }
}

/// How a problem is solved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// At most this many epochs.
    pub epochs: u64,
    /// Rows in a batch.
    pub batch: Batch,
    /// The first step size α₀.
    pub step: StepSize,
    /// How α moves.
    pub schedule: Schedule,
    /// Stops at this relative duality gap, or KKT distance where the loss has no dual.
    pub tolerance: f64,
    /// The seed of the batches.
    pub seed: u64,
    /// Evaluates F and the certificates every so many epochs; at the end always.
    pub eval_every: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: Method::Auto,
            epochs: 200,
            batch: Batch::Paper,
            step: StepSize::default(),
            schedule: Schedule::default(),
            tolerance: 1e-6,
            seed: 0,
            eval_every: 1,
        }
    }
}

impl Settings {
    /// The defaults with another method.
    pub fn with_method(method: impl Into<Method>) -> Self {
        let method = method.into();
        // The paper trains for 30 epochs; a round of `auto` is no epoch, and it stops by itself.
        Self { epochs: if method == Method::Auto { 200 } else { 30 }, method, ..Self::default() }
    }

    pub(crate) fn check(&self, validation: bool) -> Result<()> {
        self.method.check(validation)?;
        if !(self.tolerance.is_finite() && self.tolerance >= 0.0) {
            let message = format!("{} must be a finite number, not negative", self.tolerance);
            return Err(Error::parameter("tol", message));
        }
        if let Schedule::Decay(factor) = self.schedule
            && !(factor > 0.0 && factor <= 1.0)
        {
            return Err(Error::parameter("decay", format!("{factor} must lie above 0 and be at most 1")));
        }
        if self.eval_every == 0 {
            return Err(Error::parameter("eval-every", "it counts epochs, at least 1"));
        }
        Ok(())
    }

    /// Whether a run with these settings may go on from a checkpoint of a run with `other`.
    pub(crate) fn continues(&self, other: &Self) -> bool {
        let free = |settings: &Self| Self { epochs: 0, tolerance: 0.0, eval_every: 1, ..settings.clone() };
        free(self) == free(other)
    }
}
