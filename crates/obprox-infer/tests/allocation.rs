//! Hostile files are refused without taking memory for what they claim to be.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::random_model;
use obprox_infer::{Architecture, Kind, Model};

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

#[test]
fn memory_follows_the_file() {
    let sound =
        random_model(Architecture::new(Kind::SmallCnn).with_width(0.1).unwrap(), 0.1, 1).to_compressed().unwrap();
    let end = 32 + u32::from_le_bytes(sound[12..16].try_into().unwrap()) as usize;
    let header = String::from_utf8(sound[32..end].to_vec()).unwrap();
    let changes = [
        // A network of 3 billion parameters, shapes and sizes to match the largest counts, positions without end.
        (r#""base":3"#, r#""base":4000"#),
        (r#""classes":10"#, r#""classes":1048576"#),
        (r#""kind":"small-cnn""#, r#""kind":"resnet18""#),
        (r#""nonzeros":"#, r#""nonzeros":99999999999"#),
        (r#""bytes":"#, r#""bytes":9999999999999"#),
        (r#""shape":["#, r#""shape":[9999999999,"#),
        (r#""height":32"#, r#""height":99999999999"#),
    ];
    for (from, to) in changes {
        let header = header.replacen(from, to, 1);
        assert!(header.contains(to), "{from}");
        let rest = [header.as_bytes(), &sound[end..]].concat();
        let mut file = sound[..12].to_vec();
        file.extend((header.len() as u32).to_le_bytes());
        file.extend((32 + rest.len() as u64).to_le_bytes());
        file.extend(crc32fast::hash(&rest).to_le_bytes());
        file.extend([0; 4]);
        file.extend(rest);
        LARGEST.store(0, Ordering::Relaxed);
        assert!(Model::from_compressed(&file).is_err(), "{to}");
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(largest < 1 << 20, "{to} took {largest} bytes at once for a file of {}", file.len());
    }
}
