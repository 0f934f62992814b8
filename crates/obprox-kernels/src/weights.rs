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
        let each = conv.shape.weights_of_output();
        let mut lists = Self { entries: Vec::new(), places: Vec::new(), bounds: vec![0] };
        for (output, weights) in weights.chunks_exact(each).enumerate() {
            let first = output / (conv.shape.outputs / conv.shape.groups) * conv.shape.seen();
            for (number, &weight) in weights.iter().enumerate() {
                if zeros || weight != 0.0 {
                    let (source, tap) = (first + number / conv.shape.taps(), number % conv.shape.taps());
                    let offset = source * stencil.from.plane + stencil.taps[tap].offset;
                    lists.entries.push(Entry { offset: offset as u32, weight });
                    lists.places.push((output * each + number) as u32);
                }
            }
            lists.bounds.push(lists.entries.len());
        }
        lists
    }

    fn backward(conv: &Conv, stencil: &Stencil, weights: &[f32], zeros: bool) -> Self {
        let (seen, taps, each) = (conv.shape.seen(), conv.shape.taps(), conv.shape.weights_of_output());
        let mut offsets = vec![None; taps];
        stencil.taps.iter().for_each(|tap| offsets[tap.number] = Some(tap.offset));
        let group_outputs = conv.shape.outputs / conv.shape.groups;
        let kept = |output: usize, visit: &mut dyn FnMut(usize, usize, usize, f32)| {
            for (number, &weight) in weights[output * each..][..each].iter().enumerate() {
                if let (true, Some(offset)) = (zeros || weight != 0.0, offsets[number % taps]) {
                    visit(output / group_outputs * seen + number / taps, number, offset, weight);
                }
            }
        };
        // Counted first, so that each entry can be put where it belongs.
        let mut bounds = vec![0; conv.input.channels + 1];
        (0..conv.shape.outputs).for_each(|output| kept(output, &mut |input, _, _, _| bounds[input + 1] += 1));
        (0..conv.input.channels).for_each(|input| bounds[input + 1] += bounds[input]);
        let mut next = bounds.clone();
        let mut entries = vec![Entry { offset: 0, weight: 0.0 }; bounds[conv.input.channels]];
        let mut places = vec![0; entries.len()];
        for output in 0..conv.shape.outputs {
            kept(output, &mut |input, number, offset, weight| {
                let at = next[input];
                next[input] += 1;
                entries[at] = Entry { offset: (output * stencil.from.plane + offset) as u32, weight };
                places[at] = (output * each + number) as u32;
            });
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
