//! A read-only array: in memory of our own, a window on a memory-mapped file, or memory lent by someone else.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::{Mmap, MmapMut};

/// A read-only array; dereferences to a slice, so nothing downstream knows where the bytes live. Cheap to clone: copies
/// share their memory.
///
/// It is where the elements are and whoever keeps them there: rows are short and visited often, and a question at each
/// visit what kind of memory they are in would show.
pub struct Buffer<T> {
    data: *const T,
    len: usize,
    owner: Arc<dyn Any + Send + Sync>,
}

impl<T: Pod> Buffer<T> {
    /// A window on a mapped file, or nothing where it would reach past the end or be misaligned.
    pub fn mapped(map: &Arc<Mmap>, start: usize, len: usize) -> Option<Self> {
        let bytes = map.get(start..start.checked_add(len.checked_mul(size_of::<T>())?)?)?;
        let window = bytemuck::try_cast_slice::<u8, T>(bytes).ok()?;
        Some(Self { data: window.as_ptr(), len, owner: Arc::clone(map) as _ })
    }

    /// Some of the elements, where they lie.
    pub(crate) fn window(&self, range: Range<usize>) -> Self {
        let window = &self[range];
        Self { data: window.as_ptr(), len: window.len(), owner: Arc::clone(&self.owner) }
    }

    /// The first elements of memory of our own.
    pub(crate) fn large(map: MmapMut, len: usize) -> Self {
        let map = Arc::new(map);
        let data = bytemuck::cast_slice::<u8, T>(&map[..len * size_of::<T>()]).as_ptr();
        Self { data, len, owner: map }
    }

    /// An array that another library holds, used where it lies; `owner` is kept until the last clone is gone.
    ///
    /// # Safety
    ///
    /// `data` points to `len` initialised and aligned elements, which stay where they are and are not written to for as
    /// long as `owner` lives.
    #[allow(unsafe_code)]
    pub unsafe fn lent(data: *const T, len: usize, owner: Arc<dyn Any + Send + Sync>) -> Self {
        Self { data, len, owner }
    }
}

impl<T: Pod> Deref for Buffer<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the elements are those of a vector or a mapping that the owner holds and no one else can reach to write,
        // or whoever called `Buffer::lent` promised as much: they are there, aligned and left alone while the owner lives,
        // and it lives as long as `self`. A `Pod` has no bits that are not a value. An empty array may have any pointer,
        // which a slice may not.
        #[allow(unsafe_code)]
        if self.len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.data, self.len) } }
    }
}

impl<T: Pod + Send + Sync> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Self {
        let values = Arc::new(values);
        Self { data: values.as_ptr(), len: values.len(), owner: values }
    }
}

impl<T: Pod + PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<'a, T: Pod> IntoIterator for &'a Buffer<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self { data: self.data, len: self.len, owner: Arc::clone(&self.owner) }
    }
}

// SAFETY: the elements are only read, from any number of threads, and `Pod` types have no state beyond their bits. The
// owner is `Send + Sync` itself.
#[allow(unsafe_code)]
unsafe impl<T: Pod> Send for Buffer<T> {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl<T: Pod> Sync for Buffer<T> {}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Buffer").field("len", &self.len).field("owners", &Arc::strong_count(&self.owner)).finish()
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
