//! The data sets at hand: which files of a directory are sets of the paper's table, and how much of each is used.

use std::path::{Path, PathBuf};

use obprox::data::{Builder, Dataset, ReadOptions, read};
use obprox::loss::LossKind;
use obprox::{Problem, Terms};

use crate::failure::Failure;
use crate::input::shown;
use crate::paper::experiments::{Set, experiments};
use crate::watch;

/// A data set to run on.
pub struct Found {
    /// As in the paper's table, or what the file is called.
    pub name: String,
    pub path: PathBuf,
    /// Its line of the paper's table, where it has one.
    pub set: Option<&'static Set>,
}

/// The sets of the paper's table that a directory has, in the table's order, and the names of those it has not.
pub fn in_directory(directory: &Path) -> Result<(Vec<Found>, Vec<&'static str>), Failure> {
    let refused = |why: String| Failure::input(format!("--data {}: {why}", directory.display()));
    let entries = std::fs::read_dir(directory).map_err(|error| refused(format!("cannot read it: {error}")))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // Caches first: they open at once.
    files.sort_by_key(|path| (path.extension().is_none_or(|ending| ending != "obx"), path.clone()));
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for set in &experiments().set {
        match files.iter().find(|path| is_file_of(set, &stem(path)) && path.is_file()) {
            Some(path) => found.push(Found { name: set.name.clone(), path: path.clone(), set: Some(set) }),
            None => missing.push(set.name.as_str()),
        }
    }
    Ok((found, missing))
}

/// A file that is no set of the paper's, named as what it is.
pub fn beside(path: &Path) -> Result<Found, Failure> {
    let name = stem(path);
    if let Some(set) = experiments().set.iter().find(|set| is_file_of(set, &name)) {
        let (file, name) = (path.display(), &set.name);
        return Err(Failure::input(format!(
            "--also {file}: has the name of the paper's {name}; the paper's own sets are taken from --data, and another \
             file needs another name"
        )));
    }
    match std::fs::File::open(path) {
        Ok(_) => Ok(Found { name, path: path.to_owned(), set: None }),
        Err(error) => Err(Failure::input(format!("--also {}: cannot read: {error}", path.display()))),
    }
}

fn is_file_of(set: &Set, stem: &str) -> bool {
    stem == set.name || stem == set.file || Some(stem) == set.file.rsplit_once('.').map(|(stem, _)| stem)
}

/// The name without what tells format and compression.
fn stem(path: &Path) -> String {
    let mut name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for endings in [&[".xz", ".bz2", ".gz", ".zst"][..], &[".svm", ".libsvm", ".txt", ".csv", ".tsv", ".obx"]] {
        if let Some(ending) = endings.iter().find(|ending| name.ends_with(**ending)) {
            name.truncate(name.len() - ending.len());
        }
    }
    name
}

/// A share of a set's rows, as it was given: `1/20` or `0.05`.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The set it is for; none stands for all.
    pub set: Option<String>,
    pub words: String,
    value: f64,
}

/// `SHARE` or `NAME=SHARE`.
pub fn parse_share(text: &str) -> Result<Share, String> {
    let (set, words) = text.rsplit_once('=').map_or((None, text), |(set, words)| (Some(set.to_owned()), words));
    let value = match words.split_once('/') {
        Some((part, whole)) => {
            part.parse::<f64>().ok().zip(whole.parse::<f64>().ok()).map(|(part, whole)| part / whole)
        }
        None => words.parse().ok(),
    };
    match value.filter(|value| *value > 0.0 && *value <= 1.0) {
        Some(value) => Ok(Share { set, words: words.to_owned(), value }),
        None => Err("must be a share such as 1/20 or 0.05, or NAME=SHARE for one set".into()),
    }
}

impl Found {
    /// The share asked for this set: its own, or that of all.
    pub fn share<'a>(&self, shares: &'a [Share]) -> Option<&'a Share> {
        let named = shares.iter().rfind(|share| share.set.as_deref() == Some(&self.name));
        named.or(shares.iter().rfind(|share| share.set.is_none())).filter(|share| share.value < 1.0)
    }

    /// Reads the set and states the paper's problem on it, λ = 1/N; with it, the rows that the file has.
    pub fn problem(&self, share: Option<&Share>, quiet: bool) -> Result<(Problem, usize), Failure> {
        let _waiting = watch::waiting(format!("reading {}", shown(&self.path)), quiet);
        let options = ReadOptions { n_cols: self.set.map(|set| set.columns), ..ReadOptions::default() };
        let mut data = read(&self.path, &options)?;
        let rows = data.targets.len();
        if let Some(share) = share {
            data = evenly(&data, share.value);
        }
        let problem = Problem::new(data, LossKind::Logistic.build(2), &Terms::default());
        Ok((problem.map_err(Failure::about(&shown(&self.path)))?, rows))
    }

    /// The size of the file.
    pub fn bytes(&self) -> u64 {
        std::fs::metadata(&self.path).map_or(0, |found| found.len())
    }
}

/// A share of the rows, evenly spaced: files are often in the order of time, or of the classes.
fn evenly(data: &Dataset, share: f64) -> Dataset {
    let before = |row: usize| (row as f64 * share).floor();
    let rows: Vec<usize> = (0..data.targets.len()).filter(|&row| before(row + 1) > before(row)).collect();
    let mut builder = Builder::default();
    for &row in &rows {
        data.matrix.for_each(row, |column, value| builder.push(column as u32, value));
        builder.end_row();
    }
    let targets = rows.iter().map(|&row| data.targets[row]).collect();
    Dataset::new(builder.finish(Some(data.matrix.n_cols())), targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_files() {
        let stem = |name: &str| stem(Path::new(name));
        assert_eq!(stem("data/a9a.xz"), "a9a");
        assert_eq!(stem("a9a.t.xz"), "a9a.t");
        assert_eq!(stem("higgs_subset.csv.xz"), "higgs_subset");
        assert_eq!(stem("kdda.obx"), "kdda");
        let named =
            |file: &str| experiments().set.iter().find(|set| is_file_of(set, &stem(file))).map(|set| &set.name[..]);
        assert_eq!(named("rcv1_train.binary.bz2"), Some("rcv1"));
        assert_eq!(named("rcv1_train.binary"), Some("rcv1"));
        assert_eq!(named("HIGGS.xz"), Some("higgs"));
        assert_eq!(named("real-sim"), Some("real-sim"));
        assert_eq!([named("a9a.t"), named("higgs_subset.csv"), named("news20.t.bz2")], [None; 3]);
        let said = |path: &str| format!("{:?}", beside(Path::new(path)).err());
        assert!(said("dir/a9a.xz").contains("the paper's a9a") && said("dir/a9a_short.xz").contains("cannot read"));
    }

    #[test]
    fn shares_are_of_one_set_or_of_all() {
        let shares: Vec<Share> = ["1/20", "kdda=0.5", "w8a=1"].iter().map(|text| parse_share(text).unwrap()).collect();
        let of = |name: &str| {
            let found = Found { name: name.into(), path: PathBuf::new(), set: None };
            found.share(&shares).map(|share| share.words.clone())
        };
        assert_eq!([of("a9a"), of("kdda"), of("w8a")], [Some("1/20".into()), Some("0.5".into()), None]);
        assert!(["0", "-1", "2", "1/0", "x", "a=", "nan", ""].iter().all(|text| parse_share(text).is_err()));
    }

    #[test]
    fn a_share_is_evenly_spaced() {
        let rows: Vec<Vec<(u32, f64)>> = (0..100).map(|row| vec![(0, f64::from(row) + 1.0)]).collect();
        let data = Dataset::new(obprox::data::Matrix::from_rows(3, &rows), (0..100).map(f64::from).collect());
        let tenth = evenly(&data, 0.1);
        assert_eq!(tenth.targets[..], (0..10).map(|row| f64::from(10 * row + 9)).collect::<Vec<_>>());
        assert_eq!((tenth.matrix.n_rows(), tenth.matrix.n_cols(), tenth.matrix.nnz()), (10, 3, 10));
        tenth.matrix.for_each(4, |_, value| assert_eq!(value, 50.0));
        assert_eq!(evenly(&data, 0.33).targets.len(), 33);
    }
}
