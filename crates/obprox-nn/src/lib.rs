//! Networks that are mostly exact zeros: min over x of f(x) + λ‖x‖₁ on [Burn](burn).
//!
//! * [`optim`]: Prox-SG, RDA, Prox-SVRG, OBProx-SG and OBProx-SG+ as Burn optimizers, for any module.
//! * [`Net`]: ResNet18, MobileNetV1 and a small CNN as Burn modules, with PyTorch's parameter names.
//! * [`data`]: Fashion-MNIST, CIFAR-10 or folders of pictures, augmented and dealt in batches by a thread of its own.
//! * [`train`]: the loop around them, with switching, evaluation, checkpoints and observers.
//! * [`ops`]: convolutions and normalisations that train faster than the stock ones on the CPU.

pub mod data;
mod device;
mod init;
pub mod net;
pub mod ops;
pub mod optim;
mod plan;
pub mod train;

pub use device::device;
pub use init::initial_weights;
pub use net::Net;
