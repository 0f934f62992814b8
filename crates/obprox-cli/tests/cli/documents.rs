//! The lines of the documents, as they stand there, on small files of the names that they use.

use std::path::Path;

use crate::workshop::{Workshop, rows};

/// What is said where a line is right and this build or this directory lacks what it is about: networks, pictures, a part
/// of the command that is asked for.
const LACKING: [&str; 4] = ["cannot read", "there is no such file", "built without", "this build of obprox has no"];

fn shop() -> Workshop {
    let shop = Workshop::new();
    let planted = rows(120, 60, |score| if score > 0.0 { "1".into() } else { "-1".into() });
    for name in ["train.svm", "test.svm", "new.svm", "big.svm", "part-1.svm.zst", "part-2.svm.zst"] {
        shop.write(name, &planted);
    }
    shop.write("groups.txt", (0..60).map(|feature| format!("{}\n", feature / 3)).collect::<String>());
    let mut table = "id,age,country,churn\n".to_owned();
    let mut patients = "days,died,age\n".to_owned();
    let mut times = String::new();
    for row in 0..90 {
        let (age, country) = (20 + row * 7 % 50, ["FR", "DE", ""][row % 3]);
        table += &format!("{row},{age},{country},{}\n", u8::from((age + row % 11) > 45));
        let (days, died) = (1 + (row * 37 % 60 + 60 - age) % 90, row % 4 != 0);
        patients += &format!("{days},{},{age}\n", u8::from(died));
        times += &format!("{}{days} 1:{age}\n", if died { "" } else { "-" });
    }
    shop.write("table.csv", &table);
    shop.write("train.csv.gz", table.replace(",country", "").replace(",FR", "").replace(",DE", "").replace(",,", ","));
    for name in ["patients.csv", "new.csv", "test.csv"] {
        shop.write(name, &patients);
    }
    shop.write("patients.svm", times);
    for name in ["slow.jsonl", "fast.jsonl"] {
        shop.ok(&format!("fit train.svm --epochs 2 --quiet --log {name}"));
    }
    shop
}

/// The lines of a page that call the command, without what is said of them behind them.
fn lines(page: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for block in page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()) {
        for line in block.replace("\\\n", " ").lines() {
            let line = line.split(" #").next().unwrap_or_default().replace('\'', "");
            lines.extend(line.strip_prefix("obprox ").map(|line| line.trim().to_owned()));
        }
    }
    lines
}

#[test]
fn what_the_documents_show_is_what_the_command_takes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(listing) = std::fs::read_dir(root.join("docs")) else {
        // A package of this crate has no documents.
        return;
    };
    let mut pages: Vec<_> = listing.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|ending| ending == "md"));
    pages.push(root.join("README.md"));
    pages.sort();
    let mut done = 0;
    for page in pages {
        let shop = shop();
        // Downloads are for another test.
        for line in lines(&std::fs::read_to_string(&page).unwrap()).iter().filter(|line| !line.contains("data get")) {
            let output = shop.run(line);
            let said = String::from_utf8_lossy(&output.stderr);
            let lacks = output.status.code() == Some(2) && LACKING.iter().any(|words| said.contains(words));
            assert!(output.status.success() || lacks, "{}: obprox {line}\n{said}", page.display());
            done += usize::from(output.status.success());
        }
    }
    assert!(done >= 20, "{done} lines of the documents were run to their end");
}
