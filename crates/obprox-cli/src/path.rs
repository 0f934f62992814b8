//! `obprox path`: one file, many λ.

use std::path::{Path, PathBuf};

use clap::Args;
use obprox::metrics::{Criteria, Deviance, Metrics};
use obprox::output::write_whole;
use obprox::path::{Step, Steps};
use obprox::{Block, Lambda, Problem, Status};
use obprox_report::Report;
use obprox_report::chart::Figure;
use obprox_report::charts::charts;
use serde::Serialize;

use crate::failure::Failure;
use crate::flags::{
    CheckpointFlags, DataFlags, MemoryFlags, PathFlags, ProblemFlags, ReportFlags, TableFlags, in_pool, named,
};
use crate::input::{self, Test, shown};
use crate::losses;
use crate::show::{self, Grid, bold, digits, grid, plural, rough, sampled, seconds, sparkline, tight};
use crate::watch::{Log, Origin, PathBar, interrupt};

/// Train at many λ, from λ_max down, each starting from the one before
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct PathCommand {
    /// LIBSVM, CSV, Parquet or Arrow file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,

    /// Labelled data to score every model on
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// Write every λ: .json with the weights, or .csv with the figures, by the name's ending
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Draw the weights and the scores along λ
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Where to write the record of the path, one JSON object a line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    path: PathFlags,

    #[command(flatten)]
    report: ReportFlags,

    #[command(flatten)]
    problem: ProblemFlags,

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
  obprox path train.svm --test test.svm --plot path.svg
  obprox path train.svm --test test.svm --report report.html
  obprox path train.svm --lambdas 20 --ratio 1e-2 --out path.json
  obprox path table.csv --label income --loss squared --at 0.5max,0.1max,1/N --out path.csv";

/// More λ than this are sampled for the table.
const ROWS: usize = 20;
/// So many are then shown.
const SAMPLE: usize = 15;

#[derive(Clone, Copy)]
enum FileFormat {
    Csv,
    Json,
}

/// A λ in the files; the weights in JSON alone.
#[derive(Serialize)]
struct Row<'a> {
    lambda: f64,
    lambda_ratio: f64,
    status: &'static str,
    #[serde(rename = "F")]
    objective: f64,
    f: f64,
    l1: f64,
    nnz: usize,
    gap: Option<f64>,
    relative_gap: Option<f64>,
    kkt: f64,
    epochs: u64,
    seconds: f64,
    test_score: Option<f64>,
    test_loss: Option<f64>,
    deviance_explained: Option<f64>,
    aic: Option<f64>,
    bic: Option<f64>,
    blocks: &'a [Block],
    #[serde(skip_serializing_if = "Option::is_none")]
    relaxed: Option<RelaxedRow<'a>>,
}

/// The refit without penalty on the features of a λ.
#[derive(Serialize)]
struct RelaxedRow<'a> {
    status: &'static str,
    f: f64,
    relative_gap: Option<f64>,
    test_score: Option<f64>,
    test_loss: Option<f64>,
    deviance_explained: Option<f64>,
    blocks: &'a [Block],
}

/// The whole JSON file.
#[derive(Serialize)]
struct Record<'a> {
    format: &'static str,
    version: u32,
    data: String,
    test: Option<String>,
    loss: &'a str,
    l2: f64,
    rows: usize,
    n_features: usize,
    labels: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    names: Option<&'a [String]>,
    lambda_max: f64,
    tol: f64,
    stopped: bool,
    path: Vec<Row<'a>>,
}

impl PathCommand {
    pub fn run(self) -> Result<(), Failure> {
        // ---- everything that can be refused before a file is read --------------------------------------------
        self.problem.check()?;
        let out = self.out.as_deref().map(|path| format_of(path).map(|format| (path, format))).transpose()?;
        self.report.check()?;
        self.checkpoint.check()?;
        self.memory.check(&self.data, &self.reading, &self.table)?;
        self.check_paths()?;
        let threads = self.reading.start_threads()?;
        interrupt::listen()?;
        in_pool(|| self.work(out, threads))
    }

    fn work(&self, out: Option<(&Path, FileFormat)>, threads: usize) -> Result<(), Failure> {
        // ---- data --------------------------------------------------------------------------------------------
        let (start, name) = (Lambda::OfMax(1.0), named(&self.data));
        let flags = (&self.reading, &self.table, &self.memory);
        let (problem, test) =
            input::problem_of(&self.data, self.test.as_deref(), &self.problem, start, flags, self.quiet)?;
        let lambdas = self.path.lambdas();
        let count = lambdas.values(&problem).map_err(Failure::about(&name))?.len();

        // ---- the path ----------------------------------------------------------------------------------------
        let settings = self.path.settings();
        let mut bar = PathBar::new("path", Some(count), self.quiet);
        bar.watch(&problem);
        let mut path = obprox::Path::new(&problem)
            .settings(settings.clone())
            .lambdas(lambdas)
            .relaxed(self.path.relax)
            .observe(&mut bar);
        path = match &test {
            Some(Test::Memory(test)) => path.validate(test),
            Some(Test::Shards(test)) => path.validate_shards(test),
            None => path,
        };
        if let Some((directory, resume)) = self.checkpoint.place() {
            path = path.checkpoint(directory, resume);
        }
        let steps = path.run().map_err(Failure::about(&name))?;

        // ---- what is kept and told ---------------------------------------------------------------------------
        let (mut written, mut losses) = (Vec::new(), bar.losses());
        let kept = if losses.is_empty() { self.checkpoint.kept() } else { String::new() };
        if let Some((path, format)) = out {
            let text = self.text(format, &problem, settings.tolerance, &steps);
            written.extend(losses.write("path", path, losses::text(&text))?);
        }
        let logged = self.log.is_some() || self.plot.is_some() || self.report.wanted();
        if logged && !steps.steps.is_empty() {
            let mut log =
                Log::new(self.log.clone(), Origin::new(name.as_ref(), self.test.as_deref(), &self.problem, threads));
            log.path(&problem, &settings, &steps);
            let (runs, log) = log.finish(&mut losses)?;
            let report = Report::new(runs);
            written.extend(log);
            written.extend(losses.without(self.draw(&report)).flatten());
            written.extend(self.report.write(&report, &mut losses));
        }
        if steps.stopped {
            let done = steps.steps.len();
            let words = format!("interrupted: {done} of {count} λ were done, the others are left out{kept}");
            show::note(&words, self.quiet);
        }
        if !self.quiet {
            let mut page = title(&name, &problem, &steps.steps);
            page += &tight(table(&problem, &steps.steps));
            page += &below(&problem, &steps.steps, settings.tolerance);
            if !written.is_empty() {
                page += &format!("\n{}\n", written.join("\n"));
            }
            show::print(&page)?;
        }
        losses.end(Ok(()))
    }

    /// All charts of the path as one picture; a line that says where.
    fn draw(&self, report: &Report) -> Result<Option<String>, Failure> {
        let Some(path) = &self.plot else { return Ok(None) };
        let panels = report.problems.iter().flat_map(charts).map(|chart| chart.panel);
        let picture = Figure::new(panels).size(760, 380).to_svg();
        write_whole(path, |out| out.write_all(picture.as_bytes()))?;
        Ok(Some(format!("plot written to {}", path.display())))
    }

    fn check_paths(&self) -> Result<(), Failure> {
        if let Some(path) = &self.plot
            && path.extension().is_none_or(|ending| ending != "svg")
        {
            return Err(Failure::input(format!("--plot {}: the name must end in .svg", path.display())));
        }
        let (out, plot) = (("--out", self.out.as_deref()), ("--plot", self.plot.as_deref()));
        let writes = [out, plot, ("--log", self.log.as_deref()), self.report.writes()];
        self.data.iter().try_for_each(|data| input::check_paths(data, self.test.as_deref(), &self.problem, &writes))
    }

    /// The file of a path.
    fn text(&self, format: FileFormat, problem: &Problem, tol: f64, steps: &Steps) -> String {
        let deviance = Deviance::of(problem);
        let rows: Vec<Row> = steps.steps.iter().map(|step| Row::new(step, problem, deviance)).collect();
        let text = match format {
            FileFormat::Csv => csv(&rows),
            FileFormat::Json => {
                let record = Record {
                    format: "obprox-path",
                    version: 1,
                    data: named(&self.data),
                    test: self.test.as_deref().map(shown),
                    loss: problem.loss().name(),
                    l2: problem.regularization().l2,
                    rows: problem.n_rows(),
                    n_features: problem.n_features(),
                    labels: problem.labels(),
                    names: problem.names(),
                    lambda_max: problem.lambda_max(),
                    tol,
                    stopped: steps.stopped,
                    path: rows,
                };
                serde_json::to_string(&record).expect("a record is plain data")
            }
        };
        format!("{}\n", text.trim_end())
    }
}

impl<'a> Row<'a> {
    fn new(step: &'a Step, problem: &Problem, deviance: Option<Deviance>) -> Self {
        let certificate = &step.certificate;
        let criteria = Criteria::of(problem, certificate);
        Self {
            lambda: step.lambda,
            lambda_ratio: step.lambda / problem.lambda_max(),
            status: step.status.name(),
            objective: certificate.objective,
            f: certificate.loss,
            l1: certificate.l1,
            nnz: certificate.nnz,
            gap: certificate.gap,
            relative_gap: certificate.relative_gap(),
            kkt: certificate.kkt,
            epochs: step.epochs,
            seconds: step.seconds,
            test_score: step.test.as_ref().map(Metrics::score),
            test_loss: step.test.as_ref().and_then(Metrics::loss),
            deviance_explained: deviance.map(|deviance| deviance.explained(certificate.loss)),
            aic: criteria.map(|criteria| criteria.aic),
            bic: criteria.map(|criteria| criteria.bic),
            blocks: &step.model.blocks,
            relaxed: step.relaxed.as_ref().map(|refit| RelaxedRow {
                status: refit.status.name(),
                f: refit.certificate.loss,
                relative_gap: refit.certificate.relative_gap(),
                test_score: refit.test.as_ref().map(Metrics::score),
                test_loss: refit.test.as_ref().and_then(Metrics::loss),
                deviance_explained: deviance.map(|deviance| deviance.explained(refit.certificate.loss)),
                blocks: &refit.model.blocks,
            }),
        }
    }
}

fn title(data: &str, problem: &Problem, steps: &[Step]) -> String {
    let time = steps.iter().map(|step| step.seconds).sum();
    format!(
        "{}\n{} × {}, {} loss\n{} λ, λ_max = {}, training time {}\n\n",
        bold(data),
        plural(problem.n_rows() as u64, "row"),
        plural(problem.n_features() as u64, "feature"),
        problem.loss().name(),
        steps.len(),
        digits(problem.lambda_max(), 6),
        seconds(time)
    )
}

/// The place of the best score on the test data, the largest λ among equals.
fn best(steps: &[Step]) -> Option<usize> {
    let score = |at: usize| steps[at].test.as_ref().map(Metrics::score);
    (0..steps.len())
        .filter(|&at| score(at).is_some())
        .reduce(|best, at| if score(at) > score(best) { at } else { best })
}

/// The λ of the table: all, or a sample with the best among it.
fn places(steps: &[Step]) -> Vec<usize> {
    let mut places = sampled(steps.len(), if steps.len() > ROWS { SAMPLE } else { ROWS });
    places.extend(best(steps));
    places.sort_unstable();
    places.dedup();
    places
}

fn table(problem: &Problem, steps: &[Step]) -> Grid {
    let best = best(steps);
    let mut header: Vec<String> = ["λ", "λ/λ_max", "nnz", "F", "gap"].map(str::to_owned).to_vec();
    if let Some(metrics) = steps.first().and_then(|step| step.test.as_ref()) {
        header.extend(["test loss".to_owned(), metrics.score_name().to_owned()]);
    }
    let is_relaxed = steps.iter().any(|step| step.relaxed.is_some());
    if is_relaxed {
        header.push("refit f".to_owned());
        header.extend(
            steps.iter().find_map(|step| step.test.as_ref()).map(|test| format!("refit {}", test.score_name())),
        );
    }
    let places = places(steps);
    let cells = |at: usize| {
        let step = &steps[at];
        let certificate = &step.certificate;
        let certified = if step.status == Status::Converged { "" } else { "!" };
        let mut cells = vec![
            digits(step.lambda, 4),
            digits(step.lambda / problem.lambda_max(), 4),
            certificate.nnz.to_string(),
            digits(certificate.objective, 6),
            certificate.relative_gap().map_or("–".into(), rough) + certified,
        ];
        if let Some(metrics) = &step.test {
            cells.push(metrics.loss().map_or("–".into(), |loss| digits(loss, 5)));
            cells.push(format!("{:.4}{}", metrics.score(), if Some(at) == best { "*" } else { " " }));
        }
        if let Some(refit) = &step.relaxed {
            let certified = if refit.status == Status::Converged { "" } else { "!" };
            cells.push(digits(refit.certificate.loss, 6) + certified);
            cells.extend(refit.test.as_ref().map(|test| format!("{:.4}", test.score())));
        }
        cells
    };
    grid(header, places.into_iter().map(cells).collect())
}

/// The curves, and what the table leaves unsaid.
fn below(problem: &Problem, steps: &[Step], tolerance: f64) -> String {
    let mut page = String::new();
    if steps.len() > 2 {
        page += "\n";
        page += &sparkline("nnz", &steps.iter().map(|step| step.certificate.nnz as f64).collect::<Vec<_>>());
        let tested: Vec<&Metrics> = steps.iter().filter_map(|step| step.test.as_ref()).collect();
        if let Some(first) = tested.first() {
            page += &sparkline(first.score_name(), &tested.iter().map(|test| test.score()).collect::<Vec<_>>());
        }
    }
    page += &least(problem, steps);
    let mut said = Vec::new();
    if steps.len() > ROWS {
        said.push(format!("{} of {} λ are shown; --out FILE has all", places(steps).len(), steps.len()));
    }
    if best(steps).is_some() {
        said.push("* the best on the test data".to_owned());
    }
    let is_open = |step: &&Step| {
        step.status != Status::Converged || step.relaxed.as_ref().is_some_and(|refit| refit.status != Status::Converged)
    };
    match steps.iter().filter(is_open).count() {
        0 => {}
        open => said.push(format!("! {open} λ not certified to {tolerance:e}")),
    }
    if !said.is_empty() {
        page += &format!("\n{}\n", said.join("; "));
    }
    page
}

/// Where AIC and BIC are least, the largest λ among equals: a choice that needs no test data.
fn least(problem: &Problem, steps: &[Step]) -> String {
    let criteria: Option<Vec<Criteria>> = steps.iter().map(|step| Criteria::of(problem, &step.certificate)).collect();
    let Some(criteria) = criteria.filter(|_| steps.len() > 1) else { return String::new() };
    let place = |of: fn(&Criteria) -> f64| {
        (0..criteria.len()).reduce(|best, at| if of(&criteria[at]) < of(&criteria[best]) { at } else { best })
    };
    let words = |at: usize| format!("λ = {} ({} nonzeros)", digits(steps[at].lambda, 4), steps[at].certificate.nnz);
    let (aic, bic) = (place(|criteria| criteria.aic), place(|criteria| criteria.bic));
    let said = aic.zip(bic).map(|(aic, bic)| format!("\nAIC is least at {}, BIC at {}\n", words(aic), words(bic)));
    said.unwrap_or_default()
}

fn format_of(path: &Path) -> Result<FileFormat, Failure> {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => Ok(FileFormat::Csv),
        Some("json") => Ok(FileFormat::Json),
        _ => Err(Failure::input(format!("--out {}: the name must end in .csv or .json", path.display()))),
    }
}

/// No number here has a comma, so nothing needs quotes. Figures that do not exist stay empty.
fn csv(rows: &[Row]) -> String {
    let mut text = "lambda,lambda_ratio,status,F,f,l1,nnz,gap,relative_gap,kkt,epochs,seconds,test_score,test_loss,\
         deviance_explained,aic,bic"
        .to_owned();
    let is_relaxed = rows.iter().any(|row| row.relaxed.is_some());
    text += if is_relaxed { ",refit_status,refit_f,refit_test_score,refit_test_loss\n" } else { "\n" };
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for row in rows {
        let Row { lambda, lambda_ratio, status, objective, f, l1, nnz, kkt, epochs, seconds, .. } = row;
        let (gap, relative) = (optional(row.gap), optional(row.relative_gap));
        let (score, loss) = (optional(row.test_score), optional(row.test_loss));
        let explained = optional(row.deviance_explained);
        let (aic, bic) = (optional(row.aic), optional(row.bic));
        text += &format!(
            "{lambda},{lambda_ratio},{status},{objective},{f},{l1},{nnz},{gap},{relative},{kkt},{epochs},{seconds},\
             {score},{loss},{explained},{aic},{bic}"
        );
        if let Some(RelaxedRow { status, f, test_score, test_loss, .. }) = &row.relaxed {
            text += &format!(",{status},{f},{},{}", optional(*test_score), optional(*test_loss));
        }
        text.push('\n');
    }
    text
}
