//! The subcommands of `obprox net`.

use clap::{Args, Subcommand};

use super::{bench, compress, expand, infer};
use crate::failure::Failure;

/// Sparse networks: compress, predict, measure
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub struct Net {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a trained network as a small file without its zeros
    Compress(compress::Compress),
    /// Write a compressed network as safetensors again, for PyTorch
    Expand(expand::Expand),
    /// Predict the classes of images
    Infer(infer::Infer),
    /// Measure sparse against dense execution
    Bench(bench::Bench),
}

impl Net {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Compress(compress) => compress.run(),
            Command::Expand(expand) => expand.run(),
            Command::Infer(infer) => infer.run(),
            Command::Bench(bench) => bench.run(),
        }
    }
}
