//! The pages of `net train` and `net eval`.

use obprox::Status;
use obprox_infer::Architecture;
use obprox_nn::optim::Phase;
use obprox_nn::train::{EpochRecord, Settings, Sparsity, Trained};

use crate::show::{bold, grid, pairs, percent, plural, seconds, significant, sparkline, tight, trimmed};

/// A finished run and what is worth telling of it.
pub struct Outcome<'a> {
    pub data: &'a str,
    pub architecture: Architecture,
    pub settings: &'a Settings,
    pub images: usize,
    pub test_images: usize,
    pub trained: &'a Trained,
    pub written: &'a [String],
}

/// The page of `net train`.
pub fn train(outcome: &Outcome) -> String {
    let Outcome { settings, trained, architecture, .. } = outcome;
    let epochs = plural(trained.trace.len() as u64, "epoch");
    let test = match outcome.test_images {
        0 => String::new(),
        count => format!(", {count} to test on"),
    };
    let mut page = format!("{}\n{}{test}\n", bold(outcome.data), plural(outcome.images as u64, "image"));
    page += &format!("{architecture}\n");
    page += &format!("{}, {epochs}, batch {}, seed {}\n\n", settings.method.name(), settings.batch, settings.seed);
    let last = &trained.last;
    let mut rows = figures(last.objective, last.loss, last.accuracy, &trained.sparsity, settings.penalty.lambda);
    if let Some(groups) = trained.groups {
        let (zero, all) = (groups.size - groups.nonzero, groups.size);
        rows.push(("channels", format!("{zero} of {all} groups are zero: {}", percent(zero as f64 / all as f64))));
    }
    rows.push(("training time", format!("{}, {}", seconds(last.seconds), plural(last.iterations, "step"))));
    page += &pairs(rows);
    page += &curves(&trained.trace);
    for layer in trained.sparsity.dead_layers() {
        page += &format!("\nnothing is left of {layer}: what comes behind it hears nothing of the image\n");
    }
    page += &format!("\n{}\n", in_words(trained, settings, &epochs));
    if !outcome.written.is_empty() {
        page += &format!("\n{}\n", outcome.written.join("\n"));
    }
    page
}

/// Names and values of the figures that both commands show.
pub fn figures(
    objective: Option<f64>,
    loss: Option<f64>,
    accuracy: Option<f64>,
    sparsity: &Sparsity,
    lambda: f64,
) -> Vec<(&'static str, String)> {
    let number = |value: Option<f64>| value.map_or("not computed".into(), significant);
    let count =
        |count: obprox_nn::train::Count| format!("{} ({} of {})", percent(count.density()), count.nonzero, count.size);
    let mut rows = vec![
        ("objective F", bold(&number(objective))),
        ("mean loss f", number(loss)),
        ("‖x‖₁ penalised", significant(sparsity.l1)),
        ("λ", trimmed(lambda)),
        ("density", bold(&count(sparsity.penalized))),
    ];
    if sparsity.weights != sparsity.penalized {
        rows.push(("of all weights", count(sparsity.weights)));
    }
    rows.push(("of all parameters", count(sparsity.all)));
    if let Some(accuracy) = accuracy {
        rows.push(("test accuracy", bold(&percent(accuracy))));
    }
    rows
}

/// The table of layers.
pub fn layers(sparsity: &Sparsity) -> String {
    let header = ["layer", "weights", "nonzero", "density", "λ"].map(String::from).to_vec();
    let rows = sparsity.layers.iter().map(|layer| {
        let density = layer.nonzero as f64 / layer.size.max(1) as f64;
        vec![
            layer.name.clone(),
            layer.size.to_string(),
            layer.nonzero.to_string(),
            percent(density),
            trimmed(layer.lambda),
        ]
    });
    tight(grid(header, rows.collect()))
}

fn curves(trace: &[EpochRecord]) -> String {
    if trace.len() < 2 {
        return String::new();
    }
    let curve = |name, figure: &dyn Fn(&EpochRecord) -> Option<f64>| {
        let values: Vec<f64> = trace.iter().map(|record| figure(record).unwrap_or(f64::NAN)).collect();
        sparkline(name, &values)
    };
    let mut page = String::from("\n");
    page += &curve("batch loss", &|record| Some(record.batch_loss));
    page += &curve("density", &|record| Some(record.density));
    page += &curve("accuracy", &|record| record.accuracy);
    for (words, phase) in [("first Orthant epoch", Phase::Orthant), ("zeros held from epoch", Phase::Hold)] {
        if let Some(record) = trace.iter().find(|record| record.phase == phase) {
            page += &format!(" {words}: {}\n", record.epoch);
        }
    }
    page
}

/// How the run ended, in plain words.
fn in_words(trained: &Trained, settings: &Settings, epochs: &str) -> String {
    let ended = match trained.status {
        Status::Stopped => format!("interrupted after {epochs}"),
        Status::Diverged => format!("diverged after {epochs}: these are the last good weights"),
        _ => format!("done after {epochs}"),
    };
    let Some(target) = settings.target.map(|plan| plan.target) else { return ended };
    match missed(trained, target) {
        Some(why) => format!("{ended}, and the target density was not reached: {why}"),
        None => format!("{ended}: the target was at most {}", percent(target)),
    }
}

/// Why a run is not as sparse as was asked for; nothing where it is.
pub fn missed(trained: &Trained, target: f64) -> Option<String> {
    let density = trained.sparsity.penalized.density();
    let figures = format!("{} are left, and at most {} were to be", percent(density), percent(target));
    (density > target).then(|| match trained.status {
        Status::Stopped => format!("{figures}; the run was interrupted before its plan was through"),
        Status::Diverged => format!("{figures}; the run diverged before its plan was through"),
        _ => format!("{figures}; so many weights are equal that no threshold parts them"),
    })
}
