//! The weights of a convolution in the form of each kernel that it uses.

use std::sync::Arc;

use obprox::{Error, Result};

use super::LANES;
use super::choice::{Choice, Kernels, choose};
use super::convolve::Kernel;
use super::dense::{self, DenseWeights};
use super::linear::Matrix;
use super::narrow::{self, NarrowWeights};
use super::plane::tiles;
use super::program::Compiler;
use super::sparse::{self, SparseWeights, Tap};
use crate::fused::{FusedConv, ValueId};

impl Compiler<'_> {
    /// The kernels of a convolution for a single image and for images side by side.
    pub fn kernels(&self, conv: &FusedConv, made: ValueId) -> Result<[Kernel; 2]> {
        let choices = [1, LANES].map(|lanes| self.choice(conv, made, lanes));
        let plane = &self.planes[made];
        let number = plane.is_number();
        let narrow = plane.width < self.unit;
        let columns = if choices.contains(&Choice::Dense) { self.columns(conv, made)? } else { Vec::new() };
        let sparse = choices.contains(&Choice::Sparse).then(|| self.sparse_weights(conv, made)).transpose()?;
        if number {
            let sparse = sparse.map(Arc::new);
            let matrix = choices.contains(&Choice::Dense).then(|| Arc::new(self.matrix(conv, made, &columns)));
            return Ok(choices.map(|choice| match (choice, &sparse, &matrix) {
                (Choice::Dense, _, Some(matrix)) => Kernel::Matrix { weights: matrix.clone() },
                (_, Some(weights), _) => Kernel::Numbers { weights: weights.clone() },
                (_, None, _) => unreachable!("the weights of every choice were made"),
            }));
        }
        let dense = (choices[1] == Choice::Dense || choices[0] == Choice::Dense && !narrow)
            .then(|| self.dense_weights(conv, made, &columns));
        let (sparse, dense) = (sparse.map(Arc::new), dense.map(Arc::new));
        let kernel = |choice: Choice, lanes: usize| match (choice, &sparse, &dense) {
            (Choice::Dense, ..) if lanes == 1 && narrow => {
                Kernel::Narrow { weights: self.narrow_weights(conv, made, &columns) }
            }
            (Choice::Dense, _, Some(weights)) => Kernel::Dense {
                weights: weights.clone(),
                tiles: tiles(plane, lanes, self.unit, dense::tile(self.unit)),
            },
            (_, Some(weights), _) => Kernel::Sparse {
                weights: weights.clone(),
                tiles: tiles(plane, lanes, self.unit, sparse::tile(self.unit)),
            },
            (_, None, _) => unreachable!("the weights of every choice were made"),
        };
        Ok([kernel(choices[0], 1), kernel(choices[1], LANES)])
    }

    pub fn choice(&self, conv: &FusedConv, made: ValueId, lanes: usize) -> Choice {
        let density = self.nonzeros(conv, made) as f64 / self.weights(conv, made).max(1) as f64;
        choose(self.kernels, &conv.shape, density, lanes, self.planes[made].is_number())
    }

    /// From a pixel of the output to the pixel that a weight reads, both counted from their first pixel in the frame;
    /// `None` where it is none of the image. Of an output of one pixel: where it reads.
    fn offset(
        &self,
        conv: &FusedConv,
        made: ValueId,
        position: usize,
        [row, column]: [usize; 2],
    ) -> Result<Option<u32>> {
        let (window, plane) = (&conv.shape.window, self.planes[conv.input]);
        let (down, right) = (row * window.dilation[0], column * window.dilation[1]);
        let offset = if self.planes[made].is_number() {
            let y = down.checked_sub(window.padding[0]).filter(|y| *y < plane.height);
            let x = right.checked_sub(window.padding[1]).filter(|x| *x < plane.width);
            y.zip(x).map(|(y, x)| position * plane.len + plane.origin() + y * plane.row + x)
        } else if let Some(phases) = self.phases(conv, made) {
            Some(position * phases.count() * phases.len + phases.offset(down, right))
        } else {
            let (top, left) = (plane.frame - window.padding[0], plane.frame - window.padding[1]);
            Some(position * plane.len + (down + top) * plane.row + right + left)
        };
        let too_large = |_| Error::Data("the images are too large for this network".into());
        offset.map(|offset| u32::try_from(offset).map_err(too_large)).transpose()
    }

    /// Weights between channels that are there, zero or not.
    pub fn weights(&self, conv: &FusedConv, made: ValueId) -> usize {
        self.kept[made].len() * self.kept[conv.input].len() * conv.shape.taps() / conv.shape.groups
    }

    /// Nonzero weights of the outputs that are there.
    pub fn nonzeros(&self, conv: &FusedConv, made: ValueId) -> usize {
        self.kept[made].iter().map(|&output| conv.row_nnz(output)).sum()
    }

    /// Whether an output needs no weights.
    fn is_constant(&self, conv: &FusedConv, output: usize) -> bool {
        self.liveness.as_ref().is_some_and(|liveness| liveness.constant_row(conv, output).is_some())
    }

    fn sparse_weights(&self, conv: &FusedConv, made: ValueId) -> Result<SparseWeights> {
        let positions = self.positions(conv.input);
        let mut weights = SparseWeights { taps: Vec::new(), bounds: vec![0], grouped: conv.shape.groups > 1 };
        for &output in &self.kept[made] {
            let zeros = (self.kernels == Kernels::Dense).then(|| conv.all_taps(output));
            let nonzeros = (zeros.is_none() && !self.is_constant(conv, output)).then(|| conv.taps(output));
            for (channel, row, column, weight) in zeros.into_iter().flatten().chain(nonzeros.into_iter().flatten()) {
                // A channel that has no position is left out, or read by no row that matters.
                let Some(position) = positions[channel] else { continue };
                if let Some(offset) = self.offset(conv, made, position, [row, column])? {
                    weights.taps.push(Tap { offset, weight });
                }
            }
            weights.bounds.push(weights.taps.len());
        }
        Ok(weights)
    }

    /// What a dense kernel multiplies in each row: where the weights are in the row, and where their pixels are.
    fn columns(&self, conv: &FusedConv, made: ValueId) -> Result<Vec<(usize, u32)>> {
        let positions = self.positions(conv.input);
        let mut columns = Vec::new();
        for (at, (channel, row, column, _)) in conv.all_taps(0).enumerate() {
            let Some(position) = positions[channel] else { continue };
            if let Some(offset) = self.offset(conv, made, position, [row, column])? {
                columns.push((at, offset));
            }
        }
        Ok(columns)
    }

    /// The rows of the outputs that are computed; `None` where an output needs no weights.
    fn rows<'a>(&self, conv: &'a FusedConv, made: ValueId) -> Vec<Option<&'a [f32]>> {
        let row = |&output: &usize| (!self.is_constant(conv, output)).then(|| conv.row(output));
        self.kept[made].iter().map(row).collect()
    }

    fn matrix(&self, conv: &FusedConv, made: ValueId, columns: &[(usize, u32)]) -> Matrix {
        let rows = self.rows(conv, made);
        let weights = rows.iter().flat_map(|row| columns.iter().map(|&(at, _)| row.map_or(0.0, |row| row[at])));
        let offsets: Vec<u32> = columns.iter().map(|&(_, offset)| offset).collect();
        let contiguous = offsets.windows(2).all(|pair| pair[1] == pair[0] + 1);
        Matrix { weights: weights.collect(), offsets, contiguous }
    }

    fn dense_weights(&self, conv: &FusedConv, made: ValueId, columns: &[(usize, u32)]) -> DenseWeights {
        let rows = self.rows(conv, made);
        let mut weights = Vec::with_capacity(rows.len().div_ceil(dense::GROUP) * columns.len());
        for group in rows.chunks(dense::GROUP) {
            let weight = |output: usize, at: usize| group.get(output).copied().flatten().map_or(0.0, |row| row[at]);
            weights.extend(columns.iter().map(|&(at, _)| std::array::from_fn(|output| weight(output, at))));
        }
        DenseWeights { weights, offsets: columns.iter().map(|&(_, offset)| offset).collect() }
    }

    fn narrow_weights(&self, conv: &FusedConv, made: ValueId, columns: &[(usize, u32)]) -> NarrowWeights {
        let rows = self.rows(conv, made);
        let block = narrow::block(self.unit);
        let mut weights = Vec::with_capacity(rows.len().next_multiple_of(block) * columns.len());
        for group in rows.chunks(block) {
            for &(at, _) in columns {
                weights.extend(group.iter().map(|row| row.map_or(0.0, |row| row[at])));
                weights.resize(weights.len().next_multiple_of(block), 0.0);
            }
        }
        NarrowWeights { weights, block, offsets: columns.iter().map(|&(_, offset)| offset).collect() }
    }
}
