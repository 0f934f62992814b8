//! The results as pictures.

use obprox::MethodKind;
use obprox_report::chart::{Axis, Bars, Chart, Colour, Figure, Panel, Series};

use super::rate::Measured;
use super::support::Identified;
use super::switching::{Cell, Sweep, distinct};
use super::tables::{named, title};
use super::trial::{Epoch, Record};
use crate::paper::experiments::{Rounds, Support};
use crate::show::trimmed;

/// A method has one colour in all pictures.
fn colour(method: MethodKind) -> Colour {
    Colour::Palette(MethodKind::ALL.iter().position(|&one| one == method).unwrap_or(0))
}

/// A picture of small panels, two in a row.
fn small(panels: impl IntoIterator<Item = Panel>) -> Figure {
    Figure::new(panels).columns(2).size(480, 340)
}

/// (F − F*)/F* by epoch, a panel a data set.
pub fn objectives(records: &[Record]) -> Figure {
    let panels = records.iter().filter_map(|record| {
        let best = record.optimum.as_ref()?.objective;
        let distance = move |epoch: &Epoch| (epoch.objective - best) / best;
        Some(by_epoch(record, Axis::log("(F − F*)/F*"), distance).into())
    });
    small(panels)
}

/// Density by epoch, a panel a data set.
pub fn densities(records: &[Record]) -> Figure {
    small(records.iter().map(|record| {
        let optimum = record.optimum.as_ref().map(|optimum| optimum.density);
        let chart = by_epoch(record, Axis::log("density").percent(), |epoch| epoch.density);
        optimum.map_or(chart.clone(), |density| chart.level(density, "at F*")).into()
    }))
}

fn by_epoch(record: &Record, y: Axis, figure: impl Fn(&Epoch) -> f64) -> Chart {
    let mut chart =
        Chart::new(named(record), Axis::linear("epoch"), y).band(15.0, record.epochs as f64, "OBProx-SG+ on its face");
    for method in MethodKind::PAPER {
        let Some(run) = record.of(method).find(|run| run.seed == 0) else { continue };
        let points = run.trace.iter().map(|epoch| (epoch.epoch as f64, figure(epoch)));
        chart = chart.series(Series::line(title(method), points).coloured(colour(method)));
    }
    chart
}

/// Training time as a share of the slowest, a panel a data set.
pub fn runtimes(records: &[Record]) -> Figure {
    small(records.iter().map(|record| {
        let slowest = record.slowest();
        let timed = MethodKind::PAPER.into_iter().filter(|&method| record.seconds(method).is_finite());
        let bars = timed.fold(Bars::new(named(record)), |bars, method| {
            let share = record.seconds(method) / slowest;
            bars.bar(title(method), share, format!("{share:.2}"), colour(method))
        });
        bars.into()
    }))
}

/// Density and recall against N_P, a line for each N_O.
pub fn switching(sweep: &Sweep) -> Figure {
    let panel = |what: &str, y: Axis, figure: fn(&Cell) -> f64| {
        let name = format!("{}: {what}", sweep.name);
        let mut chart = Chart::new(name, Axis::linear("N_P in epochs").including(0.0), y);
        for orthant in distinct(sweep.cells.iter().map(|cell| cell.orthant)) {
            let cells = sweep.cells.iter().filter(|cell| cell.orthant == orthant);
            let points = cells.map(|cell| (cell.prox as f64, figure(cell)));
            chart = chart.series(Series::line(format!("N_O = {}", Rounds(orthant)), points));
        }
        chart
    };
    let density = panel("density at the end", Axis::log("density").percent(), |cell| cell.density);
    let recall =
        panel("support found", Axis::linear("share of the optimum's support").percent(), |cell| cell.overlap.recall);
    small([density.level(sweep.density, "at F*").into(), recall.into()])
}

/// Precision and recall against the budget, a row of panels for each λ.
pub fn support(support: &Support, found: &[Identified]) -> Figure {
    let panel = |lambda: f64, what: &str, figure: fn(&Identified) -> f64| -> Panel {
        let name = format!("{what} at λ = {} λ_max", trimmed(lambda));
        let y = Axis::linear(what).percent().including(0.0).including(1.0);
        let mut chart = Chart::new(name, Axis::linear("budget in epochs").including(0.0), y);
        let here = || found.iter().filter(move |one| one.lambda == lambda);
        for method in [MethodKind::ProxSg, MethodKind::ObproxSg, MethodKind::ObproxSgPlus] {
            let points = here().filter(|one| one.method == method).map(|one| (one.budget as f64, figure(one)));
            chart = chart.series(Series::line(title(method), points).coloured(colour(method)));
        }
        let optimum = here().find(|one| one.method == MethodKind::Auto).map(figure);
        optimum.map_or(chart.clone(), |level| chart.level(level, "certified optimum")).into()
    };
    small(support.lambdas.iter().flat_map(|&lambda| {
        [panel(lambda, "precision", |one| one.overlap.precision), panel(lambda, "recall", |one| one.overlap.recall)]
    }))
}

/// F − F* by step for each α beside the theorem's rate, and the floor against α beside proportion.
pub fn rate(measured: &Measured) -> Figure {
    let mut falls = Chart::new("F − F* falls linearly to a floor", Axis::linear("steps k"), Axis::log("mean F − F*"));
    for (at, curve) in measured.curves.iter().enumerate() {
        let step = |epoch: usize| (epoch as u64 * measured.steps_an_epoch) as f64;
        let points = curve.excess.iter().enumerate().map(|(epoch, &excess)| (step(epoch), excess));
        let line = Series::line(format!("α = {}", trimmed(curve.step)), points.collect::<Vec<_>>());
        falls = falls.series(line.coloured(Colour::Palette(at)));
        // (1 − 2αµ)^(k/2) from the same start, as far down as the floor.
        let factor = 1.0 - 2.0 * curve.step * measured.convexity;
        let promised =
            (0..curve.excess.len()).map(|epoch| (step(epoch), curve.excess[0] * factor.powf(0.5 * step(epoch))));
        let promised = promised.take_while(|(_, excess)| *excess > curve.floor);
        let name = if at == 0 { "the theorem's rate" } else { "" };
        falls = falls
            .series(Series::line(name, promised.collect::<Vec<_>>()).coloured(Colour::Palette(at)).dashed().thin());
    }
    let floors = || measured.curves.iter().map(|curve| (curve.step, curve.floor));
    let (first, last) = (floors().next().unwrap_or((1.0, 1.0)), floors().next_back().unwrap_or((1.0, 1.0)));
    let proportional = [first, (last.0, first.1 * last.0 / first.0)];
    let floor = Chart::new("The floor against α", Axis::log("α"), Axis::log("mean F − F* at the end"))
        .series(Series::points("measured", floors()))
        .series(Series::line("in proportion to α", proportional).coloured(Colour::Muted).dashed());
    small([falls.into(), floor.into()])
}
