//! safetensors ↔ [`Model`], with PyTorch's parameter names.
//!
//! What is no parameter goes into the metadata under the key `obprox`, as JSON: the architecture, how images are
//! prepared, the names of the classes. A file without it, as PyTorch writes one, is recognised by names and shapes.

use std::collections::HashMap;
use std::path::Path;

use obprox::output::write_whole;
use obprox::{Error, Result};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};

use crate::architecture::{Architecture, plain_name};
use crate::model::{Design, Model, Training};
use crate::network::Network;
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
        // One entry only: several would be written in the order of a hash map, another one each time.
        let metadata = HashMap::from([(METADATA_KEY.into(), description)]);
        let bytes: Vec<(&str, &[usize], Vec<u8>)> = self
            .weights()
            .iter()
            .map(|(name, tensor)| {
                (name, tensor.shape(), tensor.data().iter().flat_map(|value| value.to_le_bytes()).collect())
            })
            .collect();
        let views: std::result::Result<Vec<_>, _> = bytes
            .iter()
            .map(|(name, shape, data)| Ok((*name, TensorView::new(Dtype::F32, shape.to_vec(), data)?)))
            .collect();
        let written = views.and_then(|views| safetensors::serialize(views, Some(metadata)));
        written.map_err(|error| Error::Data(format!("cannot be written as safetensors: {error}")))
    }
}

fn parse(bytes: &[u8]) -> Result<(Weights, Option<Description>)> {
    if bytes.starts_with(b"PK\x03\x04") {
        let advice = "in Python save_file(model.state_dict(), path) of safetensors.torch writes one";
        return Err(Error::Data(format!("is PyTorch's own format, not safetensors: {advice}")));
    }
    let flaw = |error| Error::Data(format!("is no sound safetensors file ({error}): save it again from its source"));
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(flaw)?;
    let file = SafeTensors::deserialize(bytes).map_err(flaw)?;
    let mut weights = Weights::new();
    for (full_name, view) in file.iter() {
        let Some(name) = plain_name(full_name) else { continue };
        if weights.insert(name, floats(full_name, &view)?).is_some() {
            return Err(Error::Data(format!("holds the parameter {name} twice, once as {full_name}")));
        }
    }
    let described = header.metadata().as_ref().and_then(|metadata| metadata.get(METADATA_KEY));
    let description = described.map(|text| serde_json::from_str(text)).transpose();
    let description = description.map_err(|error| Error::Data(format!("its metadata is not ours ({error})")))?;
    Ok((weights, description))
}

/// Values as f32; every type that is read widens exactly.
fn floats(name: &str, view: &TensorView) -> Result<Tensor> {
    let bytes = view.data();
    let data = match view.dtype() {
        Dtype::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Dtype::F16 => bytes.chunks_exact(2).map(|b| widen_half(u16::from_le_bytes([b[0], b[1]]))).collect(),
        Dtype::BF16 => bytes.chunks_exact(2).map(|b| f32::from_le_bytes([0, 0, b[0], b[1]])).collect(),
        other => {
            return Err(Error::Data(format!("{name} is of type {other:?}: save it as F32, F16 or BF16")));
        }
    };
    Tensor::new(view.shape(), data)
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
