//! `obprox cv`: the λ that predicts best, and the model at it.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use obprox::cv::{Rule, SHARES, Scores, Validated};
use obprox::loss::Task;
use obprox::metrics::Metrics;
use obprox::output::write_whole;
use obprox::{CrossValidation, Fit, Lambda, Problem, Run, Settings, Status};
use obprox_report::Report;
use obprox_report::log::event;

use crate::destination::Destination;
use crate::failure::Failure;
use crate::fit::save;
use crate::flags::{CheckpointFlags, DataFlags, PathFlags, ProblemFlags, ReportFlags, TableFlags, whole};
use crate::input::{self, shown};
use crate::losses::Losses;
use crate::show::{self, Outcome, bold, digits, grid, plural, sparkline, tight};
use crate::watch::{Bar, FoldsBar, Log, Origin, interrupt};

/// Choose λ by cross-validation and train on all rows with it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Cv {
    /// LIBSVM, CSV, Parquet or Arrow file, plain or .gz .bz2 .xz .zst, or a cache; - is standard input
    data: PathBuf,

    /// Labelled data to score the final model on
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// How many folds; rows of each class are dealt evenly
    #[arg(long, value_name = "K", default_value = "5", value_parser = clap::value_parser!(u32).range(2..))]
    #[arg(allow_negative_numbers = true)]
    folds: u32,

    /// Which λ to train with: the best mean loss, or the largest within one standard error of it
    #[arg(long, value_name = "RULE", value_enum, default_value_t = RuleName::Best)]
    rule: RuleName,

    /// The seed that decides the folds
    #[arg(long, value_name = "SEED", default_value = "0", value_parser = whole, allow_negative_numbers = true)]
    seed: u64,

    /// Where to write the model; - is standard output
    #[arg(long, value_name = "FILE", value_parser = clap::value_parser!(std::ffi::OsString))]
    out: Option<std::ffi::OsString>,

    /// Where to write the loss of every λ and fold, as CSV
    #[arg(long, value_name = "FILE.csv")]
    scores: Option<PathBuf>,

    /// Where to write the record of the final run, one JSON object a line
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
}

const EXAMPLES: &str = "\
Examples:
  obprox cv train.svm --out model.json --report report.html
  obprox cv train.svm --folds 10 --rule 1se --test test.svm --out model.json
  obprox cv table.csv --label income --loss squared --scores scores.csv";

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RuleName {
    Best,
    #[value(name = "1se")]
    OneSe,
}

impl From<RuleName> for Rule {
    fn from(name: RuleName) -> Self {
        match name {
            RuleName::Best => Self::Best,
            RuleName::OneSe => Self::OneSe,
        }
    }
}

impl Cv {
    pub fn run(self) -> Result<(), Failure> {
        // ---- everything that can be refused before a file is read --------------------------------------------
        self.problem.check()?;
        self.report.check()?;
        self.checkpoint.check()?;
        let out = self.out.clone().map(Destination::from);
        self.check_paths(out.as_ref())?;
        let threads = self.reading.start_threads()?;
        interrupt::listen()?;

        // ---- data --------------------------------------------------------------------------------------------
        let start = Lambda::OfMax(1.0);
        let (problem, test) = input::problem(
            &self.data,
            self.test.as_deref(),
            &self.problem,
            start,
            (&self.reading, &self.table),
            self.quiet,
        )?;

        // ---- the folds ---------------------------------------------------------------------------------------
        let settings = self.path.settings();
        let (validated, mut losses) = self.validate(&problem, &settings)?;

        // ---- all rows ----------------------------------------------------------------------------------------
        let rule = Rule::from(self.rule);
        let at = |rule| problem.clone().with_lambda(Lambda::Value(validated.chosen(rule).lambda));
        let chosen = at(rule)?;
        let origin = Origin::new(&self.data, self.test.as_deref(), &self.problem, threads);
        let logged = self.log.is_some() || self.report.wanted();
        let folds = || folds(&validated, rule);
        let mut log = logged.then(|| Log::new(self.log.clone(), origin).with_folds(folds()));
        let blended = |problem: &Problem, fit| {
            validated.blended(problem, fit, &settings).map_err(Failure::about(&shown(&self.data)))
        };
        let fit = blended(&chosen, self.refit(&chosen, &settings, log.as_mut())?)?;
        let other = match rule {
            Rule::Best => Rule::OneSe,
            Rule::OneSe => Rule::Best,
        };
        let other_fit = match (self.quiet || fit.status == Status::Stopped, validated.best == validated.one_se) {
            (true, _) => None,
            (false, true) => Some(fit.clone()),
            (false, false) => Some(blended(&at(other)?, self.refit(&at(other)?, &settings, None)?)?),
        };

        // ---- what is kept and told ---------------------------------------------------------------------------
        let mut written = Vec::new();
        if let Some(out) = &out {
            written.extend(save(&fit.model.to_json(), out, &mut losses)?);
        }
        written.extend(self.write_scores(&validated, &mut losses));
        let measured = match (&test, &self.test) {
            (Some(test), Some(path)) => Some(test.measure(&fit.model).map_err(Failure::about(&shown(path)))?),
            _ => None,
        };
        if let Some(mut log) = log {
            log.end(&fit, measured.as_ref());
            let (runs, log) = log.finish(&mut losses)?;
            written.extend(log);
            written.extend(self.report.write(&Report::new(runs), &mut losses));
        }
        if fit.status == Status::Stopped {
            let kept = if written.is_empty() { "ended after the step under way".into() } else { written.join(", ") };
            show::note(&format!("interrupted: {kept}"), self.quiet);
        }
        if !self.quiet && out != Some(Destination::Stdout) {
            let (best, one_se) = match rule {
                Rule::Best => (Some(&fit), other_fit.as_ref()),
                Rule::OneSe => (other_fit.as_ref(), Some(&fit)),
            };
            let mut page = self.folds_page(&problem, &validated, best, one_se, settings.tolerance);
            page += &self.fit_page(&chosen, &settings, &fit, measured.as_ref(), &written);
            show::print(&page)?;
        }
        losses.end(Ok(()))
    }

    /// Writes the score of every fold at every λ, where that was asked for.
    fn write_scores(&self, validated: &Validated, losses: &mut Losses) -> Option<String> {
        let path = self.scores.as_ref()?;
        let text = csv(validated);
        let outcome = write_whole(path, |out| out.write_all(text.as_bytes()));
        let outcome = outcome.map(|()| format!("scores written to {}", path.display()));
        losses.without(outcome.map_err(Failure::from))
    }

    /// Scores every λ on every fold.
    fn validate(&self, problem: &Problem, settings: &Settings) -> Result<(Validated, Losses), Failure> {
        let (lambdas, name) = (self.path.lambdas(), shown(&self.data));
        let count = lambdas.values(problem).map_err(Failure::about(&name))?.len();
        let bar = FoldsBar::new("folds", self.folds as usize, count, self.quiet);
        let watch = |progress: &_| bar.hear(progress);
        let unsaved = |error: &_| bar.unsaved.hear(error);
        let mut validation = CrossValidation::new(problem)
            .settings(settings.clone())
            .lambdas(lambdas)
            .folds(self.folds as usize)
            .seed(self.seed)
            .watch(&watch)
            .unsaved(&unsaved)
            .relaxed(if self.path.relax { &SHARES } else { &SHARES[..1] });
        if let Some((directory, resume)) = self.checkpoint.place() {
            validation = validation.checkpoint(directory, resume);
        }
        let validated = validation.run().map_err(Failure::about(&name))?;
        let losses = bar.unsaved.losses();
        if validated.stopped {
            let message = "interrupted: the folds were not done, so no λ is chosen and nothing written";
            let kept = if losses.is_empty() { self.checkpoint.kept() } else { String::new() };
            return Err(Failure::other(message.to_owned() + &kept));
        }
        Ok((validated, losses))
    }

    /// What is shown of the fit on all rows.
    fn fit_page(
        &self,
        chosen: &Problem,
        settings: &Settings,
        fit: &Fit,
        measured: Option<&Metrics>,
        written: &[String],
    ) -> String {
        let (data, test) = (shown(&self.data), self.test.as_deref().map(shown));
        show::fit(&Outcome {
            data: &data,
            problem: chosen,
            settings,
            batch: chosen.n_rows(),
            fit,
            search: Some(match Rule::from(self.rule) {
                Rule::Best => "the best held-out loss",
                Rule::OneSe => "the largest within one standard error of the best",
            }),
            test: test.as_deref().zip(measured),
            written,
        })
    }

    fn check_paths(&self, out: Option<&Destination>) -> Result<(), Failure> {
        let out = out.and_then(Destination::file);
        let (scores, log) = (("--scores", self.scores.as_deref()), ("--log", self.log.as_deref()));
        let writes = [("--out", out), scores, log, self.report.writes()];
        input::check_paths(&self.data, self.test.as_deref(), &self.problem, &writes)
    }

    fn refit(&self, problem: &Problem, settings: &Settings, log: Option<&mut Log>) -> Result<Fit, Failure> {
        let mut bar = Bar::new("refit", self.quiet);
        let mut stop = interrupt::Interrupt;
        let mut run = Run::new(problem, settings.clone()).observe(&mut bar).observe(&mut stop);
        if let Some(log) = log {
            run = run.observe(log);
        }
        run.fit().map_err(Failure::about(&shown(&self.data)))
    }

    /// What the folds said.
    fn folds_page(
        &self,
        problem: &Problem,
        validated: &Validated,
        best: Option<&Fit>,
        one_se: Option<&Fit>,
        tolerance: f64,
    ) -> String {
        let loss = match problem.loss().name() {
            "logistic" | "softmax" => "log-loss".to_owned(),
            loss => format!("{loss} loss"),
        };
        let score = match problem.loss().task() {
            Task::Binary | Task::Classes => "accuracy",
            Task::Regression | Task::Counts => "R²",
            Task::Survival => "concordance",
        };
        let row = |name: &str, scores: &Scores, fit: Option<&Fit>| {
            vec![
                name.to_owned(),
                digits(scores.lambda, 6),
                digits(scores.lambda / problem.lambda_max(), 4),
                format!("{} ± {}", digits(scores.mean, 5), digits(scores.error, 2)),
                scores.score.map_or("–".into(), |score| format!("{score:.4}")),
                fit.map_or("–".into(), |fit| fit.certificate.nnz.to_string()),
            ]
        };
        let header = ["rule", "λ", "λ/λ_max", &format!("held-out {loss}"), score, "nnz"].map(str::to_owned);
        let rows =
            vec![row("best", validated.chosen(Rule::Best), best), row("1se", validated.chosen(Rule::OneSe), one_se)];
        let (folds, lambdas) = (plural(self.folds.into(), "fold"), validated.scores.len());
        let mut page = format!("{}\n{}", bold(&format!("{folds}, {lambdas} λ")), tight(grid(header.to_vec(), rows)));
        if lambdas > 2 {
            page += "\n";
            page += &sparkline("loss", &validated.scores.iter().map(|scores| scores.mean).collect::<Vec<_>>());
            let scores: Vec<f64> = validated.scores.iter().map(|scores| scores.score.unwrap_or(f64::NAN)).collect();
            page += &sparkline(score, &scores);
        }
        let fits = validated.scores.iter().flat_map(|scores| &scores.folds);
        match fits.filter(|fold| fold.status != Status::Converged).count() {
            0 => {}
            open => page += &format!("\n{} of the folds not certified to {tolerance:e}\n", plural(open as u64, "fit")),
        }
        if self.path.relax {
            let least = |scores: &[Scores]| scores.iter().map(|scores| scores.mean).fold(f64::INFINITY, f64::min);
            let word = |(share, scores): &(f64, Vec<Scores>)| format!("{share}: {}", digits(least(scores), 5));
            let words: Vec<String> = validated.blends.iter().map(word).collect();
            page += &format!(
                "\nblend of the penalised weights and their refit: {} of the penalised ({})\n",
                validated.share,
                words.join(", ")
            );
        }
        if validated.best + 1 == lambdas && lambdas > 1 {
            page += "\nthe smallest λ is the best: a smaller --ratio may be better still\n";
        }
        page + "\n"
    }
}

/// What the folds said, for the log.
fn folds(validated: &Validated, rule: Rule) -> event::Folds {
    let score = |scores: &Scores| event::Score {
        lambda: Some(scores.lambda),
        mean: Some(scores.mean),
        error: Some(scores.error),
        score: scores.score,
        nnz: Some(scores.folds.iter().map(|fold| fold.nnz as f64).sum::<f64>() / scores.folds.len().max(1) as f64),
    };
    event::Folds {
        folds: validated.scores.first().map_or(0, |scores| scores.folds.len() as u64),
        rule: Some(if rule == Rule::OneSe { "1se" } else { "best" }.into()),
        best: Some(validated.chosen(Rule::Best).lambda),
        one_se: Some(validated.chosen(Rule::OneSe).lambda),
        scores: validated.scores.iter().map(score).collect(),
    }
}

/// A line a λ. No number here has a comma, so nothing needs quotes.
fn csv(validated: &Validated) -> String {
    let folds = validated.scores.first().map_or(0, |scores| scores.folds.len());
    let mut text = "lambda,mean,standard_error,score".to_owned();
    (1..=folds).for_each(|fold| text += &format!(",fold_{fold},nnz_{fold}"));
    text += "\n";
    for Scores { lambda, mean, error, score, folds } in &validated.scores {
        let score = score.map_or(String::new(), |score| score.to_string());
        text += &format!("{lambda},{mean},{error},{score}");
        folds.iter().for_each(|fold| text += &format!(",{},{}", fold.loss, fold.nnz));
        text += "\n";
    }
    text
}
