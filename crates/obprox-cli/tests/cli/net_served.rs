//! `obprox net compress`, `expand`, `import`, `export`, `infer`, `bench`: networks served, in every build.

use obprox_infer::images::Preprocessing;
use obprox_infer::{Architecture, Kind, Model, Training};

use crate::workshop::Workshop;

/// A small network of random weights whose images are 8×8 and grey.
fn model(labels: Vec<String>, preprocessing: Option<Preprocessing>) -> Model {
    let architecture = Architecture::new(Kind::SmallCnn).with_width(0.25).unwrap();
    let architecture = architecture.with_channels(1).unwrap().with_classes(3).unwrap();
    let (architecture, weights, _) = Model::random(architecture, 0.1, 1).unwrap().into_parts();
    Model::new(architecture, weights, Training { preprocessing, labels }).unwrap()
}

fn shop_with(model: &Model) -> Workshop {
    let shop = Workshop::new();
    model.write_safetensors(shop.path("model.safetensors")).unwrap();
    shop
}

fn described() -> Model {
    model(["ant", "bee", "cat"].map(str::to_owned).to_vec(), Some(Preprocessing::plain(8, 1)))
}

/// The same without every second channel: all parameters that make it are zero.
fn thinned() -> Model {
    let model = described();
    let groups = model.channel_groups().unwrap();
    let (design, mut weights, training) = model.into_parts();
    for (name, row) in groups.iter().step_by(2).flatten() {
        let tensor = weights.get_mut(name).unwrap();
        let len = tensor.len() / tensor.shape()[0];
        tensor.data_mut()[row * len..][..len].fill(0.0);
    }
    Model::new(design, weights, training).unwrap()
}

/// Twelve images of 8×8 pixels and labels for them, as idx files.
fn write_idx(shop: &Workshop) {
    let pixels = (0..12 * 64).map(|at| (at * at % 251) as u8);
    let header = [0u8, 0, 8, 3, 0, 0, 0, 12, 0, 0, 0, 8, 0, 0, 0, 8];
    shop.write("test-images-idx3-ubyte", header.into_iter().chain(pixels).collect::<Vec<u8>>());
    let labels = [0u8, 0, 8, 1, 0, 0, 0, 12].into_iter().chain((0..12).map(|at| at % 3));
    shop.write("test-labels-idx1-ubyte", labels.collect::<Vec<u8>>());
}

#[test]
fn compress_shows_sizes_and_expand_gives_the_network_back() {
    let shop = shop_with(&described());
    let told = shop.ok("net compress model.safetensors --out net.obz --layers");
    for figure in
        ["parameters", "weights not zero", "multiply-adds", "zstd -19", "one image", "each of a batch", "conv3"]
    {
        assert!(told.contains(figure), "{figure}: {told}");
    }
    assert_eq!(shop.ok("net compress model.safetensors --out same.obz --keep-channels --quiet"), "");
    shop.ok("net expand same.obz --out back.safetensors");
    let back = std::fs::read(shop.path("back.safetensors")).unwrap();
    assert_eq!(back, described().to_safetensors().unwrap(), "PyTorch reads back what it gave");
}

#[test]
fn rounded_values_are_smaller_and_their_cost_is_told() {
    let shop = shop_with(&described());
    write_idx(&shop);
    shop.ok("net compress model.safetensors --out whole.obz --quiet");
    let size = |name: &str| std::fs::metadata(shop.path(name)).unwrap().len();
    let mut last = size("whole.obz");
    for values in ["bf16", "int8"] {
        // The labels of the images are beside them.
        let line = format!("net compress model.safetensors --out {values}.obz --values {values}");
        let told = shop.ok(&(line.clone() + " --data test-images-idx3-ubyte"));
        assert!(told.contains(&format!("{values}: outputs differ by")) && told.contains("accuracy"), "{told}");
        assert!(size(&format!("{values}.obz")) < last, "{values}");
        last = size(&format!("{values}.obz"));
        assert!(!shop.ok(&line).contains("accuracy"), "without data there is none");
        shop.ok(&format!("net infer {values}.obz test-images-idx3-ubyte -q"));
    }
    shop.ok("net export model.safetensors --onnx out.onnx");
    let told = shop.ok("net import out.onnx --out in.obz --values int8");
    assert!(told.contains("int8: outputs differ by"), "{told}");
    assert!(size("in.obz") < size("whole.obz"));
}

#[test]
fn infer_predicts_pictures_and_whole_sets() {
    let shop = shop_with(&described());
    write_idx(&shop);
    shop.ok("net compress model.safetensors --out net.obz");
    let lines = shop.run("net infer net.obz test-images-idx3-ubyte --top 2 --batch 5");
    let (stdout, stderr) = (String::from_utf8(lines.stdout).unwrap(), String::from_utf8(lines.stderr).unwrap());
    assert_eq!(stdout.lines().count(), 12);
    let cells: Vec<&str> = stdout.lines().nth(7).unwrap().split('\t').collect();
    assert_eq!((cells.len(), cells[0]), (5, "test-images-idx3-ubyte:7"));
    assert!(["ant", "bee", "cat"].contains(&cells[1]) && cells[1] != cells[3]);
    assert!(cells[2].parse::<f64>().unwrap() >= cells[4].parse::<f64>().unwrap());
    let right = (0..).zip(stdout.lines()).filter(|(at, line)| line.contains(["\tant\t", "\tbee\t", "\tcat\t"][at % 3]));
    let right = right.filter(|(at, line)| line.split('\t').nth(1) == Some(["ant", "bee", "cat"][at % 3])).count();
    assert!(stderr.contains(&format!("{right} of 12 right")), "{stderr}");
    // The same for any kernel, any number of threads, from either file.
    for line in [
        "net infer net.obz test-images-idx3-ubyte --top 2 --dense -q",
        "net infer net.obz test-images-idx3-ubyte --top 2 --threads 1 --batch 1 -q",
        "net infer model.safetensors test-images-idx3-ubyte --top 2 -q",
    ] {
        assert_eq!(shop.ok(line), stdout, "obprox {line}");
    }
    shop.ok("net infer net.obz test-images-idx3-ubyte --top 2 --out lines.txt");
    assert_eq!(shop.read("lines.txt"), stdout);
}

/// Out as ONNX and in again: the same predictions, of a network that nobody knows by name.
#[test]
fn onnx_goes_out_and_comes_in() {
    let shop = shop_with(&thinned());
    write_idx(&shop);
    let lines = shop.ok("net infer model.safetensors test-images-idx3-ubyte --top 3 -q");
    shop.ok("net export model.safetensors --onnx out.onnx --safetensors small.safetensors");
    let told = shop.ok("net import out.onnx --out in.obz");
    assert!(told.starts_with("in.obz: a network of 4 layers for 1×32×32"), "{told}");
    shop.ok("net import out.onnx --out as-is.obz --keep-channels --quiet");
    shop.ok("net compress small.safetensors --out small.obz");
    for net in ["in.obz", "as-is.obz", "small.obz", "small.safetensors"] {
        assert_eq!(shop.ok(&format!("net infer {net} test-images-idx3-ubyte --top 3 -q")), lines, "{net}");
    }
    let table = shop.ok("net bench in.obz --repeats 1 --batch 1");
    assert_eq!(table.lines().filter(|line| line.ends_with('×')).count(), 1, "{table}");
    // Half the channels of a layer and of the one before it: a quarter of its weights.
    let size = |name: &str| std::fs::metadata(shop.path(name)).unwrap().len();
    assert!(size("small.safetensors") < size("model.safetensors") / 2);
}

#[test]
fn bench_measures() {
    let shop = shop_with(&described());
    let table = shop.ok("net bench --model small-cnn --width 0.1 --density 0.1,1 --batch 1,9 --repeats 1 --size 12");
    assert_eq!(table.lines().filter(|line| line.ends_with('×')).count(), 4, "{table}");
    let sizes = shop.ok("net bench --model small-cnn --width 0.1 --density 0.1,1 --sizes --uneven");
    assert_eq!(sizes.lines().filter(|line| line.contains(", 1/")).count(), 2, "{sizes}");
    let table = shop.ok("net bench model.safetensors --layers --repeats 1 --size 8 --threads 1");
    assert!(table.contains("conv3") && table.contains("16→32"), "{table}");
}

#[test]
fn what_is_wrong_is_refused() {
    let shop = shop_with(&described());
    write_idx(&shop);
    model(Vec::new(), None).write_safetensors(shop.path("bare.safetensors")).unwrap();
    shop.ok("net compress model.safetensors --out net.obz");
    let whole = std::fs::read(shop.path("net.obz")).unwrap();
    shop.write("cut.obz", &whole[..1000]);
    shop.write("other.obz", [b"OBZNET\x1a\n\x04", &whole[9..]].concat());
    shop.write("text.txt", "hello");
    shop.write("archive.pt", b"PK\x03\x04rest");
    let lines = [
        "net compress nowhere.safetensors --out x.obz",
        "net compress text.txt --out x.obz",
        "net compress archive.pt --out x.obz",
        "net compress bare.safetensors --out x.obz",
        "net compress bare.safetensors --out x.obz --normalize 0.5,0.5/1,1",
        "net compress bare.safetensors --out x.obz --normalize 0.5/0",
        "net compress bare.safetensors --out x.obz --normalize cifar",
        "net compress model.safetensors --out model.safetensors",
        "net compress model.safetensors --out nowhere/x.obz",
        "net compress model.safetensors --out x.obz --labels one,two",
        "net compress model.safetensors --out x.obz --size 0",
        "net expand model.safetensors --out x.safetensors",
        "net expand cut.obz --out x.safetensors",
        "net infer cut.obz test-images-idx3-ubyte",
        "net infer other.obz test-images-idx3-ubyte",
        "net infer bare.safetensors test-images-idx3-ubyte",
        "net import text.txt --out x.obz",
        "net import nowhere.onnx --out x.obz",
        "net export model.safetensors",
        "net export model.safetensors --onnx model.safetensors",
        "net export text.txt --onnx x.onnx",
        "net infer net.obz nowhere.png",
        "net infer net.obz text.txt",
        "net infer net.obz test-labels-idx1-ubyte",
        "net infer net.obz .",
        "net infer net.obz test-images-idx3-ubyte --out net.obz",
        "net infer net.obz test-images-idx3-ubyte --top 0",
        "net bench --density 2",
        "net bench --model vgg",
        "net bench --width 0.001",
        "net bench --size 1 --model small-cnn",
        "net bench net.obz --width 2",
    ];
    insta::assert_snapshot!(crate::refused::refused(&shop, &lines));
}
