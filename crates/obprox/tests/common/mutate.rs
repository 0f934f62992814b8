//! Sound files made unsound: bits flipped, pieces cut out, doubled or taken from another file, ends torn off, numbers made
//! huge. Every case is a function of its number, so that a failure names what to try again.
//!
//! `OBPROX_FUZZ` is the number of cases of each reader, for long runs; in the tests there are as many as take seconds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest single allocation since it was last set to zero.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Watched;

// SAFETY: everything is left to the system's allocator; only sizes are noted.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// No reader takes more at once for a file of a few kilobytes than its own buffers are.
const MOST: usize = 32 << 20;

/// SplitMix64: enough to draw from, and the same on every machine.
pub struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `most`, which is not 0.
    pub fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }
}

/// Says the case where a reader panics in it.
struct Case(&'static str, u64);

impl Drop for Case {
    #[allow(clippy::print_stderr, reason = "which case it was must be told")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: case {} of the mutations", self.0, self.1);
        }
    }
}

/// Tries a reader on mutations of sound files: it must not panic, and must not take memory for what a file claims to be.
/// What else must hold, `read` asserts; it is handed the mutation and the file it came from.
pub fn every_case(name: &'static str, seeds: &[Vec<u8>], cases: u64, mut read: impl FnMut(&[u8], &[u8], &mut Draw)) {
    let cases = std::env::var("OBPROX_FUZZ").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    for number in 0..cases {
        let _case = Case(name, number);
        let mut draw = Draw(number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let seed = &seeds[draw.below(seeds.len())];
        let mutated = mutated(seed, seeds, &mut draw);
        LARGEST.store(0, Ordering::Relaxed);
        read(&mutated, seed, &mut draw);
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(largest <= MOST, "{name}: {largest} bytes at once for a file of {}", mutated.len());
    }
}

/// What breaks parsers, in text and in binary.
const TOKENS: [&[u8]; 22] = [
    b"4294967295",
    b"4294967296",
    b"18446744073709551615",
    b"99999999999999999999999",
    b"1e400",
    b"-1e-400",
    b"nan",
    b"-inf",
    b"0x1p3",
    b"-",
    b":",
    b",",
    b"\"",
    b"\n",
    b"\r",
    b"\0",
    b"\xff\xfe",
    b"[[[[",
    b"{\"",
    b"#",
    b"1:1 1:1",
    b"  ",
];

const WORDS: [u64; 8] = [0, 1, 0x7fff_ffff, 0xffff_ffff, 0x1_0000_0000, 1 << 48, i64::MAX as u64, u64::MAX];

fn mutated(seed: &[u8], seeds: &[Vec<u8>], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=draw.below(4) {
        if bytes.is_empty() {
            break;
        }
        let (at, other) = (draw.below(bytes.len()), &seeds[draw.below(seeds.len())]);
        let end = at + draw.below((bytes.len() - at).min(64)) + 1;
        match draw.below(9) {
            0 => bytes[at] ^= 1 << draw.below(8),
            1 => bytes[at] = draw.below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let from = draw.below(other.len().max(1)).min(other.len());
                bytes.splice(at.., other[from..].iter().copied());
            }
            6 => {
                let token = TOKENS[draw.below(TOKENS.len())];
                bytes.splice(at..at, token.iter().copied());
            }
            7 => {
                let token = TOKENS[draw.below(TOKENS.len())];
                bytes.splice(at..end, token.iter().copied());
            }
            _ => {
                // Headers have their numbers at multiples of four.
                let at = at / 4 * 4;
                let word = WORDS[draw.below(WORDS.len())].to_le_bytes();
                let len = (if draw.below(2) == 0 { 4 } else { 8 }).min(bytes.len() - at);
                bytes[at..at + len].copy_from_slice(&word[..len]);
            }
        }
    }
    bytes
}
