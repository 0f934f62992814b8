//! Data that does not fit in memory: `--memory` and `--cache`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use obprox::data::{ReadOptions, ShardedData, Sharding};

use super::{DataFlags, TableFlags};
use crate::failure::Failure;
use crate::input::shown;
use crate::{show, watch};

/// Where shards are kept, beside the first file, where nothing else is said.
const CACHE: &str = ".obprox";

/// The flags of data that is read shard by shard.
#[derive(Args, Debug)]
#[command(next_help_heading = "Data larger than memory")]
pub struct MemoryFlags {
    /// Read the data shard by shard, with this much memory for rows (500M, 2G); then DATA may be several
    /// files, patterns such as 'part-*.svm.zst', or directories
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,

    /// Where the shards are kept that the files are parsed into, for the next time [default: .obprox beside them]
    #[arg(long, value_name = "DIR", requires = "memory")]
    cache: Option<PathBuf>,
}

impl MemoryFlags {
    /// The one file that is read into memory, or all of those that are not; what is not there for these is refused.
    pub fn check(&self, data: &[PathBuf], reading: &DataFlags, table: &TableFlags) -> Result<(), Failure> {
        if self.memory.is_none() && data.len() > 1 {
            return Err(Failure::input("DATA: several files are read as one with --memory, such as --memory 2G"));
        }
        if self.memory.is_some() && data.iter().any(|path| path.as_os_str() == "-") {
            return Err(Failure::input("-: standard input is read once, and shards are made of files"));
        }
        let refused = [
            ("--names", reading.names.is_some()),
            ("--categorical, --missing, --keep and --drop", !table.encoding().is_plain()),
        ];
        match refused.iter().find(|(_, given)| *given && self.memory.is_some()) {
            Some((flag, _)) => Err(Failure::input(format!("{flag}: cannot be used with --memory"))),
            None => Ok(()),
        }
    }

    /// The shards of the data, where they are asked for.
    pub fn shards(
        &self,
        data: &[PathBuf],
        options: &ReadOptions,
        quiet: bool,
    ) -> Result<Option<Arc<ShardedData>>, Failure> {
        let Some(memory) = self.memory else { return Ok(None) };
        let sources = sources(data)?;
        let beside = sources[0].parent().unwrap_or(Path::new("")).join(CACHE);
        let sharding = Sharding { cache: self.cache.clone().unwrap_or(beside), memory, rows: None };
        let waiting = watch::waiting(format!("reading {}", named(data)), quiet);
        let shards = ShardedData::open(&sources, options, &sharding, &mut |rows, shards| {
            waiting.say(format!("parsing {}: {rows} rows in {}", named(data), show::plural(shards as u64, "shard")));
        })?;
        drop(waiting);
        let (count, place) = (show::plural(shards.n_shards() as u64, "shard"), shards.directory().display());
        show::note(&format!("{count} of {:.0} MB in {place}", shards.bytes() as f64 / 1e6), quiet);
        Ok(Some(Arc::new(shards)))
    }
}

/// What data is called in messages.
pub fn named(data: &[PathBuf]) -> String {
    match data {
        [one] => shown(one),
        [first, rest @ ..] => format!("{} and {} more", shown(first), rest.len()),
        [] => String::new(),
    }
}

/// The files that are meant: those of directories and patterns in the order of their names.
pub fn sources(data: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut sources = Vec::new();
    for path in data {
        let pattern = path.to_str().filter(|text| text.contains(['*', '?', '[']) && !path.exists());
        if path.is_dir() {
            sources.extend(files_in(path)?);
        } else if let Some(pattern) = pattern {
            let found = glob::glob(pattern).map_err(|error| Failure::input(format!("{pattern}: {error}")))?;
            sources.extend(found.filter_map(Result::ok).filter(|path| path.is_file()));
        } else {
            sources.push(path.clone());
        }
    }
    match sources.is_empty() {
        true => Err(Failure::input(format!("{}: there is no such file", named(data)))),
        false => Ok(sources),
    }
}

fn files_in(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(directory).map_err(obprox::Error::reading(directory))?;
    let is_hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file() && !is_hidden(path));
    files.sort();
    Ok(files)
}

/// A size in bytes: a number, or with its unit.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.to_ascii_uppercase().trim_end_matches('B') {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return Err("must be a size such as 500M or 2G".into()),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok((number * unit) as u64),
        _ => Err("must be a size such as 500M or 2G".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(
            ["500M", "2G", "1.5gb", "4096", "10k"].map(size),
            [Ok(500_000_000), Ok(2_000_000_000), Ok(1_500_000_000), Ok(4096), Ok(10_000)]
        );
        assert!(["", "M", "-1G", "0", "5X", "nan"].iter().all(|text| size(text).is_err()));
    }

    #[test]
    fn directories_and_patterns_are_their_files_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["b.svm", "a.svm", "c.csv", ".hidden"] {
            fs::write(path(name), "1 1:1\n").unwrap();
        }
        assert_eq!(sources(&[directory.path().into()]).unwrap(), [path("a.svm"), path("b.svm"), path("c.csv")]);
        assert_eq!(sources(&[path("*.svm")]).unwrap(), [path("a.svm"), path("b.svm")]);
        assert_eq!(sources(&[path("c.csv"), path("?.svm")]).unwrap().len(), 3);
        assert!(sources(&[path("*.xz")]).is_err());
    }
}
