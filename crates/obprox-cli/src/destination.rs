//! Output paths, checked before a run so that an hour of training is not lost to a misspelt directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use obprox::Error;

use crate::failure::Failure;

/// A path that a flag asks to be written, or `-` for standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl From<std::ffi::OsString> for Destination {
    fn from(text: std::ffi::OsString) -> Self {
        if text == "-" { Self::Stdout } else { Self::File(text.into()) }
    }
}

impl Destination {
    /// The file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Stdout => None,
        }
    }
}

/// Whether a file could be written at `path`; leaves nothing behind.
pub fn check_file(flag: &str, path: &Path) -> Result<(), Failure> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(refused(flag, path, "is a directory: give a file in it")),
        // A pipe or a device is written to straight.
        Ok(found) if !found.is_file() => return Ok(()),
        Ok(_) => {
            fs::OpenOptions::new().write(true).open(path).map_err(|error| system(flag, path, error))?;
        }
        Err(_) => {}
    }
    try_directory(parent(path)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => refused(flag, path, "its directory does not exist"),
        ErrorKind::NotADirectory => refused(flag, path, "its directory is a file"),
        _ => system(flag, path, error),
    })
}

/// Whether files could be written in `directory`, which need not exist yet; leaves nothing behind.
pub fn check_directory(flag: &str, directory: &Path) -> Result<(), Failure> {
    let mut ancestor = directory;
    loop {
        match fs::metadata(ancestor) {
            Ok(found) if found.is_dir() => {
                return try_directory(ancestor).map_err(|error| system(flag, directory, error));
            }
            Ok(_) => return Err(refused(flag, directory, "is a file, or lies below one: give a directory")),
            Err(error) if error.kind() == ErrorKind::NotFound => ancestor = parent(ancestor),
            Err(error) if error.kind() == ErrorKind::NotADirectory => ancestor = parent(ancestor),
            Err(error) => return Err(system(flag, directory, error)),
        }
    }
}

/// Refuses two flags that name one file: the second would destroy the first.
pub fn check_distinct(paths: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let named = paths.iter().filter_map(|(flag, path)| path.map(|path| (*flag, path)));
    let real: Vec<(&str, &Path, PathBuf)> = named.map(|(flag, path)| (flag, path, resolved(path))).collect();
    for (at, (second, path, place)) in real.iter().enumerate() {
        if let Some((first, ..)) = real[..at].iter().find(|(.., other)| other == place) {
            return Err(refused(second, path, &format!("is the same file as {first}, which it would overwrite")));
        }
    }
    Ok(())
}

fn resolved(path: &Path) -> PathBuf {
    let whole = fs::canonicalize(path);
    whole.unwrap_or_else(|_| match (fs::canonicalize(parent(path)), path.file_name()) {
        (Ok(directory), Some(name)) => directory.join(name),
        _ => path.to_owned(),
    })
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Output files are made beside their place and renamed there, so a file that can be made is the test that counts.
fn try_directory(directory: &Path) -> std::io::Result<()> {
    tempfile::tempfile_in(directory).map(drop)
}

fn refused(flag: &str, path: &Path, why: &str) -> Failure {
    Failure::input(format!("{flag} {}: {why}", path.display()))
}

fn system(flag: &str, path: &Path, error: std::io::Error) -> Failure {
    match Error::writing(path)(error) {
        error if error.is_input() => Failure::input(format!("{flag} {error}")),
        error => Failure::other(format!("{flag} {error}")),
    }
}
