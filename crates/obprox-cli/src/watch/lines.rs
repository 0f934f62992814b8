//! A file of one JSON object a line, each written as soon as it is known, and the runs that a report reads out of it.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use obprox::Error;
use obprox_report::log::event::Event;
use obprox_report::log::{Run, read};

use crate::failure::Failure;
use crate::losses::Losses;

/// The file, or no more than the text of one. It is made with the first line, so a run that is refused leaves none.
pub struct JsonLines {
    path: Option<PathBuf>,
    text: Vec<u8>,
    file: Option<File>,
    losses: Losses,
}

impl JsonLines {
    /// A file to be.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self { path, text: Vec::new(), file: None, losses: Losses::default() }
    }

    /// A full disk must not end the training. serde_json writes what is not finite as null.
    pub fn write(&mut self, event: &Event) {
        if let (Some(path), true) = (&self.path, self.text.is_empty()) {
            let file = File::create(path).map_err(|error| Error::writing(path)(error).into());
            self.file = self.losses.without(file);
        }
        let begun = self.text.len();
        serde_json::to_writer(&mut self.text, event).expect("events are plain data");
        self.text.push(b'\n');
        if let (Some(file), Some(path)) = (&mut self.file, &self.path) {
            let outcome = file.write_all(&self.text[begun..]).map_err(|error| Error::writing(path)(error).into());
            if self.losses.without(outcome).is_none() {
                self.file = None;
            }
        }
    }

    /// The runs so far.
    pub fn so_far(&self) -> Result<Vec<Run>, Failure> {
        Ok(read(&self.text, "this run")?)
    }

    /// The runs as a report reads them, and a line that says where the log is, where it is whole.
    pub fn finish(self, losses: &mut Losses) -> Result<(Vec<Run>, Option<String>), Failure> {
        let name = self.path.as_ref().map(|path| path.display().to_string());
        let runs = read(&self.text, name.as_deref().unwrap_or("this run"))?;
        let written = name.filter(|_| self.file.is_some()).map(|name| format!("log written to {name}"));
        losses.add(self.losses);
        Ok((runs, written))
    }
}
