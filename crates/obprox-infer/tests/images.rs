//! Images from files, resized and normalised.

use std::fs;
use std::io::Write;
use std::path::Path;

use obprox_infer::images::{Images, Preprocessing, read, read_folder, read_labels};

fn idx(magic: [u8; 4], sizes: &[u32], body: &[u8]) -> Vec<u8> {
    let sizes = sizes.iter().flat_map(|size| size.to_be_bytes());
    magic.into_iter().chain(sizes).chain(body.iter().copied()).collect()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Writes a file and reads it as images; the error without the directory.
fn reading(directory: &Path, name: &str, bytes: &[u8]) -> Result<Images, String> {
    let path = directory.join(name);
    fs::write(&path, bytes).unwrap();
    read(&path).map_err(|error| error.to_string().replace(&format!("{}/", directory.display()), ""))
}

#[test]
fn idx_files_with_labels_beside_them() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let images = idx([0, 0, 8, 3], &[2, 2, 3], &(0..12).collect::<Vec<u8>>());
    let found = reading(at, "t10k-images-idx3-ubyte.gz", &gzipped(&images)).unwrap();
    assert_eq!((found.shape(), found.len(), found.labels()), ([1, 2, 3], 2, None));
    assert_eq!(found.image(1), [6, 7, 8, 9, 10, 11]);
    fs::write(at.join("t10k-labels-idx1-ubyte"), idx([0, 0, 8, 1], &[2], &[7, 9])).unwrap();
    let found = reading(at, "t10k-images-idx3-ubyte.gz", &gzipped(&images)).unwrap();
    assert_eq!(found.labels(), Some(&[7, 9][..]));
    fs::write(at.join("t10k-labels-idx1-ubyte"), idx([0, 0, 8, 1], &[3], &[7, 9, 1])).unwrap();
    let error = reading(at, "t10k-images-idx3-ubyte.gz", &gzipped(&images)).unwrap_err();
    assert!(error.starts_with("t10k-images-idx3-ubyte.gz: has 2 images, and ") && error.ends_with("has 3 labels"));
}

#[test]
fn files_that_are_wrong_say_where() {
    let directory = tempfile::tempdir().unwrap();
    let error = |name: &str, bytes: &[u8]| reading(directory.path(), name, bytes).unwrap_err();
    let images = idx([0, 0, 8, 3], &[2, 2, 3], &[0; 12]);
    assert_eq!(
        error("short", &images[..20]),
        "short: byte 4: sizes [2, 2, 3] make 28 bytes, and the file has 20: get it again"
    );
    assert_eq!(error("cut", &images[..10]), "cut: byte 10: the idx header ends early: get the file again");
    assert_eq!(
        error("huge", &idx([0, 0, 8, 3], &[u32::MAX, u32::MAX, u32::MAX], &[])),
        "huge: byte 4: sizes [4294967295, 4294967295, 4294967295] make more than can be counted bytes, and the file \
         has 16: get it again"
    );
    assert_eq!(
        error("empty", &idx([0, 0, 8, 3], &[5, 0, 28], &[])),
        "empty: byte 8: images of 0×28 pixels have nothing in them"
    );
    assert_eq!(
        error("labels", &idx([0, 0, 8, 1], &[1], &[3])),
        "labels: holds labels: give the images, labels are found beside them"
    );
    assert_eq!(error("text", b"hello"), "text: byte 0: is no PNG, JPEG, idx or CIFAR-10 file");
    let mut records = [[vec![3], vec![0; 3072]].concat(), [vec![9], vec![1; 3072]].concat()].concat();
    assert!(error("cut.bin", &records[..4000]).starts_with("cut.bin: byte 3073: after 1 records of CIFAR-10 come 927"));
    records[3073] = 10;
    assert_eq!(error("bad.bin", &records), "bad.bin: byte 3073: 10 is no label of CIFAR-10: they go from 0 to 9");
    assert!(error("cut.png", b"\x89PNG\r\n\x1a\nrest").starts_with("cut.png: cannot be decoded ("));
    let labels = directory.path().join("labels");
    assert_eq!(read_labels(&labels).unwrap(), [3]);
    assert!(read_labels(directory.path().join("text")).unwrap_err().to_string().contains("byte 0: is no idx file"));
}

#[test]
fn cifar_files() {
    let directory = tempfile::tempdir().unwrap();
    let record = |label: u8| [vec![label], (0..3072).map(|at| (at % 251) as u8).collect()].concat();
    let found = reading(directory.path(), "batch.bin", &[record(3), record(9)].concat()).unwrap();
    assert_eq!((found.shape(), found.labels()), ([3, 32, 32], Some(&[3, 9][..])));
    assert_eq!(found.image(1)[..], record(0)[1..]);
}

fn save_picture(path: &Path, width: u32, height: u32, colour: [u8; 3]) {
    image::RgbImage::from_fn(width, height, |x, _| image::Rgb(if x == 0 { colour } else { [0; 3] }))
        .save(path)
        .unwrap();
}

#[test]
fn pictures_and_folders() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    save_picture(&at.join("one.png"), 2, 1, [10, 20, 30]);
    let found = read(at.join("one.png")).unwrap();
    assert_eq!((found.shape(), found.pixels()), ([3, 1, 2], &[10, 0, 20, 0, 30, 0][..]));
    image::GrayImage::from_raw(2, 1, vec![7, 9]).unwrap().save(at.join("grey.png")).unwrap();
    assert_eq!(read(at.join("grey.png")).unwrap().shape(), [1, 1, 2]);

    let root = at.join("classes");
    for (class, colour) in [("cats", [200, 0, 0]), ("ants", [0, 200, 0])] {
        fs::create_dir_all(root.join(class)).unwrap();
        save_picture(&root.join(class).join("b.png"), 4, 4, colour);
        save_picture(&root.join(class).join("a.JPG"), 8, 4, colour);
        fs::write(root.join(class).join("notes.txt"), "no picture").unwrap();
    }
    fs::create_dir_all(root.join(".hidden")).unwrap();
    let folder = read_folder(&root, [3, 4, 4]).unwrap();
    assert_eq!(folder.classes, ["ants", "cats"]);
    assert_eq!(folder.images.labels(), Some(&[0, 0, 1, 1][..]));
    assert_eq!(folder.images.shape(), [3, 4, 4]);
    assert_eq!(folder.images.image(1)[16], 200, "the second ant is b.png, green at the left");
    fs::write(root.join("cats/broken.png"), b"\x89PNG").unwrap();
    assert!(read_folder(&root, [3, 4, 4]).unwrap_err().to_string().contains("cats/broken.png: cannot be decoded"));
    assert!(read_folder(at.join("nowhere"), [3, 4, 4]).is_err());
    assert!(read_folder(root.join("cats"), [3, 4, 4]).unwrap_err().to_string().contains("has no folders in it"));
}

/// A PNG of any kind: `values` as they lie in its rows.
fn png_of(
    colour: png::ColorType,
    depth: png::BitDepth,
    palette: Option<&[u8]>,
    size: [u32; 2],
    values: &[u8],
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, size[0], size[1]);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if let Some(palette) = palette {
        encoder.set_palette(palette.to_vec());
    }
    encoder.write_header().unwrap().write_image_data(values).unwrap();
    bytes
}

#[test]
fn pictures_of_every_kind() {
    use png::{BitDepth, ColorType};
    let directory = tempfile::tempdir().unwrap();
    let read = |bytes: Vec<u8>| {
        let found = reading(directory.path(), "picture", &bytes).unwrap();
        (found.shape(), found.pixels().to_vec())
    };
    type Case<'a> = (ColorType, BitDepth, Option<&'a [u8]>, &'a [u8], usize, &'a [u8]);
    let palette = [9, 8, 7, 1, 2, 3];
    let cases: [Case; 7] = [
        (ColorType::Grayscale, BitDepth::Eight, None, &[5, 250], 1, &[5, 250]),
        (ColorType::Grayscale, BitDepth::One, None, &[0b0100_0000], 1, &[0, 255]),
        (ColorType::Grayscale, BitDepth::Sixteen, None, &[5, 255, 250, 0], 1, &[5, 250]),
        (ColorType::GrayscaleAlpha, BitDepth::Eight, None, &[5, 0, 250, 9], 1, &[5, 250]),
        (ColorType::Rgb, BitDepth::Eight, None, &[1, 2, 3, 4, 5, 6], 3, &[1, 4, 2, 5, 3, 6]),
        (ColorType::Rgba, BitDepth::Eight, None, &[1, 2, 3, 0, 4, 5, 6, 9], 3, &[1, 4, 2, 5, 3, 6]),
        (ColorType::Indexed, BitDepth::Two, Some(&palette), &[0b0001_0000], 3, &[9, 1, 8, 2, 7, 3]),
    ];
    for (colour, depth, palette, values, channels, pixels) in cases {
        let found = read(png_of(colour, depth, palette, [2, 1], values));
        assert_eq!(found, ([channels, 1, 2], pixels.to_vec()), "{colour:?} {depth:?}");
    }
    // A JPEG of one colour is that colour, in grey as in colour.
    for (picture, shape, value) in [
        (image::DynamicImage::ImageLuma8(image::GrayImage::from_pixel(9, 8, image::Luma([77]))), [1, 8, 9], 77),
        (image::DynamicImage::ImageRgb8(image::RgbImage::from_pixel(9, 8, image::Rgb([50; 3]))), [3, 8, 9], 50),
    ] {
        let mut bytes = std::io::Cursor::new(Vec::new());
        picture.write_to(&mut bytes, image::ImageFormat::Jpeg).unwrap();
        let (found, pixels) = read(bytes.into_inner());
        assert_eq!(found, shape);
        assert!(pixels.iter().all(|pixel| pixel.abs_diff(value) <= 1), "{pixels:?}");
    }
}

/// A file that says it is a large picture takes no memory for it.
#[test]
fn pictures_that_are_too_large_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut bytes = png_of(png::ColorType::Grayscale, png::BitDepth::Eight, None, [2, 1], &[5, 250]);
    for (side, why) in [(16000u32, "the file is too short for that"), (20000, "sides go up to 16384")] {
        bytes[16..20].copy_from_slice(&side.to_be_bytes());
        bytes[20..24].copy_from_slice(&side.to_be_bytes());
        let sum = crc32fast::hash(&bytes[12..29]);
        bytes[29..33].copy_from_slice(&sum.to_be_bytes());
        let told = reading(directory.path(), "large.png", &bytes).unwrap_err();
        assert!(told.starts_with("large.png: cannot be decoded (") && told.contains(why), "{told}");
    }
}

/// Values of PIL 12: Image.fromarray(a).resize((width, height), Image.BILINEAR).
#[test]
fn resizing_is_that_of_pil() {
    let pixels: Vec<u8> =
        (0..35).map(|at| (at / 7, at % 7)).map(|(y, x)| ((37 * y * y + 77 * x + 13 * x * y) % 256) as u8).collect();
    let images = Images::new([1, 5, 7], pixels.clone(), None).unwrap();
    let cases: [(usize, usize, &[u8]); 3] = [
        (2, 3, &[114, 138, 148, 140, 130, 118]),
        (5, 4, &[40, 160, 118, 166, 84, 153, 134, 140, 190, 157, 111, 200, 126, 113, 91, 66, 135, 144, 145, 140]),
        (
            8,
            9,
            &[
                0, 51, 111, 171, 231, 92, 95, 155, 206, 16, 71, 136, 175, 152, 105, 137, 164, 144, 44, 105, 168, 176,
                60, 119, 186, 177, 77, 113, 180, 178, 139, 154, 94, 132, 182, 195, 126, 197, 167, 108, 191, 75, 101,
                158, 176, 81, 158, 134, 82, 171, 61, 94, 103, 21, 79, 161, 143, 97, 193, 89, 128, 139, 51, 80, 166,
                153, 111, 211, 112, 156, 171, 86,
            ],
        ),
    ];
    for (height, width, expected) in cases {
        assert_eq!(images.fitted([1, height, width]).unwrap().pixels(), expected, "{height}×{width}");
    }
    assert_eq!(images.fitted([1, 5, 7]).unwrap(), images);
    // Grey to colour and back is nothing; colour to grey is luma.
    let colour = images.fitted([3, 5, 7]).unwrap();
    assert_eq!(colour.image(0)[35..70], pixels);
    assert_eq!(colour.fitted([1, 5, 7]).unwrap(), images);
    let mixed = [pixels.clone(), pixels.iter().map(|p| 255 - p).collect(), pixels.iter().map(|p| p / 2).collect()];
    let grey = Images::new([3, 5, 7], mixed.concat(), None).unwrap().fitted([1, 5, 7]).unwrap();
    assert_eq!(grey.pixels()[..7], [150, 132, 114, 96, 138, 120, 102]);
    assert!(colour.fitted([2, 5, 7]).is_err());
}

#[test]
fn normalising() {
    let preprocessing = Preprocessing { height: 1, width: 2, mean: vec![0.5, 0.25], std: vec![0.5, 0.125] };
    let images = Images::new([2, 1, 2], vec![0, 255, 51, 102, 255, 0, 0, 0], None).unwrap();
    let values = preprocessing.apply(&images).unwrap();
    let expected = [-1.0, 1.0, -0.4, 1.2, 1.0, -1.0, -2.0, -2.0];
    for (value, expected) in values.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-6, "{values:?}");
    }
    assert!(Preprocessing::imagenet(32).check().is_ok());
    for bad in [
        Preprocessing { height: 0, ..Preprocessing::imagenet(32) },
        Preprocessing { std: vec![1.0, 0.0, 1.0], ..Preprocessing::imagenet(32) },
        Preprocessing { mean: vec![0.0; 2], ..Preprocessing::imagenet(32) },
        Preprocessing { mean: vec![f32::NAN; 3], ..Preprocessing::imagenet(32) },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}

/// The real files, where they are at hand (OBPROX_DATA).
#[test]
fn fashion_mnist_and_cifar10() {
    let Some(data) = std::env::var_os("OBPROX_DATA") else {
        return;
    };
    let data = Path::new(&data);
    let fashion = read(data.join("fashion-mnist/t10k-images-idx3-ubyte.gz")).unwrap();
    assert_eq!((fashion.len(), fashion.shape()), (10000, [1, 28, 28]));
    assert_eq!(fashion.labels().unwrap()[..5], [9, 2, 1, 1, 6]);
    let cifar = read(data.join("cifar10/test_batch.bin.xz")).unwrap();
    assert_eq!((cifar.len(), cifar.shape()), (10000, [3, 32, 32]));
    assert_eq!(cifar.labels().unwrap()[..5], [3, 8, 8, 0, 6]);
}
