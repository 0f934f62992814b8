//! One row a run: what it reached, and what it proves.

use super::{Cell, Table};
use obprox::Status;

use crate::log::{Ending, Run};
use crate::report::{Entry, Problem};
use crate::text::{digits, rough, times};

/// A measure that a column is judged by, smaller being better.
type Measure = fn(&Run) -> Option<f64>;

/// What each run reached.
pub fn runs(problems: &[Problem]) -> Table {
    let of_several = |head| if problems.len() > 1 { Some(head) } else { None };
    let mut table = Table::new(
        "runs",
        &[
            ("solver", Some("solver")),
            ("status", None),
            ("F", Some("F")),
            ("f", Some("f")),
            ("density", Some("density")),
            ("nnz", Some("nnz")),
            ("gap", None),
            ("relative_gap", Some("gap")),
            ("kkt", None),
            ("epochs", None),
            ("seconds", Some("sec")),
            ("relative_runtime", Some("rel.")),
            ("test_score", Some("test")),
            ("above_optimum", None),
            ("lambda", of_several("λ")),
            ("seed", None),
            ("data", of_several("data")),
            ("log", None),
        ],
    );
    for problem in problems.iter().filter(|problem| !problem.is_path()) {
        table.rows.extend(problem.entries.iter().map(|entry| row(problem, entry)));
    }
    table.hiding_empty_columns()
}

fn row(problem: &Problem, entry: &Entry) -> Vec<Cell> {
    let (run, figures) = (&entry.run, entry.run.figures());
    let best = |cell: Cell, measure: Measure| {
        let (mine, least) = (measure(run), problem.best(measure).map(|(_, value)| value));
        Cell { best: mine.is_some() && mine == least && problem.entries.len() > 1, ..cell }
    };
    let fastest = problem.best(Run::seconds).map(|(_, time)| time.max(f64::MIN_POSITIVE));
    let relative = run.seconds().zip(fastest).map(|(time, fastest)| time / fastest);
    let above = figures.objective.zip(problem.optimum.as_ref()).map(|(objective, optimum)| objective - optimum.value);
    let status = run.end.as_ref().and_then(|end| end.status.clone()).unwrap_or_else(|| "cut_off".into());
    vec![
        Cell { shown: entry.name.clone() + remark(run), ..Cell::text(&entry.name) },
        Cell::text(status),
        match problem.is_network() {
            // Networks with another λ have another F: there is no best of them.
            true => Cell::number(figures.objective, |value| digits(value, 5)),
            false => best(Cell::number(figures.objective, |value| digits(value, 5)), |run| run.figures().objective),
        },
        best(Cell::number(figures.f, |value| digits(value, 4)), |run| run.figures().f),
        best(Cell::number(figures.density, |share| digits(100.0 * share, 3) + "%"), |run| run.figures().density),
        best(Cell::count(figures.nnz), |run| run.figures().nnz.map(|nnz| nnz as f64)),
        Cell::number(figures.gap, rough),
        best(Cell::number(figures.relative_gap, rough), |run| run.figures().relative_gap),
        Cell::number(figures.kkt, rough),
        Cell::count(run.epochs_done()),
        best(Cell::number(run.seconds(), |time| format!("{time:.3}")), Run::seconds),
        Cell::number(relative, times),
        best(Cell::number(run.score(), |score| format!("{score:.4}")), |run| run.score().map(|score| -score)),
        Cell::number(above, rough),
        Cell::number(run.start.lambda, |lambda| digits(lambda, 6)),
        Cell::count(run.start.seed),
        Cell::text(problem.data()),
        Cell::text(&run.file),
    ]
}

/// What must not be overlooked about a run.
fn remark(run: &Run) -> &'static str {
    match run.ending() {
        Ending::With(Status::Diverged) => " (diverged)",
        Ending::CutOff => " (cut off)",
        Ending::With(Status::Missed) => " (missed)",
        _ => "",
    }
}

/// What each run proves: F lies between the lower bound and itself.
pub fn certificates(problems: &[Problem]) -> Table {
    let proves = |problem: &&Problem| !problem.is_path() && !problem.is_network();
    let mut table = Table::new(
        "certificates",
        &[
            ("solver", Some("solver")),
            ("F", Some("F")),
            ("lower_bound", Some("F* is at least")),
            ("gap", Some("gap")),
            ("relative_gap", Some("gap / F")),
            ("kkt", Some("KKT distance")),
            ("gradient_mapping", Some("gradient mapping")),
            ("tol", Some("tolerance")),
            ("verdict", Some("verdict")),
        ],
    );
    for problem in problems.iter().filter(proves) {
        table.rows.extend(problem.entries.iter().map(|entry| certificate(&entry.name, &entry.run)));
    }
    table.hiding_empty_columns()
}

fn certificate(name: &str, run: &Run) -> Vec<Cell> {
    let figures = run.figures();
    let bound = figures.objective.zip(figures.gap).map(|(objective, gap)| objective - gap);
    vec![
        Cell::text(name),
        Cell::number(figures.objective, |value| digits(value, 9)),
        Cell::number(bound, |value| digits(value, 9)),
        Cell::number(figures.gap, rough),
        Cell::number(figures.relative_gap, rough),
        Cell::number(figures.kkt, rough),
        Cell::number(figures.gradient_mapping, rough),
        Cell::number(run.start.tol, |tol| format!("{tol:e}")),
        Cell::text(verdict(run)),
    ]
}

/// In two or three words.
fn verdict(run: &Run) -> &'static str {
    match run.ending() {
        Ending::With(Status::Converged) if run.figures().gap.is_some() => "certified optimum",
        Ending::With(Status::Converged) => "optimum by KKT distance",
        status => status.words(),
    }
}
