//! Networks: training, resuming, measuring, and what is refused.
#![cfg(feature = "net")]

use crate::workshop::Workshop;

const TRAIN: &str =
    "net train images --recipe paper --width 0.125 --size 8 --channels 1 --epochs 3 --batch 16 --lambda 1e-2 --pad 0";

/// The default recipe, as sparse as is asked for.
const SPARSE: &str =
    "net train images --width 0.25 --size 8 --channels 1 --epochs 8 --batch 16 --pad 0 --target-density 0.1";

/// Idx files of 8 × 8 images that are bright above or below.
fn shop() -> Workshop {
    let shop = Workshop::new();
    std::fs::create_dir(shop.path("images")).unwrap();
    for (part, count) in [("train", 64u32), ("t10k", 32)] {
        let mut state = count;
        let mut noise = move || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            (state >> 27) as u8
        };
        let bright = |image: u32, row: u32| if image.is_multiple_of(2) == (row < 4) { 180 } else { 20 };
        let pixels: Vec<u8> = (0..count * 64).map(|at| bright(at / 64, at % 64 / 8) + noise()).collect();
        let labels: Vec<u8> = (0..count).map(|image| (image % 2) as u8).collect();
        let idx = |sizes: &[u32], values: &[u8]| {
            let mut bytes = vec![0, 0, 8, sizes.len() as u8];
            sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
            [bytes, values.to_vec()].concat()
        };
        shop.write(&format!("images/{part}-images-idx3-ubyte"), idx(&[count, 8, 8], &pixels));
        shop.write(&format!("images/{part}-labels-idx1-ubyte"), idx(&[count], &labels));
    }
    shop
}

fn events(shop: &Workshop, name: &str) -> Vec<serde_json::Value> {
    shop.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_network_is_trained_logged_written_and_measured() {
    let shop = shop();
    let page = shop.ok(&format!("{TRAIN} --out net.safetensors --log run.jsonl"));
    assert!(page.contains("64 images, 32 to test on") && page.contains("done after 3 epochs"), "{page}");
    let events = events(&shop, "run.jsonl");
    assert_eq!(events.len(), 5);
    let (start, last, end) = (&events[0], &events[3], &events[4]);
    assert_eq!((start["event"].as_str(), start["solver"].as_str()), (Some("start"), Some("obproxsg-plus")));
    assert_eq!((start["lambda"].as_f64(), start["np"].as_u64()), (Some(1e-2), Some(2)));
    assert_eq!((last["event"].as_str(), last["phase"].as_str()), (Some("epoch"), Some("orthant")));
    assert_eq!((end["event"].as_str(), end["status"].as_str()), (Some("end"), Some("max_epochs")));
    for figure in ["F", "f", "l1", "nnz", "density", "score", "seconds"] {
        assert!(last[figure].is_number(), "{figure}");
        assert_eq!(last[figure], end[figure]);
    }
    // What was told of the network is what its file says.
    let report = shop.ok("net eval net.safetensors images --lambda 1e-2 --json");
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    for (figure, logged) in [("nnz", "nnz"), ("density", "density"), ("accuracy", "score")] {
        assert_eq!(report[figure], end[logged], "{figure}");
    }
    let near = |figure: &str| (report[figure].as_f64().unwrap() - end[figure].as_f64().unwrap()).abs() < 1e-6;
    assert!(near("F") && near("f"), "{report} {end}");
    let page = shop.ok("net eval net.safetensors images");
    assert!(page.contains("conv2.weight") && page.contains("test accuracy"), "{page}");
}

#[test]
fn a_network_is_as_sparse_as_asked_for_and_says_so() {
    let shop = shop();
    let page = shop.ok(&format!("{SPARSE} --out net.obz --log run.jsonl --report run.html --tables tables"));
    assert!(page.contains("done after 8 epochs: the target was at most 10.00 %"), "{page}");
    let events = events(&shop, "run.jsonl");
    let (start, end) = (&events[0], &events[9]);
    assert_eq!((start["target_density"].as_f64(), start["schedule"].as_str()), (Some(0.1), Some("cosine")));
    assert_eq!((end["status"].as_str(), end["phase"].as_str()), (Some("max_epochs"), Some("hold")));
    let density = end["density"].as_f64().unwrap();
    assert!(density <= 0.1 && density > 0.08, "{density}");
    assert!(end["score"].as_f64().unwrap() >= 0.9, "{end}");
    assert!(end["layers"].as_array().unwrap().iter().all(|layer| layer["nnz"].as_u64().unwrap() > 0));
    assert!(events[8]["lambda"] == 0.0 && events[2]["lambda"].as_f64().unwrap() > 0.0);
    // The compressed file is the network; either kind is measured and trained on.
    let report: serde_json::Value = serde_json::from_str(&shop.ok("net eval net.obz images --json")).unwrap();
    assert_eq!(report["accuracy"], end["score"]);
    shop.ok("net expand net.obz --out net.safetensors");
    shop.ok(&format!("{} --start net.obz --quiet", SPARSE.replace(" --width 0.25", "")));
    // The page, the tables and the terminal know what a network is.
    let html = shop.read("run.html");
    for word in ["small-cnn", "Density by layer", "zeros held", "Which class is taken for which", "cross-entropy"] {
        assert!(html.contains(word), "{word}");
    }
    assert!(!html.contains("? rows"));
    assert!(shop.read("tables/layers.csv").contains("conv2.weight"));
    assert!(shop.read("tables/confusion.csv").starts_with("data,run,class,right,0,1"));
    let terminal = shop.ok("report run.jsonl --out again.html");
    assert!(terminal.contains("small-cnn") && terminal.contains("density"), "{terminal}");
    assert_eq!(shop.read("again.html"), html, "the page of a run is the page of its log");
}

#[test]
fn linear_runs_and_networks_share_a_page() {
    let shop = shop();
    shop.write("train.svm", "1 1:1 2:0.5\n-1 1:-1 2:0.25\n1 1:0.5\n-1 2:-1\n");
    shop.ok("fit train.svm --log linear.jsonl --quiet");
    shop.ok(&format!("{SPARSE} --log sparse.jsonl --quiet"));
    shop.ok(&format!("{SPARSE} --target-density 0.3 --log denser.jsonl --quiet").replacen(
        " --target-density 0.1",
        "",
        1,
    ));
    let page = shop.ok("report linear.jsonl sparse.jsonl denser.jsonl --out all.html --plots plots");
    assert!(page.contains("4 rows × 2 features") && page.contains("small-cnn, width 0.25"), "{page}");
    assert!(page.contains("obproxsg-plus, density 0.1") && page.contains("obproxsg-plus, density 0.3"), "{page}");
    assert!(shop.read("all.html").contains("Accuracy on the test images"));
}

#[test]
fn images_that_cannot_be_learnt_from_are_refused() {
    let shop = shop();
    std::fs::create_dir_all(shop.path("empty/one")).unwrap();
    std::fs::create_dir_all(shop.path("flat")).unwrap();
    shop.write("flat/readme.txt", "no pictures");
    std::fs::create_dir_all(shop.path("cifar")).unwrap();
    shop.write("cifar/data_batch_1.bin", vec![3u8; 3073 * 2 + 100]);
    std::fs::create_dir_all(shop.path("alike")).unwrap();
    shop.write("alike/train-images-idx3-ubyte", std::fs::read(shop.path("images/t10k-images-idx3-ubyte")).unwrap());
    let mut labels = vec![0u8, 0, 8, 1, 0, 0, 0, 32];
    labels.extend([1u8; 32]);
    shop.write("alike/train-labels-idx1-ubyte", labels);
    for (line, word) in [
        ("net train empty", "has no .png, .jpg or .jpeg files"),
        ("net train flat", "nor a folder of pictures a class"),
        ("net train cifar", "data_batch_1.bin"),
        ("net train alike --channels 1 --size 8 --width 0.125", "one class"),
        ("net train images --target-density 0", "--target-density"),
        ("net train images --target-density 1.5", "--target-density"),
        ("net train images --channels 1 --size 8 --width 0.125 --target-density 1e-4", "to stay alive"),
    ] {
        let output = shop.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.lines().count() == 1 && said.contains(word), "{line}: {said}");
    }
}

#[test]
fn a_run_is_resumed_to_the_same_bits() {
    let shop = shop();
    shop.ok(&format!("{TRAIN} --out whole.safetensors --quiet"));
    // One epoch switches sooner than three do, by default.
    shop.ok(&format!("{} --checkpoint state --quiet", TRAIN.replace("--epochs 3", "--epochs 1")));
    let refused = shop.run(&format!("{TRAIN} --checkpoint state --resume"));
    assert_eq!(refused.status.code(), Some(2), "other settings");
    std::fs::remove_dir_all(shop.path("state")).unwrap();
    // The settings that hang on the number of epochs are said, so that one and three epochs share them.
    let line = |epochs: u32| TRAIN.replace("--epochs 3", &format!("--epochs {epochs} --np 2 --decay-every 1"));
    shop.ok(&format!("{} --checkpoint state --quiet", line(1)));
    shop.ok(&format!("{} --checkpoint state --resume --out resumed.safetensors --log run.jsonl", line(3)));
    assert_eq!(events(&shop, "run.jsonl")[0]["resumed_epochs"], 1);
    let bytes = |name: &str| std::fs::read(shop.path(name)).unwrap();
    assert_eq!(bytes("resumed.safetensors"), bytes("whole.safetensors"));
}

#[test]
fn a_log_or_checkpoint_that_cannot_be_written_costs_that_alone() {
    let shop = shop();
    shop.ok(&format!("{TRAIN} --out whole.safetensors --quiet"));
    // A directory where the file should be stands for a full disk.
    std::fs::create_dir_all(shop.path("state/checkpoint.obprox-net")).unwrap();
    let output = shop.run(&format!("{TRAIN} --checkpoint state --log /dev/full --out net.safetensors"));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.matches("the run goes on without it").count()), (Some(1), 2), "{said}");
    let page = String::from_utf8(output.stdout).unwrap();
    assert!(!page.contains("checkpoint in") && !page.contains("log written"), "{page}");
    let bytes = |name: &str| std::fs::read(shop.path(name)).unwrap();
    assert_eq!(bytes("net.safetensors"), bytes("whole.safetensors"));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let shop = shop();
    shop.write("text.safetensors", "no network");
    for (line, word) in [
        ("net train missing", "missing: cannot read"),
        ("net train images --model vgg", "vgg"),
        ("net train images --solver auto", "auto"),
        ("net train images --width 0", "--width"),
        ("net train images --lambda -1", "--lambda"),
        ("net train images --layer-lambda conv7=1", "no layer conv7"),
        ("net train images --exclude conv7", "no layer conv7"),
        ("net train images --switch score:2 --np 3", "--np"),
        ("net train images --target-density 0.1 --solver prox-sg", "--target-density"),
        ("net train images --resume", "--checkpoint"),
        ("net train images --out nowhere/net.safetensors", "--out"),
        ("net train images --normalize 1,2/1,1", "--normalize"),
        ("net train images --start text.safetensors", "text.safetensors"),
        ("net eval text.safetensors images", "text.safetensors"),
    ] {
        let output = shop.run(line);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.lines().count() == 1 && said.contains(word), "{line}: {said}");
    }
    assert_eq!(shop.listing().len(), 6, "nothing was written: {:?}", shop.listing());
}

#[test]
fn a_diverged_run_says_so_and_keeps_what_was_good() {
    let shop = shop();
    let output = shop.run(&format!(
        "{} --step 1e25 --out net.safetensors --log run.jsonl",
        TRAIN.replace("--lambda 1e-2", "--lambda 0")
    ));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("diverged"));
    assert_eq!(events(&shop, "run.jsonl").last().unwrap()["status"], "diverged");
    shop.ok("net eval net.safetensors images --json");
}

#[test]
fn the_papers_section_is_run_once_and_kept() {
    let shop = shop();
    let line =
        "paper nets --scale tiny --fashion-mnist images --networks mobilenet-v1 --solvers obproxsg-plus --out done";
    let page = shop.ok(line);
    assert!(page.contains("MobileNetV1 on Fashion-MNIST"), "{page}");
    let log = "done/tiny-mobilenet-v1-fashion-mnist-obproxsg-plus.jsonl";
    let epochs = events(&shop, log);
    let phases: Vec<&str> =
        epochs.iter().filter(|event| event["event"] == "epoch").map(|event| event["phase"].as_str().unwrap()).collect();
    assert_eq!(phases, [["prox"; 5], ["orthant"; 5]].concat());
    assert!(shop.read("done/nets-tiny.md").contains("nets-tiny-density.svg"));
    assert!(shop.read("done/nets-tiny-density.svg").contains("OBProx-SG+ switches"));
    let report = shop.ok(&format!("net eval {} images --json", log.replace("jsonl", "safetensors")));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["nnz"], epochs.last().unwrap()["nnz"], "the network is kept");
    // What was done is not done again: the log, with its times, is the same.
    let before = shop.read(log);
    assert_eq!(shop.ok(line), page);
    assert_eq!(shop.read(log), before);
}
