//! `obprox net expand`: a compressed network → safetensors, under PyTorch's names.

use std::path::PathBuf;

use clap::Args;
use obprox_infer::Model;

use crate::destination::{check_distinct, check_file};
use crate::failure::Failure;
use crate::show::{self, bold};

/// Write a compressed network as safetensors again, for PyTorch
#[derive(Args)]
#[command(after_help = "Example:\n  obprox net expand net.obz --out model.safetensors")]
pub struct Expand {
    /// A network that obprox net compress wrote
    net: PathBuf,

    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

impl Expand {
    pub fn run(self) -> Result<(), Failure> {
        check_file("--out", &self.out)?;
        check_distinct(&[("NET", Some(&self.net)), ("--out", Some(&self.out))])?;
        let model = Model::read_compressed(&self.net)?;
        model.write_safetensors(&self.out)?;
        match self.quiet {
            true => Ok(()),
            false => {
                let name = bold(&self.out.display().to_string());
                show::print(&format!("{name}: {}, as safetensors\n", model.design()))
            }
        }
    }
}
