//! Work that can be broken off.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::destination::check_directory;
use crate::failure::Failure;

/// The flags of every subcommand that does many runs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Breaking off and going on")]
pub struct CheckpointFlags {
    /// Keep here what is done
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,

    /// Go on from what is kept in --checkpoint, to the same bits as without a break
    #[arg(long, requires = "checkpoint")]
    resume: bool,
}

impl CheckpointFlags {
    /// Whether the directory can be written in; writes nothing.
    pub fn check(&self) -> Result<(), Failure> {
        self.checkpoint.as_deref().map_or(Ok(()), |directory| check_directory("--checkpoint", directory))
    }

    /// The directory, and whether to go on from what is in it.
    pub fn place(&self) -> Option<(&Path, bool)> {
        self.checkpoint.as_deref().map(|directory| (directory, self.resume))
    }

    /// What is said of work that was broken off.
    pub fn kept(&self) -> String {
        match &self.checkpoint {
            Some(directory) => {
                format!("; what is done is kept in {}, and --resume goes on from it", directory.display())
            }
            None => String::new(),
        }
    }
}
