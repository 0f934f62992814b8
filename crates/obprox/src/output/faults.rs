//! Faults on purpose, in tests: the k-th step on the way to a file fails, finds the disk full, is torn in the middle, or is
//! the last that a killed process does. They hold for the thread that asks for them, so that tests do not hurt each
//! other.

use std::cell::Cell;
use std::io;

use super::Step;

/// What happens at the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails, once.
    Fails,
    /// The disk is full, and stays so.
    Fills,
    /// Half of the bytes are written, then the disk is full.
    Tears,
    /// The process is killed: nothing more is done, and nothing is tidied up.
    Kills,
}

pub(crate) const FAULTS: [Fault; 4] = [Fault::Fails, Fault::Fills, Fault::Tears, Fault::Kills];

#[derive(Clone, Copy)]
struct Plan {
    fault: Fault,
    /// Steps that are still done.
    left: usize,
    struck: bool,
}

thread_local! {
    static PLAN: Cell<Option<Plan>> = const { Cell::new(None) };
}

/// Does some work in which the step after `left` others meets a fault; its outcome, and whether there was such a step.
pub(crate) fn with_fault<T>(fault: Fault, left: usize, work: impl FnOnce() -> T) -> (T, bool) {
    PLAN.set(Some(Plan { fault, left, struck: false }));
    let outcome = work();
    (outcome, PLAN.take().is_some_and(|plan| plan.struck))
}

/// Whether the fault meets this step: counts it.
fn meets() -> Option<Fault> {
    let mut plan = PLAN.get()?;
    let now = plan.left == 0 && (!plan.struck || plan.fault != Fault::Fails);
    if plan.left == 0 {
        plan.struck = true;
    }
    plan.left = plan.left.saturating_sub(1);
    PLAN.set(Some(plan));
    now.then_some(plan.fault)
}

/// Counts a step that writes nothing, and fails if its turn has come. A full disk still syncs and renames.
pub(super) fn strike(step: Step) -> io::Result<()> {
    match meets() {
        None => Ok(()),
        Some(Fault::Fills | Fault::Tears) if matches!(step, Step::Sync | Step::Rename) => Ok(()),
        Some(Fault::Fills | Fault::Tears) => Err(full()),
        Some(Fault::Fails | Fault::Kills) => Err(io::Error::other("a fault on purpose")),
    }
}

/// How much of a write is done before the disk is full, where it is to be torn. Counts no step where it is not.
pub(super) fn tear(len: usize) -> Option<usize> {
    let plan = PLAN.get()?;
    (plan.fault == Fault::Tears && plan.left == 0 && !plan.struck).then(|| {
        PLAN.set(Some(Plan { struck: true, ..plan }));
        len / 2
    })
}

/// Whether the process counts as killed.
pub(super) fn killed() -> bool {
    PLAN.get().is_some_and(|plan| plan.struck && plan.fault == Fault::Kills)
}

/// The system's error for a full disk.
pub(super) fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::data::{ReadOptions, Synth, read, write_cache};
    use crate::loss::LossKind;
    use crate::output::lock_directory;
    use crate::{MethodKind, Problem, Run, Settings, Terms};

    fn problem() -> Problem {
        let data = Synth { rows: 60, cols: 30, support: 5, per_row: 8.0, ..Synth::default() }.generate().unwrap();
        Problem::new(data.dataset, LossKind::Logistic.build(2), &Terms::default()).unwrap()
    }

    fn names(directory: &Path) -> Vec<String> {
        let entry = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        fs::read_dir(directory).unwrap().map(entry).collect()
    }

    /// Writes over an old file with a fault at every step in turn: the old file stays whole, or the new one is.
    fn every_step_of(write: impl Fn(&Path) -> crate::Result<()>) {
        for fault in FAULTS {
            for left in 0.. {
                let directory = tempfile::tempdir().unwrap();
                let path = directory.path().join("file");
                fs::write(&path, "old").unwrap();
                let (outcome, struck) = with_fault(fault, left, || write(&path));
                if !struck {
                    outcome.unwrap();
                    assert!(left >= 3, "{fault:?}: a file takes more than {left} steps");
                    break;
                }
                match &outcome {
                    // A disk that is full after the last byte does no harm.
                    Ok(()) => assert!(matches!(fault, Fault::Fills | Fault::Tears)),
                    Err(error) => {
                        assert!(!error.is_input(), "{fault:?} at {left}: {error}");
                        assert_eq!(fs::read(&path).unwrap(), b"old", "{fault:?} at {left}");
                    }
                }
                if fault != Fault::Kills {
                    assert_eq!(names(directory.path()), ["file"], "{fault:?} at {left}");
                }
                // The next run works, and what a killed one left is gone when it takes the directory.
                write(&path).unwrap();
                assert_ne!(fs::read(&path).unwrap(), b"old");
                lock_directory(directory.path()).unwrap();
                assert_eq!(names(directory.path()), ["file"], "{fault:?} at {left}");
            }
        }
    }

    #[test]
    fn a_model_is_the_old_one_or_the_new_one() {
        let fit = problem().fit().unwrap();
        every_step_of(|path| fit.model.save(path));
    }

    #[test]
    fn a_cache_is_the_old_one_or_the_new_one() {
        let data = Synth { rows: 40_000, cols: 30, ..Synth::default() }.generate().unwrap().dataset;
        every_step_of(|path| write_cache(&data, path));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.obx");
        write_cache(&data, &path).unwrap();
        assert_eq!(read(&path, &ReadOptions::default()).unwrap().targets, data.targets);
    }

    /// A run whose checkpoints meet a fault at every step in turn, and is then resumed, ends at the same bits as one that
    /// was left alone.
    #[test]
    fn a_run_goes_on_from_the_last_whole_checkpoint() {
        let problem = problem();
        for method in MethodKind::PAPER {
            let settings = Settings { epochs: 3, tolerance: 0.0, ..Settings::with_method(method) };
            let whole = Run::new(&problem, settings.clone()).fit().unwrap();
            for fault in FAULTS {
                for left in 0.. {
                    let directory = tempfile::tempdir().unwrap();
                    let run = || Run::new(&problem, settings.clone()).checkpoint(directory.path(), true).fit();
                    let (outcome, struck) = with_fault(fault, left, run);
                    if let Err(error) = &outcome {
                        assert!(struck && !error.is_input(), "{method:?} {fault:?} at {left}: {error}");
                    }
                    let resumed = run().unwrap();
                    assert_eq!(resumed.point, whole.point, "{method:?} {fault:?} at {left}");
                    assert_eq!(names(directory.path()), ["checkpoint.obprox"], "{method:?} {fault:?} at {left}");
                    if !struck {
                        break;
                    }
                }
            }
        }
    }
}
