//! Descriptions → SVG. One look for all: a light grid, no frame, words instead of ink.

use super::scale::Scale;
use super::svg::{Anchor, Ink, Place, Svg, width_of};
use super::{Bars, Chart, Colour, Figure, Mark, Panel, Series, Shape};

const INK: &str = "#20262e";
const SOFT: &str = "#5c6570";
const GRID: &str = "#e6e8eb";
const AXIS: &str = "#aab0b8";

const TITLE: f64 = 15.0;
/// The white around a panel.
const MARGIN: f64 = 16.0;
/// From one line of words to the next.
const LINE: f64 = 20.0;
/// Names longer than this are cut.
const NAME: usize = 28;
/// Marks closer than this, in pixels, share the room for their words.
const CLOSE: f64 = 90.0;

/// The figure as SVG.
pub(super) fn svg(figure: &Figure) -> String {
    let rows: Vec<&[Panel]> = figure.panels.chunks(figure.columns.max(1)).collect();
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let heights: Vec<f64> =
        rows.iter().map(|row| row.iter().map(|panel| height(panel, figure)).fold(0.0, f64::max)).collect();
    let width = f64::from(figure.width);
    let titles: Vec<&str> = figure.panels.iter().map(title).collect();
    let mut svg = Svg::new(width * columns as f64, heights.iter().sum(), &titles.join("; "));
    let mut top = 0.0;
    for (row, height) in rows.iter().zip(&heights) {
        for (column, panel) in row.iter().enumerate() {
            svg.begin((column as f64 * width, top));
            match panel {
                Panel::Chart(chart) => draw_chart(&mut svg, chart, (width, *height), figure.titles),
                Panel::Bars(bars) => draw_bars(&mut svg, bars, width, figure.titles),
            }
            svg.end();
        }
        top += height;
    }
    svg.finish()
}

fn title(panel: &Panel) -> &str {
    match panel {
        Panel::Chart(chart) => &chart.title,
        Panel::Bars(bars) => &bars.title,
    }
}

fn height(panel: &Panel, figure: &Figure) -> f64 {
    match panel {
        Panel::Chart(_) => f64::from(figure.height),
        Panel::Bars(bars) => 2.0 * MARGIN + LINE + 10.0 + BAR * bars.bars.len() as f64,
    }
}

/// A name that does not go on without end.
fn name(text: &str) -> String {
    match text.char_indices().nth(NAME) {
        Some(_) => text.chars().take(NAME - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}

/// Writes the title; the height below it.
fn head(svg: &mut Svg, title: &str, titled: bool) -> f64 {
    if !titled || title.is_empty() {
        return 0.0;
    }
    svg.title(title, (MARGIN, MARGIN + 0.5 * TITLE), TITLE, INK);
    MARGIN + TITLE
}

// ---- charts ----------------------------------------------------------------------------------------------------

fn draw_chart(svg: &mut Svg, chart: &Chart, (width, height): (f64, f64), titled: bool) {
    let head = head(svg, &chart.title, titled);
    let mut top = draw_legend(svg, chart, width, head + 9.0);
    if !chart.y.label.is_empty() {
        svg.words(&chart.y.label, (MARGIN, top + 0.5 * LINE), Anchor::Start, SOFT);
        top += LINE;
    }
    top += 4.0;

    let (x, y) = scales(chart, width, height - top);
    let numbers = y.ticks.iter().map(|&tick| width_of(&y.words(tick))).fold(0.0, f64::max);
    let left = MARGIN + numbers + 8.0;
    // The last number of the horizontal axis reaches over its end.
    let right = MARGIN.max(4.0 + 0.5 * x.ticks.last().map_or(0.0, |&tick| width_of(&x.words(tick))));
    let below = MARGIN + 16.0 + if chart.x.label.is_empty() { 0.0 } else { LINE };
    let (wide, high) = ((width - left - right).max(1.0), (height - top - below).max(1.0));
    svg.words(&chart.x.label, (left + 0.5 * wide, height - MARGIN - 1.0), Anchor::Middle, SOFT);

    // What lies behind, then the series from the last to the first.
    svg.begin((left, top));
    let mut frame = Frame { svg, x: &x, y: &y, width: wide, height: high };
    frame.draw_axes();
    frame.draw_bands(chart);
    for (series, colour) in chart.series.iter().zip(chart.colours()).rev() {
        frame.draw_series(series, colour);
    }
    frame.draw_marks(chart);
    for note in chart.notes.iter().filter(|note| chart.x.takes(note.x) && chart.y.takes(note.y)) {
        let place = frame.place(note.x, note.y);
        frame.svg.words(&note.text, place, Anchor::Middle, INK);
    }
    svg.end();
}

/// Both axes of a chart, for an area of so many pixels.
pub(crate) fn scales(chart: &Chart, width: f64, height: f64) -> (Scale, Scale) {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let spreads = || chart.series.iter().flat_map(|series| &series.spread);
    let both = |&&(x, y): &&(f64, f64)| chart.x.takes(x) && chart.y.takes(y);
    let levels = chart.marks.iter().filter_map(|mark| if let Mark::Level(y, _) = mark { Some(*y) } else { None });
    let xs = points().filter(both).map(|point| point.0).chain(spreads().map(|spread| spread.0));
    let ys = points().filter(both).map(|point| point.1);
    let ys = ys.chain(spreads().flat_map(|&(_, low, high)| [low, high])).chain(levels);
    let ticks = |pixels: f64, each: f64| ((pixels / each) as usize).clamp(2, 8);
    (chart.x.scale(xs, 0.0, ticks(width, 80.0)), chart.y.scale(ys, 0.05, ticks(height, 42.0)))
}

/// Coloured strokes and names, in as many lines as they need; the height below them.
fn draw_legend(svg: &mut Svg, chart: &Chart, width: f64, top: f64) -> f64 {
    let named: Vec<(&Series, Colour)> =
        chart.series.iter().zip(chart.colours()).filter(|(series, _)| !series.name.is_empty()).collect();
    if named.len() < 2 {
        return top;
    }
    let (mut x, mut y) = (MARGIN, top + 0.5 * LINE);
    for (series, colour) in named {
        let words = name(&series.name);
        let wide = 22.0 + width_of(&words) + 16.0;
        if x > MARGIN && x + wide > width {
            (x, y) = (MARGIN, y + LINE);
        }
        let hex = colour.hex().0;
        let stroke = [(x, y), (x + 16.0, y)];
        match series.shape {
            Shape::Points => svg.circle((x + 8.0, y), 3.5, Ink::Fill(hex, 1.0)),
            Shape::Area => svg.rectangle((x, y - 5.0), (x + 16.0, y + 5.0), Ink::Fill(hex, AREA)),
            _ if series.dashed => svg.path(&stroke, Ink::Dashes(hex, 2.5, [6.0, 4.0])),
            _ => svg.path(&stroke, Ink::Line(hex, 2.5)),
        }
        svg.words(&words, (x + 22.0, y), Anchor::Start, INK);
        x += wide;
    }
    y + 0.5 * LINE + 2.0
}

/// So few points of a line are drawn as points too.
pub(crate) const FEW: usize = 10;

/// How much of what lies behind is covered by a filled region.
const AREA: f64 = 0.22;

/// The place between the axes, measured from its upper left corner.
struct Frame<'a> {
    svg: &'a mut Svg,
    x: &'a Scale,
    y: &'a Scale,
    width: f64,
    height: f64,
}

impl Frame<'_> {
    /// In pixels.
    fn place(&self, x: f64, y: f64) -> Place {
        (self.x.share(x) * self.width, (1.0 - self.y.share(y)) * self.height)
    }

    fn inside(&self, (x, y): Place) -> bool {
        (-0.5..=self.width + 0.5).contains(&x) && (-0.5..=self.height + 0.5).contains(&y)
    }

    /// The grid, then the axes with their ticks and numbers.
    fn draw_axes(&mut self) {
        let Self { x, y, width, height, .. } = *self;
        for &tick in &y.ticks {
            let at = (1.0 - y.share(tick)) * height;
            self.svg.path(&[(0.0, at), (width, at)], Ink::Line(GRID, 1.0));
            self.svg.path(&[(-4.0, at), (0.0, at)], Ink::Line(AXIS, 1.0));
            self.svg.words(&y.words(tick), (-8.0, at), Anchor::End, SOFT);
        }
        for &tick in &x.ticks {
            let at = x.share(tick) * width;
            self.svg.path(&[(at, height), (at, height + 4.0)], Ink::Line(AXIS, 1.0));
            self.svg.words(&x.words(tick), (at, height + 13.0), Anchor::Middle, SOFT);
        }
        self.svg.path(&[(0.0, 0.0), (0.0, height), (width, height)], Ink::Line(AXIS, 1.0));
    }

    fn draw_bands(&mut self, chart: &Chart) {
        let mut named: Vec<&str> = Vec::new();
        for band in &chart.bands {
            let ends = [band.from, band.to].map(|end| (self.x.share(end) * self.width).clamp(0.0, self.width));
            let (left, right) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            if right <= left || right.is_nan() {
                continue;
            }
            let (hex, opacity) = band.colour.map_or((SOFT, 0.08), |colour| (colour.hex().0, 0.12));
            self.svg.rectangle((left, 0.0), (right, self.height), Ink::Fill(hex, opacity));
            if !named.contains(&&band.name[..]) && !band.name.is_empty() {
                named.push(&band.name);
                self.svg.words(&band.name, (left + 5.0, 9.0), Anchor::Start, SOFT);
            }
        }
    }

    fn draw_marks(&mut self, chart: &Chart) {
        let place = |mark: &Mark| if let Mark::At(x, _) = mark { Some(self.x.share(*x) * self.width) } else { None };
        let places: Vec<f64> = chart.marks.iter().filter_map(place).collect();
        for mark in &chart.marks {
            let (from, to, text, anchor, at) = match mark {
                Mark::At(x, text) => {
                    let x = self.x.share(*x) * self.width;
                    // Beside a neighbour the words turn away from it.
                    let close = |other: f64| other != 0.0 && other.abs() < CLOSE;
                    let left = match places.iter().map(|other| other - x).find(|&other| close(other)) {
                        Some(other) => other > 0.0,
                        None => x > 0.7 * self.width,
                    };
                    let (anchor, near) = if left { (Anchor::End, x - 5.0) } else { (Anchor::Start, x + 5.0) };
                    ((x, 0.0), (x, self.height), text, anchor, (near, 9.0))
                }
                Mark::Level(y, text) => {
                    let y = (1.0 - self.y.share(*y)) * self.height;
                    let near = if y < 18.0 { y + 9.0 } else { y - 9.0 };
                    ((0.0, y), (self.width, y), text, Anchor::End, (self.width - 4.0, near))
                }
            };
            if self.inside(from) {
                self.svg.path(&[from, to], Ink::Dashes(SOFT, 1.0, [4.0, 4.0]));
                self.svg.words(text, at, anchor, SOFT);
            }
        }
    }

    fn draw_series(&mut self, series: &Series, colour: Colour) {
        let hex = colour.hex().0;
        let places = self.places(&series.points);
        if !series.spread.is_empty() {
            let low = self.places(&series.spread.iter().map(|&(x, low, _)| (x, low)).collect::<Vec<_>>());
            let high = self.places(&series.spread.iter().map(|&(x, _, high)| (x, high)).collect::<Vec<_>>());
            self.fill(low.into_iter().chain(high.into_iter().rev()), Ink::Fill(hex, 0.15));
        }
        let width = if series.thin { 0.8 } else { 2.0 };
        let ink = if series.dashed { Ink::Dashes(hex, width, [6.0, 4.0]) } else { Ink::Line(hex, width) };
        match series.shape {
            Shape::Line => self.draw_line(&places, ink),
            Shape::Step => self.draw_line(&stairs(&places), ink),
            Shape::Points => self.draw_points(&places, 2.5, Ink::Fill(hex, 0.85)),
            Shape::Area => self.fill(places.iter().copied(), Ink::Fill(hex, AREA)),
        }
        // A line of one point is no line, and one of a few says little without them.
        if matches!(series.shape, Shape::Line | Shape::Step) && places.len() <= FEW && !series.thin {
            self.draw_points(&places, 2.8, Ink::Fill(hex, 1.0));
        }
        for dot in series.dots.iter().filter(|dot| dot.x.is_finite() && dot.y.is_finite()) {
            let place = self.place(dot.x, dot.y);
            let inner = if dot.filled { hex } else { "#ffffff" };
            self.draw_points(&[place], 4.0, Ink::Fill(inner, 1.0));
            self.draw_points(&[place], 4.0, Ink::Line(hex, 1.6));
        }
    }

    fn places(&self, points: &[(f64, f64)]) -> Vec<Place> {
        let places = points.iter().map(|&(x, y)| self.place(x, y));
        places.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
    }

    fn draw_points(&mut self, places: &[Place], radius: f64, ink: Ink) {
        for &place in places {
            if self.inside(place) {
                self.svg.circle(place, radius, ink);
            }
        }
    }

    fn draw_line(&mut self, places: &[Place], ink: Ink) {
        for piece in pieces_within(places, self.width, self.height) {
            self.svg.path(&piece, ink);
        }
    }

    /// A filled region; what lies off the axes is pressed to the border.
    fn fill(&mut self, corners: impl Iterator<Item = Place>, ink: Ink) {
        let within = |(x, y): Place| (x.clamp(0.0, self.width), y.clamp(0.0, self.height));
        let corners: Vec<Place> = corners.map(within).collect();
        if corners.len() > 2 {
            self.svg.area(&corners, ink);
        }
    }
}

/// Each height holds until the next place.
fn stairs(places: &[Place]) -> Vec<Place> {
    let corner = |pair: &[Place]| [pair[0], (pair[1].0, pair[0].1)];
    places.windows(2).flat_map(corner).chain(places.last().copied()).collect()
}

/// A line cut at the borders of a rectangle.
fn pieces_within(places: &[Place], width: f64, height: f64) -> Vec<Vec<Place>> {
    let mut pieces: Vec<Vec<Place>> = Vec::new();
    let mut open: Option<Place> = None;
    for pair in places.windows(2) {
        let Some((from, to)) = segment_within(pair[0], pair[1], width, height) else {
            open = None;
            continue;
        };
        match (pieces.last_mut(), open == Some(from)) {
            (Some(piece), true) => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
        open = (to == pair[1]).then_some(to);
    }
    pieces
}

/// The part of a segment that lies in the rectangle (Liang and Barsky); half a pixel more, for rounding.
fn segment_within(from: Place, to: Place, width: f64, height: f64) -> Option<(Place, Place)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    let borders = [(-dx, from.0 + 0.5), (dx, width + 0.5 - from.0), (-dy, from.1 + 0.5), (dy, height + 0.5 - from.1)];
    for (speed, room) in borders {
        match speed {
            0.0 if room < 0.0 => return None,
            0.0 => {}
            _ if speed < 0.0 => enter = enter.max(room / speed),
            _ => leave = leave.min(room / speed),
        }
    }
    // The ends themselves, not what rounding makes of them.
    let at = |share: f64| match share {
        0.0 => from,
        1.0 => to,
        _ => (from.0 + share * dx, from.1 + share * dy),
    };
    (enter <= leave).then(|| (at(enter), at(leave)))
}

// ---- bars ------------------------------------------------------------------------------------------------------

/// From one bar to the next.
const BAR: f64 = 26.0;

fn draw_bars(svg: &mut Svg, bars: &Bars, width: f64, titled: bool) {
    head(svg, &bars.title, titled);
    let names: Vec<String> = bars.bars.iter().map(|bar| name(&bar.name)).collect();
    let left = MARGIN + names.iter().map(|name| width_of(name)).fold(0.0, f64::max) + 10.0;
    let right = width - MARGIN - bars.bars.iter().map(|bar| width_of(&bar.words)).fold(0.0, f64::max) - 8.0;
    let wide = (right - left).max(20.0);
    let (zero, ends) = bars.shares();
    let top = MARGIN + LINE + 10.0;
    for (at, ((bar, name), (from, to))) in bars.bars.iter().zip(&names).zip(ends).enumerate() {
        let middle = top + BAR * (at as f64 + 0.5);
        let (begin, end) = (left + from * wide, left + to * wide);
        svg.words(name, (left - 10.0, middle), Anchor::End, INK);
        svg.rectangle((begin, middle - 8.0), (end, middle + 8.0), Ink::Fill(bar.colour.hex().0, 1.0));
        svg.words(&bar.words, (end + 7.0, middle), Anchor::Start, SOFT);
    }
    let (at, bottom) = (left + zero * wide, top + BAR * bars.bars.len() as f64);
    svg.path(&[(at, top - 2.0), (at, bottom + 2.0)], Ink::Line(AXIS, 1.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_the_border() {
        // Out to the right, and back in further down.
        let line = [(1.0, 1.0), (9.0, 1.0), (20.0, 1.0), (20.0, 5.0), (5.0, 5.0)];
        assert_eq!(
            pieces_within(&line, 10.0, 10.0),
            [vec![(1.0, 1.0), (9.0, 1.0), (10.5, 1.0)], vec![(10.5, 5.0), (5.0, 5.0)]]
        );
        assert!(pieces_within(&[(-5.0, -5.0), (-1.0, 20.0)], 10.0, 10.0).is_empty());
        // Through and through.
        assert_eq!(pieces_within(&[(-9.5, 5.0), (20.5, 5.0)], 10.0, 10.0), [vec![(-0.5, 5.0), (10.5, 5.0)]]);
    }

    #[test]
    fn steps_hold_until_the_next_place() {
        assert_eq!(stairs(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
        assert_eq!(stairs(&[(0.0, 1.0)]), [(0.0, 1.0)]);
    }
}
