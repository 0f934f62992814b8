//! What was learnt, and how it can be done again.

use super::{Cell, Column, Table};
use crate::charts::feature_name;
use crate::log::Run;
use crate::report::{Entry, Problem};
use crate::text::{signed, trimmed};

/// The largest weights of every run.
pub fn weights(problems: &[Problem]) -> Table {
    let columns = [
        ("data", None),
        ("solver", Some("solver")),
        ("feature", None),
        ("name", Some("feature")),
        ("label", None),
        ("weight", Some("weight")),
    ];
    let mut table = Table::new("weights", &columns);
    for problem in problems {
        for entry in &problem.entries {
            table.rows.extend(entry.run.weights().iter().map(|weight| {
                let name = feature_name(weight.feature, weight.name.as_deref(), weight.label);
                vec![
                    Cell::text(problem.data()),
                    Cell::text(&entry.name),
                    Cell::count(Some(weight.feature)),
                    Cell { shown: name, exact: weight.name.clone().into(), best: false },
                    Cell::number(weight.label, |label| label.to_string()),
                    Cell::number(weight.value, signed),
                ]
            }));
        }
    }
    table
}

/// A setting's name in the log, for people, and its value.
type Setting = (&'static str, &'static str, fn(&Run) -> Option<String>);

const SETTINGS: [Setting; 46] = [
    ("data", "data", |run| run.start.data.clone()),
    ("test", "test data", |run| run.start.test.clone()),
    ("network", "network", |run| run.start.network.network.clone()),
    ("width", "width", |run| run.start.network.width.map(trimmed)),
    ("parameters", "parameters", |run| count(run.start.network.parameters)),
    ("images", "images", |run| count(run.start.network.images)),
    ("test_images", "test images", |run| count(run.start.network.test_images)),
    ("start", "first weights", |run| run.start.network.start.clone()),
    ("target_density", "target density", |run| run.start.network.target_density.map(crate::text::percent)),
    ("rows", "rows", |run| count(run.start.rows)),
    ("n_features", "features", |run| count(run.start.n_features)),
    ("nnz", "nonzeros of the data", |run| count(run.start.nnz)),
    ("storage", "held as", |run| run.start.storage.clone()),
    ("weights", "row weights", |run| run.start.weights.clone()),
    ("feature_weights", "feature weights", |run| run.start.feature_weights.clone()),
    ("labels", "labels", |run| labels(&run.start.labels)),
    ("loss", "loss", |run| run.start.loss.clone()),
    ("loss_parameter", "its parameter", |run| run.start.loss_parameter.map(trimmed)),
    ("lambda", "λ", |run| run.start.lambda.map(|lambda| format!("{lambda:?}"))),
    ("lambda_max", "λ_max", |run| run.start.lambda_max.map(|lambda| format!("{lambda:?}"))),
    ("lambda_ratio", "λ/λ_max", |run| run.start.lambda_ratio.map(trimmed)),
    ("penalty", "penalty", |run| run.start.penalty.clone()),
    ("l2", "λ₂", |run| run.start.l2.map(trimmed)),
    ("intercept", "intercept", |run| yes(run.start.intercept)),
    ("standardize", "standardised", |run| yes(run.start.standardize)),
    ("solver", "solver", |run| run.start.solver.clone()),
    ("epochs", "epochs at most", |run| count(run.start.epochs)),
    ("batch", "batch", |run| count(run.start.batch.filter(|_| stochastic(run)))),
    ("step", "first step size", |run| run.start.step.filter(|_| steps(run)).map(trimmed)),
    ("schedule", "schedule", |run| run.start.schedule.clone().filter(|_| steps(run))),
    ("decay", "decay", |run| run.start.decay.filter(|_| steps(run)).map(trimmed)),
    ("decay_every", "decay every", |run| {
        run.start.network.decay_every.map(|epochs| crate::text::plural(epochs, "epoch"))
    }),
    ("warmup", "warm-up epochs", |run| run.start.network.warmup.map(trimmed)),
    ("momentum", "momentum", |run| run.start.network.momentum.map(trimmed)),
    ("augment", "augmentation", augmentation),
    ("switch", "switch", |run| run.start.switch.clone()),
    ("np", "N_P", |run| count(run.start.np)),
    ("no", "N_O", |run| run.start.no.clone()),
    ("gamma", "γ", |run| run.start.gamma.filter(|_| run.solver() == "rda").map(trimmed)),
    ("average", "averaged", |run| yes(run.start.average.filter(|_| run.solver() == "prox-svrg"))),
    ("tol", "tolerance", |run| run.start.tol.map(|tol| format!("{tol:e}"))),
    ("seed", "seed", |run| count(run.start.seed.filter(|_| stochastic(run)))),
    ("eval_every", "F computed every", |run| run.start.eval_every.map(|epochs| crate::text::plural(epochs, "epoch"))),
    ("threads", "threads", |run| count(run.start.threads)),
    ("resumed_epochs", "resumed epochs", |run| count(run.start.resumed_epochs.filter(|epochs| *epochs > 0))),
    ("version", "version of obprox", |run| Some(run.start.version.clone()).filter(|version| !version.is_empty())),
];

/// Every setting, a column a run.
pub fn settings(problems: &[Problem]) -> Table {
    let entries: Vec<&Entry> = problems.iter().flat_map(|problem| &problem.entries).collect();
    let mut table = Table::new("settings", &[("setting", Some("setting"))]);
    for entry in &entries {
        table.columns.push(Column { key: entry.name.clone(), head: Some(entry.name.clone()) });
    }
    for (key, word, value) in SETTINGS {
        let values: Vec<Option<String>> = entries.iter().map(|entry| value(&entry.run)).collect();
        if values.iter().any(Option::is_some) {
            let mut row = vec![Cell { shown: word.into(), exact: key.into(), best: false }];
            row.extend(values.into_iter().map(|value| Cell {
                shown: value.clone().unwrap_or("–".into()),
                exact: value.into(),
                best: false,
            }));
            table.rows.push(row);
        }
    }
    table
}

fn augmentation(run: &Run) -> Option<String> {
    let (flip, pad) = (run.start.network.flip?, run.start.network.pad?);
    let mirrored = if flip { "mirrored" } else { "not mirrored" };
    Some(match pad {
        0 => mirrored.to_owned(),
        pad => format!("{mirrored}, shifted by up to {}", crate::text::plural(pad, "pixel")),
    })
}

fn count(value: Option<u64>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn yes(value: Option<bool>) -> Option<String> {
    value.map(|value| if value { "yes".into() } else { "no".into() })
}

fn labels(labels: &[f64]) -> Option<String> {
    let mut words: Vec<String> = labels.iter().take(6).map(f64::to_string).collect();
    if labels.len() > 6 {
        words.push(format!("… ({} in all)", labels.len()));
    }
    (!words.is_empty()).then(|| words.join(", "))
}

fn stochastic(run: &Run) -> bool {
    run.solver() != "auto"
}

fn steps(run: &Run) -> bool {
    stochastic(run) && run.solver() != "rda"
}
