//! Memory of tensors: whole cache lines, which one step leaves to the next.
//!
//! A training step makes the same large tensors again and again. The system takes microseconds for every page it gives,
//! which adds up to as much as computing them; so what is no longer needed is kept for whoever asks next. And a pixel is
//! a cache line, which is read in one go only where it begins with one.
#![allow(unsafe_code, reason = "Burn takes memory that is not a `Vec`'s only by its unsafe trait")]

use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorData};
use burn::tensor::DType;
use cubecl_environment::bytes::{AccessError, AccessPolicy, AllocationController, AllocationProperty, Bytes};

/// A tensor on the CPU.
pub type Cpu = FloatTensor<Flex>;

const FLOATS: usize = 16;

/// A cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; FLOATS]);

/// Shorter ones are left to the allocator, which keeps them anyway.
const WORTH_KEEPING: usize = 1 << 10;
/// Lines that may lie idle without anyone caring.
const ENOUGH: usize = 1 << 20;

static KEPT: Mutex<Vec<Vec<Line>>> = Mutex::new(Vec::new());

/// Floats from the beginning of a cache line on. When dropped, they are left to whoever asks next.
pub struct Memory {
    lines: Vec<Line>,
    len: usize,
}

impl Memory {
    /// So many floats, whatever they are: the caller writes all of them.
    pub fn take(len: usize) -> Self {
        let count = len.div_ceil(FLOATS);
        Self { lines: kept(count).unwrap_or_else(|| vec![Line([0.0; FLOATS]); count]), len }
    }

    /// As a tensor.
    pub fn tensor(self, shape: &[usize]) -> Cpu {
        let len = self.len * size_of::<f32>();
        // SAFETY: every line was written when it was made, so that all bytes are initialised.
        let bytes = unsafe { Bytes::from_controller(Box::new(self), len) };
        Cpu::from_data(TensorData::from_bytes(bytes, shape, DType::F32))
    }
}

/// Lines that someone left: the tightest that fit, unless they would waste much.
fn kept(count: usize) -> Option<Vec<Line>> {
    let mut kept = KEPT.lock().ok().filter(|_| count >= WORTH_KEEPING)?;
    let fits = |of: &Vec<Line>| of.len() >= count && of.len() <= count + count / 4;
    let best = (0..kept.len()).filter(|&at| fits(&kept[at])).min_by_key(|&at| kept[at].len());
    if best.is_none() && kept.iter().map(Vec::len).sum::<usize>() >= 4 * count.max(ENOUGH) {
        // What no longer fits anyone makes room before more is asked for.
        let largest = (0..kept.len()).max_by_key(|&at| kept[at].len());
        largest.map(|at| kept.swap_remove(at));
    }
    best.map(|at| kept.swap_remove(at))
}

impl Drop for Memory {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if lines.len() >= WORTH_KEEPING
            && let Ok(mut kept) = KEPT.lock()
        {
            kept.push(lines);
        }
    }
}

impl Deref for Memory {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: a line is sixteen floats and nothing else, and there are enough lines for `len` of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Memory {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above, and the lines are borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl AllocationController for Memory {
    fn alloc_align(&self) -> usize {
        // What Burn aligns copies of it to; more than that it does not offer.
        align_of::<u128>()
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    unsafe fn memory_mut(&mut self, _: AccessPolicy) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let len = self.len * size_of::<f32>();
        // SAFETY: the bytes of the lines, borrowed mutably; the caller promises to write initialised ones only.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), len) })
    }

    fn memory(&self, _: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let len = self.len * size_of::<f32>();
        // SAFETY: the bytes of the lines.
        Ok(unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), len) })
    }
}

/// The values of a tensor that is contiguous.
pub fn values(tensor: &Cpu) -> &[f32] {
    tensor.as_slice::<f32>().expect("the callers make tensors contiguous")
}

/// A tensor of a few values.
pub fn tensor(values: Vec<f32>, shape: &[usize]) -> Cpu {
    Cpu::from_data(TensorData::new(values, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_found_again() {
        // A length that no other test asks for.
        let len = WORTH_KEEPING * FLOATS + 54_321;
        let mut first = Memory::take(len);
        first.fill(1.0);
        let place = first.as_ptr();
        assert_eq!(place.align_offset(64), 0);
        let tensor = first.tensor(&[len]);
        assert_eq!(values(&tensor), vec![1.0; len]);
        let copy = tensor.clone().into_data();
        assert_eq!(copy.try_into_vec::<f32>().unwrap(), vec![1.0; len]);
        drop(tensor);
        let again = Memory::take(len);
        assert_eq!((again.as_ptr(), again.len()), (place, len));
    }
}
