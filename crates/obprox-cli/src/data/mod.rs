//! `obprox data`: look at a data file, turn it into another, make one or get one.

mod convert;
#[cfg(feature = "paper")]
mod get;
mod inspect;
mod synth;

use std::io::{self, BufWriter, Write};

use clap::{Args, Subcommand};
use obprox::data::{Dataset, write_cache, write_libsvm};
use obprox::output::write_whole;

use crate::destination::Destination;
use crate::failure::Failure;
use crate::show::{self, bold, plural};
use crate::watch;

/// Look at data files, convert, generate and download them
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub struct Data {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the shape, the values and the labels of a data file
    Inspect(inspect::Inspect),
    /// Write a data file as a cache that opens at once, or as LIBSVM text
    Convert(convert::Convert),
    /// Generate a planted sparse problem of any shape
    Synth(synth::Planted),
    /// Download the paper's data sets (cargo feature paper)
    #[cfg(feature = "paper")]
    Get(get::Get),
    /// Download the paper's data sets (cargo feature paper)
    #[cfg(not(feature = "paper"))]
    Get(crate::left_out::LeftOut),
}

impl Data {
    pub fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Inspect(inspect) => inspect.run(),
            Command::Convert(convert) => convert.run(),
            Command::Synth(planted) => planted.run(),
            #[cfg(feature = "paper")]
            Command::Get(get) => get.run(),
            #[cfg(not(feature = "paper"))]
            Command::Get(left_out) => left_out.refuse("downloads", "paper"),
        }
    }
}

fn is_text(output: &Destination) -> bool {
    match output {
        Destination::Stdout => true,
        Destination::File(path) => path.extension().is_some_and(|ending| ending == "svm" || ending == "libsvm"),
    }
}

fn write_data(data: &Dataset, output: &Destination, quiet: bool) -> Result<(), Failure> {
    let Destination::File(path) = output else {
        let mut out = BufWriter::new(io::stdout().lock());
        return write_libsvm(data, &mut out).and_then(|()| out.flush()).map_err(show::stdout_failure);
    };
    {
        let _waiting = watch::waiting(format!("writing {}", path.display()), quiet);
        match is_text(output) {
            true => write_whole(path, |out| write_libsvm(data, out))?,
            false => write_cache(data, path)?,
        }
    }
    if quiet {
        return Ok(());
    }
    show::print(&format!(
        "{}: {} × {}, {}, as {}\n",
        bold(&path.display().to_string()),
        plural(data.matrix.n_rows() as u64, "row"),
        plural(data.matrix.n_cols() as u64, "feature"),
        plural(data.matrix.nnz() as u64, "nonzero"),
        if is_text(output) { "LIBSVM text" } else { "a cache that opens at once" }
    ))
}
