//! What the command says of the parts that a build has left out.

use std::ffi::OsString;

use clap::Args;

use crate::failure::Failure;

/// A part that this build has left out
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct LeftOut {
    /// Whatever was asked for
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

impl LeftOut {
    /// The refusal: what is not there, and the cargo feature that adds it.
    pub fn refuse(self, what: &str, feature: &str) -> Result<(), Failure> {
        Err(Failure::input(format!(
            "this build of obprox has no {what}; cargo install --path crates/obprox-cli --features {feature} adds it"
        )))
    }
}
