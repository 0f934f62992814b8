//! Who works while Python does something else.
//!
//! Every call has threads of its own, those of a call that has ended where it asks for as many: to start them would take
//! longer than a small fit. They do not survive `fork`, which is how Python's multiprocessing starts its workers: the
//! child would wait for threads that only its parent has, so it starts others.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use obprox::{Control, EpochRecord, Error, Observer, Progress};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::raise;

/// How often the caller's thread looks whether Ctrl-C was pressed.
const TICK: Duration = Duration::from_millis(50);
/// How long it waits for a solver that was told to stop. One that is in the middle of a long step is left to itself: it
/// ends at its next step, and keeps its data alive until then.
const PATIENCE: Duration = Duration::from_millis(400);

/// Threads that wait for the next call, how many were asked for, and the process they are of.
static IDLE: Mutex<Option<(u32, usize, ThreadPool)>> = Mutex::new(None);

/// Threads for one call, which [`keep`] takes back.
fn pool(threads: usize) -> PyResult<ThreadPool> {
    // A lock that is held was perhaps so when the process was forked, and will be for ever.
    match IDLE.try_lock().ok().and_then(|mut idle| idle.take()) {
        // Nothing of it may be touched, not even to end it.
        Some((process, _, of_the_parent)) if process != std::process::id() => std::mem::forget(of_the_parent),
        Some((_, count, pool)) if count == threads => return Ok(pool),
        _ => {}
    }
    let built = ThreadPoolBuilder::new().num_threads(threads).thread_name(|at| format!("obprox-{at}")).build();
    let count = if threads == 0 { "a thread for each core".to_owned() } else { format!("{threads} threads") };
    built.map_err(|error| PyRuntimeError::new_err(format!("the system does not give {count}: {error}: lower n_jobs")))
}

/// Leaves the threads of a call that has ended to the next.
fn keep(threads: usize, pool: ThreadPool) {
    if let Ok(mut idle) = IDLE.try_lock() {
        *idle = Some((std::process::id(), threads, pool));
    }
}

/// Does a short piece of work on so many threads (0: as many as there are cores), the interpreter's lock given back.
pub fn work<T: Send>(py: Python<'_>, threads: usize, job: impl FnOnce() -> obprox::Result<T> + Send) -> PyResult<T> {
    let pool = pool(threads)?;
    let done = py.detach(|| pool.install(job));
    keep(threads, pool);
    done.map_err(|error| raise(py, error))
}

/// What the solver's thread says to the caller's.
enum Message<T> {
    /// An epoch is done; the solver waits to hear whether to go on.
    Epoch(Box<EpochRecord>, Sender<Control>),
    /// It is finished.
    Done(obprox::Result<T>),
}

/// The solver's end of the line: an observer that passes on each epoch and hears of a stop.
pub struct Line<T> {
    stop: Arc<AtomicBool>,
    /// Why the state could not be saved, the first time.
    unsaved: Arc<OnceLock<String>>,
    speak: Option<Sender<Message<T>>>,
}

impl<T> Line<T> {
    fn answer(&self) -> Control {
        if self.stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }

    /// Whether to stop, for whoever is no observer.
    pub fn listener(&self) -> impl Fn() -> Control + Send + Sync + 'static {
        let stop = Arc::clone(&self.stop);
        move || if stop.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    }

    /// Goes on without what could not be saved, for whoever is no observer.
    pub fn forgoer(&self) -> impl Fn(&Error) -> Control + Send + Sync + 'static {
        let unsaved = Arc::clone(&self.unsaved);
        move |error| {
            unsaved.get_or_init(|| error.to_string());
            Control::Continue
        }
    }
}

impl<T> Observer for Line<T> {
    fn step(&mut self, _: &Progress) -> Control {
        self.answer()
    }

    fn epoch(&mut self, record: &EpochRecord) -> Control {
        if let Some(speak) = &self.speak {
            let (reply, heard) = mpsc::channel();
            // The caller has gone where nobody answers.
            let said = speak.send(Message::Epoch(Box::new(record.clone()), reply));
            if said.is_err() || heard.recv() != Ok(Control::Continue) {
                return Control::Stop;
            }
        }
        self.answer()
    }

    fn unsaved(&mut self, error: &Error) -> Control {
        self.forgoer()(error)
    }
}

/// Says once that a run goes on without what could not be saved: hours of work are worth more than their checkpoint.
fn warn(py: Python<'_>, unsaved: &OnceLock<String>, is_said: &mut bool) -> PyResult<()> {
    let Some(reason) = unsaved.get().filter(|_| !*is_said) else { return Ok(()) };
    *is_said = true;
    let text = format!("{reason}: the fit goes on, but what is not saved cannot be resumed");
    let text = CString::new(text.replace('\0', " "))?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)
}

/// What the caller's thread does while it waits: Python may only be called from there.
pub trait Caller {
    /// Whether it wants to hear of each epoch.
    fn listens(&self) -> bool;
    /// Hears of an epoch; whether to stop.
    fn epoch(&mut self, py: Python<'_>, record: &EpochRecord) -> PyResult<Control>;
    /// Is called every now and then.
    fn tick(&mut self, _py: Python<'_>) -> PyResult<()> {
        Ok(())
    }
}

/// Runs a solver on threads of its own. Meanwhile the caller's thread looks after Ctrl-C and calls back; whatever is
/// raised there ends the run.
pub fn supervise<T: Send + 'static>(
    py: Python<'_>,
    threads: usize,
    caller: &mut dyn Caller,
    job: impl FnOnce(&mut Line<T>) -> obprox::Result<T> + Send + 'static,
) -> PyResult<T> {
    let pool = pool(threads)?;
    let (speak, hear) = mpsc::channel();
    let hear = Mutex::new(hear);
    let stop = Arc::new(AtomicBool::new(false));
    let (unsaved, mut is_said) = (Arc::new(OnceLock::new()), false);
    let speaks = caller.listens().then(|| speak.clone());
    let mut line = Line { stop: Arc::clone(&stop), unsaved: Arc::clone(&unsaved), speak: speaks };
    pool.spawn(move || {
        let result = job(&mut line);
        // Nobody may be left to hear it.
        let _ = speak.send(Message::Done(result));
    });
    loop {
        let heard = match py.detach(|| listen(&hear, TICK)) {
            Ok(Message::Done(result)) => {
                keep(threads, pool);
                warn(py, &unsaved, &mut is_said)?;
                return result.map_err(|error| raise(py, error));
            }
            Ok(Message::Epoch(record, reply)) => caller.epoch(py, &record).map(|control| {
                let _ = reply.send(control);
            }),
            Err(RecvTimeoutError::Timeout) => caller.tick(py),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("the solver broke off: this is a bug in obprox"));
            }
        };
        let heard = heard.and_then(|()| warn(py, &unsaved, &mut is_said));
        if let Err(raised) = heard.and_then(|()| py.check_signals()) {
            stop.store(true, Ordering::Relaxed);
            py.detach(|| {
                let until = Instant::now() + PATIENCE;
                // A pending epoch's reply is dropped here, which tells the solver to stop.
                while let Some(left) = until.checked_duration_since(Instant::now()) {
                    if !matches!(listen(&hear, left), Ok(Message::Epoch(..))) {
                        break;
                    }
                }
            });
            return Err(raised);
        }
    }
}

fn listen<T>(hear: &Mutex<Receiver<Message<T>>>, patience: Duration) -> Result<Message<T>, RecvTimeoutError> {
    hear.lock().expect("one thread listens").recv_timeout(patience)
}
