//! `obprox completions`: a script that teaches a shell our flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::{Cli, show};

/// Print a completion script for your shell
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Completions {
    /// The shell to complete in
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  obprox completions bash > ~/.local/share/bash-completion/completions/obprox
  obprox completions zsh > \"${fpath[1]}/_obprox\"
  obprox completions fish > ~/.config/fish/completions/obprox.fish";

impl Completions {
    pub fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "obprox", &mut script);
        show::print(&String::from_utf8_lossy(&script))
    }
}
