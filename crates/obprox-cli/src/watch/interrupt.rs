//! Ctrl-C: the first one ends the fit after the step under way, the second one the process.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use obprox::{Control, EpochRecord, Observer, Progress, Start};

use crate::failure::Failure;

/// The status a shell gives to a process ended by SIGINT.
const INTERRUPTED: i32 = 130;

static PRESSED: AtomicUsize = AtomicUsize::new(0);
static TRAINING: AtomicBool = AtomicBool::new(false);

/// Starts listening. Outside a fit there is nothing to save, so there the first Ctrl-C ends the process.
pub fn listen() -> Result<(), Failure> {
    let handler = || {
        let before = PRESSED.fetch_add(1, Ordering::Relaxed);
        if before > 0 || !TRAINING.load(Ordering::Relaxed) {
            #[allow(clippy::exit, reason = "the thread of the signal has no other way to end the process")]
            std::process::exit(INTERRUPTED);
        }
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::other(format!("cannot listen for Ctrl-C: {error}")))
}

/// From here on there is something to save: the first Ctrl-C is left to whoever asks [`pressed`].
pub fn training() {
    TRAINING.store(true, Ordering::Relaxed);
}

/// Whether Ctrl-C was pressed.
pub fn pressed() -> bool {
    PRESSED.load(Ordering::Relaxed) > 0
}

/// Stops the run when Ctrl-C was pressed.
#[derive(Default)]
pub struct Interrupt;

impl Observer for Interrupt {
    fn start(&mut self, _: &Start) {
        training();
    }

    fn step(&mut self, _: &Progress) -> Control {
        if pressed() { Control::Stop } else { Control::Continue }
    }

    fn epoch(&mut self, _: &EpochRecord) -> Control {
        if pressed() { Control::Stop } else { Control::Continue }
    }
}
