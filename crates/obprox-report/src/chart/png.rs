//! Figures as PNG: their SVG, drawn. With the cargo feature `png`.

use obprox::{Error, Result};
use resvg::{tiny_skia, usvg};

use super::Figure;

/// The fonts that words are written in: plain, and of titles.
pub(super) const FONTS: [&[u8]; 2] =
    [include_bytes!("../../assets/Inter-Regular.otf"), include_bytes!("../../assets/Inter-SemiBold.otf")];
/// How many pixels of a PNG stand for one of the SVG: screens are finer than they were.
const DENSITY: f32 = 2.0;
/// More than this many pixels are no picture.
const MOST_PIXELS: u64 = 1 << 27;

impl Figure {
    /// The same picture as PNG, two pixels for one.
    pub fn to_png(&self) -> Result<Vec<u8>> {
        let failed = |why: String| Error::Data(format!("a picture cannot be made: {why}"));
        let mut options = usvg::Options { font_family: "Inter".into(), ..usvg::Options::default() };
        let fonts = options.fontdb_mut();
        fonts.load_system_fonts();
        FONTS.iter().for_each(|font| fonts.load_font_data(font.to_vec()));
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
