//! A run that is broken off and resumed ends as one that was not.

use crate::workshop::Workshop;

#[test]
fn resumed_equals_uninterrupted_to_the_byte() {
    let shop = Workshop::with_data();
    for flags in [
        "--solver prox-sg",
        "--solver rda",
        "--solver prox-svrg",
        "--solver prox-svrg --average",
        "--solver obproxsg --np 2 --no 1",
        "--solver obproxsg-plus --np 2",
        "--solver obproxsg --switch adaptive",
        "--solver prox-sg --loss squared --step auto --l2 0.1 --eval-every 4",
        "--solver auto --tol 0",
    ] {
        let _ = std::fs::remove_dir_all(shop.path("state"));
        shop.ok(&format!("fit train.svm {flags} --epochs 6 --out whole.json --log whole.jsonl"));
        shop.ok(&format!("fit train.svm {flags} --epochs 3 --checkpoint state --quiet"));
        let output = shop.run(&format!(
            "fit train.svm {flags} --epochs 6 --checkpoint state --resume --out parts.json --log parts.jsonl"
        ));
        assert!(output.status.success() && output.stderr.is_empty(), "{flags}");
        assert_eq!(shop.read("whole.json"), shop.read("parts.json"), "{flags}");
        let epochs = |log: &str| shop.read(log).lines().filter(|line| line.contains("\"event\":\"epoch\"")).count();
        assert_eq!((epochs("whole.jsonl"), epochs("parts.jsonl")), (6, 6), "{flags}");
    }
}

#[test]
fn without_a_checkpoint_it_starts_anew_and_says_so() {
    let shop = Workshop::with_data();
    let first = shop.run("fit train.svm --epochs 2 --checkpoint state --resume --out a.json");
    assert!(String::from_utf8(first.stderr).unwrap().contains("no checkpoint in state yet: starting anew"));
    let again = shop.run("fit train.svm --epochs 2 --checkpoint state --out b.json");
    assert!(String::from_utf8(again.stderr).unwrap().contains("--resume would go on from it"));
    assert_eq!(shop.read("a.json"), shop.read("b.json"));
}

#[test]
fn another_problem_or_a_damaged_state_is_refused() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --epochs 2 --checkpoint state --quiet");
    let before = shop.listing();
    for flags in ["--lambda 0.3", "--seed 9", "--solver rda", "--loss squared"] {
        let output = shop
            .run(&format!("fit train.svm --epochs 4 --checkpoint state --resume --out m.json --log l.jsonl {flags}"));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags}: {stderr}");
        assert!(stderr.contains("checkpoint is of") && stderr.lines().count() == 1, "{stderr}");
        assert_eq!(shop.listing(), before);
    }
    let state = shop.path("state/checkpoint.obprox");
    let whole = std::fs::read(&state).unwrap();
    for damaged in [&whole[..whole.len() / 2], b"junk", b""] {
        std::fs::write(&state, damaged).unwrap();
        let output = shop.run("fit train.svm --epochs 4 --checkpoint state --resume");
        assert_eq!(output.status.code(), Some(2));
    }
}
