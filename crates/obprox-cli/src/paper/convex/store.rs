//! The directory of results: a file a data set, a file a sweep.

use std::path::{Path, PathBuf};

use obprox::Error;
use obprox::output::write_whole;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::trial::Record;
use crate::failure::Failure;
use crate::paper::experiments::experiments;

/// Where results are kept.
pub struct Store {
    directory: PathBuf,
}

/// A sweep's results and the settings they are of.
#[derive(Serialize, Deserialize)]
struct Kept<T> {
    settings: serde_json::Value,
    results: T,
}

impl Store {
    /// A directory that need not exist: it is made when there is something to keep.
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Whether anything was kept.
    pub fn exists(&self) -> bool {
        self.directory.is_dir()
    }

    /// A file in the directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The file of a data set.
    pub fn of_set(&self, name: &str) -> PathBuf {
        self.path(&format!("set-{name}.json"))
    }

    /// The results of all data sets: the paper's in the order of its table, then the others by name.
    pub fn records(&self) -> Result<Vec<Record>, Failure> {
        let entries = std::fs::read_dir(&self.directory).map_err(Error::reading(&self.directory))?;
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("set-") && name.ends_with(".json")
        });
        let mut records = paths.iter().map(|path| Record::read(path)).collect::<Result<Vec<_>, _>>()?;
        let rank = |record: &Record| experiments().set.iter().position(|set| set.name == record.name);
        records.sort_by_key(|record| (rank(record).unwrap_or(usize::MAX), record.name.clone()));
        Ok(records)
    }

    /// Keeps the results of a data set.
    pub fn keep_record(&self, record: &Record) -> Result<(), Failure> {
        self.write(&self.of_set(&record.name), record)
    }

    /// The results of a sweep, where they are of these settings.
    pub fn kept<T: DeserializeOwned>(&self, name: &str, settings: &impl Serialize) -> Result<Option<T>, Failure> {
        let path = self.path(&format!("{name}.json"));
        let Ok(text) = std::fs::read(&path) else { return Ok(None) };
        let bad = |error| Failure::input(format!("{}: is no file of results ({error}): delete it", path.display()));
        let kept: Kept<serde_json::Value> = serde_json::from_slice(&text).map_err(bad)?;
        match kept.settings == value(settings) {
            true => serde_json::from_value(kept.results).map(Some).map_err(bad),
            false => Ok(None),
        }
    }

    /// Keeps the results of a sweep.
    pub fn save(&self, name: &str, settings: &impl Serialize, results: &impl Serialize) -> Result<(), Failure> {
        let kept = Kept { settings: value(settings), results: value(results) };
        self.write(&self.path(&format!("{name}.json")), &kept)
    }

    fn write(&self, path: &Path, results: &impl Serialize) -> Result<(), Failure> {
        std::fs::create_dir_all(&self.directory).map_err(Error::writing(&self.directory))?;
        let text = serde_json::to_string_pretty(results).expect("figures are plain data");
        Ok(write_whole(path, |out| writeln!(out, "{text}"))?)
    }

    /// Runs a sweep unless its results are there, and keeps them; false where Ctrl-C came first.
    pub fn keep<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        settings: &impl Serialize,
        run: impl FnOnce() -> Result<Option<T>, Failure>,
    ) -> Result<bool, Failure> {
        if self.kept::<T>(name, settings)?.is_some() {
            return Ok(true);
        }
        match run()? {
            Some(results) => self.save(name, settings, &results).map(|()| true),
            None => Ok(false),
        }
    }
}

fn value(data: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(data).expect("settings and figures are plain data")
}
