//! How it is minimised: steps, batches, switching, stopping.

use clap::Args;
use clap::builder::PossibleValuesParser;
use obprox::sampler::Batch;
use obprox::schedule::{Schedule, StepSize};
use obprox::switch::{Switch, Words};
use obprox::{Method, MethodKind, Settings};

use super::switch::{Rounds, parse_rounds};
use super::{ProblemFlags, count, not_negative, positive, whole};
use crate::failure::Failure;

/// The flags of every subcommand that trains.
#[derive(Args, Debug)]
#[command(next_help_heading = "The method")]
pub struct MethodFlags {
    /// At most this many passes over the data [default: 30; auto: 200 rounds]
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    epochs: Option<u64>,

    /// Rows in a batch; the letter N means all of them [default: min(256, ⌈N/100⌉)]
    #[arg(long, value_name = "ROWS", value_parser = parse_batch, allow_negative_numbers = true)]
    batch: Option<Batch>,

    /// The first step size α, or auto: from the smoothness of loss and data [default: 1]
    #[arg(long, value_name = "ALPHA", value_parser = parse_step, allow_negative_numbers = true)]
    step: Option<StepSize>,

    /// How α moves: decay (each epoch), constant, 1/k or 1/sqrt-k (each step) [default: decay]
    #[arg(long, value_name = "RULE", value_parser = ["decay", "constant", "1/k", "1/sqrt-k"])]
    schedule: Option<String>,

    /// What α is multiplied by after each epoch [default: 0.995]
    #[arg(long, value_name = "FACTOR", value_parser = parse_decay, allow_negative_numbers = true)]
    decay: Option<f64>,

    /// N_P, Prox-SG epochs before Orthant [default: 5; obproxsg-plus 15]
    #[arg(long, value_name = "N", value_parser = whole, allow_negative_numbers = true)]
    np: Option<u64>,

    /// N_O, Orthant epochs before Prox-SG again, or inf [default: 5; obproxsg-plus inf]
    #[arg(long, value_name = "N", value_parser = parse_rounds, allow_negative_numbers = true)]
    no: Option<Rounds>,

    /// When to switch: by --np and --no counted in epochs or iterations, adaptive, or once
    /// objective:VALUE or score:VALUE (on --test) is reached
    #[arg(long, value_name = "RULE", value_parser = Words::of_problem)]
    switch: Option<Words>,

    /// γ of rda [default: 0.1]
    #[arg(long, value_name = "GAMMA", value_parser = positive, allow_negative_numbers = true)]
    gamma: Option<f64>,

    /// prox-svrg: take the mean of an epoch's iterates instead of the last
    #[arg(long)]
    average: bool,

    /// Stop at this relative duality gap (KKT distance where the loss has no dual)
    #[arg(long, value_name = "GAP", default_value = "1e-6", value_parser = not_negative, allow_negative_numbers = true)]
    tol: f64,

    /// The seed that decides the batches
    #[arg(long, value_name = "SEED", default_value = "0", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,

    /// Compute F and the certificates every so many epochs; at the end always
    #[arg(long, value_name = "EPOCHS", default_value = "1", value_parser = count, allow_negative_numbers = true)]
    eval_every: u64,
}

impl MethodFlags {
    /// The settings for a method. Flags that it has no use for are passed over: see [`unused`](Self::unused).
    pub fn settings(&self, method: MethodKind) -> Result<Settings, Failure> {
        let method = self.method(method)?;
        let defaults = Settings::with_method(method);
        Ok(Settings {
            epochs: self.epochs.unwrap_or(defaults.epochs),
            batch: self.batch.unwrap_or(defaults.batch),
            step: self.step.unwrap_or(defaults.step),
            schedule: self.schedule()?,
            tolerance: self.tol,
            seed: self.seed,
            eval_every: self.eval_every,
            ..defaults
        })
    }

    /// The method with what the flags say of it.
    fn method(&self, kind: MethodKind) -> Result<Method, Failure> {
        Ok(match (Method::from(kind), kind.switch()) {
            (Method::Rda { gamma }, _) => Method::Rda { gamma: self.gamma.unwrap_or(gamma) },
            (Method::ProxSvrg { .. }, _) => Method::ProxSvrg { average: self.average },
            (Method::ObproxSg { .. }, Some(paper)) => Method::ObproxSg { switch: self.switch(paper)? },
            (Method::ObproxSgPlus { .. }, Some(paper)) => Method::ObproxSgPlus { switch: self.switch(paper)? },
            (method, _) => method,
        })
    }

    /// The flags that were given but have no meaning for a method.
    pub fn unused(&self, method: MethodKind) -> Vec<&'static str> {
        let stochastic = method != MethodKind::Auto;
        let steps = stochastic && method != MethodKind::Rda;
        let switches = method.switch().is_some();
        [
            ("--batch", self.batch.is_some(), stochastic),
            ("--step", self.step.is_some(), steps),
            ("--schedule", self.schedule.is_some(), steps),
            ("--decay", self.decay.is_some(), steps),
            ("--np", self.np.is_some(), switches),
            ("--no", self.no.is_some(), switches),
            ("--switch", self.switch.is_some(), switches),
            ("--gamma", self.gamma.is_some(), method == MethodKind::Rda),
            ("--average", self.average, method == MethodKind::ProxSvrg),
        ]
        .into_iter()
        .filter(|(_, given, used)| *given && !used)
        .map(|(flag, ..)| flag)
        .collect()
    }

    fn schedule(&self) -> Result<Schedule, Failure> {
        let name = self.schedule.as_deref().unwrap_or("decay");
        let schedule = match name {
            "constant" => Schedule::Constant,
            "1/k" => Schedule::OverK,
            "1/sqrt-k" => Schedule::OverSqrtK,
            _ => return Ok(self.decay.map_or(Schedule::default(), Schedule::Decay)),
        };
        match self.decay {
            Some(_) => Err(Failure::input(format!("--decay: cannot be used with --schedule {name}"))),
            None => Ok(schedule),
        }
    }

    /// When to switch: where nothing is said, as the paper has it.
    fn switch(&self, paper: Switch) -> Result<Switch, Failure> {
        let Switch::Fixed { prox, orthant, unit } = paper else { return Ok(paper) };
        let unit = match self.switch {
            None => unit,
            Some(Words::Counted(unit)) => unit,
            Some(Words::Measured(switch)) => {
                let flag = if self.np.is_some() { Some("--np") } else { self.no.map(|_| "--no") };
                return match flag {
                    Some(flag) => Err(Failure::input(format!("{flag}: cannot be used with --switch {switch}"))),
                    None => Ok(switch),
                };
            }
        };
        let prox = self.np.unwrap_or(prox);
        let orthant = self.no.map_or(orthant, |rounds| rounds.0);
        let switch = Switch::Fixed { prox, orthant, unit };
        switch.check()?;
        Ok(switch)
    }

    /// Whether the flags go with the problem's and with having test data; reads nothing.
    pub fn check(&self, problem: &ProblemFlags, has_test: bool) -> Result<(), Failure> {
        if matches!(self.switch, Some(Words::Measured(Switch::Score(_)))) && !has_test {
            return Err(Failure::input("--switch score: needs --test, the data to score on"));
        }
        let loss = problem.loss();
        if self.step == Some(StepSize::Auto) && loss.smoothness().is_none() {
            return Err(Failure::input(format!(
                "--step auto: the {} loss has no bound on its curvature: give a number",
                loss.name()
            )));
        }
        Ok(())
    }
}

/// The names of all solvers, for clap.
pub fn solver_names() -> PossibleValuesParser {
    PossibleValuesParser::new(MethodKind::ALL.map(MethodKind::name))
}

/// The solver of a name that clap let through.
pub fn parse_solver(name: &str) -> MethodKind {
    MethodKind::ALL.into_iter().find(|method| method.name() == name).expect("clap lets only known names through")
}

fn parse_batch(text: &str) -> Result<Batch, String> {
    match (text, text.parse()) {
        ("N", _) => Ok(Batch::All),
        (_, Ok(rows @ 1..)) => Ok(Batch::Rows(rows)),
        _ => Err("must be a whole number, at least 1, or the letter N for all rows".into()),
    }
}

fn parse_step(text: &str) -> Result<StepSize, String> {
    if text == "auto" {
        return Ok(StepSize::Auto);
    }
    positive(text).map(StepSize::Value).map_err(|why| format!("{why}, or auto"))
}

pub fn parse_decay(text: &str) -> Result<f64, String> {
    positive(text).ok().filter(|factor| *factor <= 1.0).ok_or("must lie above 0 and be at most 1".into())
}

/// A schedule in the words of `--schedule`.
pub fn schedule_words(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Decay(_) => "decay",
        Schedule::Constant => "constant",
        Schedule::OverK => "1/k",
        Schedule::OverSqrtK => "1/sqrt-k",
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use obprox::switch::Unit;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: MethodFlags,
    }

    fn settings(line: &str, method: MethodKind) -> Result<Settings, String> {
        let words = std::iter::once("test").chain(line.split_whitespace());
        let flags = Line::try_parse_from(words).map_err(|error| error.to_string())?.flags;
        flags.settings(method).map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn without_flags_the_settings_are_the_librarys() {
        for method in MethodKind::ALL {
            assert_eq!(settings("", method), Ok(Settings::with_method(method)));
        }
    }

    #[test]
    fn flags_reach_the_settings() {
        let plus = MethodKind::ObproxSgPlus;
        let switch = |line| settings(line, plus).unwrap().method.switch().unwrap();
        assert_eq!(switch("--np 3"), Switch::Fixed { prox: 3, orthant: None, unit: Unit::Epochs });
        let both = "--np 100 --no 50 --switch iterations";
        assert_eq!(switch(both), Switch::Fixed { prox: 100, orthant: Some(50), unit: Unit::Iterations });
        assert_eq!(switch("--switch objective:0.3"), Switch::Objective(0.3));
        assert_eq!(settings("--gamma 3", MethodKind::Rda).unwrap().method, Method::Rda { gamma: 3.0 });
        assert_eq!(settings("--average", MethodKind::ProxSvrg).unwrap().method, Method::ProxSvrg { average: true });
        let all = settings("--batch N --step auto --schedule 1/sqrt-k --epochs 7 --seed 3 --tol 0", plus).unwrap();
        assert_eq!((all.batch, all.step, all.schedule), (Batch::All, StepSize::Auto, Schedule::OverSqrtK));
        assert_eq!((all.epochs, all.seed, all.tolerance), (7, 3, 0.0));
    }

    #[test]
    fn flags_that_do_not_go_together_are_refused() {
        let refused = |line, method| settings(line, method).is_err();
        assert!(refused("--np 0 --no 0", MethodKind::ObproxSg));
        assert!(refused("--switch adaptive --np 3", MethodKind::ObproxSg));
        assert!(refused("--schedule constant --decay 0.9", MethodKind::ProxSg));
    }

    #[test]
    fn flags_without_meaning_are_named() {
        let unused = |line: &str, method| {
            let words = std::iter::once("test").chain(line.split_whitespace());
            Line::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).flags.unused(method)
        };
        assert_eq!(unused("--np 3 --gamma 1 --step 2", MethodKind::ProxSg), ["--np", "--gamma"]);
        assert_eq!(unused("--step 2 --average --gamma 1", MethodKind::Rda), ["--step", "--average"]);
        assert_eq!(unused("--batch N --epochs 3 --tol 1e-3", MethodKind::Auto), ["--batch"]);
        assert!(unused("--np 3 --no inf --batch N --decay 1", MethodKind::ObproxSg).is_empty());
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert!(["0", "-1", "n", "1.5"].iter().all(|text| parse_batch(text).is_err()));
        assert!(["0", "1.1", "nan"].iter().all(|text| parse_decay(text).is_err()));
    }
}
