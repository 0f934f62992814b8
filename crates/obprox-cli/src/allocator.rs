//! The system's allocator, which says what was lacking when memory runs out. What a file declares is held against the
//! memory there is before it is asked for (`obprox::memory`); this is for what remains: a limit set by `ulimit`, another
//! process that takes the rest. Without it the process would die by a signal.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Cursor, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[global_allocator]
static ALLOCATOR: Speaking = Speaking;

struct Speaking;

// SAFETY: every call is the system's own, with the caller's arguments; what it gives is passed on.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Speaking {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

#[inline]
fn given(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() {
        fail(size);
    }
    memory
}

/// Longer than it takes to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ends the command. Without an allocation of its own, and only once: what ends a process may ask for memory too.
#[cold]
fn fail(size: usize) {
    static FAILING: AtomicBool = AtomicBool::new(false);
    thread_local!(static ENDING: Cell<bool> = const { Cell::new(false) });
    if ENDING.replace(true) {
        return;
    }
    if FAILING.swap(true, Ordering::Relaxed) {
        // Another thread was first and is about to end them all. To go on without memory would be to die by a signal.
        std::thread::sleep(PATIENCE);
        return;
    }
    let mut line = [0; 160];
    let mut text = Cursor::new(&mut line[..]);
    let _ = writeln!(text, "obprox: error: out of memory: {size} more bytes cannot be had; files are as they were");
    let end = text.position() as usize;
    let _ = std::io::stderr().write_all(&line[..end]);
    #[allow(clippy::exit, reason = "there is no way back from here")]
    std::process::exit(1);
}
