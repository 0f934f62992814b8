//! What a build says of the parts that it has left out.
#![cfg(not(all(feature = "paper", feature = "png")))]

use crate::workshop::Workshop;

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
