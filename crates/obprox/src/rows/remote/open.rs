//! Shards on other machines, as far as the driver knows them.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::statement::{Statement, Weighing};
use super::summary::{self, Summary};
use super::wire::{In, Out, Wire};
use super::{Engine, Header, Pieces, Request, VERSION, Weigh, opened};
use crate::loss::{Loss, LossKind, Task};
use crate::targets::{self, ClassWeights};
use crate::{Error, Result};

/// Shards that an engine reaches, and what they told of themselves.
pub struct RemoteData {
    engine: Box<dyn Engine>,
    summaries: Vec<Summary>,
    n_cols: usize,
    names: Option<Vec<String>>,
    /// Bytes that a process may keep of shards.
    room: u64,
    run: u64,
    instances: AtomicU64,
    passes: AtomicU64,
}

impl std::fmt::Debug for RemoteData {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(out, "RemoteData({} shards, {} rows × {})", self.summaries.len(), self.n_rows(), self.n_cols)
    }
}

impl RemoteData {
    /// Asks every shard what it is. There are at least so many columns; each process that has shards may keep so many bytes
    /// of what it makes of them.
    pub fn open(engine: Box<dyn Engine>, n_cols: usize, room: u64) -> Result<Self> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let run = since ^ u64::from(process::id()).rotate_left(40);
        let (instances, passes) = (AtomicU64::new(0), AtomicU64::new(0));
        let (summaries, names) = (Vec::new(), None);
        let mut data = Self { engine, summaries, n_cols: 0, names, room, run, instances, passes };
        let mut summaries: Vec<Summary> = Vec::new();
        let mut request = Out::default();
        data.header(Request::Summary, 0, None).put(&mut request);
        data.map(&request.0, &mut |input| {
            summaries.push(input.get()?);
            input.end()
        })?;
        let Some(first) = summaries.first() else {
            return Err(Error::Data("there are no shards to learn from".into()));
        };
        for summary in &summaries {
            let has_others = match (&first.names, &summary.names) {
                (Some(names), Some(own)) => names != own,
                (None, None) => false,
                _ => true,
            };
            if has_others {
                let message = format!("has other columns than {}: give shards of the same columns", first.name);
                return Err(Error::file(summary.name.clone(), message));
            }
            if summary.has_weights != first.has_weights {
                return Err(Error::file(
                    summary.name.clone(),
                    "some shards have weights of their rows, and others none",
                ));
            }
            if summary.has_offsets != first.has_offsets {
                return Err(Error::file(
                    summary.name.clone(),
                    "some shards have offsets of their rows, and others none",
                ));
            }
            if let Some((row, weight)) = summary.wrong_weight {
                let message =
                    format!("row {} of {}: {weight}; weights are finite and not negative", row + 1, summary.name);
                return Err(Error::parameter("row weights", message));
            }
        }
        data.n_cols = summaries.iter().map(|summary| summary.n_cols as usize).max().unwrap_or(0).max(n_cols);
        data.names = first.names.clone();
        data.summaries = summaries;
        Ok(data)
    }

    /// N.
    pub fn n_rows(&self) -> usize {
        self.summaries.iter().map(|summary| summary.n_rows as usize).sum()
    }

    /// n.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Entries that are not zero.
    pub fn nnz(&self) -> usize {
        self.summaries.iter().map(|summary| summary.entries as usize).sum()
    }

    /// How many shards there are.
    pub fn n_shards(&self) -> usize {
        self.summaries.len()
    }

    /// Whether the margins of the rows have a part that is known.
    pub fn has_offsets(&self) -> bool {
        self.summaries.first().is_some_and(|summary| summary.has_offsets)
    }

    /// Names of the columns, where the shards have them.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// How often all shards were asked so far.
    pub fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }

    /// What to say where machines round differently: then the bits depend on who computes what.
    pub fn notice(&self) -> Option<String> {
        let own = summary::arithmetic();
        let other = self.summaries.iter().find(|summary| summary.arithmetic != own)?;
        Some(format!(
            "the machine of {} rounds exp, ln or sqrt differently from this one: results are as good as ever, but their last \
             bits may differ from those of other runs",
            other.name
        ))
    }

    /// What tells these rows from others.
    pub(crate) fn sum(&self) -> u64 {
        let mix = |sum: u64, summary: &Summary| {
            (sum ^ u64::from(summary.sum) ^ summary.n_rows << 32).wrapping_mul(0x100_0000_01b3).rotate_left(17)
        };
        self.summaries.iter().fold(self.n_cols as u64, mix)
    }

    pub(super) fn next_instance(&self) -> u64 {
        self.instances.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn header(&self, asks: Request, instance: u64, statement: Option<&Statement>) -> Header {
        Header {
            version: VERSION.into(),
            asks,
            run: (self.run, instance),
            room: self.room,
            sums: self.summaries.iter().map(|summary| summary.sum).collect(),
            statement: statement.cloned(),
        }
    }

    /// How replies with arrays of such a width are added up on their way, where they are.
    pub(super) fn pieces(&self, width: usize) -> Option<Pieces> {
        Pieces::of(width, self.engine.piece()?).filter(|_| self.summaries.len() > 1)
    }

    /// Sends a request to all shards and hands on the sums of what they reply, piece by piece.
    pub(super) fn reduce(
        &self,
        request: &[u8],
        pieces: Pieces,
        each: &mut dyn FnMut(&mut In) -> Result<()>,
    ) -> Result<()> {
        self.passes.fetch_add(1, Ordering::Relaxed);
        let mut replies = 0;
        self.engine.reduce(request, pieces, &mut |reply| {
            replies += 1;
            each(&mut opened(reply)?)
        })?;
        match replies == pieces.count {
            true => Ok(()),
            false => Err(Error::Data(format!("{replies} of {} pieces of the sums came", pieces.count))),
        }
    }

    /// Sends a request to all shards and hands on what they reply, in their order.
    pub(super) fn map(&self, request: &[u8], each: &mut dyn FnMut(&mut In) -> Result<()>) -> Result<()> {
        self.passes.fetch_add(1, Ordering::Relaxed);
        let mut replies = 0;
        self.engine.map(request, &mut |reply| {
            replies += 1;
            each(&mut opened(reply)?)
        })?;
        match self.summaries.is_empty() || replies == self.summaries.len() {
            true => Ok(()),
            false => Err(Error::Data(format!("{replies} of {} shards replied", self.summaries.len()))),
        }
    }

    /// The distinct labels of all shards, which rise; what is wrong with the targets for a loss is said here.
    pub(crate) fn labels(&self, loss: &dyn Loss) -> Result<Vec<f64>> {
        let at = |summary: &Summary, row: u64| format!("row {} of {}", row + 1, summary.name);
        let mut all = Vec::new();
        for summary in &self.summaries {
            let of = &summary.targets;
            if let Some((row, target)) = of.wrong {
                return Err(Error::Data(format!("{}: the target {target} is not a finite number", at(summary, row))));
            }
            if let Some((row, target)) = of.lowest {
                let is_negative = target < 0.0 && loss.task() == Task::Counts;
                let why = is_negative.then(|| format!("the {} loss is for counts", loss.name()));
                if let Some(why) = why.or_else(|| loss.refuses(target).map(Into::into)) {
                    return Err(Error::Data(format!("{}: the target is {target}; {why}", at(summary, row))));
                }
            }
            match (&of.labels, loss.task()) {
                (_, Task::Regression | Task::Counts | Task::Survival) => {}
                (Some((labels, _)), _) => all.extend(labels),
                (None, _) => {
                    return Err(Error::Data(format!("{}: too many distinct labels to be classes", summary.name)));
                }
            }
        }
        let largest = self.summaries.iter().fold(0.0f64, |most, summary| most.max(summary.targets.largest));
        targets::check_size(loss.task(), largest)?;
        all.sort_unstable_by(f64::total_cmp);
        all.dedup();
        Ok(all)
    }

    /// The distinct targets, which rise, where they are labels of classes.
    pub fn distinct_labels(&self) -> Result<Vec<f64>> {
        self.labels(LossKind::Logistic.build(2).as_ref())
    }

    /// How rows are weighed, and what their weights sum up to.
    pub(crate) fn weigh(&self, labels: &[f64], classes: Option<&ClassWeights>) -> Result<(Weighing, f64)> {
        let n_rows = self.n_rows() as f64;
        let has_weights = self.summaries.first().is_some_and(|summary| summary.has_weights);
        if !has_weights && classes.is_none() {
            return Ok((Weighing::default(), n_rows));
        }
        let sums = self.class_sums(labels);
        let classes = match classes {
            Some(classes) => {
                let total = sums.iter().sum();
                Some(targets::weights_of_classes(classes, labels, &sums, total)?)
            }
            None => None,
        };
        let is_empty = |at: &usize| sums[*at] * classes.as_ref().map_or(1.0, |weights| weights[*at]) == 0.0;
        targets::check_classes(labels, (0..labels.len()).find(is_empty))?;
        let [total, _] = self.ask_weights(labels, Weighing { classes: classes.clone(), scale: Some(1.0) })?;
        let scale = targets::scale(n_rows, total)?;
        let weighing = Weighing { classes, scale: Some(scale) };
        let [_, others] = self.ask_weights(labels, weighing.clone())?;
        Ok((if others > 0.0 { weighing } else { Weighing::default() }, total))
    }

    /// Σ of the rows' own weights of each class.
    fn class_sums(&self, labels: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; labels.len()];
        for (own, weights) in self.summaries.iter().filter_map(|summary| summary.targets.labels.as_ref()) {
            for (label, weight) in own.iter().zip(weights) {
                if let Some(sum) = sums.get_mut(labels.partition_point(|known| known < label)) {
                    *sum += weight;
                }
            }
        }
        sums
    }

    fn ask_weights(&self, labels: &[f64], weighing: Weighing) -> Result<[f64; 2]> {
        let mut request = Out::default();
        self.header(Request::Weigh, 0, None).put(&mut request);
        Weigh { labels: labels.to_vec(), weighing }.put(&mut request);
        let mut sums = [0.0; 2];
        self.map(&request.0, &mut |input| {
            let own: Vec<f64> = input.get()?;
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            input.end()
        })?;
        Ok(sums)
    }

    /// A target, for what does not depend on which.
    pub(crate) fn first_target(&self) -> Option<f64> {
        self.summaries.iter().find_map(|summary| summary.targets.first)
    }
}
