//! The `obprox` command: min f(x) + λ‖x‖₁ from files to models. Glue over the library, one file a subcommand.

// The library must not print; this is the one place that does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod allocator;
mod compare;
mod completions;
mod cv;
mod data;
mod destination;
mod eval;
mod failure;
mod fit;
mod flags;
mod input;
#[cfg(not(all(feature = "net", feature = "paper")))]
mod left_out;
mod losses;
mod net;
#[cfg(feature = "paper")]
mod paper;
mod path;
mod predict;
mod report;
mod show;
mod threads;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Models that are mostly exact zeros: min f(x) + λ‖x‖₁
#[derive(Parser)]
#[command(name = "obprox", version, arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  obprox fit train.svm --test test.svm --out model.json
  obprox predict model.json new.svm > labels.txt
  obprox compare train.svm --lambda 0.1max
  obprox path train.svm --test test.svm --plot path.svg
  obprox cv train.svm --out model.json
  obprox report run.jsonl --out report.html
  obprox data inspect train.svm
  obprox help fit                    every flag of a subcommand";

#[derive(Subcommand)]
enum Command {
    /// Train a sparse model on a LIBSVM, CSV, Parquet or Arrow file
    Fit(Box<fit::Fit>),
    /// Predict labels, values or probabilities with a model
    Predict(predict::Predict),
    /// Measure a model on labelled data: accuracy, AUC, log-loss, RMSE, R², concordance
    Eval(eval::Eval),
    /// Run several solvers on one file and show them in one table
    Compare(Box<compare::Compare>),
    /// Train at many λ, each from the one before: a table, a plot, a file
    Path(Box<path::PathCommand>),
    /// Choose λ by cross-validation and train with it
    Cv(Box<cv::Cv>),
    /// Sparse networks: train, measure, compress, predict
    Net(net::Net),
    /// Show the logs of runs: a table, a page with charts, pictures
    Report(report::ReportCommand),
    /// Look at data files, convert, generate and download them
    Data(data::Data),
    /// The paper's experiments, beside the paper's figures (cargo feature paper)
    #[cfg(feature = "paper")]
    Paper(paper::Paper),
    /// The paper's experiments, beside the paper's figures (cargo feature paper)
    #[cfg(not(feature = "paper"))]
    Paper(left_out::LeftOut),
    /// Print a completion script for your shell
    Completions(completions::Completions),
}

fn main() -> ExitCode {
    watch::interrupt::outlive_limits();
    hush_decoders();
    let outcome = Cli::try_parse().map_err(failure::usage).and_then(|cli| match cli.command {
        Command::Fit(fit) => fit.run(),
        Command::Predict(predict) => predict.run(),
        Command::Eval(eval) => eval.run(),
        Command::Compare(compare) => compare.run(),
        Command::Path(path) => path.run(),
        Command::Cv(cv) => cv.run(),
        Command::Net(net) => net.run(),
        Command::Report(report) => report.run(),
        Command::Data(data) => data.run(),
        #[cfg(feature = "paper")]
        Command::Paper(paper) => paper.run(),
        #[cfg(not(feature = "paper"))]
        Command::Paper(left_out) => left_out.refuse("paper", "paper"),
        Command::Completions(completions) => completions.run(),
    });
    watch::interrupt::status(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    })
}

/// A decoder that panics on a damaged file is an error of one line; whatever else panics is told in full.
fn hush_decoders() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !obprox::data::panics_are_errors() {
            told(panic);
        }
    }));
}
