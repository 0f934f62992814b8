//! Checkpoints of runs: one that is not what was written is refused, and one whose sum was forged breaks nothing.

use std::path::Path;

use obprox::loss::LossKind;
use obprox::{Fit, MethodKind, Problem, Run, Settings};

use super::{problem, timeless, wide_problem};
use crate::{Reader, Scratch};

const EPOCHS: u64 = 2;
/// The magic line.
const MAGIC: usize = 16;

/// What follows the header: single words, then arrays of elements of so many bytes.
struct Layout {
    words: usize,
    elements: &'static [usize],
}

const OBPROXSG: Layout = Layout { words: 7, elements: &[4, 8, 8, 16, 16] };
const PROX_SVRG: Layout = Layout { words: 7, elements: &[4, 8, 8, 24, 24] };
const RDA: Layout = Layout { words: 7, elements: &[4, 8, 8, 8, 8] };
const AUTO: Layout = Layout { words: 0, elements: &[8, 8, 8, 8, 8, 4, 8, 8, 8, 4, 8, 4] };

fn run(problem: &Problem, method: MethodKind, directory: &Path, resume: bool) -> obprox::Result<Fit> {
    let settings = Settings { epochs: EPOCHS, tolerance: 0.0, ..Settings::with_method(method) };
    Run::new(problem, settings).checkpoint(directory, resume).fit()
}

/// A checkpoint of a whole run, and one that was left after its first epoch.
fn seeds(problem: &Problem, method: MethodKind, layout: &Layout, scratch: &Scratch) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for epochs in [EPOCHS, 1] {
        let settings = Settings { epochs, tolerance: 0.0, ..Settings::with_method(method) };
        let fit = Run::new(problem, settings).checkpoint(scratch.directory.path(), false).fit();
        fit.expect("the run is sound");
        let written = std::fs::read(scratch.path()).expect("a checkpoint was written");
        let (held, sum) = written.split_at(written.len() - 8);
        assert_eq!(sum_of(held, layout).to_le_bytes(), sum, "the layout is known");
        let (header, arrays) = held[MAGIC + 8..].split_at(length_at(held, MAGIC));
        let header = timeless(header);
        let mut seed = [&held[..MAGIC], &(header.len() as u64).to_le_bytes(), &header, arrays].concat();
        seed.extend(sum_of(&seed, layout).to_le_bytes());
        seeds.push(seed);
    }
    seeds
}

/// A checkpoint that does not have the sum of what it holds is refused.
fn whole(name: &'static str, method: MethodKind, layout: Layout) -> Reader {
    let (problem, scratch) = (problem(LossKind::Logistic, 2), Scratch::new("checkpoint.obprox"));
    let seeds = seeds(&problem, method, &layout, &scratch);
    Reader::new(name, seeds, move |bytes| {
        scratch.holding(bytes);
        let resumed = run(&problem, method, scratch.directory.path(), true);
        let fits = bytes.split_last_chunk().is_some_and(|(held, sum)| sum_of(held, &layout).to_le_bytes() == *sum);
        assert!(fits || resumed.is_err());
        resumed.is_ok()
    })
}

fn forged(name: &'static str, problem: Problem, method: MethodKind, layout: Layout) -> Reader {
    let scratch = Scratch::new("checkpoint.obprox");
    let seeds = seeds(&problem, method, &layout, &scratch);
    let magic = seeds[0][..MAGIC].to_vec();
    let odd = seeds.iter().flat_map(|seed| with_other_lengths(seed, &layout)).collect();
    Reader::new(name, seeds, move |bytes| {
        if bytes.len() < MAGIC + 16 {
            return false;
        }
        let mut bytes = bytes.to_vec();
        bytes[..MAGIC].copy_from_slice(&magic);
        let end = bytes.len() - 8;
        let sum = sum_of(&bytes[..end], &layout);
        bytes[end..].copy_from_slice(&sum.to_le_bytes());
        scratch.holding(&bytes);
        run(&problem, method, scratch.directory.path(), true).is_ok()
    })
    .with_odd(odd)
}

/// The length of the array that begins at a place.
fn length_at(bytes: &[u8], at: usize) -> usize {
    bytes[at..].first_chunk().map_or(0, |&length| u64::from_le_bytes(length) as usize)
}

/// Each array with none, one, one less and one more of its elements: lengths that agree with what follows, and with nothing
/// else.
fn with_other_lengths(seed: &[u8], layout: &Layout) -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    let mut at = MAGIC + 8 + length_at(seed, MAGIC) + 8 * layout.words;
    for &size in layout.elements {
        let length = length_at(seed, at);
        let (values, end) = (at + 8, at + 8 + length * size);
        for other in [0, 1, length.saturating_sub(1), length + 1] {
            let mut data = seed[values..end].to_vec();
            data.resize(other * size, 0);
            files.push([&seed[..at], &(other as u64).to_le_bytes(), &data, &seed[end..]].concat());
        }
        at = end;
    }
    files
}

/// The sum of a file as whoever reads it will compute it, piece by piece.
fn sum_of(bytes: &[u8], layout: &Layout) -> u64 {
    let mut sum = Sum { sum: 0xcbf2_9ce4_8422_2325, rest: bytes };
    sum.piece(MAGIC);
    sum.array(1);
    (0..layout.words).for_each(|_| sum.piece(8));
    layout.elements.iter().for_each(|&size| sum.array(size));
    sum.sum
}

struct Sum<'a> {
    sum: u64,
    rest: &'a [u8],
}

impl Sum<'_> {
    fn array(&mut self, element: usize) {
        let length = self.rest.first_chunk().map_or(0, |&length| u64::from_le_bytes(length));
        self.piece(8);
        self.piece(usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(element));
    }

    fn piece(&mut self, length: usize) {
        let (piece, rest) = self.rest.split_at(length.min(self.rest.len()));
        for chunk in piece.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.sum = (self.sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        }
        self.rest = rest;
    }
}

pub fn auto() -> Reader {
    whole("checkpoint-auto", MethodKind::Auto, AUTO)
}

pub fn obproxsg() -> Reader {
    whole("checkpoint-obproxsg", MethodKind::ObproxSg, OBPROXSG)
}

pub fn prox_svrg() -> Reader {
    whole("checkpoint-prox-svrg", MethodKind::ProxSvrg, PROX_SVRG)
}

pub fn rda() -> Reader {
    whole("checkpoint-rda", MethodKind::Rda, RDA)
}

pub fn auto_forged() -> Reader {
    forged("checkpoint-auto-forged", problem(LossKind::Logistic, 2), MethodKind::Auto, AUTO)
}

pub fn auto_wide_forged() -> Reader {
    forged("checkpoint-auto-wide-forged", wide_problem(), MethodKind::Auto, AUTO)
}

pub fn obproxsg_forged() -> Reader {
    forged("checkpoint-obproxsg-forged", problem(LossKind::Logistic, 2), MethodKind::ObproxSg, OBPROXSG)
}

pub fn prox_svrg_forged() -> Reader {
    forged("checkpoint-prox-svrg-forged", problem(LossKind::Logistic, 2), MethodKind::ProxSvrg, PROX_SVRG)
}

pub fn rda_forged() -> Reader {
    forged("checkpoint-rda-forged", problem(LossKind::Logistic, 2), MethodKind::Rda, RDA)
}
