//! Numbers beside an axis: as short as they can be.

/// A number of few digits, written out, unless it is very large or very small.
pub(super) fn written_out(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-4..1e6 => minus(&rounded(value)),
        size => {
            let exponent = size.log10().floor();
            let mantissa = rounded(value / 10f64.powf(exponent));
            minus(&match &mantissa[..] {
                "1" => format!("10{}", superscript(exponent as i64)),
                _ => format!("{mantissa}·10{}", superscript(exponent as i64)),
            })
        }
    }
}

/// A power of ten as such.
pub(super) fn power(value: f64) -> String {
    let exponent = value.log10().round();
    match exponent {
        _ if (value.log10() - exponent).abs() > 1e-6 => written_out(value),
        0.0 | 1.0 => written_out(value),
        _ => format!("10{}", superscript(exponent as i64)),
    }
}

/// At most six decimals, none of them a zero at the end.
fn rounded(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The sign that is as wide as a plus.
fn minus(text: &str) -> String {
    text.replace('-', "−")
}

fn superscript(number: i64) -> String {
    let raised = |sign: char| match sign {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit.to_digit(10).unwrap_or(0)).unwrap_or(digit),
    };
    number.to_string().chars().map(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-0.25, "−0.25"),
            (12000.0, "12000"),
            (3e-7, "3·10⁻⁷"),
            (1e9, "10⁹"),
            (-2.5e12, "−2.5·10¹²"),
            (0.30000000000000004, "0.3"),
        ];
        for (value, words) in cases {
            assert_eq!(written_out(value), words);
        }
        assert_eq!(["10⁻¹²", "1", "10", "10³", "5"].map(str::to_owned), [1e-12, 1.0, 10.0, 1e3, 5.0].map(power));
    }
}
