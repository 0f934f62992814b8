//! The charts of a problem, each with a name of its own: in the page and among the pictures they are the same.

use obprox::switch::Phase;

use crate::chart::{Axis, Bars, Chart, Colour, Dot, Figure, Panel, Series};
use crate::log::Run;
use crate::log::event::{Curve, Epoch, Step, Weight};
use crate::network;
use crate::report::{Entry, Problem};
use crate::text::{seconds, signed, times};

/// More curves of a path than this are a grey mass.
const CURVES: usize = 60;
/// So many of them are coloured and named.
const NAMED: usize = 8;
/// So many of the largest weights are shown.
const WEIGHTS: usize = 20;

/// A chart and what it is called.
#[derive(Clone, Debug)]
pub struct Named {
    /// What kind of chart it is.
    pub kind: &'static str,
    /// A word for files and anchors that no other chart of the problem has.
    pub name: String,
    /// What a reader should know beside it.
    pub caption: String,
    /// The chart.
    pub panel: Panel,
}

impl Named {
    pub(crate) fn new(kind: &'static str, caption: impl Into<String>, panel: impl Into<Panel>) -> Self {
        Self { kind, name: kind.to_owned(), caption: caption.into(), panel: panel.into() }
    }

    /// As a picture by itself.
    pub fn figure(&self) -> Figure {
        Figure::of(self.panel.clone())
    }
}

/// All charts of a problem that have something to show.
pub fn charts(problem: &Problem) -> Vec<Named> {
    let mut all = Vec::new();
    if problem.is_network() {
        all.extend(network::charts(problem));
    }
    for over in [Over::Epochs, Over::Seconds] {
        all.extend(objective(problem, over));
        all.extend(density(problem, over));
    }
    all.extend(gap(problem));
    all.extend(runtimes(problem));
    for entry in &problem.entries {
        all.extend(folds(problem, entry));
        all.extend(path_weights(entry));
        all.extend(path_nonzeros(entry));
        all.extend(path_score(problem, entry));
    }
    all.extend(weights(problem));
    for at in 1..all.len() {
        let before = all[..at].iter().filter(|other| other.kind == all[at].kind).count();
        if before > 0 {
            all[at].name += &format!("-{}", before + 1);
        }
    }
    all
}

/// What curves are drawn against.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Epochs,
    Seconds,
}

impl Over {
    fn axis(self, problem: &Problem) -> Axis {
        let rounds = |entry: &Entry| entry.run.solver() == "auto";
        match self {
            Self::Seconds if spread_of_times(problem) > 4.0 => Axis::log("seconds of training"),
            Self::Seconds => Axis::linear("seconds of training").including(0.0),
            Self::Epochs if problem.entries.iter().all(rounds) => Axis::linear("round"),
            Self::Epochs if problem.entries.iter().any(rounds) => Axis::linear("epoch (of auto: round)"),
            Self::Epochs => Axis::linear("epoch"),
        }
    }

    fn of(self, epoch: &Epoch) -> Option<f64> {
        match self {
            Self::Epochs => Some(epoch.epoch as f64),
            Self::Seconds => epoch.seconds,
        }
    }
}

/// The slowest run against the fastest: a quick one is a stroke at the border beside a slow one.
fn spread_of_times(problem: &Problem) -> f64 {
    let times = || problem.entries.iter().filter_map(|entry| entry.run.seconds()).filter(|time| *time > 0.0);
    times().fold(0.0, f64::max) / times().fold(f64::INFINITY, f64::min)
}

/// A measure of each run along its epochs.
pub(crate) fn curves(
    problem: &Problem,
    title: &str,
    over: Over,
    y: Axis,
    measure: impl Fn(&Epoch) -> Option<f64>,
) -> Option<Chart> {
    let x = over.axis(problem);
    let mut chart = Chart::new(title, x, y);
    let alone = problem.entries.len() == 1;
    for entry in &problem.entries {
        let point = |epoch: &Epoch| {
            let (x, y) = (over.of(epoch)?, measure(epoch)?);
            (chart.x.takes(x) && chart.y.takes(y)).then_some((x, y))
        };
        let points: Vec<Option<(f64, f64)>> = entry.run.epochs.iter().map(point).collect();
        // The last epoch before a switch is where one kind of steps ends and the other begins.
        let switches = entry.run.switches();
        let dots = switches
            .iter()
            .filter_map(|&(at, to)| points[at - 1].map(|(x, y)| Dot { x, y, filled: to != Phase::Prox }));
        let mut kept: Vec<usize> = (0..points.len()).filter(|&at| points[at].is_some()).collect();
        thin_out(&mut kept, problem.points, |at| switches.iter().any(|&(place, _)| place == at + 1));
        let line = kept.into_iter().filter_map(|at| points[at]);
        let mut series = Series::line(&entry.name, line).coloured(entry.colour).dots(dots);
        series.dashed = entry.dashed;
        if alone {
            chart.bands.extend(bands(&entry.run, over));
        }
        chart.series.push(series);
    }
    (!chart.is_empty()).then_some(chart)
}

/// Where the steps of a run are Orthant steps, and where its zeros are held.
fn bands(run: &Run, over: Over) -> Vec<crate::chart::Band> {
    let mut bands = Vec::new();
    let first = run.epochs.first().and_then(|epoch| epoch.phase).map(|phase| (0, phase));
    let stretches: Vec<(usize, Phase)> = first.into_iter().chain(run.switches()).collect();
    let edge = |at: usize| if at == 0 { Some(0.0) } else { over.of(&run.epochs[at - 1]) };
    for (place, &(at, phase)) in stretches.iter().enumerate() {
        let end = stretches.get(place + 1).map_or(run.epochs.len(), |next| next.0);
        let name = match phase {
            Phase::Orthant => "Orthant steps",
            Phase::Hold => "zeros held",
            Phase::Prox | Phase::Newton => continue,
        };
        if let (Some(from), Some(to)) = (edge(at), edge(end)) {
            let colour = (phase == Phase::Hold).then_some(Colour::Palette(2));
            bands.push(crate::chart::Band { from, to, name: name.into(), colour });
        }
    }
    bands
}

/// Leaves out points of a long curve evenly; the first, the last and the ones that matter stay.
fn thin_out(places: &mut Vec<usize>, most: usize, matters: impl Fn(usize) -> bool) {
    let count = places.len();
    if count > most {
        let stride = count as f64 / most as f64;
        let chosen = |place: usize| (place as f64 / stride) as usize != ((place + 1) as f64 / stride) as usize;
        let mut place = 0;
        places.retain(|&at| {
            let keep = place == 0 || place + 1 == count || chosen(place) || matters(at);
            place += 1;
            keep
        });
    }
}

fn objective(problem: &Problem, over: Over) -> Option<Named> {
    let optimum = problem.optimum.as_ref()?;
    let title = match (optimum.certified, over) {
        (true, Over::Epochs) => "F − F* by epoch",
        (true, Over::Seconds) => "F − F* by time",
        (false, Over::Epochs) => "F − smallest F seen, by epoch",
        (false, Over::Seconds) => "F − smallest F seen, by time",
    };
    let measure = |epoch: &Epoch| epoch.figures.objective.map(|objective| objective - optimum.value);
    let chart = curves(problem, title, over, Axis::log(""), measure)?;
    let kind = if over == Over::Epochs { "objective-epochs" } else { "objective-seconds" };
    Some(Named::new(kind, "", chart))
}

fn density(problem: &Problem, over: Over) -> Option<Named> {
    let (kind, title) = match over {
        Over::Epochs => ("density-epochs", "Density (weights that are not zero) by epoch"),
        Over::Seconds => ("density-seconds", "Density (weights that are not zero) by time"),
    };
    let largest = problem.entries.iter().flat_map(|entry| &entry.run.epochs).filter_map(|epoch| epoch.figures.density);
    let largest = largest.fold(0.0, f64::max);
    let mut y = Axis::linear("").percent().including(0.0);
    // Sparse curves need the room; full ones should end at the top.
    if largest > 0.8 {
        y = y.including(1.0);
    }
    let mut chart = curves(problem, title, over, y, |epoch| epoch.figures.density)?;
    chart.marks.extend(network::target(problem));
    Some(Named::new(kind, "", chart))
}

/// What the dots on the curves mean, where there are any.
pub(crate) fn switch_words(problem: &Problem) -> Option<&'static str> {
    let to = |phase: Phase| problem.entries.iter().any(|entry| entry.run.switches().iter().any(|one| one.1 == phase));
    match (to(Phase::Orthant) || to(Phase::Prox), to(Phase::Hold)) {
        (_, true) => {
            Some("● the next kind of steps begins: Prox-SG, then Orthant, then zeros are held; ○ Prox-SG begins again.")
        }
        (true, false) => Some("● Prox-SG gives way to Orthant steps, ○ Orthant gives way to Prox-SG steps."),
        (false, false) => None,
    }
}

fn gap(problem: &Problem) -> Option<Named> {
    let y = Axis::log("");
    let chart =
        curves(problem, "Certified relative gap by epoch", Over::Epochs, y, |epoch| epoch.figures.relative_gap)?;
    let caption = "How far F can be from F* at most, as each epoch proves it by itself.";
    Some(Named::new("gap-epochs", caption, chart))
}

fn runtimes(problem: &Problem) -> Option<Named> {
    let (_, fastest) = problem.best(Run::seconds)?;
    let mut bars = Bars::new("Training time");
    for entry in problem.entries.iter().filter(|_| problem.entries.len() > 1) {
        if let Some(time) = entry.run.seconds() {
            let ratio = time / fastest.max(f64::MIN_POSITIVE);
            bars = bars.bar(&entry.name, time, format!("{}  ({})", times(ratio), seconds(time)), entry.colour);
        }
    }
    let caption = "Training time without evaluation, and relative to the fastest.";
    (!bars.bars.is_empty()).then(|| Named::new("runtimes", caption, bars))
}

// ---- many λ ------------------------------------------------------------------------------------------------------

fn folds(problem: &Problem, entry: &Entry) -> Option<Named> {
    let folds = entry.run.folds.as_ref()?;
    let point = |score: &crate::log::event::Score| Some((score.lambda?, score.mean?));
    let range = |score: &crate::log::event::Score| {
        let (lambda, mean, error) = (score.lambda?, score.mean?, score.error?);
        Some((lambda, mean - error, mean + error))
    };
    let loss = match problem.entries[0].run.start.loss.as_deref() {
        Some("logistic" | "softmax") => "held-out log-loss".to_owned(),
        Some(loss) => format!("held-out {loss} loss"),
        None => "held-out loss".into(),
    };
    let series = Series::line("mean of the folds", folds.scores.iter().filter_map(point))
        .spread(folds.scores.iter().filter_map(range))
        .coloured(Colour::Palette(0));
    let mut chart = Chart::new("Held-out loss by λ", Axis::log("λ").reversed(), Axis::linear(loss)).series(series);
    let marks = [(folds.one_se, "1se"), (folds.best, "best")];
    match folds.best == folds.one_se {
        true => chart.marks.extend(folds.best.map(|lambda| crate::chart::Mark::At(lambda, "best and 1se".into()))),
        false => {
            let mark = |(lambda, word): (Option<f64>, &str)| lambda.map(|at| crate::chart::Mark::At(at, word.into()));
            chart.marks.extend(marks.into_iter().filter_map(mark));
        }
    }
    let caption = format!("The mean over {} folds; the band is one standard error.", folds.folds);
    (!chart.is_empty()).then(|| Named::new("cv", caption, chart))
}

/// Where a λ is drawn. λ = 0 has no logarithm; it lies a decade below the others.
fn drawn_at<'a>(lambdas: impl Iterator<Item = Option<f64>> + 'a) -> impl Fn(f64) -> f64 + 'a {
    let least = lambdas.flatten().filter(|lambda| *lambda > 0.0).fold(f64::INFINITY, f64::min);
    let zero = if least.is_finite() { 0.1 * least } else { 1.0 };
    move |lambda| if lambda > 0.0 { lambda } else { zero }
}

fn path_weights(entry: &Entry) -> Option<Named> {
    let curves = entry.run.curves.as_ref()?;
    let mut chart =
        Chart::new("Weights along the path", Axis::log("λ").reversed(), Axis::linear("weight").including(0.0));
    let place_of = drawn_at(curves.lambdas.iter().copied());
    for (place, curve) in curves.curves.iter().take(CURVES).enumerate() {
        let points = curves.lambdas.iter().zip(&curve.values);
        let points = points.filter_map(|(lambda, value)| Some((place_of((*lambda)?), (*value)?)));
        chart = chart.series(match place < NAMED {
            true => Series::line(curve_name(curve), points).coloured(Colour::Palette(place)),
            false => Series::line("", points).coloured(Colour::Muted).thin(),
        });
    }
    let drawn = chart.series.len() as u64;
    let caption = match drawn < curves.of {
        true => format!("The {drawn} curves with the largest weights, of {}.", curves.of),
        false => "Each feature's weight, from the largest λ to the smallest.".into(),
    };
    (!chart.is_empty()).then(|| Named::new("path-weights", caption, chart))
}

fn curve_name(curve: &Curve) -> String {
    feature_name(curve.feature, curve.name.as_deref(), curve.label)
}

/// A feature's name, or its number as LIBSVM files count; and the class, where there are several.
pub(crate) fn feature_name(feature: u64, name: Option<&str>, label: Option<f64>) -> String {
    let name = name.map_or_else(|| format!("feature {}", feature.saturating_add(1)), str::to_owned);
    label.map_or(name.clone(), |label| format!("{name}, {label}"))
}

fn along_path(entry: &Entry, title: &str, y: Axis, measure: impl Fn(&Step) -> Option<f64>) -> Option<Chart> {
    let place_of = drawn_at(entry.run.steps.iter().map(|step| step.lambda));
    let point = |step: &Step| Some((place_of(step.lambda?), measure(step)?));
    let series = Series::line(&entry.name, entry.run.steps.iter().filter_map(point)).coloured(Colour::Palette(0));
    let chart = Chart::new(title, Axis::log("λ").reversed(), y).series(series);
    (!chart.is_empty()).then_some(chart)
}

fn path_nonzeros(entry: &Entry) -> Option<Named> {
    let y = Axis::linear("weights that are not zero").including(0.0);
    let chart = along_path(entry, "Nonzeros along the path", y, |step| step.figures.nnz.map(|nnz| nnz as f64))?;
    Some(Named::new("path-nonzeros", "", chart))
}

fn path_score(problem: &Problem, entry: &Entry) -> Option<Named> {
    let y = Axis::linear(format!("{} on the test data", problem.score_word()));
    let mut chart = along_path(entry, "Score along the path", y, |step| step.score)?;
    let scored = entry.run.steps.iter().filter_map(|step| Some((step.lambda?, step.score?)));
    if let Some((lambda, _)) = scored.reduce(|best, step| if step.1 > best.1 { step } else { best }) {
        chart = chart.mark(lambda, "best");
    }
    Some(Named::new("path-score", "", chart))
}

// ---- weights -----------------------------------------------------------------------------------------------------

/// Whose weights are shown: the run with the smallest F among those that have any.
pub(crate) fn weighed(problem: &Problem) -> Option<&Entry> {
    let has = |run: &Run| run.figures().objective.filter(|_| !run.weights().is_empty());
    problem.best(has).map(|(entry, _)| entry)
}

fn weights(problem: &Problem) -> Option<Named> {
    let entry = weighed(problem)?;
    let mut bars = Bars::new("Largest weights");
    for weight in entry.run.weights().iter().take(WEIGHTS) {
        let Weight { feature, name, label, value: Some(value) } = weight else { continue };
        let colour = Colour::Palette(if *value < 0.0 { 4 } else { 0 });
        bars =
            bars.bar(feature_name(*feature, name.as_deref(), *label), *value, signed(*value).replace('-', "−"), colour);
    }
    let caption = match problem.entries.len() {
        1 => "In the units of the data.".into(),
        _ => format!("Of {}, the run with the smallest F; in the units of the data.", entry.name),
    };
    (!bars.bars.is_empty()).then(|| Named::new("weights", caption, bars))
}
