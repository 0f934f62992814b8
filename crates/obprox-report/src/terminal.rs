//! Curves in a terminal: a line of text a run, all of one problem on one scale.

use crate::log::Run;
use crate::log::event::Epoch;
use crate::report::Problem;
use crate::text::{percent, rough};

/// Characters of a curve; two of them and a name fit in 80 columns.
const WIDTH: usize = 26;
/// Characters of a name.
const NAME: usize = 20;

/// Values as heights between two ends; gaps where a value is not finite.
pub fn heights(values: impl IntoIterator<Item = f64>, low: f64, high: f64) -> String {
    let height = |value: f64| match (value.is_finite(), high > low) {
        (false, _) => ' ',
        (true, false) => '▁',
        (true, true) => {
            let share = ((value - low) / (high - low)).clamp(0.0, 1.0);
            ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(7.0 * share).round() as usize]
        }
    };
    values.into_iter().map(height).collect()
}

/// F − F* on a logarithmic scale, and density, by epoch: a line a run. Nothing where there is nothing to draw.
pub fn curves(problem: &Problem) -> String {
    if problem.is_network() {
        return of_networks(problem);
    }
    let Some(optimum) = &problem.optimum else { return String::new() };
    let above = |epoch: &Epoch| {
        let above = epoch.figures.objective? - optimum.value;
        (above > 0.0 && above.is_finite()).then(|| above.log10())
    };
    let (Some(objective), density) = (ends(problem, above), ends(problem, |epoch| epoch.figures.density)) else {
        return String::new();
    };
    let epochs = problem.entries.iter().map(|entry| entry.run.epochs.len()).max().unwrap_or(0);
    if epochs < 2 {
        return String::new();
    }
    let sign = if optimum.certified { "F − F*" } else { "F − least F" };
    let power = |exponent: f64| rough(10f64.powf(exponent));
    let mut text = line(
        "",
        &format!("{sign} {} … {}", power(objective.1), power(objective.0)),
        &density.map_or(String::new(), |(low, high)| format!("density {} … {}", percent(high), percent(low))),
    );
    for entry in &problem.entries {
        let first = heights(sampled(&entry.run, epochs, above), objective.0, objective.1);
        let second = density.map_or(String::new(), |(low, high)| {
            heights(sampled(&entry.run, epochs, |epoch| epoch.figures.density), low, high)
        });
        text += &line(&entry.name, &first, &second);
    }
    text
}

/// The loss of the batches, and density, by epoch.
fn of_networks(problem: &Problem) -> String {
    let epochs = problem.entries.iter().map(|entry| entry.run.epochs.len()).max().unwrap_or(0);
    let (loss, density) = (|epoch: &Epoch| epoch.batch_loss, |epoch: &Epoch| epoch.figures.density);
    let (Some(losses), Some(densities), true) = (ends(problem, loss), ends(problem, density), epochs >= 2) else {
        return String::new();
    };
    let mut text = line(
        "",
        &format!("loss {} … {}", rough(losses.1), rough(losses.0)),
        &format!("density {} … {}", percent(densities.1), percent(densities.0)),
    );
    for entry in &problem.entries {
        let first = heights(sampled(&entry.run, epochs, loss), losses.0, losses.1);
        text += &line(&entry.name, &first, &heights(sampled(&entry.run, epochs, density), densities.0, densities.1));
    }
    text
}

fn line(name: &str, first: &str, second: &str) -> String {
    let name: String = match name.char_indices().nth(NAME) {
        Some(_) => name.chars().take(NAME - 1).chain(['…']).collect(),
        None => name.to_owned(),
    };
    let line = format!("{name:<NAME$}  {first:<WIDTH$}  {second}");
    line.trim_end().to_owned() + "\n"
}

/// The least and the largest of a measure over all runs; but for the one that certifies the optimum, beside which all
/// others would look the same.
fn ends(problem: &Problem, measure: impl Fn(&Epoch) -> Option<f64>) -> Option<(f64, f64)> {
    let certifies =
        |place: usize| problem.optimum.as_ref().is_some_and(|optimum| optimum.certified && optimum.run == place);
    let counts = |place: usize| problem.entries.len() == 1 || !certifies(place);
    let entries = problem.entries.iter().enumerate().filter(|(place, _)| counts(*place)).map(|(_, entry)| entry);
    let all = entries.flat_map(|entry| &entry.run.epochs).filter_map(measure);
    all.filter(|value| value.is_finite()).fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    })
}

/// A measure at evenly spaced epochs out of `epochs`; nothing after the run's last.
fn sampled(run: &Run, epochs: usize, measure: impl Fn(&Epoch) -> Option<f64>) -> Vec<f64> {
    let width = WIDTH.min(epochs);
    let place = |at: usize| at * (epochs - 1) / (width - 1).max(1);
    let places = (0..width).map(place).take_while(|&place| place < run.epochs.len());
    places.map(|place| measure(&run.epochs[place]).unwrap_or(f64::NAN)).collect()
}
