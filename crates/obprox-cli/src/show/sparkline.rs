//! A curve in one line of text.

use obprox_report::terminal::heights;

use super::{digits, sampled};

/// So many characters, to stay within 80 columns with the words around them.
const WIDTH: usize = 50;

/// A name, the values as heights, and the ends of their range; gaps where a value is not finite.
pub fn sparkline(name: &str, values: &[f64]) -> String {
    let shown: Vec<f64> = sampled(values.len(), WIDTH).into_iter().map(|at| values[at]).collect();
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return String::new();
    }
    let line = heights(shown, low, high);
    let number = |value: f64| if value.fract() == 0.0 { value.to_string() } else { digits(value, 4) };
    format!(" {name:<8} {line}  {} … {}\n", number(low), number(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_follow_values() {
        assert_eq!(sparkline("nnz", &[0.0, 1.0, 7.0]), " nnz      ▁▂█  0 … 7\n");
        assert_eq!(sparkline("same", &[2.5, 2.5]), " same     ▁▁  2.500 … 2.500\n");
        assert_eq!(sparkline("gap", &[0.0, f64::INFINITY, 1.0]), " gap      ▁ █  0 … 1\n");
        assert_eq!(sparkline("none", &[f64::NAN]), "");
        assert!(sparkline("long", &[1.0; 1000]).chars().count() < 80);
    }
}
