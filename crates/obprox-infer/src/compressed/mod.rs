//! The compressed network file (`.obz`): zeros left out, every other value kept to the bit. FORMAT.md describes it.

mod bits;
mod coding;
mod parts;
mod positions;
mod values;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use obprox::output::write_whole;
use obprox::{Error, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::architecture::Architecture;
use crate::model::{Design, Model, Training};
use crate::network::Network;
use crate::weights::{Tensor, Weights, element_count};
use coding::Entry;
use parts::{BEST, frame, unpack};

/// What is wrong with a file.
type Flaw = &'static str;

/// The control character stops a terminal, the line end shows a mangled transfer.
const MAGIC: &[u8; 8] = b"OBZNET\x1a\n";
/// The versions that are read; the last one is written.
const VERSIONS: std::ops::RangeInclusive<u32> = 1..=3;
/// Bytes before the header.
const PREFIX: usize = 32;

/// A few bytes may stand for many zeros. What they unfold to may be so large in any case …
const UNFOLDED_BYTES: u64 = 64 << 20;
/// … and beyond that so many times the size of the file.
const UNFOLDED_RATIO: u64 = 1000;
/// A header may be so many times as long as its frame.
const HEADER_RATIO: usize = 200;
/// The version since which headers may be frames.
const PACKED_HEADERS: u32 = 3;

#[derive(Serialize, Deserialize)]
struct Header {
    /// Missing where the tensors are of a network that only its maker can run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    architecture: Option<Architecture>,
    /// Where the network is none that is known by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    graph: Option<Network>,
    #[serde(flatten)]
    training: Training,
    tensors: Vec<Entry>,
    /// Where all tensors together are one frame of zstd: the bytes in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unfolded: Option<usize>,
}

/// Networks up to here are tried as one frame too: a handful of tensors have more in common than each has in itself.
const SMALL: usize = 256 << 10;

/// Whether these are the first bytes of a compressed network.
pub fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

impl Model {
    /// Reads a network from either of its files: compressed or safetensors, told by content.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut head = [0; MAGIC.len()];
        let mut file = File::open(path).map_err(Error::reading(path))?;
        match file.read_exact(&mut head).is_ok() && is_compressed(&head) {
            true => Self::read_compressed(path),
            false if path.extension().is_some_and(|name| name.eq_ignore_ascii_case("onnx")) => {
                let message = "is an ONNX file by its name: read it by obprox net import, or read_onnx in Python";
                Err(Error::file(path.display().to_string(), message))
            }
            false => Self::read_safetensors(path),
        }
    }

    /// Reads a compressed network.
    pub fn read_compressed(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::reading(path))?;
        Self::from_compressed(&bytes).map_err(|error| error.of_file(path))
    }

    /// The same from the bytes of such a file.
    pub fn from_compressed(bytes: &[u8]) -> Result<Self> {
        let (header, body) = open(bytes)?;
        let design = match (header.architecture, header.graph) {
            (Some(architecture), None) => Design::Known(architecture.checked()?),
            (None, Some(network)) => Design::Graph(network),
            (Some(_), Some(_)) => return Err(Error::Data(format!("tells of two networks: {AGAIN}"))),
            (None, None) => {
                return Err(Error::Data("holds a network that only its maker can run: it names no layers".into()));
            }
        };
        let asked = asked(&design, &header.tensors)?;
        if !unfolds_to_a_fair_size(asked.values(), bytes) {
            return Err(Error::Data(format!("is too small a file for {design}: {AGAIN}")));
        }
        let weights = unfold(header.tensors, &body, |name, shape| match asked.get(name) == Some(shape) {
            true => Ok(()),
            false => Err("is not a parameter of the network, or not of its shape"),
        })?;
        Self::new(design, weights, header.training)
    }

    /// Writes a compressed network, whole or not at all; its size in bytes.
    pub fn write_compressed(&self, path: impl AsRef<Path>) -> Result<u64> {
        let bytes = self.to_compressed()?;
        write_whole(path.as_ref(), |out| out.write_all(&bytes))?;
        Ok(bytes.len() as u64)
    }

    /// The bytes of such a file.
    pub fn to_compressed(&self) -> Result<Vec<u8>> {
        fold(Some(self.design()), self.training(), self.weights())
    }
}

/// The tensors that a network asks for, by name. Those of a graph have the shapes that the file gives them, if all nodes
/// fit these.
fn asked(design: &Design, entries: &[Entry]) -> Result<HashMap<String, Vec<usize>>> {
    let Design::Graph(network) = design else {
        let parameters = design.architecture()?.graph().parameters();
        return Ok(parameters.into_iter().map(|parameter| (parameter.name, parameter.shape)).collect());
    };
    network.check()?;
    let given: HashMap<&str, &[usize]> =
        entries.iter().map(|entry| (entry.name.as_str(), entry.shape.as_slice())).collect();
    network.shapes_by(&|name| given.get(name).copied(), network.input_shape())?;
    let uses = network.uses();
    let taken = given.into_iter().filter(|(name, _)| uses.contains_key(name));
    Ok(taken.map(|(name, shape)| (name.to_owned(), shape.to_vec())).collect())
}

/// Tensors of any network: what PyTorch trained and only PyTorch can run is stored and loaded all the same.
impl Weights {
    /// The tensors of a compressed network, whatever its architecture.
    pub fn from_compressed(bytes: &[u8]) -> Result<Self> {
        let (header, body) = open(bytes)?;
        if !unfolds_to_a_fair_size(header.tensors.iter().map(|entry| &entry.shape), bytes) {
            return Err(Error::Data(format!("is too small a file for what it says it holds: {AGAIN}")));
        }
        unfold(header.tensors, &body, |_, _| Ok(()))
    }

    /// The bytes of a compressed file that names no architecture.
    pub fn to_compressed(&self) -> Result<Vec<u8>> {
        fold(None, &Training::default(), self)
    }
}

/// What a network takes on disk with all its zeros, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DenseSizes {
    /// As safetensors.
    pub bytes: usize,
    /// As safetensors compressed by `zstd -19`.
    pub zstd: usize,
}

impl Model {
    /// What the network takes with all its zeros. It is written and compressed for this.
    pub fn dense_sizes(&self) -> Result<DenseSizes> {
        let dense = self.to_safetensors()?;
        Ok(DenseSizes { bytes: dense.len(), zstd: frame(&dense, BEST)?.len() })
    }
}

const AGAIN: &str = "get the file again, or compress the network again";

/// Whether tensors of these shapes may come out of these bytes.
fn unfolds_to_a_fair_size<'a>(mut shapes: impl Iterator<Item = &'a Vec<usize>>, bytes: &[u8]) -> bool {
    let size = shapes.try_fold(0u64, |sum, shape| {
        let values = u64::try_from(element_count(shape)?).ok()?;
        sum.checked_add(values.checked_mul(4)?)
    });
    size.is_some_and(|size| is_fair_size(size, bytes))
}

fn is_fair_size(size: u64, bytes: &[u8]) -> bool {
    size <= UNFOLDED_BYTES.max((bytes.len() as u64).saturating_mul(UNFOLDED_RATIO))
}

/// Entries and their bytes → tensors. Nothing is allocated for an entry before `check` has seen its name and shape; the
/// sizes of all together were checked before.
fn unfold(
    entries: Vec<Entry>,
    mut body: &[u8],
    mut check: impl FnMut(&str, &Vec<usize>) -> std::result::Result<(), Flaw>,
) -> Result<Weights> {
    let mut weights = Weights::new();
    for entry in entries {
        let wrong = |flaw: Flaw| Error::Data(format!("{} {flaw}: {AGAIN}", entry.name));
        check(&entry.name, &entry.shape).map_err(wrong)?;
        if weights.get(&entry.name).is_some() {
            return Err(wrong("is there twice"));
        }
        let parts = entry.bytes().and_then(|bytes| body.split_at_checked(bytes));
        let (encoded, rest) = parts.ok_or_else(|| wrong("ends beyond the end of the file"))?;
        body = rest;
        let values = entry.decode(encoded).map_err(wrong)?;
        weights.insert(entry.name, Tensor::new(entry.shape, values)?);
    }
    match body.is_empty() {
        true => Ok(weights),
        false => Err(Error::Data(format!("goes on after its last tensor: {AGAIN}"))),
    }
}

/// Tensors → the bytes of a file.
fn fold(design: Option<&Design>, training: &Training, weights: &Weights) -> Result<Vec<u8>> {
    let (architecture, graph) = match design {
        Some(Design::Known(architecture)) => (Some(*architecture), None),
        Some(Design::Graph(network)) => (None, Some(network.clone())),
        None => (None, None),
    };
    let tensors: Vec<(&str, &Tensor)> = weights.iter().collect();
    let coded: Result<Vec<(Entry, Vec<u8>)>> =
        tensors.par_iter().map(|(name, tensor)| Entry::encode(name, tensor)).collect();
    let (entries, bytes): (Vec<Entry>, Vec<Vec<u8>>) = coded?.into_iter().unzip();
    let header = Header { architecture, graph, training: training.clone(), tensors: entries, unfolded: None };
    let each = seal(&header, &bytes.concat())?;
    let all: usize = weights.iter().map(|(_, tensor)| 4 * tensor.len()).sum();
    if all > SMALL {
        return Ok(each);
    }
    let values = weights.iter().flat_map(|(_, tensor)| tensor.data()).flat_map(|value| value.to_le_bytes());
    let body = frame(&values.collect::<Vec<u8>>(), BEST)?;
    let entries = tensors.iter().map(|(name, tensor)| Entry::plain(name, tensor)).collect();
    let together = seal(&Header { tensors: entries, unfolded: Some(all), ..header }, &body)?;
    Ok(if together.len() < each.len() { together } else { each })
}

/// A header and what follows it → the bytes of a file.
fn seal(header: &Header, body: &[u8]) -> Result<Vec<u8>> {
    let header = serde_json::to_vec(header).map_err(|error| Error::Data(error.to_string()))?;
    let too_long = |_| Error::Data("has too long a header".into());
    let full = u32::try_from(header.len()).map_err(too_long)?;
    let packed = frame(&header, BEST)?;
    let (header, full) = if packed.len() < header.len() { (packed, full) } else { (header, 0) };
    let mut check = crc32fast::Hasher::new();
    check.update(&header);
    check.update(body);
    let mut file = Vec::with_capacity(PREFIX + header.len() + body.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&VERSIONS.end().to_le_bytes());
    file.extend_from_slice(&(header.len() as u32).to_le_bytes());
    file.extend_from_slice(&((PREFIX + header.len() + body.len()) as u64).to_le_bytes());
    file.extend_from_slice(&check.finalize().to_le_bytes());
    file.extend_from_slice(&full.to_le_bytes());
    file.extend(header);
    file.extend_from_slice(body);
    Ok(file)
}

/// The header and the tensors that follow it, once the file is known to be whole.
fn open(bytes: &[u8]) -> Result<(Header, Cow<'_, [u8]>)> {
    let wrong = |flaw: Flaw| Error::Data(format!("{flaw}: {AGAIN}"));
    let (header, body) = open_sound(bytes).map_err(wrong)?;
    let Some(unfolded) = header.unfolded else { return Ok((header, Cow::Borrowed(body))) };
    if !is_fair_size(unfolded as u64, bytes) {
        return Err(wrong("is too small a file for what it says it holds"));
    }
    let body = unpack(body, unfolded).map_err(wrong)?;
    Ok((header, body))
}

fn open_sound(bytes: &[u8]) -> std::result::Result<(Header, &[u8]), Flaw> {
    let (prefix, rest) = bytes.split_first_chunk::<PREFIX>().ok_or("is too short for a compressed network")?;
    let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| prefix[at + byte]));
    let length = u64::from_le_bytes(std::array::from_fn(|byte| prefix[16 + byte]));
    if !is_compressed(prefix) {
        return Err("is no compressed network of obprox");
    }
    let version = word(8);
    if !VERSIONS.contains(&version) {
        return Err("is of another version of obprox");
    }
    if length != bytes.len() as u64 {
        return Err("has another length than it says");
    }
    let full = word(28) as usize;
    if word(24) != crc32fast::hash(rest) || version < PACKED_HEADERS && full != 0 {
        return Err("is corrupt (its checksum does not agree)");
    }
    let (stored, body) = rest.split_at_checked(word(12) as usize).ok_or("has a header beyond its end")?;
    if full > HEADER_RATIO * stored.len() {
        return Err("has a header that is too long");
    }
    let header = if full > 0 { unpack(stored, full)? } else { Cow::Borrowed(stored) };
    let header = serde_json::from_slice(&header).map_err(|_| "has a header that is not one")?;
    Ok((header, body))
}
