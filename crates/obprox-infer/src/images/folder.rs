//! A folder of class-named folders of pictures.

use std::fs;
use std::path::{Path, PathBuf};

use obprox::data::read_bytes;
use obprox::{Error, Result};
use rayon::prelude::*;

use super::{Images, MOST_BYTES, picture};

/// Labelled pictures, all brought to one size, and the names of their classes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder {
    /// The pictures, class by class in the order of names.
    pub images: Images,
    /// The names of the folders; a label is an index into them.
    pub classes: Vec<String>,
}

/// Reads the PNG and JPEG pictures of every folder in a folder, brought to a shape of channels, height and width.
/// Names that start with a dot are passed over; so is what does not end in .png, .jpg or .jpeg.
pub fn read_folder(path: impl AsRef<Path>, shape: [usize; 3]) -> Result<Folder> {
    let path = path.as_ref();
    let name = path.display().to_string();
    let mut classes = Vec::new();
    let mut files = Vec::new();
    for folder in entries(path)?.into_iter().filter(|entry| entry.is_dir()) {
        let label = classes.len() as u32;
        classes.push(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
        files.extend(entries(&folder)?.into_iter().filter(|entry| ends_like_picture(entry)).map(|file| (file, label)));
    }
    if classes.is_empty() {
        return Err(Error::file(name, "has no folders in it: give a folder with one folder of pictures a class"));
    }
    if files.is_empty() {
        return Err(Error::file(name, "has no .png, .jpg or .jpeg files in its folders"));
    }
    let images: Result<Vec<Images>> = files.par_iter().map(|(file, _)| read_picture(file, shape)).collect();
    let pixels = images?.iter().flat_map(|image| image.pixels()).copied().collect();
    let labels = files.iter().map(|&(_, label)| label).collect();
    Ok(Folder { images: Images::new(shape, pixels, Some(labels))?, classes })
}

fn read_picture(path: &Path, shape: [usize; 3]) -> Result<Images> {
    let picture = picture::decode(&path.display().to_string(), &read_bytes(path, MOST_BYTES)?)?;
    picture.fitted(shape).map_err(|error| error.of_file(path))
}

/// What is in a folder, in the order of names, without hidden ones.
fn entries(path: &Path) -> Result<Vec<PathBuf>> {
    let listing = fs::read_dir(path).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
    let entries = listing.map_err(Error::reading(path))?;
    let mut paths: Vec<PathBuf> = entries
        .iter()
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(fs::DirEntry::path)
        .collect();
    paths.sort();
    Ok(paths)
}

fn ends_like_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    matches!(ending.as_deref(), Some("png" | "jpg" | "jpeg")) && path.is_file()
}
