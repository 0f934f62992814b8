//! Files that appear whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::{Error, Result};

/// Writes a file so that it appears whole or not at all: into a temporary file beside it, which then takes its place.
/// A pipe, a terminal or a device such as `/dev/stdout` is written to straight.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let outcome = match fs::metadata(path) {
        Ok(found) if !found.is_file() => OpenOptions::new().write(true).open(path).and_then(|file| {
            let mut out = BufWriter::new(file);
            write(&mut out)?;
            out.flush()
        }),
        found => replace(path, found.ok(), write),
    };
    outcome.map_err(Error::writing(path))
}

fn replace(
    path: &Path,
    existing: Option<fs::Metadata>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A link stays a link: what it points at is replaced.
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".obprox-");
    // Temporary files are private by default; this one is to become an ordinary file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let temporary = builder.tempfile_in(directory)?;
    if let Some(existing) = existing {
        temporary.as_file().set_permissions(existing.permissions())?;
    }
    let mut out = BufWriter::with_capacity(1 << 16, temporary.as_file());
    write(&mut out)?;
    out.flush()?;
    drop(out);
    temporary.as_file().sync_all()?;
    temporary.persist(&target).map_err(|error| error.error)?;
    // The new name must survive a power cut too; not every system can sync a directory, and the file itself is safe.
    let _ = File::open(directory).and_then(|directory| directory.sync_all());
    Ok(())
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
}
