//! A chart as a description: series, axes, marks. How it looks is decided elsewhere, once for all charts: as a picture
//! by [`Figure`], as SVG and, with the cargo feature `png`, as PNG.
//!
//! ```
//! use obprox_report::chart::{Axis, Chart, Figure, Series};
//!
//! let decay = |rate: f64| (0..30).map(move |epoch| (f64::from(epoch), (-rate * f64::from(epoch)).exp()));
//! let chart = Chart::new("Distance to the optimum", Axis::linear("epoch"), Axis::log("F − F*"))
//!     .series(Series::line("slow", decay(0.1)))
//!     .series(Series::line("fast", decay(0.8)))
//!     .mark(15.0, "Orthant steps begin");
//! let figure = Figure::of(chart);
//! assert!(figure.to_svg().starts_with("<svg "));
//! # #[cfg(feature = "png")]
//! assert!(figure.to_png()?.starts_with(b"\x89PNG"));
//! # Ok::<(), obprox::Error>(())
//! ```

mod bars;
mod colour;
mod draw;
mod figure;
mod letters;
mod number;
#[cfg(feature = "png")]
mod png;
mod scale;
mod svg;

pub use bars::{Bar, Bars};
pub use colour::{Colour, PALETTE};
pub(crate) use draw::{FEW, scales};
pub use figure::{Figure, Panel};
pub use scale::{Axis, Unit};

/// Series over a pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn; the first lies on top.
    pub series: Vec<Series>,
    /// Dashed lines across the chart.
    pub marks: Vec<Mark>,
    /// Stretches of the horizontal axis that are shaded.
    pub bands: Vec<Band>,
    /// Words at a place.
    pub notes: Vec<Note>,
}

/// A named set of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name in the legend; a series without one is left out there.
    pub name: String,
    /// How the points are joined.
    pub shape: Shape,
    /// (x, y), in the order they are joined. A point that is not finite, or has no logarithm where the axis wants one,
    /// is left out, and the line goes on at the next.
    pub points: Vec<(f64, f64)>,
    /// Nothing takes the next colour of the palette.
    pub colour: Option<Colour>,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// A thin line stands back behind the others.
    pub thin: bool,
    /// A range around the curve: (x, low, high).
    pub spread: Vec<(f64, f64, f64)>,
    /// Points that are drawn as such.
    pub dots: Vec<Dot>,
}

/// How the points of a series are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// By straight lines.
    Line,
    /// The value of a point holds until the next.
    Step,
    /// Not at all.
    Points,
    /// They are the corners of a filled region.
    Area,
}

/// A point that stands out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Where.
    pub x: f64,
    /// Where.
    pub y: f64,
    /// A disc, or else a ring.
    pub filled: bool,
}

/// A dashed line across the chart, with a word to it.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// Upright, at a place of the horizontal axis.
    At(f64, String),
    /// Level, at a height of the vertical axis.
    Level(f64, String),
}

/// A shaded stretch of the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// One end.
    pub from: f64,
    /// The other.
    pub to: f64,
    /// What it stands for; written at its top, and for bands of one name only once.
    pub name: String,
    /// Its colour; nothing is grey.
    pub colour: Option<Colour>,
}

/// Words at a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Where their middle is.
    pub x: f64,
    /// Where their middle is.
    pub y: f64,
    /// The words.
    pub text: String,
}

impl Chart {
    /// An empty chart.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let (series, marks, bands, notes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { title: title.into(), x, y, series, marks, bands, notes }
    }

    /// Adds a series.
    pub fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Marks a place of the horizontal axis.
    pub fn mark(mut self, x: f64, words: impl Into<String>) -> Self {
        self.marks.push(Mark::At(x, words.into()));
        self
    }

    /// Marks a height of the vertical axis.
    pub fn level(mut self, y: f64, words: impl Into<String>) -> Self {
        self.marks.push(Mark::Level(y, words.into()));
        self
    }

    /// Shades a stretch of the horizontal axis.
    pub fn band(mut self, from: f64, to: f64, name: impl Into<String>) -> Self {
        self.bands.push(Band { from, to, name: name.into(), colour: None });
        self
    }

    /// Writes words at a place.
    pub fn note(mut self, x: f64, y: f64, text: impl Into<String>) -> Self {
        self.notes.push(Note { x, y, text: text.into() });
        self
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        let drawn = |series: &Series| series.points.iter().any(|&(x, y)| self.x.takes(x) && self.y.takes(y));
        !self.series.iter().any(drawn)
    }

    /// The colour of each series: its own, or the next of the palette.
    pub fn colours(&self) -> Vec<Colour> {
        let mut next = 0..;
        let colour = |series: &Series| series.colour.unwrap_or_else(|| Colour::Palette(next.next().unwrap_or(0)));
        self.series.iter().map(colour).collect()
    }
}

impl Series {
    /// A series of a shape.
    pub fn new(name: impl Into<String>, shape: Shape, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self {
            name: name.into(),
            shape,
            points: points.into_iter().collect(),
            colour: None,
            dashed: false,
            thin: false,
            spread: Vec::new(),
            dots: Vec::new(),
        }
    }

    /// Points joined by straight lines.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Line, points)
    }

    /// Points joined as steps.
    pub fn step(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Step, points)
    }

    /// Points by themselves.
    pub fn points(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Points, points)
    }

    /// A filled region with these corners.
    pub fn area(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Shape::Area, points)
    }

    /// A colour of its own.
    pub fn coloured(mut self, colour: Colour) -> Self {
        self.colour = Some(colour);
        self
    }

    /// Dashed.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Thin.
    pub fn thin(mut self) -> Self {
        self.thin = true;
        self
    }

    /// With a range around the curve: (x, low, high).
    pub fn spread(mut self, range: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        self.spread = range.into_iter().collect();
        self
    }

    /// With points that stand out.
    pub fn dots(mut self, dots: impl IntoIterator<Item = Dot>) -> Self {
        self.dots = dots.into_iter().collect();
        self
    }
}
