//! Times to an event: from a table or a LIBSVM file to the model, its predictions and its concordance.

use crate::workshop::Workshop;

/// Patients: the older and those on plan B sooner; ids say nothing.
fn patients(seen: impl Fn(bool) -> String) -> String {
    let mut text = String::from("id,days,age,plan,seen\n");
    for row in 0..120 {
        let (age, plan) = (40 + row * 7 % 41, ["A", "B"][row * 5 % 7 % 2]);
        let sooner = age as f64 / 10.0 + if plan == "B" { 1.5 } else { 0.0 } + (row * 13 % 10) as f64 / 8.0;
        let days = (400.0 * (-sooner / 3.0).exp()).ceil();
        text += &format!("p{row},{days},{age},{plan},{}\n", seen(row % 4 != 1));
    }
    text
}

const FLAGS: &str = "--loss cox --label days --event seen --drop id --categorical plan";

#[test]
fn a_table_of_times_and_events_becomes_a_model() {
    let shop = Workshop::new();
    shop.write("patients.csv", patients(|seen| u8::from(seen).to_string()));
    shop.write("words.csv", patients(|seen| if seen { "True".into() } else { "False".into() }));
    let shown = shop.ok(&format!(
        "fit patients.csv {FLAGS} --lambda 0.01max --test patients.csv --out model.json --report page.html"
    ));
    assert!(shop.read("page.html").contains("Test concordance"));
    for word in
        ["120 rows × 3 features", "cox loss", "converged", "concordance", "deviance explained", "plan=", "events"]
    {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    assert!(!shown.contains("intercept"), "{shown}");
    // The same from words for yes and no, and from times with a sign.
    shop.ok(&format!("fit words.csv {FLAGS} --lambda 0.01max --out words.json --quiet"));
    assert_eq!(shop.read("model.json"), shop.read("words.json"));
    shop.ok(&format!("data convert patients.csv signed.obx {}", &FLAGS[11..]));
    shop.ok("fit signed.obx --loss cox --lambda 0.01max --out signed.json --quiet");
    let weights = |file: &str| -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(&shop.read(file)).unwrap()["values"].clone()
    };
    assert_eq!(weights("model.json"), weights("signed.json"));

    // Columns in another order, and without the event; a prediction is the logarithm of the relative hazard.
    shop.write("new.csv", "plan,age\nA,40\nB,80\n");
    let predicted = shop.ok("predict model.json new.csv");
    let hazards: Vec<f64> = predicted.lines().map(|line| line.parse().unwrap()).collect();
    assert!(hazards[1] > hazards[0] + 1.0, "{predicted}");
    let measured: serde_json::Value = serde_json::from_str(&shop.ok("eval model.json patients.csv --json")).unwrap();
    assert_eq!((&measured["task"], &measured["events"]), (&"survival".into(), &90.into()));
    assert!(measured["concordance"].as_f64().unwrap() > 0.8, "{measured}");
    let breslow = shop.ok(&format!("fit patients.csv {FLAGS} --ties breslow --lambda 0.01max --out breslow.json"));
    assert!(breslow.contains("cox-breslow loss") && weights("breslow.json") != weights("model.json"), "{breslow}");
}

#[test]
fn paths_folds_and_reports_know_times() {
    let shop = Workshop::new();
    shop.write("patients.csv", patients(|seen| u8::from(seen).to_string()));
    let path = shop.ok(&format!("path patients.csv {FLAGS} --lambdas 6 --test patients.csv --relax --out path.json"));
    assert!(path.contains("concordance") && path.contains("refit f"), "{path}");
    let kept: serde_json::Value = serde_json::from_str(&shop.read("path.json")).unwrap();
    let last = &kept["path"][5];
    assert!(last["relaxed"]["f"].as_f64().unwrap() < last["f"].as_f64().unwrap(), "{last}");
    assert!(last["relaxed"]["test_score"].as_f64().unwrap() > 0.5 && last["bic"].is_number(), "{last}");
    let cv = shop.ok(&format!("cv patients.csv {FLAGS} --lambdas 6 --folds 3 --out cv.json"));
    assert!(cv.contains("concordance"), "{cv}");
    let relaxed = shop.ok(&format!("cv patients.csv {FLAGS} --lambdas 6 --folds 3 --relax --out relaxed.json"));
    assert!(relaxed.contains("blend of the penalised weights and their refit"), "{relaxed}");
    shop.ok("eval relaxed.json patients.csv");
    shop.ok(&format!("fit patients.csv {FLAGS} --nnz 1 --out one.json"));
}

/// The commands of docs/survival.md, as they stand there.
#[test]
fn the_page_on_times_says_what_works() {
    let shop = Workshop::new();
    let table = patients(|seen| u8::from(seen).to_string()).replace(",seen", ",died");
    let lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let numbers: Vec<Vec<&str>> = lines.map(|line| vec![line[1], line[2], line[4]]).collect();
    let text: String = numbers.iter().map(|line| line.join(",") + "\n").collect();
    ["patients.csv", "test.csv", "new.csv"].iter().for_each(|name| shop.write(name, &text));
    let row = |line: &Vec<&str>| format!("{}{} 1:{}\n", if line[2] == "1" { "" } else { "-" }, line[0], line[1]);
    shop.write("patients.svm", numbers[1..].iter().map(row).collect::<String>());
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/survival.md");
    // A package of this crate has no documents.
    let Ok(page) = std::fs::read_to_string(path) else { return };
    let block = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let lines: Vec<&str> = block.lines().map(|line| line.split('#').next().unwrap().trim()).collect();
    assert_eq!(lines.len(), 5);
    lines.into_iter().for_each(|line| drop(shop.ok(line.strip_prefix("obprox ").unwrap())));
}

#[test]
fn what_is_no_time_is_said() {
    let shop = Workshop::new();
    shop.write("patients.csv", patients(|seen| u8::from(seen).to_string()));
    shop.write("two.csv", patients(|seen| (u8::from(seen) + 1).to_string()));
    shop.write("signed.csv", "days,x\n3,1\n0,2\n-2,3\n");
    shop.write("zero.svm", "3 1:1\n0 1:2\n");
    shop.write("censored.svm", "-3 1:1\n-2 1:2\n");
    shop.write("rising.svm", "3 1:1\n-2 1:-2\n1 1:0.5\n");
    shop.write("sound.svm", "3 1:1\n-2 1:2\n1 1:3\n");
    for (line, said) in [
        (
            "fit two.csv --loss cox --label days --event seen --drop id --categorical plan --out m.json",
            "event column `seen`: 2",
        ),
        (
            "fit patients.csv --loss cox --label days --event days --drop id --categorical plan --out m.json",
            "the label is the time",
        ),
        ("fit patients.csv --loss cox --label days --event gone --drop id --categorical plan --out m.json", "gone"),
        ("fit signed.csv --loss cox --label days --out m.json", "row 2: the target is 0"),
        ("fit zero.svm --loss cox --out m.json", "row 2: the target is 0"),
        ("fit censored.svm --loss cox --out m.json", "every row is censored"),
        ("fit sound.svm --loss cox --event 2 --out m.json", "negative time"),
        ("fit sound.svm --loss cox --solver obproxsg --out m.json", "use auto"),
        ("fit sound.svm --loss cox --memory 1M --cache shards --quiet --out m.json", "in one memory"),
        ("fit sound.svm --loss logistic --ties efron --out m.json", "--ties"),
        ("fit sound.svm --loss cox --class-weight balanced --out m.json", "no classes"),
        ("fit sound.svm --loss cox --format liblinear --out m.json", "LIBLINEAR has no model"),
        ("path rising.svm --loss squared --positive --relax --out m.json", "no refit without it"),
    ] {
        let output = shop.run(line);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(text.contains(said) && text.lines().count() == 1, "{line}: {text}");
        assert!(!shop.exists("m.json"), "{line}");
    }
}
