//! `--np` and `--no`, in the same words for linear problems and networks; those of `--switch` are the library's.

use obprox::switch::Switch;

/// A number of rounds, or without end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds(pub Option<u64>);

/// N_O: a number, or inf.
pub fn parse_rounds(text: &str) -> Result<Rounds, String> {
    match (text, text.parse()) {
        ("inf", _) => Ok(Rounds(None)),
        (_, Ok(rounds)) => Ok(Rounds(Some(rounds))),
        _ => Err("must be a whole number or inf".into()),
    }
}

/// N_P of a rule that counts.
pub fn np(switch: Switch) -> Option<u64> {
    if let Switch::Fixed { prox, .. } = switch { Some(prox) } else { None }
}

/// N_O of a rule that counts, in the words of `--no`.
pub fn no_words(switch: Switch) -> Option<String> {
    let Switch::Fixed { orthant, .. } = switch else { return None };
    Some(orthant.map_or("inf".into(), |rounds| rounds.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_a_number_or_inf() {
        assert_eq!((parse_rounds("3"), parse_rounds("inf")), (Ok(Rounds(Some(3))), Ok(Rounds(None))));
        assert!(["x", "1.5", "-1"].iter().all(|text| parse_rounds(text).is_err()));
    }
}
