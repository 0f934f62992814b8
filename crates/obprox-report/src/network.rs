//! What is shown of runs that train networks, beside what all runs have: accuracy, loss and λ by epoch, density layer by
//! layer, training time by the kind of steps, and which classes are taken for which.

use crate::chart::{Axis, Bars, Colour, Mark};
use crate::charts::{Named, Over, curves};
use crate::log::Run;
use crate::log::event::Epoch;
use crate::report::{Entry, Problem};
use crate::table::{Cell, Column, Table};
use crate::text::{grouped, percent, plural, seconds, trimmed};

/// So many layers are shown one by one.
const LAYERS: usize = 40;

/// Network, images and λ on one line.
pub(crate) fn summary(run: &Run) -> String {
    let network = &run.start.network;
    let mut words = network.network.clone().unwrap_or_default();
    if let Some(width) = network.width.filter(|width| *width != 1.0) {
        words += &format!(", width {}", trimmed(width));
    }
    if let Some(parameters) = network.parameters {
        words += &format!(", {} parameters", grouped(parameters));
    }
    if let Some(images) = network.images {
        words += &format!(", {}", plural(images, "image"));
    }
    if let Some(images) = network.test_images.filter(|images| *images > 0) {
        words += &format!(", {images} to test on");
    }
    if !network.classes.is_empty() {
        words += &format!(", {} classes", network.classes.len());
    }
    words
}

/// Whether two runs train the same network on the same images. Their λ may differ: what is compared is how accurate and how
/// sparse they come out, and F has no optimum that anyone knows.
pub(crate) fn same_problem(a: &Run, b: &Run) -> bool {
    let (x, y) = (&a.start.network, &b.start.network);
    a.start.data == b.start.data
        && (&x.network, x.width, x.parameters) == (&y.network, y.width, y.parameters)
        && (x.images, x.test_images) == (y.images, y.test_images)
}

/// The charts of a problem of networks, but for those that every problem has.
pub(crate) fn charts(problem: &Problem) -> Vec<Named> {
    let mut all = Vec::new();
    let by_epoch = |kind, title, y: Axis, measure: fn(&Epoch) -> Option<f64>| {
        curves(problem, title, Over::Epochs, y, measure).map(|chart| Named::new(kind, "", chart))
    };
    all.extend(by_epoch(
        "accuracy-epochs",
        "Accuracy on the test images by epoch",
        Axis::linear("").percent(),
        |epoch| epoch.score,
    ));
    all.extend(by_epoch("loss-epochs", "Mean loss of the batches by epoch", Axis::linear(""), |epoch| {
        epoch.batch_loss
    }));
    all.extend(by_epoch("lambda-epochs", "λ by epoch, which follows the target density", Axis::log(""), |epoch| {
        epoch.lambda.filter(|lambda| *lambda > 0.0)
    }));
    for entry in &problem.entries {
        all.extend(layers(problem, entry));
        all.extend(phases(problem, entry));
    }
    all
}

/// A line at the density that was asked for, where all runs ask for the same.
pub(crate) fn target(problem: &Problem) -> Option<Mark> {
    let asked = |entry: &Entry| entry.run.start.network.target_density;
    let first = problem.entries.first().and_then(asked)?;
    let same = problem.entries.iter().all(|entry| asked(entry) == Some(first));
    same.then(|| Mark::Level(first, format!("target {}", percent(first))))
}

fn of(problem: &Problem, entry: &Entry, words: &str) -> String {
    if problem.entries.len() == 1 { words.to_owned() } else { format!("{words}: {}", entry.name) }
}

fn layers(problem: &Problem, entry: &Entry) -> Option<Named> {
    let layers = &entry.run.end.as_ref()?.network.layers;
    let mut bars = Bars::new(of(problem, entry, "Density by layer"));
    for layer in layers.iter().take(LAYERS) {
        let density = layer.nnz as f64 / layer.size.max(1) as f64;
        let words = format!("{} of {}", percent(density), grouped(layer.size));
        let colour = if layer.nnz == 0 { Colour::Palette(4) } else { entry.colour };
        bars = bars.bar(&layer.name, density, words, colour);
    }
    let caption = match layers.len() > LAYERS {
        true => format!("The first {LAYERS} of {} layers.", layers.len()),
        false => "The share of each layer's weights that is not zero.".into(),
    };
    (!bars.bars.is_empty()).then(|| Named::new("layers", caption, bars))
}

fn phases(problem: &Problem, entry: &Entry) -> Option<Named> {
    let times = &entry.run.end.as_ref()?.network.phase_seconds;
    let mut bars = Bars::new(of(problem, entry, "Training time by kind of steps"));
    for (phase, time) in times.iter().filter(|(_, time)| *time > 0.0) {
        let words = match phase {
            obprox::switch::Phase::Prox => "Prox-SG steps",
            obprox::switch::Phase::Orthant => "Orthant steps",
            obprox::switch::Phase::Hold => "zeros held",
            obprox::switch::Phase::Newton => "Newton steps",
        };
        bars = bars.bar(words, *time, seconds(*time), entry.colour);
    }
    (!bars.bars.is_empty()).then(|| Named::new("phase-times", "Without evaluation.", bars))
}

/// Every layer of every run.
pub fn layer_table(problems: &[Problem]) -> Table {
    let columns = [
        ("data", None),
        ("run", Some("run")),
        ("layer", Some("layer")),
        ("size", Some("weights")),
        ("nnz", Some("nonzero")),
        ("density", Some("density")),
    ];
    let mut table = Table::new("layers", &columns);
    for problem in problems {
        for entry in &problem.entries {
            let layers = entry.run.end.as_ref().map_or(&[][..], |end| &end.network.layers);
            table.rows.extend(layers.iter().map(|layer| {
                vec![
                    Cell::text(problem.data()),
                    Cell::text(&entry.name),
                    Cell::text(&layer.name),
                    Cell::count(Some(layer.size)),
                    Cell::count(Some(layer.nnz)),
                    Cell::number(Some(layer.nnz as f64 / layer.size.max(1) as f64), percent),
                ]
            }));
        }
    }
    table
}

/// Test images of each class, by the class that is predicted, of every run.
pub fn confusion_table(problems: &[Problem]) -> Table {
    let mut table =
        Table::new("confusion", &[("data", None), ("run", None), ("class", Some("class")), ("right", Some("right"))]);
    let entries = || problems.iter().flat_map(|problem| problem.entries.iter().map(move |entry| (problem, entry)));
    let classes = entries().map(|(_, entry)| confusion(&entry.run).len()).max().unwrap_or(0);
    let named = entries().map(|(_, entry)| &entry.run).find(|run| confusion(run).len() == classes);
    for class in 0..classes {
        let name = named.map_or_else(|| class.to_string(), |run| class_name(run, class));
        table.columns.push(Column { key: name.clone(), head: Some(name) });
    }
    for (problem, entry) in entries() {
        for (class, counts) in confusion(&entry.run).iter().enumerate() {
            let all: u64 = counts.iter().sum();
            let right = counts.get(class).filter(|_| all > 0).map(|&right| right as f64 / all as f64);
            let mut row = vec![
                Cell::text(problem.data()),
                Cell::text(&entry.name),
                Cell::text(class_name(&entry.run, class)),
                Cell::number(right, percent),
            ];
            let cell = |(predicted, count): (usize, &u64)| Cell {
                best: predicted == class,
                shown: if *count == 0 { "·".into() } else { count.to_string() },
                ..Cell::count(Some(*count))
            };
            row.extend(counts.iter().enumerate().map(cell));
            row.resize_with(4 + classes, || Cell::count(None));
            table.rows.push(row);
        }
    }
    table
}

fn confusion(run: &Run) -> &[Vec<u64>] {
    run.end.as_ref().map_or(&[], |end| &end.network.confusion)
}

fn class_name(run: &Run, class: usize) -> String {
    run.start.network.classes.get(class).cloned().unwrap_or_else(|| class.to_string())
}

/// What must not be overlooked about a run.
pub(crate) fn notices(run: &Run) -> Vec<String> {
    let mut notices = Vec::new();
    let Some(end) = &run.end else { return notices };
    if let Some(why) = &end.network.missed {
        notices.push(format!("the target density was not reached: {why}."));
    }
    let dead = |layer: &&crate::log::event::Layer| layer.nnz == 0 && layer.size > 0;
    let dead: Vec<&str> = end.network.layers.iter().filter(dead).map(|layer| layer.name.as_str()).collect();
    if !dead.is_empty() {
        notices.push(format!("nothing is left of {}: what comes behind hears nothing of the image.", dead.join(", ")));
    }
    notices
}
