//! The steps of a program, executed on images side by side.

use obprox_kernels::dispatch;
use rayon::prelude::*;

use super::convolve::{Buffers, convolve};
use super::plane::Plane;
use super::program::{OVERREAD, Pick, Slot, Step, Work};
use super::{Engine, steps};
use crate::network::Activation;

/// Floats that are worth waking a thread for.
const WORTH_A_THREAD: usize = 1 << 15;

impl Engine {
    /// Executes every step on images side by side, and tells when one is done.
    pub(super) fn run_steps(
        &self,
        images: &[f32],
        scores: &mut [f32],
        lanes: usize,
        threads: usize,
        mut done: impl FnMut(&Step),
    ) {
        let mut workspace = self.take_workspace();
        let slots = &mut workspace.slots;
        slots.resize_with(self.program.slots.len(), Vec::new);
        for (slot, pixels) in slots.iter_mut().zip(&self.program.slots) {
            let floats = pixels * lanes + OVERREAD;
            if slot.len() < floats {
                slot.resize(floats, 0.0);
            }
        }
        for step in &self.program.steps {
            if let Step::Store { from, plane, channels } = step {
                let planes = slots[*from].chunks_exact(plane.len * lanes).take(*channels);
                steps::store(planes, plane, scores, self.program.outputs, lanes);
            } else {
                self.run_step(step, images, slots, lanes, threads);
            }
            done(step);
        }
        self.give_back(workspace);
    }

    fn run_step(&self, step: &Step, images: &[f32], slots: &mut [Vec<f32>], lanes: usize, threads: usize) {
        let (Step::Load { to, .. }
        | Step::Split { to, .. }
        | Step::Conv { to, .. }
        | Step::Each { to, .. }
        | Step::Gather { to, .. }
        | Step::Reshape { to, .. }
        | Step::Softmax { to, .. }) = step
        else {
            return;
        };
        let mut out = std::mem::take(&mut slots[*to]);
        match step {
            Step::Load { channels, plane, .. } => {
                let image_len = self.channels * plane.height * plane.width;
                steps::load(images, image_len, channels, plane, &mut out, lanes);
            }
            Step::Split { from, channels, phases, .. } => {
                let len = phases.from.len * lanes;
                let split = &mut out[..channels * phases.count() * phases.len * lanes];
                each(split, phases.count() * phases.len * lanes, threads, |channel, split| {
                    phases.split(&slots[*from][channel * len..][..len], split, lanes);
                });
            }
            Step::Conv { from, residual, plane, finish, activation, single, lanes: side_by_side, .. } => {
                let kernel = if lanes == 1 { single } else { side_by_side };
                let residual = residual.map_or(&[] as &[f32], |residual| &slots[residual]);
                let buffers = Buffers { input: &slots[*from], residual, out: &mut out };
                convolve(kernel, finish, *plane, lanes, buffers, threads);
                if finish.bounds.is_none() && *activation != Activation::Identity {
                    let planes = &mut out[..finish.bias.len() * plane.len * lanes];
                    each(planes, plane.len * lanes, threads, |_, out| steps::activate(plane, out, *activation, lanes));
                }
            }
            Step::Each { operands, plane, work, picks, .. } => {
                let planes = &mut out[..picks.len() * plane.len * lanes];
                each(planes, plane.len * lanes, threads, |channel, out| {
                    run_work(*work, operands, &picks[channel], slots, (out, plane), lanes);
                });
            }
            Step::Gather { from, offsets, .. } => {
                for (&offset, out) in offsets.iter().zip(out.chunks_exact_mut(lanes)) {
                    out.copy_from_slice(&slots[*from][offset * lanes..][..lanes]);
                }
            }
            Step::Reshape { from, from_plane, plane, channels, .. } => {
                let input = slots[*from].chunks_exact(from_plane.len * lanes).take(channels[0]);
                let mut pixels = input.flat_map(|input| from_plane.rows(input, lanes).flatten());
                for out in out.chunks_exact_mut(plane.len * lanes).take(channels[1]) {
                    // Lanes are the fastest dimension on both sides, so numbers go over one by one.
                    (0..plane.height).for_each(|y| {
                        let row = plane.row_mut(out, y, lanes);
                        row.iter_mut().zip(&mut pixels).for_each(|(out, pixel)| *out = *pixel);
                    });
                    plane.clear_frame(out, lanes);
                }
            }
            Step::Softmax { from, plane, channels, .. } => {
                steps::softmax(&slots[*from], &mut out, *channels, plane, lanes);
            }
            Step::Store { .. } => {}
        }
        slots[*to] = out;
    }
}

#[inline(always)]
fn run_work(
    work: Work,
    operands: &[(Slot, Plane)],
    picks: &[Pick; 2],
    slots: &[Vec<f32>],
    (out, to): (&mut [f32], &Plane),
    lanes: usize,
) {
    let plane = |&(operand, position): &Pick| {
        let (slot, plane) = &operands[operand];
        let len = plane.len * lanes;
        (&slots[*slot][position * len..][..len], plane)
    };
    let input = plane(&picks[0]);
    match work {
        Work::Apply(activation) => {
            out.copy_from_slice(input.0);
            steps::activate(to, out, activation, lanes);
        }
        Work::Pool { window, mean } => steps::pool(input, (out, to), &window, mean, lanes),
        Work::AdaptivePool => steps::adaptive_pool(input, (out, to), lanes),
        Work::Upsample(scale) => steps::upsample(input, (out, to), scale, lanes),
        Work::Combine { multiply } => steps::combine(input, plane(&picks[1]), (out, to), multiply, lanes),
        Work::Copy => out.copy_from_slice(input.0),
    }
}

/// Every plane, by several threads where that pays, with the vectors of this machine.
fn each(planes: &mut [f32], len: usize, threads: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
    let work = |(at, plane)| dispatch(|| work(at, plane));
    if threads > 1 && planes.len() >= 2 * WORTH_A_THREAD {
        planes.par_chunks_exact_mut(len).enumerate().with_min_len(WORTH_A_THREAD.div_ceil(len)).for_each(work);
    } else {
        planes.chunks_exact_mut(len).enumerate().for_each(work);
    }
}
