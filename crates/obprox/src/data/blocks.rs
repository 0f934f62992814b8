//! A stream of text → blocks of whole lines, to be parsed in parallel.
//!
//! A plain file is read by the threads that parse it. Pipes and compressed files are read by a thread of their own, a
//! block ahead. Memory is two blocks of text, however large the file, or a line where that is longer. What is cut where depends on block size and thread
//! count; the result does not, since parts are handed over in the order of the file.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use memchr::{memchr, memchr_iter, memrchr};

use super::sheet::Halt;
use super::source::{LONGEST_LINE, Source, too_long};
use crate::huge::Huge;
use crate::memory;
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

fn count_lines(text: &[u8]) -> u64 {
    memchr_iter(b'\n', text).count() as u64
}

/// A few pieces a thread, so that an uneven one does not hold up the rest.
pub(super) fn cut(text: &[u8]) -> Vec<Range<usize>> {
    let size = text.len().div_ceil(8 * rayon::current_num_threads()).max(SMALLEST_PIECE);
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
    buffer: Huge<u8>,
    len: usize,
}

/// The blocks of a stream, one after the other.
pub(super) struct Blocks {
    name: String,
    feed: Feed,
    current: Option<Block>,
    /// Lines before the current block.
    lines: u64,
    /// Bytes up to the end of the current block, and in all where that is known.
    taken: u64,
    total: Option<u64>,
}

/// Where blocks come from.
enum Feed {
    /// Reads itself. The buffer is in turn here and with the current block.
    Here { filling: Filling, buffer: Option<Huge<u8>> },
    /// Two buffers go round between the reading thread and the parser.
    Thread {
        full: Receiver<Result<Block>>,
        empty: SyncSender<Huge<u8>>,
        // Only looked at when the channel closes, to tell the end of the file from a failed thread. Never waited for
        // otherwise: after a parse error it may hang in a read from a terminal.
        reader: Option<thread::JoinHandle<()>>,
    },
}

impl Blocks {
    /// Blocks of about that many bytes.
    pub fn of(source: Source, size: usize, lines_before: u64) -> Self {
        let (name, total, size) = (source.name.clone(), source.left(), size.max(1));
        let filling = Filling { source, carried: Vec::new(), ended: None };
        let feed = match total {
            Some(left) => {
                // One byte more than there is shows the end at once.
                let size = usize::try_from(left + 1).unwrap_or(size).min(size);
                Feed::Here { filling, buffer: Some(Huge::zeros(size)) }
            }
            None => {
                let (full_in, full) = sync_channel(1);
                let (empty, empty_out) = sync_channel(2);
                for _ in 0..2 {
                    let _ = empty.send(Huge::zeros(size));
                }
                // Lent to the thread, so that it is still here where there is none.
                let lent = Arc::new(Mutex::new(Some(filling)));
                let borrowed = Arc::clone(&lent);
                let read = move || {
                    let filling = borrowed.lock().ok().and_then(|mut filling| filling.take());
                    filling.into_iter().for_each(|filling| fill_blocks(filling, &empty_out, &full_in));
                };
                match thread::Builder::new().spawn(read) {
                    Ok(reader) => Feed::Thread { full, empty, reader: Some(reader) },
                    Err(_) => {
                        let filling = lent.lock().ok().and_then(|mut filling| filling.take());
                        Feed::Here { filling: filling.expect("no thread took it"), buffer: Some(Huge::zeros(size)) }
                    }
                }
            }
        };
        Self { name, feed, current: None, lines: lines_before, taken: 0, total }
    }

    /// Goes on to the next block; false at the end.
    pub fn advance(&mut self) -> Result<bool> {
        self.lines += count_lines(self.text());
        let last = self.current.take();
        let block = match &mut self.feed {
            Feed::Here { filling, buffer } => {
                let mut buffer = last.map(|block| block.buffer).or(buffer.take()).unwrap_or_default();
                match filling.next(&mut buffer) {
                    Some(len) => Block { len: len.map_err(|error| of_line(error, self.lines))?, buffer },
                    None => return Ok(false),
                }
            }
            Feed::Thread { full, empty, reader } => {
                if let Some(block) = last {
                    // Refused once the reader is done.
                    let _ = empty.send(block.buffer);
                }
                match full.recv() {
                    Ok(block) => block.map_err(|error| of_line(error, self.lines))?,
                    Err(_) => {
                        if let Some(Err(panic)) = reader.take().map(thread::JoinHandle::join) {
                            std::panic::resume_unwind(panic);
                        }
                        return Ok(false);
                    }
                }
            }
        };
        self.taken += block.len as u64;
        self.current = Some(block);
        Ok(true)
    }

    /// The text of the block.
    pub fn text(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |block| &block.buffer[..block.len])
    }

    /// How many times as much there is as was taken so far: known of files, 1 of streams.
    pub fn times_as_much(&self) -> f64 {
        self.total.map_or(1.0, |total| total as f64 / self.taken.max(1) as f64).max(1.0)
    }

    /// The error for what stopped the parsing of the current block, which was cut into these pieces.
    pub fn halted(&self, pieces: &[Range<usize>], halt: Halt<Flaw>) -> Error {
        match halt {
            Halt::Flaw(piece, flaw) => self.error(pieces[piece].start, flaw),
            Halt::Short(error) => error.of_file(self.name.as_ref()),
        }
    }

    /// The error for a flaw in the piece of the current block that starts at `start`.
    pub fn error(&self, start: usize, flaw: Flaw) -> Error {
        let before = count_lines(&self.text()[..start]);
        Error::Parse {
            file: self.name.clone(),
            line: self.lines + before + flaw.line + 1,
            column: flaw.column as u64 + 1,
            message: flaw.message,
        }
    }
}

/// A stream on its way into blocks.
struct Filling {
    source: Source,
    /// The start of a line that did not fit the block before.
    carried: Vec<u8>,
    /// Whether the stream is through, and how it ended.
    ended: Option<Result<()>>,
}

impl Filling {
    /// Fills the buffer with whole lines, and says how many bytes; nothing after the end.
    fn next(&mut self, buffer: &mut Huge<u8>) -> Option<Result<usize>> {
        if let Some(outcome) = &mut self.ended {
            // A failure is told once.
            return std::mem::replace(outcome, Ok(())).err().map(Err);
        }
        let mut filled = self.carried.len();
        buffer.grow(filled + 1);
        buffer[..filled].copy_from_slice(&self.carried);
        loop {
            let (read, outcome) = self.source.fill(&mut buffer[filled..]);
            let searched = filled;
            filled += read;
            if outcome.is_err() {
                // Lines before the failure count: an error in one of them is the first in the file.
                self.ended = Some(outcome);
                return Some(Ok(memrchr(b'\n', &buffer[..filled]).map_or(0, |last| last + 1)));
            }
            if filled < buffer.len() {
                // The end. The last line may lack its line end.
                self.ended = Some(Ok(()));
                if filled > 0 && buffer[filled - 1] != b'\n' {
                    buffer[filled] = b'\n';
                    filled += 1;
                }
                return Some(Ok(filled));
            }
            if let Some(last) = memrchr(b'\n', &buffer[searched..]) {
                let len = searched + last + 1;
                self.carried.clear();
                self.carried.extend_from_slice(&buffer[len..]);
                return Some(Ok(len));
            }
            // One line fills the whole buffer.
            if buffer.len() >= LONGEST_LINE {
                self.ended = Some(Ok(()));
                return Some(Err(too_long(&self.source.name, 1)));
            }
            let longer = (2 * buffer.len()).min(LONGEST_LINE);
            if let Err(error) = memory::check(longer as u128, || format!("a line of {} bytes", buffer.len())) {
                self.ended = Some(Ok(()));
                return Some(Err(error.of_file(self.source.name.as_ref())));
            }
            buffer.grow(longer);
        }
    }
}

/// A stream that finds fault with a line counts from its block.
fn of_line(error: Error, lines_before: u64) -> Error {
    match error {
        Error::Parse { file, line, column, message } => {
            Error::Parse { file, line: line + lines_before, column, message }
        }
        other => other,
    }
}

/// The reading thread: ends with the stream, or when the parser has gone.
fn fill_blocks(mut filling: Filling, empty: &Receiver<Huge<u8>>, full: &SyncSender<Result<Block>>) {
    while let Ok(mut buffer) = empty.recv() {
        let Some(next) = filling.next(&mut buffer) else { return };
        if full.send(next.map(|len| Block { buffer, len })).is_err() {
            return;
        }
    }
}
