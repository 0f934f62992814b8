//! Charts as the page's script wants them: the same description, as JSON.

use serde::Serialize;

use crate::chart::{Axis, Chart, Colour, FEW, Mark, Shape, Unit, scales};

/// A chart.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    x: Scale<'a>,
    y: Scale<'a>,
    series: Vec<Line<'a>>,
    marks: Vec<Words<'a>>,
    bands: Vec<(f64, f64, &'a str)>,
}

#[derive(Serialize)]
struct Scale<'a> {
    label: &'a str,
    log: bool,
    reversed: bool,
    percent: bool,
    /// Numbers beside it are powers of ten.
    powers: bool,
    /// Whole numbers alone make sense between the ticks.
    whole: bool,
    min: f64,
    max: f64,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    light: &'static str,
    dark: &'static str,
    shape: &'static str,
    dashed: bool,
    thin: bool,
    /// Whether its points are drawn too.
    few: bool,
    x: Vec<f64>,
    y: Vec<f64>,
    /// (x, low, high).
    spread: Vec<(f64, f64, f64)>,
    /// (x, y, filled).
    dots: Vec<(f64, f64, bool)>,
}

#[derive(Serialize)]
struct Words<'a> {
    x: Option<f64>,
    y: Option<f64>,
    text: &'a str,
}

impl<'a> Data<'a> {
    pub(super) fn new(chart: &'a Chart) -> Self {
        let (x, y) = scales(chart, 600.0, 300.0);
        let scale = |axis: &'a Axis, (min, max): (f64, f64), values: fn(&(f64, f64)) -> f64| Scale {
            label: &axis.label,
            log: axis.log,
            reversed: axis.reversed,
            percent: axis.unit == Unit::Percent,
            whole: chart.series.iter().flat_map(|series| &series.points).map(values).all(|value| value.fract() == 0.0),
            powers: axis.log && (max / min > 1e3 || min < 1e-3),
            min,
            max,
        };
        let line = |(series, colour): (&'a crate::chart::Series, Colour)| {
            let (light, dark) = colour.hex();
            let shown = |&&(x, y): &&(f64, f64)| chart.x.takes(x) && chart.y.takes(y);
            let mut points: Vec<(f64, f64)> = series.points.iter().filter(shown).copied().collect();
            // The script joins points from left to right.
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Line {
                name: &series.name,
                light,
                dark,
                shape: match series.shape {
                    Shape::Line => "line",
                    Shape::Step => "step",
                    Shape::Points => "points",
                    Shape::Area => "area",
                },
                dashed: series.dashed,
                thin: series.thin,
                few: points.len() <= FEW && !series.thin,
                x: points.iter().map(|point| short(point.0)).collect(),
                y: points.iter().map(|point| short(point.1)).collect(),
                spread: series.spread.iter().map(|&(x, low, high)| (short(x), short(low), short(high))).collect(),
                dots: series.dots.iter().map(|dot| (short(dot.x), short(dot.y), dot.filled)).collect(),
            }
        };
        let mark = |mark: &'a Mark| match mark {
            Mark::At(x, text) => Words { x: Some(*x), y: None, text },
            Mark::Level(y, text) => Words { x: None, y: Some(*y), text },
        };
        Self {
            x: scale(&chart.x, x.ends(), |point| point.0),
            y: scale(&chart.y, y.ends(), |point| point.1),
            // The first is to lie on top, and the script draws it last.
            series: chart.series.iter().zip(chart.colours()).rev().map(line).collect(),
            marks: chart.marks.iter().map(mark).collect(),
            bands: chart.bands.iter().map(|band| (band.from, band.to, &band.name[..])).collect(),
        }
    }
}

/// Six significant digits: more are not seen, and a page is to be small.
fn short(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}
