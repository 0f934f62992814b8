//! Charts beside each other, as SVG.

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
}
