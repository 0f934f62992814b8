//! `obprox paper`: the paper's experiments, beside the paper's figures.

mod attempt;
mod convex;
mod experiments;
mod figures;
#[cfg(feature = "net")]
mod nets;

use clap::{Args, Subcommand};

pub use experiments::{Set, experiments};

use crate::failure::Failure;

/// The paper's experiments, beside the paper's figures
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub struct Paper {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The section on logistic regression: its tables, and its claims one by one
    Convex(convex::Convex),
    /// The section on deep networks: its tables and its last figure
    #[cfg(feature = "net")]
    Nets(nets::Nets),
    /// The section on deep networks (cargo feature net)
    #[cfg(not(feature = "net"))]
    Nets(crate::left_out::LeftOut),
    /// The paper's explanations as pictures: the Orthant step, and the projection regions
    Figures(figures::Figures),
}

impl Paper {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Convex(convex) => convex.run(),
            #[cfg(feature = "net")]
            Command::Nets(nets) => nets.run(),
            #[cfg(not(feature = "net"))]
            Command::Nets(left_out) => left_out.refuse("training of networks", "net"),
            Command::Figures(figures) => figures.run(),
        }
    }
}
