//! Where tensors live: the CPU, or what a cargo feature adds.

use burn::tensor::Device;

/// The device of this build: that of the GPU feature it was built with, else the CPU.
#[allow(unreachable_code, reason = "the features add up, and the first one decides")]
pub fn device() -> Device {
    #[cfg(feature = "cuda")]
    return Device::cuda(0);
    #[cfg(feature = "rocm")]
    return Device::rocm(0);
    #[cfg(feature = "metal")]
    return Device::metal(Default::default());
    #[cfg(feature = "vulkan")]
    return Device::vulkan(Default::default());
    #[cfg(feature = "wgpu")]
    return Device::wgpu(Default::default());
    Device::flex()
}
