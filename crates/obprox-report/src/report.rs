//! Runs → problems: those that minimise the same F are compared, the others stand beside them.

use obprox::Status;

use crate::chart::Colour;
use crate::log::{Ending, Run};
use crate::network;
use crate::optimum::Optimum;
use crate::text::{digits, plural, trimmed};

/// Everything that is told of some runs.
#[derive(Clone, Debug)]
pub struct Report {
    /// In the order of their first runs.
    pub problems: Vec<Problem>,
}

/// Runs that minimise the same F.
#[derive(Clone, Debug)]
pub struct Problem {
    /// In the order they were given.
    pub entries: Vec<Entry>,
    /// What is taken for their F*; nothing where no F is known, or where λ varies.
    pub optimum: Option<Optimum>,
    /// At most so many points of a curve are drawn: more are not seen, and many runs must not make a page heavy.
    pub(crate) points: usize,
}

/// A run and how it is shown.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The run.
    pub run: Run,
    /// A name that no other run of the problem has.
    pub name: String,
    /// The colour of everything about it.
    pub colour: Colour,
    /// Whether its lines are dashed, once the colours are used up.
    pub dashed: bool,
}

impl Report {
    /// Sorts runs into problems.
    pub fn new(runs: Vec<Run>) -> Self {
        let points = (3000 / runs.len().max(1)).clamp(20, 400);
        let mut groups: Vec<Vec<Run>> = Vec::new();
        for run in runs {
            match groups.iter_mut().find(|group| same_problem(&group[0], &run)) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        Self { problems: groups.into_iter().map(|group| Problem::new(group, points)).collect() }
    }

    /// What is worth knowing before the figures are believed.
    pub fn notices(&self) -> Vec<String> {
        let mut notices = Vec::new();
        if self.problems.len() > 1 {
            let text = "The runs minimise different objectives: other data, another loss or another λ";
            notices.push(format!("{text}. They are shown as {} problems, each with its own F*.", self.problems.len()));
        }
        for problem in &self.problems {
            notices.extend(problem.entries.iter().flat_map(Entry::notices));
        }
        notices
    }

    /// All runs.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.problems.iter().flat_map(|problem| &problem.entries)
    }
}

/// Whether two runs minimise the same F. Names of files say little: the same rows may lie in two files, and other rows
/// may lie where they lay before. λ_max knows the data, the loss and the weights; equal shapes and an equal λ_max are
/// the same problem.
fn same_problem(a: &Run, b: &Run) -> bool {
    if a.is_network() || b.is_network() {
        return a.is_network() && b.is_network() && network::same_problem(a, b);
    }
    let (x, y) = (&a.start, &b.start);
    let close = |x: Option<f64>, y: Option<f64>| match (x, y) {
        (Some(x), Some(y)) => (x - y).abs() <= 1e-9 * x.abs().max(y.abs()),
        _ => x == y,
    };
    let known = x.lambda_max.is_some() || x.data == y.data;
    known
        && a.is_path() == b.is_path()
        && (x.rows, x.n_features, x.nnz) == (y.rows, y.n_features, y.nnz)
        && (&x.loss, &x.labels, x.intercept, x.standardize) == (&y.loss, &y.labels, y.intercept, y.standardize)
        && x.feature_weights == y.feature_weights
        && close(x.loss_parameter, y.loss_parameter)
        && close(x.lambda, y.lambda)
        && close(x.lambda_max, y.lambda_max)
        && close(x.l2, y.l2)
        && x.penalty == y.penalty
}

impl Problem {
    fn new(runs: Vec<Run>, points: usize) -> Self {
        let names = names(&runs);
        let optimum = match runs[0].is_path() || runs[0].is_network() {
            true => None,
            false => Optimum::of(&runs.iter().collect::<Vec<_>>()),
        };
        let colours = crate::chart::PALETTE.len();
        let entry = |(place, (run, name))| Entry {
            run,
            name,
            colour: Colour::Palette(place),
            dashed: (place / colours) % 2 == 1,
        };
        Self { entries: runs.into_iter().zip(names).enumerate().map(entry).collect(), optimum, points }
    }

    /// A run of it, for what all have in common.
    fn first(&self) -> &Run {
        &self.entries[0].run
    }

    /// Whether λ varies.
    pub fn is_path(&self) -> bool {
        self.first().is_path()
    }

    /// Whether networks are trained.
    pub fn is_network(&self) -> bool {
        self.first().is_network()
    }

    /// The data, as it was named.
    pub fn data(&self) -> &str {
        self.first().start.data.as_deref().unwrap_or("unnamed data")
    }

    /// Shape, loss and λ on one line.
    pub fn summary(&self) -> String {
        let start = &self.first().start;
        if self.is_network() {
            return network::summary(self.first());
        }
        let count = |count: Option<u64>, noun: &str| match count {
            Some(count) => plural(count, noun),
            None => format!("? {noun}s"),
        };
        let mut words = format!("{} × {}", count(start.rows, "row"), count(start.n_features, "feature"));
        if let Some(loss) = &start.loss {
            words += &format!(", {loss} loss");
        }
        match (start.lambda, start.lambda_ratio) {
            (Some(lambda), Some(ratio)) => words += &format!(", λ = {} = {} λ_max", trimmed(lambda), trimmed(ratio)),
            (Some(lambda), None) => words += &format!(", λ = {}", trimmed(lambda)),
            (None, _) => {
                words += &format!(", {} λ", self.first().steps.len());
                words += &start.lambda_max.map_or(String::new(), |max| format!(", λ_max = {}", digits(max, 6)));
            }
        }
        if let Some(penalty) = &start.penalty {
            words += &format!(", penalty: {penalty}");
        }
        if let Some(l2) = start.l2.filter(|l2| *l2 > 0.0) {
            words += &format!(", λ₂ = {}", trimmed(l2));
        }
        words
    }

    /// What `score` is for the problem: classes have labels, times an order.
    pub fn score_word(&self) -> &'static str {
        let start = &self.first().start;
        match start.loss.as_deref() {
            Some("cox" | "cox-breslow") => "concordance",
            _ if start.labels.is_empty() && !self.is_network() => "R²",
            _ => "accuracy",
        }
    }

    /// F* in words.
    pub fn optimum_words(&self) -> Option<String> {
        self.optimum.as_ref().map(|optimum| optimum.words(&self.entries[optimum.run].name))
    }

    /// The best run by a measure, smaller being better.
    pub fn best(&self, measure: impl Fn(&Run) -> Option<f64>) -> Option<(&Entry, f64)> {
        let measured = self.entries.iter().filter_map(|entry| Some((entry, measure(&entry.run)?)));
        let all = measured.filter(|(_, value)| value.is_finite());
        all.reduce(|best, other| if other.1 < best.1 { other } else { best })
    }
}

impl Entry {
    fn notices(&self) -> Vec<String> {
        let run = &self.run;
        let place = match run.line {
            1 => run.file.clone(),
            line => format!("{}, line {line}", run.file),
        };
        let who = format!("{} ({place})", self.name);
        let mut notices = Vec::new();
        match (run.ending(), run.cut_line) {
            (Ending::CutOff, Some(line)) => {
                notices.push(format!("{who}: the log breaks off in line {line}; what came before it is shown."));
            }
            (Ending::CutOff, None) => {
                notices.push(format!("{who}: the log has no end: the run was killed, or still runs."));
            }
            (Ending::With(Status::Diverged), _) => {
                notices.push(format!("{who}: the run diverged; its figures are those of the last good point."));
            }
            (Ending::With(Status::Stopped), _) => notices.push(format!("{who}: the run was interrupted.")),
            _ => {}
        }
        let without = run.epochs.iter().filter(|epoch| epoch.figures.objective.is_none()).count();
        notices.extend(network::notices(run).into_iter().map(|notice| format!("{who}: {notice}")));
        let expected = run.start.eval_every.unwrap_or(1) > 1 || run.is_network();
        if without > 0 && !expected {
            notices
                .push(format!("{who}: {} without a finite F; curves pass over them.", plural(without as u64, "epoch")));
        }
        notices
    }
}

/// The solver; where several runs share one, what tells them apart.
fn names(runs: &[Run]) -> Vec<String> {
    let mut names: Vec<String> = runs.iter().map(|run| run.solver().to_owned()).collect();
    // The first setting that differs, then the next, as long as they help.
    type Setting = (&'static str, fn(&Run) -> Option<String>);
    let settings: [Setting; 12] = [
        ("density ", |run| run.start.network.target_density.map(trimmed)),
        ("λ ", |run| run.start.lambda.filter(|_| run.is_network()).map(trimmed)),
        ("step ", |run| run.start.step.map(trimmed)),
        ("batch ", |run| run.start.batch.map(|batch| batch.to_string())),
        ("N_P ", |run| run.start.np.map(|np| np.to_string())),
        ("N_O ", |run| run.start.no.clone()),
        ("", |run| run.start.switch.clone()),
        ("", |run| run.start.schedule.clone()),
        ("γ ", |run| run.start.gamma.filter(|_| run.solver() == "rda").map(trimmed)),
        ("seed ", |run| run.start.seed.map(|seed| seed.to_string())),
        ("epochs ", |run| run.start.epochs.map(|epochs| epochs.to_string())),
        ("", |run| Some(run.file.clone())),
    ];
    for (word, setting) in settings {
        let shared = |at: usize| names.iter().filter(|name| **name == names[at]).count() > 1;
        let differs = |at: usize| {
            (0..runs.len()).any(|other| names[other] == names[at] && setting(&runs[other]) != setting(&runs[at]))
        };
        let more: Vec<Option<String>> =
            (0..runs.len()).map(|at| setting(&runs[at]).filter(|_| shared(at) && differs(at))).collect();
        for (name, more) in names.iter_mut().zip(more) {
            if let Some(more) = more {
                *name += &format!(", {word}{more}");
            }
        }
    }
    let number = |(at, name): (usize, &String)| match names[..at].iter().filter(|other| *other == name).count() {
        0 => name.clone(),
        before => format!("{name} #{}", before + 1),
    };
    names.iter().enumerate().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::read;

    fn report(starts: &[&str]) -> Report {
        let line = |start: &&str| format!("{{\"event\":\"start\",{start}}}\n");
        Report::new(read(starts.iter().map(line).collect::<String>().as_bytes(), "runs.jsonl").unwrap())
    }

    const A: &str = r#""data":"a.svm","rows":10,"lambda":0.1,"lambda_max":0.5,"solver":"rda""#;

    #[test]
    fn runs_of_one_problem_are_together() {
        let moved = A.replace("a.svm", "elsewhere/a.obx").replace("rda", "prox-sg");
        let other_lambda = A.replace("0.1", "0.2");
        let other_rows = A.replace("0.5", "0.500001");
        let report = report(&[A, &other_lambda, &moved, &other_rows]);
        let sizes: Vec<usize> = report.problems.iter().map(|problem| problem.entries.len()).collect();
        assert_eq!(sizes, [2, 1, 1]);
        assert!(report.notices()[0].contains("3 problems"));
    }

    #[test]
    fn names_tell_runs_apart() {
        let with = |more: &str| format!("{A},{more}");
        let names =
            |starts: &[&str]| -> Vec<String> { report(starts).entries().map(|entry| entry.name.clone()).collect() };
        assert_eq!(names(&[A, &A.replace("rda", "auto")]), ["rda", "auto"]);
        assert_eq!(
            names(&[&with(r#""seed":1"#), &with(r#""seed":2"#), &A.replace("rda", "auto")]),
            ["rda, seed 1", "rda, seed 2", "auto"]
        );
        assert_eq!(names(&[A, A, A]), ["rda", "rda #2", "rda #3"]);
    }

    #[test]
    fn what_is_wrong_with_a_log_is_said() {
        let notices = report(&[A]).notices();
        assert_eq!(notices, ["rda (runs.jsonl): the log has no end: the run was killed, or still runs."]);
    }

    #[test]
    fn a_log_that_knows_nothing_has_a_summary() {
        let report = report(&[r#""n_features":1572529"#]);
        assert_eq!(report.problems[0].summary(), "? rows × 1572529 features, 0 λ");
        assert_eq!(
            (report.problems[0].data(), &report.problems[0].entries[0].name[..]),
            ("unnamed data", "unknown solver")
        );
    }
}
