//! The weights of a convolution as kernels take them: all of them side by side, or those that are not zero as a list.

use rayon::prelude::*;

use crate::conv::{Conv, Stencil};

/// Which way a convolution is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// From the input to the output.
    Forward,
    /// From the gradient of the output to that of the input.
    Backward,
}

/// All weights, those of `block` results side by side; missing results of the last block have zeros.
#[derive(Clone, Debug)]
pub struct Dense {
    /// Block after block; in a block channel after channel, tap after tap.
    pub weights: Vec<f32>,
    /// Where the pixel of each weight of a result lies, in floats.
    pub offsets: Vec<u32>,
    /// Results side by side.
    pub block: usize,
}

impl Dense {
    /// Of a convolution in which every channel sees every channel.
    pub fn new(conv: &Conv, way: Way, stencil: &Stencil, weights: &[f32], block: usize) -> Self {
        assert_eq!(conv.shape.groups, 1, "every channel sees every channel");
        let (inputs, outputs, taps) = (conv.input.channels, conv.shape.outputs, conv.shape.taps());
        let (results, sources) = match way {
            Way::Forward => (outputs, inputs),
            Way::Backward => (inputs, outputs),
        };
        let offset =
            |source: usize| stencil.taps.iter().map(move |tap| (source * stencil.from.plane + tap.offset) as u32);
        let offsets: Vec<u32> = (0..sources).flat_map(offset).collect();
        let mut packed = vec![0.0; results.div_ceil(block) * offsets.len() * block];
        let blocks = packed.par_chunks_mut((offsets.len() * block).max(1)).enumerate();
        blocks.for_each(|(number, packed)| {
            let count = block.min(results - number * block);
            let places = (0..sources).flat_map(|source| stencil.taps.iter().map(move |tap| (source, tap.number)));
            for (packed, (source, tap)) in packed.chunks_exact_mut(block).zip(places) {
                let (first, next) = match way {
                    Way::Forward => ((number * block * inputs + source) * taps, inputs * taps),
                    Way::Backward => ((source * inputs + number * block) * taps, taps),
                };
                for (result, packed) in packed[..count].iter_mut().enumerate() {
                    *packed = weights[first + tap + result * next];
                }
            }
        });
        Self { weights: packed, offsets, block }
    }

    /// The furthest pixel.
    pub fn furthest(&self) -> usize {
        self.offsets.iter().max().map_or(0, |offset| *offset as usize)
    }
}

/// A weight that is not left out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Where its pixel lies, in floats.
    pub offset: u32,
    /// Its value.
    pub weight: f32,
}

/// The weights that are not left out, a list for each result, in the order in which [`Dense`] has them.
#[derive(Clone, Debug)]
pub struct Lists {
    /// One list after the other.
    pub entries: Vec<Entry>,
    /// The number of each entry among the weights of the convolution.
    pub places: Vec<u32>,
    /// Where each list begins, and where the last one ends.
    pub bounds: Vec<usize>,
}

impl Lists {
    /// The list of the weights that are not zero, or of all of them.
    pub fn new(conv: &Conv, way: Way, stencil: &Stencil, weights: &[f32], zeros: bool) -> Self {
        match way {
            Way::Forward => Self::forward(conv, stencil, weights, zeros),
            Way::Backward => Self::backward(conv, stencil, weights, zeros),
        }
    }

    fn forward(conv: &Conv, stencil: &Stencil, weights: &[f32], zeros: bool) -> Self {
        let (seen, taps, each) = (conv.shape.seen(), conv.shape.taps(), conv.shape.weights_of_output());
        let group_outputs = conv.shape.outputs / conv.shape.groups;
        let places = kept(weights, zeros);
        let entry = |&place: &u32| {
            let (output, number) = (place as usize / each, place as usize % each);
            let source = output / group_outputs * seen + number / taps;
            let offset = source * stencil.from.plane + stencil.taps[number % taps].offset;
            Entry { offset: offset as u32, weight: weights[place as usize] }
        };
        let begin = |output: usize| places.partition_point(|&place| (place as usize) < output * each);
        let bounds = (0..=conv.shape.outputs).map(begin).collect();
        Self { entries: places.iter().map(entry).collect(), places, bounds }
    }

    fn backward(conv: &Conv, stencil: &Stencil, weights: &[f32], zeros: bool) -> Self {
        let (seen, taps, each) = (conv.shape.seen(), conv.shape.taps(), conv.shape.weights_of_output());
        let mut offsets = vec![None; taps];
        stencil.taps.iter().for_each(|tap| offsets[tap.number] = Some(tap.offset));
        let group_outputs = conv.shape.outputs / conv.shape.groups;
        let kept = kept(weights, zeros);
        // Place, result and entry of each weight that the stencil has a tap for.
        let seen_by = |&place: &u32| {
            let (output, number) = (place as usize / each, place as usize % each);
            let offset = (output * stencil.from.plane + offsets[number % taps]?) as u32;
            let input = output / group_outputs * seen + number / taps;
            Some((place, input, Entry { offset, weight: weights[place as usize] }))
        };
        // Counted first, so that each entry can be put where it belongs.
        let mut bounds = vec![0; conv.input.channels + 1];
        kept.iter().filter_map(seen_by).for_each(|(_, input, _)| bounds[input + 1] += 1);
        (0..conv.input.channels).for_each(|input| bounds[input + 1] += bounds[input]);
        let mut next = bounds.clone();
        let mut entries = vec![Entry { offset: 0, weight: 0.0 }; bounds[conv.input.channels]];
        let mut places = vec![0; entries.len()];
        // Output after output, and of each the last tap first, as the stencil has them.
        for of_output in kept.chunk_by(|one, other| *one as usize / each == *other as usize / each) {
            for (place, input, entry) in of_output.iter().rev().filter_map(seen_by) {
                let at = next[input];
                next[input] += 1;
                (entries[at], places[at]) = (entry, place);
            }
        }
        Self { entries, places, bounds }
    }

    /// The entries of a result.
    #[inline(always)]
    pub fn of(&self, result: usize) -> &[Entry] {
        &self.entries[self.bounds[result]..self.bounds[result + 1]]
    }

    /// The furthest pixel.
    pub fn furthest(&self) -> usize {
        self.entries.iter().map(|entry| entry.offset as usize).max().unwrap_or(0)
    }
}

/// The numbers of the weights that are not zero, or of all of them.
fn kept(weights: &[f32], zeros: bool) -> Vec<u32> {
    if zeros {
        return (0..weights.len() as u32).collect();
    }
    /// Weights that one thread looks through at once.
    const PART: usize = 1 << 16;
    /// Weights that are looked at with one question: most of these are all zeros where a list is worth it.
    const RUN: usize = 16;
    let part = |(number, part): (usize, &[f32])| {
        let mut kept = Vec::with_capacity(part.len() / 16);
        for (run, values) in part.chunks(RUN).enumerate() {
            // Without its sign, so that −0 is a zero; NaN is none.
            if values.iter().fold(0, |bits, value| bits | (value.to_bits() << 1)) != 0 {
                let first = number * PART + run * RUN;
                let some = values.iter().enumerate().filter(|(_, value)| **value != 0.0);
                kept.extend(some.map(|(at, _)| (first + at) as u32));
            }
        }
        kept
    };
    let parts: Vec<Vec<u32>> = weights.par_chunks(PART).enumerate().map(part).collect();
    parts.concat()
}
