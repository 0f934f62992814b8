//! Help, version and completions.

use crate::workshop::Workshop;

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
    for subcommand in [
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
    ] {
        all += &with_examples(&shop, subcommand);
    }
    insta::assert_snapshot!(all);
}

#[cfg(feature = "paper")]
#[test]
fn so_have_those_of_the_paper() {
    let shop = Workshop::new();
    let all: String = ["data get", "paper convex", "paper figures"].map(|line| with_examples(&shop, line)).concat();
    insta::assert_snapshot!(all);
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
