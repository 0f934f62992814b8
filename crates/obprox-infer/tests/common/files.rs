//! Compressed files taken apart and put together.

use serde_json::Value;

/// A file of the present version whose length and checksum agree, whatever is in it.
pub fn sealed(header: &[u8], body: &[u8]) -> Vec<u8> {
    sealed_as(3, header, body)
}

/// The same of any version.
pub fn sealed_as(version: u8, header: &[u8], body: &[u8]) -> Vec<u8> {
    let rest = [header, body].concat();
    let mut file = [&b"OBZNET\x1a\n"[..], &[version, 0, 0, 0]].concat();
    file.extend((header.len() as u32).to_le_bytes());
    file.extend((32 + rest.len() as u64).to_le_bytes());
    file.extend(crc32fast::hash(&rest).to_le_bytes());
    file.extend([0; 4]);
    file.extend(rest);
    file
}

/// The header and the tensors of a file.
pub fn opened(file: &[u8]) -> (Value, Vec<u8>) {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (header, body) = file[32..].split_at(word(12));
    let plain = if word(28) > 0 { zstd::bulk::decompress(header, word(28)).unwrap() } else { header.to_vec() };
    (serde_json::from_slice(&plain).unwrap(), body.to_vec())
}
