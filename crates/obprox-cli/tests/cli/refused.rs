//! What is wrong is refused: exit status 2, one clear line, nothing written, no panic.

use crate::workshop::{Workshop, rows};

/// Runs lines that must all be refused, and collects what they say.
pub fn refused(shop: &Workshop, lines: &[&str]) -> String {
    let before = shop.listing();
    let mut all = String::new();
    for line in lines {
        let output = shop.run(line);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "obprox {line}\n{stderr}");
        assert!(stderr.lines().count() == 1 && stderr.starts_with("obprox: error: "), "obprox {line}\n{stderr}");
        assert!(output.stdout.is_empty(), "obprox {line}");
        assert_eq!(shop.listing(), before, "obprox {line} wrote something");
        all += &format!("$ obprox {line}\n{stderr}");
    }
    all
}

const OUTPUTS: &str = "--out model.json --log run.jsonl --checkpoint state";

#[test]
fn flags_out_of_range() {
    let shop = Workshop::with_data();
    let flags = [
        "--loss cubic",
        "--loss huber --huber-delta 0",
        "--huber-delta 1",
        "--lambda -1",
        "--lambda 2/N",
        "--lambda -0.1max",
        "--lambda nan",
        "--l2 -1",
        "--l2 inf",
        "--solver adam",
        "--epochs 0",
        "--epochs -3",
        "--epochs 1.5",
        "--batch 0",
        "--batch n",
        "--batch -5",
        "--step 0",
        "--step -1",
        "--step inf",
        "--schedule linear",
        "--decay 0",
        "--decay 1.5",
        "--schedule 1/k --decay 0.5",
        "--np -1",
        "--solver obproxsg --np 0 --no 0",
        "--no x",
        "--no -1",
        "--switch never",
        "--switch objective:nan",
        "--solver obproxsg --switch score:0.9",
        "--solver obproxsg --switch adaptive --np 3",
        "--gamma 0 --solver rda",
        "--tol -1",
        "--tol x",
        "--seed -1",
        "--seed 1.5",
        "--threads 0",
        "--threads 100000",
        "--eval-every 0",
        "--features 0",
        "--features 5000000000",
        "--label 0",
        "--label none",
        "--class-weight heavy",
        "--class-weight -1:-2",
        "--class-weight 3:1",
        "--loss squared --class-weight balanced",
        "--format onnx",
        "--loss poisson --format liblinear",
        "--weights nowhere.txt",
        "--feature-weights train.svm",
        "--test nowhere.svm",
        "--lamda 1",
    ];
    let lines: Vec<String> = flags.iter().map(|flags| format!("fit train.svm {OUTPUTS} {flags}")).collect();
    let said = refused(&shop, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let said = said.replace(&format!(" {OUTPUTS}"), "");
    insta::assert_snapshot!(said);
}

#[test]
fn paths_that_cannot_be_gone() {
    let shop = Workshop::with_data();
    shop.write("lonely.svm", "1 1:1\n-1 1:2\n-1 1:3\n-1 1:1\n");
    shop.write("flat.svm", "1 1:1\n-1 1:1\n1 1:1\n-1 1:1\n");
    shop.write("free.txt", "0\n0\n".to_owned() + &"1\n".repeat(10));
    std::fs::create_dir(shop.path("directory")).unwrap();
    let said = refused(
        &shop,
        &[
            "path",
            "path train.svm --lambda 1",
            "path train.svm --lambdas 0",
            "path train.svm --lambdas -3",
            "path train.svm --lambdas 1000000",
            "path train.svm --ratio 0",
            "path train.svm --ratio 1",
            "path train.svm --at 0.1max,x",
            "path train.svm --at -1",
            "path train.svm --at 0.1max --ratio 0.1",
            "path train.svm --tol -1",
            "path train.svm --out path.xlsx",
            "path train.svm --plot path.png",
            "path train.svm --out no/such/path.csv",
            "path train.svm --out directory/../train.svm",
            "path train.svm --plot directory",
            "path flat.svm --out path.csv",
            "path missing.svm --out path.csv",
            "path train.svm --loss squared --class-weight balanced",
            "cv train.svm --folds 1",
            "cv train.svm --folds -5",
            "cv train.svm --folds 121 --out model.json",
            "cv train.svm --rule worst",
            "cv train.svm --seed x",
            "cv train.svm --out train.svm",
            "cv train.svm --out a.json --scores a.json",
            "cv train.svm --out a.json --log a.json",
            "cv lonely.svm --folds 2 --out model.json --scores scores.csv --log run.jsonl",
            "fit train.svm --nnz -1",
            "fit train.svm --nnz 1.5",
            "fit train.svm --nnz 3 --lambda 0.1",
            "fit train.svm --nnz 3 --solver rda",
            "fit train.svm --nnz 1 --feature-weights free.txt --out model.json --log run.jsonl",
        ],
    );
    insta::assert_snapshot!(said);
}

#[test]
fn lines_that_ask_too_little_or_too_much() {
    let shop = Workshop::with_data();
    let said = refused(
        &shop,
        &[
            "fit",
            "fit train.svm train.svm",
            "fit train.svm --resume",
            "fit train.svm --format liblinear",
            "fit - --test -",
            "train train.svm",
            "predict model.json",
            "compare train.svm --solvers prox-sg,adam",
            "compare train.svm --solvers rda,rda",
            "compare train.svm --output table.xlsx",
            "compare train.svm --switch score:0.9",
            "data synth a.svm --rows 0",
            "data synth a.svm --cols 5 --support 6",
            "data synth a.svm --per-row 0",
            "data synth a.svm --task classes:1",
            "data synth a.svm --noise -1",
            "data synth a.svm --skew -1",
            "completions tcsh",
        ],
    );
    insta::assert_snapshot!(said);
}

#[cfg(feature = "paper")]
#[test]
fn lines_about_the_paper() {
    let shop = Workshop::with_data();
    let said = refused(
        &shop,
        &[
            "data get mnist",
            "data get a9a --from ftp://example.org",
            "data get a9a --from http://",
            "data get a9a --dir train.svm",
            "paper convex",
            "paper convex --data nowhere",
            "paper convex --data . --seeds 0",
            "paper convex --data .",
            "paper convex --data . --also train.svm --share kdda=2",
            "paper convex --data . --also train.svm --share mnist=1/2",
            "paper convex --data . --also a9a.xz",
            "paper convex --data . --also train.svm --also train.svm",
            "paper convex --data . --also train.svm --parts tables,nets",
            "paper convex --data . --also missing.svm",
            "paper convex --data . --also train.svm --out train.svm",
        ],
    );
    insta::assert_snapshot!(said);
}

/// Files that a fit refuses, by themselves or with a flag.
fn write_what_cannot_be_used(shop: &Workshop) {
    shop.write("empty.svm", "");
    shop.write("blank.svm", "\n\n# nothing\n");
    shop.write("one.svm", "1 1:1\n1 2:1\n");
    shop.write("three.svm", "1 1:1\n2 2:1\n3 1:2\n");
    shop.write("nan.svm", "1 1:1\n-1 1:nan\n");
    shop.write("infinite.svm", "1 1:1\n-1 1:inf\n");
    shop.write("unsorted.svm", "1 1:1\n-1 3:1 2:1\n");
    shop.write("repeated.svm", "1 1:1\n-1 3:1 3:1\n");
    shop.write("zero.svm", "1 0:1\n-1 3:1\n");
    shop.write("far.svm", "1 1:1\n-1 4294967297:1\n");
    shop.write("word.svm", "1 1:1\n-1 1:x\n");
    shop.write("label.svm", "yes 1:1\nno 1:2\n");
    shop.write("ragged.csv", "y,a\n1,2\n2,3,4\n");
    shop.write("table.csv", "y,a\n1,2\n2,3\n");
    shop.write("text.csv", "y,a\n1,2\n2,red\n");
    shop.write("gaps.csv", "y,a\n1,2\n2,\n1,NA\n");
    shop.write("yes.csv", "y,a\nno,2\nyes,3\nno,4\n");
    shop.write("maybe.csv", "y,a\nmaybe,2\n");
    shop.write("counts.svm", "0 1:1\n3 1:2\n");
    shop.write("negative.svm", "-1 1:1\n2 1:2\n");
    shop.write("halves.svm", "0.5 1:1\n1.5 1:2\n");
    shop.write("real.svm", (0..3000).map(|row| format!("{} 1:1\n", f64::from(row) / 7.0)).collect::<String>());
    shop.write("archive.zip", b"PK\x03\x04rest");
    std::fs::create_dir(shop.path("directory")).unwrap();
    shop.write("good.svm", rows(40, 3, |score| if score > 0.0 { "1".into() } else { "-1".into() }));
    shop.write("short.txt", "1\n2\n");
    shop.write("gap.txt", "one\n\nthree\n");
    shop.write("below.txt", "-1\n".repeat(40));
}

#[test]
fn data_that_cannot_be_used() {
    let shop = Workshop::new();
    write_what_cannot_be_used(&shop);
    let files = [
        "missing.svm",
        "directory",
        "empty.svm",
        "blank.svm",
        "one.svm",
        "three.svm",
        "nan.svm",
        "infinite.svm",
        "unsorted.svm",
        "repeated.svm",
        "zero.svm",
        "far.svm",
        "word.svm",
        "label.svm",
        "ragged.csv",
        "text.csv",
        "table.csv --label z",
        "table.csv --label 3",
        "gaps.csv",
        "gaps.csv --missing median",
        "table.csv --categorical b",
        "table.csv --categorical y",
        "table.csv --drop a",
        "table.csv --drop a --keep a",
        "table.csv --keep a,,",
        "yes.csv --loss squared",
        "yes.csv --test maybe.csv",
        "yes.csv --test table.csv",
        "good.svm --drop a",
        "archive.zip",
        "negative.svm --loss poisson",
        "counts.svm --loss poisson --step auto",
        "real.svm",
        "real.svm --loss softmax",
        "halves.svm --format liblinear",
        "good.svm --weights short.txt",
        "good.svm --weights below.txt",
        "good.svm --feature-weights short.txt",
        "good.svm --names short.txt",
        "good.svm --names gap.txt",
        "good.svm --names nowhere.txt",
        "good.svm --test three.svm",
        "good.svm --test missing.svm",
        "good.svm --test directory",
    ];
    let lines: Vec<String> = files.iter().map(|file| format!("fit {file} {OUTPUTS}")).collect();
    let said = refused(&shop, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    let said = said.replace(&format!(" {OUTPUTS}"), "");
    insta::assert_snapshot!(said);
}

#[test]
fn archives_that_break_off() {
    let shop = Workshop::new();
    let text = rows(400, 8, |score| if score > 0.0 { "1".into() } else { "-1".into() });
    // The tools are on every system we build on; where one is not, its case is left out.
    for (tool, ending) in [("gzip", "gz"), ("bzip2", "bz2"), ("xz", "xz"), ("zstd", "zst")] {
        shop.write("plain.svm", &text);
        let packed = std::process::Command::new(tool).arg("-kc").arg(shop.path("plain.svm")).output();
        let Ok(packed) = packed else { continue };
        shop.write(&format!("whole.{ending}"), &packed.stdout);
        shop.write(&format!("half.{ending}"), &packed.stdout[..packed.stdout.len() / 2]);
        let said = refused(&shop, &[&format!("fit half.{ending} {OUTPUTS}")]);
        assert!(said.contains("truncated") || said.contains("corrupt"), "{said}");
        shop.ok(&format!("fit whole.{ending} --epochs 1"));
    }
}

#[test]
fn outputs_that_cannot_be_written() {
    let shop = Workshop::with_data();
    std::fs::create_dir(shop.path("directory")).unwrap();
    shop.ok("fit train.svm --out model.json --quiet");
    let said = refused(
        &shop,
        &[
            "fit train.svm --out directory",
            "fit train.svm --out no/such/model.json",
            "fit train.svm --out train.svm/model.json",
            "fit train.svm --out train.svm",
            "fit train.svm --out a.json --log no/such/run.jsonl",
            "fit train.svm --out a.json --log directory",
            "fit train.svm --out a.json --log a.json",
            "fit train.svm --out a.json --checkpoint train.svm",
            "fit train.svm --out a.json --checkpoint train.svm/state",
            "fit train.svm --out a.json --checkpoint /proc/state",
            "predict model.json train.svm --out no/such/labels.txt",
            "predict model.json train.svm --out train.svm",
            "predict model.json train.svm --out model.json",
            "compare train.svm --output no/such/table.csv",
            "data convert train.svm no/such/train.obx",
            "data convert train.svm train.svm",
            "data synth no/such/a.svm",
            "data synth a.svm --truth a.svm",
        ],
    );
    insta::assert_snapshot!(said);
}

#[test]
fn models_that_cannot_be_used() {
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --out model.json --quiet");
    let model = shop.read("model.json");
    shop.write("cut.json", model.split("\"indices\"").next().unwrap());
    shop.write("junk.json", "not a model");
    shop.write("empty.json", "");
    shop.write("other.json", "{\"a\": 1}");
    shop.write("newer.json", model.replace("\"version\":1", "\"version\":99"));
    shop.write("short.json", model.replacen("\"values\":[", "\"values\":[0.5,", 1));
    shop.write("huge.json", model.replace("\"n_features\":12", "\"n_features\":18446744073709551615"));
    shop.write("nan.json", model.replace("\"intercept\":", "\"intercept\":null,\"was\":"));
    shop.write("labels.json", model.replace("[-1.0,1.0]", "[1.0]"));
    shop.write("turned.json", model.replace("[-1.0,1.0]", "[1.0,-1.0]"));
    shop.write("classes.json", model.replace("\"binary\"", "\"classes\"").replace("\"logistic\"", "\"softmax\""));
    shop.write("softmax.json", model.replace("\"logistic\"", "\"softmax\""));
    shop.write("loss.json", model.replace("\"logistic\"", "\"cubic\""));
    shop.write("binary.json", [0xff, 0xfe, 0x00]);
    shop.write("unknown.svm", "1 1:1\n4 2:1\n");
    shop.ok("fit train.svm --loss squared-hinge --step auto --out hinge.json --quiet");
    let said = refused(
        &shop,
        &[
            "predict missing.json train.svm",
            "predict . train.svm",
            "predict cut.json train.svm",
            "predict junk.json train.svm",
            "predict empty.json train.svm",
            "predict other.json train.svm",
            "predict newer.json train.svm",
            "predict short.json train.svm",
            "predict huge.json train.svm",
            "predict nan.json train.svm",
            "predict labels.json train.svm",
            "predict turned.json train.svm",
            "predict classes.json train.svm",
            "eval softmax.json train.svm",
            "predict loss.json train.svm --proba",
            "predict binary.json train.svm",
            "predict model.json missing.svm",
            "predict hinge.json train.svm --proba",
            "eval cut.json train.svm",
            "eval model.json unknown.svm",
            "eval model.json train.svm --label none",
        ],
    );
    insta::assert_snapshot!(said);
}

#[test]
fn reports_that_cannot_be_made() {
    let shop = Workshop::with_data();
    std::fs::create_dir(shop.path("directory")).unwrap();
    shop.write("empty.jsonl", "");
    shop.write("model.json", "{\"format\":\"obprox-linear\"}\n");
    shop.write("page.html", "{\"event\":\"start\"}\n");
    shop.write("broken.jsonl", "{\"event\":\"start\"}\n{\"event\":\"epoch\",\"F\":\"high\"}\n{\"event\":\"end\"}\n");
    let all = refused(
        &shop,
        &[
            "report",
            "report missing.jsonl",
            "report directory",
            "report empty.jsonl --out page.html",
            "report train.svm --out page.html --plots plots --tables tables",
            "report model.json",
            "report broken.jsonl --plots plots",
            "report page.html --out page.html",
            "report page.html --out page.txt",
            "report page.html --plots train.svm",
            "report - -",
            "fit train.svm --report page.txt",
            "fit train.svm --report directory.html/page.html",
            "fit train.svm --log same.html --report same.html",
            "compare train.svm --output page.csv --tables train.svm/below",
            "cv train.svm --report train.svm",
            "path train.svm --report page.html --log page.html",
        ],
    );
    insta::assert_snapshot!(all);
}
