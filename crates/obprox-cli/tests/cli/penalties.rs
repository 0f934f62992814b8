//! Bounded and grouped weights, from the flags to the model.

use crate::refused::refused;
use crate::workshop::Workshop;

fn weights(shop: &Workshop, model: &str) -> Vec<(u64, f64)> {
    let json: serde_json::Value = serde_json::from_str(&shop.read(model)).unwrap();
    let numbers = |name: &str| json[name].as_array().unwrap().clone();
    numbers("indices").iter().zip(numbers("values")).map(|(i, v)| (i.as_u64().unwrap(), v.as_f64().unwrap())).collect()
}

#[test]
fn weights_stay_within_their_bounds() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --lambda 0.02max --out free.json --quiet");
    assert!(weights(&shop, "free.json").iter().any(|(_, x)| *x < 0.0), "nothing has to be held");
    for solver in ["auto", "obproxsg", "prox-svrg"] {
        let line = format!("fit train.svm --lambda 0.02max --positive --solver {solver} --out model.json");
        assert!(shop.ok(&line).contains("penalty             positive"));
        assert!(weights(&shop, "model.json").iter().all(|(_, x)| *x > 0.0), "{solver}");
    }
    shop.write("bounds.txt", "-0.1 0.1\n".repeat(6) + &"-inf, 0\n".repeat(6));
    let said = shop.ok("fit train.svm --lambda 0.02max --bounds bounds.txt --out model.json --log run.jsonl");
    assert!(said.contains("converged after"), "{said}");
    let inside = |(feature, x): &(u64, f64)| if *feature < 6 { x.abs() <= 0.1 } else { *x <= 0.0 };
    let found = weights(&shop, "model.json");
    assert!(found.iter().all(inside) && found.iter().any(|(_, x)| x.abs() == 0.1), "{found:?}");
    assert!(shop.read("model.json").contains(r#""penalty":"bounds""#));
    assert!(shop.read("run.jsonl").contains(r#""penalty":"bounds bounds.txt""#));
}

#[test]
fn groups_are_zero_together() {
    let shop = Workshop::with_data();
    shop.write("groups.txt", "odd\neven\n".repeat(3) + &"rest\n".repeat(6));
    let of = |feature: u64| if feature >= 6 { 2 } else { feature % 2 };
    let mut known = vec![];
    for solver in ["auto", "obproxsg", "rda"] {
        shop.ok(&format!(
            "fit train.svm --lambda 0.6max --groups groups.txt --solver {solver} --out model.json --quiet"
        ));
        let mut counts = [0; 3];
        weights(&shop, "model.json").iter().for_each(|(feature, _)| counts[of(*feature) as usize] += 1);
        assert!(
            counts.iter().zip([3, 3, 6]).all(|(count, size)| *count == 0 || *count == size),
            "{solver}: {counts:?}"
        );
        known.push(counts);
    }
    assert!(known[0].contains(&0) && known[0].iter().any(|count| *count > 0), "{known:?}");
    // Single features of a group may go as well; a group of no weight stays.
    shop.write("weights.txt", "odd 0\neven 2\n");
    shop.ok(
        "fit train.svm --lambda 0.6max --groups groups.txt --group-weight weights.txt --group-l1 0.5 --out model.json",
    );
    assert_eq!(weights(&shop, "model.json").iter().filter(|(feature, _)| of(*feature) == 0).count(), 3);
    for line in
        ["path train.svm --groups groups.txt --lambdas 4", "cv train.svm --groups each --group-weight one --lambdas 4"]
    {
        shop.ok(line);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let shop = Workshop::with_data();
    shop.write("short.txt", "a\nb\n");
    shop.write("groups.txt", "a\n".repeat(12));
    shop.write("weights.txt", "c 1\n");
    shop.write("negative.txt", "a -1\n");
    shop.write("bounds.txt", "0 1\n".repeat(11) + "1 2\n");
    shop.write("words.txt", "0 1\n0 wide\n");
    shop.write("one.txt", "0\n");
    shop.write("ones.txt", "1\n".repeat(12));
    let flags = [
        "--positive --bounds bounds.txt",
        "--positive --groups groups.txt",
        "--group-l1 0.5",
        "--group-weight one",
        "--groups groups.txt --group-l1 2",
        "--groups missing.txt",
        "--groups short.txt",
        "--groups groups.txt --group-weight weights.txt",
        "--groups groups.txt --group-weight negative.txt",
        "--groups groups.txt --feature-weights ones.txt",
        "--bounds bounds.txt",
        "--bounds words.txt",
        "--bounds one.txt",
        "--bounds model.json",
    ];
    let lines: Vec<String> = flags.iter().map(|flags| format!("fit train.svm --out model.json {flags}")).collect();
    insta::assert_snapshot!(refused(&shop, &lines.iter().map(String::as_str).collect::<Vec<_>>()));
}
