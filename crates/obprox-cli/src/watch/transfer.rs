//! Signs of life from a download.

use std::path::Path;

use indicatif::ProgressBar;

use super::progress::{styled, visible};

/// The bytes of a download.
pub struct Transfer(ProgressBar);

impl Transfer {
    /// A bar that begins at the bytes that are there; it only counts where the whole is not known.
    pub fn new(path: &Path, have: u64, whole: Option<u64>, quiet: bool) -> Self {
        let name = path.display().to_string();
        let bar = match (visible(quiet), whole) {
            (false, _) => ProgressBar::hidden(),
            (true, Some(whole)) => {
                styled(ProgressBar::new(whole), "{prefix} {bar:20} {bytes} of {total_bytes}  {eta} left", name)
            }
            (true, None) => styled(ProgressBar::new_spinner(), "{prefix} {spinner} {bytes}", name),
        };
        bar.set_position(have);
        bar.reset_eta();
        Self(bar)
    }

    /// So many bytes are there now.
    pub fn at(&mut self, bytes: u64) {
        self.0.set_position(bytes);
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
