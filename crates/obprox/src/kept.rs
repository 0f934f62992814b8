//! Work in many parts, such as a path or folds, of which a broken-off run keeps those that are done. A part is a few fits
//! in a row; each is a file of the directory, and what comes after it depends on its last point alone. So a run that takes
//! up where another ended comes to the same bits.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::fit::{Fit, Status};
use crate::model::Model;
use crate::observe::EpochRecord;
use crate::output::{DirectoryLock, lock_directory, write_whole};
use crate::problem::{Point, Problem};
use crate::{Error, Result};

/// So many fits in a row are a part: the solver hands nothing but its point over the edge between two parts, which costs
/// a little, as does a file.
pub(crate) const PART: usize = 10;

/// The parts that are done, of one piece of work.
pub(crate) struct Kept {
    directory: PathBuf,
    _lock: DirectoryLock,
}

/// What is needed to have a fit again.
#[derive(Serialize, Deserialize)]
pub(crate) struct Done {
    weights: Vec<(u32, f64)>,
    intercept: Vec<f64>,
    status: Status,
    certificate: Certificate,
    trace: Vec<EpochRecord>,
    epochs: u64,
    iterations: u64,
    seconds: f64,
}

impl Done {
    pub fn of(fit: &Fit) -> Self {
        Self {
            weights: fit.point.nonzeros(),
            intercept: fit.point.intercept.clone(),
            status: fit.status,
            certificate: fit.certificate.clone(),
            trace: fit.trace.clone(),
            epochs: fit.epochs,
            iterations: fit.iterations,
            seconds: fit.seconds,
        }
    }

    /// The fit, of the problem it was of.
    pub fn fit(self, problem: &Problem) -> Fit {
        let mut point = Point::zero(problem);
        self.weights.iter().for_each(|&(at, weight)| point.weights[at as usize] = weight);
        point.intercept = self.intercept;
        Fit {
            model: Model::new(problem, &point, &self.certificate),
            point,
            status: self.status,
            certificate: self.certificate,
            trace: self.trace,
            epochs: self.epochs,
            resumed_epochs: self.epochs,
            iterations: self.iterations,
            seconds: self.seconds,
        }
    }
}

impl Kept {
    /// Takes a directory for work that `key` says all about: another key, another result. To resume is to take what is
    /// there, and refused where that is of other work; else it is removed.
    pub fn open(directory: &Path, resume: bool, key: &str) -> Result<Self> {
        let lock = lock_directory(directory)?;
        let kept = Self { directory: directory.to_owned(), _lock: lock };
        let manifest = kept.path("kept", 0);
        match std::fs::read_to_string(&manifest) {
            Ok(found) if resume && found == key => return Ok(kept),
            Ok(_) if resume => {
                let message = "is of other work, or of other settings: give the same, or another directory";
                return Err(Error::file(manifest.display().to_string(), message));
            }
            _ => {}
        }
        for entry in std::fs::read_dir(directory).map_err(Error::reading(directory))?.flatten() {
            if entry.path().extension().is_some_and(|ending| ending == ENDING) {
                std::fs::remove_file(entry.path()).map_err(Error::writing(&entry.path()))?;
            }
        }
        write_whole(&manifest, |out| out.write_all(key.as_bytes()))?;
        Ok(kept)
    }

    /// A part that is done. One that cannot be read is not: it is done again.
    pub fn part(&self, name: &str, number: usize, problem: &Problem) -> Option<Vec<Done>> {
        let text = std::fs::read_to_string(self.path(name, number)).ok()?;
        let (sum, json) = text.split_once('\n')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32fast::hash(json.as_bytes()) {
            return None;
        }
        let part: Vec<Done> = serde_json::from_str(json).ok()?;
        let (weights, outputs) = (problem.n_features() * problem.outputs(), problem.outputs());
        let fits = |done: &Done| {
            done.intercept.len() == outputs && done.weights.iter().all(|&(at, _)| (at as usize) < weights)
        };
        part.iter().all(fits).then_some(part)
    }

    /// Keeps a part.
    pub fn keep(&self, name: &str, number: usize, part: &[Done]) -> Result<()> {
        let json = serde_json::to_string(part).expect("fits are plain data");
        write_whole(&self.path(name, number), |out| write!(out, "{:08x}\n{json}", crc32fast::hash(json.as_bytes())))
    }

    fn path(&self, name: &str, number: usize) -> PathBuf {
        self.directory.join(format!("{name}-{number}.{ENDING}"))
    }
}

/// How the names of parts end.
const ENDING: &str = "obprox-part";
