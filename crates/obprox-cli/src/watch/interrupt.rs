//! Ctrl-C and SIGTERM: the first one ends the fit after the step under way, the second one the process.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use obprox::{Control, EpochRecord, Observer, Progress, Start};
#[cfg(unix)]
use signal_hook::consts::SIGXFSZ;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::failure::Failure;

/// The statuses a shell gives to processes that end by these signals.
const INTERRUPTED: i32 = 130;
const TERMINATED: i32 = 143;

/// Whether the next signal ends the process at once: outside a fit there is nothing to save, so there the first one does.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
/// The status of the last signal; 0 before any.
static HEARD: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// A file that would grow beyond what the user may write is an error of that file, as a full disk is; left to itself the
/// system ends the process.
pub fn outlive_limits() {
    // Where it cannot be had, that is what happens.
    #[cfg(unix)]
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Starts listening.
pub fn listen() -> Result<(), Failure> {
    let register = |signal, status: i32| {
        // What is registered first is done first: a signal that ends the process does no more.
        flag::register_conditional_shutdown(signal, status, Arc::clone(&AT_ONCE))?;
        flag::register(signal, Arc::clone(&AT_ONCE))?;
        flag::register_usize(signal, Arc::clone(&HEARD), status as usize)
    };
    for (signal, status) in [(SIGINT, INTERRUPTED), (SIGTERM, TERMINATED)] {
        register(signal, status).map_err(|error| Failure::other(format!("cannot listen for Ctrl-C: {error}")))?;
    }
    Ok(())
}

/// From here on there is something to save: the first signal is left to whoever asks [`pressed`].
pub fn training() {
    if !pressed() {
        AT_ONCE.store(false, Ordering::Relaxed);
    }
}

/// Whether Ctrl-C was pressed, or the end was asked for by SIGTERM.
pub fn pressed() -> bool {
    HEARD.load(Ordering::Relaxed) > 0
}

/// The status of a command that is through with its work. Ctrl-C comes from someone who watches and reads that the work
/// was saved; whoever sends SIGTERM has the status alone to see that it was heard.
pub fn status(of_the_work: ExitCode) -> ExitCode {
    if HEARD.load(Ordering::Relaxed) == TERMINATED as usize { ExitCode::from(TERMINATED as u8) } else { of_the_work }
}

/// Stops the run when its time is over.
pub struct TimeLimit {
    limit: Option<Duration>,
    begun: Instant,
}

impl TimeLimit {
    pub fn new(limit: Option<Duration>) -> Self {
        Self { limit, begun: Instant::now() }
    }

    pub fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.begun.elapsed() >= limit)
    }

    fn control(&self) -> Control {
        if self.is_over() { Control::Stop } else { Control::Continue }
    }
}

impl Observer for TimeLimit {
    fn start(&mut self, _: &Start) {
        self.begun = Instant::now();
    }

    fn step(&mut self, _: &Progress) -> Control {
        self.control()
    }

    fn epoch(&mut self, _: &EpochRecord) -> Control {
        self.control()
    }
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
