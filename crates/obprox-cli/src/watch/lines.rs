//! A file of one JSON object a line, each written as soon as it is known.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use obprox::Error;
use serde::Serialize;

use crate::failure::Failure;

/// The file. It is made when the run starts, so a run that is refused leaves none.
pub struct JsonLines {
    path: PathBuf,
    file: Option<File>,
    failure: Option<io::Error>,
}

impl JsonLines {
    /// A file to be.
    pub fn new(path: PathBuf) -> Self {
        Self { path, file: None, failure: None }
    }

    /// Makes the file, empty.
    pub fn create(&mut self) {
        match File::create(&self.path) {
            Ok(file) => self.file = Some(file),
            Err(error) => self.failure = Some(error),
        }
    }

    /// A full disk must not end the training; it is told at the end. serde_json writes what is not finite as null.
    pub fn write(&mut self, event: &impl Serialize) {
        let Some(file) = &mut self.file else { return };
        let mut line = serde_json::to_vec(event).expect("events are plain data");
        line.push(b'\n');
        if let Err(error) = file.write_all(&line) {
            self.failure.get_or_insert(error);
            self.file = None;
        }
    }

    /// Tells what went wrong on the way.
    pub fn finish(self) -> Result<(), Failure> {
        match self.failure {
            Some(error) => Err(Error::writing(&self.path)(error).into()),
            None => Ok(()),
        }
    }
}
