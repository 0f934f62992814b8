//! Offsets, and the losses with the mean e^margin.

use crate::workshop::Workshop;

/// Counts that grow with an exposure that each row has.
fn shop() -> Workshop {
    let shop = Workshop::new();
    let (mut rows, mut offsets) = (String::new(), String::new());
    for row in 0..80 {
        let (a, b) = (f64::from(row * 7 % 11) / 5.0 - 1.0, f64::from(row * 5 % 13) / 6.0 - 1.0);
        let offset = f64::from(row % 4) / 2.0;
        let count = (0.3 + 0.8 * a + offset).exp().round();
        rows += &format!("{count} 1:{a} 2:{b}\n");
        offsets += &format!("{offset}\n");
    }
    shop.write("counts.svm", &rows);
    shop.write("offsets.txt", &offsets);
    shop.write("few.txt", "0\n0.5\n");
    shop.write("many.txt", &(offsets + "1\n"));
    shop
}

#[test]
fn a_model_and_its_predictions_have_them() {
    let shop = shop();
    shop.ok("fit counts.svm --loss poisson --offset offsets.txt --lambda 0.01 --out with.json");
    shop.ok("fit counts.svm --loss poisson --lambda 0.01 --out without.json");
    assert!(shop.read("with.json").contains("\"offset\":true") && !shop.read("without.json").contains("offset"));
    let loss = |line: &str| {
        let report: serde_json::Value = serde_json::from_str(&shop.ok(line)).unwrap();
        report["loss"].as_f64().unwrap()
    };
    let with = loss("eval with.json counts.svm --offset offsets.txt --json");
    assert!(with < loss("eval without.json counts.svm --json") - 0.05, "offsets explain much of it");
    let means = shop.ok("predict with.json counts.svm --offset offsets.txt");
    assert_eq!(means.lines().count(), 80);
    assert!(means.lines().all(|mean| mean.parse::<f64>().unwrap() > 0.0));
    shop.ok("path counts.svm --loss poisson --offset offsets.txt --lambdas 5");
    shop.ok("cv counts.svm --loss poisson --offset offsets.txt --lambdas 3 --folds 3 --out cv.json");
    assert!(shop.read("cv.json").contains("\"offset\":true"));
}

#[test]
fn what_does_not_go_with_them_is_said() {
    let shop = shop();
    shop.ok("fit counts.svm --loss poisson --offset offsets.txt --out with.json");
    shop.ok("fit counts.svm --loss poisson --out without.json");
    for (line, said) in [
        ("predict with.json counts.svm", "offset"),
        ("predict with.json counts.svm --out new.txt --offset few.txt", "--offset: 2 numbers, and more rows"),
        ("predict with.json counts.svm --out new.txt --offset many.txt", "--offset: 81 numbers for 80 rows"),
        ("eval without.json counts.svm --offset offsets.txt", "without offsets"),
        ("fit counts.svm --loss poisson --offset few.txt --out new.txt", "2 numbers where 80 are needed"),
        ("fit counts.svm --loss poisson --offset offsets.txt --test counts.svm --out new.txt", "eval --offset"),
        ("fit counts.svm --loss softmax --offset offsets.txt --out new.txt", "--offset"),
        ("fit counts.svm --loss logistic --tweedie-power 1.5 --out new.txt", "--tweedie-power"),
        ("fit counts.svm --loss tweedie --tweedie-power 2 --out new.txt", "between 1 and 2"),
        ("fit counts.svm --loss negative-binomial --theta 0 --out new.txt", "--theta"),
        (
            "fit counts.svm --loss squared --offset offsets.txt --format liblinear --out new.txt",
            "LIBLINEAR has no offsets",
        ),
    ] {
        let output = shop.run(line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains(said) && text.lines().count() == 1, "{line}: {text}");
        assert!(!shop.exists("new.txt"), "{line}");
    }
}

#[test]
fn every_loss_of_amounts_is_certified() {
    let shop = shop();
    shop.write("amounts.svm", shop.read("counts.svm").lines().map(|line| format!("0.5{line}\n")).collect::<String>());
    for flags in
        ["--loss gamma", "--loss tweedie", "--loss tweedie --tweedie-power 1.2", "--loss negative-binomial --theta 3"]
    {
        let said = shop.ok(&format!("fit amounts.svm {flags} --lambda 0.05max --out model.json"));
        assert!(said.contains("converged") && said.contains("explained"), "{flags}: {said}");
        shop.ok("predict model.json amounts.svm");
        shop.ok("eval model.json amounts.svm");
    }
}
