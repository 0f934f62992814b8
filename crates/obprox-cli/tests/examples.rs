//! The walk-throughs in `examples/` as a reader follows them: every command runs, says what the page shows, and leaves
//! the picture that the page has.

use std::path::{Path, PathBuf};
use std::process::Command;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A block of the page: what is typed, and what is shown below it.
struct Block {
    commands: String,
    shown: Option<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut fence: Option<(String, String)> = None;
    for line in page.lines() {
        match (&mut fence, line.strip_prefix("```")) {
            (None, Some(kind)) => fence = Some((kind.to_owned(), String::new())),
            (Some((_, text)), None) => *text += &format!("{line}\n"),
            (Some(_), Some(_)) => match fence.take() {
                Some((kind, commands)) if kind == "sh" => blocks.push(Block { commands, shown: None }),
                Some((kind, text)) if kind == "text" => {
                    blocks.last_mut().expect("a command comes first").shown = Some(text)
                }
                _ => {}
            },
            (None, None) => {}
        }
    }
    blocks
}

/// Whether a line is what the page shows; `…` stands for anything.
fn is_like(line: &str, shown: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    for part in parts {
        match rest.rfind(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

/// Line by line; a line of `…` alone stands for any lines.
fn is_page(output: &[&str], shown: &[&str]) -> bool {
    match (output, shown) {
        (_, []) => output.is_empty(),
        (_, [head, tail @ ..]) if head.trim() == "…" => (0..=output.len()).any(|skip| is_page(&output[skip..], tail)),
        ([line, rest @ ..], [head, tail @ ..]) => is_like(line.trim_end(), head.trim_end()) && is_page(rest, tail),
        ([], _) => false,
    }
}

/// The words of a picture, in order.
fn words(picture: &str) -> Vec<String> {
    let texts = picture.split("<text").skip(1).filter_map(|text| text.split_once('>')?.1.split_once("</text>"));
    texts.map(|(words, _)| words.trim().to_owned()).collect()
}

fn walk(name: &str) {
    let (source, place) = (examples().join(name), tempfile::tempdir().unwrap());
    for entry in std::fs::read_dir(&source).unwrap() {
        let path = entry.unwrap().path();
        // The pictures, in a directory of their own, have to be made anew.
        if path.is_file() {
            std::fs::copy(&path, place.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let page = std::fs::read_to_string(source.join("README.md")).unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_obprox")).parent().unwrap().to_owned();
    let path =
        std::env::join_paths([binary].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    let blocks = blocks(&page);
    assert!(!blocks.is_empty());
    for Block { commands, shown } in blocks {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", &commands])
            .env("PATH", path.as_ref().unwrap())
            .current_dir(place.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{commands}\n{said}{}", String::from_utf8_lossy(&output.stderr));
        if let Some(shown) = shown {
            let (output, page): (Vec<&str>, Vec<&str>) = (said.lines().collect(), shown.lines().collect());
            assert!(is_page(&output, &page), "{commands}\nsays\n{said}\nwhere the page has\n{shown}");
        }
    }
    let pictures: Vec<&str> =
        page.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(at, _)| at).collect();
    let pictures: Vec<&&str> = pictures.iter().filter(|at| at.ends_with(".svg")).collect();
    assert!(!pictures.is_empty(), "{name} has its picture");
    for picture in pictures {
        if std::env::var_os("OBPROX_REDRAW").is_some() {
            std::fs::copy(place.path().join(picture), source.join(picture)).unwrap();
        }
        let read = |directory: &Path| std::fs::read_to_string(directory.join(picture)).unwrap();
        assert_eq!(words(&read(place.path())), words(&read(&source)), "{picture}: OBPROX_REDRAW=1 draws it anew");
    }
}

#[test]
fn text() {
    walk("text");
}

#[test]
fn genes() {
    walk("genes");
}

#[test]
fn wide() {
    walk("wide");
}

#[test]
fn pages_are_held_to_what_is_said() {
    let said = ["a", "time 12 ms, 3 steps", "b", "c", "d"];
    assert!(is_page(&said, &["a", "time …, 3 steps", "…", "d"]));
    assert!(is_page(&said, &["…"]) && is_page(&said, &said));
    assert!(
        !is_page(&said, &["a", "time …, 4 steps", "…"]) && !is_page(&said, &["a", "…", "c"]) && !is_page(&said, &[])
    );
}
