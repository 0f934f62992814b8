//! Charts beside each other, as SVG or PNG.

use obprox::{Error, Result};
use resvg::{tiny_skia, usvg};

use super::draw;
use super::{Bars, Chart};

/// Something that is drawn in a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Panel {
    /// Series over axes.
    Chart(Box<Chart>),
    /// Bars beside names.
    Bars(Bars),
}

impl From<Chart> for Panel {
    fn from(chart: Chart) -> Self {
        Self::Chart(Box::new(chart))
    }
}

impl From<Bars> for Panel {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

/// Panels in rows, on white.
#[derive(Clone, Debug)]
pub struct Figure {
    /// From left to right, then from top to bottom.
    pub panels: Vec<Panel>,
    /// Panels in a row.
    pub columns: usize,
    /// The width of a panel, in pixels.
    pub width: u32,
    /// The height of a chart, in pixels; bars are as high as they are many.
    pub height: u32,
    /// Whether titles are drawn, or only told to those who cannot see.
    pub titles: bool,
}

/// How many pixels of a PNG stand for one of the SVG: screens are finer than they were.
const DENSITY: f32 = 2.0;
/// More than this many pixels are no picture.
const MOST_PIXELS: u64 = 1 << 27;

impl Figure {
    /// One panel by itself.
    pub fn of(panel: impl Into<Panel>) -> Self {
        Self::new([panel.into()])
    }

    /// Panels one below the other.
    pub fn new(panels: impl IntoIterator<Item = Panel>) -> Self {
        Self { panels: panels.into_iter().collect(), columns: 1, width: 680, height: 360, titles: true }
    }

    /// So many panels in a row.
    pub fn columns(mut self, columns: usize) -> Self {
        self.columns = columns.max(1);
        self
    }

    /// The size of a panel, in pixels.
    pub fn size(mut self, width: u32, height: u32) -> Self {
        (self.width, self.height) = (width.clamp(200, 4000), height.clamp(120, 4000));
        self
    }

    /// Titles stand elsewhere.
    pub fn without_titles(mut self) -> Self {
        self.titles = false;
        self
    }

    /// The picture as SVG. Its text is text; the font is Inter, or what the reader's machine has in its stead.
    pub fn to_svg(&self) -> String {
        draw::svg(self)
    }

    /// The same picture as PNG, two pixels for one.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let failed = |why: String| Error::Data(format!("a picture cannot be made: {why}"));
        let mut options = usvg::Options { font_family: "Inter".into(), ..usvg::Options::default() };
        let fonts = options.fontdb_mut();
        fonts.load_system_fonts();
        draw::FONTS.iter().for_each(|(_, font)| fonts.load_font_data(font.to_vec()));
        fonts.set_sans_serif_family("Inter");
        let tree = usvg::Tree::from_str(&self.to_svg(), &options).map_err(|error| failed(error.to_string()))?;
        let size = tree.size().to_int_size();
        let (width, height) = (2 * size.width(), 2 * size.height());
        if u64::from(width) * u64::from(height) > MOST_PIXELS {
            return Err(failed(format!("{width} × {height} pixels are too many")));
        }
        let mut pixels = tiny_skia::Pixmap::new(width, height).ok_or_else(|| failed("it is empty".into()))?;
        resvg::render(&tree, tiny_skia::Transform::from_scale(DENSITY, DENSITY), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| failed(error.to_string()))
    }
}
