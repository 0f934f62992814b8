//! `obprox compare`: several solvers on one problem, one table.

use std::path::{Path, PathBuf};

use clap::Args;
use obprox::output::write_whole;
use obprox::{Method, Run, Status};
use obprox_report::{Report, table};

use crate::failure::Failure;
use crate::flags::{DataFlags, LambdaFlag, MethodFlags, ProblemFlags, ReportFlags, parse_solver, solver_names};
use crate::input::{self, shown};
use crate::show;
use crate::watch::{Bar, Log, Origin, interrupt};

/// Run several solvers on one file and show them in one table
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    /// LIBSVM or CSV file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    data: PathBuf,

    /// Labelled data to score the models on
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// The solvers, separated by commas [default: all]
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = solver_names())]
    solvers: Vec<String>,

    /// Write the table too: .csv, .md or .json by the name's ending
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Where to write the record of all runs, one JSON object a line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    lambda: LambdaFlag,

    #[command(flatten)]
    problem: ProblemFlags,

    #[command(flatten)]
    method: MethodFlags,

    #[command(flatten)]
    report: ReportFlags,

    #[command(flatten)]
    reading: DataFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox compare train.svm --test test.svm --report report.html
  obprox compare train.svm --solvers prox-sg,obproxsg-plus --epochs 50 --output table.md";

#[derive(Clone, Copy)]
enum FileFormat {
    Csv,
    Markdown,
    Json,
}

impl Compare {
    pub fn run(self) -> Result<(), Failure> {
        // ---- everything that can be refused before a file is read --------------------------------------------
        self.problem.check()?;
        let mut methods: Vec<Method> = Vec::new();
        for method in self.solvers.iter().map(|name| parse_solver(name)) {
            if methods.contains(&method) {
                return Err(Failure::input(format!("--solvers: {} is given twice", method.name())));
            }
            methods.push(method);
        }
        if methods.is_empty() {
            methods = Method::ALL.to_vec();
        }
        let settings: Vec<_> = methods.iter().map(|&method| self.method.settings(method)).collect::<Result<_, _>>()?;
        self.method.check(&self.problem, self.test.is_some())?;
        let output = self.output.as_deref().map(|path| format_of(path).map(|format| (path, format))).transpose()?;
        self.report.check()?;
        let (table, log) = (("--output", self.output.as_deref()), ("--log", self.log.as_deref()));
        let writes = [table, log, self.report.writes()];
        input::check_paths(&self.data, self.test.as_deref(), &self.problem, &writes)?;
        let threads = self.reading.start_threads()?;
        interrupt::listen()?;

        // ---- data --------------------------------------------------------------------------------------------
        let (test, lambda) = (self.test.as_deref(), self.lambda.lambda);
        let (problem, test) = input::problem(&self.data, test, &self.problem, lambda, &self.reading, self.quiet)?;

        // ---- the runs ----------------------------------------------------------------------------------------
        let origin = Origin::new(&self.data, self.test.as_deref(), &self.problem, threads);
        let mut log = Log::new(self.log.clone(), origin);
        let (mut written, mut diverged) = (Vec::new(), true);
        for settings in settings {
            let mut bar = Bar::new(format!("{:<13}", settings.method.name()), self.quiet);
            let mut stop = interrupt::Interrupt;
            let mut run = Run::new(&problem, settings).observe(&mut bar).observe(&mut stop).observe(&mut log);
            if let Some(test) = &test {
                run = run.validate(test);
            }
            let fit = run.fit().map_err(Failure::about(&shown(&self.data)))?;
            let measured = test.as_ref().map(|test| fit.model.evaluate(test)).transpose()?;
            log.end(&fit, measured.as_ref());
            diverged &= fit.status == Status::Diverged;
            // Written after each solver, so that a later failure loses nothing.
            let report = Report::new(log.so_far()?);
            if let Some((path, format)) = output {
                write(path, format, &report)?;
            }
            written = self.report.write(&report)?;
            if interrupt::pressed() {
                show::note("interrupted: the table has the solvers that ran until then", self.quiet);
                break;
            }
        }

        // ---- what is told ------------------------------------------------------------------------------------
        let report = Report::new(log.finish()?);
        if !self.quiet {
            let mut page: String = report.problems.iter().map(crate::report::problem).collect();
            let table = self.output.as_ref().map(|path| format!("table written to {}", path.display()));
            let log = self.log.as_ref().map(|path| format!("log written to {}", path.display()));
            let written: Vec<String> = table.into_iter().chain(log).chain(written).collect();
            if !written.is_empty() {
                page += &format!("\n{}\n", written.join("\n"));
            }
            show::print(&page)?;
        }
        match diverged {
            true => Err(Failure::other("every run diverged; try a smaller --step, --step auto or --standardize")),
            false => Ok(()),
        }
    }
}

fn format_of(path: &Path) -> Result<FileFormat, Failure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => Ok(FileFormat::Csv),
        Some("md") => Ok(FileFormat::Markdown),
        Some("json") => Ok(FileFormat::Json),
        _ => Err(Failure::input(format!("--output {}: the name must end in .csv, .md or .json", path.display()))),
    }
}

fn write(path: &Path, format: FileFormat, report: &Report) -> Result<(), Failure> {
    let table = table::runs(&report.problems);
    let text = match format {
        FileFormat::Csv => table.to_csv(),
        FileFormat::Json => table.to_json(),
        FileFormat::Markdown => table.to_markdown(),
    };
    Ok(write_whole(path, |out| out.write_all(text.as_bytes()))?)
}
