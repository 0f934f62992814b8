//! A run as its log tells it.

use obprox::Status;
use obprox::switch::Phase;

use super::event::{Curves, End, Epoch, Event, Figures, Folds, Start, Step, Weight};

/// One run, or one path, of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The file it was read from.
    pub file: String,
    /// The line it begins at, counted from 1.
    pub line: usize,
    /// The line that breaks off, where one does.
    pub cut_line: Option<usize>,
    /// Settings and data.
    pub start: Start,
    /// Its epochs.
    pub epochs: Vec<Epoch>,
    /// The λ of a path.
    pub steps: Vec<Step>,
    /// The weights along a path.
    pub curves: Option<Curves>,
    /// The folds that chose λ.
    pub folds: Option<Folds>,
    /// How it ended; nothing where the log was cut off.
    pub end: Option<End>,
}

/// How a run ended, as far as its log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As the library has it.
    With(Status),
    /// The log has no end: the run was killed, or still runs.
    CutOff,
    /// In a word of a newer version.
    Unknown,
}

impl Ending {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::With(Status::Converged) => "converged",
            Self::With(Status::MaxEpochs) => "all epochs used",
            Self::With(Status::Diverged) => "diverged",
            Self::With(Status::Stopped) => "interrupted",
            Self::With(Status::Stalled) => "no progress any more",
            Self::With(Status::Missed) => "target density not reached",
            Self::CutOff => "log cut off",
            Self::Unknown => "ended",
        }
    }
}

impl Run {
    /// A run of which only the first line is known.
    pub(super) fn new(file: &str, line: usize, start: Start) -> Self {
        Self {
            file: file.to_owned(),
            line,
            cut_line: None,
            start,
            epochs: Vec::new(),
            steps: Vec::new(),
            curves: None,
            folds: None,
            end: None,
        }
    }

    /// Takes in a line that follows the first.
    pub(super) fn hear(&mut self, event: Event) {
        match event {
            Event::Epoch(epoch) => self.epochs.push(epoch),
            Event::Lambda(step) => self.steps.push(step),
            Event::Curves(curves) => self.curves = Some(curves),
            Event::Folds(folds) => self.folds = Some(folds),
            Event::End(end) => self.end = Some(*end),
            Event::Start(_) | Event::Unknown => {}
        }
    }

    /// How it ended.
    pub fn ending(&self) -> Ending {
        let Some(end) = &self.end else { return Ending::CutOff };
        let status = end.status.clone().and_then(|word| serde_json::from_value(word.into()).ok());
        status.map_or(Ending::Unknown, Ending::With)
    }

    /// Whether it went through many λ.
    pub fn is_path(&self) -> bool {
        !self.steps.is_empty() || self.curves.is_some()
    }

    /// The method's name.
    pub fn solver(&self) -> &str {
        self.start.solver.as_deref().unwrap_or("unknown solver")
    }

    /// Whether it trained a network.
    pub fn is_network(&self) -> bool {
        self.start.network.network.is_some()
    }

    /// The figures of its last point that has any.
    pub fn figures(&self) -> Figures {
        // F of a network is computed now and then; its density is always known.
        let known =
            |figures: &&Figures| figures.objective.is_some() || (self.is_network() && figures.density.is_some());
        let last = || self.epochs.iter().rev().map(|epoch| &epoch.figures).find(known);
        let end = self.end.as_ref().map(|end| &end.figures).filter(known);
        end.or_else(last).cloned().unwrap_or_default()
    }

    /// Training time.
    pub fn seconds(&self) -> Option<f64> {
        let of_epochs = || self.epochs.iter().rev().find_map(|epoch| epoch.seconds);
        let of_path = || self.steps.iter().filter_map(|step| step.seconds).reduce(|sum, more| sum + more);
        self.end.as_ref().and_then(|end| end.seconds).or_else(of_epochs).or_else(of_path)
    }

    /// Epochs that were completed.
    pub fn epochs_done(&self) -> Option<u64> {
        let end = self.end.as_ref().and_then(|end| end.epochs);
        end.or_else(|| self.epochs.last().map(|epoch| epoch.epoch))
    }

    /// Accuracy or R² on the test data.
    pub fn score(&self) -> Option<f64> {
        let end = self.end.as_ref().and_then(|end| end.score);
        end.or_else(|| self.epochs.iter().rev().find_map(|epoch| epoch.score))
    }

    /// The largest weights, the largest first.
    pub fn weights(&self) -> &[Weight] {
        self.end.as_ref().map_or(&[], |end| &end.largest_weights)
    }

    /// Where the kind of steps changes: the places of the epochs before which it does, and the kind that begins there.
    pub fn switches(&self) -> Vec<(usize, Phase)> {
        let changes = |at: usize| match (self.epochs[at - 1].phase, self.epochs[at].phase) {
            (Some(before), Some(after)) if before != after => Some((at, after)),
            _ => None,
        };
        (1..self.epochs.len()).filter_map(changes).collect()
    }
}
