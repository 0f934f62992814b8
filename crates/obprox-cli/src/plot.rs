//! A path as a picture: plain SVG on white, one panel for the weights, one for nonzeros and test score.

use std::collections::BTreeMap;
use std::fmt::Write;

use obprox::metrics::Metrics;
use obprox::path::Step;

use crate::path::score_word;
use crate::show::{digits, trimmed};

/// More curves than this are a grey mass; those with the largest weights are drawn.
const CURVES: usize = 200;
/// So many of them are coloured and named.
const NAMED: usize = 10;
/// Okabe and Ito's colours, which the colour-blind can tell apart, and three shades more.
const COLOURS: [&str; NAMED] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c564b", "#3f7f3f", "#444444"];

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 720.0;

/// A panel: where it is on the page and what its height means.
struct Panel {
    top: f64,
    bottom: f64,
    low: f64,
    high: f64,
}

impl Panel {
    fn new(top: f64, bottom: f64, values: impl Iterator<Item = f64> + Clone) -> Self {
        let finite = || values.clone().filter(|value| value.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        // One value, or none, still needs a height.
        match high - low {
            spread if spread > 0.0 => Self { top, bottom, low: low - 0.03 * spread, high: high + 0.03 * spread },
            _ if low.is_finite() => Self { top, bottom, low: low - 0.5, high: high + 0.5 },
            _ => Self { top, bottom, low: 0.0, high: 1.0 },
        }
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (value - self.low) / (self.high - self.low) * (self.bottom - self.top)
    }
}

/// Weights against λ, then nonzeros and, where there is one, the test score.
pub fn path(data: &str, max: f64, steps: &[Step]) -> String {
    let (first, last) = (steps[0].lambda, steps[steps.len() - 1].lambda);
    // λ = 0 has no logarithm; it is drawn at the border.
    let log = |lambda: f64| lambda.max(1e-12 * max).log10();
    let (from, to) = (log(first), log(last));
    let x = |lambda: f64| match from > to {
        true => LEFT + (from - log(lambda)) / (from - to) * (RIGHT - LEFT),
        false => 0.5 * (LEFT + RIGHT),
    };
    let curves = curves(steps);
    let weights = Panel::new(50.0, 380.0, curves.iter().flat_map(|curve| curve.values.iter().copied()).chain([0.0]));
    let counts = Panel::new(430.0, 620.0, steps.iter().map(|step| step.certificate.nnz as f64));

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} 680\" font-family=\"sans-serif\" \
         font-size=\"12\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    text(&mut svg, LEFT, 24.0, "start", "#222", &format!("Path of {data}: {} λ", steps.len()));
    let total = steps.iter().map(|step| step.certificate.nnz).max().unwrap_or(0);
    if total > curves.len() {
        let note = format!("the {} curves with the largest weights", curves.len());
        text(&mut svg, RIGHT, 40.0, "end", "#777", &note);
    }
    for (panel, word, colour) in [(&weights, "weight", "#222"), (&counts, "nonzeros", COLOURS[0])] {
        frame(&mut svg, panel);
        axis(&mut svg, panel, LEFT - 8.0, "end", colour);
        let middle = 0.5 * (panel.top + panel.bottom);
        let _ = writeln!(
            svg,
            "<text x=\"18\" y=\"{middle}\" fill=\"{colour}\" text-anchor=\"middle\" \
             transform=\"rotate(-90 18 {middle})\">{word}</text>"
        );
    }
    let ticks = 5.min(steps.len());
    for tick in 0..ticks {
        let share = if ticks > 1 { tick as f64 / (ticks - 1) as f64 } else { 0.0 };
        let lambda = 10f64.powf(from - share * (from - to));
        for panel in [&weights, &counts] {
            let (at, top, bottom) = (x(lambda), panel.top, panel.bottom);
            let _ = writeln!(svg, "<path d=\"M{at:.1} {top}V{bottom}\" stroke=\"#eee\"/>");
        }
        text(&mut svg, x(lambda), counts.bottom + 18.0, "middle", "#222", &digits(lambda / max, 2));
    }
    text(&mut svg, 0.5 * (LEFT + RIGHT), counts.bottom + 40.0, "middle", "#222", "λ / λ_max");

    // ---- weights: the largest last, so that they lie on top -----------------------------------------------------
    let zero = weights.y(0.0);
    let _ = writeln!(svg, "<path d=\"M{LEFT} {zero:.1}H{RIGHT}\" stroke=\"#bbb\"/>");
    for (place, curve) in curves.iter().enumerate().rev() {
        let (colour, width) = if place < NAMED { (COLOURS[place], 1.8) } else { ("#bbb", 0.7) };
        let points = steps.iter().zip(&curve.values).map(|(step, &value)| (x(step.lambda), weights.y(value)));
        line(&mut svg, points, colour, width);
    }
    for (place, curve) in curves.iter().take(NAMED).enumerate() {
        let y = weights.top + 14.0 + 18.0 * place as f64;
        let _ = writeln!(
            svg,
            "<path d=\"M{} {}h14\" stroke=\"{}\" stroke-width=\"3\"/>",
            RIGHT + 50.0,
            y - 4.0,
            COLOURS[place]
        );
        text(&mut svg, RIGHT + 70.0, y, "start", "#222", &curve.name);
    }

    // ---- nonzeros and score --------------------------------------------------------------------------------------
    let points = steps.iter().map(|step| (x(step.lambda), counts.y(step.certificate.nnz as f64)));
    line(&mut svg, points, COLOURS[0], 2.0);
    let tests: Vec<(f64, &Metrics)> =
        steps.iter().filter_map(|step| step.test.as_ref().map(|test| (step.lambda, test))).collect();
    if let Some((_, metrics)) = tests.first() {
        let panel = Panel::new(counts.top, counts.bottom, tests.iter().map(|(_, test)| test.score()));
        axis(&mut svg, &panel, RIGHT + 8.0, "start", COLOURS[1]);
        line(&mut svg, tests.iter().map(|(lambda, test)| (x(*lambda), panel.y(test.score()))), COLOURS[1], 2.0);
        let word = format!("test {}", score_word(metrics));
        text(&mut svg, RIGHT + 70.0, 0.5 * (panel.top + panel.bottom), "start", COLOURS[1], &word);
    }
    svg + "</svg>\n"
}

/// The weight of one feature (for one class) at every λ.
struct Curve {
    name: String,
    values: Vec<f64>,
}

/// Those with the largest weights, largest first.
fn curves(steps: &[Step]) -> Vec<Curve> {
    let mut all: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        for (output, block) in step.model.blocks.iter().enumerate() {
            for (&feature, &value) in block.indices.iter().zip(&block.values) {
                all.entry((output, feature)).or_insert_with(|| vec![0.0; steps.len()])[at] = value;
            }
        }
    }
    let size = |values: &[f64]| values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
    let mut all: Vec<((usize, u32), Vec<f64>)> = all.into_iter().collect();
    all.sort_by(|a, b| size(&b.1).total_cmp(&size(&a.1)));
    all.truncate(CURVES);
    let name = |output: usize, feature: u32| {
        let known = steps.iter().rev().find_map(|step| step.model.name(feature));
        let mut name = known.map_or_else(|| format!("feature {}", u64::from(feature) + 1), str::to_owned);
        if name.chars().count() > 16 {
            name = name.chars().take(15).chain(['…']).collect();
        }
        match &steps[0].model.blocks[..] {
            [_] => name,
            _ => format!("{name}, {}", steps[0].model.labels[output]),
        }
    };
    all.into_iter().map(|((output, feature), values)| Curve { name: name(output, feature), values }).collect()
}

fn frame(svg: &mut String, panel: &Panel) {
    let (top, width, height) = (panel.top, RIGHT - LEFT, panel.bottom - panel.top);
    let _ = writeln!(
        svg,
        "<rect x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#999\"/>"
    );
}

/// Four numbers at round places along a panel's side.
fn axis(svg: &mut String, panel: &Panel, x: f64, anchor: &str, colour: &str) {
    let rough = (panel.high - panel.low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    // The sum turns −0, which a panel that starts just below zero rounds up to, into 0.
    let mut number = (panel.low / step).ceil() + 0.0;
    while number * step <= panel.high {
        text(svg, x, panel.y(number * step) + 4.0, anchor, colour, &trimmed(number * step));
        number += 1.0;
    }
}

fn line(svg: &mut String, points: impl Iterator<Item = (f64, f64)>, colour: &str, width: f64) {
    let mut path = String::new();
    for (x, y) in points.filter(|(_, y)| y.is_finite()) {
        let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
    }
    let _ = writeln!(
        svg,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"/>"
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, colour: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>");
}
