//! `.obx`.

use std::io::Cursor;

use obprox::data::{Dataset, Format, Matrix, ReadOptions, read, read_from, write_cache};

use super::assert_sound;
use crate::{Reader, Scratch};

/// Caches of every storage.
fn caches(scratch: &Scratch) -> Vec<Vec<u8>> {
    let sparse = |value: f64| Matrix::from_rows(9, &[vec![(0, value), (8, value)], vec![], vec![(3, value)]]);
    let read = |text: &str| read_from("text", Cursor::new(text.to_owned()), &ReadOptions::default());
    let mut sets: Vec<Dataset> =
        [1.0, 0.5, 0.1].map(|value| Dataset::new(sparse(value), vec![1.0, -1.0, 0.5])).to_vec();
    sets.extend(["y,a,b\n1,2,3\n0,4,5\n", "y,a,b\n1,0.1,3\n0,4,5\n"].map(|text| read(text).expect("it is sound")));
    let bytes = |set: &Dataset| {
        write_cache(set, scratch.path()).expect("the temporary directory can be written to");
        std::fs::read(scratch.path()).expect("it was written")
    };
    sets.iter().map(bytes).collect()
}

/// A cache that is not what was written is refused.
pub fn whole() -> Reader {
    let scratch = Scratch::new("data.obx");
    let seeds = caches(&scratch);
    let sound = seeds.clone();
    Reader::new("cache", seeds, move |bytes| {
        let options = ReadOptions { format: Some(Format::Cache), ..ReadOptions::default() };
        let outcome = read(scratch.holding(bytes), &options);
        assert_eq!(outcome.is_ok(), sound.iter().any(|seed| seed == bytes), "{outcome:?}");
        outcome.is_ok()
    })
}

/// Who means harm writes sums that fit.
fn with_sums_that_fit(bytes: &mut [u8]) {
    if bytes.len() > 68 {
        let fnv = |sum: u64, &byte: &u8| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let sum = bytes[..56].iter().fold(0xcbf2_9ce4_8422_2325, fnv);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        let sums = bytes.len() - 4;
        let sum = crc32fast::hash(&bytes[..sums]);
        bytes[sums..].copy_from_slice(&sum.to_le_bytes());
    }
}

pub fn forged() -> Reader {
    let scratch = Scratch::new("data.obx");
    let seeds = caches(&scratch);
    let sound = seeds.clone();
    Reader::new("cache-forged", seeds, move |bytes| {
        // Of the length of a sound one, so that more than the length is looked at.
        let seed = sound.iter().min_by_key(|seed| seed.len().abs_diff(bytes.len())).expect("there are some");
        let mut bytes = bytes.to_vec();
        bytes.resize(seed.len(), 0);
        bytes[..12].copy_from_slice(&seed[..12]);
        with_sums_that_fit(&mut bytes);
        let outcome = read(scratch.holding(&bytes), &ReadOptions::default());
        if let Ok(dataset) = &outcome {
            assert_sound(dataset);
        }
        outcome.is_ok()
    })
}
