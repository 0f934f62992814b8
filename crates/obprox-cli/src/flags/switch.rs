//! `--switch`, `--np` and `--no`: when Prox-SG gives way to Orthant, in the same words for linear problems and networks.

use obprox::switch::{Switch, Unit};

use super::{count, number};

/// A number of rounds, or without end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounds(pub Option<u64>);

/// What `--switch` says: what N_P and N_O count, or what is measured instead.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SwitchRule {
    Counted(Unit),
    Measured(Switch),
}

/// The rules that a linear problem has.
pub fn parse_switch(text: &str) -> Result<SwitchRule, String> {
    match rule(text)? {
        Some(rule) if !matches!(rule, SwitchRule::Measured(Switch::Stalled(_))) => Ok(rule),
        _ => Err("must be epochs, iterations, adaptive, objective:VALUE or score:VALUE".into()),
    }
}

/// The rules that a network has.
#[cfg(feature = "net")]
pub fn parse_network_switch(text: &str) -> Result<SwitchRule, String> {
    match rule(text)? {
        Some(rule) if rule != SwitchRule::Measured(Switch::Adaptive) => Ok(rule),
        _ => Err("must be epochs, iterations, objective:VALUE, score:VALUE or stalled:N".into()),
    }
}

/// Any rule by its words; nothing where they name none.
fn rule(text: &str) -> Result<Option<SwitchRule>, String> {
    let target = |value| number(value).map_err(|why| format!("what is to be reached {why}"));
    Ok(Some(match text.split_once(':').unwrap_or((text, "")) {
        ("epochs", "") => SwitchRule::Counted(Unit::Epochs),
        ("iterations", "") => SwitchRule::Counted(Unit::Iterations),
        ("adaptive", "") => SwitchRule::Measured(Switch::Adaptive),
        ("objective", value) => SwitchRule::Measured(Switch::Objective(target(value)?)),
        ("score", value) => SwitchRule::Measured(Switch::Score(target(value)?)),
        ("stalled", value) => SwitchRule::Measured(Switch::Stalled(count(value)?)),
        _ => return Ok(None),
    }))
}

/// N_O: a number, or inf.
pub fn parse_rounds(text: &str) -> Result<Rounds, String> {
    match (text, text.parse()) {
        ("inf", _) => Ok(Rounds(None)),
        (_, Ok(rounds)) => Ok(Rounds(Some(rounds))),
        _ => Err("must be a whole number or inf".into()),
    }
}

/// A rule in the words of `--switch`.
pub fn switch_words(switch: Switch) -> String {
    match switch {
        Switch::Fixed { unit: Unit::Epochs, .. } => "epochs".into(),
        Switch::Fixed { unit: Unit::Iterations, .. } => "iterations".into(),
        Switch::Adaptive => "adaptive".into(),
        Switch::Objective(value) => format!("objective:{value}"),
        Switch::Score(value) => format!("score:{value}"),
        Switch::Stalled(count) => format!("stalled:{count}"),
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
    fn words_are_read_and_given_back() {
        for words in ["epochs", "iterations", "adaptive", "objective:0.25", "score:0.9", "stalled:3"] {
            let switch = match rule(words).unwrap().unwrap() {
                SwitchRule::Counted(unit) => Switch::Fixed { prox: 1, orthant: None, unit },
                SwitchRule::Measured(switch) => switch,
            };
            assert_eq!(switch_words(switch), words);
        }
        let wrong = ["", "score", "score:", "score:nan", "epochs:3", "fixed", "stalled:3", "stalled:0"];
        assert!(wrong.iter().all(|text| parse_switch(text).is_err()));
        assert!(["x", "1.5", "-1"].iter().all(|text| parse_rounds(text).is_err()));
    }

    #[cfg(feature = "net")]
    #[test]
    fn each_side_has_its_own_rules() {
        assert!(parse_switch("adaptive").is_ok() && parse_network_switch("adaptive").is_err());
        assert!(parse_switch("stalled:3").is_err() && parse_network_switch("stalled:3").is_ok());
    }
}
