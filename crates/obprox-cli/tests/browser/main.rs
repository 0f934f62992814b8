//! The report in a real browser: it renders, asks for nothing, complains of nothing, and answers the pointer.
//!
//! Where there is no Chromium these tests pass without looking; with OBPROX_BROWSER=required they fail instead.

mod chromium;
#[path = "../cli/workshop.rs"]
#[allow(dead_code)]
mod workshop;

use chromium::Chromium;
use serde_json::{Value, json};
use workshop::Workshop;

/// A browser, or nothing where there is none and none is required.
fn browser() -> Option<Chromium> {
    let program = chromium::program();
    match program {
        None if std::env::var("OBPROX_BROWSER").as_deref() == Ok("required") => {
            panic!("OBPROX_BROWSER=required, but there is no chromium")
        }
        _ => {}
    }
    program.map(Chromium::start)
}

fn open(browser: &Chromium, shop: &Workshop, page: &str) {
    browser.open(&format!("file://{}", shop.path(page).display()));
}

/// What a page must never do.
fn assert_silent(browser: &Chromium) {
    let complaints: Vec<Value> = ["Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"]
        .iter()
        .flat_map(|kind| browser.events(kind))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    let requests = browser.events("Network.requestWillBeSent");
    let addresses: Vec<&str> = requests.iter().filter_map(|request| request["request"]["url"].as_str()).collect();
    assert!(matches!(addresses[..], [only] if only.starts_with("file://")), "{addresses:?}");
}

/// The middle of an element, in the window.
fn middle(browser: &Chromium, selector: &str) -> (f64, f64) {
    let expression = format!(
        "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center'}}); \
         const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; }})()"
    );
    let place = browser.value(&expression);
    (place[0].as_f64().unwrap(), place[1].as_f64().unwrap())
}

const TIP: &str = "document.querySelector('#chart-1-objective-epochs .tip')";

#[test]
fn a_comparison_answers_the_pointer() {
    let Some(browser) = browser() else { return };
    let shop = Workshop::with_data();
    shop.ok("compare train.svm --test train.svm --report report.html --epochs 12 --np 3 --no 3 --quiet");
    open(&browser, &shop, "report.html");

    // ---- it renders ----------------------------------------------------------------------------------------------
    let canvases = browser.value("document.querySelectorAll('.chart canvas').length");
    assert_eq!(canvases, 5, "F − F* and density by epoch and by time, and the gap");
    assert_eq!(browser.value("document.querySelectorAll('.chart > svg').length"), 0, "pictures give way to charts");
    assert_eq!(browser.value("document.querySelector('.legend').querySelectorAll('button').length"), 6);

    // ---- values at the pointer -----------------------------------------------------------------------------------
    assert_eq!(browser.value(&format!("{TIP}.hidden")), true);
    let (x, y) = middle(&browser, "#chart-1-objective-epochs .u-over");
    browser.point(x, y, false);
    browser.until(&format!("!{TIP}.hidden && {TIP}.offsetWidth > 0"));
    let text = browser.value(&format!("{TIP}.innerText"));
    let text = text.as_str().unwrap();
    for word in ["epoch", "prox-sg", "rda", "prox-svrg", "obproxsg", "obproxsg-plus"] {
        assert!(text.contains(word), "{word} is not in {text:?}");
    }
    assert!(text.contains("10⁻") || text.contains("0."), "{text:?}");

    // ---- a series switched off, and on again ---------------------------------------------------------------------
    let picture = "document.querySelector('#chart-1-objective-epochs canvas').toDataURL()";
    browser.point(1.0, 1.0, false);
    browser.until(&format!("{TIP}.hidden"));
    let before = browser.value(picture);
    let button = ".legend button[data-series='rda']";
    let (x, y) = middle(&browser, button);
    browser.point(x, y, true);
    browser.until(&format!("document.querySelector(\"{button}\").getAttribute('aria-pressed') === 'false'"));
    browser.point(1.0, 1.0, false);
    browser.until(&format!("{picture} !== {before}"));
    let (x, y) = middle(&browser, "#chart-1-objective-epochs .u-over");
    browser.point(x, y, false);
    browser.until(&format!("!{TIP}.hidden && !{TIP}.innerText.includes('rda')"));
    let (x, y) = middle(&browser, button);
    browser.point(x, y, true);
    browser.point(1.0, 1.0, false);
    browser.until(&format!("{picture} === {before}"));

    // ---- dark ----------------------------------------------------------------------------------------------------
    let paper = "getComputedStyle(document.documentElement).backgroundColor";
    let light = browser.value(paper);
    browser.ask("Emulation.setEmulatedMedia", json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]}));
    browser.until(&format!("{paper} !== {light} && {picture} !== {before}"));
    assert_silent(&browser);
}

#[test]
fn every_page_fits_a_phone() {
    let Some(browser) = browser() else { return };
    let shop = Workshop::with_data();
    shop.ok("fit train.svm --test train.svm --solver obproxsg --epochs 20 --report fit.html --log a.jsonl --quiet");
    shop.ok("cv train.svm --lambdas 12 --report cv.html --quiet");
    shop.ok("path train.svm --test train.svm --lambdas 12 --report path.html --log path.jsonl --quiet");
    shop.ok("fit train.svm --lambda 0.3max --log b.jsonl --quiet");
    shop.ok("report a.jsonl b.jsonl path.jsonl --out several.html --quiet");
    let phone = json!({"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true});
    browser.ask("Emulation.setDeviceMetricsOverride", phone);
    for (page, charts) in [("fit.html", 5), ("cv.html", 6), ("path.html", 3), ("several.html", 13)] {
        open(&browser, &shop, page);
        assert_eq!(browser.value("document.documentElement.scrollWidth"), 360, "{page}");
        assert_eq!(browser.value("document.querySelectorAll('.chart canvas').length"), charts, "{page}");
        assert_silent(&browser);
    }
}

/// The log of a network that is trained for six epochs, down to the density that was asked for.
fn network_log(density: f64) -> String {
    let start = json!({
        "event": "start", "data": "images", "solver": "obproxsg-plus", "loss": "cross-entropy", "lambda": 1e-4,
        "network": "small-cnn", "width": 0.25, "parameters": 6000, "images": 640, "test_images": 320,
        "classes": ["ankle boot", "bag", "coat"], "target_density": density, "epochs": 6,
    });
    let epoch = |number: u32| {
        let held = number > 4;
        let left = if held { density } else { 1.0 - 0.2 * f64::from(number) };
        json!({
            "event": "epoch", "epoch": number, "phase": if held { "hold" } else { "orthant" }, "density": left,
            "lambda": if held { 0.0 } else { 0.01 * f64::from(number) }, "batch_loss": 1.0 / f64::from(number),
            "score": 0.5 + 0.05 * f64::from(number), "seconds": number,
        })
    };
    let layers = ["conv1.weight", "conv2.weight", "conv3.weight", "fc.weight"];
    let layers = layers.map(|name| json!({"name": name, "size": 1000, "nnz": (1000.0 * density) as u64}));
    let end = json!({
        "event": "end", "status": "max_epochs", "F": 0.4, "f": 0.3, "density": density, "score": 0.8, "seconds": 6,
        "layers": layers, "confusion": [[90, 10, 6], [4, 101, 2], [8, 3, 96]],
        "phase_seconds": [["orthant", 4.5], ["hold", 1.5]],
    });
    let lines = std::iter::once(start).chain((1..=6).map(epoch)).chain([end]);
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn networks_have_a_page_of_their_own_and_share_one() {
    let Some(browser) = browser() else { return };
    let shop = Workshop::with_data();
    shop.write("net.jsonl", network_log(0.1));
    shop.write("denser.jsonl", network_log(0.3));
    shop.ok("fit train.svm --test train.svm --solver obproxsg --epochs 6 --log linear.jsonl --quiet");
    shop.ok("report net.jsonl --out net.html --plots plots --tables tables --quiet");
    shop.ok("report linear.jsonl net.jsonl denser.jsonl --out mixed.html --quiet");

    // ---- the curves answer the pointer, and the end of the Orthant steps is marked ------------------------------------
    open(&browser, &shop, "net.html");
    let tip = "document.querySelector('#chart-1-accuracy-epochs .tip')";
    let (x, y) = middle(&browser, "#chart-1-accuracy-epochs .u-over");
    browser.point(x, y, false);
    browser.until(&format!("!{tip}.hidden && {tip}.innerText.includes('%')"));
    let text = browser.value("document.body.innerText");
    let text = text.as_str().unwrap();
    for words in ["small-cnn, width 0.25", "Density by layer", "Orthant steps", "zeros held", "10.00 %", "ankle boot"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert!(!text.contains("? rows") && !text.contains("NaN") && !text.contains("undefined"), "{text}");
    let each = "[...document.querySelectorAll('figure.bars')].map(e => [e.innerText, e.querySelectorAll('tr').length])";
    let bars = browser.value(each);
    let of = |title: &str| {
        let found = bars.as_array().unwrap().iter().find(|one| one[0].as_str().unwrap().starts_with(title));
        found.unwrap_or_else(|| panic!("{title}: {bars}"))[1].clone()
    };
    assert_eq!((of("Density by layer"), of("Training time by kind of steps")), (4.into(), 2.into()));
    assert_silent(&browser);

    // ---- three problems' worth of runs fit a phone ----------------------------------------------------------------------
    browser.ask(
        "Emulation.setDeviceMetricsOverride",
        json!({"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true}),
    );
    for page in ["net.html", "mixed.html"] {
        open(&browser, &shop, page);
        assert_eq!(browser.value("document.documentElement.scrollWidth"), 360, "{page}");
        assert_silent(&browser);
    }
    let names = browser.value("[...document.querySelectorAll('.legend button')].map(e => e.dataset.series)");
    // The linear run is alone on its charts, which then need no legend.
    for name in ["obproxsg-plus, density 0.1", "obproxsg-plus, density 0.3"] {
        assert!(names.as_array().unwrap().contains(&name.into()), "{name}: {names}");
    }
    let text = browser.value("document.body.innerText");
    assert!(text.as_str().unwrap().contains("logistic") && text.as_str().unwrap().contains("small-cnn"), "{text}");
    // ---- and every chart of the page is a picture too, every table a file -------------------------------------------------
    let written = |directory: &str| std::fs::read_dir(shop.path(directory)).unwrap().count();
    assert!(written("plots") >= 6 && written("tables") >= 3, "{} {}", written("plots"), written("tables"));
}

#[test]
fn without_a_script_there_are_pictures_and_tables() {
    let Some(browser) = browser() else { return };
    let shop = Workshop::with_data();
    shop.ok("compare train.svm --solvers rda,auto --report report.html --epochs 5 --quiet");
    browser.ask("Emulation.setScriptExecutionDisabled", json!({"value": true}));
    open(&browser, &shop, "report.html");
    let wide = |selector: &str| {
        let expression = format!(
            "[...document.querySelectorAll({selector:?})].filter(e => e.getBoundingClientRect().width > 200).length"
        );
        browser.value(&expression).as_u64().unwrap()
    };
    assert_eq!((wide(".chart > svg"), wide(".scroll table")), (5, 4));
    assert_silent(&browser);
}

#[test]
fn hostile_names_stay_words() {
    let Some(browser) = browser() else { return };
    let shop = Workshop::new();
    let evil = "</script><script>alert(1)</script>";
    let mut table = format!("{evil},\"<img src=x onerror=alert(2)>\",y\n");
    (0..40).for_each(|row| table += &format!("{},{},{}\n", row % 7, row % 5, u8::from(row % 7 > row % 5)));
    shop.write("<b>data & 'co'.csv", table);
    let output = shop
        .command("cv --label y --lambdas 5 --report report.html --quiet")
        .args(["<b>data & 'co'.csv", "--log", "</script>.jsonl"])
        .output();
    // The log's name has a slash in it, so its directory does not exist.
    assert_eq!(output.unwrap().status.code(), Some(2));
    let output =
        shop.command("path --label y --lambdas 5 --report report.html --quiet").arg("<b>data & 'co'.csv").output();
    assert!(output.unwrap().status.success());
    open(&browser, &shop, "report.html");
    assert_eq!(browser.value("document.querySelector('h1').textContent"), "<b>data & 'co'.csv");
    assert_eq!(browser.value("document.querySelectorAll('h1 *, img').length"), 0);
    let names = browser.value("[...document.querySelectorAll('.legend button')].map(e => e.dataset.series)");
    assert!(names.as_array().unwrap().contains(&evil.into()), "{names}");
    let (x, y) = middle(&browser, "#chart-1-path-weights .u-over");
    browser.point(x, y, false);
    browser.until("document.querySelector('#chart-1-path-weights .tip').innerText.includes('</script>')");
    assert_silent(&browser);
}
