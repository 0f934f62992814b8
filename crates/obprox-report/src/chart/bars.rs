//! Bars beside their names, from zero to the right and, where values are negative, to the left.

use super::Colour;

/// A bar for each of some names.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What it shows.
    pub title: String,
    /// From top to bottom.
    pub bars: Vec<Bar>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What is measured.
    pub name: String,
    /// How much; a value that is not finite has no bar.
    pub value: f64,
    /// The value in words.
    pub words: String,
    /// Its colour.
    pub colour: Colour,
}

impl Bars {
    /// No bars yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), bars: Vec::new() }
    }

    /// Adds a bar.
    pub fn bar(mut self, name: impl Into<String>, value: f64, words: impl Into<String>, colour: Colour) -> Self {
        self.bars.push(Bar { name: name.into(), value, words: words.into(), colour });
        self
    }

    /// Where zero is, as a share of the width, and each bar's ends.
    pub fn shares(&self) -> (f64, Vec<(f64, f64)>) {
        let finite = || self.bars.iter().map(|bar| bar.value).filter(|value| value.is_finite());
        let (low, high) = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
        let width = if high > low { high - low } else { 1.0 };
        let (zero, share) = (-low / width, |value: f64| (value - low) / width);
        let ends = |bar: &Bar| match bar.value.is_finite() {
            true => (zero.min(share(bar.value)), zero.max(share(bar.value))),
            false => (zero, zero),
        };
        (zero, self.bars.iter().map(ends).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_begin_at_zero() {
        let bars = |values: &[f64]| {
            let add = |bars: Bars, &value: &f64| bars.bar("", value, "", Colour::Muted);
            values.iter().fold(Bars::new(""), add).shares()
        };
        assert_eq!(bars(&[4.0, 1.0]), (0.0, vec![(0.0, 1.0), (0.0, 0.25)]));
        assert_eq!(bars(&[3.0, -1.0, f64::NAN]), (0.25, vec![(0.25, 1.0), (0.0, 0.25), (0.25, 0.25)]));
        assert_eq!(bars(&[0.0]), (0.0, vec![(0.0, 0.0)]));
    }
}
