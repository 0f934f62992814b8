//! Weights rounded so that their file is smaller: to bfloat16, or to whole numbers of a byte with a scale a channel.

use std::fmt;
use std::str::FromStr;

use obprox::{Error, Result};

use crate::model::Model;
use crate::weights::{Tensor, Weights};

/// What weights are rounded to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Values {
    /// Nothing: every value stays what it is, to the bit.
    #[default]
    F32,
    /// bfloat16: eight binary digits.
    Bf16,
    /// Whole numbers from −127 to 127 of a scale that each row of the first dimension has: a channel that is made.
    Int8,
}

impl Values {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::Int8];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }

    /// A tensor of two or more dimensions rounded, row by row. Others are few numbers, on which much hangs: they stay.
    fn round(self, tensor: &mut Tensor) {
        let rows = match tensor.shape() {
            [rows, _, ..] if *rows > 0 => *rows,
            _ => return,
        };
        let row = (tensor.len() / rows).max(1);
        match self {
            Self::F32 => {}
            Self::Bf16 => tensor.data_mut().iter_mut().for_each(|value| *value = bf16(*value)),
            Self::Int8 => tensor.data_mut().chunks_exact_mut(row).for_each(|row| {
                let scale = int8_scale(row);
                row.iter_mut().for_each(|value| *value = f32::from(int8_steps(*value, scale)) * scale);
            }),
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Values {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|values| values.name() == name);
        known.ok_or_else(|| Error::parameter("values", format!("{name} is none of f32, bf16, int8")))
    }
}

impl Weights {
    /// The same with the tensors of two or more dimensions rounded. Rounded once more they are what they are.
    pub fn rounded(&self, values: Values) -> Self {
        let round = |(name, tensor): (&str, &Tensor)| {
            let mut tensor = tensor.clone();
            values.round(&mut tensor);
            (name.to_owned(), tensor)
        };
        self.iter().map(round).collect()
    }
}

impl Model {
    /// The same with the weights of its layers rounded; what they shift and normalise by stays as it is.
    pub fn rounded(&self, values: Values) -> Result<Self> {
        let (design, weights, training) = self.clone().into_parts();
        Self::new(design, weights.rounded(values), training)
    }
}

/// The nearest bfloat16, the even one of two; a number too large for any stays, and −0 is zero.
fn bf16(value: f32) -> f32 {
    let bits = value.to_bits();
    let rounded = f32::from_bits(bits.wrapping_add(0x7fff + (bits >> 16 & 1)) & 0xffff_0000);
    if rounded.is_finite() { rounded + 0.0 } else { value }
}

const STEPS: f32 = 127.0;

/// The scale of a row, whose largest value is 127 of it. It has 16 binary digits, so that its multiples are exact, and a
/// row that was rounded finds the same scale again.
pub fn int8_scale(row: &[f32]) -> f32 {
    let most = row.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    let scale = f32::from_bits((most / STEPS).to_bits().wrapping_add(0xff) & !0xff);
    if scale.is_finite() { scale } else { 0.0 }
}

/// The nearest whole number of a scale.
pub fn int8_steps(value: f32, scale: f32) -> i8 {
    // Without a scale 0/0 is NaN, and that is the zero it stands for.
    (value / scale).round_ties_even().clamp(-STEPS, STEPS) as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounded(values: Values, data: &[f32]) -> Vec<f32> {
        let mut tensor = Tensor::new([2, data.len() / 2], data.to_vec()).unwrap();
        values.round(&mut tensor);
        tensor.data().to_vec()
    }

    #[test]
    fn bf16_is_the_nearest() {
        let found = rounded(Values::Bf16, &[1.0, 1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0, -3.3, f32::MAX, 0.0]);
        // Half way between two it is the one whose last digit is 0.
        assert_eq!(found, [1.0, 1.0, 1.015625, -3.296875, f32::MAX, 0.0]);
        assert_eq!(rounded(Values::Bf16, &[-0.0, 1.0])[0].to_bits(), 0, "a mask's zero is one");
    }

    #[test]
    fn int8_errs_by_half_a_step_at_most_and_stays() {
        let data: Vec<f32> = (0..600).map(|at| ((at * 7919) % 1000) as f32 / 300.0 - 1.7).collect();
        let found = rounded(Values::Int8, &data);
        for (row, found) in data.chunks(300).zip(found.chunks(300)) {
            let scale = int8_scale(row);
            assert!(row.iter().zip(found).all(|(value, found)| (value - found).abs() <= 0.5001 * scale));
            assert!(scale < 1.0001 * row.iter().fold(0.0f32, |most, value| most.max(value.abs())) / 127.0);
        }
        assert_eq!(rounded(Values::Int8, &found), found);
        let steps = rounded(Values::Int8, &[0.0, 0.0, -0.0, 254.0]);
        assert_eq!(steps.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), [0, 0, 0, 254f32.to_bits()]);
    }
}
