//! Files that appear whole or not at all.
//!
//! A file is written into a temporary one beside it, which then takes its place. Whoever writes holds a lock on the
//! temporary file; one that no one holds was left by a process that was killed, and the next that writes in the directory
//! removes it.

#[cfg(test)]
pub(crate) mod faults;

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::{Error, Result};

/// How the names of temporary files begin.
const PREFIX: &str = ".obprox-";

/// Writes a file so that it appears whole or not at all: into a temporary file beside it, which then takes its place.
/// A pipe, a terminal or a device such as `/dev/stdout` is written to straight.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    write_whole_checked(path, write, |_| Ok(()))
}

/// The same; the file only gets its name if `check` finds nothing wrong with it.
pub(crate) fn write_whole_checked(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    check: impl FnOnce(&File) -> io::Result<()>,
) -> Result<()> {
    let outcome = match fs::metadata(path) {
        Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        }),
        found => replace(path, found.ok(), write, check),
    };
    outcome.map_err(Error::writing(path))
}

fn replace(
    path: &Path,
    existing: Option<fs::Metadata>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    check: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    // A link stays a link: what it points at is replaced.
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tidy_once(directory);
    let temporary = temporary_in(directory)?;
    if let Some(existing) = existing {
        temporary.as_file().set_permissions(existing.permissions())?;
    }
    let outcome = fill(temporary.as_file(), write, check);
    #[cfg(test)]
    if outcome.is_err() && faults::killed() {
        // Who is killed removes nothing.
        let _ = temporary.keep();
        return outcome;
    }
    outcome?;
    step(Step::Rename)?;
    temporary.persist(&target).map_err(|error| error.error)?;
    // The new name must survive a power cut too; not every system can sync a directory, and the file itself is safe.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
}

fn fill(
    file: &File,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    check: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, Stepping(file));
    write(&mut out)?;
    out.flush()?;
    drop(out);
    step(Step::Sync)?;
    file.sync_all()?;
    check(file)
}

/// A new file that is locked.
fn temporary_in(directory: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    // Temporary files are private by default; this one is to become an ordinary file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    loop {
        step(Step::Create)?;
        let file = builder.tempfile_in(directory)?;
        // Between these two lines someone who tidies up may have taken it for a file that was left.
        match file.as_file().try_lock() {
            Err(TryLockError::WouldBlock) => {}
            // A file system without locks has no one who tidies up either.
            Err(TryLockError::Error(_)) => return Ok(file),
            Ok(()) if file.path().exists() => return Ok(file),
            Ok(()) => {}
        }
    }
}

/// Removes what killed processes have left in a directory, the first time this process writes there.
fn tidy_once(directory: &Path) {
    static TIDIED: Mutex<Option<HashSet<PathBuf>>> = Mutex::new(None);
    let Ok(real) = fs::canonicalize(directory) else { return };
    let mut tidied = TIDIED.lock().unwrap_or_else(PoisonError::into_inner);
    if tidied.get_or_insert_default().insert(real) {
        tidy(directory);
    }
}

fn tidy(directory: &Path) {
    // Windows does not remove a file that is open; the next run has no better chance there.
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let ours = entry.file_type().is_ok_and(|kind| kind.is_file());
        if ours && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A directory that one run has for itself, until this is dropped or the process ends, in whatever way.
#[derive(Debug)]
pub struct DirectoryLock {
    _directory: Option<File>,
}

/// Takes a directory for one run alone, made where it is missing; refused while another run has it.
pub fn lock_directory(directory: &Path) -> Result<DirectoryLock> {
    fs::create_dir_all(directory).map_err(Error::writing(directory))?;
    tidy(directory);
    // The directory itself is what is locked, so nothing is left behind. Systems and file systems that cannot do that
    // go without.
    let Ok(opened) = File::open(directory) else { return Ok(DirectoryLock { _directory: None }) };
    match opened.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let message = "another run is using this directory: wait for its end, or give another directory";
            Err(Error::file(directory.display().to_string(), message))
        }
        _ => Ok(DirectoryLock { _directory: Some(opened) }),
    }
}

/// What the system is asked for on the way to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code, reason = "only tests look at it"))]
pub(crate) enum Step {
    Create,
    Write,
    Sync,
    Rename,
}

/// Where the tests make the k-th step fail.
#[inline]
fn step(_step: Step) -> io::Result<()> {
    #[cfg(test)]
    faults::strike(_step)?;
    Ok(())
}

/// A file, each write of which is a step.
struct Stepping<'a>(&'a File);

impl Write for Stepping<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(test)]
        if let Some(torn) = faults::tear(bytes.len()) {
            self.0.write_all(&bytes[..torn])?;
            return Err(faults::full());
        }
        step(Step::Write)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model");
        write_whole(&path, |out| out.write_all(b"old")).unwrap();
        let failure = write_whole(&path, |out| {
            out.write_all(b"half of the new")?;
            Err(io::Error::other("no more"))
        });
        assert!(failure.unwrap_err().to_string().ends_with("cannot write: no more"));
        let failure = write_whole_checked(&path, |out| out.write_all(b"new"), |_| Err(io::Error::other("bad disk")));
        assert!(failure.unwrap_err().to_string().ends_with("cannot write: bad disk"));
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        write_whole(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn impossible_targets_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path().to_owned(), directory.path().join("missing/model")] {
            assert!(write_whole(&path, |_| Ok(())).unwrap_err().is_input());
        }
    }

    #[cfg(unix)]
    #[test]
    fn devices_links_and_permissions_stay_what_they_are() {
        use std::os::unix::fs::PermissionsExt;
        write_whole(Path::new("/dev/null"), |out| out.write_all(b"gone")).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_whole(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[cfg(unix)]
    #[test]
    fn what_the_dead_left_is_removed_and_what_the_living_write_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at(".obprox-dead"), "half").unwrap();
        fs::write(at(".obproxrc"), "someone's").unwrap();
        let living = temporary_in(directory.path()).unwrap();
        write_whole(&at("model"), |out| out.write_all(b"whole")).unwrap();
        assert!(living.path().exists() && at(".obproxrc").exists() && at("model").exists());
        assert!(!at(".obprox-dead").exists());
        drop(living);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_is_one_runs_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        let first = lock_directory(&path).unwrap();
        let refused = lock_directory(&path).unwrap_err();
        assert!(refused.is_input() && refused.to_string().contains("another run is using this directory"), "{refused}");
        drop(first);
        lock_directory(&path).unwrap();
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "a lock leaves nothing behind");
    }
}
