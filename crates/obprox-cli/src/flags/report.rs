//! What a run leaves behind for people to look at.

use std::path::{Path, PathBuf};

use clap::Args;
use obprox::Error;
use obprox::output::write_whole;
use obprox_report::charts::charts;
use obprox_report::table::tables;
use obprox_report::{Report, page};

use crate::destination::check_directory;
use crate::failure::Failure;
use crate::losses::Losses;

/// The flags of every subcommand that trains.
#[derive(Args, Debug)]
#[command(next_help_heading = "The report")]
pub struct ReportFlags {
    /// Write a page with charts, tables and settings: one file that opens offline
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    #[command(flatten)]
    files: FileFlags,
}

/// The flags of every subcommand that makes a report.
#[derive(Args, Debug)]
#[command(next_help_heading = "The report")]
pub struct FileFlags {
    /// Write the charts into a directory, each as SVG, and as PNG in builds with --features png
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Write the tables into a directory, each as CSV and Markdown
    #[arg(long, value_name = "DIR")]
    tables: Option<PathBuf>,
}

impl ReportFlags {
    /// Whether anything is asked for.
    pub fn wanted(&self) -> bool {
        self.report.is_some() || self.files.plots.is_some() || self.files.tables.is_some()
    }

    /// The file it writes, to be checked with the others of the run.
    pub fn writes(&self) -> (&'static str, Option<&Path>) {
        ("--report", self.report.as_deref())
    }

    /// Whether the names will do; writes nothing.
    pub fn check(&self) -> Result<(), Failure> {
        check_page("--report", self.report.as_deref())?;
        self.files.check()
    }

    /// Writes what is asked for; a line for each that says where.
    pub fn write(&self, report: &Report, losses: &mut Losses) -> Vec<String> {
        write_report(report, self.report.as_deref(), &self.files, losses)
    }
}

impl FileFlags {
    /// Whether the directories can be written in; writes nothing.
    pub fn check(&self) -> Result<(), Failure> {
        for (flag, directory) in [("--plots", &self.plots), ("--tables", &self.tables)] {
            if let Some(directory) = directory {
                check_directory(flag, directory)?;
            }
        }
        Ok(())
    }
}

/// Whether a page can have this name.
pub fn check_page(flag: &str, path: Option<&Path>) -> Result<(), Failure> {
    match path {
        Some(path) if path.extension().is_none_or(|ending| ending != "html" && ending != "htm") => {
            Err(Failure::input(format!("{flag} {}: the name must end in .html", path.display())))
        }
        _ => Ok(()),
    }
}

/// The page, the pictures and the tables, as far as they are asked for and can be written; a line for each that says where.
pub fn write_report(report: &Report, page: Option<&Path>, files: &FileFlags, losses: &mut Losses) -> Vec<String> {
    let page = page.and_then(|path| losses.without(write_page(report, path)));
    let plots = files.plots.as_deref().and_then(|directory| losses.without(write_plots(report, directory)));
    let tables = files.tables.as_deref().and_then(|directory| losses.without(write_tables(report, directory)));
    [page, plots, tables].into_iter().flatten().collect()
}

fn write_page(report: &Report, path: &Path) -> Result<String, Failure> {
    let text = page::html(report);
    write_whole(path, |out| out.write_all(text.as_bytes()))?;
    Ok(format!("report written to {}", path.display()))
}

fn write_plots(report: &Report, directory: &Path) -> Result<String, Failure> {
    make(directory)?;
    let several = report.problems.len() > 1;
    for (place, problem) in report.problems.iter().enumerate() {
        for chart in charts(problem) {
            let name = if several { format!("{}-{}", place + 1, chart.name) } else { chart.name.clone() };
            let svg = chart.figure().to_svg();
            write_whole(&directory.join(format!("{name}.svg")), |out| out.write_all(svg.as_bytes()))?;
            #[cfg(feature = "png")]
            {
                let png = chart.figure().to_png()?;
                write_whole(&directory.join(format!("{name}.png")), |out| out.write_all(&png))?;
            }
        }
    }
    let left_out = if cfg!(feature = "png") { "" } else { " as SVG; builds with --features png add PNG" };
    Ok(format!("plots written to {}{left_out}", directory.display()))
}

fn write_tables(report: &Report, directory: &Path) -> Result<String, Failure> {
    make(directory)?;
    for table in tables(report) {
        let (csv, markdown) = (table.to_csv(), table.to_markdown());
        write_whole(&directory.join(format!("{}.csv", table.name)), |out| out.write_all(csv.as_bytes()))?;
        write_whole(&directory.join(format!("{}.md", table.name)), |out| out.write_all(markdown.as_bytes()))?;
    }
    Ok(format!("tables written to {}", directory.display()))
}

fn make(directory: &Path) -> Result<(), Failure> {
    Ok(std::fs::create_dir_all(directory).map_err(Error::writing(directory))?)
}
