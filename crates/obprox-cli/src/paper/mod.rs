//! `obprox paper`: the paper's experiments, beside the paper's figures.

mod attempt;
mod convex;
mod experiments;
mod figures;

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
    /// The paper's explanations as pictures: the Orthant step, and the projection regions
    Figures(figures::Figures),
}

impl Paper {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Convex(convex) => convex.run(),
            Command::Figures(figures) => figures.run(),
        }
    }
}
