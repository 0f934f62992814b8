//! A read-only array that is either owned or a window on a memory-mapped file.

use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;

/// A read-only array; dereferences to a slice, so nothing downstream knows where the bytes live.
#[derive(Clone, Debug)]
pub enum Buffer<T> {
    /// In memory of our own.
    Owned(Vec<T>),
    /// `len` elements of a mapped file from byte `start`, checked for alignment and length when made.
    Mapped {
        /// The file, shared by all its windows.
        map: Arc<Mmap>,
        /// First byte of the window.
        start: usize,
        /// Number of elements.
        len: usize,
    },
}

impl<T: Pod> Buffer<T> {
    /// A window on a mapped file, or nothing where it would reach past the end or be misaligned.
    pub fn mapped(map: &Arc<Mmap>, start: usize, len: usize) -> Option<Self> {
        let bytes = map.get(start..start.checked_add(len.checked_mul(size_of::<T>())?)?)?;
        bytemuck::try_cast_slice::<u8, T>(bytes).ok()?;
        Some(Self::Mapped { map: Arc::clone(map), start, len })
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(values) => values,
            Self::Mapped { map, start, len } => bytemuck::cast_slice(&map[*start..*start + *len * size_of::<T>()]),
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Owned(values)
    }
}
