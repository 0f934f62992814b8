//! Axes: which values they take, how far they reach, and where their ticks are.

use super::number;

/// An axis, as it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub label: String,
    /// Whether it is logarithmic; values of 0 and below are then left out.
    pub log: bool,
    /// Whether it runs from large to small.
    pub reversed: bool,
    /// How its numbers are written.
    pub unit: Unit,
    /// What it must include beside the data.
    pub including: Vec<f64>,
    /// From where to where, whatever the data; lines that leave it are cut off.
    pub range: Option<(f64, f64)>,
}

/// How the numbers of an axis are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// As they are.
    #[default]
    Number,
    /// A share of 1, as percent.
    Percent,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Self {
        let (unit, including) = (Unit::Number, Vec::new());
        Self { label: label.into(), log: false, reversed: false, unit, including, range: None }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Self {
        Self { log: true, ..Self::linear(label) }
    }

    /// From large to small.
    pub fn reversed(mut self) -> Self {
        self.reversed = true;
        self
    }

    /// Shares written as percent.
    pub fn percent(mut self) -> Self {
        self.unit = Unit::Percent;
        self
    }

    /// Reaching at least to `value`.
    pub fn including(mut self, value: f64) -> Self {
        self.including.push(value);
        self
    }

    /// From `low` to `high`, whatever the data.
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// Whether a value has a place on it.
    pub fn takes(&self, value: f64) -> bool {
        // Numbers at the ends of what a float can hold have no room beside them.
        value.abs() < 1e280 && (!self.log || value > 1e-280)
    }

    /// The axis of these values, with some air at its ends and about so many ticks.
    pub(crate) fn scale(&self, values: impl Iterator<Item = f64>, air: f64, ticks: usize) -> Scale {
        let values = values.chain(self.including.iter().copied()).filter(|&value| self.takes(value));
        let place = |value: f64| if self.log { value.log10() } else { value };
        let (least, most) = values
            .map(place)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| (least.min(value), most.max(value)));
        let given = self.range.filter(|&(low, high)| self.takes(low) && self.takes(high) && low < high);
        let (low, high) = match (given, most - least) {
            (Some((low, high)), _) => (place(low), place(high)),
            (None, spread) if spread > 1e-9 * most.abs().max(least.abs()) => {
                // What must be included is a border, and needs no air behind it.
                let air = |at: f64| match self.including.iter().any(|&value| place(value) == at) {
                    true => 0.0,
                    false => air * spread,
                };
                (least - air(least), most + air(most))
            }
            // One value, or none, still needs a height.
            (None, spread) if spread >= 0.0 => {
                let half = if self.log || least == 0.0 { 0.5 } else { 0.1 * least.abs() };
                (least - half, most + half)
            }
            (None, _) => (0.0, 1.0),
        };
        let ticks = if self.log { log_ticks(low, high, ticks) } else { linear_ticks(low, high, ticks) };
        let plain = !self.log || (high - low < 3.0 && low >= -3.0);
        Scale { low, high, log: self.log, reversed: self.reversed, unit: self.unit, ticks, plain }
    }
}

/// An axis that knows its data.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// The lower end; of a logarithmic axis its logarithm.
    low: f64,
    high: f64,
    log: bool,
    reversed: bool,
    unit: Unit,
    /// Where the ticks are, as values.
    pub ticks: Vec<f64>,
    /// Whether numbers are written out, or as powers of ten.
    plain: bool,
}

impl Scale {
    /// Where a value lies, as a share of the axis's length; outside of 0 to 1 where it is off the axis.
    pub fn share(&self, value: f64) -> f64 {
        let place = if self.log { value.log10() } else { value };
        let share = (place - self.low) / (self.high - self.low);
        if self.reversed { 1.0 - share } else { share }
    }

    /// Its ends as values, the lower first.
    pub fn ends(&self) -> (f64, f64) {
        let value = |place: f64| if self.log { 10f64.powf(place) } else { place };
        (value(self.low), value(self.high))
    }

    /// The words of a tick.
    pub fn words(&self, tick: f64) -> String {
        let number = |value: f64| match self.plain {
            true => number::written_out(value),
            false => number::power(value),
        };
        match self.unit {
            Unit::Number => number(tick),
            Unit::Percent => number(100.0 * tick) + " %",
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    let count = (last - first).clamp(-1.0, 100.0) as i64;
    // The sum turns −0 into 0; the quotient of whole numbers is the number closest to 0.3, the product is not.
    let value = |at: i64| match step < 1.0 {
        true => (first + at as f64) * (step / power) / power.recip().round() + 0.0,
        false => (first + at as f64) * step + 0.0,
    };
    (0..=count).map(value).collect()
}

/// Powers of ten; some of them where there are many, 2 and 5 times them where there are few.
fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let decades = |every: f64, factors: &[f64]| -> Vec<f64> {
        let first = (low / every).floor() as i64;
        let last = (high / every).ceil() as i64;
        let powers = (first..=last).map(|at| at as f64 * every);
        let values = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powf(power)));
        let within = |value: &f64| (low - 1e-9..=high + 1e-9).contains(&value.log10());
        values.filter(within).collect()
    };
    match high - low {
        span if span > most as f64 => decades((span / most as f64).ceil(), &[1.0]),
        span if span > 2.0 => decades(1.0, &[1.0]),
        span if span > 0.7 => decades(1.0, &[1.0, 2.0, 5.0]),
        // Less than a decade is as good as linear.
        _ => linear_ticks(10f64.powf(low), 10f64.powf(high), most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(scale: &Scale) -> Vec<String> {
        scale.ticks.iter().map(|&tick| scale.words(tick)).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 30.0, 6), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0]);
        assert_eq!(linear_ticks(-0.31, 0.29, 6), [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2]);
        assert_eq!(linear_ticks(1.0, 7.0, 3), [2.0, 4.0, 6.0]);
        assert_eq!(log_ticks(-3.0, 0.0, 6), [1e-3, 1e-2, 1e-1, 1.0]);
        assert_eq!(log_ticks(-12.0, 0.0, 6), [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0]);
        assert_eq!(log_ticks(-1.0, 0.2, 6), [0.1, 0.2, 0.5, 1.0]);
    }

    #[test]
    fn ticks_have_words() {
        let scale = |axis: Axis, values: &[f64]| words(&axis.scale(values.iter().copied(), 0.0, 5));
        assert_eq!(scale(Axis::log(""), &[1e-6, 1.0]), ["10⁻⁶", "10⁻⁴", "10⁻²", "1"]);
        assert_eq!(scale(Axis::linear("").percent(), &[0.0, 1.0]), ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]);
        assert_eq!(scale(Axis::linear(""), &[0.1, 0.4]), ["0.1", "0.2", "0.3", "0.4"]);
    }

    #[test]
    fn a_share_is_a_place() {
        let scale = Axis::log("").reversed().scale([1e-4, 1.0].into_iter(), 0.0, 5);
        assert_eq!((scale.share(1.0), scale.share(1e-4), scale.share(1e-2)), (0.0, 1.0, 0.5));
        assert_eq!(scale.ends(), (1e-4, 1.0));
    }

    #[test]
    fn any_values_have_an_axis() {
        for axis in [Axis::linear(""), Axis::log(""), Axis::linear("").including(0.0), Axis::log("").range(1.0, -1.0)] {
            for values in [
                &[][..],
                &[0.0],
                &[-3.0, -3.0],
                &[f64::NAN, f64::INFINITY],
                &[1e-270, 1e270],
                &[f64::MAX, f64::MIN],
                &[7.0],
            ] {
                let scale = axis.scale(values.iter().copied(), 0.05, 5);
                let (low, high) = (scale.share(scale.ends().0), scale.share(scale.ends().1));
                assert!(low.is_finite() && high.is_finite() && low < high, "{axis:?} {values:?}");
                assert!(scale.ticks.len() < 30 && scale.ticks.iter().all(|tick| tick.is_finite()), "{scale:?}");
            }
        }
    }
}
