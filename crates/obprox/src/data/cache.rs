//! The binary cache of a data set (`.obx`): opened by memory map, so that it costs a check instead of a parse.
//!
//! All numbers are little-endian. A header of 64 bytes is followed by six sections, each starting at the next multiple
//! of 64 bytes, gaps zero; the file ends where the last section ends.
//!
//! | byte | header |
//! |---|---|
//! | 0 | magic: `OBPROX\x1a\n` |
//! | 8 | u32 version: 2 |
//! | 12 | u32 storage: 0 ones, 1 f32, 2 f64, 3 dense f32, 4 dense f64 |
//! | 16 | u64 rows N |
//! | 24 | u64 columns n |
//! | 32 | u64 stored entries z |
//! | 40 | u64 bytes of names, 0 where there are none |
//! | 48 | u64 zero |
//! | 56 | u64 checksum of the 56 bytes before: FNV-1a |
//!
//! | section | sparse | dense |
//! |---|---|---|
//! | targets | N × f64 | N × f64 |
//! | offsets | (N + 1) × u64 | none |
//! | indices | z × u32 | none |
//! | values | z × f32 or f64; ones: none | z = N·n × f32 or f64 |
//! | names | JSON array of n strings | the same |
//! | sums | u32 a block: the CRC-32 of each MiB before this section | the same |
//!
//! The sums are taken while the file is written, compared with what the disk holds before the file gets its name, and
//! compared again whenever it is opened, on all threads: `benches/README.md` has the time. They are against accidents.
//! Against a forger everything else is checked too: sizes against the file, offsets, indices, values.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

use rayon::prelude::*;

use super::import::{RowsAre, rows_of, sound_offsets};
use super::{Buffer, Csr, Dataset, Dense, Matrix, Value};
use crate::output::write_whole_checked;
use crate::{Error, Result};

/// The first bytes of a cache: the control character stops a terminal, the line end shows a mangled transfer.
pub(super) const MAGIC: &[u8; 8] = b"OBPROX\x1a\n";
const VERSION: u32 = 2;
const ALIGNMENT: usize = 64;
const HEADER: usize = 64;
/// Bytes that have a sum of their own.
const BLOCK: usize = 1 << 20;

/// Writes a data set as a cache that [`read`](super::read) opens at once.
pub fn write_cache(dataset: &Dataset, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    if cfg!(target_endian = "big") {
        return Err(Error::Data("caches are little-endian: not available on this machine".into()));
    }
    let names = dataset.names.as_ref().map_or(Ok(Vec::new()), serde_json::to_vec);
    let names = names.map_err(|error| Error::Data(error.to_string()))?;
    let write = |out: &mut dyn Write| {
        let mut out = Sections { out, written: 0, sums: Vec::new(), open: crc32fast::Hasher::new() };
        out.write(&Header::of(dataset, names.len()).to_bytes())?;
        out.write(&dataset.targets)?;
        match &dataset.matrix {
            Matrix::Ones(rows) => out.write_csr(rows, &[] as &[f32])?,
            Matrix::Sparse32(rows) => out.write_csr(rows, rows.values())?,
            Matrix::Sparse64(rows) => out.write_csr(rows, rows.values())?,
            Matrix::Dense32(rows) => out.write(rows.values())?,
            Matrix::Dense64(rows) => out.write(rows.values())?,
        }
        out.write(&names)?;
        out.finish()
    };
    let check = |file: &File| match sums_agree(&map(file)?) {
        Ok(()) => Ok(()),
        Err(_) => Err(io::Error::other("the disk gives back other bytes than were written: is it failing?")),
    };
    write_whole_checked(path, write, check)
}

/// Opens a cache and checks all of it: what it returns is as sound as what a parser builds.
pub(super) fn read(name: &str, path: &Path) -> Result<Dataset> {
    let file = File::open(path).map_err(Error::reading(path))?;
    let map = map(&file).map_err(Error::reading(path))?;
    let advice = "write the cache again from its source (obprox data convert)";
    open(map).map_err(|flaw| Error::file(name, format!("{flaw}: {advice}")))
}

/// The same with the sum of its sums, by which it is told from any other.
pub(super) fn read_summed(path: &Path) -> Result<(Dataset, u32)> {
    let file = File::open(path).map_err(Error::reading(path))?;
    let map = map(&file).map_err(Error::reading(path))?;
    let blocks = map.len().div_ceil(BLOCK + size_of::<u32>());
    let sum = crc32fast::hash(&map[map.len().saturating_sub(blocks * size_of::<u32>())..]);
    Ok((open(map).map_err(|flaw| Error::Data(flaw.into()))?, sum))
}

fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only. Another process that shortens or rewrites the file while it is mapped would pull
    // the data from under us; `write_cache` never does that (it puts a new file in the old one's place), and the
    // documentation of `read` asks the same of others.
    #[allow(unsafe_code)]
    unsafe {
        Mmap::map(file)
    }
}

/// What is wrong with a cache.
type Flaw = &'static str;

/// What a cache holds, still in its file.
fn open(map: Mmap) -> std::result::Result<Dataset, Flaw> {
    let map = Arc::new(map);
    let header = Header::from_bytes(&map)?;
    sums_agree(&map)?;
    let mut windows = Windows { map: &map, at: HEADER };
    let targets: Buffer<f64> = windows.next(header.n_rows)?;
    let (n_rows, n_cols, n_entries) = (header.n_rows, header.n_cols, header.n_entries);
    if n_cols > u32::MAX as usize {
        return Err("the cache has more columns than indices can tell apart");
    }
    let matrix = match header.storage {
        Storage::Ones => Matrix::Ones(windows.csr(&header, |_| Ok(()))?),
        Storage::F32 => Matrix::Sparse32(windows.csr(&header, |windows| windows.next(n_entries))?),
        Storage::F64 => Matrix::Sparse64(windows.csr(&header, |windows| windows.next(n_entries))?),
        Storage::DenseF32 => Matrix::Dense32(Dense::new(n_rows, n_cols, windows.cells(&header)?)),
        Storage::DenseF64 => Matrix::Dense64(Dense::new(n_rows, n_cols, windows.cells(&header)?)),
    };
    if matrix.first_not_finite().is_some() || targets.iter().any(|target| target.is_infinite()) {
        return Err("the cache holds a value that is not finite");
    }
    let names = windows.names(header.names_bytes, n_cols)?;
    let sums = windows.at.next_multiple_of(ALIGNMENT);
    match sums + sums.div_ceil(BLOCK) * size_of::<u32>() == map.len() {
        true => Ok(Dataset { matrix, targets, names, recipe: None }),
        false => Err(TRUNCATED),
    }
}

/// Whether every block has the sum that was taken of it. Of a file that ends in the sums of all that is before them, the
/// length alone tells where they begin.
fn sums_agree(file: &[u8]) -> std::result::Result<(), Flaw> {
    let blocks = file.len().div_ceil(BLOCK + size_of::<u32>());
    let start = file.len().checked_sub(blocks * size_of::<u32>()).filter(|start| start.is_multiple_of(ALIGNMENT));
    let start = start.filter(|start| start.div_ceil(BLOCK) == blocks).ok_or(TRUNCATED)?;
    let (payload, sums) = file.split_at(start);
    let agrees = |(block, sum): (&[u8], &[u8])| crc32fast::hash(block).to_le_bytes() == *sum;
    match payload.par_chunks(BLOCK).zip(sums.par_chunks_exact(size_of::<u32>())).all(agrees) {
        true => Ok(()),
        false => Err("the cache is damaged: a block has another sum than when it was written"),
    }
}

const TRUNCATED: Flaw = "the cache is shorter or longer than its header says";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Storage {
    Ones,
    F32,
    F64,
    DenseF32,
    DenseF64,
}

const STORAGES: [Storage; 5] = [Storage::Ones, Storage::F32, Storage::F64, Storage::DenseF32, Storage::DenseF64];

#[derive(PartialEq, Eq, Debug)]
struct Header {
    storage: Storage,
    n_rows: usize,
    n_cols: usize,
    n_entries: usize,
    names_bytes: usize,
}

impl Header {
    fn of(dataset: &Dataset, names_bytes: usize) -> Self {
        let (storage, n_entries) = match &dataset.matrix {
            Matrix::Ones(rows) => (Storage::Ones, rows.indices().len()),
            Matrix::Sparse32(rows) => (Storage::F32, rows.indices().len()),
            Matrix::Sparse64(rows) => (Storage::F64, rows.indices().len()),
            Matrix::Dense32(rows) => (Storage::DenseF32, rows.values().len()),
            Matrix::Dense64(rows) => (Storage::DenseF64, rows.values().len()),
        };
        let (n_rows, n_cols) = (dataset.matrix.n_rows(), dataset.matrix.n_cols());
        Self { storage, n_rows, n_cols, n_entries, names_bytes }
    }

    fn to_bytes(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&(self.storage as u32).to_le_bytes());
        let sizes = [self.n_rows, self.n_cols, self.n_entries, self.names_bytes];
        for (place, size) in bytes[16..48].chunks_exact_mut(8).zip(sizes) {
            place.copy_from_slice(&(size as u64).to_le_bytes());
        }
        let sum = checksum(&bytes[..56]);
        bytes[56..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> std::result::Result<Self, Flaw> {
        let bytes = bytes.get(..HEADER).ok_or(TRUNCATED)?;
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        let size = |at: usize| usize::try_from(long(at)).map_err(|_| TRUNCATED);
        if cfg!(target_endian = "big") {
            return Err("caches are little-endian: not available on this machine");
        }
        if &bytes[..8] != MAGIC {
            return Err("this is no cache of obprox");
        }
        if word(8) != VERSION {
            return Err("the cache is of another version of obprox than this one");
        }
        if long(56) != checksum(&bytes[..56]) {
            return Err("the cache's header is corrupt");
        }
        let storage = *STORAGES.get(word(12) as usize).ok_or("the cache's header is corrupt")?;
        Ok(Self { storage, n_rows: size(16)?, n_cols: size(24)?, n_entries: size(32)?, names_bytes: size(40)? })
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Writes sections one after the other, each aligned.
struct Sections<'a> {
    out: &'a mut dyn Write,
    written: usize,
    /// Of the blocks that are full, and of the one that is not.
    sums: Vec<u32>,
    open: crc32fast::Hasher,
}

impl Sections<'_> {
    fn write<T: Pod>(&mut self, section: &[T]) -> io::Result<()> {
        let gap = self.written.next_multiple_of(ALIGNMENT) - self.written;
        self.put(&[0; ALIGNMENT][..gap])?;
        self.put(bytemuck::cast_slice(section))
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK - self.written % BLOCK));
            self.out.write_all(now)?;
            self.open.update(now);
            self.written += now.len();
            if self.written.is_multiple_of(BLOCK) {
                self.sums.push(std::mem::take(&mut self.open).finalize());
            }
            bytes = rest;
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.write(&[] as &[u8])?;
        if !self.written.is_multiple_of(BLOCK) {
            self.sums.push(self.open.finalize());
        }
        self.out.write_all(bytemuck::cast_slice(&self.sums))
    }

    fn write_csr<V: Value, T: Pod>(&mut self, rows: &Csr<V>, values: &[T]) -> io::Result<()> {
        self.write(rows.offsets())?;
        self.write(rows.indices())?;
        self.write(values)
    }
}

/// Reads sections one after the other.
struct Windows<'a> {
    map: &'a Arc<Mmap>,
    at: usize,
}

impl Windows<'_> {
    fn next<T: Pod>(&mut self, len: usize) -> std::result::Result<Buffer<T>, Flaw> {
        let start = self.at.checked_next_multiple_of(ALIGNMENT).ok_or(TRUNCATED)?;
        let window = Buffer::mapped(self.map, start, len).ok_or(TRUNCATED)?;
        self.at = start + len * size_of::<T>();
        Ok(window)
    }

    fn csr<V: Value>(
        &mut self,
        header: &Header,
        values: impl FnOnce(&mut Self) -> std::result::Result<V::Array, Flaw>,
    ) -> std::result::Result<Csr<V>, Flaw> {
        let offsets: Buffer<u64> = self.next(header.n_rows.checked_add(1).ok_or(TRUNCATED)?)?;
        let indices: Buffer<u32> = self.next(header.n_entries)?;
        if !sound_offsets(&offsets, header.n_entries) {
            return Err("the cache's row offsets are corrupt");
        }
        if rows_of(&offsets, &indices, header.n_cols) != RowsAre::Rising {
            return Err("the cache's column indices are corrupt");
        }
        Ok(Csr::new(header.n_cols, offsets, indices, values(self)?))
    }

    fn cells<T: Pod>(&mut self, header: &Header) -> std::result::Result<Buffer<T>, Flaw> {
        match header.n_rows.checked_mul(header.n_cols) {
            Some(cells) if cells == header.n_entries => self.next(cells),
            _ => Err("the cache's header is corrupt"),
        }
    }

    fn names(&mut self, bytes: usize, n_cols: usize) -> std::result::Result<Option<Vec<String>>, Flaw> {
        let text: Buffer<u8> = self.next(bytes)?;
        if bytes == 0 {
            return Ok(None);
        }
        let names: Vec<String> = serde_json::from_slice(&text).map_err(|_| "the cache's names are corrupt")?;
        match names.len() == n_cols {
            true => Ok(Some(names)),
            false => Err("the cache's names are corrupt"),
        }
    }
}
