//! The gradient of the weights: sums over pixels of products of the output's gradient and what each tap saw.
//!
//! A few weights' sums stay in registers, sixteen images side by side, while some pixels pass by; the sixteen are added
//! up at the end. Weights that are not asked for are not computed. A block of pixels is small enough to stay near while
//! all weights pass by. With all weights or with a list, each sum is made in the same order: groups, rows, columns.
#![allow(clippy::needless_range_loop, reason = "sums are walked together with the pixels and outputs they belong to")]

use std::ops::Range;

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::conv::{Conv, Stencil, Walk};
use crate::convolve::Kernel;
use crate::machine::dispatch;
use crate::planes::{LANES, Planes};
use crate::raw::load;
use crate::weights::{Lists, Way};

/// Outputs side by side in the widest registers.
const OUTPUTS: usize = 3;
/// Taps at once, of kernels that are not three by three.
const TAPS: usize = 8;
/// Bytes of the input that stay in the nearest cache while all outputs pass by.
const NEAREST: usize = 16 << 10;
/// Bytes of the input that stay near while the lists of all outputs pass by.
const NEAR: usize = 512 << 10;
/// Bytes of sums that stay near from one block of pixels to the next.
const SUMS: usize = 256 << 10;
/// Bytes of the output's gradient that stay near while the input passes by, and the most outputs worked on together.
const OUTPUT: usize = 192 << 10;
const MOST: usize = 36;
/// Pixels that are worth reading and writing the sums for.
const PIXELS: usize = 32;

/// The gradient of the weights. `Kernel::Sparse` leaves those that are zero out: their gradient is given as zero.
pub fn weight_gradient(conv: &Conv, kernel: Kernel, x: &[f32], weights: &[f32], dy: &[f32], out: &mut [f32]) {
    assert_eq!(out.len(), conv.shape.weights(), "the gradient has the size of the weights");
    assert_eq!(weights.len(), conv.shape.weights(), "the weights are those of the convolution");
    let reframed = (conv.input.frame < conv.input_frame()).then(|| conv.input.reframe(x, conv.input_frame()));
    let (input, x) = reframed.as_ref().map_or((conv.input, x), |(input, x)| (*input, &x[..]));
    let output = conv.output();
    let stencil = Stencil { to: Walk::of(&output), ..Conv { input, ..*conv }.forward() };
    let sums = Sums::new(&stencil, &input, x, &output, dy);
    let each = conv.shape.weights_of_output();
    if kernel == Kernel::Dense && conv.shape.groups == 1 {
        let channels = if conv.shape.kernel == 3 { 1 } else { TAPS.div_ceil(conv.shape.taps()) };
        let blocks = sums.blocks(channels, NEAREST);
        let outputs = share(conv.shape.outputs, sums.outputs(&blocks));
        let parts = out.par_chunks_mut(outputs * each).enumerate();
        parts.for_each(|(number, out)| {
            dispatch(All { sums: &sums, blocks: &blocks, conv, first: number * outputs, out });
        });
        return;
    }
    let lists = Lists::new(conv, Way::Forward, &stencil, weights, kernel == Kernel::Dense);
    let blocks = sums.blocks(if conv.shape.groups == 1 { input.channels } else { conv.shape.seen() }, NEAR);
    let outputs = share(conv.shape.outputs, conv.shape.outputs);
    out.par_chunks_mut(outputs * each).enumerate().for_each(|(number, out)| {
        let first = number * outputs;
        let last = first + out.len() / each;
        let bounds = lists.bounds[first]..lists.bounds[last];
        let mut wanted = vec![0.0; bounds.len()];
        dispatch(Some { sums: &sums, blocks: &blocks, lists: &lists, outputs: first..last, out: &mut wanted });
        out.fill(0.0);
        for (&place, value) in lists.places[bounds].iter().zip(wanted) {
            out[place as usize - first * each] = value;
        }
    });
}

/// Outputs of a part: at most so many, and as many parts as keep all threads busy.
fn share(outputs: usize, most: usize) -> usize {
    let threads = rayon::current_num_threads();
    let parts = outputs.div_ceil(most.max(1)).next_multiple_of(2 * threads);
    outputs.div_ceil(parts).max(1)
}

/// What is summed over.
struct Sums<'a> {
    stencil: &'a Stencil,
    input: &'a Planes,
    x: &'a [f32],
    output: &'a Planes,
    dy: &'a [f32],
}

/// Pixels that are gone through at once.
#[derive(Clone, Debug)]
struct Block {
    groups: Range<usize>,
    rows: Range<usize>,
}

impl<'a> Sums<'a> {
    fn new(stencil: &'a Stencil, input: &'a Planes, x: &'a [f32], output: &'a Planes, dy: &'a [f32]) -> Self {
        assert_eq!(x.len(), input.floats(), "the input fits its slice");
        assert_eq!(dy.len(), output.floats(), "the output fits its slice");
        let furthest = (input.channels - 1) * stencil.from.plane + stencil.taps.last().map_or(0, |tap| tap.offset);
        // The one question about reading: everything that is read of a group lies in it.
        assert!(stencil.reach(furthest) <= input.group_floats(), "taps lie in the frame");
        assert!(stencil.taps.iter().all(|tap| tap.offset <= stencil.taps[stencil.taps.len() - 1].offset));
        Self { stencil, input, x, output, dy }
    }

    /// Blocks in which so many channels of the input take at most so many bytes, about.
    fn blocks(&self, channels: usize, bytes: usize) -> Vec<Block> {
        let (stencil, groups) = (self.stencil, self.input.groups());
        let row = (channels * stencil.from.row * size_of::<f32>()).max(1);
        let least = PIXELS.div_ceil(stencil.columns);
        // The rows that a kernel sees above and below its own come on top.
        let around = usize::from(stencil.taps.len() > 1) * 2;
        let rows = (bytes / row).saturating_sub(around).max(least);
        if rows < stencil.rows {
            let of =
                |group| move |first| Block { groups: group..group + 1, rows: first..(first + rows).min(stencil.rows) };
            return (0..groups).flat_map(|group| (0..stencil.rows).step_by(rows).map(of(group))).collect();
        }
        let together = (rows / stencil.rows).clamp(1, groups.max(1));
        let of = |first| Block { groups: first..(first + together).min(groups), rows: 0..stencil.rows };
        (0..groups).step_by(together).map(of).collect()
    }

    /// Outputs that are worked on together: as many as stay near.
    fn outputs(&self, blocks: &[Block]) -> usize {
        let floats = |block: &Block| block.groups.len() * block.rows.len() * self.stencil.to.row;
        let most = OUTPUT / (blocks.iter().map(floats).max().unwrap_or(1) * size_of::<f32>());
        most.min(MOST).next_multiple_of(OUTPUTS).max(OUTPUTS)
    }

    /// Adds the products over the pixels of a block to the sums of `O` outputs and `R` runs of `C` taps each.
    ///
    /// The callers' offsets are taps of the convolution in channels that there are.
    #[inline(always)]
    fn add<S: Simd, const O: usize, const R: usize, const C: usize>(
        &self,
        simd: S,
        block: &Block,
        lane: usize,
        output: usize,
        offsets: [usize; R],
        sums: &mut [[[S::f32s; C]; R]; O],
    ) {
        let mut acc = *sums;
        let stencil = self.stencil;
        let plane = stencil.to.plane;
        for group in block.groups.clone() {
            let x = &self.x[group * self.input.group_floats()..][..self.input.group_floats()];
            let dy = &self.dy[group * self.output.group_floats()..][..self.output.group_floats()];
            let dy = &dy[stencil.to.start + output * plane..][..O * plane];
            for row in block.rows.clone() {
                let mut at = stencil.from.at(row, 0) + lane;
                let mut dy_at = row * stencil.to.row + lane;
                for _ in 0..stencil.columns {
                    let mut d = [simd.splat_f32s(0.0); O];
                    for (o, d) in d.iter_mut().enumerate() {
                        #[allow(unsafe_code, reason = "one question for the whole plane")]
                        // SAFETY: a pixel of the output, in the planes that were cut out above.
                        let value = unsafe { load::<S>(dy, dy_at + o * plane) };
                        *d = value;
                    }
                    for r in 0..R {
                        for c in 0..C {
                            #[allow(unsafe_code, reason = "`Sums::new` asks for all reads at once")]
                            // SAFETY: a pixel of the stencil and one of its taps, none further than the furthest.
                            let x = unsafe { load::<S>(x, at + offsets[r] + c * LANES) };
                            for o in 0..O {
                                acc[o][r][c] = simd.mul_add_e_f32s(d[o], x, acc[o][r][c]);
                            }
                        }
                    }
                    at += stencil.from.step;
                    dy_at += LANES;
                }
            }
        }
        *sums = acc;
    }

    /// The same for sums that are kept in memory, lane by lane: those of one output lie together, the next output's come
    /// `each` further.
    #[inline(always)]
    fn add_to<S: Simd, const O: usize, const R: usize, const C: usize>(
        &self,
        simd: S,
        block: &Block,
        output: usize,
        offsets: [usize; R],
        kept: &mut [f32],
        each: usize,
    ) {
        for lane in (0..LANES).step_by(S::F32_LANES) {
            let mut sums = [[[simd.splat_f32s(0.0); C]; R]; O];
            for o in 0..O {
                for r in 0..R {
                    for c in 0..C {
                        let at = (o * each + r * C + c) * LANES + lane;
                        sums[o][r][c] = S::as_simd_f32s(&kept[at..at + S::F32_LANES]).0[0];
                    }
                }
            }
            self.add::<S, O, R, C>(simd, block, lane, output, offsets, &mut sums);
            for o in 0..O {
                for r in 0..R {
                    for c in 0..C {
                        let at = (o * each + r * C + c) * LANES + lane;
                        S::as_mut_simd_f32s(&mut kept[at..at + S::F32_LANES]).0[0] = sums[o][r][c];
                    }
                }
            }
        }
    }
}

/// All weights of some outputs.
struct All<'a> {
    sums: &'a Sums<'a>,
    blocks: &'a [Block],
    conv: &'a Conv,
    first: usize,
    out: &'a mut [f32],
}

impl WithSimd for All<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let each = self.conv.shape.weights_of_output();
        if let [block] = self.blocks {
            // The sums of a single block need not be kept.
            return self.weights(simd, block, 0..each, &mut []);
        }
        let outputs = self.out.len() / each;
        let unit = if self.conv.shape.kernel == 3 { self.conv.shape.taps() } else { TAPS };
        let some = (SUMS / (outputs * LANES * size_of::<f32>()) / unit * unit).clamp(unit, each.next_multiple_of(unit));
        let mut kept = vec![0.0; outputs * some * LANES];
        for first in (0..each).step_by(some) {
            let weights = first..(first + some).min(each);
            let kept = &mut kept[..outputs * weights.len() * LANES];
            kept.fill(0.0);
            for block in self.blocks {
                self.weights(simd, block, weights.clone(), kept);
            }
            for (out, kept) in self.out.chunks_exact_mut(each).zip(kept.chunks_exact(weights.len() * LANES)) {
                add_lanes(kept, &mut out[weights.clone()]);
            }
        }
    }
}

impl All<'_> {
    /// Some of the weights of each output, whole kernels where they are three by three.
    #[inline(always)]
    fn weights<S: Simd>(&mut self, simd: S, block: &Block, weights: Range<usize>, kept: &mut [f32]) {
        let Stencil { taps, from, .. } = self.sums.stencil;
        if self.conv.shape.kernel == 3 {
            // The nine sums of a channel at once.
            for first in weights.clone().step_by(9) {
                let offsets = [0, 3, 6].map(|tap| first / 9 * from.plane + taps[tap].offset);
                self.outputs::<S, 3, 3>(simd, block, first, &weights, offsets, kept);
            }
            return;
        }
        let offset = |at: usize| at / taps.len() * from.plane + taps[at % taps.len()].offset;
        let whole = weights.start + weights.len() / TAPS * TAPS;
        for first in (weights.start..whole).step_by(TAPS) {
            let mut offsets = [0; TAPS];
            offsets.iter_mut().enumerate().for_each(|(number, at)| *at = offset(first + number));
            self.outputs::<S, TAPS, 1>(simd, block, first, &weights, offsets, kept);
        }
        for at in whole..weights.end {
            self.outputs::<S, 1, 1>(simd, block, at, &weights, [offset(at)], kept);
        }
    }

    /// The same taps of all outputs.
    #[inline(always)]
    fn outputs<S: Simd, const R: usize, const C: usize>(
        &mut self,
        simd: S,
        block: &Block,
        place: usize,
        weights: &Range<usize>,
        offsets: [usize; R],
        kept: &mut [f32],
    ) {
        let count = self.out.len() / self.conv.shape.weights_of_output();
        // Where registers are few, one output at a time.
        let most = if S::F32_LANES == LANES { OUTPUTS } else { 1 };
        let mut at = 0;
        while at < count {
            at += match most.min(count - at) {
                OUTPUTS => self.some::<S, OUTPUTS, R, C>(simd, block, at, place, weights, offsets, kept),
                2 => self.some::<S, 2, R, C>(simd, block, at, place, weights, offsets, kept),
                _ => self.some::<S, 1, R, C>(simd, block, at, place, weights, offsets, kept),
            };
        }
    }

    /// The same taps of some outputs; tells how many.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "where in memory, which weights, which pixels")]
    fn some<S: Simd, const O: usize, const R: usize, const C: usize>(
        &mut self,
        simd: S,
        block: &Block,
        at: usize,
        place: usize,
        weights: &Range<usize>,
        offsets: [usize; R],
        kept: &mut [f32],
    ) -> usize {
        let each = self.conv.shape.weights_of_output();
        let output = self.first + at;
        if !kept.is_empty() {
            let kept = &mut kept[(at * weights.len() + place - weights.start) * LANES..];
            self.sums.add_to::<S, O, R, C>(simd, block, output, offsets, kept, weights.len());
            return O;
        }
        let mut lanes = [[0.0; LANES]; OUTPUTS * 9];
        self.sums.add_to::<S, O, R, C>(simd, block, output, offsets, lanes.as_flattened_mut(), R * C);
        for (o, lanes) in lanes.chunks_exact(R * C).take(O).enumerate() {
            add_lanes(lanes.as_flattened(), &mut self.out[(at + o) * each + place..][..R * C]);
        }
        O
    }
}

/// The weights of some outputs that are in a list.
struct Some<'a> {
    sums: &'a Sums<'a>,
    blocks: &'a [Block],
    lists: &'a Lists,
    outputs: Range<usize>,
    out: &'a mut [f32],
}

impl WithSimd for Some<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let mut kept = vec![0.0; self.out.len() * LANES];
        let begin = self.lists.bounds[self.outputs.start];
        for block in self.blocks {
            for output in self.outputs.clone() {
                let bounds = self.lists.bounds[output]..self.lists.bounds[output + 1];
                let mut at = bounds.start;
                while at < bounds.end {
                    let kept = &mut kept[(at - begin) * LANES..];
                    at += match bounds.end - at {
                        9.. => self.tile::<S, 9>(simd, block, output, at, kept),
                        4.. => self.tile::<S, 4>(simd, block, output, at, kept),
                        2.. => self.tile::<S, 2>(simd, block, output, at, kept),
                        _ => self.tile::<S, 1>(simd, block, output, at, kept),
                    };
                }
            }
        }
        add_lanes(&kept, self.out);
    }
}

impl Some<'_> {
    /// Adds to some sums; tells how many.
    #[inline(always)]
    fn tile<S: Simd, const T: usize>(
        &self,
        simd: S,
        block: &Block,
        output: usize,
        at: usize,
        kept: &mut [f32],
    ) -> usize {
        let mut offsets = [0; T];
        for (offset, entry) in offsets.iter_mut().zip(&self.lists.entries[at..at + T]) {
            *offset = entry.offset as usize;
        }
        self.sums.add_to::<S, 1, T, 1>(simd, block, output, offsets, kept, T);
        T
    }
}

/// The sixteen images of each sum put together, always in the same order.
#[inline(always)]
fn add_lanes(lanes: &[f32], out: &mut [f32]) {
    for (lanes, out) in lanes.as_chunks::<LANES>().0.iter().zip(out) {
        let mut four = [0.0f32; 4];
        for (number, value) in lanes.iter().enumerate() {
            four[number % 4] += value;
        }
        *out = (four[0] + four[1]) + (four[2] + four[3]);
    }
}
