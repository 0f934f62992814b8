//! Help, version and completions.

use crate::workshop::Workshop;

/// What every build has.
const PLAIN: [&str; 17] = [
    "fit",
    "predict",
    "eval",
    "compare",
    "path",
    "cv",
    "net compress",
    "net expand",
    "net import",
    "net export",
    "net infer",
    "net bench",
    "report",
    "data inspect",
    "data convert",
    "data synth",
    "completions",
];
#[cfg(feature = "paper")]
const OF_THE_PAPER: [&str; 3] = ["data get", "paper convex", "paper figures"];
/// What needs Burn.
#[cfg(feature = "paper")]
const OF_TRAINING: [&str; 2] = ["net train", "net eval"];

#[test]
fn the_first_screen_is_short() {
    let shop = Workshop::new();
    let screen = shop.transcript("--help");
    insta::assert_snapshot!(screen);
    assert_eq!(shop.ok("--version"), format!("obprox {}\n", env!("CARGO_PKG_VERSION")));
    let bare = shop.run("");
    assert_eq!(bare.status.code(), Some(2));
    assert!(bare.stdout.is_empty() && !bare.stderr.is_empty());
}

#[test]
fn every_subcommand_has_help_with_examples() {
    let shop = Workshop::new();
    let mut all = String::new();
    for subcommand in PLAIN {
        all += &with_examples(&shop, subcommand);
    }
    insta::assert_snapshot!(all);
}

#[cfg(feature = "paper")]
#[test]
fn so_have_those_of_the_paper() {
    let shop = Workshop::new();
    let all: String = OF_THE_PAPER.map(|line| with_examples(&shop, line)).concat();
    insta::assert_snapshot!(all);
}

/// `docs/command.md` is made here: OBPROX_WRITE=1 writes it anew, in a build with the features `net` and `paper`. A build
/// without `net` passes over what it does not have.
#[cfg(feature = "paper")]
#[test]
fn the_reference_is_the_help() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command.md");
    if !path.exists() {
        // A package of this crate has no documents.
        return;
    }
    let shop = Workshop::new();
    let title = |subcommand: &str| format!("\n## {}\n", format!("obprox {subcommand}").trim());
    let trained = if cfg!(feature = "net") { &OF_TRAINING[..] } else { &[] };
    let mut page = "# The command\n\nWhat `obprox help` says, subcommand by subcommand.\n".to_owned();
    for subcommand in [""].iter().chain(&PLAIN).chain(trained).chain(&OF_THE_PAPER) {
        let help = shop.ok(format!("{subcommand} --help").trim());
        page += &format!("{}\n```text\n{}\n```\n", title(subcommand), help.trim_end());
    }
    if std::env::var_os("OBPROX_WRITE").is_some() && cfg!(feature = "net") {
        std::fs::write(&path, &page).unwrap();
    }
    let mut written = std::fs::read_to_string(&path).unwrap();
    for subcommand in OF_TRAINING.iter().filter(|_| !cfg!(feature = "net")) {
        let begin = written.find(&title(subcommand)).expect("every subcommand has its section");
        let end = written[begin + 1..].find("\n## ").map_or(written.len(), |next| begin + 1 + next);
        written.replace_range(begin..end, "");
    }
    assert!(written == page, "docs/command.md is out of date: OBPROX_WRITE=1 writes it");
}

fn with_examples(shop: &Workshop, subcommand: &str) -> String {
    let help = shop.transcript(&format!("{subcommand} --help"));
    assert!(help.contains("Example"), "{subcommand}");
    help + "\n"
}

#[test]
fn shells_get_scripts() {
    let shop = Workshop::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(shop.ok(&format!("completions {shell}")).contains("obprox"));
    }
}
