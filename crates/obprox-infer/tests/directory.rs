//! Directories of images: what is found, and what is refused.

use std::fs;
use std::path::Path;

use obprox_infer::images::read_directory;

fn idx(sizes: &[u32], values: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, sizes.len() as u8];
    sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

fn write_idx(directory: &Path, part: &str, count: u32) {
    let pixels: Vec<u8> = (0..count * 4).map(|value| value as u8).collect();
    let labels: Vec<u8> = (0..count).map(|value| (value % 3) as u8).collect();
    fs::write(directory.join(format!("{part}-images-idx3-ubyte")), idx(&[count, 2, 2], &pixels)).unwrap();
    fs::write(directory.join(format!("{part}-labels-idx1-ubyte")), idx(&[count], &labels)).unwrap();
}

fn refusal(path: &Path) -> String {
    let error = read_directory(path, [1, 2, 2], None).unwrap_err();
    assert!(error.is_input());
    error.to_string()
}

#[test]
fn idx_files_have_two_parts_and_numbered_classes() {
    let directory = tempfile::tempdir().unwrap();
    write_idx(directory.path(), "train", 7);
    write_idx(directory.path(), "t10k", 3);
    let data = read_directory(directory.path(), [1, 2, 2], None).unwrap();
    assert_eq!((data.train.len(), data.test.as_ref().unwrap().len()), (7, 3));
    assert_eq!(data.classes, ["0", "1", "2"]);
    assert_eq!(data.train.image(1), [4, 5, 6, 7]);
    assert_eq!(data.train.labels().unwrap(), [0, 1, 2, 0, 1, 2, 0]);
    // Grey spreads over three channels, and the size is changed.
    assert_eq!(read_directory(directory.path(), [3, 4, 4], None).unwrap().train.shape(), [3, 4, 4]);
    // A limit draws the same images every time.
    let few = || read_directory(directory.path(), [1, 2, 2], Some(4)).unwrap().train;
    assert_eq!((few().len(), few().pixels()), (4, few().pixels()));
}

#[test]
fn cifar_batches_are_joined_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let record = |label: u8, value: u8| [vec![label], vec![value; 3072]].concat();
    fs::write(directory.path().join("data_batch_1.bin"), [record(3, 1), record(9, 2)].concat()).unwrap();
    fs::write(directory.path().join("data_batch_2.bin"), record(0, 3)).unwrap();
    fs::write(directory.path().join("test_batch.bin"), record(5, 4)).unwrap();
    let data = read_directory(directory.path(), [3, 32, 32], None).unwrap();
    assert_eq!(data.train.labels().unwrap(), [3, 9, 0]);
    assert_eq!(data.test.unwrap().labels().unwrap(), [5]);
    assert_eq!(data.classes[9], "truck");
    fs::write(directory.path().join("data_batch_2.bin"), &record(0, 3)[..3000]).unwrap();
    let message = refusal(directory.path());
    assert!(message.contains("data_batch_2.bin: byte 0"), "{message}");
}

#[test]
fn broken_idx_files_are_named_with_the_place() {
    let directory = tempfile::tempdir().unwrap();
    write_idx(directory.path(), "train", 7);
    let (images, labels) = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    let whole = fs::read(directory.path().join(images)).unwrap();
    fs::write(directory.path().join(images), &whole[..whole.len() - 1]).unwrap();
    let message = refusal(directory.path());
    assert!(message.contains(images) && message.contains("byte 4"), "{message}");
    // Sizes that no memory could hold are refused before any is asked for.
    fs::write(directory.path().join(images), idx(&[u32::MAX, u32::MAX, u32::MAX], &[0; 8])).unwrap();
    assert!(refusal(directory.path()).contains(images));
    fs::write(directory.path().join(images), &whole).unwrap();
    fs::write(directory.path().join(labels), idx(&[6], &[0; 6])).unwrap();
    assert!(refusal(directory.path()).contains("7 images"));
    fs::remove_file(directory.path().join(labels)).unwrap();
    assert!(refusal(directory.path()).contains("without labels"));
}

#[test]
fn directories_without_images_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(refusal(directory.path()).contains("train-images-idx3-ubyte"));
    assert!(refusal(&directory.path().join("missing")).contains("cannot read"));
    fs::create_dir(directory.path().join("cats")).unwrap();
    assert!(refusal(directory.path()).contains("no .png"));
    fs::write(directory.path().join("cats/tom.png"), b"\x89PNG but no more").unwrap();
    assert!(refusal(directory.path()).contains("tom.png"));
}
