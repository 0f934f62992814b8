//! One row an epoch, or a λ.

use super::{Cell, Table};
use crate::log::event::Figures;
use crate::report::Problem;
use crate::text::{digits, percent, rough};

/// Every epoch of every run.
pub fn epochs(problems: &[Problem]) -> Table {
    let keys = [
        "data",
        "solver",
        "epoch",
        "iterations",
        "phase",
        "step_size",
        "F",
        "f",
        "l1",
        "nnz",
        "density",
        "gap",
        "relative_gap",
        "kkt",
        "gradient_mapping",
        "score",
        "seconds",
        "lambda",
        "batch_loss",
    ];
    let mut table = Table::new("epochs", &keys.map(|key| (key, Some(key))));
    for problem in problems {
        for entry in &problem.entries {
            for epoch in &entry.run.epochs {
                let phase = epoch.phase.map(|phase| phase.name().to_owned());
                let mut row = vec![
                    Cell::text(problem.data()),
                    Cell::text(&entry.name),
                    Cell::count(Some(epoch.epoch)),
                    Cell::count(epoch.iterations),
                    Cell::text(phase.unwrap_or_default()),
                    Cell::number(epoch.step_size, |step| digits(step, 4)),
                ];
                row.extend(figures(&epoch.figures));
                row.push(Cell::number(epoch.score, |score| format!("{score:.4}")));
                row.push(Cell::number(epoch.seconds, |time| format!("{time:.4}")));
                row.push(Cell::number(epoch.lambda, |lambda| digits(lambda, 4)));
                row.push(Cell::number(epoch.batch_loss, |loss| digits(loss, 4)));
                table.rows.push(row);
            }
        }
    }
    table
}

/// Every round of `auto`: what it was about, what it compacted and what it certified.
pub fn rounds(problems: &[Problem]) -> Table {
    let columns = [
        ("data", None),
        ("solver", None),
        ("round", Some("round")),
        ("stage", Some("stage")),
        ("at_lambda", Some("at λ")),
        ("columns", Some("features considered")),
        ("working_set", Some("working set")),
        ("steps", Some("Newton steps")),
        ("nnz", Some("nnz")),
        ("F", Some("F")),
        ("relative_gap", Some("certified gap")),
        ("seconds", Some("sec")),
    ];
    let mut table = Table::new("rounds", &columns);
    for problem in problems {
        for entry in &problem.entries {
            let mut before = 0;
            for epoch in &entry.run.epochs {
                let Some(round) = epoch.round else { continue };
                let steps = epoch.iterations.map(|steps| steps.saturating_sub(before));
                before = epoch.iterations.unwrap_or(before);
                table.rows.push(vec![
                    Cell::text(problem.data()),
                    Cell::text(&entry.name),
                    Cell::count(Some(epoch.epoch)),
                    Cell::text(round.stage.name()),
                    Cell::number(Some(round.at_lambda), |lambda| digits(lambda, 4)),
                    Cell::count(Some(round.columns as u64)),
                    Cell::count(Some(round.working_set as u64)),
                    Cell::count(steps),
                    Cell::count(epoch.figures.nnz),
                    Cell::number(epoch.figures.objective, |value| digits(value, 7)),
                    Cell::number(epoch.figures.relative_gap, rough),
                    Cell::number(epoch.seconds, |time| format!("{time:.4}")),
                ]);
            }
        }
    }
    if table.rows.iter().any(|row| row[1] != table.rows[0][1]) {
        table.columns[1].head = Some("solver".into());
    }
    table
}

fn figures(figures: &Figures) -> [Cell; 9] {
    [
        Cell::number(figures.objective, |value| digits(value, 7)),
        Cell::number(figures.f, |value| digits(value, 7)),
        Cell::number(figures.l1, |value| digits(value, 6)),
        Cell::count(figures.nnz),
        Cell::number(figures.density, percent),
        Cell::number(figures.gap, rough),
        Cell::number(figures.relative_gap, rough),
        Cell::number(figures.kkt, rough),
        Cell::number(figures.gradient_mapping, rough),
    ]
}

/// Every λ of a path.
pub fn path(problems: &[Problem]) -> Table {
    let columns = [
        ("data", None),
        ("lambda", Some("λ")),
        ("lambda_ratio", Some("λ/λ_max")),
        ("status", None),
        ("F", Some("F")),
        ("f", Some("f")),
        ("l1", Some("‖x‖₁")),
        ("nnz", Some("nnz")),
        ("density", None),
        ("gap", None),
        ("relative_gap", Some("gap")),
        ("kkt", None),
        ("gradient_mapping", None),
        ("epochs", None),
        ("seconds", Some("sec")),
        ("test_score", Some("test score")),
        ("test_loss", Some("test loss")),
    ];
    let mut table = Table::new("path", &columns);
    for problem in problems {
        for step in problem.entries.iter().flat_map(|entry| &entry.run.steps) {
            let mut row = vec![
                Cell::text(problem.data()),
                Cell::number(step.lambda, |lambda| digits(lambda, 4)),
                Cell::number(step.lambda_ratio, |ratio| digits(ratio, 4)),
                Cell::text(step.status.clone().unwrap_or_default()),
            ];
            row.extend(figures(&step.figures));
            row.push(Cell::count(step.epochs));
            row.push(Cell::number(step.seconds, |time| format!("{time:.4}")));
            row.push(Cell::number(step.score, |score| format!("{score:.4}")));
            row.push(Cell::number(step.test_loss, |loss| digits(loss, 5)));
            table.rows.push(row);
        }
    }
    table.hiding_empty_columns()
}

/// Every λ of a cross-validation.
pub fn folds(problems: &[Problem]) -> Table {
    let columns = [
        ("data", None),
        ("lambda", Some("λ")),
        ("mean", Some("held-out loss")),
        ("standard_error", Some("standard error")),
        ("score", Some("held-out score")),
        ("nnz", Some("mean nnz")),
        ("chosen", Some("chosen")),
    ];
    let mut table = Table::new("cv", &columns);
    for problem in problems {
        for folds in problem.entries.iter().filter_map(|entry| entry.run.folds.as_ref()) {
            for score in &folds.scores {
                let chosen = match (score.lambda == folds.best, score.lambda == folds.one_se) {
                    _ if score.lambda.is_none() => "",
                    (true, true) => "best, 1se",
                    (true, false) => "best",
                    (false, true) => "1se",
                    (false, false) => "",
                };
                table.rows.push(vec![
                    Cell::text(problem.data()),
                    Cell::number(score.lambda, |lambda| digits(lambda, 4)),
                    Cell::number(score.mean, |mean| digits(mean, 5)),
                    Cell::number(score.error, |error| digits(error, 2)),
                    Cell::number(score.score, |score| format!("{score:.4}")),
                    Cell::number(score.nnz, |nnz| digits(nnz, 4)),
                    Cell::text(chosen),
                ]);
            }
        }
    }
    table.hiding_empty_columns()
}
