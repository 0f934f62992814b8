//! A read-only array: in memory of our own, a window on a memory-mapped file, or memory lent by someone else.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};

/// A read-only array; dereferences to a slice, so nothing downstream knows where the bytes live. Cheap to clone: copies
/// share their memory.
#[derive(Clone, Debug)]
pub enum Buffer<T> {
    /// In memory of our own.
    Owned(Arc<Vec<T>>),
    /// `len` elements of a mapped file from byte `start`, checked for alignment and length when made.
    Mapped {
        /// The file, shared by all its windows.
        map: Arc<Mmap>,
        /// First byte of the window.
        start: usize,
        /// Number of elements.
        len: usize,
    },
    /// `len` elements in memory of our own that came from the system in one piece.
    Large {
        /// The memory, shared by all copies.
        map: Arc<MmapMut>,
        /// Number of elements.
        len: usize,
    },
    /// In memory of someone else: see [`Buffer::lent`].
    Lent(Lent<T>),
}

impl<T: Pod> Buffer<T> {
    /// A window on a mapped file, or nothing where it would reach past the end or be misaligned.
    pub fn mapped(map: &Arc<Mmap>, start: usize, len: usize) -> Option<Self> {
        let bytes = map.get(start..start.checked_add(len.checked_mul(size_of::<T>())?)?)?;
        bytemuck::try_cast_slice::<u8, T>(bytes).ok()?;
        Some(Self::Mapped { map: Arc::clone(map), start, len })
    }

    /// An array that another library holds, used where it lies; `owner` is kept until the last clone is gone.
    ///
    /// # Safety
    ///
    /// `data` points to `len` initialised and aligned elements, which stay where they are and are not written to for as
    /// long as `owner` lives.
    #[allow(unsafe_code)]
    pub unsafe fn lent(data: *const T, len: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self::Lent(Lent { data, len, owner })
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Self::Owned(values) => values,
            Self::Mapped { map, start, len } => bytemuck::cast_slice(&map[*start..*start + *len * size_of::<T>()]),
            Self::Large { map, len } => bytemuck::cast_slice(&map[..*len * size_of::<T>()]),
            Self::Lent(lent) => lent.slice(),
        }
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        Self::Owned(Arc::new(values))
    }
}

/// An array in memory of someone else.
#[derive(Clone)]
pub struct Lent<T> {
    data: *const T,
    len: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

impl<T: Pod> Lent<T> {
    #[inline]
    fn slice(&self) -> &[T] {
        // SAFETY: whoever called `Buffer::lent` promised that these elements are there, aligned and left alone while the
        // owner lives, and the owner lives as long as `self`. A `Pod` has no bits that are not a value. An empty array
        // may have any pointer, which a slice may not.
        #[allow(unsafe_code)]
        if self.len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.len) } }
    }
}

// SAFETY: the elements are only read, from any number of threads, and `Pod` types have no state beyond their bits. The
// owner is `Send + Sync` itself.
#[allow(unsafe_code)]
unsafe impl<T: Pod> Send for Lent<T> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<T: Pod> Sync for Lent<T> {}

impl<T> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Lent").field("len", &self.len).field("owners", &Arc::strong_count(&self.owner)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lent_memory_lives_as_long_as_its_last_borrower() {
        let owner = Arc::new(vec![1.5, 2.5, -3.5]);
        // SAFETY: the vector is never written to, and the buffer keeps it.
        #[allow(unsafe_code)]
        let buffer = unsafe { Buffer::lent(owner.as_ptr(), owner.len(), owner.clone()) };
        let copy = buffer.clone();
        assert_eq!(Arc::strong_count(&owner), 3);
        assert_eq!(copy.as_ptr(), owner.as_ptr(), "nothing was copied");
        drop(buffer);
        assert_eq!(copy[..], [1.5, 2.5, -3.5]);
        drop(copy);
        assert_eq!(Arc::strong_count(&owner), 1);
    }

    #[test]
    fn a_clone_shares_the_memory() {
        let buffer = Buffer::from(vec![1u32, 2]);
        assert_eq!(buffer.clone().as_ptr(), buffer.as_ptr());
    }
}
