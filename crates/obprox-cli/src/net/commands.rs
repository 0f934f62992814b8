//! The subcommands of `obprox net`.

use clap::{Args, Subcommand};

use super::{bench, compress, expand, export, import, infer};
#[cfg(feature = "net")]
use super::{eval, train};
use crate::failure::Failure;
#[cfg(not(feature = "net"))]
use crate::left_out::LeftOut;

/// Sparse networks: train, measure, compress, predict
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub struct Net {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a sparse network on images: min f(x) + λ‖x‖₁
    #[cfg(feature = "net")]
    Train(Box<train::Train>),
    /// Measure a network: F, accuracy, density layer by layer
    #[cfg(feature = "net")]
    Eval(Box<eval::Eval>),
    /// Train a sparse network on images (cargo feature net)
    #[cfg(not(feature = "net"))]
    Train(LeftOut),
    /// Measure a network: F, accuracy, density layer by layer (cargo feature net)
    #[cfg(not(feature = "net"))]
    Eval(LeftOut),
    /// Write a trained network as a small file without its zeros
    Compress(compress::Compress),
    /// Write a compressed network as safetensors again, for PyTorch
    Expand(expand::Expand),
    /// Read an ONNX file and write it as a compressed network
    Import(import::Import),
    /// Write a network as ONNX or safetensors, dead channels cut out
    Export(export::Export),
    /// Predict the classes of images
    Infer(infer::Infer),
    /// Measure sparse against dense execution
    Bench(bench::Bench),
}

impl Net {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            #[cfg(feature = "net")]
            Command::Train(train) => train.run(),
            #[cfg(feature = "net")]
            Command::Eval(eval) => eval.run(),
            #[cfg(not(feature = "net"))]
            Command::Train(left_out) => left_out.refuse("training of networks", "net"),
            #[cfg(not(feature = "net"))]
            Command::Eval(left_out) => left_out.refuse("net eval", "net"),
            Command::Compress(compress) => compress.run(),
            Command::Expand(expand) => expand.run(),
            Command::Import(import) => import.run(),
            Command::Export(export) => export.run(),
            Command::Infer(infer) => infer.run(),
            Command::Bench(bench) => bench.run(),
        }
    }
}
