//! One palette for everything that is drawn: told apart by the colour-blind, on white and on black.

/// The colours of series, as (on white, on black): those of Okabe and Ito, the yellow left out, the others shifted a
/// little so that a thin line is seen on either ground.
pub const PALETTE: [(&str, &str); 8] = [
    ("#0072b2", "#4ba6e3"),
    ("#de8f05", "#f0b03f"),
    ("#029e73", "#2fc79b"),
    ("#cc6fa5", "#e79ac4"),
    ("#d55e00", "#ff8647"),
    ("#20262e", "#e8eaed"),
    ("#56b4e9", "#9bd3f7"),
    ("#7a5195", "#b592d1"),
];

/// The colour of something drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    /// One of the palette, which begins again at its end.
    Palette(usize),
    /// Grey, for what stands back.
    Muted,
}

/// Grey on white and on black.
const MUTED: (&str, &str) = ("#b4bac2", "#565d66");

impl Colour {
    /// As hexadecimal digits, on white and on black.
    pub fn hex(self) -> (&'static str, &'static str) {
        match self {
            Self::Palette(at) => PALETTE[at % PALETTE.len()],
            Self::Muted => MUTED,
        }
    }
}
