//! A directory → images to train on and to test on.
//!
//! Known by what is in it: the idx files of MNIST and its kin, the binary files of CIFAR-10, or class-named folders of
//! pictures, themselves in `train` and `test` (or `val`) where there are such folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use obprox::sampler::{Batch, Sampler};
use obprox::{Error, Result};

use super::{CIFAR10_LABELS, Images, read, read_folder};

/// Images of one size in two parts.
#[derive(Clone, Debug)]
pub struct Data {
    /// What is trained on.
    pub train: Arc<Images>,
    /// What is scored on, where the directory has it.
    pub test: Option<Arc<Images>>,
    /// Names of the classes; just numbers where the source has none.
    pub classes: Vec<String>,
}

/// Reads a directory of images, or one file of them, brought to a shape of channels, height and width. `limit` keeps
/// so many of the training images, drawn at random but always the same ones.
pub fn read_directory(path: &Path, shape: [usize; 3], limit: Option<usize>) -> Result<Data> {
    let (train, test, classes) = find(path)?.read(shape, limit)?;
    let train = labelled(path, train)?;
    let test = test.map(|test| labelled(path, test)).transpose()?;
    let most = |images: &Images| images.labels().unwrap_or_default().iter().max().map_or(0, |&most| most as usize + 1);
    let count = most(&train).max(test.as_ref().map_or(0, most)).max(classes.len());
    let classes = if classes.is_empty() { (0..count).map(|class| class.to_string()).collect() } else { classes };
    Ok(Data { train: Arc::new(train), test: test.map(Arc::new), classes })
}

fn labelled(path: &Path, images: Images) -> Result<Images> {
    let name = path.display().to_string();
    match images.labels() {
        None => Err(Error::file(name, "has images without labels: put the file of labels beside them")),
        Some([]) => Err(Error::file(name, "has no images in it")),
        Some(_) => Ok(images),
    }
}

/// What a path turned out to be.
enum Source {
    /// Files of images for training, and for scoring.
    Files(Vec<PathBuf>, Vec<PathBuf>),
    /// Folders of class-named folders.
    Folders(PathBuf, Option<PathBuf>),
}

fn find(path: &Path) -> Result<Source> {
    if !fs::metadata(path).map_err(Error::reading(path))?.is_dir() {
        return Ok(Source::Files(vec![path.to_owned()], Vec::new()));
    }
    let listing = fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let mut entries: Vec<PathBuf> = listing.map_err(Error::reading(path))?.iter().map(fs::DirEntry::path).collect();
    entries.sort();
    let named = |wanted: &dyn Fn(&str) -> bool| -> Vec<PathBuf> {
        let matches = |entry: &&PathBuf| entry.file_name().and_then(|name| name.to_str()).is_some_and(wanted);
        entries.iter().filter(matches).cloned().collect()
    };
    let files = |wanted: &dyn Fn(&str) -> bool| {
        let mut found: Vec<PathBuf> = named(wanted).into_iter().filter(|entry| entry.is_file()).collect();
        // The same file plain and compressed is one file.
        found.dedup_by(|second, first| second.with_extension("") == *first);
        found
    };
    let idx = |part: &'static [&'static str]| {
        files(&|name| name.contains("images-idx3") && part.iter().any(|part| name.starts_with(part)))
    };
    let (train, test) = (idx(&["train"]), idx(&["t10k", "test"]));
    if !train.is_empty() {
        return Ok(Source::Files(train, test));
    }
    let train = files(&|name| name.starts_with("data_batch") && name.contains(".bin"));
    if !train.is_empty() {
        return Ok(Source::Files(train, files(&|name| name.starts_with("test_batch") && name.contains(".bin"))));
    }
    let folder = |names: &[&str]| names.iter().map(|name| path.join(name)).find(|folder| folder.is_dir());
    if let Some(train) = folder(&["train"]) {
        return Ok(Source::Folders(train, folder(&["test", "val", "valid"])));
    }
    if entries.iter().any(|entry| entry.is_dir()) {
        return Ok(Source::Folders(path.to_owned(), None));
    }
    let wanted = "has neither train-images-idx3-ubyte (MNIST, Fashion-MNIST), data_batch_1.bin (CIFAR-10, the binary \
                  version) nor a folder of pictures a class";
    Err(Error::file(path.display().to_string(), wanted))
}

type Parts = (Images, Option<Images>, Vec<String>);

impl Source {
    fn read(&self, shape: [usize; 3], limit: Option<usize>) -> Result<Parts> {
        match self {
            Self::Files(train, test) => {
                let cifar = train[0].file_name().is_some_and(|name| name.to_string_lossy().contains("_batch"));
                let classes = if cifar { CIFAR10_LABELS.map(String::from).to_vec() } else { Vec::new() };
                // Drawn first and brought to size then: images that are left out cost next to nothing.
                let kept = fitted(&train[0], drawn(joined(train)?, limit)?, shape)?;
                let test = test.first().map(|first| fitted(first, joined(test)?, shape)).transpose()?;
                Ok((kept, test, classes))
            }
            Self::Folders(train, test) => {
                let read = read_folder(train, shape)?;
                let test = test.as_ref().map(|test| Ok((test, read_folder(test, shape)?))).transpose()?;
                if let Some((path, test)) = test.as_ref().filter(|(_, test)| test.classes != read.classes) {
                    let (one, two) = (read.classes.join(", "), test.classes.join(", "));
                    let message = format!("has the classes {two}, and the training images have {one}");
                    return Err(Error::file(path.display().to_string(), message));
                }
                Ok((drawn(read.images, limit)?, test.map(|(_, test)| test.images), read.classes))
            }
        }
    }
}

fn joined(files: &[PathBuf]) -> Result<Images> {
    let mut all = read(&files[0])?;
    for file in &files[1..] {
        all.append(read(file)?).map_err(about(file))?;
    }
    Ok(all)
}

fn fitted(file: &Path, images: Images, shape: [usize; 3]) -> Result<Images> {
    if images.shape() == shape { Ok(images) } else { images.fitted(shape).map_err(about(file)) }
}

/// Says of which file an error is.
fn about(file: &Path) -> impl Fn(Error) -> Error + use<> {
    let name = file.display().to_string();
    move |error| match error {
        Error::Data(message) => Error::file(name.clone(), message),
        other => other,
    }
}

/// The seed of the draw: not the run's, so that all runs with one limit train on the same images.
const DRAW: u64 = 0x006c_696d_6974;

fn drawn(images: Images, limit: Option<usize>) -> Result<Images> {
    let Some(limit) = limit.filter(|&limit| limit < images.len()) else { return Ok(images) };
    let mut sampler = Sampler::new(images.len(), Batch::Rows(limit), DRAW)?;
    sampler.begin_epoch(0);
    let mut rows = sampler.batch(0).to_vec();
    rows.sort_unstable();
    let pixels = rows.iter().flat_map(|&row| images.image(row as usize)).copied().collect();
    let labels = images.labels().map(|labels| rows.iter().map(|&row| labels[row as usize]).collect());
    Images::new(images.shape(), pixels, labels)
}
