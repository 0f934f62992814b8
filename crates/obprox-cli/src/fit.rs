//! `obprox fit`: file → model.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use obprox::loss::Task;
use obprox::metrics::Metrics;
use obprox::path::{Found, at_most, at_most_kept};
use obprox::{Lambda, Method, MethodKind, Model, Observer, Problem, Run, Settings, Start, Status};
use obprox_report::Report;

use crate::destination::{Destination, check_directory};
use crate::failure::Failure;
use crate::flags::{
    DataFlags, LambdaFlag, MemoryFlags, MethodFlags, ProblemFlags, ReportFlags, TableFlags, duration, in_pool, named,
    parse_solver, solver_names, whole,
};
use crate::input::{self, Test, shown};
use crate::losses::{self, Losses, Unsaved};
use crate::show::{self, Outcome, plural};
use crate::watch::{Bar, Log, Origin, PathBar, interrupt};

/// Train a sparse model: min (1/N) Σ loss + λ‖x‖₁
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Fit {
    /// LIBSVM, CSV, Parquet or Arrow file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    #[arg(required = true)]
    data: Vec<PathBuf>,

    /// Labelled data to score the model on
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// Where to write the model; - is standard output
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(std::ffi::OsString))]
    out: Option<std::ffi::OsString>,

    /// The format of the model file: JSON, or LIBLINEAR's own for its predict
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = ModelFormat::Obprox, requires = "out")]
    format: ModelFormat,

    /// Where to write the record of the run, one JSON object a line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,

    /// Save the whole state here after every epoch
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,

    /// Go on from the state in --checkpoint; the result is that of a run without a break, to the bit
    #[arg(long, requires = "checkpoint")]
    resume: bool,

    /// Stop after this long (90s, 5min, 2h) and keep the model reached by then
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "nnz")]
    time: Option<Duration>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,

    /// The method
    #[arg(long, value_name = "SOLVER", value_parser = solver_names(), default_value = MethodKind::Auto.name())]
    solver: String,

    #[command(flatten)]
    lambda: LambdaFlag,

    /// At most this many features, instead of λ: searches the λ that leaves them
    #[arg(long, value_name = "K", value_parser = whole, allow_negative_numbers = true)]
    #[arg(conflicts_with = "lambda", help_heading = "The problem")]
    nnz: Option<u64>,

    #[command(flatten)]
    problem: ProblemFlags,

    #[command(flatten)]
    method: MethodFlags,

    #[command(flatten)]
    report: ReportFlags,

    #[command(flatten)]
    table: TableFlags,

    #[command(flatten)]
    reading: DataFlags,

    #[command(flatten)]
    memory: MemoryFlags,
}

const EXAMPLES: &str = "\
Examples:
  obprox fit train.svm --test test.svm --out model.json
  obprox fit table.csv --label income --loss squared --lambda 0.05max
  obprox fit train.svm --nnz 50 --out model.json      at most 50 features
  obprox fit train.svm --test test.svm --report report.html
  obprox fit train.svm --solver prox-svrg --step auto --epochs 100 --log run.jsonl
  obprox fit train.svm --epochs 500 --checkpoint state --resume --out model.json
  obprox fit train.svm --time 60s --out model.json    what a minute gives
  obprox fit 'part-*.svm.zst' --memory 2G --out model.json    data larger than memory
  xzcat train.xz | obprox fit - --lambda 1e-4";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelFormat {
    Obprox,
    Liblinear,
}

impl Fit {
    pub fn run(self) -> Result<(), Failure> {
        // ---- everything that can be refused before a file is read --------------------------------------------
        let settings = self.method.settings(parse_solver(&self.solver))?;
        self.problem.check()?;
        self.method.check(&self.problem, self.test.is_some())?;
        self.report.check()?;
        if self.format == ModelFormat::Liblinear && matches!(self.problem.loss().task(), Task::Counts | Task::Survival)
        {
            return Err(Failure::input("--format liblinear: LIBLINEAR has no model for counts and times"));
        }
        if self.format == ModelFormat::Liblinear && self.problem.offset.is_some() {
            return Err(Failure::input("--format liblinear: LIBLINEAR has no offsets"));
        }
        if self.nnz.is_some() && settings.method != Method::Auto {
            return Err(Failure::input(format!(
                "--nnz: only auto can search λ, since {} does not end at the optimum",
                settings.method.name()
            )));
        }
        self.memory.check(&self.data, &self.reading, &self.table)?;
        let out = self.out.clone().map(Destination::from);
        self.check_paths(out.as_ref())?;
        let threads = self.reading.start_threads()?;
        interrupt::listen()?;
        in_pool(|| self.work(&settings, out.as_ref(), threads))
    }

    fn work(&self, settings: &Settings, out: Option<&Destination>, threads: usize) -> Result<(), Failure> {
        for flag in self.method.unused(parse_solver(&self.solver)) {
            show::note(&format!("{flag} has no effect on the solver {}", settings.method.name()), self.quiet);
        }

        // ---- data --------------------------------------------------------------------------------------------
        let name = PathBuf::from(named(&self.data));
        let (mut problem, test) = self.stated()?;
        if self.format == ModelFormat::Liblinear {
            Model::check_liblinear(problem.loss(), problem.labels())?;
        }

        // ---- the run -----------------------------------------------------------------------------------------
        let logged = self.log.is_some() || self.report.wanted();
        let origin = Origin::new(&name, self.test.as_deref(), &self.problem, threads);
        let mut log = logged.then(|| Log::new(self.log.clone(), origin));
        let (fit, batch, search, mut losses) = match self.nnz {
            Some(most) => {
                let (found, losses) = self.search(&problem, most, settings)?;
                problem = problem.with_lambda(Lambda::Value(found.lambda))?;
                if let Some(log) = &mut log {
                    log.replay(&problem, settings, &found.fit);
                }
                let search = format!("for at most {}, in {} fits", plural(most, "feature"), found.tried);
                (found.fit, problem.n_rows(), Some(search), losses)
            }
            None => {
                let (fit, batch, losses) = self.train(&problem, settings, test.as_ref(), log.as_mut())?;
                (fit, batch, None, losses)
            }
        };

        // ---- what is kept and told ---------------------------------------------------------------------------
        let saved = self.checkpoint.as_ref().filter(|_| losses.is_empty());
        let mut written = Vec::new();
        if let Some(out) = out {
            written.extend(self.save(&fit.model, out, &mut losses)?);
        }
        let measured: Option<Metrics> = match (&test, &self.test) {
            (Some(test), Some(path)) => Some(test.measure(&fit.model).map_err(Failure::about(&shown(path)))?),
            _ => None,
        };
        if let Some(mut log) = log {
            log.end(&fit, measured.as_ref());
            let (runs, log) = log.finish(&mut losses)?;
            written.extend(log);
            written.extend(self.report.write(&Report::new(runs), &mut losses));
        }
        written.extend(saved.map(|directory| format!("checkpoint in {}", directory.display())));
        if fit.status == Status::Stopped {
            let kept = if written.is_empty() { "ended after the step under way".into() } else { written.join(", ") };
            show::note(&format!("interrupted: {kept}"), self.quiet);
        }
        if !self.quiet && out != Some(&Destination::Stdout) {
            let names = (shown(&name), self.test.as_deref().map(shown));
            show::print(&show::fit(&Outcome {
                data: &names.0,
                problem: &problem,
                settings,
                batch,
                fit: &fit,
                search: search.as_deref(),
                test: names.1.as_deref().zip(measured.as_ref()),
                written: &written,
            }))?;
        }
        losses.end(match fit.status {
            Status::Diverged => Err(Failure::other(
                "the run diverged: F was no longer finite; try a smaller --step, --step auto or --standardize",
            )),
            _ => Ok(()),
        })
    }

    /// Reads the data, into memory or shard by shard, and states the problem.
    fn stated(&self) -> Result<(Problem, Option<Test>), Failure> {
        let flags = (&self.reading, &self.table, &self.memory);
        input::problem_of(&self.data, self.test.as_deref(), &self.problem, self.lambda.lambda, flags, self.quiet)
    }

    /// One run at the λ given; the run, the rows of its batches, and what could not be saved of it.
    fn train(
        &self,
        problem: &Problem,
        settings: &Settings,
        test: Option<&Test>,
        log: Option<&mut Log>,
    ) -> Result<(obprox::Fit, usize, Losses), Failure> {
        let mut bar = Bar::new("fit", self.quiet);
        bar.watch(problem);
        let mut batch = BatchRows(0);
        let (mut stop, mut unsaved) = (interrupt::Interrupt, Unsaved::default());
        let mut limit = interrupt::TimeLimit::new(self.time);
        let mut run = Run::new(problem, settings.clone()).observe(&mut bar).observe(&mut batch).observe(&mut stop);
        run = run.observe(&mut limit).observe(&mut unsaved);
        if let Some(log) = log {
            run = run.observe(log);
        }
        run = match test {
            Some(Test::Memory(test)) => run.validate(test),
            Some(Test::Shards(test)) => run.validate_shards(test),
            None => run,
        };
        if let Some(directory) = &self.checkpoint {
            show::announce_checkpoint(directory, self.resume, obprox::has_checkpoint(directory), self.quiet);
            run = run.checkpoint(directory, self.resume);
        }
        let fit = run.fit().map_err(Failure::about(&named(&self.data)))?;
        if fit.status == Status::Stopped && limit.is_over() {
            show::note("the time given by --time is over", self.quiet);
        }
        Ok((fit, batch.0, unsaved.losses()))
    }

    /// Many runs, for the λ that leaves at most so many features.
    fn search(&self, problem: &Problem, most: u64, settings: &Settings) -> Result<(Found, Losses), Failure> {
        let mut bar = PathBar::new("search", None, self.quiet);
        bar.watch(problem);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let found = match &self.checkpoint {
            None => at_most(problem, most, settings, Some(&mut bar)),
            Some(directory) => at_most_kept(problem, most, settings, Some(&mut bar), (directory, self.resume)),
        };
        Ok((found.map_err(Failure::about(&named(&self.data)))?, bar.losses()))
    }

    fn check_paths(&self, out: Option<&Destination>) -> Result<(), Failure> {
        let out = ("--out", out.and_then(Destination::file));
        let writes = [out, ("--log", self.log.as_deref()), self.report.writes()];
        for data in &self.data {
            input::check_paths(data, self.test.as_deref(), &self.problem, &writes)?;
        }
        match &self.checkpoint {
            Some(directory) => check_directory("--checkpoint", directory),
            None => Ok(()),
        }
    }

    /// Writes the model; a line that says where.
    fn save(&self, model: &Model, out: &Destination, losses: &mut Losses) -> Result<Option<String>, Failure> {
        let text = match self.format {
            ModelFormat::Obprox => model.to_json(),
            ModelFormat::Liblinear => model.to_liblinear()?,
        };
        save(&text, out, losses)
    }
}

/// Writes a model, or puts it elsewhere where its place is lost; a line that says where.
pub fn save(text: &str, out: &Destination, losses: &mut Losses) -> Result<Option<String>, Failure> {
    match out {
        Destination::Stdout => match show::print(text) {
            Ok(()) => Ok(None),
            Err(failure) => losses.rescue("model".as_ref(), failure, losses::text(text)),
        },
        Destination::File(path) => losses.write("model", path, losses::text(text)),
    }
}

/// Remembers how many rows a batch has, which the run decides.
struct BatchRows(usize);

impl Observer for BatchRows {
    fn start(&mut self, start: &Start) {
        self.0 = start.batch_rows;
    }
}
