//! `obprox compare`: several solvers on one problem, one table.

use std::path::{Path, PathBuf};

use clap::Args;
use obprox::output::write_whole;
use obprox::{Fit, Method, Problem, Run, Status};
use serde::Serialize;

use crate::failure::Failure;
use crate::flags::{DataFlags, LambdaFlag, MethodFlags, ProblemFlags, parse_solver, solver_names};
use crate::input::{self, shown};
use crate::show::{self, bold, digits, grid, markdown, plural, rough, tight};
use crate::watch::{Bar, interrupt};

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
    reading: DataFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox compare train.svm --test test.svm
  obprox compare train.svm --solvers prox-sg,obproxsg-plus --epochs 50 --output table.md";

/// A row of the table.
#[derive(Serialize)]
struct Row {
    solver: &'static str,
    status: &'static str,
    #[serde(rename = "F")]
    objective: f64,
    f: f64,
    density: f64,
    nnz: usize,
    gap: Option<f64>,
    relative_gap: Option<f64>,
    kkt: f64,
    epochs: u64,
    seconds: f64,
    relative_runtime: f64,
    test_score: Option<f64>,
}

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
        let writes = [("--output", self.output.as_deref())];
        input::check_paths(&self.data, self.test.as_deref(), &self.problem, &writes)?;
        self.reading.start_threads()?;
        interrupt::listen()?;

        // ---- data --------------------------------------------------------------------------------------------
        let (test, lambda) = (self.test.as_deref(), self.lambda.lambda);
        let (problem, test) = input::problem(&self.data, test, &self.problem, lambda, &self.reading, self.quiet)?;

        // ---- the runs ----------------------------------------------------------------------------------------
        let mut rows: Vec<Row> = Vec::new();
        for settings in settings {
            let method = settings.method;
            let mut bar = Bar::new(format!("{:<13}", method.name()), self.quiet);
            let mut stop = interrupt::Interrupt;
            let mut run = Run::new(&problem, settings).observe(&mut bar).observe(&mut stop);
            if let Some(test) = &test {
                run = run.validate(test);
            }
            let fit = run.fit().map_err(Failure::about(&shown(&self.data)))?;
            let score = test.as_ref().map(|test| fit.model.score(test)).transpose()?;
            rows.push(Row::new(method, &fit, score));
            // Written after each solver, so that a later failure loses nothing.
            if let Some((path, format)) = output {
                compare_runtimes(&mut rows);
                write(path, format, &rows)?;
            }
            if interrupt::pressed() {
                show::note("interrupted: the table has the solvers that ran until then", self.quiet);
                break;
            }
        }
        compare_runtimes(&mut rows);
        if !self.quiet {
            let mut page = title(&shown(&self.data), &problem);
            page += &tight(table(&rows, true));
            page += &format!("\n{LEGEND}\n");
            if let Some((path, _)) = output {
                page += &format!("\ntable written to {}\n", path.display());
            }
            show::print(&page)?;
        }
        match rows.iter().filter(|row| row.status == Status::Diverged.name()).count() {
            diverged if diverged == rows.len() => {
                Err(Failure::other("every run diverged; try a smaller --step, --step auto or --standardize"))
            }
            _ => Ok(()),
        }
    }
}

const LEGEND: &str = "* the best of its column; gap is relative to F, rel. is time against the fastest";

impl Row {
    fn new(method: Method, fit: &Fit, test_score: Option<f64>) -> Self {
        let certificate = &fit.certificate;
        Self {
            solver: method.name(),
            status: fit.status.name(),
            objective: certificate.objective,
            f: certificate.loss,
            density: certificate.density,
            nnz: certificate.nnz,
            gap: certificate.gap,
            relative_gap: certificate.relative_gap(),
            kkt: certificate.kkt,
            epochs: fit.epochs,
            seconds: fit.seconds,
            relative_runtime: 1.0,
            test_score,
        }
    }
}

/// Times in units of the shortest.
fn compare_runtimes(rows: &mut [Row]) {
    let fastest = rows.iter().map(|row| row.seconds).fold(f64::INFINITY, f64::min);
    rows.iter_mut().for_each(|row| row.relative_runtime = row.seconds / fastest.max(f64::MIN_POSITIVE));
}

fn title(data: &str, problem: &Problem) -> String {
    format!(
        "{}\n{} × {}, {} loss, λ = {}\n\n",
        bold(data),
        plural(problem.n_rows() as u64, "row"),
        plural(problem.n_features() as u64, "feature"),
        problem.loss().name(),
        show::lambda(problem)
    )
}

/// The table for people, as few digits as tell solvers apart, to stay within 80 columns; `marked` sets a star at the best of each column.
fn table(rows: &[Row], marked: bool) -> comfy_table::Table {
    let has_test = rows.iter().any(|row| row.test_score.is_some());
    let mut header = vec!["solver", "F", "f", "density", "nnz", "gap", "sec", "rel."];
    header.extend(has_test.then_some("test"));
    // What each column is judged by; smaller is better.
    let best =
        |key: fn(&Row) -> f64| rows.iter().map(key).filter(|value| !value.is_nan()).fold(f64::INFINITY, f64::min);
    let cells = |row: &Row| {
        let cell = |text: String, key: fn(&Row) -> f64| match (marked, key(row) == best(key)) {
            (true, true) => format!("{text}*"),
            (true, false) => format!("{text} "),
            (false, _) => text,
        };
        let diverged = if row.status == Status::Diverged.name() { " (diverged)" } else { "" };
        let mut cells = vec![
            format!("{}{diverged}", row.solver),
            cell(digits(row.objective, 5), |row| row.objective),
            cell(digits(row.f, 4), |row| row.f),
            cell(digits(100.0 * row.density, 3) + "%", |row| row.density),
            cell(row.nnz.to_string(), |row| row.nnz as f64),
            cell(row.relative_gap.map_or("–".into(), rough), |row| row.relative_gap.unwrap_or(f64::NAN)),
            cell(format!("{:.3}", row.seconds), |row| row.seconds),
            format!("{:.1}×", row.relative_runtime),
        ];
        if has_test {
            let score = row.test_score.map_or("–".into(), |score| format!("{score:.4}"));
            cells.push(cell(score, |row| row.test_score.map_or(f64::NAN, |score| -score)));
        }
        cells
    };
    grid(header.into_iter().map(str::to_owned).collect(), rows.iter().map(cells).collect())
}

fn format_of(path: &Path) -> Result<FileFormat, Failure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => Ok(FileFormat::Csv),
        Some("md") => Ok(FileFormat::Markdown),
        Some("json") => Ok(FileFormat::Json),
        _ => Err(Failure::input(format!("--output {}: the name must end in .csv, .md or .json", path.display()))),
    }
}

fn write(path: &Path, format: FileFormat, rows: &[Row]) -> Result<(), Failure> {
    let text = match format {
        FileFormat::Csv => csv(rows),
        FileFormat::Json => serde_json::to_string_pretty(rows).expect("rows are plain data"),
        FileFormat::Markdown => markdown(table(rows, false)),
    };
    Ok(write_whole(path, |out| writeln!(out, "{}", text.trim_end()))?)
}

/// No name or number here has a comma, so nothing needs quotes. Figures that do not exist stay empty.
fn csv(rows: &[Row]) -> String {
    let mut text =
        "solver,status,F,f,density,nnz,gap,relative_gap,kkt,epochs,seconds,relative_runtime,test_score\n".to_owned();
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for row in rows {
        let Row { solver, status, objective, f, density, nnz, kkt, epochs, seconds, relative_runtime, .. } = row;
        let (gap, relative, score) = (optional(row.gap), optional(row.relative_gap), optional(row.test_score));
        text += &format!(
            "{solver},{status},{objective},{f},{density},{nnz},{gap},{relative},{kkt},{epochs},{seconds},\
             {relative_runtime},{score}\n"
        );
    }
    text
}
