//! The whole state of a run in one file, exactly: a resumed run continues to the same bits.
//!
//! Layout: the magic line, the length and the JSON of a [`Header`], the solver's own arrays, and a checksum over all of
//! it. Written beside the old one and renamed over it, so that there is always a whole checkpoint.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use crate::observe::EpochRecord;
use crate::output::write_whole;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::{Error, Result};

const MAGIC: &[u8; 16] = b"obprox-state-02\n";

/// What a checkpoint says of its run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The data and the problem, so that a run is not resumed on others.
    pub fingerprint: String,
    /// The settings of the run.
    pub settings: Settings,
    /// The records of its epochs so far.
    pub trace: Vec<EpochRecord>,
    /// Training time so far.
    pub seconds: f64,
    /// Epochs completed.
    pub epoch: u64,
    /// Whether the run ended there because nothing was left to win.
    pub stalled: bool,
}

/// The checkpoint's file in its directory.
pub(crate) fn file_in(directory: &Path) -> PathBuf {
    directory.join("checkpoint.obprox")
}

/// Whether a directory holds a checkpoint that a run could go on from.
pub fn has_checkpoint(directory: impl AsRef<Path>) -> bool {
    file_in(directory.as_ref()).exists()
}

/// Writes a checkpoint whole.
pub(crate) fn write(
    directory: &Path,
    header: &Header,
    save: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(Error::writing(directory))?;
    write_whole(&file_in(directory), |file| {
        let mut out = Hashing { inner: file, hash: Hash::default() };
        out.write_all(MAGIC)?;
        let json = serde_json::to_vec(header)?;
        write_array(&mut out, &json)?;
        save(&mut out)?;
        let digest = out.hash.finish();
        out.inner.write_all(&digest.to_le_bytes())
    })
}

/// An open checkpoint whose header has been read.
pub(crate) struct Reader {
    path: PathBuf,
    input: Hashing<BufReader<File>>,
    pub header: Header,
}

impl Reader {
    /// Opens a checkpoint; nothing where the directory has none.
    pub fn open(directory: &Path) -> Result<Option<Self>> {
        let path = file_in(directory);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::reading(&path)(error)),
        };
        let most = file.metadata().map_err(Error::reading(&path))?.len() as usize;
        let mut input = Hashing { inner: BufReader::new(file), hash: Hash::default() };
        let read = |input: &mut Hashing<_>| -> io::Result<Header> {
            let mut magic = [0; 16];
            input.read_exact(&mut magic)?;
            if magic != *MAGIC {
                return Err(io::ErrorKind::InvalidData.into());
            }
            Ok(serde_json::from_slice(&read_array::<u8>(input, most)?)?)
        };
        match read(&mut input) {
            Ok(header) => Ok(Some(Self { path, input, header })),
            Err(_) => Err(damaged(&path)),
        }
    }

    /// Reads the solver's arrays and checks that the file is whole.
    pub fn finish(mut self, load: impl FnOnce(&mut dyn Read) -> io::Result<()>) -> Result<Header> {
        let rest = || -> io::Result<bool> {
            load(&mut self.input)?;
            let digest = self.input.hash.finish();
            let mut stored = [0; 8];
            self.input.inner.read_exact(&mut stored)?;
            let at_the_end = self.input.inner.read(&mut [0])? == 0;
            Ok(at_the_end && u64::from_le_bytes(stored) == digest)
        };
        match rest() {
            Ok(true) => Ok(self.header),
            _ => Err(damaged(&self.path)),
        }
    }
}

fn damaged(path: &Path) -> Error {
    Error::file(path.display().to_string(), "not a whole obprox checkpoint: remove it to start anew")
}

/// What identifies a problem: shape, data and penalty.
pub(crate) fn fingerprint(problem: &Problem) -> String {
    let mut hash = Hash::default();
    let matrix = problem.matrix();
    if let Some(shards) = problem.shards() {
        hash.write_u64(shards.sum() ^ u64::from(problem.scaling().is_some()));
    }
    if let Some(remote) = problem.remote() {
        // How the rows are weighed is in what is said to those who have them.
        hash.write_u64(remote.sum());
        let _ = write!(hash, "{:?}", problem.statement().weighing);
    }
    for row in (0..problem.n_rows()).filter(|_| problem.remote().is_none()) {
        let (loss, target) = (problem.loss(), problem.targets()[row]);
        hash.write_u64(loss.truth(target).to_bits());
        loss.offset(target).into_iter().flatten().for_each(|offset| hash.write_u64(offset.to_bits()));
        hash.write_u64(problem.row_weight(row).to_bits());
        if !problem.in_shards() {
            matrix.for_each(row, |column, value| hash.write_u64(value.to_bits().rotate_left(32) ^ column as u64));
        }
    }
    for feature in 0..problem.n_features() {
        if problem.regularization().weights.is_some() {
            hash.write_u64(problem.regularization().weight(feature).to_bits());
        }
    }
    let regularization = problem.regularization();
    if let Some(blocks) = &regularization.blocks {
        // All that a penalty knows is in how it describes itself.
        let _ = write!(hash, "{:?}", blocks.penalty());
    }
    let loss = problem.loss();
    format!(
        "{} × {}, {} {:?}, λ {:e}, λ₂ {:e}, intercept {}, {:016x}",
        problem.n_rows(),
        problem.n_features(),
        loss.name(),
        loss.parameter(),
        regularization.l1,
        regularization.l2,
        problem.has_intercept(),
        hash.finish()
    )
}

/// FNV-1a over 64-bit words: plenty against accidents, which is all it is for.
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl fmt::Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        Hasher::write(self, text.as_bytes());
        Ok(())
    }
}

impl Hasher for Hash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }
}

/// A stream that is hashed on its way.
struct Hashing<I> {
    inner: I,
    hash: Hash,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write_all(bytes)?;
        self.hash.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // Whole requests only, so that writer and reader hash the same pieces.
        self.inner.read_exact(bytes)?;
        self.hash.write(bytes);
        Ok(bytes.len())
    }
}

/// Writes an array with its length.
pub(crate) fn write_array<T: Pod>(out: &mut dyn Write, values: &[T]) -> io::Result<()> {
    out.write_all(&(values.len() as u64).to_le_bytes())?;
    out.write_all(bytemuck::cast_slice(values))
}

/// Reads an array of just this length.
pub(crate) fn read_exactly<T: Pod>(input: &mut dyn Read, values: &mut [T]) -> io::Result<()> {
    let mut len = [0; 8];
    input.read_exact(&mut len)?;
    if u64::from_le_bytes(len) != values.len() as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "an array is not as long as it must be"));
    }
    input.read_exact(bytemuck::cast_slice_mut(values))
}

/// Reads an array of at most `most` values.
pub(crate) fn read_array<T: Pod>(input: &mut dyn Read, most: usize) -> io::Result<Vec<T>> {
    let mut len = [0; 8];
    input.read_exact(&mut len)?;
    let len = u64::from_le_bytes(len);
    if len > most as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "an array is longer than it can be"));
    }
    let mut values = vec![T::zeroed(); len as usize];
    input.read_exact(bytemuck::cast_slice_mut(&mut values))?;
    Ok(values)
}
