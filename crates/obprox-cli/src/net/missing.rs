//! What `obprox net` says where networks were left out.

use std::ffi::OsString;

use clap::Args;

use crate::failure::Failure;

/// Sparse networks: train, measure, compress, predict (not in this build)
#[derive(Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  cargo install --path crates/obprox-cli --features net")]
pub struct Net {
    /// Whatever was asked for
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

impl Net {
    pub fn run(self) -> Result<(), Failure> {
        Err(Failure::input(
            "this build of obprox has no networks; cargo install --path crates/obprox-cli --features net adds them",
        ))
    }
}
