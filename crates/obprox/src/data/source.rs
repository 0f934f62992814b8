//! A path or standard input → a stream of plain bytes, whatever it was compressed with.

use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::ops::Range;
use std::path::Path;

use memchr::{memchr, memchr_iter, memrchr};
use rayon::prelude::*;

use crate::{Error, Result};

/// What a caller writes for standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// Enough of the text to tell its format: many lines, or much of one.
const HEAD: usize = 64 << 10;

/// A line that is longer is no row: a text without line ends, or an archive that unpacks to a thousand times its size.
pub(super) const LONGEST_LINE: usize = 512 << 20;

/// The error for a line of more than that.
pub(super) fn too_long(name: &str, line: u64) -> Error {
    Error::Parse {
        file: name.into(),
        line,
        column: LONGEST_LINE as u64,
        message: format!("the line goes on after {} MiB: write a row a line", LONGEST_LINE >> 20),
    }
}

/// The memory that an xz stream may ask for; `xz -9` asks for 65 MB, a hostile header for 4 GB.
const XZ_MEMORY: u64 = 1 << 30;

/// An open file or pipe, decompressed on the way.
pub(super) struct Source {
    /// The name to use in messages.
    pub name: String,
    compression: Option<Compression>,
    head: Cursor<Vec<u8>>,
    rest: Box<dyn Read + Send>,
    file: Option<PlainFile>,
}

/// A file whose bytes are the text: any part of it can be read at any time.
struct PlainFile {
    file: File,
    len: u64,
    /// Where the next byte is.
    at: u64,
}

/// The compressions known, told by a file's first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Compression {
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

impl Source {
    /// Opens a path of text; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::open_binary(path)?.without_mark())
    }

    /// Takes a stream of text; compression is told by content.
    pub fn new(name: impl Into<String>, stream: impl Read + Send + 'static) -> Result<Self> {
        Ok(Self::binary(name, stream)?.without_mark())
    }

    /// Opens a path of bytes that mean nothing to us; `-` is standard input.
    pub fn open_binary(path: &Path) -> Result<Self> {
        if path.as_os_str() == STANDARD_INPUT {
            return Self::binary("standard input", io::stdin());
        }
        let file = File::open(path).map_err(Error::reading(path))?;
        let name = path.display().to_string();
        let metadata = file.metadata().map_err(Error::reading(path))?;
        if metadata.is_dir() {
            return Err(Error::file(name, "is a directory: give a file in it"));
        }
        let again = if cfg!(unix) && metadata.is_file() { file.try_clone().ok() } else { None };
        let mut source = Self::binary(name, file)?;
        source.file = again.filter(|_| source.is_plain()).map(|file| PlainFile { file, len: metadata.len(), at: 0 });
        Ok(source)
    }

    fn binary(name: impl Into<String>, mut stream: impl Read + Send + 'static) -> Result<Self> {
        let name = name.into();
        let head = read_up_to(&mut stream, 16).map_err(|error| failure(&name, None, error))?;
        if let Some(archive) = foreign_format(&head) {
            return Err(Error::file(name, archive));
        }
        let compression = Compression::of(&head);
        let whole = Cursor::new(head).chain(stream);
        let mut rest = match compression {
            None => Box::new(whole),
            Some(compression) => {
                compression.decoder(whole).map_err(|error| failure(&name, Some(compression), error))?
            }
        };
        let head = read_up_to(&mut rest, HEAD).map_err(|error| failure(&name, compression, error))?;
        if head.is_empty() {
            return Err(Error::file(name, "is empty: it has no rows"));
        }
        Ok(Self { name, compression, head: Cursor::new(head), rest, file: None })
    }

    /// The byte order mark that some editors put before text is none of it.
    fn without_mark(mut self) -> Self {
        if self.head().starts_with("\u{feff}".as_bytes()) {
            self.head.get_mut().drain(.."\u{feff}".len());
            self.file.iter_mut().for_each(|file| file.at += "\u{feff}".len() as u64);
        }
        self
    }

    /// The first bytes, which stay in the stream.
    pub fn head(&self) -> &[u8] {
        self.head.get_ref()
    }

    /// The first line that is not blank, as a range of the head, with its line end.
    pub fn first_line(&mut self) -> Result<Range<usize>> {
        loop {
            let head = self.head.get_ref();
            let blanks = head.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let start = memrchr(b'\n', &head[..blanks]).map_or(0, |last| last + 1);
            if let Some(end) = memchr(b'\n', &head[blanks..]) {
                return Ok(start..blanks + end + 1);
            }
            if head.len() >= LONGEST_LINE {
                return Err(too_long(&self.name, memchr_iter(b'\n', &head[..start]).count() as u64 + 1));
            }
            let more = read_up_to(&mut self.rest, head.len().max(HEAD))
                .map_err(|error| failure(&self.name, self.compression, error))?;
            if more.is_empty() {
                return Ok(start..self.head().len());
            }
            self.head.get_mut().extend_from_slice(&more);
        }
    }

    /// Takes the first bytes off the stream.
    pub fn skip(&mut self, bytes: usize) {
        self.head.set_position(bytes as u64);
        self.file.iter_mut().for_each(|file| file.at += bytes as u64);
    }

    /// The bytes that are left, where the file tells.
    pub fn left(&self) -> Option<u64> {
        self.file.as_ref().map(|file| file.len.saturating_sub(file.at))
    }

    /// Whether the bytes on disk are the bytes of the stream.
    pub fn is_plain(&self) -> bool {
        self.compression.is_none()
    }

    /// Reads until the buffer is full or the stream ends; the count of bytes read.
    pub fn fill(&mut self, buffer: &mut [u8]) -> (usize, Result<()>) {
        if let Some(file) = &mut self.file {
            let (filled, outcome) = file.fill(buffer);
            return (filled, outcome.map_err(|error| failure(&self.name, None, error)));
        }
        let mut filled = 0;
        let mut stream = (&mut self.head).chain(&mut self.rest);
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (filled, Err(failure(&self.name, self.compression, error))),
            }
        }
        (filled, Ok(()))
    }
}

impl Source {
    /// All bytes that are left.
    #[cfg(feature = "parquet")]
    pub fn into_bytes(mut self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let outcome = (&mut self.head).chain(&mut self.rest).read_to_end(&mut bytes);
        outcome.map_err(|error| failure(&self.name, self.compression, error))?;
        Ok(bytes)
    }
}

impl PlainFile {
    /// Reads until the buffer is full or the file ends, on all threads.
    fn fill(&mut self, buffer: &mut [u8]) -> (usize, io::Result<()>) {
        const PIECE: usize = 1 << 18;
        let read = |(piece, part): (usize, &mut [u8])| {
            let mut filled = 0;
            while filled < part.len() {
                match read_at(&self.file, &mut part[filled..], self.at + (piece * PIECE + filled) as u64) {
                    Ok(0) => break,
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return (filled, Err(error)),
                }
            }
            (filled, Ok(()))
        };
        let pieces: Vec<_> = buffer.par_chunks_mut(PIECE).enumerate().map(read).collect();
        let (mut filled, mut outcome) = (0, Ok(()));
        for (read, result) in pieces {
            filled += read;
            outcome = result;
            // What lies behind a piece that ended early is behind the end.
            if outcome.is_err() || read < PIECE {
                break;
            }
        }
        self.at += filled as u64;
        (filled, outcome)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, at)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    unreachable!("files are read as streams here")
}

/// All bytes of a file that is not text, such as images: decompressed like a data file, `-` is standard input. Refuses
/// what decompresses to more than `most` bytes, and takes no memory for what it refuses beyond that.
pub fn read_bytes(path: impl AsRef<Path>, most: u64) -> Result<Vec<u8>> {
    let mut source = Source::open_binary(path.as_ref())?;
    let mut bytes = Vec::new();
    let stream = (&mut source.head).chain(&mut source.rest);
    let outcome = stream.take(most.saturating_add(1)).read_to_end(&mut bytes);
    outcome.map_err(|error| failure(&source.name, source.compression, error))?;
    match bytes.len() as u64 > most {
        true => Err(Error::file(source.name, format!("holds more than {most} bytes: it is not what it should be"))),
        false => Ok(bytes),
    }
}

type Whole<R> = Chain<Cursor<Vec<u8>>, R>;

impl Compression {
    fn of(head: &[u8]) -> Option<Self> {
        let magics: [(&[u8], Self); 4] = [
            (b"\x1f\x8b", Self::Gzip),
            (b"BZh", Self::Bzip2),
            (b"\xfd7zXZ\0", Self::Xz),
            (b"\x28\xb5\x2f\xfd", Self::Zstd),
        ];
        magics.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, compression)| compression)
    }

    /// Decoders that go on through every member, stream or frame of the file: concatenating compressed files is a
    /// common way to append to them.
    fn decoder<R: Read + Send + 'static>(self, whole: Whole<R>) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(BufReader::new(whole))),
            Self::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(BufReader::new(whole))),
            Self::Xz => {
                let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, liblzma::stream::CONCATENATED)?;
                Box::new(liblzma::bufread::XzDecoder::new_stream(BufReader::new(whole), stream))
            }
            Self::Zstd => Box::new(zstd::Decoder::new(whole)?),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }
}

/// What to do about a file that is certainly no text of ours.
fn foreign_format(head: &[u8]) -> Option<&'static str> {
    let magics: [(&[u8], &str); 4] = [
        (b"PK\x03\x04", "is a zip archive: unpack it and give the file inside"),
        (b"FEA1", "is a Feather file of the first version: write it again, as version 2"),
        (b"7z\xbc\xaf\x27\x1c", "is a 7-Zip archive: unpack it and give the file inside"),
        (b"\x89HDF", "is an HDF5 file: convert it to CSV or LIBSVM text first"),
    ];
    magics.into_iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, advice)| advice)
}

fn read_up_to(stream: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    stream.take(most as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// A decoder's complaint is about the file; one that carries a system's error number is the system's.
fn failure(name: &str, compression: Option<Compression>, error: io::Error) -> Error {
    match compression {
        Some(compression) if error.raw_os_error().is_none() => {
            let state = if error.kind() == io::ErrorKind::UnexpectedEof { "truncated" } else { "corrupt" };
            Error::file(name, format!("the {} data is {state} ({error}): get the file again", compression.name()))
        }
        _ => Error::Io { path: name.into(), action: "cannot read", source: error },
    }
}
