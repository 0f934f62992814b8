//! What a build leaves out, and what it says of that.

use std::collections::BTreeSet;
use std::process::Command;

#[cfg(not(all(feature = "net", feature = "paper", feature = "png")))]
use crate::workshop::Workshop;

/// Packages that the plain command may be built of, all in all, its own among them.
const MOST: usize = 100;

#[test]
fn the_plain_command_is_built_of_few_packages() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["tree", "--locked", "--offline", "--package", "obprox-cli"]);
    cargo.args([
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--target",
        "x86_64-unknown-linux-gnu",
    ]);
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Those of the workspace have their place behind the version, and what is shown again a mark.
    let name = |line: &str| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    let packages: BTreeSet<String> = String::from_utf8(output.stdout).unwrap().lines().map(name).collect();
    assert!(packages.contains(concat!("obprox-infer v", env!("CARGO_PKG_VERSION"))), "{packages:?}");
    assert!(packages.len() <= MOST, "{} packages: {packages:?}", packages.len());
}

#[cfg(not(feature = "net"))]
#[test]
fn a_build_without_training_of_networks_says_how_to_get_it() {
    let shop = Workshop::new();
    for line in ["net train", "net train images --model resnet18", "net train --help", "net eval net.obz images"] {
        let output = shop.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("--features net") && said.lines().count() == 1, "{line}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[cfg(not(feature = "paper"))]
#[test]
fn a_build_without_the_paper_says_how_to_get_it() {
    let shop = Workshop::new();
    for line in ["paper", "paper convex --data data", "paper --help", "data get", "data get a9a --dir data"] {
        let output = shop.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains("--features paper") && said.lines().count() == 1, "{line}: {said}");
    }
}

#[cfg(not(feature = "png"))]
#[test]
fn charts_are_written_as_svg_alone_and_that_is_said() {
    let shop = Workshop::with_data();
    let said = shop.ok("fit train.svm --plots p");
    assert!(said.contains("plots written to p as SVG; builds with --features png add PNG\n"), "{said}");
    assert!(shop.exists("p/objective-epochs.svg") && !shop.exists("p/objective-epochs.png"));
}
