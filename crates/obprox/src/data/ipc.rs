//! Arrow's own format, as a file (Feather) or as a stream: messages, each a small description and a body of buffers.
//!
//! Before the decoder has its turn every message is looked at: it takes memory for what a compressed buffer says it unpacks
//! to, so that has to be possible.

use std::io::Cursor;

use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::{Block, CompressionType, Message, RecordBatch, root_as_footer, root_as_message};

use super::ReadOptions;
use super::read::ARROW_FILE;
use super::source::Source;
use super::table::Table;
use super::table::arrow::Plan;
use crate::{Error, Result, memory};

/// What comes before a message in newer versions.
const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The end of a file: the length of its footer, and the first bytes again.
const TAIL: usize = 4 + ARROW_FILE.len();

/// What is wrong with a file.
type Flaw = String;

/// A message and its body.
type Part<'a> = (Message<'a>, &'a [u8]);

/// Reads a whole file or stream.
pub(super) fn read(source: Source, options: &ReadOptions) -> Result<Table> {
    let name = source.name.clone();
    let is_file = source.head().starts_with(ARROW_FILE);
    let bytes = source.into_bytes()?;
    let damaged = |error: &dyn std::fmt::Display| {
        let error = error.to_string();
        let line = error.lines().next().unwrap_or_default();
        Error::file(&name, format!("is no sound Arrow file ({line}): get the file again"))
    };
    let parts = if is_file { parts_of_file(&bytes) } else { parts_of_stream(&bytes) };
    let unpacked = parts.and_then(|parts| unpacked_size(&parts)).map_err(|flaw| damaged(&flaw))?;
    memory::check(unpacked, || format!("{name}: unpacked"))?;
    let bytes = Cursor::new(bytes);
    if is_file {
        let reader = FileReader::try_new(bytes, None).map_err(|error| damaged(&error))?;
        return Plan::of(&name, &reader.schema(), options)?.read(reader);
    }
    let reader = StreamReader::try_new(bytes, None).map_err(|error| damaged(&error))?;
    Plan::of(&name, &reader.schema(), options)?.read(reader)
}

/// The messages of a file that its footer lists.
fn parts_of_file(bytes: &[u8]) -> std::result::Result<Vec<Part<'_>>, Flaw> {
    let tail = bytes.len().checked_sub(TAIL).ok_or("it breaks off")?;
    let len = number(bytes, tail).ok_or("it breaks off")? as usize;
    let start = tail.checked_sub(len).ok_or("the footer is longer than the file")?;
    let footer = root_as_footer(&bytes[start..tail]).map_err(|error| error.to_string())?;
    let blocks = footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
    let part = |block: &Block| {
        let at = usize::try_from(block.offset()).map_err(|_| "a block lies before the file")?;
        let end = at.saturating_add(usize::try_from(block.metaDataLength()).map_err(|_| "a block has no length")?);
        let body = end.saturating_add(usize::try_from(block.bodyLength()).map_err(|_| "a block has no length")?);
        let (message, body) =
            (bytes.get(at..end).ok_or("it breaks off")?, bytes.get(end..body).ok_or("it breaks off")?);
        let skipped = 4 + if message.starts_with(&CONTINUATION) { 4 } else { 0 };
        let message = message.get(skipped..).ok_or("a message is empty")?;
        Ok((root_as_message(message).map_err(|error| error.to_string())?, body))
    };
    blocks.map(part).collect()
}

/// The messages of a stream, one after the other.
fn parts_of_stream(bytes: &[u8]) -> std::result::Result<Vec<Part<'_>>, Flaw> {
    let (mut at, mut parts) = (0, Vec::new());
    loop {
        at += if bytes[at..].starts_with(&CONTINUATION) { 4 } else { 0 };
        let Some(len) = number(bytes, at).filter(|&len| len > 0) else { return Ok(parts) };
        let (start, end) = (at + 4, (at + 4).saturating_add(len as usize));
        let message = bytes.get(start..end).ok_or("it breaks off")?;
        let message = root_as_message(message).map_err(|error| error.to_string())?;
        at = end.saturating_add(usize::try_from(message.bodyLength()).map_err(|_| "a message has no length")?);
        parts.push((message, bytes.get(end..at).ok_or("it breaks off")?));
    }
}

/// Bytes of all compressed buffers once they are unpacked, as far as that can be.
fn unpacked_size(parts: &[Part]) -> std::result::Result<u128, Flaw> {
    let mut size = 0;
    for (message, body) in parts {
        size += batch_of(message).map_or(Ok(0), |batch| unpacked_batch(&batch, body))?;
    }
    Ok(size)
}

/// A number of four bytes, where they are there.
fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn batch_of<'a>(message: &Message<'a>) -> Option<RecordBatch<'a>> {
    let of_dictionary = || message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    message.header_as_record_batch().or_else(of_dictionary)
}

fn unpacked_batch(batch: &RecordBatch, body: &[u8]) -> std::result::Result<u128, Flaw> {
    let Some(compression) = batch.compression() else { return Ok(0) };
    // The most that these can make of a byte.
    let most = if compression.codec() == CompressionType::LZ4_FRAME { 256 } else { 1 << 16 };
    let mut size = 0;
    for buffer in batch.buffers().into_iter().flatten() {
        let (offset, length) = (buffer.offset() as usize, buffer.length() as usize);
        let Some(packed) = body.get(offset..offset.saturating_add(length)) else {
            return Err("a buffer lies outside of its message".into());
        };
        let Some((declared, packed)) = packed.split_first_chunk() else { continue };
        // −1 says that the rest is as it is.
        let declared = i64::from_le_bytes(*declared).max(0) as u128;
        if declared > most * (packed.len() as u128 + 1) {
            return Err(format!("a buffer of {} bytes cannot unpack to {declared}", packed.len()));
        }
        size += declared;
    }
    Ok(size)
}
