//! safetensors ↔ [`Model`], with PyTorch's parameter names.
//!
//! What is no parameter goes into the metadata under the key `obprox`, as JSON: the architecture, how images are
//! prepared, the names of the classes. A file without it, as PyTorch writes one, is recognised by names and shapes.

use std::collections::BTreeMap;
use std::path::Path;

use obprox::output::write_whole;
use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::architecture::{Architecture, plain_name};
use crate::model::{Design, Model, Training};
use crate::network::Network;
use crate::safetensors::{self, File, Stored};
use crate::weights::{Tensor, Weights};

const METADATA_KEY: &str = "obprox";

#[derive(Serialize, Deserialize)]
struct Description {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    architecture: Option<Architecture>,
    /// Where it is none that is known by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph: Option<Network>,
    #[serde(flatten)]
    training: Training,
}

impl Model {
    /// Reads a safetensors file, written here or by PyTorch.
    pub fn read_safetensors(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::reading(path))?;
        Self::from_safetensors(&bytes).map_err(|error| error.of_file(path))
    }

    /// The same from the bytes of such a file.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self> {
        let (mut weights, description) = parse(bytes)?;
        match description {
            Some(Description { graph: Some(graph), training, .. }) => Self::new(graph, weights, training),
            Some(Description { architecture: Some(architecture), training, .. }) => {
                Self::new(architecture.checked()?, weights, training)
            }
            Some(Description { training, .. }) => Self::new(Architecture::recognise(&mut weights)?, weights, training),
            None => Self::new(Architecture::recognise(&mut weights)?, weights, Training::default()),
        }
    }

    /// Writes a safetensors file that PyTorch reads, whole or not at all.
    pub fn write_safetensors(&self, path: impl AsRef<Path>) -> Result<()> {
        let bytes = self.to_safetensors()?;
        write_whole(path.as_ref(), |out| out.write_all(&bytes))
    }

    /// The bytes of such a file.
    pub fn to_safetensors(&self) -> Result<Vec<u8>> {
        let (architecture, graph) = match self.design() {
            Design::Known(architecture) => (Some(*architecture), None),
            Design::Graph(network) => (None, Some(network.clone())),
        };
        let description = Description { architecture, graph, training: self.training().clone() };
        let description = serde_json::to_string(&description).map_err(|error| Error::Data(error.to_string()))?;
        let metadata = BTreeMap::from([(METADATA_KEY.into(), description)]);
        let tensors = self.weights().iter().map(|(name, tensor)| (name, (tensor.shape(), tensor.data())));
        Ok(safetensors::write(&metadata, &tensors.collect()))
    }
}

fn parse(bytes: &[u8]) -> Result<(Weights, Option<Description>)> {
    if bytes.starts_with(b"PK\x03\x04") {
        let advice = "in Python save_file(model.state_dict(), path) of safetensors.torch writes one";
        return Err(Error::Data(format!("is PyTorch's own format, not safetensors: {advice}")));
    }
    let flaw =
        |error: String| Error::Data(format!("is no sound safetensors file ({error}): save it again from its source"));
    let file = File::parse(bytes).map_err(flaw)?;
    let mut weights = Weights::new();
    for tensor in &file.tensors {
        let Some(name) = plain_name(&tensor.name) else { continue };
        if weights.insert(name, floats(tensor)?).is_some() {
            return Err(Error::Data(format!("holds the parameter {name} twice, once as {}", tensor.name)));
        }
    }
    let description = file.metadata.get(METADATA_KEY).map(|text| serde_json::from_str(text)).transpose();
    let description = description.map_err(|error| Error::Data(format!("its metadata is not ours ({error})")))?;
    Ok((weights, description))
}

/// Values as f32; every type that is read widens exactly.
fn floats(Stored { name, dtype, shape, bytes }: &Stored) -> Result<Tensor> {
    let (size, widen): (usize, fn(&[u8]) -> f32) = match dtype.as_str() {
        "F32" => (4, |b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        "F16" => (2, |b| widen_half(u16::from_le_bytes([b[0], b[1]]))),
        "BF16" => (2, |b| f32::from_le_bytes([0, 0, b[0], b[1]])),
        other => return Err(Error::Data(format!("{name} is of type {other}: save it as F32, F16 or BF16"))),
    };
    let length = shape.iter().try_fold(size, |length, &side| length.checked_mul(side));
    if length != Some(bytes.len()) {
        return Err(Error::Data(format!("{name} of shape {shape:?} has {} bytes of type {dtype}", bytes.len())));
    }
    Tensor::new(shape.as_slice(), bytes.chunks_exact(size).map(widen).collect())
}

/// IEEE half → single. Halves that are not normal are sums of 2⁻²⁴; the exponent of others moves by 127 − 15.
fn widen_half(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction as f32 * 2f32.powi(-24),
        31 => f32::from_bits(0xff << 23 | fraction << 13),
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_widen_exactly() {
        let cases = [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.9604645e-8),
            (0x3555, 0.33325195),
        ];
        for (bits, value) in cases {
            assert_eq!(widen_half(bits), value, "{bits:#x}");
        }
        assert!(widen_half(0x7e00).is_nan());
        assert_eq!(widen_half(0xfc00), f32::NEG_INFINITY);
        assert!(widen_half(0x8000).is_sign_negative());
    }
}
