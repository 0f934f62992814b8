//! The binary version of CIFAR-10: records of a label and 3 × 32 × 32 bytes.

use obprox::{Error, Result};

use super::Images;

const SIDE: usize = 32;
const CHANNELS: usize = 3;
const RECORD: usize = 1 + CHANNELS * SIDE * SIDE;

/// The classes of CIFAR-10, in the order of its labels.
pub const CIFAR10_LABELS: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

pub fn parse(name: &str, bytes: &[u8]) -> Result<Images> {
    let records = bytes.chunks_exact(RECORD);
    let (whole, rest) = (bytes.len() / RECORD, records.remainder().len());
    if whole == 0 || rest != 0 {
        let message = match whole {
            0 => "byte 0: is no PNG, JPEG, idx or CIFAR-10 file".to_owned(),
            _ => format!(
                "byte {}: after {whole} records of CIFAR-10 come {rest} bytes where a record has {RECORD}: it is \
                 truncated, or no PNG, JPEG, idx or CIFAR-10 file",
                whole * RECORD
            ),
        };
        return Err(Error::file(name, message));
    }
    let mut labels = Vec::with_capacity(whole);
    let mut pixels = Vec::with_capacity(whole * (RECORD - 1));
    for (index, record) in records.enumerate() {
        let label = record[0];
        if usize::from(label) >= CIFAR10_LABELS.len() {
            let at = index * RECORD;
            return Err(Error::file(name, format!("byte {at}: {label} is no label of CIFAR-10: they go from 0 to 9")));
        }
        labels.push(label.into());
        pixels.extend_from_slice(&record[1..]);
    }
    Images::new([CHANNELS, SIDE, SIDE], pixels, Some(labels))
}
