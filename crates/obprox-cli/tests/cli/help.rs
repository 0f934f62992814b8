//! Help, version and completions.

use crate::workshop::Workshop;

/// What every build has.
const PLAIN: [&str; 11] = [
    "fit",
    "predict",
    "eval",
    "compare",
    "path",
    "cv",
    "report",
    "data inspect",
    "data convert",
    "data synth",
    "completions",
];
#[cfg(feature = "paper")]
const OF_THE_PAPER: [&str; 3] = ["data get", "paper convex", "paper figures"];

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

/// `docs/command.md` is made here: OBPROX_WRITE=1 writes it anew.
#[cfg(feature = "paper")]
#[test]
fn the_reference_is_the_help() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command.md");
    if !path.exists() {
        // A package of this crate has no documents.
        return;
    }
    let shop = Workshop::new();
    let mut page = "# The command\n\nWhat `obprox help` says, subcommand by subcommand.\n".to_owned();
    for subcommand in [""].into_iter().chain(PLAIN).chain(OF_THE_PAPER) {
        let line = format!("{subcommand} --help");
        let title = format!("obprox {subcommand}");
        page += &format!("\n## {}\n\n```text\n{}\n```\n", title.trim(), shop.ok(line.trim()).trim_end());
    }
    if std::env::var_os("OBPROX_WRITE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == page,
        "docs/command.md is out of date: OBPROX_WRITE=1 writes it"
    );
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
