//! Signs of life while a network trains: F, density, accuracy and the time that is left.

use indicatif::ProgressBar;
use obprox::Control;
use obprox_nn::train::{EpochRecord, Observer, Progress, Start, Trained};

use crate::losses::{Losses, Unsaved};
use crate::show::{percent, significant};
use crate::watch::{interrupt, styled, visible};

/// A bar over all steps of the run; Ctrl-C ends the run after the step under way.
pub struct Bar {
    bar: ProgressBar,
    epochs: u64,
    figures: String,
    words: String,
    unsaved: Unsaved,
}

impl Bar {
    /// A bar under a name; hidden where no one looks.
    pub fn new(name: &str, quiet: bool) -> Self {
        let bar = if visible(quiet) { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let bar = styled(bar, "{prefix} {bar:16} {msg}  {eta} left", name.to_owned());
        Self { bar, epochs: 0, figures: String::new(), words: String::new(), unsaved: Unsaved::default() }
    }

    /// What could not be saved of the run.
    pub fn losses(&self) -> Losses {
        self.unsaved.losses()
    }
}

impl Observer for Bar {
    fn start(&mut self, start: &Start) {
        interrupt::training();
        self.epochs = start.settings.epochs;
        self.figures = start.resumed.last().map(figures).unwrap_or_default();
    }

    fn step(&mut self, progress: &Progress) -> Control {
        if !self.bar.is_hidden() {
            let done = (progress.epoch - 1) * progress.steps + progress.step;
            if self.bar.length() == Some(0) {
                // Epochs of an earlier run must not count for the time that is left.
                self.bar.set_length(self.epochs * progress.steps);
                self.bar.set_position(done);
                self.bar.reset_eta();
            }
            self.bar.set_position(done);
            self.words = format!("{}/{} {}", progress.epoch, self.epochs, progress.phase.name());
            let loss = format!("  batch {}", significant(progress.batch_loss));
            self.bar.set_message(format!(
                "{}{}",
                self.words,
                if self.figures.is_empty() { &loss } else { &self.figures }
            ));
        }
        asked()
    }

    fn unsaved(&mut self, error: &obprox::Error) -> Control {
        self.unsaved.hear(error)
    }

    fn evaluating(&mut self, done: f64) -> Control {
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{}{}  F {:.0} %", self.words, self.figures, 100.0 * done));
            self.bar.tick();
        }
        asked()
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        self.figures = figures(record);
        asked()
    }

    fn end(&mut self, _: &Trained) {
        self.bar.finish_and_clear();
    }
}

fn asked() -> Control {
    if interrupt::pressed() { Control::Stop } else { Control::Continue }
}

fn figures(record: &EpochRecord) -> String {
    let mut words = String::new();
    if let (Some(objective), Some(loss)) = (record.objective, record.loss) {
        words += &format!("  F {} f {}", significant(objective), significant(loss));
    }
    words += &format!("  {}", percent(record.density));
    if let Some(accuracy) = record.accuracy {
        words += &format!("  acc {}", percent(accuracy));
    }
    words
}
