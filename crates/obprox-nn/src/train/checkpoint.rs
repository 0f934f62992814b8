//! The whole state of a run in one file, exactly: a resumed run continues to the same bits.
//!
//! Layout: the magic line; length and bytes of a JSON header, of the network and of the optimizer (both as Burn's own
//! records); a checksum over all of it. Written beside the old one and renamed over it, so that there is always a whole
//! checkpoint.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use burn::module::Module;
use burn::optim::ModuleOptimizer;
use burn::store::{ModuleRecord, RecordError};
use burn::tensor::Bytes;
use obprox::output::write_whole;
use obprox::{Error, Result};
use serde::{Deserialize, Serialize};

use super::{EpochRecord, Settings};
use crate::net::Net;
use crate::optim::{Begun, Phase};

const MAGIC: &[u8; 16] = b"obprox-net-st02\n";

/// What a checkpoint says of its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The network and the images, so that a run is not resumed on others.
    pub fingerprint: String,
    /// The settings of the run.
    pub settings: Settings,
    /// Epochs completed.
    pub epoch: u64,
    /// Steps of the epoch under way that are done.
    pub step: u64,
    /// Steps since the start of the run.
    pub iterations: u64,
    /// The sum of the losses of the epoch under way, image by image.
    pub loss_sum: f64,
    /// The kind of the last step.
    pub phase: Phase,
    /// Where the descent to the target density began.
    pub begun: Option<Begun>,
    /// Whether the target density was reached, and zeros are held from there on.
    pub held: bool,
    /// λ of the last step, where it follows the density.
    pub lambda: Option<f64>,
    /// Training time so far, in Prox-SG steps, in Orthant steps and with zeros held.
    pub seconds: [f64; 3],
    /// The records of the epochs so far.
    pub trace: Vec<EpochRecord>,
}

fn file_in(directory: &Path) -> PathBuf {
    directory.join("checkpoint.obprox-net")
}

/// Whether a directory holds a checkpoint that a run could go on from.
pub fn has_checkpoint(directory: impl AsRef<Path>) -> bool {
    file_in(directory.as_ref()).exists()
}

/// Writes a checkpoint whole.
pub fn write(directory: &Path, state: &State, net: &Net, optimizer: &ModuleOptimizer) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(Error::writing(directory))?;
    let path = file_in(directory);
    let failed = |error: RecordError| Error::writing(&path)(io::Error::other(error.to_string()));
    let header = serde_json::to_vec(state).map_err(|error| Error::writing(&path)(error.into()))?;
    net.settle();
    let network = net.clone().into_record().into_bytes().map_err(failed)?;
    let moments = optimizer.into_bytes().map_err(failed)?;
    write_whole(&path, |out| {
        let mut sum = crc32fast::Hasher::new();
        let mut put = |bytes: &[u8]| {
            sum.update(bytes);
            out.write_all(bytes)
        };
        put(MAGIC)?;
        for part in [&header[..], &network, &moments] {
            put(&(part.len() as u64).to_le_bytes())?;
            put(part)?;
        }
        let sum = sum.finalize();
        out.write_all(&sum.to_le_bytes())
    })
}

/// A checkpoint that was read and is whole.
pub struct Saved {
    path: PathBuf,
    pub state: State,
    network: Vec<u8>,
    moments: Vec<u8>,
}

impl Saved {
    /// Reads a checkpoint; nothing where the directory has none.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = file_in(directory);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::reading(&path)(error)),
        };
        let Some([header, network, moments]) = parts(&bytes) else { return Err(damaged(&path)) };
        let state = serde_json::from_slice(header).map_err(|_| damaged(&path))?;
        Ok(Some(Self { path: path.clone(), state, network: network.to_vec(), moments: moments.to_vec() }))
    }

    /// Refuses a checkpoint of another run than this one.
    pub fn check(&self, fingerprint: &str, settings: &Settings) -> Result<()> {
        let differs = |what: &str| {
            let message = format!("the checkpoint is of {what}: give the same, or another directory");
            Err(Error::file(self.path.display().to_string(), message))
        };
        if self.state.fingerprint != fingerprint {
            return differs(&format!(
                "another network or other images ({}; here {fingerprint})",
                self.state.fingerprint
            ));
        }
        match &settings.differences(&self.state.settings)[..] {
            [] => Ok(()),
            names => differs(&format!("a run with other settings ({})", names.join(", "))),
        }
    }

    /// The network as it was.
    pub fn net(&mut self, net: Net) -> Result<Net> {
        let bytes = Bytes::from_bytes_vec(std::mem::take(&mut self.network));
        let record = ModuleRecord::from_bytes(bytes).map_err(|_| damaged(&self.path))?;
        net.try_load_record(record).map_err(|_| damaged(&self.path))
    }

    /// The optimizer as it was; its groups are those of the network as it was.
    pub fn optimizer(&mut self, optimizer: ModuleOptimizer) -> Result<ModuleOptimizer> {
        let bytes = Bytes::from_bytes_vec(std::mem::take(&mut self.moments));
        optimizer.from_bytes(bytes).map_err(|_| damaged(&self.path))
    }
}

/// The three parts of a file that is whole.
fn parts(bytes: &[u8]) -> Option<[&[u8]; 3]> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    if crc32fast::hash(body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut part = || {
        let (length, after) = rest.split_first_chunk::<8>()?;
        let (part, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        rest = after;
        Some(part)
    };
    let parts = [part()?, part()?, part()?];
    rest.is_empty().then_some(parts)
}

fn damaged(path: &Path) -> Error {
    Error::file(path.display().to_string(), "not a whole obprox checkpoint of a network: remove it to start anew")
}
