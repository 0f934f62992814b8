//! A stream of text → blocks of whole lines, parsed in parallel while the next block is being read.
//!
//! Memory is two blocks of text and what was parsed from two, however large the file. What is cut where depends
//! on block size and thread count; the result does not, since parts are handed over in the order of the file.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use memchr::{memchr, memchr_iter, memrchr};
use rayon::prelude::*;

use super::source::Source;
use crate::{Error, Result};

/// Below this a piece of text is not worth handing to another thread.
const SMALLEST_PIECE: usize = 64 << 10;

/// What a parser finds wrong with its piece of text.
#[derive(Debug)]
pub(super) struct Flaw {
    /// Line within the piece, counted from 0.
    pub line: u64,
    /// Byte within the line, counted from 0.
    pub column: usize,
    /// What is wrong and what to do about it.
    pub message: String,
}

/// Parses a stream piece by piece; every piece is made of whole lines, each with its line end. `take` receives the
/// parts in order. The error is the first in the order of the file. `lines_before` lines were taken off already.
pub(super) fn parse_lines<P: Send>(
    source: Source,
    block_size: usize,
    lines_before: u64,
    parse: impl Fn(&[u8]) -> std::result::Result<P, Flaw> + Sync,
    mut take: impl FnMut(P) + Send,
) -> Result<()> {
    let name = source.name.clone();
    let mut lines = lines_before;
    let mut parts: Vec<P> = Vec::new();
    let mut blocks = Blocks::read(source, block_size.max(1));
    while let Some(block) = blocks.next() {
        let text = block?;
        let pieces = cut(text);
        let parse_all = || pieces.par_iter().map(|piece| parse(&text[piece.clone()])).collect::<Vec<_>>();
        // Taking the last block's parts is serial work, mostly of the memory: worth doing beside the parsing.
        let (parsed, ()) = rayon::join(parse_all, || parts.drain(..).for_each(&mut take));
        for (piece, part) in pieces.iter().zip(parsed) {
            parts.push(part.map_err(|flaw| Error::Parse {
                file: name.clone(),
                line: lines + count_lines(&text[..piece.start]) + flaw.line + 1,
                column: flaw.column as u64 + 1,
                message: flaw.message,
            })?);
        }
        lines += count_lines(text);
    }
    parts.into_iter().for_each(take);
    Ok(())
}

fn count_lines(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}

/// A few pieces a thread, so that an uneven one does not hold up the rest.
fn cut(text: &[u8]) -> Vec<Range<usize>> {
    let size = text.len().div_ceil(4 * rayon::current_num_threads()).max(SMALLEST_PIECE);
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let least = (start + size).min(text.len()) - 1;
        let end = memchr(b'\n', &text[least..]).map_or(text.len(), |found| least + found + 1);
        pieces.push(start..end);
        start = end;
    }
    pieces
}

/// A buffer and how much of it is whole lines.
struct Block {
    buffer: Vec<u8>,
    len: usize,
}

/// Two buffers go round between the reading thread and the parser.
struct Blocks {
    full: Receiver<Result<Block>>,
    empty: SyncSender<Vec<u8>>,
    current: Option<Block>,
    // Only looked at when the channel closes, to tell the end of the file from a failed thread. Never waited for
    // otherwise: after a parse error it may hang in a read from a terminal.
    reader: Option<thread::JoinHandle<()>>,
}

impl Blocks {
    fn read(source: Source, size: usize) -> Self {
        let (full_in, full) = sync_channel(1);
        let (empty, empty_out) = sync_channel(2);
        for _ in 0..2 {
            // Zeroed pages cost memory only once they are written to, so a small file stays small.
            let _ = empty.send(vec![0; size]);
        }
        let reader = thread::spawn(move || fill_blocks(source, &empty_out, &full_in));
        Self { full, empty, current: None, reader: Some(reader) }
    }

    /// The next block's text; the one before goes back to the reader.
    fn next(&mut self) -> Option<Result<&[u8]>> {
        if let Some(block) = self.current.take() {
            // Refused once the reader is done.
            let _ = self.empty.send(block.buffer);
        }
        match self.full.recv() {
            Ok(Ok(block)) => {
                let block = self.current.insert(block);
                Some(Ok(&block.buffer[..block.len]))
            }
            Ok(Err(error)) => Some(Err(error)),
            Err(_) => {
                if let Some(Err(panic)) = self.reader.take().map(thread::JoinHandle::join) {
                    std::panic::resume_unwind(panic);
                }
                None
            }
        }
    }
}

/// The reading thread: ends with the stream, or when the parser has gone.
fn fill_blocks(mut source: Source, empty: &Receiver<Vec<u8>>, full: &SyncSender<Result<Block>>) {
    let mut carried = Vec::new();
    while let Ok(mut buffer) = empty.recv() {
        let mut filled = carried.len();
        buffer.resize(buffer.len().max(filled + 1), 0);
        buffer[..filled].copy_from_slice(&carried);
        loop {
            let (read, outcome) = source.fill(&mut buffer[filled..]);
            let searched = filled;
            filled += read;
            if let Err(error) = outcome {
                // Lines before the failure count: an error in one of them is the first in the file.
                let len = memrchr(b'\n', &buffer[..filled]).map_or(0, |last| last + 1);
                let _ = full.send(Ok(Block { buffer, len })).and_then(|()| full.send(Err(error)));
                return;
            }
            if filled < buffer.len() {
                // The end. The last line may lack its line end.
                if filled > 0 && buffer[filled - 1] != b'\n' {
                    buffer[filled] = b'\n';
                    filled += 1;
                }
                let _ = full.send(Ok(Block { buffer, len: filled }));
                return;
            }
            if let Some(last) = memrchr(b'\n', &buffer[searched..]) {
                let len = searched + last + 1;
                carried.clear();
                carried.extend_from_slice(&buffer[len..]);
                if full.send(Ok(Block { buffer, len })).is_err() {
                    return;
                }
                break;
            }
            // One line fills the whole buffer.
            buffer.resize(2 * buffer.len(), 0);
        }
    }
}
