//! What a run could not write. Hours of training are worth more than any one of its records: what cannot be written is
//! said once, the rest goes on, and the exit status is 1. A model whose place is lost goes to another one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use obprox::output::write_whole;
use obprox::{Control, Error, Observer};

use crate::failure::Failure;
use crate::show;

/// What was lost so far.
#[derive(Default)]
pub struct Losses {
    said: BTreeSet<String>,
}

impl Losses {
    /// Goes on without what could not be written.
    pub fn without<T>(&mut self, outcome: Result<T, Failure>) -> Option<T> {
        match outcome {
            Ok(done) => return Some(done),
            Err(Failure::Said { message, .. }) => self.say(&format!("{message}: the run goes on without it")),
            Err(_) => {}
        }
        None
    }

    /// Puts a result that could not be written where it should be into a directory of its own elsewhere; a line that says
    /// where, or the failure where there is no such place.
    pub fn rescue(
        &mut self,
        place: &Path,
        failure: Failure,
        write: impl Fn(&Path) -> Result<(), Failure>,
    ) -> Result<Option<String>, Failure> {
        let Failure::Said { message, .. } = &failure else { return Err(failure) };
        let name = place.file_name().unwrap_or("model".as_ref());
        match places().find_map(|directory| put(&directory, name.as_ref(), &write)) {
            Some(kept) => {
                let kept = kept.display();
                self.say(&format!("{message}: it was written to {kept} instead"));
                Ok(Some(format!("{} written to {kept}", name.display())))
            }
            None => Err(Failure::other(message.clone())),
        }
    }

    /// Writes a result whole, or elsewhere where its place is lost; a line that says where.
    pub fn write(
        &mut self,
        what: &str,
        place: &Path,
        write: impl Fn(&Path) -> Result<(), Failure>,
    ) -> Result<Option<String>, Failure> {
        match write(place) {
            Ok(()) => Ok(Some(format!("{what} written to {}", place.display()))),
            Err(failure) => self.rescue(place, failure, write),
        }
    }

    /// The end of a command: what was lost has been said, and only the status is left.
    pub fn end(self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        match outcome {
            Ok(()) if !self.is_empty() => Err(Failure::Told),
            other => other,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    /// What someone else has lost and said.
    pub fn add(&mut self, other: Self) {
        self.said.extend(other.said);
    }

    fn say(&mut self, message: &str) {
        if self.said.insert(message.to_owned()) {
            show::say(&format!("error: {message}"));
        }
    }
}

/// For [`Losses::write`]: a text.
pub fn text(text: &str) -> impl Fn(&Path) -> Result<(), Failure> + '_ {
    |path| Ok(write_whole(path, |out| out.write_all(text.as_bytes()))?)
}

/// Who hears that the state of a run could not be saved: it is said the first time, and the run goes on. Folds tell of it
/// from several threads.
#[derive(Default)]
pub struct Unsaved(Mutex<Losses>);

impl Unsaved {
    pub fn hear(&self, error: &Error) -> Control {
        let mut losses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if losses.is_empty() {
            losses.without::<()>(Err(Failure::other(format!("--checkpoint: {error}"))));
        }
        Control::Continue
    }

    /// What was lost; who heard of it has said it.
    pub fn losses(&self) -> Losses {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Unsaved {
    fn unsaved(&mut self, error: &Error) -> Control {
        self.hear(error)
    }
}

/// Where a result may go whose own place is lost.
fn places() -> impl Iterator<Item = PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    [std::env::temp_dir(), "/dev/shm".into(), ".".into()].into_iter().chain(home)
}

/// A directory that no one else can have made before: others may write to a temporary directory too.
fn put(directory: &Path, name: &Path, write: impl Fn(&Path) -> Result<(), Failure>) -> Option<PathBuf> {
    let directory = tempfile::Builder::new().prefix("obprox-kept-").tempdir_in(directory).ok()?;
    let path = directory.path().join(name);
    write(&path).ok()?;
    let _ = directory.keep();
    Some(path)
}
