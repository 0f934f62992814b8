//! Text → runs. A log that was cut off is read as far as it goes; a file that is no log is refused with its line.

use std::borrow::Cow;
use std::path::Path;

use obprox::{Error, Result};

use super::Run;
use super::event::Event;

const NO_LOG: &str = "not a run log, which has one JSON object a line as --log writes them";

/// Reads the runs of a file.
pub fn read_file(path: &Path) -> Result<Vec<Run>> {
    let text = std::fs::read(path).map_err(Error::reading(path))?;
    read(&text, &path.display().to_string())
}

/// Reads the runs of a text; `file` is its name in messages. One text may hold the logs of several runs.
pub fn read(text: &[u8], file: &str) -> Result<Vec<Run>> {
    let at = |line: usize, column: usize, message: String| Error::Parse {
        file: file.to_owned(),
        line: line as u64,
        column: column.max(1) as u64,
        message,
    };
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    let lines: Vec<(usize, &[u8])> = lines.filter(|(_, line)| !line.trim_ascii().is_empty()).collect();
    let mut runs: Vec<Run> = Vec::new();
    for (place, &(number, line)) in lines.iter().enumerate() {
        let number = number + 1;
        let event = match parse(line) {
            Ok(event) => event,
            // Whoever wrote this line did not come to its end.
            Err(error) if place + 1 == lines.len() && (error.is_eof() || !text.ends_with(b"\n")) => {
                match runs.last_mut() {
                    Some(run) => run.cut_line = Some(number),
                    None => return Err(at(number, error.column(), NO_LOG.into())),
                }
                break;
            }
            Err(error) if runs.is_empty() => return Err(at(number, error.column(), NO_LOG.into())),
            Err(error) => {
                let message = format!("not a line of a run log: {}", plain(&error));
                return Err(at(number, error.column(), message));
            }
        };
        match (event, runs.last_mut()) {
            (Event::Start(start), _) => runs.push(Run::new(file, number, *start)),
            (_, None) => {
                return Err(at(number, 1, format!("{NO_LOG}: the first is the start of a run")));
            }
            (event, Some(run)) => run.hear(event),
        }
    }
    match runs.is_empty() {
        true => Err(Error::file(file, format!("{NO_LOG}: it is empty"))),
        false => Ok(runs),
    }
}

fn parse(line: &[u8]) -> std::result::Result<Event, serde_json::Error> {
    let strict = serde_json::from_slice(line);
    match (strict, std::str::from_utf8(line).map(without_nan)) {
        (Err(_), Ok(Cow::Owned(text))) => serde_json::from_str(&text),
        (event, _) => event,
    }
}

/// serde_json counts lines too, but it only ever sees one.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

/// What JSON has no word for, and some programs write all the same, is null.
fn without_nan(line: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let mut rest = line;
    let (mut in_string, mut escaped, mut changed) = (false, false, false);
    while let Some(sign) = rest.chars().next() {
        let word = ["NaN", "-Infinity", "Infinity"].into_iter().find(|word| !in_string && rest.starts_with(word));
        if let Some(word) = word {
            (rest, changed) = (&rest[word.len()..], true);
            kept += "null";
            continue;
        }
        match sign {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            _ => {}
        }
        kept.push(sign);
        rest = &rest[sign.len_utf8()..];
    }
    if changed { Cow::Owned(kept) } else { Cow::Borrowed(line) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Ending;
    use obprox::Status;

    const START: &str = r#"{"event":"start","solver":"prox-sg","lambda":0.1}"#;
    const EPOCH: &str = r#"{"event":"epoch","epoch":1,"F":0.5,"phase":"prox","seconds":0.1}"#;
    const END: &str = r#"{"event":"end","status":"max_epochs","F":0.5,"largest_weights":[]}"#;

    fn runs(lines: &[&str]) -> Result<Vec<Run>> {
        read(lines.join("\n").as_bytes(), "run.jsonl")
    }

    fn refused(lines: &[&str]) -> String {
        runs(lines).unwrap_err().to_string()
    }

    #[test]
    fn a_whole_log() {
        let all = runs(&[START, EPOCH, r#"{"event":"of the future","x":[1]}"#, END, ""]).unwrap();
        assert_eq!((all.len(), all[0].epochs.len(), all[0].ending()), (1, 1, Ending::With(Status::MaxEpochs)));
        assert_eq!((all[0].file.as_str(), all[0].line, all[0].cut_line), ("run.jsonl", 1, None));
    }

    #[test]
    fn several_runs_in_one_file() {
        let all = runs(&[START, EPOCH, END, START, EPOCH]).unwrap();
        assert_eq!(all.iter().map(Run::ending).collect::<Vec<_>>(), [Ending::With(Status::MaxEpochs), Ending::CutOff]);
        assert_eq!(all[1].line, 4);
    }

    #[test]
    fn a_log_that_was_cut_off_is_read_as_far_as_it_goes() {
        for cut in [&EPOCH[..20], "{", "\0\0\0"] {
            let all = runs(&[START, EPOCH, cut]).unwrap();
            assert_eq!((all[0].epochs.len(), all[0].ending(), all[0].cut_line), (1, Ending::CutOff, Some(3)), "{cut}");
        }
        assert_eq!(runs(&[START, &EPOCH[..20], ""]).unwrap()[0].cut_line, Some(2));
        assert_eq!(runs(&[START]).unwrap()[0].epochs.len(), 0);
    }

    #[test]
    fn what_is_no_log_is_refused_with_its_line() {
        assert!(refused(&[]).starts_with("run.jsonl: not a run log") && refused(&[]).ends_with(": it is empty"));
        assert!(refused(&["1:2 3:4", ""]).starts_with("run.jsonl:1:1: not a run log"));
        assert!(refused(&["", r#"{"format":"obprox-linear"}"#]).starts_with("run.jsonl:2:26: not a run log"));
        assert!(refused(&[EPOCH, START]).starts_with("run.jsonl:1:1: not a run log"));
        assert!(refused(&[START, "nonsense", EPOCH]).starts_with("run.jsonl:2:2: not a line of a run log"));
        let wrong = r#"{"event":"epoch","epoch":1,"F":"high"}"#;
        assert!(refused(&[START, wrong, END]).starts_with("run.jsonl:2:"), "{}", refused(&[START, wrong, END]));
        assert!(refused(&[&START[..9]]).contains("not a run log"));
        assert!(read(b"\xff\xfe{", "x").is_err());
    }

    #[test]
    fn numbers_that_are_none_are_missing() {
        let line = r#"{"event":"epoch","epoch":2,"F":NaN,"f":-Infinity,"l1":Infinity,"gap":null,"seconds":1}"#;
        let all = runs(&[START, line, END]).unwrap();
        let figures = &all[0].epochs[0].figures;
        assert_eq!((figures.objective, figures.f, figures.l1, figures.gap), (None, None, None, None));
        // In a name it is a word like any other.
        let named = r#"{"event":"start","data":"NaN \"Infinity.svm","lambda":NaN}"#;
        assert_eq!(runs(&[named]).unwrap()[0].start.data.as_deref(), Some("NaN \"Infinity.svm"));
    }
}
