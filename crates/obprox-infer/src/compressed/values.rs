//! Values of a tensor ↔ runs of bytes, to the bit, in three layouts; FORMAT.md describes them.

use obprox::Result;
use serde::{Deserialize, Serialize};

use super::Flaw;
use super::parts::{WRONG_SIZE, pack, unpack};
use crate::rounding::{int8_scale, int8_steps};

/// How values are laid down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One after the other.
    #[default]
    F32,
    /// The lowest bytes of all, then the next ones: signs and digits are noise, exponents are not.
    Planes,
    /// For each row a scale, then whole numbers of it in a byte each.
    Int8,
}

const WIDTH: usize = size_of::<f32>();

impl Layout {
    /// Runs of bytes that it has.
    pub fn parts(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Planes => WIDTH,
            Self::Int8 => 2,
        }
    }
}

/// The layout that is shortest for the values that `kept` lets pass, and its runs. Rows are those of the first dimension.
pub fn encode(values: &[f32], rows: usize, kept: impl Fn(f32) -> bool) -> Result<(Layout, Vec<Vec<u8>>)> {
    let kept_values: Vec<f32> = values.iter().copied().filter(|&value| kept(value)).collect();
    let plane = |at: usize| kept_values.iter().map(move |value| value.to_bits().rotate_left(1).to_le_bytes()[at]);
    let planes: Result<Vec<Vec<u8>>> = (0..WIDTH).map(|at| pack(plane(at).collect())).collect();
    let plain = pack(kept_values.iter().flat_map(|value| value.to_le_bytes()).collect())?;
    let mut layouts = vec![(Layout::F32, vec![plain]), (Layout::Planes, planes?)];
    if let Some((scales, steps)) = whole_steps(values, rows, kept) {
        let scales = scales.into_iter().flat_map(f32::to_le_bytes).collect();
        layouts.push((Layout::Int8, vec![pack(scales)?, pack(steps)?]));
    }
    let size = |parts: &Vec<Vec<u8>>| parts.iter().map(Vec::len).sum::<usize>();
    Ok(layouts.into_iter().min_by_key(|(_, parts)| size(parts)).expect("there are two at least"))
}

/// Scales of rows and whole numbers of them that are the values to the bit; nothing where there are none.
fn whole_steps(values: &[f32], rows: usize, kept: impl Fn(f32) -> bool) -> Option<(Vec<f32>, Vec<u8>)> {
    if rows == 0 || values.len() <= rows {
        return None;
    }
    let (mut scales, mut steps) = (Vec::with_capacity(rows), Vec::new());
    for row in values.chunks_exact(values.len() / rows) {
        let scale = int8_scale(row);
        for &value in row {
            let step = int8_steps(value, scale);
            if (f32::from(step) * scale).to_bits() != value.to_bits() {
                return None;
            }
            if kept(value) {
                steps.push(step as u8);
            }
        }
        scales.push(scale);
    }
    Some((scales, steps))
}

/// The values of a tensor, read.
pub enum Values {
    Plain(Vec<f32>),
    Steps { scales: Vec<f32>, steps: Vec<i8>, row: usize },
}

impl Values {
    /// `count` values of a tensor of `len` in `rows` rows. Allocates no more than these take.
    pub fn decode(
        layout: Layout,
        parts: &[&[u8]],
        count: usize,
        len: usize,
        rows: usize,
    ) -> std::result::Result<Self, Flaw> {
        let bytes = count.checked_mul(WIDTH).ok_or(WRONG_SIZE)?;
        let floats = |bytes: &[u8]| -> Vec<f32> {
            bytes.as_chunks::<WIDTH>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
        };
        match (layout, parts) {
            (Layout::F32, [plain]) => Ok(Self::Plain(floats(&unpack(plain, bytes)?))),
            (Layout::Planes, planes) if planes.len() == WIDTH => {
                let mut bits = vec![0u32; count];
                for (at, plane) in planes.iter().enumerate() {
                    let plane = unpack(plane, count)?;
                    bits.iter_mut().zip(plane.iter()).for_each(|(bits, &byte)| *bits |= u32::from(byte) << (8 * at));
                }
                Ok(Self::Plain(bits.into_iter().map(|bits| f32::from_bits(bits.rotate_right(1))).collect()))
            }
            (Layout::Int8, [scales, steps]) if rows > 0 => {
                let scales = floats(&unpack(scales, rows.checked_mul(WIDTH).ok_or(WRONG_SIZE)?)?);
                let steps = unpack(steps, count)?.iter().map(|&step| step as i8).collect();
                Ok(Self::Steps { scales, steps, row: (len / rows).max(1) })
            }
            _ => Err(WRONG_SIZE),
        }
    }

    /// Value number `index` of those that are there, which is at `place` of the tensor.
    pub fn get(&self, index: usize, place: usize) -> f32 {
        match self {
            Self::Plain(values) => values[index],
            Self::Steps { scales, steps, row } => f32::from(steps[index]) * scales[place / row],
        }
    }
}
