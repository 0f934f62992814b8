//! Arrays that are visited at random: on huge pages where they are large.
//!
//! With pages of 4 KB nearly every visit to an array of tens of megabytes also misses the address cache, which costs
//! more than the data itself. The system gives huge pages to memory that is marked for them. It takes its time to give
//! memory and to take it back, so some is kept for the next array.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::data::Buffer;

/// An array of fixed length that starts as zeros.
#[derive(Debug)]
pub(crate) enum Huge<T> {
    Small(Vec<T>),
    Large(Kept, PhantomData<T>),
}

/// Below this an array fits the caches, and huge pages gain nothing.
const LARGE: usize = 2 << 20;

/// Memory that no one uses at the moment, to be used again: at most so many pieces of at most so many bytes.
static SPARE: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());
const SPARE_PIECES: usize = 4;
const SPARE_BYTES: usize = 32 << 20;

/// The first bytes of a piece of memory, which is kept when it is no longer used.
#[derive(Debug)]
pub(crate) struct Kept {
    map: Option<MmapMut>,
    len: usize,
}

impl Kept {
    /// So many zeros, of memory that was kept or of new memory.
    fn zeros(len: usize) -> Option<Self> {
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        // No more than twice as much as is asked for.
        let fits = |map: &MmapMut| (len..=2 * len).contains(&map.len());
        let found = spare.iter().position(fits).map(|at| spare.swap_remove(at));
        drop(spare);
        if let Some(mut map) = found {
            map[..len].fill(0);
            return Some(Self { map: Some(map), len });
        }
        let map = MmapMut::map_anon(len).ok()?;
        // A refusal costs speed alone.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Some(Self { map: Some(map), len })
    }

    fn bytes(&self) -> &[u8] {
        self.map.as_ref().map_or(&[], |map| &map[..self.len])
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(map) = self.map.take().filter(|map| map.len() <= SPARE_BYTES) {
            let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
            // The oldest goes.
            let last = (spare.len() == SPARE_PIECES).then(|| spare.remove(0));
            spare.push(map);
            drop(spare);
            drop(last);
        }
    }
}

impl<T: Pod + Send + Sync> Huge<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let bytes = len * size_of::<T>();
        match (bytes >= LARGE).then(|| Kept::zeros(bytes)).flatten() {
            Some(kept) => Self::Large(kept, PhantomData),
            None => Self::Small(vec![T::zeroed(); len]),
        }
    }

    /// Makes it at least that long; what is added is zeros.
    pub fn grow(&mut self, len: usize) {
        if len > self.len() {
            let mut longer = Self::zeros(len);
            longer[..self.len()].copy_from_slice(self);
            *self = longer;
        }
    }

    /// The first of them.
    pub fn cut(self, len: usize) -> Buffer<T> {
        match self {
            Self::Small(mut values) => {
                values.truncate(len);
                values.shrink_to_fit();
                values.into()
            }
            Self::Large(mut kept, _) => match kept.map.take() {
                Some(map) => Buffer::large(map, len),
                None => Vec::new().into(),
            },
        }
    }
}

impl<T: Pod> Clone for Huge<T> {
    fn clone(&self) -> Self {
        self.iter().copied().collect()
    }
}

impl<T> Default for Huge<T> {
    fn default() -> Self {
        Self::Small(Vec::new())
    }
}

impl<T: Pod + Send + Sync> From<Huge<T>> for Buffer<T> {
    fn from(array: Huge<T>) -> Self {
        let len = array.len();
        array.cut(len)
    }
}

impl<T> From<Vec<T>> for Huge<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Small(values)
    }
}

impl<T: Pod> FromIterator<T> for Huge<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::Small(values.into_iter().collect())
    }
}

impl<T: Pod> Deref for Huge<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Small(values) => values,
            Self::Large(kept, _) => bytemuck::cast_slice(kept.bytes()),
        }
    }
}

impl<T: Pod> DerefMut for Huge<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Small(values) => values,
            Self::Large(kept, _) => match &mut kept.map {
                Some(map) => bytemuck::cast_slice_mut(&mut map[..kept.len]),
                None => &mut [],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_used_again_starts_as_zeros() {
        for _ in 0..3 {
            let mut arrays: Vec<Huge<u32>> = (0..6).map(|at| Huge::zeros(LARGE / 4 + 1000 * at)).collect();
            for array in &mut arrays {
                assert!(array.iter().all(|&value| value == 0));
                array.fill(7);
            }
            let last = arrays.pop().expect("there are six").cut(LARGE / 4);
            assert!(last.len() == LARGE / 4 && last.iter().all(|&value| value == 7));
        }
    }

    #[test]
    fn small_and_large_arrays_are_alike() {
        for len in [0, 3, LARGE / 8, LARGE / 8 + 5] {
            let mut array = Huge::<f64>::zeros(len);
            assert_eq!(array.len(), len);
            assert!(array.iter().all(|&value| value == 0.0));
            if let Some(last) = array.last_mut() {
                *last = 1.5;
            }
            assert_eq!(array.iter().sum::<f64>(), if len > 0 { 1.5 } else { 0.0 });
        }
    }
}
