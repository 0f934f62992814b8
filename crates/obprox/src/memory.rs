//! How much memory there is, asked before a file's word is taken for how much it needs.
//!
//! A system that is asked for too much may say yes and end the process when the memory is used, or say no, which ends it
//! at once. Neither lets an error be told, so sizes that come from outside are held against what is free first.

use std::fs;
use std::path::Path;

use crate::{Error, Result};

/// Less than this is had without a question: asking costs more than it is worth.
const SMALL: u64 = 64 << 20;

/// Bytes that can still be had, as far as the system tells: of the machine's memory, of what the group of processes may
/// use, and of the address space.
pub fn available() -> Option<u64> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let machine = field("/proc/meminfo", "MemAvailable:").map(|kilobytes| kilobytes << 10);
    [machine, group(), address_space()].into_iter().flatten().min()
}

/// Whether so many bytes can be had; yes where no one knows.
pub(crate) fn fits(bytes: u128) -> bool {
    bytes < u128::from(SMALL) || available().is_none_or(|free| bytes <= u128::from(free))
}

/// Refuses what needs more memory than there is. `what` is the start of a sentence: "the rows", "4294967295 features".
///
/// For sizes that a file or a caller declares, before anything is allocated for them.
pub fn check(bytes: u128, what: impl FnOnce() -> String) -> Result<()> {
    if fits(bytes) {
        return Ok(());
    }
    let needed = u64::try_from(bytes).unwrap_or(u64::MAX);
    Err(Error::Memory { what: what(), needed, free: available().unwrap_or(0) })
}

/// The number after a word that starts a line, in a file of such lines.
fn field(file: &str, word: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(word))?.split_whitespace().next()?.parse().ok()
}

/// What `ulimit -v` leaves.
fn address_space() -> Option<u64> {
    let limit = field("/proc/self/limits", "Max address space")?;
    Some(limit.saturating_sub(field("/proc/self/status", "VmSize:")? << 10))
}

/// What the control groups of this process leave, in either version of them; containers are such groups.
fn group() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let left = |line: &str| {
        let (root, most, used, files) = match line.split(':').collect::<Vec<_>>()[..] {
            [_, "", _] => ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "),
            [_, "memory", _] => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
            }
            _ => return None,
        };
        let own = line.splitn(3, ':').nth(2)?.trim_start_matches('/');
        // A container may see its own group as the root of all. Limits of the groups above hold too.
        let places = Path::new(own).ancestors().map(|place| Path::new(root).join(place));
        let number = |file: &Path| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
        let left = places.filter_map(|place| {
            // Pages of files count as used, but are given back when they are asked for.
            let files = field(place.join("memory.stat").to_str()?, files).unwrap_or(0);
            Some(number(&place.join(most))?.saturating_sub(number(&place.join(used))?.saturating_sub(files)))
        });
        left.min()
    };
    groups.lines().filter_map(left).min()
}

/// A size as people read it.
pub(crate) fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_refused_and_says_how_much() {
        assert!(check(1000, || unreachable!()).is_ok());
        let Some(free) = available() else { return };
        assert!(check(u128::from(free / 4), || "a quarter".into()).is_ok());
        let error = check(1 << 80, || "a lot".into()).unwrap_err();
        assert!(error.to_string().starts_with("a lot: takes 18446744073.7 GB of memory, and "), "{error}");
        assert!(!error.is_input());
    }

    #[test]
    fn the_system_tells_how_much_there_is() {
        if cfg!(target_os = "linux") {
            assert!(available().is_some_and(|free| free > 1 << 20));
        }
        assert_eq!(shown(1_500_000), "2 MB");
        assert_eq!(shown(34_359_738_360), "34.4 GB");
    }
}
