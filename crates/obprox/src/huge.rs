//! Arrays that are visited at random: on huge pages where they are large.
//!
//! With pages of 4 KB nearly every visit to an array of tens of megabytes also misses the address cache, which costs
//! more than the data itself. The system gives huge pages to memory that is marked for them.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::MmapMut;

use crate::data::Buffer;

/// An array of fixed length that starts as zeros.
#[derive(Debug)]
pub(crate) enum Huge<T> {
    Small(Vec<T>),
    Large(MmapMut, PhantomData<T>),
}

/// Below this an array fits the caches, and huge pages gain nothing.
const LARGE: usize = 2 << 20;

impl<T: Pod> Huge<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let bytes = len * size_of::<T>();
        if bytes >= LARGE
            && let Ok(map) = MmapMut::map_anon(bytes)
        {
            // A refusal costs speed alone.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            return Self::Large(map, PhantomData);
        }
        Self::Small(vec![T::zeroed(); len])
    }
}

impl<T: Pod> From<Huge<T>> for Buffer<T> {
    fn from(array: Huge<T>) -> Self {
        let len = array.len();
        match array {
            Huge::Small(values) => values.into(),
            Huge::Large(map, _) => match map.make_read_only() {
                Ok(map) => Self::Mapped { map: Arc::new(map), start: 0, len },
                // Never seen: the memory is ours. It would be lost with the call, so there is nothing to fall back on.
                Err(error) => panic!("memory could not be made read-only: {error}"),
            },
        }
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
            Self::Large(map, _) => bytemuck::cast_slice(map),
        }
    }
}

impl<T: Pod> DerefMut for Huge<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::Small(values) => values,
            Self::Large(map, _) => bytemuck::cast_slice_mut(map),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
