//! Signs of life from many runs: along a path, and from folds in parallel. Ctrl-C ends both.

use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::ProgressBar;
use obprox::cv::FoldProgress;
use obprox::{Control, EpochRecord, Error, Fit, Observer, Problem, Progress, Start};

use super::interrupt;
use super::progress::{styled, visible, watch_reading};
use crate::losses::{Losses, Unsaved};
use crate::show::digits;

/// Counts the runs of a path or a search, and stops them when Ctrl-C was pressed.
pub struct PathBar {
    bar: ProgressBar,
    unsaved: Unsaved,
}

impl PathBar {
    /// A bar for so many runs; without a count it only turns.
    pub fn new(name: &'static str, runs: Option<usize>, quiet: bool) -> Self {
        Self { bar: bar(name, runs, quiet), unsaved: Unsaved::default() }
    }

    /// The end of the runs: what could not be saved of them.
    pub fn losses(self) -> Losses {
        self.unsaved.losses()
    }

    /// Shows passes over shards, where the rows are in some.
    pub fn watch(&self, problem: &Problem) {
        watch_reading(&self.bar, problem);
    }
}

impl Observer for PathBar {
    fn start(&mut self, start: &Start) {
        interrupt::training();
        self.bar.tick();
        let share = start.problem.lambda() / start.problem.lambda_max();
        self.bar.set_message(format!("{}  λ = {} λ_max", self.bar.position() + 1, digits(share, 3)));
    }

    fn step(&mut self, _: &Progress) -> Control {
        asked()
    }

    fn epoch(&mut self, _: &EpochRecord) -> Control {
        asked()
    }

    fn unsaved(&mut self, error: &Error) -> Control {
        self.unsaved.hear(error)
    }

    fn end(&mut self, _: &Fit) {
        self.bar.inc(1);
    }
}

/// Counts the λ of all folds; heard from several threads.
pub struct FoldsBar {
    bar: ProgressBar,
    done: Vec<AtomicUsize>,
    pub unsaved: Unsaved,
}

impl FoldsBar {
    /// A bar for so many folds and λ.
    pub fn new(name: &'static str, folds: usize, lambdas: usize, quiet: bool) -> Self {
        interrupt::training();
        let done = (0..folds).map(|_| AtomicUsize::new(0)).collect();
        Self { bar: bar(name, Some(folds * lambdas), quiet), done, unsaved: Unsaved::default() }
    }

    /// Hears of a fold's step.
    pub fn hear(&self, progress: &FoldProgress) -> Control {
        if !self.bar.is_hidden() {
            self.done[progress.fold].store(progress.done, Ordering::Relaxed);
            self.bar.set_position(self.done.iter().map(|done| done.load(Ordering::Relaxed) as u64).sum());
            self.bar.set_message(format!("fold {}: {}/{} λ", progress.fold + 1, progress.done, progress.lambdas));
        }
        asked()
    }
}

fn asked() -> Control {
    if interrupt::pressed() { Control::Stop } else { Control::Continue }
}

fn bar(name: &'static str, runs: Option<usize>, quiet: bool) -> ProgressBar {
    match (visible(quiet), runs) {
        (false, _) => ProgressBar::hidden(),
        (true, Some(runs)) => styled(ProgressBar::new(runs as u64), "{prefix} {bar:20} {msg}  {eta} left", name),
        (true, None) => styled(ProgressBar::new_spinner(), "{prefix} {spinner} {msg}", name),
    }
}

impl Drop for PathBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for FoldsBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
