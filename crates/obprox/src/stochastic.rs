//! A stochastic run: batches, schedule, switch and clock around an engine.

use std::io::{self, Read, Write};

use crate::batches::Batches;
use crate::certificate::Certificate;
use crate::engine::blocks::{BlockEngine, BlockRule};
use crate::engine::{Stepper, engine};
use crate::method::{AveragedSvrg, Clock, ObproxSg, ProxSg, ProxSvrg, Rda};
use crate::observe::{Control, Progress};
use crate::problem::{Point, Problem};
use crate::schedule::Schedule;
use crate::settings::{Method, Settings};
use crate::solver::{Ended, Solver, Standing};
use crate::switch::{Phase, Switch};
use crate::{Error, Result};

/// The state of a stochastic run between two steps.
pub(crate) struct Stochastic<'a> {
    engine: Box<dyn Stepper + 'a>,
    batches: Batches<'a>,
    schedule: Schedule,
    first_step_size: f64,
    /// Of a method that has two kinds of steps.
    switch: Option<Switch>,
    /// Whether α is held within an epoch: closed forms under a constant gradient ask for it.
    hold_step_size: bool,
    clock: Clock,
    epoch: u64,
    phase: Phase,
}

/// The engine of one of the paper's methods.
pub(crate) fn stepper<'a>(problem: &'a Problem, method: &Method) -> Result<Box<dyn Stepper + 'a>> {
    if let (Some(penalty), Some(rule)) = (problem.regularization().on_blocks(), BlockRule::of(method)) {
        return Ok(Box::new(BlockEngine::new(problem, penalty, rule)));
    }
    Ok(match *method {
        Method::ProxSg => engine(problem, ProxSg),
        Method::Rda { gamma } => engine(problem, Rda { gamma }),
        Method::ProxSvrg { average: true } => engine(problem, AveragedSvrg),
        Method::ProxSvrg { average: false } => engine(problem, ProxSvrg),
        Method::ObproxSg { .. } | Method::ObproxSgPlus { .. } => engine(problem, ObproxSg::default()),
        Method::Auto | Method::Own { .. } => {
            let message = format!("{} is none that is known here; give a rule or a solver to the run", method.name());
            return Err(Error::parameter("method", message));
        }
    })
}

impl<'a> Stochastic<'a> {
    /// Prepares a run from x = 0 or from a given point.
    pub fn new(
        problem: &'a Problem,
        settings: &Settings,
        engine: Box<dyn Stepper + 'a>,
        start: Option<&Point>,
        (epochs, steps): (u64, u64),
    ) -> Result<Self> {
        let batches = Batches::new(problem, settings.batch, settings.seed)?;
        let first_step_size = settings.step.resolve(problem, batches.batch_rows())?;
        let mut run = Self {
            hold_step_size: engine.is_anchored(),
            engine,
            batches,
            schedule: settings.schedule,
            first_step_size,
            switch: settings.method.switch(),
            clock: Clock { step_size: first_step_size, steps, ..Clock::default() },
            epoch: epochs,
            phase: Phase::Prox,
        };
        if let Some(start) = start {
            run.engine.place(start, &run.clock);
        }
        Ok(run)
    }

    fn set_step_size(&mut self) {
        self.clock.step_size = self.schedule.at(self.first_step_size, self.epoch, self.clock.steps);
        self.clock.tick = self.engine.tick(self.clock.step_size);
    }

    /// Zeros stay zeros from here on.
    fn compact(&mut self) {
        if self.engine.compact(self.batches.bytes_held(), &self.clock)
            && let Some(kept) = self.engine.kept()
        {
            self.batches.keep_columns(kept);
        }
    }

    fn enter_phase(&mut self) {
        if let Some(switch) = self.switch {
            self.phase = switch.phase(self.epoch, self.clock.steps, self.phase);
            self.engine.enter(self.phase);
        }
    }
}

impl Solver for Stochastic<'_> {
    fn epoch(&mut self, tell: &mut dyn FnMut(Progress) -> Control) -> Result<Ended> {
        let batches = self.batches.count() as u64;
        if self.clock.steps_in_epoch == 0 {
            self.set_step_size();
            self.enter_phase();
            if self.switch.is_some_and(|switch| switch.is_final(self.phase)) {
                self.compact();
            }
            self.engine.begin_epoch(&self.clock)?;
        }
        self.batches.begin_epoch(self.epoch, self.clock.steps_in_epoch as usize);
        while self.clock.steps_in_epoch < batches {
            if !self.hold_step_size {
                self.set_step_size();
            }
            self.enter_phase();
            let (rows, batch) = self.batches.batch(self.clock.steps_in_epoch as usize)?;
            let finite = self.engine.step(rows, batch, &self.clock);
            self.clock.advance();
            if !finite {
                return Ok(Ended::NotFinite);
            }
            let progress = Progress {
                epoch: self.epoch + 1,
                step: self.clock.steps_in_epoch,
                steps: batches,
                phase: self.phase,
                stage: None,
            };
            if tell(progress) == Control::Stop && self.clock.steps_in_epoch < batches {
                return Ok(Ended::Stopped);
            }
        }
        self.engine.end_epoch(&self.clock);
        self.clock.steps_in_epoch = 0;
        self.epoch += 1;
        Ok(Ended::Epoch)
    }

    fn batch_rows(&self) -> usize {
        self.batches.batch_rows()
    }

    fn point(&self) -> Point {
        self.engine.point(&self.clock)
    }

    fn standing(&self) -> Standing {
        Standing { iterations: self.clock.steps, phase: self.phase, step_size: self.clock.step_size, round: None }
    }

    fn measured(&mut self, certificate: &Certificate, score: Option<f64>) {
        if let Some(switch) = self.switch {
            self.phase = switch.measure(self.phase, certificate, score);
        }
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let Clock { step_size, steps, steps_in_epoch, elapsed, tick } = self.clock;
        let phase = u64::from(self.phase == Phase::Orthant);
        for word in [step_size.to_bits(), steps, steps_in_epoch, elapsed.to_bits(), tick.to_bits(), self.epoch, phase] {
            out.write_all(&word.to_le_bytes())?;
        }
        self.engine.save(out)
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let mut words = [0; 7];
        for word in &mut words {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes)?;
            *word = u64::from_le_bytes(bytes);
        }
        let [step_size, steps, steps_in_epoch, elapsed, tick, epoch, phase] = words;
        self.clock = Clock {
            step_size: f64::from_bits(step_size),
            steps,
            steps_in_epoch,
            elapsed: f64::from_bits(elapsed),
            tick: f64::from_bits(tick),
        };
        // A run takes as many steps in each of its epochs, and its clock never runs back.
        let batches = self.batches.count() as u64;
        let counted = epoch.checked_mul(batches).and_then(|before| before.checked_add(steps_in_epoch));
        let Clock { step_size, elapsed, tick, .. } = self.clock;
        let times = [step_size, elapsed, tick].iter().all(|time| time.is_finite() && *time >= 0.0);
        if counted != Some(steps) || steps_in_epoch > batches || !times {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a clock that is none"));
        }
        self.epoch = epoch;
        self.phase = if phase == 1 { Phase::Orthant } else { Phase::Prox };
        self.engine.load(input, &self.clock)?;
        if let Some(kept) = self.engine.kept() {
            self.batches.keep_columns(kept);
        }
        Ok(())
    }
}
