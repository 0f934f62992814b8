//! What a shard tells before a problem is stated.

use super::wire::{In, Out, Wire, get_list, put_list};
use super::worker::Shard;
use crate::data::Matrix;
use crate::{Result, distinct};

/// So many labels are told apart.
pub(super) const MOST_LABELS: usize = 1000;

/// What a shard tells of itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    pub name: String,
    pub n_rows: u64,
    pub n_cols: u64,
    pub entries: u64,
    pub names: Option<Vec<String>>,
    /// What tells its rows from others.
    pub sum: u32,
    /// What tells the arithmetic of the machine from another one's.
    pub arithmetic: u64,
    pub targets: OfTargets,
    pub has_weights: bool,
    pub has_offsets: bool,
    /// The first row whose weight is not finite or is negative, with it.
    pub wrong_weight: Option<(u64, f64)>,
}

/// What it tells of its targets.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OfTargets {
    pub first: Option<f64>,
    pub wrong: Option<(u64, f64)>,
    /// The lowest, with its row.
    pub lowest: Option<(u64, f64)>,
    pub largest: f64,
    /// The distinct ones and the weight of the rows of each, where they are few.
    pub labels: Option<(Vec<f64>, Vec<f64>)>,
}

impl Summary {
    pub fn at(shard: &Shard) -> Self {
        let (data, weights) = (&shard.data, shard.weights.as_deref());
        let weight = |row: usize| weights.map_or(1.0, |weights| weights[row]);
        let targets = &data.targets;
        let first = |is: &dyn Fn(f64) -> bool, values: &[f64]| {
            values.iter().position(|&value| is(value)).map(|row| (row as u64, values[row]))
        };
        let wrong = first(&|target| !target.is_finite(), targets);
        let labels = Some(distinct(targets)).filter(|labels| wrong.is_none() && labels.len() <= MOST_LABELS);
        let labels = labels.map(|labels| {
            let mut sums = vec![0.0; labels.len()];
            for (row, target) in targets.iter().enumerate() {
                sums[labels.partition_point(|label| label < target)] += weight(row);
            }
            (labels, sums)
        });
        Self {
            name: shard.name.clone(),
            n_rows: data.matrix.n_rows() as u64,
            n_cols: data.matrix.n_cols() as u64,
            entries: data.matrix.nnz() as u64,
            names: data.names.clone(),
            sum: shard.sum(),
            arithmetic: arithmetic(),
            targets: OfTargets {
                first: targets.first().copied(),
                wrong,
                lowest: targets
                    .iter()
                    .copied()
                    .enumerate()
                    .min_by(|a, b| a.1.total_cmp(&b.1))
                    .map(|(row, target)| (row as u64, target)),
                largest: targets.iter().fold(0.0f64, |most, target| most.max(target.abs())),
                labels,
            },
            has_weights: weights.is_some(),
            has_offsets: shard.offsets.is_some(),
            wrong_weight: first(&|weight| !(weight.is_finite() && weight >= 0.0), weights.unwrap_or_default()),
        }
    }
}

/// The sum of what a shard holds.
pub(super) fn sum_of(matrix: &Matrix, targets: &[f64], beside: [Option<&[f64]>; 2]) -> u32 {
    let mut hash = crc32fast::Hasher::new();
    hash.update(bytemuck::cast_slice(targets));
    for numbers in beside {
        hash.update(&[u8::from(numbers.is_some())]);
        hash.update(bytemuck::cast_slice(numbers.unwrap_or_default()));
    }
    let mut sparse = |offsets: &[u64], indices: &[u32], values: &[u8]| {
        hash.update(bytemuck::cast_slice(offsets));
        hash.update(bytemuck::cast_slice(indices));
        hash.update(values);
    };
    match matrix {
        Matrix::Ones(rows) => sparse(rows.offsets(), rows.indices(), &[]),
        Matrix::Sparse32(rows) => sparse(rows.offsets(), rows.indices(), bytemuck::cast_slice(rows.values())),
        Matrix::Sparse64(rows) => sparse(rows.offsets(), rows.indices(), bytemuck::cast_slice(rows.values())),
        Matrix::Dense32(rows) => sparse(&[], &[], bytemuck::cast_slice(rows.values())),
        Matrix::Dense64(rows) => sparse(&[], &[], bytemuck::cast_slice(rows.values())),
    }
    hash.finalize()
}

/// What the elementary functions of this machine give for some thousand numbers. Losses are made of them, and a library
/// of another version, or one that has other ways for another processor, may round some of them differently.
pub(super) fn arithmetic() -> u64 {
    let mix = |sum: u64, value: f64| (sum ^ value.to_bits()).wrapping_mul(0x100_0000_01b3).rotate_left(17);
    (1..4096).fold(0, |sum, at| {
        let x = f64::from(at) * 0.0137 - 28.0;
        let size = x.abs();
        let of_any = [x.exp(), x.exp_m1(), x.exp().ln_1p(), x.tanh()];
        of_any.into_iter().chain([size.ln(), size.sqrt(), size.powf(0.37)]).fold(sum, mix)
    })
}

impl Wire for Summary {
    fn put(&self, out: &mut Out) {
        let OfTargets { first, wrong, lowest, largest, labels } = &self.targets;
        out.put(&self.name).put(&self.n_rows).put(&self.n_cols).put(&self.entries);
        out.put(&self.names.is_some());
        self.names.iter().for_each(|names| put_list(out, names));
        out.put(&self.sum).put(&self.arithmetic).put(first).put(wrong).put(lowest).put(largest).put(labels);
        out.put(&self.has_weights).put(&self.has_offsets).put(&self.wrong_weight);
    }
    fn get(input: &mut In) -> Result<Self> {
        let (name, n_rows, n_cols, entries) = (input.get()?, input.get()?, input.get()?, input.get()?);
        let names = if input.get()? { Some(get_list(input)?) } else { None };
        let (sum, arithmetic) = (input.get()?, input.get()?);
        let (first, wrong, lowest) = (input.get()?, input.get()?, input.get()?);
        let targets = OfTargets { first, wrong, lowest, largest: input.get()?, labels: input.get()? };
        let (has_weights, has_offsets, wrong_weight) = (input.get()?, input.get()?, input.get()?);
        Ok(Self {
            name,
            n_rows,
            n_cols,
            entries,
            names,
            sum,
            arithmetic,
            targets,
            has_weights,
            has_offsets,
            wrong_weight,
        })
    }
}
