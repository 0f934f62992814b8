//! The container of safetensors: the length of a header, the header as JSON, the values of all tensors one after another.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the header says of a tensor.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

/// A tensor in a file.
pub struct Stored<'a> {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<usize>,
    pub bytes: &'a [u8],
}

/// A file: its tensors as they lie, and words about them.
pub struct File<'a> {
    pub tensors: Vec<Stored<'a>>,
    pub metadata: BTreeMap<String, String>,
}

const METADATA: &str = "__metadata__";
/// The header begins after its length.
const LENGTH: usize = 8;
/// The values begin where every type is aligned.
const ALIGNMENT: usize = 8;

impl<'a> File<'a> {
    /// Takes a file apart; or says what is wrong with it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<LENGTH>().ok_or("it ends within the length of its header")?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok().filter(|&length| length <= rest.len());
        let (header, values) = rest.split_at(length.ok_or("it ends within its header")?);
        let mut entries: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(header).map_err(|error| format!("its header: {error}"))?;
        let metadata = match entries.remove(METADATA) {
            Some(words) => serde_json::from_value(words).map_err(|error| format!("its metadata: {error}"))?,
            None => BTreeMap::new(),
        };
        let mut tensors = Vec::new();
        for (name, entry) in entries {
            let entry: Entry = serde_json::from_value(entry).map_err(|error| format!("{name}: {error}"))?;
            tensors.push((name, entry));
        }
        tensors.sort_by_key(|(_, entry)| entry.data_offsets);
        let mut end = 0;
        let mut stored = Vec::new();
        for (name, Entry { dtype, shape, data_offsets: (from, to) }) in tensors {
            // Neither gaps nor tensors that share values.
            let bytes = values.get(from..to).filter(|_| from == end);
            let bytes = bytes.ok_or_else(|| format!("the values of {name} are not where they should be"))?;
            end = to;
            stored.push(Stored { name, dtype, shape, bytes });
        }
        match end == values.len() {
            true => Ok(Self { tensors: stored, metadata }),
            false => Err(format!("its tensors take {end} bytes, and it has {}", values.len())),
        }
    }
}

/// A file of tensors of f32 and some words, in the order of their names.
pub fn write(metadata: &BTreeMap<String, String>, tensors: &BTreeMap<&str, (&[usize], &[f32])>) -> Vec<u8> {
    let mut header = format!("{{{}:{}", json(&METADATA), json(metadata));
    let mut end = 0;
    for (name, (shape, values)) in tensors {
        let data_offsets = (end, end + 4 * values.len());
        end = data_offsets.1;
        let entry = Entry { dtype: "F32".into(), shape: shape.to_vec(), data_offsets };
        header += &format!(",{}:{}", json(name), json(&entry));
    }
    header.push('}');
    header += &" ".repeat(header.len().next_multiple_of(ALIGNMENT) - header.len());
    let mut bytes = Vec::with_capacity(LENGTH + header.len() + end);
    bytes.extend((header.len() as u64).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(tensors.values().flat_map(|(_, values)| values.iter()).flat_map(|value| value.to_le_bytes()));
    bytes
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers are JSON")
}
