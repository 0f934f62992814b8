//! One run of an experiment, with a sign of life, until it ends or Ctrl-C is pressed.

use obprox::{Fit, Problem, Run, Settings};

use crate::failure::Failure;
use crate::watch::{Bar, interrupt};

/// Runs; nothing where Ctrl-C ended it.
pub fn attempt(problem: &Problem, settings: Settings, name: String, quiet: bool) -> Result<Option<Fit>, Failure> {
    let mut bar = Bar::new(name, quiet);
    let mut stop = interrupt::Interrupt;
    let fit = Run::new(problem, settings).observe(&mut bar).observe(&mut stop).fit()?;
    Ok((!interrupt::pressed()).then_some(fit))
}
