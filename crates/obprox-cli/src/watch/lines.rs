//! A file of one JSON object a line, each written as soon as it is known.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use obprox::Error;
use serde::Serialize;

use crate::failure::Failure;

/// The file, or no more than the text of one. It is made when the run starts, so a run that is refused leaves none.
pub struct JsonLines {
    path: Option<PathBuf>,
    text: Vec<u8>,
    file: Option<File>,
    failure: Option<io::Error>,
}

impl JsonLines {
    /// A file to be.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path, text: Vec::new(), file: None, failure: None }
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        self.path.as_ref().map_or("this run".into(), |path| path.display().to_string())
    }

    /// Makes the file, empty.
    pub fn create(&mut self) {
        match self.path.as_ref().map(File::create) {
            Some(Ok(file)) => self.file = Some(file),
            Some(Err(error)) => self.failure = Some(error),
            None => {}
        }
    }

    /// A full disk must not end the training; it is told at the end. serde_json writes what is not finite as null.
    pub fn write(&mut self, event: &impl Serialize) {
        let begun = self.text.len();
        serde_json::to_writer(&mut self.text, event).expect("events are plain data");
        self.text.push(b'\n');
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(&self.text[begun..])
        {
            self.failure.get_or_insert(error);
            self.file = None;
        }
    }

    /// The text; what went wrong on the way is told here.
    pub fn finish(self) -> Result<Vec<u8>, Failure> {
        match (self.failure, &self.path) {
            (Some(error), Some(path)) => Err(Error::writing(path)(error).into()),
            _ => Ok(self.text),
        }
    }
}
