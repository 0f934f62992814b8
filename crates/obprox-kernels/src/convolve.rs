//! Convolutions forward, and backward to the input: the same walk over other pixels.
//!
//! A few pixels of a few results stay in registers while the weights pass by. With all weights, eight results of three
//! pixels each: what is read of the input serves eight multiply-adds, a weight three. With a list, eight pixels of one
//! result, and weights that are not in the list cost nothing. Both add up in the same order, so that they give the same
//! bits.

use pulp::{Simd, WithSimd};
use rayon::prelude::*;

use crate::conv::{Conv, Stencil};
use crate::machine::dispatch;
use crate::moments::Moments;
use crate::planes::{LANES, Planes};
use crate::raw::{load, store};
use crate::weights::{Dense, Lists, Way};

/// Results side by side in the widest registers, of which there are 32, and in narrower ones, of which there are 16.
const WIDE_BLOCK: usize = 8;
const BLOCK: usize = 4;
/// Pixels of a tile with all weights.
const PIXELS: usize = 3;
/// Pixels of a tile with a list.
const LONG: usize = 8;
/// Bytes of the input that stay near while the lists of all results pass by.
const NEAR: usize = 512 << 10;

/// Which weights are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// All.
    Dense,
    /// Those that are not zero.
    Sparse,
}

/// The output of a convolution, and the moments of its channels where asked.
pub fn forward(
    conv: &Conv,
    kernel: Kernel,
    x: &[f32],
    weights: &[f32],
    out: &mut [f32],
    moments: Option<&mut Moments>,
) {
    let reframed = (conv.input.frame < conv.input_frame()).then(|| conv.input.reframe(x, conv.input_frame()));
    let (input, x) = reframed.as_ref().map_or((conv.input, x), |(input, x)| (*input, &x[..]));
    let output = conv.output();
    let stencil = Conv { input, ..*conv }.forward();
    // The output keeps the frame it is asked for.
    let stencil = Stencil { to: crate::conv::Walk::of(&output), ..stencil };
    let pass = Pass::new(conv, Way::Forward, kernel, vec![stencil], weights);
    pass.run(&input, x, &output, out, moments);
}

/// The gradient of the input of a convolution, from that of the output.
pub fn input_gradient(conv: &Conv, kernel: Kernel, weights: &[f32], dy: &[f32], dx: &mut [f32]) {
    let output = conv.output();
    let reframed = (output.frame < conv.output_frame()).then(|| output.reframe(dy, conv.output_frame()));
    let (output, dy) = reframed.as_ref().map_or((output, dy), |(output, dy)| (*output, &dy[..]));
    let pass = Pass::new(conv, Way::Backward, kernel, conv.backward(output.frame), weights);
    pass.run(&output, dy, &conv.input, dx, None);
}

/// The weights in the form that a kernel takes.
enum Packed {
    Dense(Dense),
    Sparse(Lists),
}

/// Stencils with the weights that belong to them.
struct Pass {
    parts: Vec<(Stencil, Packed)>,
}

impl Pass {
    fn new(conv: &Conv, way: Way, kernel: Kernel, stencils: Vec<Stencil>, weights: &[f32]) -> Self {
        assert_eq!(weights.len(), conv.shape.weights(), "the weights are those of the convolution");
        let block = if crate::machine::vector() == LANES { WIDE_BLOCK } else { BLOCK };
        // Channels that see only some others have short lists: there is nothing to hold in registers for several.
        let dense = kernel == Kernel::Dense && conv.shape.groups == 1;
        let parts = stencils.into_iter().map(|stencil| {
            let packed = match dense {
                true => Packed::Dense(Dense::new(conv, way, &stencil, weights, block)),
                false => Packed::Sparse(Lists::new(conv, way, &stencil, weights, false)),
            };
            (stencil, packed)
        });
        Self { parts: parts.collect() }
    }

    fn run(&self, source: &Planes, from: &[f32], result: &Planes, to: &mut [f32], moments: Option<&mut Moments>) {
        assert_eq!(from.len(), source.floats(), "the input fits its slice");
        assert_eq!(to.len(), result.floats(), "the output fits its slice");
        let reach = |(stencil, packed): &(Stencil, Packed)| match packed {
            Packed::Dense(weights) if weights.offsets.is_empty() => 0,
            Packed::Dense(weights) => stencil.reach(weights.furthest()),
            Packed::Sparse(lists) if lists.entries.is_empty() => 0,
            Packed::Sparse(lists) => stencil.reach(lists.furthest()),
        };
        // The one question about reading: everything that the kernels read of a group lies in it.
        assert!(self.parts.iter().map(reach).max().unwrap_or(0) <= source.group_floats(), "taps lie in the frame");
        let share = share(result);
        let mut jobs = Vec::new();
        let mut moments = moments.map(|moments| moments.groups_mut(result.channels)).into_iter().flatten();
        let groups = to.chunks_exact_mut(result.group_floats()).zip(from.chunks_exact(source.group_floats()));
        for (group, from) in groups {
            let (lead, channels) = group.split_at_mut(result.lead() * LANES);
            lead.fill(0.0);
            let mut moments = moments.next().map(|moments| moments.chunks_mut(share * Moments::EACH));
            for (number, to) in channels.chunks_mut(share * result.plane_floats()).enumerate() {
                let moments = moments.as_mut().and_then(Iterator::next);
                jobs.push(Job { pass: self, from, source, result, first: number * share, to, moments });
            }
        }
        jobs.into_par_iter().for_each(dispatch);
    }
}

/// Channels of a part: all of them where there are groups enough for all threads, whole blocks otherwise.
fn share(result: &Planes) -> usize {
    let parts = (2 * rayon::current_num_threads()).div_ceil(result.groups().max(1));
    let share = result.channels.div_ceil(parts.min(result.channels.div_ceil(WIDE_BLOCK)).max(1));
    share.next_multiple_of(WIDE_BLOCK)
}

/// Some results of a group.
struct Job<'a> {
    pass: &'a Pass,
    from: &'a [f32],
    source: &'a Planes,
    result: &'a Planes,
    first: usize,
    /// The planes of these results.
    to: &'a mut [f32],
    moments: Option<&'a mut [f32]>,
}

impl WithSimd for Job<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let result = self.result;
        self.to.chunks_exact_mut(result.plane_floats()).for_each(|plane| result.clear_frame(plane));
        let pass = self.pass;
        for (stencil, packed) in &pass.parts {
            match packed {
                Packed::Dense(weights) if S::F32_LANES == LANES => {
                    self.dense::<S, WIDE_BLOCK>(simd, stencil, weights);
                }
                Packed::Dense(weights) => self.dense::<S, BLOCK>(simd, stencil, weights),
                Packed::Sparse(lists) => self.sparse(simd, stencil, lists),
            }
        }
    }
}

impl Job<'_> {
    fn results(&self) -> usize {
        self.to.len() / self.result.plane_floats()
    }

    // ---- all weights -----------------------------------------------------------------------------------------

    #[inline(always)]
    fn dense<S: Simd, const O: usize>(&mut self, simd: S, stencil: &Stencil, weights: &Dense) {
        assert_eq!(weights.block, O, "the weights are packed for these registers");
        // One pixel after the other, whatever row it is in: rows may be shorter than a tile.
        let pixels = stencil.rows * stencil.columns;
        for first in (0..pixels).step_by(PIXELS) {
            match pixels - first {
                PIXELS.. => self.dense_tiles::<S, O, PIXELS>(simd, stencil, weights, first),
                2 => self.dense_tiles::<S, O, 2>(simd, stencil, weights, first),
                _ => self.dense_tiles::<S, O, 1>(simd, stencil, weights, first),
            }
        }
    }

    /// The same pixels of all results.
    #[inline(always)]
    fn dense_tiles<S: Simd, const O: usize, const P: usize>(
        &mut self,
        simd: S,
        stencil: &Stencil,
        weights: &Dense,
        first: usize,
    ) {
        let count = weights.offsets.len();
        let mut places = [(0, 0); P];
        let mut at = [0; P];
        for (p, (place, at)) in places.iter_mut().zip(&mut at).enumerate() {
            *place = ((first + p) / stencil.columns, (first + p) % stencil.columns);
            *at = stencil.from.at(place.0, place.1);
        }
        for block in (0..self.results()).step_by(O) {
            let packed = &weights.weights[(self.first + block) / O * O * count..][..O * count];
            for lane in (0..LANES).step_by(S::F32_LANES) {
                let tile = dense_tile::<S, O, P>(simd, &self.from[lane..], at, packed, &weights.offsets);
                for (result, sums) in (block..self.results()).zip(tile) {
                    for (place, sum) in places.into_iter().zip(sums) {
                        self.write(simd, stencil, result, place, lane, [[sum]]);
                    }
                }
            }
        }
    }

    // ---- a list ----------------------------------------------------------------------------------------------

    #[inline(always)]
    fn sparse<S: Simd>(&mut self, simd: S, stencil: &Stencil, lists: &Lists) {
        let bytes = self.source.channels * stencil.from.row * size_of::<f32>();
        let near = (NEAR / bytes.max(1)).saturating_sub(2).clamp(1, stencil.rows.max(1));
        let tall = if stencil.columns < LONG && LONG.is_multiple_of(stencil.columns.max(1)) {
            (LONG / stencil.columns.max(1)).min(near)
        } else {
            1
        };
        let near = near.next_multiple_of(tall);
        for first in (0..stencil.rows).step_by(near) {
            let rows = first..(first + near).min(stencil.rows);
            for result in 0..self.results() {
                self.sparse_rows(simd, stencil, lists, result, rows.clone());
            }
        }
    }

    #[inline(always)]
    fn sparse_rows<S: Simd>(
        &mut self,
        simd: S,
        stencil: &Stencil,
        lists: &Lists,
        result: usize,
        rows: std::ops::Range<usize>,
    ) {
        let mut row = rows.start;
        while row < rows.end {
            let left = rows.end - row;
            let tall = match (stencil.columns, left) {
                (1, 8..) => self.sparse_tile::<S, 8, 1>(simd, stencil, lists, result, (row, 0)),
                (2, 4..) => self.sparse_tile::<S, 4, 2>(simd, stencil, lists, result, (row, 0)),
                (4, 2..) => self.sparse_tile::<S, 2, 4>(simd, stencil, lists, result, (row, 0)),
                (columns, _) => self.sparse_row(simd, stencil, lists, result, row, columns),
            };
            row += tall;
        }
    }

    #[inline(always)]
    fn sparse_row<S: Simd>(
        &mut self,
        simd: S,
        stencil: &Stencil,
        lists: &Lists,
        result: usize,
        row: usize,
        columns: usize,
    ) -> usize {
        let mut column = 0;
        while column < columns {
            let place = (row, column);
            column += match columns - column {
                8.. => self.sparse_tile::<S, 1, 8>(simd, stencil, lists, result, place) * 8,
                4.. => self.sparse_tile::<S, 1, 4>(simd, stencil, lists, result, place) * 4,
                2.. => self.sparse_tile::<S, 1, 2>(simd, stencil, lists, result, place) * 2,
                _ => self.sparse_tile::<S, 1, 1>(simd, stencil, lists, result, place),
            };
        }
        1
    }

    /// Some rows and columns of one result; tells how many rows.
    #[inline(always)]
    fn sparse_tile<S: Simd, const R: usize, const P: usize>(
        &mut self,
        simd: S,
        stencil: &Stencil,
        lists: &Lists,
        result: usize,
        place: (usize, usize),
    ) -> usize {
        let (row_step, step) = (stencil.from.row, stencil.from.step);
        for lane in (0..LANES).step_by(S::F32_LANES) {
            let at = stencil.from.at(place.0, place.1) + lane;
            let mut sums = [[simd.splat_f32s(0.0); P]; R];
            for entry in lists.of(self.first + result) {
                let weight = simd.splat_f32s(entry.weight);
                let at = at + entry.offset as usize;
                for (r, sums) in sums.iter_mut().enumerate() {
                    for (p, sum) in sums.iter_mut().enumerate() {
                        #[allow(unsafe_code, reason = "`Pass::run` asks for all reads at once")]
                        // SAFETY: the pixel is one of the stencil's and the entry no further than the furthest.
                        let pixel = unsafe { load::<S>(self.from, at + r * row_step + p * step) };
                        *sum = simd.mul_add_e_f32s(weight, pixel, *sum);
                    }
                }
            }
            self.write(simd, stencil, result, place, lane, sums);
        }
        R
    }

    /// Writes a tile of a result.
    #[inline(always)]
    fn write<S: Simd, const R: usize, const P: usize>(
        &mut self,
        simd: S,
        stencil: &Stencil,
        result: usize,
        (row, column): (usize, usize),
        lane: usize,
        tile: [[S::f32s; P]; R],
    ) {
        let to = &stencil.to;
        let plane = &mut self.to[result * to.plane..][..to.plane];
        let begin = self.result.lead() * LANES;
        for (r, values) in tile.iter().enumerate() {
            let at = to.at(row + r, column) - begin + lane;
            assert!(at + (P - 1) * to.step + S::F32_LANES <= plane.len(), "a tile lies in its plane");
            for (p, value) in values.iter().enumerate() {
                #[allow(unsafe_code, reason = "asked above for the whole row of the tile")]
                // SAFETY: at most the place that the assertion is about.
                unsafe {
                    store::<S>(plane, at + p * to.step, *value);
                }
            }
        }
        if let Some(moments) = &mut self.moments {
            let moments = &mut moments[result * Moments::EACH..][..Moments::EACH];
            Moments::add(simd, moments, lane, (row, column) == (0, 0), tile);
        }
    }
}

/// Some pixels of a block of results.
#[inline(always)]
fn dense_tile<S: Simd, const O: usize, const P: usize>(
    simd: S,
    from: &[f32],
    at: [usize; P],
    weights: &[f32],
    offsets: &[u32],
) -> [[S::f32s; P]; O] {
    let mut sums = [[simd.splat_f32s(0.0); P]; O];
    for (offset, weights) in offsets.iter().zip(weights.as_chunks::<O>().0) {
        let mut pixels = [simd.splat_f32s(0.0); P];
        for (pixel, at) in pixels.iter_mut().zip(at) {
            #[allow(unsafe_code, reason = "`Pass::run` asks for all reads at once")]
            // SAFETY: the pixel is one of the stencil's and the offset no further than the furthest.
            let value = unsafe { load::<S>(from, at + *offset as usize) };
            *pixel = value;
        }
        for (sums, weight) in sums.iter_mut().zip(weights) {
            let weight = simd.splat_f32s(*weight);
            for (sum, pixel) in sums.iter_mut().zip(pixels) {
                *sum = simd.mul_add_e_f32s(weight, pixel, *sum);
            }
        }
    }
    sums
}
