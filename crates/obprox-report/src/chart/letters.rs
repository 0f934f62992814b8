//! How wide words are in the font of the pictures, so that no font of the machine decides a layout.

/// Widths from the blank to `~`, in thousandths of the size of the font.
#[rustfmt::skip]
const ASCII: [u16; 95] = [
    281, 278, 403, 631, 638, 812, 639, 222, 362, 362, 500, 659, 280, 460, 276, 357, 625, 464, 605, 636, 642, 608, 624, 571,
    616, 624, 276, 280, 659, 659, 659, 507, 936, 676, 651, 727, 719, 598, 587, 743, 740, 264, 543, 652, 562, 889, 753, 761,
    635, 761, 639, 638, 642, 741, 676, 949, 642, 665, 625, 362, 357, 362, 469, 452, 497, 564, 621, 558, 621, 582, 361, 609,
    591, 237, 237, 544, 237, 869, 585, 597, 609, 609, 372, 523, 364, 581, 557, 812, 540, 557, 541, 362, 327, 362, 659,
];
/// Those of the signs beside axes.
const SIGNS: [(char, u16); 19] = [
    ('−', 659),
    ('·', 276),
    ('×', 659),
    ('…', 821),
    ('λ', 585),
    ('‖', 358),
    ('₁', 313),
    ('₂', 420),
    ('⁻', 439),
    ('⁰', 440),
    ('¹', 313),
    ('²', 420),
    ('³', 430),
    ('⁴', 436),
    ('⁵', 415),
    ('⁶', 425),
    ('⁷', 388),
    ('⁸', 428),
    ('⁹', 425),
];
/// An average sign, for all others.
const OTHER: u16 = 600;

/// The width of words in a font of this size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|sign| size * f64::from(thousandths(sign)) / 1000.0).sum()
}

fn thousandths(sign: char) -> u16 {
    let plain = (sign as usize).checked_sub(' ' as usize).and_then(|at| ASCII.get(at));
    let known = plain.or_else(|| SIGNS.iter().find(|(known, _)| *known == sign).map(|(_, width)| width));
    *known.unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_the_width_of_their_signs() {
        assert_eq!(width("", 12.0), 0.0);
        assert!((width("Fe λ", 10.0) - (5.87 + 5.82 + 2.81 + 5.85)).abs() < 1e-9);
        assert_eq!(thousandths('~'), 659);
        assert_eq!([thousandths('\u{1f}'), thousandths('\u{7f}'), thousandths('漢')], [OTHER; 3]);
    }

    #[cfg(feature = "png")]
    #[test]
    fn widths_are_those_of_the_font() {
        use ttf_parser::Face;

        let face = Face::parse(crate::chart::png::FONTS[0], 0).unwrap();
        let unit = f64::from(face.units_per_em());
        for sign in (' '..='~').chain(SIGNS.map(|(sign, _)| sign)) {
            let glyph = face.glyph_index(sign).unwrap();
            let wide = 1000.0 * f64::from(face.glyph_hor_advance(glyph).unwrap()) / unit;
            assert!((wide - f64::from(thousandths(sign))).abs() <= 0.5, "{sign}: {wide}");
        }
    }
}
