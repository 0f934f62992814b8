//! Signs of life on a terminal; a pipe sees nothing of them.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use obprox::data::Reading;
use obprox::{Control, EpochRecord, Fit, Observer, Problem, Progress, Stage, Start};

use crate::show::{percent, significant};
use crate::threads;

/// Whether there is a terminal that wants to be drawn on.
pub fn visible(quiet: bool) -> bool {
    !quiet && std::io::stderr().is_terminal()
}

/// A spinner that is gone when this is dropped.
pub struct Waiting(Option<ProgressBar>);

/// A spinner for work whose length is not known.
pub fn waiting(what: String, quiet: bool) -> Waiting {
    // It turns by a thread of its own.
    Waiting((visible(quiet) && threads::are_to_be_had()).then(|| {
        let spinner = ProgressBar::new_spinner().with_message(what);
        spinner.enable_steady_tick(Duration::from_millis(100));
        spinner
    }))
}

impl Waiting {
    /// What it is about by now.
    pub fn say(&self, what: String) {
        if let Some(spinner) = &self.0 {
            spinner.set_message(what);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(spinner) = &self.0 {
            spinner.finish_and_clear();
        }
    }
}

/// Epoch, phase, live F and density of a run.
pub struct Bar {
    bar: ProgressBar,
    epochs: u64,
    figures: String,
}

impl Bar {
    /// A bar under a name; hidden where no one looks.
    pub fn new(name: impl Into<std::borrow::Cow<'static, str>>, quiet: bool) -> Self {
        let bar = if visible(quiet) { ProgressBar::new(0) } else { ProgressBar::hidden() };
        Self { bar: styled(bar, "{prefix} {bar:20} {msg}  {eta} left", name), epochs: 0, figures: String::new() }
    }
}

impl Bar {
    /// Shows passes over shards, where the rows are in some.
    pub fn watch(&self, problem: &Problem) {
        watch_reading(&self.bar, problem);
    }
}

/// Shows the pass that is under way before the bar: its shard, MB/s and the time it has left.
pub fn watch_reading(bar: &ProgressBar, problem: &Problem) {
    let Some(shards) = problem.shards().filter(|_| !bar.is_hidden()) else { return };
    let (bar, name) = (bar.clone(), bar.prefix());
    shards.watch(move |reading| bar.set_prefix(format!("{name}  {}", passing(reading))));
}

fn passing(reading: &Reading) -> String {
    let Reading { pass, shard, shards, .. } = reading;
    let (rate, left) = (reading.rate() / 1e6, reading.seconds_left());
    format!("pass {pass}, shard {shard}/{shards}, {rate:.0} MB/s, {left:.0} s left  ")
}

/// A bar in the one style of the command.
pub fn styled(
    bar: ProgressBar,
    template: &'static str,
    name: impl Into<std::borrow::Cow<'static, str>>,
) -> ProgressBar {
    bar.set_style(ProgressStyle::with_template(template).expect("the template is constant").progress_chars("━╸─"));
    bar.with_prefix(name)
}

impl Observer for Bar {
    fn start(&mut self, start: &Start) {
        self.epochs = start.settings.epochs;
        if let Some(last) = start.resumed.last() {
            self.figures = figures(last);
        }
    }

    fn step(&mut self, progress: &Progress) -> Control {
        // Steps can be shorter than a microsecond; drawing at each would cost more than training.
        let stride = (progress.steps / 64).max(1);
        if !self.bar.is_hidden() && (progress.step.is_multiple_of(stride) || progress.step == progress.steps) {
            let done = (progress.epoch - 1) * progress.steps + progress.step;
            if self.bar.length() == Some(0) {
                // Epochs of an earlier run must not count for the time that is left.
                self.bar.set_length(self.epochs * progress.steps);
                self.bar.set_position(done);
                self.bar.reset_eta();
            }
            self.bar.set_position(done);
            let (epoch, epochs) = (progress.epoch, self.epochs);
            let phase = progress.stage.map_or_else(|| progress.phase.name(), Stage::name);
            self.bar.set_message(format!("{epoch}/{epochs} {phase}{}", self.figures));
        }
        Control::Continue
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        self.figures = figures(record);
        Control::Continue
    }

    fn end(&mut self, _: &Fit) {
        self.bar.finish_and_clear();
    }
}

fn figures(record: &EpochRecord) -> String {
    let Some(certificate) = &record.certificate else { return String::new() };
    format!("  F {}  density {}", significant(certificate.objective), percent(certificate.density))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_says_where_it_is() {
        let reading = Reading { pass: 3, shard: 2, shards: 8, bytes: 50_000_000, of_bytes: 200_000_000, seconds: 0.5 };
        assert_eq!(passing(&reading).trim_end(), "pass 3, shard 2/8, 100 MB/s, 2 s left");
    }
}
