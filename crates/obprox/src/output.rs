//! Output files appear whole or not at all.

use std::io::{self, Write};
use std::path::Path;

use crate::{Error, Result};

/// Writes a file beside its place and renames it there when it is complete.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut file = io::BufWriter::new(tempfile::NamedTempFile::new_in(directory).map_err(Error::writing(path))?);
    write(&mut file).map_err(Error::writing(path))?;
    let file = file.into_inner().map_err(|error| Error::writing(path)(error.into_error()))?;
    file.as_file().sync_all().map_err(Error::writing(path))?;
    file.persist(path).map_err(|error| Error::writing(path)(error.error))?;
    Ok(())
}
