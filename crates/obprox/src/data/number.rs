//! Decimal text → double, correctly rounded: the common short number by hand, every other by the standard library.

/// The largest integer up to which doubles hold every integer.
const EXACT: u64 = 1 << 53;

/// The powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// So many decimal digits always fit a `u64`.
pub(super) const MOST_DIGITS: usize = 19;

/// `number` continued by the digits that start at `at`, and where they end. Wraps beyond [`MOST_DIGITS`].
#[inline]
pub(super) fn digits(text: &[u8], mut at: usize, mut number: u64) -> (u64, usize) {
    while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        number = number.wrapping_mul(10).wrapping_add(digit.into());
        at += 1;
    }
    (number, at)
}

/// The number that the `len` bytes before `end` are, where they are digits, 1 to 8 of them, and there are 8 bytes at all.
///
/// All at once: a loop over digits would be predicted wrong at the end of nearly every number.
#[inline(always)]
pub(super) fn digits_before(text: &[u8], end: usize, len: usize) -> Option<u64> {
    const EACH: u64 = 0x0101_0101_0101_0101;
    if !(1..=8).contains(&len) {
        return None;
    }
    let bytes = u64::from_le_bytes(text.get(end.wrapping_sub(8)..end)?.try_into().ok()?);
    // A digit becomes its value; what lies before them becomes 0.
    let values = (bytes ^ (EACH * 0x30)) & (u64::MAX << (64 - 8 * len));
    // Anything else has its highest bit set by what is added.
    if (((values & (EACH * 0x7F)) + EACH * 0x76) | values) & (EACH * 0x80) != 0 {
        return None;
    }
    // Pairs, fours, eights; the first byte is the lowest.
    let pairs = values.wrapping_mul(10) + (values >> 8);
    let fours = (pairs & 0x00FF_00FF_00FF_00FF).wrapping_mul(1 + (100 << 16)) >> 16;
    Some((fours & 0x0000_FFFF_0000_FFFF).wrapping_mul(1 + (10_000 << 32)) >> 32)
}

/// The powers of ten up to that of as many digits as [`usual`] reads.
const TENS: [u64; MOST_PLACES + 1] = {
    let mut tens = [1; MOST_PLACES + 1];
    let mut power = 1;
    while power < tens.len() {
        tens[power] = 10 * tens[power - 1];
        power += 1;
    }
    tens
};

/// Digits after the point that [`usual`] reads: with one before it they fit a `u64`.
const MOST_PLACES: usize = 18;

/// For each number of places k: 2^(128 + s) / 5^k rounded up, in two words, and the s that fills them.
const FIFTHS: [([u64; 2], u32); MOST_PLACES + 1] = {
    let mut fifths = [([0, 0], 0); MOST_PLACES + 1];
    let (mut places, mut power) = (1, 1u128);
    while places <= MOST_PLACES {
        power *= 5;
        // A long division, bit by bit, from the first bit that is not zero.
        let (mut quotient, mut rest, mut bits) = (0u128, 1u128, 0);
        while bits < 128 + power.ilog2() {
            rest *= 2;
            quotient = quotient << 1 | (rest >= power) as u128;
            rest %= power;
            bits += 1;
        }
        quotient += 1;
        fifths[places] = ([(quotient >> 64) as u64, quotient as u64], power.ilog2());
        places += 1;
    }
    fifths
};

/// mantissa / 10^places, rightly rounded; nothing where 128 bits of the quotient cannot tell.
///
/// With the mantissa shifted to fill its word, its product with the rounded up 2^(128 + s)/5^places is too large by less
/// than 2⁶⁴, of 192 bits. So the first word of it is right unless the second is zero, and what follows the first word is
/// not zero unless the second is 0 or 1.
#[inline(always)]
fn over_power_of_ten(mantissa: u64, places: usize) -> Option<f64> {
    let ([high, low], fill) = FIFTHS[places];
    let shift = mantissa.leading_zeros();
    let mantissa = u128::from(mantissa << shift);
    let product = mantissa * u128::from(high) + ((mantissa * u128::from(low)) >> 64);
    if (product as u64) <= 1 {
        return None;
    }
    // The last bit stands for all that was cut off: a double has no room for it, and rounds by it.
    let first = ((product >> 64) as u64 | 1) as f64;
    let exponent = 1023 - (fill + shift) as u64 - places as u64;
    Some(first * f64::from_bits(exponent << 52))
}

/// The number from `start` to `end` where it is written in one of the usual ways: a few digits, or one before the point and
/// up to 18 after it, with a sign or not. [`unusual`] reads the others.
#[inline(always)]
pub(super) fn usual(text: &[u8], start: usize, end: usize) -> Option<f64> {
    let sign = *text.get(start)?;
    let start = start + usize::from(sign == b'-' || sign == b'+');
    let len = end.checked_sub(start)?;
    let (mantissa, places) = if len > 2 && text.get(start + 1) == Some(&b'.') {
        let (first, places) = (text[start].wrapping_sub(b'0'), len - 2);
        if first > 9 {
            return None;
        }
        let after = match places {
            ..=8 => digits_before(text, end, places)?,
            9..=16 => digits_before(text, end - 8, places - 8)? * TENS[8] + digits_before(text, end, 8)?,
            17..=MOST_PLACES => {
                let first = digits_before(text, end - 16, places - 16)? * TENS[8];
                (first + digits_before(text, end - 8, 8)?) * TENS[8] + digits_before(text, end, 8)?
            }
            _ => return None,
        };
        let mantissa = u64::from(first) * TENS[places] + after;
        if mantissa > EXACT {
            return Some(signed(sign, over_power_of_ten(mantissa, places)?));
        }
        (mantissa, places)
    } else if len == 1 {
        let digit = text[start].wrapping_sub(b'0');
        (if digit > 9 { return None } else { digit.into() }, 0)
    } else {
        (digits_before(text, end, len)?, 0)
    };
    // Both are exact, so the quotient is rounded once.
    let size = if places == 0 { mantissa as f64 } else { mantissa as f64 / POWERS[places] };
    Some(signed(sign, size))
}

/// A size with its sign, which is as good as random.
#[inline(always)]
fn signed(sign: u8, size: f64) -> f64 {
    f64::from_bits(size.to_bits() | u64::from(sign == b'-') << 63)
}

/// The finite number from `start` to `end`, however it is written.
#[inline(never)]
pub(super) fn unusual(text: &[u8], start: usize, end: usize) -> Option<f64> {
    str::from_utf8(text.get(start..end)?).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The number at the start of `text` and its length in bytes, or nothing where none starts there. The grammar is that
/// of `str::parse::<f64>` without the words for NaN and infinity; too large a number comes out infinite.
// Always inlined: handing the result back through memory showed in the profile.
#[inline(always)]
pub(super) fn scan(text: &[u8]) -> Option<(f64, usize)> {
    let byte = |at: usize| text.get(at).copied().unwrap_or(0);
    let start = usize::from(matches!(byte(0), b'+' | b'-'));
    let (mut mantissa, mut at) = digits(text, start, 0);
    let mut n_digits = at - start;
    let mut exponent = 0;
    if byte(at) == b'.' {
        let point = at;
        (mantissa, at) = digits(text, point + 1, mantissa);
        n_digits += at - point - 1;
        exponent = -((at - point - 1) as i64);
    }
    if n_digits == 0 {
        return None;
    }
    if matches!(byte(at), b'e' | b'E') {
        let (written, len) = scan_exponent(&text[at + 1..])?;
        exponent = exponent.saturating_add(written);
        at += 1 + len;
    }
    // Mantissa and power of ten are both exact, so the one rounding of the product or quotient is the right one
    // (Clinger 1990).
    if n_digits <= MOST_DIGITS && mantissa <= EXACT && exponent.unsigned_abs() <= 22 {
        let power = POWERS[exponent.unsigned_abs() as usize];
        let size = if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power };
        return Some((if text[0] == b'-' { -size } else { size }, at));
    }
    Some((str::from_utf8(&text[..at]).ok()?.parse().ok()?, at))
}

/// What follows the letter of an exponent: its value, saturated, and its length.
fn scan_exponent(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit());
    let (size, len) = digits
        .fold((0i64, 0), |(size, len), &byte| (size.saturating_mul(10).saturating_add((byte - b'0').into()), len + 1));
    (len > 0).then(|| (if text[0] == b'-' { -size } else { size }, sign + len))
}

/// A field that must be one finite number, or what is wrong with it.
pub(super) fn parse(field: &[u8]) -> Result<f64, String> {
    match scan(field) {
        Some((value, len)) if len == field.len() && value.is_finite() => Ok(value),
        other => Err(complaint(field, other.is_some_and(|(_, len)| len == field.len()))),
    }
}

/// What a file with the line ends of old Macintosh text looks like.
pub(super) const CARRIAGE_RETURN: &str = "a carriage return inside a line: end lines with LF or CR LF";

/// Whether a field is a number or stands for a missing one, as against a name.
pub(super) fn looks_numeric(field: &[u8]) -> bool {
    scan(field).is_some_and(|(_, len)| len == field.len()) || is_word_for_no_number(field)
}

fn is_word_for_no_number(field: &[u8]) -> bool {
    let word = field.strip_prefix(b"-").or(field.strip_prefix(b"+")).unwrap_or(field).to_ascii_lowercase();
    matches!(&word[..], b"nan" | b"na" | b"null" | b"inf" | b"infinity")
}

#[cold]
fn complaint(field: &[u8], too_large: bool) -> String {
    if too_large {
        format!("{} is too large for a double", shown(field))
    } else if field.is_empty() {
        format!("a number is missing: {FILL_IT_IN}")
    } else if is_word_for_no_number(field) {
        format!("{} is not a finite number: {FILL_IT_IN}", shown(field))
    } else if field.contains(&b'\r') {
        CARRIAGE_RETURN.into()
    } else {
        format!("{} {NOT_A_NUMBER}", shown(field))
    }
}

/// The end of what is said of a word in the place of a number.
pub(super) const NOT_A_NUMBER: &str = "is not a number";

/// The end of what is said of a number that is missing.
pub(super) const FILL_IT_IN: &str = "fill it in or drop the row";

/// Whether a field of a table stands for a number that is missing.
pub(super) fn is_missing(field: &[u8]) -> bool {
    const WORDS: [&str; 7] = ["", "na", "n/a", "nan", "null", "none", "?"];
    WORDS.iter().any(|word| field.eq_ignore_ascii_case(word.as_bytes()))
}

/// Text of a file as part of a message: in quotes, unprintable bytes escaped, cut where long.
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let escape = |text: &[u8]| match str::from_utf8(text) {
        Ok(text) => text.escape_debug().to_string(),
        Err(_) => text.escape_ascii().to_string(),
    };
    if text.len() <= MOST {
        return format!("`{}`", escape(text));
    }
    // A cut inside a character would make the rest look like stray bytes.
    let cut = (MOST - 3..=MOST).rev().find(|&at| text[at] & 0xC0 != 0x80).unwrap_or(MOST);
    format!("`{}…`", escape(&text[..cut]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slow twin: the standard library on the longest prefix that it accepts.
    fn twin(text: &str) -> Option<(f64, usize)> {
        let numeric = |text: &str| !text.bytes().any(|byte| matches!(byte, b'n' | b'N' | b'i' | b'I'));
        text.parse().ok().filter(|_| numeric(text)).map(|value| (value, text.len()))
    }

    fn assert_same(text: &str) {
        // With something before it, as in a line.
        let line = format!("+1 12345:{text}");
        if let Some(value) = usual(line.as_bytes(), "+1 12345:".len(), line.len()) {
            assert_eq!(Some(value.to_bits()), twin(text).map(|(value, _)| value.to_bits()), "{text:?}");
        }
        let got = scan(text.as_bytes()).filter(|(_, len)| *len == text.len());
        let bits = |found: Option<(f64, usize)>| found.map(|(value, len)| (value.to_bits(), len));
        assert_eq!(bits(got), bits(twin(text)), "{text:?}");
    }

    #[test]
    fn odd_numbers() {
        for text in [
            "",
            "-",
            "+",
            ".",
            "-.",
            "1.",
            ".5",
            "-.5e3",
            "1e",
            "1e+",
            "1e5",
            "1.e-5",
            "-0",
            "0e999",
            "1e400",
            "1e-400",
            "9007199254740993",
            "9007199254740992e22",
            "1e23",
            "8.5e-23",
            "18446744073709551616",
            "1e99999999999999999999",
            "00000000000000000000000000001",
            "0.00000000000000000000000000001",
            "1_0",
            "0x10",
            "nan",
            "inf",
            "5e-324",
            "2.2250738585072011e-308",
            "1e5.5",
            "+-1",
            "--1",
            "+1",
        ] {
            assert_same(text);
        }
    }

    #[test]
    fn usual_numbers() {
        for text in [
            "1",
            "-7",
            "+3",
            "0.5",
            "-1.017172",
            "12345678",
            "0.00533867",
            "0.123456789012345",
            "9.1234567890",
            "0.12345678901234567",
            "-9.9999999999999999",
            "0.025318128851733682",
            "9.007199254740993",
            "9.999999999999999999",
        ] {
            let line = format!("-1 3:{text}");
            let expected: f64 = text.parse().unwrap();
            assert_eq!(usual(line.as_bytes(), 5, line.len()).map(f64::to_bits), Some(expected.to_bits()), "{text}");
        }
        // The last two are sums of few powers of two: 128 bits do not tell them from their neighbours.
        for text in [
            "",
            "-",
            ".",
            "1.",
            ".5",
            "1e5",
            "1:2",
            "0x1",
            "123456789",
            "0.1234567890123456789",
            "0.500000000000000000",
            "1.250000000000000000",
        ] {
            let line = format!("-1 30000000:{text}");
            assert_eq!(usual(line.as_bytes(), 12, line.len()), None, "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn every_double_comes_back(bits: u64) {
            let value = f64::from_bits(bits);
            if value.is_finite() {
                assert_same(&format!("{value}"));
                assert_same(&format!("{value:e}"));
            }
        }

        #[test]
        fn equals_the_standard_library(text in "[+-]?[0-9]{0,21}(\\.[0-9]{0,21})?([eE][+-]?[0-9]{0,4})?") {
            assert_same(&text);
        }

        #[test]
        fn numbers_with_all_their_digits(text in "-?[0-9]\\.[0-9]{14,19}") {
            assert_same(&text);
        }

        #[test]
        fn short_numbers(text in "-?[0-9]{1,3}\\.[0-9]{0,16}(e-?[0-9]{1,2})?") {
            assert_same(&text);
        }
    }
}
