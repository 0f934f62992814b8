//! `obprox net export`: a network as ONNX or safetensors, for other runtimes.

use std::path::PathBuf;

use clap::Args;
use obprox_infer::Model;

use super::before_after::BeforeAfter;
use crate::destination::{check_distinct, check_file};
use crate::failure::Failure;
use crate::show::{self, bold, bytes};

/// Write a network as ONNX or safetensors, dead channels cut out
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Export {
    /// A network, compressed or as safetensors
    net: PathBuf,

    /// The ONNX file to write
    #[arg(long, value_name = "FILE", required_unless_present = "safetensors")]
    onnx: Option<PathBuf>,

    /// The safetensors file to write
    #[arg(long, value_name = "FILE")]
    safetensors: Option<PathBuf>,

    /// Leave channels in that cannot change the output: every tensor keeps its shape
    #[arg(long)]
    keep_channels: bool,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  obprox net export net.obz --onnx net.onnx
  obprox net export net.obz --safetensors net.safetensors --keep-channels";

impl Export {
    pub fn run(self) -> Result<(), Failure> {
        let writes = [("--onnx", self.onnx.as_deref()), ("--safetensors", self.safetensors.as_deref())];
        for (flag, path) in writes {
            if let Some(path) = path {
                check_file(flag, path)?;
                check_distinct(&[("NET", Some(&self.net)), (flag, Some(path))])?;
            }
        }
        check_distinct(&writes)?;
        let name = self.net.display().to_string();
        let model = Model::read(&self.net)?;
        let small = match self.keep_channels {
            true => model.clone(),
            false => model.cut().map_err(Failure::about(&name))?,
        };
        // Both are made before either is written.
        let onnx = self.onnx.as_ref().map(|_| small.to_onnx()).transpose().map_err(Failure::about(&name))?;
        if let Some(path) = &self.safetensors {
            small.write_safetensors(path)?;
        }
        if let (Some(path), Some(onnx)) = (&self.onnx, onnx) {
            obprox::output::write_whole(path, |out| out.write_all(&onnx))?;
        }
        if self.quiet {
            return Ok(());
        }
        let mut text = BeforeAfter::new(&model, &small)?.text() + "\n";
        for path in [&self.onnx, &self.safetensors].into_iter().flatten() {
            let size = std::fs::metadata(path).map_or(0, |file| file.len() as usize);
            text += &format!("{}: {}, {}\n", bold(&path.display().to_string()), small.design(), bytes(size));
        }
        show::print(&text)
    }
}
