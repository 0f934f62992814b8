//! The values of one tensor ↔ bytes, in three codings; FORMAT.md describes them.

use serde::{Deserialize, Serialize};

use super::Flaw;
use super::bits::{BitReader, BitWriter};

/// How a tensor's values are laid down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    /// Every value.
    Dense,
    /// One bit a value, then the nonzero ones.
    Bitmap,
    /// The distances between nonzero values as Rice codes, then the nonzero values.
    Gaps,
}

const MOST_RICE: u32 = 31;

/// The only zero that may be left out: a negative zero is another value.
fn is_zero(value: f32) -> bool {
    value.to_bits() == 0
}

/// Values that a coding keeps when zeros are left out.
pub fn count_nonzeros(values: &[f32]) -> usize {
    values.iter().filter(|&&value| !is_zero(value)).count()
}

/// The smallest of the codings, and the bytes in it.
pub fn encode(values: &[f32]) -> (Coding, Vec<u8>) {
    let gaps = gaps(values);
    let (parameter, gap_bits) = best_rice(&gaps);
    let nonzero_bytes = 4 * gaps.len();
    let sizes = [
        (4 * values.len(), Coding::Dense),
        (values.len().div_ceil(8) + nonzero_bytes, Coding::Bitmap),
        (1 + gap_bits.div_ceil(8) as usize + nonzero_bytes, Coding::Gaps),
    ];
    let (size, coding) = sizes.into_iter().min_by_key(|&(size, _)| size).expect("there are three");
    let mut bytes = Vec::with_capacity(size);
    let mut bits = BitWriter::default();
    match coding {
        Coding::Dense => {}
        Coding::Bitmap => values.iter().for_each(|&value| bits.push(u64::from(!is_zero(value)), 1)),
        Coding::Gaps => {
            bytes.push(parameter as u8);
            for &gap in &gaps {
                bits.push_ones(gap >> parameter);
                bits.push(0, 1);
                bits.push(gap, parameter);
            }
        }
    }
    bytes.extend(bits.finish());
    let kept = values.iter().filter(|&&value| coding == Coding::Dense || !is_zero(value));
    bytes.extend(kept.flat_map(|value| value.to_le_bytes()));
    (coding, bytes)
}

/// The values of a tensor of `len`, of which `nonzeros` are not zero. Allocates `len` values and nothing else; the
/// caller has seen to it that this is not too much.
pub fn decode(coding: Coding, bytes: &[u8], len: usize, nonzeros: usize) -> Result<Vec<f32>, Flaw> {
    let kept = if coding == Coding::Dense { len } else { nonzeros };
    let positions = kept.checked_mul(4).and_then(|size| bytes.len().checked_sub(size)).ok_or(WRONG_SIZE)?;
    let (positions, kept) = bytes.split_at(positions);
    let mut kept = kept.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes));
    let mut values = vec![0.0; len];
    match coding {
        Coding::Dense => {
            values.iter_mut().zip(&mut kept).for_each(|(value, kept)| *value = kept);
            if !positions.is_empty() || count_nonzeros(&values) != nonzeros {
                return Err(WRONG_SIZE);
            }
            return Ok(values);
        }
        Coding::Bitmap => {
            let set: usize = positions.iter().map(|byte| byte.count_ones() as usize).sum();
            let past_end = !len.is_multiple_of(8) && positions.last().is_some_and(|last| last >> (len % 8) != 0);
            if positions.len() != len.div_ceil(8) || set != nonzeros || past_end {
                return Err(WRONG_POSITIONS);
            }
            let bits = positions.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
            for ((value, _), kept) in values.iter_mut().zip(bits).filter(|(_, bit)| *bit).zip(&mut kept) {
                *value = kept;
            }
        }
        Coding::Gaps => {
            let (&parameter, bits) = positions.split_first().ok_or(WRONG_SIZE)?;
            let parameter = u32::from(parameter);
            if parameter > MOST_RICE {
                return Err(WRONG_POSITIONS);
            }
            let mut bits = BitReader::new(bits);
            let mut next = 0u64;
            for kept in &mut kept {
                let quotient = bits.ones().filter(|quotient| *quotient <= len as u64).ok_or(WRONG_POSITIONS)?;
                let rest = bits.number(parameter).ok_or(WRONG_POSITIONS)?;
                // At most 2⁶³ + 2³¹: `len` is a length in memory, and a quotient is at most 8 times the bytes of a file.
                let gap = quotient.checked_mul(1 << parameter).ok_or(WRONG_POSITIONS)? + rest;
                let at = next.checked_add(gap).filter(|at| *at < len as u64).ok_or(WRONG_POSITIONS)?;
                values[at as usize] = kept;
                next = at + 1;
            }
            if !bits.is_finished() {
                return Err(WRONG_POSITIONS);
            }
        }
    }
    // A zero among the nonzeros would make two files of one network.
    match count_nonzeros(&values) == nonzeros {
        true => Ok(values),
        false => Err(WRONG_POSITIONS),
    }
}

const WRONG_SIZE: Flaw = "has another size than its header says";
const WRONG_POSITIONS: Flaw = "has corrupt positions";

/// How many zeros come before each nonzero, since the one before it.
fn gaps(values: &[f32]) -> Vec<u64> {
    let positions = values.iter().enumerate().filter(|(_, value)| !is_zero(**value)).map(|(at, _)| at as u64);
    let mut next = 0;
    let gaps = positions.map(|at| {
        let gap = at - next;
        next = at + 1;
        gap
    });
    gaps.collect()
}

/// The parameter that makes the codes shortest, and their bits. The cost is convex in the parameter: each step halves
/// what the quotients take and adds one bit a code.
fn best_rice(gaps: &[u64]) -> (u32, u64) {
    let cost = |parameter: u32| gaps.iter().map(|gap| (gap >> parameter) + 1 + u64::from(parameter)).sum::<u64>();
    let mut best = (0, cost(0));
    for parameter in 1..=MOST_RICE {
        match cost(parameter) {
            bits if bits < best.1 => best = (parameter, bits),
            _ => break,
        }
    }
    best
}
