//! `obprox net`: networks that are mostly exact zeros.

#[cfg(feature = "net")]
mod eval;
#[cfg(feature = "net")]
mod flags;
#[cfg(feature = "net")]
mod log;
#[cfg(feature = "net")]
mod progress;
#[cfg(feature = "net")]
mod show;
#[cfg(feature = "net")]
mod train;

use clap::{Args, Subcommand};

#[cfg(feature = "net")]
pub use flags::images;
#[cfg(feature = "net")]
pub use log::{Log, Origin};
#[cfg(feature = "net")]
pub use progress::Bar;

use crate::failure::Failure;

/// Train and measure sparse neural networks
#[derive(Args)]
pub struct Net {
    #[command(subcommand)]
    command: NetCommand,
}

#[cfg(feature = "net")]
#[derive(Subcommand)]
enum NetCommand {
    /// Train a sparse network on images: min f(x) + λ‖x‖₁
    Train(Box<train::Train>),
    /// Measure a network: F, accuracy, density layer by layer
    Eval(Box<eval::Eval>),
}

#[cfg(not(feature = "net"))]
#[derive(Subcommand)]
enum NetCommand {
    /// Train a sparse network on images (in builds with --features net)
    Train(Missing),
    /// Measure a network (in builds with --features net)
    Eval(Missing),
}

/// Takes whatever comes, to say that it cannot be done.
#[cfg(not(feature = "net"))]
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct Missing {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _rest: Vec<std::ffi::OsString>,
}

#[cfg(not(feature = "net"))]
impl Missing {
    /// How to get what is not there.
    pub fn run(self) -> Result<(), Failure> {
        Err(Failure::input(
            "this obprox was built without networks: cargo install --path crates/obprox-cli --features net builds one \
             with them, in about ten minutes",
        ))
    }
}

impl Net {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            NetCommand::Train(train) => train.run(),
            NetCommand::Eval(eval) => eval.run(),
        }
    }
}
