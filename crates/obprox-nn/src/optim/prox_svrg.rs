//! Prox-SVRG: proximal stochastic gradients with variance reduction.
//!
//! Problem: min f(x) + λ‖x‖₁. An epoch: x̃ ← x, g̃ ← ∇f(x̃); then for each batch
//! x ← S(x − α(∇f_B(x) − ∇f_B(x̃) + g̃), αλ). The result of an epoch is its last iterate, or the mean of its iterates
//! as the original analysis has it, at the price of the zeros.
//!
//! A step needs gradients at two points. [`Anchor`] keeps x̃ and g̃ and makes the reduced gradient of the two batch
//! gradients; the optimizer itself then steps as Prox-SG does. [`IterateMean`] takes the mean.
//! Parameters: λ, and the step sizes α. Citation: Xiao and Zhang, A proximal stochastic gradient method with progressive
//! variance reduction, 2014.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

/// The optimizer steps as Prox-SG does, along the reduced gradient.
pub type ProxSvrg = super::ProxSg;
/// Configuration of [`ProxSvrg`].
pub type ProxSvrgConfig = super::ProxSgConfig;

/// The anchor x̃ of an epoch and the full gradient g̃ there.
pub struct Anchor<M> {
    module: M,
    full_gradient: GradientsParams,
}

impl<M: Module> Anchor<M> {
    /// Anchors at a module, which is copied, running statistics included; `full` computes the mean gradient over all
    /// data.
    pub fn new(module: &M, full: impl FnOnce(&M) -> GradientsParams) -> Self {
        // Clones share their running statistics; a round trip through `valid` does not.
        let module = module.valid().train();
        let full_gradient = full(&module);
        Self { module, full_gradient }
    }

    /// The module at the anchor, to compute ∇f_B(x̃) with.
    pub fn module(&self) -> &M {
        &self.module
    }

    /// ∇f_B(x) − ∇f_B(x̃) + g̃.
    pub fn reduce(&self, at_x: GradientsParams, at_anchor: GradientsParams) -> GradientsParams {
        let mut reduce = Reduce { at_x, at_anchor, full: &self.full_gradient, reduced: GradientsParams::new() };
        self.module.visit(&mut reduce);
        reduce.reduced
    }
}

struct Reduce<'a> {
    at_x: GradientsParams,
    at_anchor: GradientsParams,
    full: &'a GradientsParams,
    reduced: GradientsParams,
}

impl ModuleVisitor for Reduce<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let Some(mut gradient) = self.at_x.remove::<D>(param.id) else { return };
        if let Some(at_anchor) = self.at_anchor.remove::<D>(param.id) {
            gradient = gradient - at_anchor;
        }
        if let Some(full) = self.full.get::<D>(param.id) {
            gradient = gradient + full;
        }
        self.reduced.register(param.id, gradient);
    }
}

/// The mean of the iterates of an epoch.
#[derive(Default)]
pub struct IterateMean {
    // Burn's map from parameters to tensors of any rank; what it holds here are sums of weights.
    sums: GradientsParams,
    count: usize,
}

impl IterateMean {
    /// Adds an iterate.
    pub fn add<M: Module>(&mut self, module: &M) {
        struct Add<'a>(&'a mut GradientsParams);
        impl ModuleVisitor for Add<'_> {
            fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
                if param.is_require_grad() {
                    let value = param.val().inner();
                    let sum = match self.0.remove::<D>(param.id) {
                        Some(sum) => sum + value,
                        None => value,
                    };
                    self.0.register(param.id, sum);
                }
            }
        }
        module.visit(&mut Add(&mut self.sums));
        self.count += 1;
    }

    /// The module at the mean of what was added; running statistics stay as they are.
    pub fn apply<M: Module>(self, module: M) -> M {
        struct Apply(GradientsParams, f64);
        impl ModuleMapper for Apply {
            fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
                let Some(sum) = self.0.remove::<D>(param.id) else { return param };
                let mean = sum.mul_scalar(self.1);
                param.map(|_| Tensor::from_inner(mean).require_grad())
            }
        }
        module.map(&mut Apply(self.sums, 1.0 / self.count.max(1) as f64))
    }
}
