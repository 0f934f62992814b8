//! SVG, written as it is drawn: lines, shapes and words in pixels, hundredths of them at the finest.

use std::fmt::Write;

use super::letters;

/// What the SVG asks for.
const FAMILY: &str = "Inter, system-ui, sans-serif";
/// The size of all words but titles.
pub(super) const WORDS: f64 = 12.0;

pub(super) type Place = (f64, f64);

/// A drawing that grows.
pub(super) struct Svg {
    text: String,
}

/// How lines are drawn, and what is filled.
#[derive(Clone, Copy)]
pub(super) enum Ink {
    /// A line of a colour and a width.
    Line(&'static str, f64),
    /// The same, with dashes and gaps of these lengths.
    Dashes(&'static str, f64, [f64; 2]),
    /// A colour, and how much of what lies behind it is covered.
    Fill(&'static str, f64),
}

/// Which end of words is at their place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// White of this size; `name` is for those who cannot see it.
    pub fn new(width: f64, height: f64, name: &str) -> Self {
        let [width, height] = [width, height].map(shown);
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" stroke-linejoin=\"round\" stroke-linecap=\"round\" \
             font-family=\"{FAMILY}\" font-size=\"{}\" role=\"img\" aria-label=\"{}\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            shown(WORDS),
            escaped(name)
        );
        Self { text }
    }

    pub fn finish(self) -> String {
        self.text + "</svg>\n"
    }

    /// What follows is measured from this place, until [`end`](Self::end).
    pub fn begin(&mut self, (x, y): Place) {
        self.line(format_args!("<g transform=\"translate({} {})\">", shown(x), shown(y)));
    }

    pub fn end(&mut self) {
        self.line(format_args!("</g>"));
    }

    /// A line from place to place.
    pub fn path(&mut self, places: &[Place], ink: Ink) {
        self.line(format_args!("<polyline points=\"{}\"{}/>", corners(places), ink.attributes()));
    }

    /// A closed shape.
    pub fn area(&mut self, places: &[Place], ink: Ink) {
        self.line(format_args!("<polygon points=\"{}\"{}/>", corners(places), ink.attributes()));
    }

    /// A rectangle between two corners, the upper left one first.
    pub fn rectangle(&mut self, (left, top): Place, (right, bottom): Place, ink: Ink) {
        let [x, y, width, height] = [left, top, right - left, bottom - top].map(shown);
        let ink = ink.attributes();
        self.line(format_args!("<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{ink}/>"));
    }

    pub fn circle(&mut self, (x, y): Place, radius: f64, ink: Ink) {
        let [x, y, radius] = [x, y, radius].map(shown);
        self.line(format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"{}/>", ink.attributes()));
    }

    /// Words whose middle is at this height.
    pub fn words(&mut self, text: &str, (x, y): Place, anchor: Anchor, colour: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let [x, y] = [x, y].map(shown);
        let words = escaped(text);
        self.line(format_args!("<text x=\"{x}\" y=\"{y}\" dy=\".36em\"{anchor} fill=\"{colour}\">{words}</text>"));
    }

    /// The same, larger and bold.
    pub fn title(&mut self, text: &str, (x, y): Place, size: f64, colour: &str) {
        let [x, y, size] = [x, y, size].map(shown);
        let words = escaped(text);
        let style = format!("font-size=\"{size}\" font-weight=\"600\" fill=\"{colour}\"");
        self.line(format_args!("<text x=\"{x}\" y=\"{y}\" dy=\".36em\" {style}>{words}</text>"));
    }

    fn line(&mut self, words: std::fmt::Arguments) {
        writeln!(self.text, "{words}").expect("writing into a string cannot fail");
    }
}

impl Ink {
    fn attributes(self) -> String {
        match self {
            Self::Line(colour, width) => {
                format!(" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\"", shown(width))
            }
            Self::Dashes(colour, width, lengths) => {
                let [dash, gap] = lengths.map(shown);
                // Round ends would fill the gaps.
                let dashes = format!(" stroke-dasharray=\"{dash} {gap}\" stroke-linecap=\"butt\"");
                Self::Line(colour, width).attributes() + &dashes
            }
            Self::Fill(colour, 1.0) => format!(" fill=\"{colour}\""),
            Self::Fill(colour, opacity) => format!(" fill=\"{colour}\" fill-opacity=\"{opacity}\""),
        }
    }
}

/// In pixels, of words that are not a title.
pub(super) fn width_of(text: &str) -> f64 {
    letters::width(text, WORDS)
}

fn corners(places: &[Place]) -> String {
    let words: Vec<String> = places.iter().map(|&(x, y)| format!("{},{}", shown(x), shown(y))).collect();
    words.join(" ")
}

/// Hundredths of a pixel, and none where there are none.
fn shown(value: f64) -> String {
    ((100.0 * value).round() / 100.0 + 0.0).to_string()
}

/// Words as XML holds them, without the signs that it cannot.
fn escaped(text: &str) -> String {
    let mut words = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '&' => words.push_str("&amp;"),
            '<' => words.push_str("&lt;"),
            '>' => words.push_str("&gt;"),
            '"' => words.push_str("&quot;"),
            _ if sign.is_control() || matches!(sign, '\u{fffe}' | '\u{ffff}') => words.push('\u{fffd}'),
            _ => words.push(sign),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_need_to_be() {
        assert_eq!([0.0, -0.001, 12.0, 0.125, 33.3333].map(shown), ["0", "0", "12", "0.13", "33.33"]);
    }

    #[test]
    fn words_cannot_leave_their_place() {
        assert_eq!(escaped("a<b> & \"c\"\u{0}\u{ffff}"), "a&lt;b&gt; &amp; &quot;c&quot;\u{fffd}\u{fffd}");
    }
}
