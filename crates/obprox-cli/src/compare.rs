//! `obprox compare`: several solvers on one problem, one table.

use std::path::{Path, PathBuf};

use clap::Args;
use obprox::output::write_whole;
use obprox::{MethodKind, Run, Status};
use obprox_report::{Report, table};

use crate::failure::Failure;
use crate::flags::{
    CheckpointFlags, DataFlags, LambdaFlag, MemoryFlags, MethodFlags, ProblemFlags, ReportFlags, TableFlags, named,
    parse_solver, solver_names,
};
use crate::input::{self, Test};
use crate::losses::{Losses, Unsaved};
use crate::show;
use crate::watch::{Bar, Log, Origin, interrupt};

/// Run several solvers on one file and show them in one table
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Compare {
    /// LIBSVM, CSV, Parquet or Arrow file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,

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
    checkpoint: CheckpointFlags,

    #[command(flatten)]
    table: TableFlags,

    #[command(flatten)]
    reading: DataFlags,

    #[command(flatten)]
    memory: MemoryFlags,
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
        let methods = self.methods()?.into_iter();
        let settings: Vec<_> = methods.map(|method| self.method.settings(method)).collect::<Result<_, _>>()?;
        self.method.check(&self.problem, self.test.is_some())?;
        let output = self.output.as_deref().map(|path| format_of(path).map(|format| (path, format))).transpose()?;
        self.report.check()?;
        self.checkpoint.check()?;
        let (table, log) = (("--output", self.output.as_deref()), ("--log", self.log.as_deref()));
        let writes = [table, log, self.report.writes()];
        self.memory.check(&self.data, &self.reading, &self.table)?;
        for data in &self.data {
            input::check_paths(data, self.test.as_deref(), &self.problem, &writes)?;
        }
        let threads = self.reading.start_threads()?;
        interrupt::listen()?;

        // ---- data --------------------------------------------------------------------------------------------
        let (test, lambda) = (self.test.as_deref(), self.lambda.lambda);
        let (flags, data) = ((&self.reading, &self.table, &self.memory), named(&self.data));
        let (problem, test) = input::problem_of(&self.data, test, &self.problem, lambda, flags, self.quiet)?;

        // ---- the runs ----------------------------------------------------------------------------------------
        let origin = Origin::new(data.as_ref(), self.test.as_deref(), &self.problem, threads);
        let mut log = Log::new(self.log.clone(), origin);
        let (mut written, mut diverged, mut losses) = ((None, Vec::new()), true, Losses::default());
        for settings in settings {
            let name = settings.method.name().to_owned();
            let mut bar = Bar::new(format!("{name:<13}"), self.quiet);
            bar.watch(&problem);
            let (mut stop, mut unsaved) = (interrupt::Interrupt, Unsaved::default());
            let mut run = Run::new(&problem, settings).observe(&mut bar).observe(&mut stop).observe(&mut log);
            run = run.observe(&mut unsaved);
            run = match &test {
                Some(Test::Memory(test)) => run.validate(test),
                Some(Test::Shards(test)) => run.validate_shards(test),
                None => run,
            };
            if let Some((directory, resume)) = self.checkpoint.place() {
                run = run.checkpoint(directory.join(&name), resume);
            }
            let fit = run.fit().map_err(Failure::about(&data))?;
            losses.add(unsaved.losses());
            let measured = test.as_ref().map(|test| test.measure(&fit.model)).transpose()?;
            log.end(&fit, measured.as_ref());
            diverged &= fit.status == Status::Diverged;
            // Written after each solver, so that a later failure loses nothing.
            let report = Report::new(log.so_far()?);
            let table = output.and_then(|(path, format)| losses.without(write(path, format, &report)));
            written = (table, self.report.write(&report, &mut losses));
            if interrupt::pressed() {
                let kept = self.checkpoint.kept();
                show::note(&format!("interrupted: the table has the solvers that ran until then{kept}"), self.quiet);
                break;
            }
        }

        // ---- what is told ------------------------------------------------------------------------------------
        let (runs, log) = log.finish(&mut losses)?;
        let report = Report::new(runs);
        if !self.quiet {
            let mut page: String = report.problems.iter().map(crate::report::problem).collect();
            let written: Vec<String> = written.0.into_iter().chain(log).chain(written.1).collect();
            if !written.is_empty() {
                page += &format!("\n{}\n", written.join("\n"));
            }
            show::print(&page)?;
        }
        losses.end(match diverged {
            true => Err(Failure::other("every run diverged; try a smaller --step, --step auto or --standardize")),
            false => Ok(()),
        })
    }

    /// The methods that are compared: all of them where none is named.
    fn methods(&self) -> Result<Vec<MethodKind>, Failure> {
        let mut methods: Vec<MethodKind> = Vec::new();
        for method in self.solvers.iter().map(|name| parse_solver(name)) {
            if methods.contains(&method) {
                return Err(Failure::input(format!("--solvers: {} is given twice", method.name())));
            }
            methods.push(method);
        }
        Ok(if methods.is_empty() { MethodKind::ALL.to_vec() } else { methods })
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

fn write(path: &Path, format: FileFormat, report: &Report) -> Result<String, Failure> {
    let table = table::runs(&report.problems);
    let text = match format {
        FileFormat::Csv => table.to_csv(),
        FileFormat::Json => table.to_json(),
        FileFormat::Markdown => table.to_markdown(),
    };
    write_whole(path, |out| out.write_all(text.as_bytes()))?;
    Ok(format!("table written to {}", path.display()))
}
