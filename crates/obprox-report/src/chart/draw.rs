//! Descriptions → SVG, by plotters. One look for all: a light grid, no frame, words instead of ink.
//!
//! Plotters counts whole pixels, which makes curves jagged; so everything is drawn [`FINE`] times as large, and the
//! view box of the picture brings it back.

use std::sync::Once;

use plotters::backend::SVGBackend;
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, DashedPathElement, PathElement, Polygon, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBAColor, ShapeStyle, TextStyle, register_font};

use super::scale::Scale;
use super::{Bars, Chart, Colour, Figure, Mark, Panel, Series, Shape};

/// The fonts that every layout is measured with, and every PNG written in.
pub(super) const FONTS: [(FontStyle, &[u8]); 2] = [
    (FontStyle::Normal, include_bytes!("../../assets/Inter-Regular.otf")),
    (FontStyle::Bold, include_bytes!("../../assets/Inter-SemiBold.otf")),
];
/// What the SVG asks for.
const FAMILY: &str = "Inter, system-ui, sans-serif";

const FINE: f64 = 8.0;
const INK: &str = "#20262e";
const SOFT: &str = "#5c6570";
const GRID: &str = "#e6e8eb";
const AXIS: &str = "#aab0b8";

const TITLE: f64 = 15.0;
const WORDS: f64 = 12.0;
/// The white around a panel.
const MARGIN: f64 = 16.0;
/// From one line of words to the next.
const LINE: f64 = 20.0;
/// Names longer than this are cut.
const NAME: usize = 28;
/// Marks closer than this, in pixels, share the room for their words.
const CLOSE: f64 = 90.0;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Nothing can go wrong while drawing into a string, but plotters cannot know that.
type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<std::io::Error>>;

/// The figure as SVG.
pub(super) fn svg(figure: &Figure) -> String {
    static FONT: Once = Once::new();
    FONT.call_once(|| {
        for (style, bytes) in FONTS {
            // A font that cannot be read leaves words unmeasured, not undrawn.
            let _ = register_font(FAMILY, style, bytes);
        }
    });
    let rows: Vec<&[Panel]> = figure.panels.chunks(figure.columns.max(1)).collect();
    let columns = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let heights: Vec<f64> =
        rows.iter().map(|row| row.iter().map(|panel| height(panel, figure)).fold(0.0, f64::max)).collect();
    let (width, height) = (f64::from(figure.width) * columns as f64, heights.iter().sum::<f64>());
    let mut text = String::new();
    {
        let canvas = SVGBackend::with_string(&mut text, (fine(width) as u32, fine(height) as u32)).into_drawing_area();
        let mut top = 0.0;
        for (row, height) in rows.iter().zip(&heights) {
            for (column, panel) in row.iter().enumerate() {
                let left = column as f64 * f64::from(figure.width);
                let place =
                    canvas.clone().shrink((fine(left), fine(top)), (fine(f64::from(figure.width)), fine(*height)));
                let drawn = match panel {
                    Panel::Chart(chart) => draw_chart(&place, chart, figure.titles),
                    Panel::Bars(bars) => draw_bars(&place, bars, figure.titles),
                };
                drawn.expect("drawing into a string cannot fail");
            }
            top += height;
        }
        canvas.present().expect("drawing into a string cannot fail");
    }
    let titles: Vec<&str> = figure.panels.iter().map(title).collect();
    with_header(&text, width, height, &titles.join("; "))
}

/// Plotters' own header does not know of the view box, of round joints, or of those who cannot see.
fn with_header(svg: &str, width: f64, height: f64, name: &str) -> String {
    let body = svg.split_once('>').map_or("", |(_, body)| body);
    let escaped = clean(name).replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {} {}\" \
         stroke-linejoin=\"round\" stroke-linecap=\"round\" role=\"img\" aria-label=\"{escaped}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{body}",
        fine(width),
        fine(height)
    )
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

fn fine(pixels: f64) -> i32 {
    (FINE * pixels).round() as i32
}

// ---- words and colours -----------------------------------------------------------------------------------------

fn rgb(hex: &str, opacity: f64) -> RGBAColor {
    let part = |at: usize| hex.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
    RGBAColor(part(1), part(3), part(5), opacity)
}

fn stroke(hex: &str, width: f64) -> ShapeStyle {
    rgb(hex, 1.0).stroke_width(fine(width) as u32)
}

fn words(size: f64, hex: &str, style: FontStyle, anchor: HPos, line: VPos) -> TextStyle<'static> {
    // Plotters' sizes are heights of lines; 1.24 is what it takes for the height of a line of size 1.
    let font = FontDesc::new(FontFamily::Name(FAMILY), 1.24 * FINE * size, style);
    TextStyle { font, color: rgb(hex, 1.0).to_backend_color(), pos: Pos::new(anchor, line) }
}

fn small(hex: &str, anchor: HPos) -> TextStyle<'static> {
    words(WORDS, hex, FontStyle::Normal, anchor, VPos::Center)
}

/// In pixels.
fn width_of(area: &Canvas, text: &str, style: &TextStyle) -> f64 {
    // Where the font lacks a sign it is about as wide as an average one.
    let guess = 0.6 * WORDS * text.chars().count() as f64;
    area.estimate_text_size(text, style).map_or(guess, |(width, _)| f64::from(width) / FINE)
}

/// Signs that XML cannot hold, and names without end.
fn clean(text: &str) -> String {
    let shown =
        |sign: char| if sign.is_control() || matches!(sign, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { sign };
    text.chars().map(shown).collect()
}

fn name(text: &str) -> String {
    match text.char_indices().nth(NAME) {
        Some(_) => clean(&text.chars().take(NAME - 1).chain(['…']).collect::<String>()),
        None => clean(text),
    }
}

fn write(area: &Canvas, text: &str, style: &TextStyle, x: f64, y: f64) -> Drawn {
    area.draw_text(text, style, (fine(x), fine(y)))
}

/// Writes the title; the height below it.
fn head(area: &Canvas, title: &str, titled: bool) -> Drawn<f64> {
    if !titled || title.is_empty() {
        return Ok(0.0);
    }
    let style = words(TITLE, INK, FontStyle::Bold, HPos::Left, VPos::Center);
    write(area, &clean(title), &style, MARGIN, MARGIN + 0.5 * TITLE)?;
    Ok(MARGIN + TITLE)
}

// ---- charts ----------------------------------------------------------------------------------------------------

fn draw_chart(area: &Canvas, chart: &Chart, titled: bool) -> Drawn {
    let (width, height) = size(area);
    let mut top = draw_legend(area, chart, head(area, &chart.title, titled)? + 9.0)?;
    if !chart.y.label.is_empty() {
        write(area, &clean(&chart.y.label), &small(SOFT, HPos::Left), MARGIN, top + 0.5 * LINE)?;
        top += LINE;
    }
    top += 4.0;

    // ---- axes ------------------------------------------------------------------------------------------------
    let (x, y) = scales(chart, width, height - top);
    let number = small(SOFT, HPos::Right);
    let labels = y.ticks.iter().map(|&tick| width_of(area, &y.words(tick), &number)).fold(0.0, f64::max);
    let below = if chart.x.label.is_empty() { 0.0 } else { LINE };
    // The last number of the horizontal axis reaches over its end.
    let right = MARGIN.max(4.0 + 0.5 * x.ticks.last().map_or(0.0, |&tick| width_of(area, &x.words(tick), &number)));
    let mut axes = ChartBuilder::on(area)
        .margin_top(fine(top))
        .margin_right(fine(right))
        .margin_left(fine(MARGIN))
        .margin_bottom(fine(MARGIN - 6.0 + below))
        .x_label_area_size(fine(22.0))
        .y_label_area_size(fine(labels + 8.0))
        .build_cartesian_2d(x.clone(), y.clone())?;
    axes.configure_mesh()
        .bold_line_style(stroke(GRID, 1.0))
        .light_line_style(rgb(GRID, 0.0))
        .axis_style(stroke(AXIS, 1.0))
        .x_label_style(words(WORDS, SOFT, FontStyle::Normal, HPos::Center, VPos::Top))
        .y_label_style(number)
        .set_all_tick_mark_size(fine(4.0))
        .disable_x_mesh()
        .draw()?;
    let plot = axes.plotting_area().strip_coord_spec();
    let frame = Frame::new(&plot, &x, &y);
    let label = small(SOFT, HPos::Center);
    let middle = f64::from(plot.get_base_pixel().0 - area.get_base_pixel().0) / FINE + 0.5 * frame.width;
    write(area, &clean(&chart.x.label), &label, middle, height - MARGIN - 1.0)?;

    // ---- what lies behind, then the series from the last to the first ----------------------------------------
    frame.draw_bands(chart)?;
    let colours = chart.colours();
    for (series, &colour) in chart.series.iter().zip(&colours).rev() {
        frame.draw_series(series, colour)?;
    }
    frame.draw_marks(chart)?;
    for note in chart.notes.iter().filter(|note| chart.x.takes(note.x) && chart.y.takes(note.y)) {
        let (x, y) = frame.place(note.x, note.y);
        write(&plot, &clean(&note.text), &small(INK, HPos::Center), x, y)?;
    }
    Ok(())
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
fn draw_legend(area: &Canvas, chart: &Chart, top: f64) -> Drawn<f64> {
    let named: Vec<(&Series, Colour)> =
        chart.series.iter().zip(chart.colours()).filter(|(series, _)| !series.name.is_empty()).collect();
    if named.len() < 2 {
        return Ok(top);
    }
    let style = small(INK, HPos::Left);
    let (mut x, mut y) = (MARGIN, top + 0.5 * LINE);
    for (series, colour) in named {
        let words = name(&series.name);
        let wide = 22.0 + width_of(area, &words, &style) + 16.0;
        if x > MARGIN && x + wide > size(area).0 - MARGIN + 16.0 {
            (x, y) = (MARGIN, y + LINE);
        }
        let hex = colour.hex().0;
        let (from, to) = ((fine(x), fine(y)), (fine(x + 16.0), fine(y)));
        match series.shape {
            Shape::Points => area.draw(&Circle::new((fine(x + 8.0), fine(y)), fine(3.5), rgb(hex, 1.0).filled()))?,
            Shape::Area => {
                let corners = [(fine(x), fine(y - 5.0)), (fine(x + 16.0), fine(y + 5.0))];
                area.draw(&Rectangle::new(corners, rgb(hex, AREA).filled()))?;
            }
            _ if series.dashed => {
                area.draw(&DashedPathElement::new([from, to], fine(5.0), fine(4.0), stroke(hex, 2.5)))?;
            }
            _ => area.draw(&PathElement::new(vec![from, to], stroke(hex, 2.5)))?,
        }
        write(area, &words, &style, x + 22.0, y)?;
        x += wide;
    }
    Ok(y + 0.5 * LINE + 2.0)
}

/// So few points of a line are drawn as points too.
pub(crate) const FEW: usize = 10;

/// How much of what lies behind is seen through a filled region.
const AREA: f64 = 0.22;

fn size(area: &Canvas) -> (f64, f64) {
    let (width, height) = area.dim_in_pixel();
    (f64::from(width) / FINE, f64::from(height) / FINE)
}

/// The place between the axes.
struct Frame<'a, 'b> {
    plot: &'a Canvas<'b>,
    x: &'a Scale,
    y: &'a Scale,
    width: f64,
    height: f64,
}

impl<'a, 'b> Frame<'a, 'b> {
    fn new(plot: &'a Canvas<'b>, x: &'a Scale, y: &'a Scale) -> Self {
        let (width, height) = size(plot);
        Self { plot, x, y, width, height }
    }

    /// In pixels, from the upper left corner.
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.share(x) * self.width, (1.0 - self.y.share(y)) * self.height)
    }

    fn inside(&self, (x, y): (f64, f64)) -> bool {
        (-0.5..=self.width + 0.5).contains(&x) && (-0.5..=self.height + 0.5).contains(&y)
    }

    fn draw_bands(&self, chart: &Chart) -> Drawn {
        let mut named: Vec<&str> = Vec::new();
        for band in &chart.bands {
            let ends = [band.from, band.to].map(|end| (self.x.share(end) * self.width).clamp(0.0, self.width));
            let (left, right) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            if right <= left || right.is_nan() {
                continue;
            }
            let (hex, opacity) = band.colour.map_or((SOFT, 0.08), |colour| (colour.hex().0, 0.12));
            let corners = [(fine(left), 0), (fine(right), fine(self.height))];
            self.plot.draw(&Rectangle::new(corners, rgb(hex, opacity).filled()))?;
            if !named.contains(&&band.name[..]) && !band.name.is_empty() {
                named.push(&band.name);
                write(self.plot, &clean(&band.name), &small(SOFT, HPos::Left), left + 5.0, 9.0)?;
            }
        }
        Ok(())
    }

    fn draw_marks(&self, chart: &Chart) -> Drawn {
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
                    let (anchor, near) = if left { (HPos::Right, x - 5.0) } else { (HPos::Left, x + 5.0) };
                    ((x, 0.0), (x, self.height), text, anchor, (near, 9.0))
                }
                Mark::Level(y, text) => {
                    let y = (1.0 - self.y.share(*y)) * self.height;
                    let near = if y < 18.0 { y + 9.0 } else { y - 9.0 };
                    ((0.0, y), (self.width, y), text, HPos::Right, (self.width - 4.0, near))
                }
            };
            if !self.inside(from) {
                continue;
            }
            let ends = [from, to].map(|(x, y)| (fine(x), fine(y)));
            self.plot.draw(&DashedPathElement::new(ends, fine(4.0), fine(4.0), stroke(SOFT, 1.0)))?;
            write(self.plot, &clean(text), &small(SOFT, anchor), at.0, at.1)?;
        }
        Ok(())
    }

    fn draw_series(&self, series: &Series, colour: Colour) -> Drawn {
        let hex = colour.hex().0;
        let places = self.places(&series.points);
        if !series.spread.is_empty() {
            let low = self.places(&series.spread.iter().map(|&(x, low, _)| (x, low)).collect::<Vec<_>>());
            let high = self.places(&series.spread.iter().map(|&(x, _, high)| (x, high)).collect::<Vec<_>>());
            self.fill(low.into_iter().chain(high.into_iter().rev()), hex, 0.15)?;
        }
        let style = stroke(hex, if series.thin { 0.8 } else { 2.0 });
        match series.shape {
            Shape::Line => self.draw_line(&places, series.dashed, style)?,
            Shape::Step => self.draw_line(&stairs(&places), series.dashed, style)?,
            Shape::Points => {
                for &(x, y) in places.iter().filter(|&&place| self.inside(place)) {
                    self.plot.draw(&Circle::new((fine(x), fine(y)), fine(2.5), rgb(hex, 0.85).filled()))?;
                }
            }
            Shape::Area => self.fill(places.iter().copied(), hex, AREA)?,
        }
        // A line of one point is no line, and one of a few says little without them.
        if matches!(series.shape, Shape::Line | Shape::Step) && places.len() <= FEW && !series.thin {
            for &(x, y) in places.iter().filter(|&&place| self.inside(place)) {
                self.plot.draw(&Circle::new((fine(x), fine(y)), fine(2.8), rgb(hex, 1.0).filled()))?;
            }
        }
        for dot in series.dots.iter().filter(|dot| dot.x.is_finite() && dot.y.is_finite()) {
            let (x, y) = self.place(dot.x, dot.y);
            if self.inside((x, y)) {
                let inner = if dot.filled { rgb(hex, 1.0) } else { rgb("#ffffff", 1.0) };
                self.plot.draw(&Circle::new((fine(x), fine(y)), fine(4.0), inner.filled()))?;
                self.plot.draw(&Circle::new((fine(x), fine(y)), fine(4.0), stroke(hex, 1.6)))?;
            }
        }
        Ok(())
    }

    fn places(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let places = points.iter().map(|&(x, y)| self.place(x, y));
        places.filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
    }

    fn draw_line(&self, places: &[(f64, f64)], dashed: bool, style: ShapeStyle) -> Drawn {
        for piece in pieces_within(places, self.width, self.height) {
            let points: Vec<(i32, i32)> = piece.iter().map(|&(x, y)| (fine(x), fine(y))).collect();
            match dashed {
                true => self.plot.draw(&DashedPathElement::new(points, fine(6.0), fine(4.0), style))?,
                false => self.plot.draw(&PathElement::new(points, style))?,
            }
        }
        Ok(())
    }

    /// A filled region; what lies off the axes is pressed to the border.
    fn fill(&self, corners: impl Iterator<Item = (f64, f64)>, hex: &str, opacity: f64) -> Drawn {
        let within = |(x, y): (f64, f64)| (fine(x.clamp(0.0, self.width)), fine(y.clamp(0.0, self.height)));
        let corners: Vec<(i32, i32)> = corners.map(within).collect();
        match corners.len() {
            0..3 => Ok(()),
            _ => self.plot.draw(&Polygon::new(corners, rgb(hex, opacity).filled())),
        }
    }
}

/// Each height holds until the next place.
fn stairs(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corner = |pair: &[(f64, f64)]| [pair[0], (pair[1].0, pair[0].1)];
    places.windows(2).flat_map(corner).chain(places.last().copied()).collect()
}

/// A line cut at the borders of a rectangle.
fn pieces_within(places: &[(f64, f64)], width: f64, height: f64) -> Vec<Vec<(f64, f64)>> {
    let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
    let mut open: Option<(f64, f64)> = None;
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
fn segment_within(from: (f64, f64), to: (f64, f64), width: f64, height: f64) -> Option<((f64, f64), (f64, f64))> {
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

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.share(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        let (low, high) = self.ends();
        low..high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, value: &f64) -> String {
        self.words(*value)
    }
}

// ---- bars ------------------------------------------------------------------------------------------------------

/// From one bar to the next.
const BAR: f64 = 26.0;

fn draw_bars(area: &Canvas, bars: &Bars, titled: bool) -> Drawn {
    head(area, &bars.title, titled)?;
    let (names, values) = (small(INK, HPos::Right), small(SOFT, HPos::Left));
    let widest = |texts: &mut dyn Iterator<Item = String>, style: &TextStyle| {
        texts.map(|text| width_of(area, &text, style)).fold(0.0, f64::max)
    };
    let left = MARGIN + widest(&mut bars.bars.iter().map(|bar| name(&bar.name)), &names) + 10.0;
    let right = size(area).0 - MARGIN - widest(&mut bars.bars.iter().map(|bar| bar.words.clone()), &values) - 8.0;
    let wide = (right - left).max(20.0);
    let (zero, ends) = bars.shares();
    let top = MARGIN + LINE + 10.0;
    for (at, (bar, (from, to))) in bars.bars.iter().zip(&ends).enumerate() {
        let middle = top + BAR * (at as f64 + 0.5);
        write(area, &name(&bar.name), &names, left - 10.0, middle)?;
        let corners = [(left + from * wide, middle - 8.0), (left + to * wide, middle + 8.0)];
        let corners = corners.map(|(x, y)| (fine(x), fine(y)));
        area.draw(&Rectangle::new(corners, rgb(bar.colour.hex().0, 1.0).filled()))?;
        write(area, &clean(&bar.words), &values, left + to * wide + 7.0, middle)?;
    }
    let line = [(left + zero * wide, top - 2.0), (left + zero * wide, top + BAR * bars.bars.len() as f64 + 2.0)];
    area.draw(&PathElement::new(line.map(|(x, y)| (fine(x), fine(y))).to_vec(), stroke(AXIS, 1.0)))
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
