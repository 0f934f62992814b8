//! Parameters of a module as plain numbers, and back.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Tensor, TensorData};

/// Shapes and values of parameters.
pub type Values = BTreeMap<ParamId, (Vec<usize>, Vec<f32>)>;

/// The parameters that are wanted.
pub fn values<M: Module>(module: &M, wanted: impl Fn(&ParamId) -> bool) -> Values {
    let mut take = Take { wanted, values: BTreeMap::new() };
    module.visit(&mut take);
    take.values
}

/// The module with other values of these parameters.
pub fn put<M: Module>(module: M, values: BTreeMap<ParamId, Vec<f32>>) -> M {
    module.map(&mut Put(values))
}

struct Take<F> {
    wanted: F,
    values: Values,
}

impl<F: Fn(&ParamId) -> bool> ModuleVisitor for Take<F> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if (self.wanted)(&param.id) {
            let value = param.val().inner();
            let shape = value.dims().to_vec();
            let values = value.into_data().convert::<f32>().try_into_vec::<f32>();
            self.values.insert(param.id, (shape, values.expect("just converted")));
        }
    }
}

struct Put(BTreeMap<ParamId, Vec<f32>>);

impl ModuleMapper for Put {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(values) = self.0.remove(&param.id) else { return param };
        param.map(|old| {
            let data = TensorData::new(values, old.shape()).convert_dtype(old.dtype());
            Tensor::from_inner(Tensor::from_data(data, &old.device().inner())).require_grad()
        })
    }
}
