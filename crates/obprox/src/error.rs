//! What can go wrong, said so that the reader knows what to do about it.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::memory::shown;

/// Every failure of the library. A limit reached or a diverged run is not one of them: those are a
/// [`Status`](crate::Status) of a run that did take place.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text of a file is not what its format asks for.
    Parse {
        /// The file's name as the caller gave it.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// The byte within the line, counted from 1.
        column: u64,
        /// What is wrong and what to do about it.
        message: String,
    },
    /// A file as a whole is not usable: empty, truncated, of an unknown format, one class only.
    File {
        /// The file's name as the caller gave it.
        file: String,
        /// What is wrong and what to do about it.
        message: String,
    },
    /// The operating system refused to open, read or write a file.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done: "cannot read", "cannot write".
        action: &'static str,
        /// The system's own reason.
        source: std::io::Error,
    },
    /// A parameter is out of its range, or does not go with another one.
    Parameter {
        /// The parameter's name, as the user knows it.
        name: &'static str,
        /// What is wrong and what to do about it.
        message: String,
    },
    /// A value among the features is infinite or not a number.
    NotFinite {
        /// The row, counted from 1.
        row: usize,
        /// The column, counted from 1.
        column: usize,
        /// The value.
        value: f64,
    },
    /// Something needs more memory than there is.
    Memory {
        /// What needs it.
        what: String,
        /// Bytes it takes.
        needed: u64,
        /// Bytes that can be had.
        free: u64,
    },
    /// Data that parsed but cannot be used for what is asked of it.
    Data(String),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Parse { file, line, column, message } => write!(out, "{file}:{line}:{column}: {message}"),
            Self::File { file, message } => write!(out, "{file}: {message}"),
            Self::Io { path, action, source } => write!(out, "{}: {action}: {source}", path.display()),
            Self::Parameter { name, message } => write!(out, "{name}: {message}"),
            Self::NotFinite { row, column, value } => {
                write!(out, "row {row}, column {column}: {value} is not a finite number")
            }
            Self::Memory { what, needed, free } => write!(
                out,
                "{what}: takes {} of memory, and {} are free: free some, or take a larger machine",
                shown(*needed),
                shown(*free)
            ),
            Self::Data(message) => out.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A parameter error.
    pub fn parameter(name: &'static str, message: impl Into<String>) -> Self {
        Self::Parameter { name, message: message.into() }
    }

    /// An error about a whole file.
    pub fn file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self::File { file: file.into(), message: message.into() }
    }

    /// For `map_err`: the system refused to read `path`.
    pub fn reading(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), action: "cannot read", source }
    }

    /// For `map_err`: the system refused to write `path`.
    pub fn writing(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), action: "cannot write", source }
    }

    /// An error about data, which did not know where the data came from, becomes one about the file.
    pub fn of_file(self, path: &Path) -> Self {
        let file = path.display().to_string();
        match self {
            Self::Data(message) => Self::File { file, message },
            Self::Memory { what, needed, free } => Self::Memory { what: format!("{file}: {what}"), needed, free },
            Self::Parameter { name, message } => Self::File { file, message: format!("{name}: {message}") },
            other => other,
        }
    }

    /// True where the user can mend it by giving something else (exit status 2 of the command); false where the
    /// machine failed half-way (a full disk, a failing device).
    pub fn is_input(&self) -> bool {
        use std::io::ErrorKind::*;
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                NotFound
                    | PermissionDenied
                    | IsADirectory
                    | NotADirectory
                    | AlreadyExists
                    | InvalidInput
                    | InvalidData
                    | InvalidFilename
                    | ReadOnlyFilesystem
                    | UnexpectedEof
            ),
            Self::Memory { .. } => false,
            _ => true,
        }
    }
}
