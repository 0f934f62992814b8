//! Where the nonzero values of a tensor are ↔ bytes, in three codings; FORMAT.md describes them.

use obprox::Result;
use serde::{Deserialize, Serialize};

use super::Flaw;
use super::bits::{BitReader, BitWriter};
use super::parts::{WRONG_SIZE, pack, unpack};

/// How a tensor tells where its nonzero values are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Coding {
    /// Not at all: every value is there, zero or not.
    Dense,
    /// One bit a value.
    Bitmap,
    /// The distances between nonzero values as Rice codes.
    Gaps,
}

const MOST_RICE: u32 = 31;

/// The only zero that may be left out: a negative zero is another value.
pub fn is_zero(value: f32) -> bool {
    value.to_bits() == 0
}

/// Values that are there when zeros are left out.
pub fn count_nonzeros(values: &[f32]) -> usize {
    values.iter().filter(|&&value| !is_zero(value)).count()
}

/// The shorter coding that leaves zeros out, and its bytes.
pub fn encode(values: &[f32]) -> Result<(Coding, Vec<u8>)> {
    let gaps = gaps(values);
    let (parameter, gap_bits) = best_rice(&gaps);
    let mut bits = BitWriter::default();
    values.iter().for_each(|&value| bits.push(u64::from(!is_zero(value)), 1));
    let bitmap = pack(bits.finish())?;
    if bitmap.len() <= 1 + gap_bits.div_ceil(8) as usize {
        return Ok((Coding::Bitmap, bitmap));
    }
    let mut bits = BitWriter::default();
    bits.push(parameter.into(), 8);
    for &gap in &gaps {
        bits.push_ones(gap >> parameter);
        bits.push(0, 1);
        bits.push(gap, parameter);
    }
    Ok((Coding::Gaps, bits.finish()))
}

/// Tells the places of `nonzeros` values of `len` from the first to the last; every place of a dense tensor.
pub fn decode(
    coding: Coding,
    stored: &[u8],
    len: usize,
    nonzeros: usize,
    mut place: impl FnMut(usize),
) -> std::result::Result<(), Flaw> {
    match coding {
        Coding::Dense if stored.is_empty() => (0..len).for_each(place),
        Coding::Dense => return Err(WRONG_SIZE),
        Coding::Bitmap => {
            let bitmap = unpack(stored, len.div_ceil(8))?;
            let set: usize = bitmap.iter().map(|byte| byte.count_ones() as usize).sum();
            let past_end = !len.is_multiple_of(8) && bitmap.last().is_some_and(|last| last >> (len % 8) != 0);
            if set != nonzeros || past_end {
                return Err(WRONG_POSITIONS);
            }
            for (at, &byte) in bitmap.iter().enumerate() {
                let mut left = byte;
                while left != 0 {
                    place(8 * at + left.trailing_zeros() as usize);
                    left &= left - 1;
                }
            }
        }
        Coding::Gaps => decode_gaps(stored, len, nonzeros, place)?,
    }
    Ok(())
}

fn decode_gaps(
    stored: &[u8],
    len: usize,
    nonzeros: usize,
    mut place: impl FnMut(usize),
) -> std::result::Result<(), Flaw> {
    let (&parameter, bits) = stored.split_first().ok_or(WRONG_SIZE)?;
    let parameter = u32::from(parameter);
    if parameter > MOST_RICE {
        return Err(WRONG_POSITIONS);
    }
    let mut bits = BitReader::new(bits);
    let mut next = 0u64;
    for _ in 0..nonzeros {
        let quotient = bits.ones().filter(|quotient| *quotient <= len as u64).ok_or(WRONG_POSITIONS)?;
        let rest = bits.number(parameter).ok_or(WRONG_POSITIONS)?;
        // At most 2⁶³ + 2³¹: `len` is a length in memory, and a quotient is at most 8 times the bytes of a file.
        let gap = quotient.checked_mul(1 << parameter).ok_or(WRONG_POSITIONS)? + rest;
        let at = next.checked_add(gap).filter(|at| *at < len as u64).ok_or(WRONG_POSITIONS)?;
        place(at as usize);
        next = at + 1;
    }
    if bits.is_finished() { Ok(()) } else { Err(WRONG_POSITIONS) }
}

pub const WRONG_POSITIONS: Flaw = "has corrupt positions";

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
