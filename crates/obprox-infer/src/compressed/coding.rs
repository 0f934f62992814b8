//! One tensor ↔ bytes: where its nonzero values are, and what they are.

use obprox::Result;
use serde::{Deserialize, Serialize};

use super::Flaw;
use super::parts::WRONG_SIZE;
use super::positions::{self, Coding, WRONG_POSITIONS, count_nonzeros, is_zero};
use super::values::{self, Layout, Values};
use crate::weights::{Tensor, element_count};

/// What a header says of a tensor.
#[derive(Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    pub shape: Vec<usize>,
    coding: Coding,
    nonzeros: usize,
    /// All bytes of it, in files before version 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(default)]
    values: Layout,
    /// Bytes of the positions, and of each run of values.
    #[serde(default)]
    parts: Vec<usize>,
}

/// Tensors up to here are tried with their zeros too, which is shorter for a few values; and so are those that have
/// hardly any.
const FEW: usize = 64;

impl Entry {
    /// The shortest coding of a tensor: its entry and its bytes.
    pub fn encode(name: &str, tensor: &Tensor) -> Result<(Self, Vec<u8>)> {
        let data = tensor.data();
        let nonzeros = count_nonzeros(data);
        let rows = tensor.shape().first().copied().unwrap_or(1);
        let entry = |coding, values, runs: Vec<Vec<u8>>| {
            let parts = runs.iter().map(Vec::len).collect();
            let shape = tensor.shape().to_vec();
            (Self { name: name.to_owned(), shape, coding, nonzeros, bytes: None, values, parts }, runs.concat())
        };
        let sparse = || {
            let (coding, places) = positions::encode(data)?;
            let (layout, mut runs) = values::encode(data, rows, |value| !is_zero(value))?;
            runs.insert(0, places);
            Ok(entry(coding, layout, runs))
        };
        let dense = || {
            let (layout, mut runs) = values::encode(data, rows, |_| true)?;
            runs.insert(0, Vec::new());
            Ok(entry(Coding::Dense, layout, runs))
        };
        if nonzeros == data.len() {
            return dense();
        }
        // Weights times a mask of zeros: half of the zeros are −0, which is kept, and has no place of its own where all have one.
        let negative = data.iter().filter(|value| **value == 0.0 && !is_zero(**value)).count();
        if data.len() > FEW && 20 * nonzeros < 19 * data.len() && 20 * negative < nonzeros {
            return sparse();
        }
        let (sparse, dense) = (sparse()?, dense()?);
        Ok(if sparse.1.len() < dense.1.len() { sparse } else { dense })
    }

    /// The tensor with all its zeros, one value after the other.
    pub fn plain(name: &str, tensor: &Tensor) -> Self {
        Self {
            name: name.to_owned(),
            shape: tensor.shape().to_vec(),
            coding: Coding::Dense,
            nonzeros: count_nonzeros(tensor.data()),
            bytes: None,
            values: Layout::F32,
            parts: vec![0, 4 * tensor.len()],
        }
    }

    /// Bytes that it takes in the file; nothing where there are too many to be counted.
    pub fn bytes(&self) -> Option<usize> {
        self.bytes.or_else(|| self.parts.iter().try_fold(0usize, |sum, &part| sum.checked_add(part)))
    }

    /// The values. Allocates them, what they are made of, and nothing else; the caller has seen to it that so many are
    /// not too much.
    pub fn decode(&self, bytes: &[u8]) -> std::result::Result<Vec<f32>, Flaw> {
        let len = element_count(&self.shape).ok_or("is too large")?;
        let kept = if self.coding == Coding::Dense { len } else { self.nonzeros };
        if kept > len {
            return Err(WRONG_SIZE);
        }
        let mut rest = bytes;
        let mut part = |size: usize| {
            let (part, after) = rest.split_at_checked(size)?;
            rest = after;
            Some(part)
        };
        let (places, runs) = match self.bytes {
            Some(all) => {
                let places = all.checked_sub(4 * kept).and_then(&mut part).ok_or(WRONG_SIZE)?;
                (places, vec![part(4 * kept).ok_or(WRONG_SIZE)?])
            }
            None => {
                let parts: Option<Vec<&[u8]>> = self.parts.iter().map(|&size| part(size)).collect();
                let parts = parts.filter(|parts| parts.len() == 1 + self.values.parts()).ok_or(WRONG_SIZE)?;
                (parts[0], parts[1..].to_vec())
            }
        };
        let rows = self.shape.first().copied().unwrap_or(1);
        let values = Values::decode(self.values, &runs, kept, len, rows)?;
        let mut data = vec![0.0; len];
        let mut index = 0;
        positions::decode(self.coding, places, len, self.nonzeros, |at| {
            data[at] = values.get(index, at);
            index += 1;
        })?;
        // A zero among the nonzeros would make two files of one network.
        match count_nonzeros(&data) == self.nonzeros {
            true => Ok(data),
            false if self.coding == Coding::Dense => Err(WRONG_SIZE),
            false => Err(WRONG_POSITIONS),
        }
    }
}
