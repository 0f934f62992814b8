//! Parameters by name.

use std::collections::BTreeMap;

use obprox::{Error, Result};

/// A dense array of f32 with its shape, the last dimension contiguous.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Tensor {
    /// An array of a shape; the sizes must agree.
    pub fn new(shape: impl Into<Vec<usize>>, data: Vec<f32>) -> Result<Self> {
        let shape = shape.into();
        match element_count(&shape) {
            Some(count) if count == data.len() => Ok(Self { shape, data }),
            _ => Err(Error::Data(format!("{} values do not fill the shape {shape:?}", data.len()))),
        }
    }

    /// All zeros.
    pub fn zeros(shape: impl Into<Vec<usize>>) -> Self {
        let shape = shape.into();
        let data = vec![0.0; shape.iter().product()];
        Self { shape, data }
    }

    /// Sizes of the dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values, the last dimension contiguous.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The values, to be changed.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Number of values that are not zero; NaN is not zero.
    pub fn nnz(&self) -> usize {
        self.data.iter().filter(|&&value| value != 0.0).count()
    }
}

/// The number of elements of a shape, where it can be counted at all.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size))
}

/// Parameters of a network by PyTorch's names, in the order of names.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Weights {
    tensors: BTreeMap<String, Tensor>,
}

impl Weights {
    /// None so far.
    pub fn new() -> Self {
        Self::default()
    }

    /// A parameter.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// A parameter, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Tensor> {
        self.tensors.get_mut(name)
    }

    /// Adds or replaces a parameter; the one before.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) -> Option<Tensor> {
        self.tensors.insert(name.into(), tensor)
    }

    /// Takes a parameter out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        self.tensors.remove(name)
    }

    /// Every name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Every parameter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(name, tensor)| (name.as_str(), tensor))
    }

    /// Number of parameters as names.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }
}

impl FromIterator<(String, Tensor)> for Weights {
    fn from_iter<I: IntoIterator<Item = (String, Tensor)>>(tensors: I) -> Self {
        Self { tensors: tensors.into_iter().collect() }
    }
}
