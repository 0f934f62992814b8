//! Tables with words and gaps, from the file to the prediction.

use crate::workshop::Workshop;

/// Who leaves is decided by country, plan and age; ids say nothing, incomes have gaps.
fn people(rows: usize) -> String {
    let mut text = String::from("id,age,country,income,plan,churn\n");
    for row in 0..rows {
        let (age, country) = (18 + row * 7 % 50, ["DE", "FR", "US"][row % 3]);
        let plan = ["basic", "\"pro, plus\""][row / 3 % 2];
        let income = if row % 10 == 0 { String::new() } else { (20 + row * 11 % 60).to_string() };
        let leaves = i32::from(country == "FR") * 30 + age as i32 + row as i32 * 13 % 9 > 60;
        let churn = if leaves { "yes" } else { "no" };
        text += &format!("c{row},{age},{country},{income},{plan},{churn}\n");
    }
    text
}

const FLAGS: &str = "--label churn --drop id --categorical all --missing indicator";

#[test]
fn a_table_with_words_and_gaps_becomes_a_model_that_reads_its_like() {
    let shop = Workshop::new();
    shop.write("people.csv", people(200));
    let shown = shop.ok(&format!("fit people.csv {FLAGS} --lambda 0.01max --test people.csv --out model.json"));
    assert!(shown.contains("200 rows × 8 features") && shown.contains("country=FR"), "{shown}");
    let model: serde_json::Value = serde_json::from_str(&shop.read("model.json")).unwrap();
    assert_eq!(model["label_names"], serde_json::json!(["no", "yes"]));
    assert!(model["names"].to_string().contains("country=FR"), "{model}");

    // The same rows in another order of columns, without label and id, and with a country that is new.
    shop.write("new.csv", "plan,country,age,income\nbasic,FR,60,30\nbasic,DE,20,30\nbasic,NZ,20,\n");
    assert_eq!(shop.ok("predict model.json new.csv"), "yes\nno\nno\n");
    let probabilities = shop.ok("predict model.json new.csv --proba");
    assert!(probabilities.starts_with("labels no yes\nyes 0."), "{probabilities}");
    let measured = shop.ok("eval model.json people.csv");
    assert!(measured.contains("true \\ predicted   no  yes"), "{measured}");
    let missed = shop.run("eval model.json new.csv");
    assert_eq!(missed.status.code(), Some(2));
    assert!(String::from_utf8(missed.stderr).unwrap().contains("no column is named `churn`"));
}

#[test]
fn every_command_that_learns_takes_the_same_flags() {
    let shop = Workshop::new();
    shop.write("people.csv", people(120));
    let path = shop.ok(&format!("path people.csv {FLAGS} --lambdas 5 --test people.csv --out path.json"));
    assert!(path.contains("120 rows × 8 features"), "{path}");
    let kept: serde_json::Value = serde_json::from_str(&shop.read("path.json")).unwrap();
    assert_eq!(kept["names"][2], "country=FR");
    shop.ok(&format!("cv people.csv {FLAGS} --lambdas 5 --folds 3 --out cv.json --report page.html"));
    assert!(shop.read("page.html").contains("country=FR"));
    assert_eq!(shop.ok("predict cv.json people.csv").lines().count(), 120);
    shop.ok(&format!("compare people.csv {FLAGS} --solvers auto,prox-sg --epochs 2"));
    let seen = shop.ok(&format!("data inspect people.csv {FLAGS}"));
    assert!(seen.contains("country=DE") && seen.contains("  yes  "), "{seen}");
    shop.ok(&format!("data convert people.csv people.obx {FLAGS}"));
    let converted = shop.ok("data inspect people.obx");
    assert!(converted.contains("country=DE"), "{converted}");
}

#[test]
fn standard_input_is_a_table_too() {
    let shop = Workshop::new();
    shop.write("people.csv", people(120));
    shop.ok(&format!("fit people.csv {FLAGS} --out file.json"));
    let piped = shop.run_with_input(&format!("fit - {FLAGS} --out -"), &shop.read("people.csv"));
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), shop.read("file.json"));
    let predicted = shop.run_with_input("predict file.json -", &shop.read("people.csv"));
    assert_eq!(String::from_utf8(predicted.stdout).unwrap(), shop.ok("predict file.json people.csv"));
}

/// Which of the two holds depends on the feature that the library was built with.
#[test]
fn parquet_and_arrow_are_read_or_refused_with_a_reason() {
    let shop = Workshop::new();
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/../obprox/tests/columns");
    for name in ["pyarrow.parquet", "polars.arrow", "pyarrow.feather"] {
        std::fs::copy(format!("{files}/{name}"), shop.path(name)).unwrap();
        let flags = "--label churn --categorical all --missing mean";
        let output = shop.run(&format!("fit {name} {flags} --lambda 0.1max --out model.json"));
        let said = String::from_utf8(output.stderr).unwrap();
        if said.contains("built without Parquet") {
            assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
            continue;
        }
        assert!(output.status.success(), "{said}");
        // Whoever wrote the table, it is the same one.
        let predicted = ["pyarrow.parquet", "polars.arrow", "pyarrow.feather"].map(|name| {
            std::fs::copy(format!("{files}/{name}"), shop.path(name)).unwrap();
            shop.ok(&format!("predict model.json {name} --proba"))
        });
        assert_eq!(predicted[0].lines().count(), 7, "the labels and six rows");
        assert!(predicted.iter().all(|one| *one == predicted[0]), "{predicted:?}");
        let csv = "plan,country,age,visits,half,score,price,ok\npro,FR,30,1,1,0,1,1\n";
        shop.write("new.csv", csv);
        assert_eq!(shop.ok("predict model.json new.csv").lines().count(), 1);
        // Damaged pages, and one line all the same.
        let mut bytes = std::fs::read(shop.path(name)).unwrap();
        bytes[40..400].fill(0xA5);
        shop.write("damaged", bytes);
        let damaged = shop.run(&format!("fit damaged {flags}"));
        let said = String::from_utf8(damaged.stderr).unwrap();
        assert!(damaged.status.success() || (damaged.status.code(), said.lines().count()) == (Some(2), 1), "{said}");
    }
}
