//! Numbers for people: as few digits as tell what matters.

/// Six significant digits.
pub fn significant(value: f64) -> String {
    digits(value, 6)
}

/// So many significant digits, in the notation that is easier to read.
pub fn digits(value: f64, count: i32) -> String {
    let size = value.abs();
    if value == 0.0 || !value.is_finite() {
        value.to_string()
    } else if (1e-3..1e6).contains(&size) {
        let decimals = (count - 1 - size.log10().floor() as i32).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.*e}", (count - 2).max(0) as usize)
    }
}

/// The same without the zeros at the end, for numbers that someone chose.
pub fn trimmed(value: f64) -> String {
    let text = significant(value);
    let (digits, exponent) = text.find('e').map_or((&text[..], ""), |at| text.split_at(at));
    match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned() + exponent,
        false => text,
    }
}

/// The size of an error: two significant digits.
pub fn rough(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if (0.095..0.995).contains(&value) => format!("{value:.2}"),
        _ if (0.995..99.5).contains(&value) => format!("{value:.1}"),
        _ => format!("{value:.1e}"),
    }
}

/// With its sign.
pub fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    sign.to_owned() + &significant(value)
}

/// A share: never rounded to 0 or 100 % where it is neither.
pub fn percent(share: f64) -> String {
    let value = 100.0 * share;
    match value {
        0.0 => "0 %".into(),
        _ if value < 1e-3 => format!("{value:.1e} %"),
        _ if value < 0.1 => format!("{value:.4} %"),
        _ if value < 100.0 => format!("{:.2} %", value.min(99.99)),
        _ => format!("{value:.0} %"),
    }
}

/// A time.
pub fn seconds(time: f64) -> String {
    match time {
        _ if time < 1e-3 => format!("{:.0} µs", time * 1e6),
        _ if time < 1.0 => format!("{:.1} ms", time * 1e3),
        _ if time < 120.0 => format!("{time:.2} s"),
        _ => format!("{:.0} min {:02.0} s", (time / 60.0).floor(), time % 60.0),
    }
}

/// How many times as much.
pub fn times(ratio: f64) -> String {
    if ratio < 99.95 { format!("{ratio:.1}×") } else { format!("{ratio:.0}×") }
}

/// One noun, or many.
pub fn plural(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A large count in groups of three.
pub fn grouped(count: u64) -> String {
    let text = count.to_string();
    let mut out = String::new();
    for (at, digit) in text.chars().enumerate() {
        // A thin space that no line breaks at; numbers of four digits are read at a glance.
        if at > 0 && (text.len() - at).is_multiple_of(3) && text.len() > 4 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A path without its directories.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// A command line that a shell reads as these words.
pub fn shell(words: &[String]) -> String {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || "_@%+=:,./-".contains(sign);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!([7, 1500, 18811, 1572529].map(grouped), ["7", "1500", "18\u{202f}811", "1\u{202f}572\u{202f}529"]);
    }

    #[test]
    fn command_lines_can_be_pasted() {
        let words = ["obprox", "fit", "my data.svm", "it's", "", "--at", "0.5max,1/N", "$(rm)"].map(str::to_owned);
        assert_eq!(shell(&words), r"obprox fit 'my data.svm' 'it'\''s' '' --at 0.5max,1/N '$(rm)'");
    }
}
