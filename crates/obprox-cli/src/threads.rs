//! The threads that work is done on.

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::{io, thread};

use rayon::{ThreadBuilder, ThreadPoolBuilder};

use crate::failure::Failure;

/// Whether there was no thread to be had beyond the one that the command began with.
static ALONE: AtomicBool = AtomicBool::new(false);

/// Sizes the pool of threads; the count it has. A count that was asked for is had or refused. Where none was and the system
/// has no threads to give, the command's own does all the work: it comes to the same bits.
pub fn start(asked: Option<u16>) -> Result<usize, Failure> {
    let count = asked.map_or_else(usual, usize::from);
    let pool = match spawned(count) {
        Ok(threads) => {
            let mut threads = threads.into_iter();
            let hand_over = |work: ThreadBuilder| match threads.next().map(|thread| thread.send(work)) {
                Some(Ok(())) => Ok(()),
                _ => Err(io::Error::other("a thread ended before its work began")),
            };
            ThreadPoolBuilder::new().num_threads(count).spawn_handler(hand_over).build_global()
        }
        Err(error) if asked.is_some_and(|asked| asked > 1) => {
            let message = format!("--threads {count}: the system does not give as many ({error}): ask for fewer");
            return Err(Failure::other(message));
        }
        Err(_) => {
            ALONE.store(true, Ordering::Relaxed);
            ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()
        }
    };
    pool.map_err(|error| Failure::other(format!("cannot start {count} threads: {error}")))?;
    Ok(rayon::current_num_threads())
}

/// Whether there is a thread for what is nice to have, such as a sign of life.
pub fn are_to_be_had() -> bool {
    !ALONE.load(Ordering::Relaxed)
}

/// As many as `--threads` takes.
const MOST: usize = 1024;

/// One for each core, unless the environment has another opinion.
fn usual() -> usize {
    let given = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok());
    given
        .filter(|&count: &usize| count > 0)
        .map(|count| count.min(MOST))
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// Threads that wait to be told what they are for, or the system's reason against the first of them that cannot be had. The
/// pool itself can be built but once, so it is too late to find out there.
fn spawned(count: usize) -> io::Result<Vec<SyncSender<ThreadBuilder>>> {
    let (mut tellers, mut threads) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (tell, told) = sync_channel::<ThreadBuilder>(1);
        match thread::Builder::new().spawn(move || told.recv().map(ThreadBuilder::run)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                // Those that are there end, since nobody tells them anything, and give back what they hold.
                drop((tell, tellers));
                threads.into_iter().for_each(|thread| drop(thread.join()));
                return Err(error);
            }
        }
        tellers.push(tell);
    }
    Ok(tellers)
}
