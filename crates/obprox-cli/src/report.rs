//! `obprox report`: run logs → a table and curves in the terminal, a page, pictures, tables.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use obprox::Error;
use obprox_report::log::{Run, read, read_file};
use obprox_report::{Problem, Report, table, terminal};

use crate::destination::{check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{FileFlags, check_page, write_report};
use crate::input::shown;
use crate::losses::Losses;
use crate::show::{self, bold, grid, rough, tight, trimmed};

/// Show the logs of one or more runs: a table, a page with charts, pictures
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportCommand {
    /// Logs that --log wrote, of any runs; - is standard input
    #[arg(required = true, value_name = "RUN.jsonl")]
    runs: Vec<PathBuf>,

    /// Write a page with charts, tables and settings: one file that opens offline
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    files: FileFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox report run.jsonl --out report.html
  obprox report slow.jsonl fast.jsonl --plots plots --tables tables
  obprox fit train.svm --log run.jsonl && obprox report run.jsonl";

impl ReportCommand {
    pub fn run(self) -> Result<(), Failure> {
        check_page("--out", self.out.as_deref())?;
        self.files.check()?;
        if self.runs.iter().filter(|path| path.as_os_str() == "-").count() > 1 {
            return Err(Failure::input("-: standard input can be given once only"));
        }
        if let Some(out) = &self.out {
            check_file("--out", out)?;
            for run in &self.runs {
                check_distinct(&[("RUN.jsonl", Some(run)), ("--out", Some(out))])?;
            }
        }
        let runs: Vec<Run> = self.runs.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?.concat();
        let report = Report::new(runs);
        let mut losses = Losses::default();
        let written = write_report(&report, self.out.as_deref(), &self.files, &mut losses);
        if !self.quiet {
            let mut page: String = report.problems.iter().map(|one| problem(one) + "\n").collect();
            report.notices().iter().for_each(|notice| page += &format!("note: {notice}\n"));
            written.iter().for_each(|line| page += &format!("{line}\n"));
            show::print(&format!("{}\n", page.trim_end()))?;
        }
        losses.end(Ok(()))
    }
}

fn open(path: &Path) -> Result<Vec<Run>, Failure> {
    match path.as_os_str() == "-" {
        true => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text).map_err(Error::reading(path))?;
            Ok(read(&text, &shown(path))?)
        }
        false => Ok(read_file(path)?),
    }
}

/// What a problem is, a row a run, a line of curves a run.
pub fn problem(problem: &Problem) -> String {
    let mut page = format!("{}\n{}\n\n", bold(problem.data()), problem.summary());
    match problem.is_path() {
        true => page += &paths(problem),
        false => page += &runs(problem),
    }
    page
}

/// The table of runs, the best of each column with a star, and their curves.
fn runs(problem: &Problem) -> String {
    let table = table::runs(std::slice::from_ref(problem));
    let rows = table.cells().map(|cells| {
        let mark = |(place, cell): (usize, &&table::Cell)| match (place, problem.entries.len(), cell.best) {
            (0, ..) | (_, 1, _) => cell.shown.clone(),
            (_, _, true) => format!("{}*", cell.shown),
            // Times against the fastest are not judged twice.
            _ if cell.shown.ends_with('×') => cell.shown.clone(),
            _ => format!("{} ", cell.shown),
        };
        cells.iter().enumerate().map(mark).collect()
    });
    let mut page = tight(grid(table.header(), rows.collect()));
    let curves = terminal::curves(problem);
    if !curves.is_empty() {
        page += &format!("\n{curves}");
    }
    page += match problem.entries.len() {
        1 if problem.optimum.is_some() => "\ngap is relative to F\n",
        1 => "",
        _ if problem.is_network() => "\n* the best of its column; rel. is time against the fastest\n",
        _ => "\n* the best of its column; gap is relative to F, rel. is time against the fastest\n",
    };
    page + &optimum(problem)
}

/// Where F* comes from, for those who read curves.
fn optimum(problem: &Problem) -> String {
    let Some(optimum) = &problem.optimum else { return String::new() };
    let name = &problem.entries[optimum.run].name;
    match (optimum.certified, optimum.low) {
        (true, _) => {
            format!("F* ≥ {}, certified by {name} to {}\n", optimum.value, rough(optimum.high - optimum.value))
        }
        (false, low) => {
            let low = low.map_or(String::new(), |low| format!(", F* ≥ {}", trimmed(low)));
            format!("F* is not certified: least F {} by {name}{low}\n", trimmed(optimum.high))
        }
    }
}

/// A path is told by its curves; the table has a row a λ, which --tables writes.
fn paths(problem: &Problem) -> String {
    let mut page = String::new();
    for entry in &problem.entries {
        let steps = &entry.run.steps;
        let nonzeros: Vec<f64> = steps.iter().map(|step| step.figures.nnz.map_or(f64::NAN, |nnz| nnz as f64)).collect();
        let scores: Vec<f64> = steps.iter().map(|step| step.score.unwrap_or(f64::NAN)).collect();
        page += &show::sparkline("nnz", &nonzeros);
        page += &show::sparkline(problem.score_word(), &scores);
    }
    page
}
