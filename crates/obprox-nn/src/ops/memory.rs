//! Memory that one step leaves to the next.
//!
//! A training step makes the same large tensors again and again. The system takes microseconds for every page it gives,
//! which adds up to as much as computing them; so what an operation is done with is kept for whoever asks next.

use std::sync::Mutex;

use burn::backend::Flex;
use burn::backend::TensorData;
use burn::backend::tensor::FloatTensor;

/// A tensor on the CPU.
pub type Cpu = FloatTensor<Flex>;

/// Shorter ones are left to the allocator, which keeps them anyway.
const WORTH_KEEPING: usize = 1 << 14;

static KEPT: Mutex<Vec<Vec<f32>>> = Mutex::new(Vec::new());

/// So many floats, whatever they are: the caller writes all of them.
pub fn take(len: usize) -> Vec<f32> {
    if len >= WORTH_KEEPING
        && let Ok(mut kept) = KEPT.lock()
    {
        // The tightest that fits, unless it would waste much.
        let fits = |of: &Vec<f32>| of.capacity() >= len && of.capacity() <= len + len / 4;
        let best = (0..kept.len()).filter(|&at| fits(&kept[at])).min_by_key(|&at| kept[at].capacity());
        if let Some(at) = best {
            let mut found = kept.swap_remove(at);
            found.resize(len, 0.0);
            return found;
        }
        // What no longer fits anyone makes room before more is asked for.
        if kept.iter().map(Vec::capacity).sum::<usize>() >= 4 * len.max(ENOUGH) {
            let largest = (0..kept.len()).max_by_key(|&at| kept[at].capacity());
            largest.map(|at| kept.swap_remove(at));
        }
    }
    vec![0.0; len]
}

/// Floats that may lie idle without anyone caring.
const ENOUGH: usize = 1 << 24;

/// Leaves floats to whoever asks next.
pub fn leave(values: Vec<f32>) {
    if values.capacity() >= WORTH_KEEPING
        && let Ok(mut kept) = KEPT.lock()
    {
        kept.push(values);
    }
}

/// Leaves a tensor's memory to whoever asks next, if nobody else has the tensor.
pub fn leave_tensor(tensor: Cpu) {
    if tensor.is_unique() && tensor.layout().num_elements() >= WORTH_KEEPING {
        leave(into_values(tensor));
    }
}

/// The values of a tensor, without a copy where nobody else has it.
pub fn into_values(tensor: Cpu) -> Vec<f32> {
    if tensor.is_unique() {
        return tensor.into_data().try_into_vec().expect("the operations are for f32 only");
    }
    let tensor = tensor.to_contiguous();
    let from = values(&tensor);
    let mut copy = take(from.len());
    copy.copy_from_slice(from);
    copy
}

/// The values of a tensor that is contiguous.
pub fn values(tensor: &Cpu) -> &[f32] {
    tensor.as_slice::<f32>().expect("the callers make tensors contiguous")
}

/// A tensor of values.
pub fn tensor(values: Vec<f32>, shape: &[usize]) -> Cpu {
    Cpu::from_data(TensorData::new(values, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_found_again() {
        // A length that no other test asks for.
        let len = WORTH_KEEPING + 4321;
        let first = take(len);
        let place = first.as_ptr();
        leave_tensor(tensor(first, &[len]));
        let again = take(len);
        assert_eq!((again.as_ptr(), again.len()), (place, len));
    }
}
