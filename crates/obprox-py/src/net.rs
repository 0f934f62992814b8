//! Sparse networks: compressed files and the engine that serves them, for `obprox.net` and `obprox.torch`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use numpy::ndarray::ArrayD;
use numpy::{IntoPyArray, PyArrayDyn, PyReadonlyArray4, PyReadonlyArrayDyn};
use obprox::output::write_whole;
use obprox::{Error, Result};
use obprox_infer::engine::{Engine, Kernels};
use obprox_infer::images::{Images, Preprocessing};
use obprox_infer::{Architecture, Design, Model, Tensor, Training, Values, Weights, architecture};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::crew::work;
use crate::error::raise;

type Tensors<'py> = BTreeMap<String, PyReadonlyArrayDyn<'py, f32>>;
/// Height, width, and the mean and deviation of each channel.
type Preparation = (usize, usize, Vec<f32>, Vec<f32>);

/// A network that the library can run.
#[pyclass(frozen, module = "obprox._core")]
pub struct Network {
    model: Model,
    /// Compiled for images of the size that came last.
    engine: Mutex<Option<Arc<Engine>>>,
}

#[pymethods]
impl Network {
    /// Recognises a network by the names and shapes of its tensors.
    #[new]
    #[pyo3(signature = (tensors, preprocessing=None, labels=vec![]))]
    fn new(
        py: Python<'_>,
        tensors: Tensors<'_>,
        preprocessing: Option<Preparation>,
        labels: Vec<String>,
    ) -> PyResult<Self> {
        let preprocessing = preprocessing.map(|(height, width, mean, std)| Preprocessing { height, width, mean, std });
        let recognised = weights(tensors).and_then(|mut weights| {
            let architecture = Architecture::recognise(&mut weights)?;
            Model::new(architecture, weights, Training { preprocessing, labels })
        });
        recognised.map(Self::of).map_err(|error| raise(py, error))
    }

    /// Any network that is told node by node, as JSON.
    #[staticmethod]
    #[pyo3(signature = (graph, tensors, preprocessing=None, labels=vec![]))]
    fn of_graph(
        py: Python<'_>,
        graph: &str,
        tensors: Tensors<'_>,
        preprocessing: Option<Preparation>,
        labels: Vec<String>,
    ) -> PyResult<Self> {
        let preprocessing = preprocessing.map(|(height, width, mean, std)| Preprocessing { height, width, mean, std });
        let model = weights(tensors).and_then(|weights| {
            Model::new(obprox_infer::Network::from_json(graph)?, weights, Training { preprocessing, labels })
        });
        model.map(Self::of).map_err(|error| raise(py, error))
    }

    /// The nodes as JSON.
    fn graph(&self) -> String {
        self.model.network().to_json()
    }

    /// Reads a compressed network or a safetensors file, told by content.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| Model::read(path)).map(Self::of).map_err(|error| raise(py, error))
    }

    /// Writes it compressed, whole or not at all; the size in bytes.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        py.detach(|| self.model.write_compressed(path)).map_err(|error| raise(py, error))
    }

    /// The same network with its weights rounded: f32 (not at all), bf16 or int8.
    fn rounded(&self, py: Python<'_>, values: &str) -> PyResult<Self> {
        let rounded = values.parse::<Values>().and_then(|values| py.detach(|| self.model.rounded(values)));
        rounded.map(Self::of).map_err(|error| raise(py, error))
    }

    /// The same network with the channels cleared that cannot change its output.
    fn without_dead_channels(&self, py: Python<'_>) -> PyResult<Self> {
        let cleared = py.detach(|| self.model.without_dead_channels());
        cleared.map(|(model, _)| Self::of(model)).map_err(|error| raise(py, error))
    }

    /// The same network with those channels cut out.
    fn cut(&self, py: Python<'_>) -> PyResult<Self> {
        py.detach(|| self.model.cut()).map(Self::of).map_err(|error| raise(py, error))
    }

    /// Products that a dense runtime adds up for an input of the size that the network names.
    fn multiply_adds(&self, py: Python<'_>) -> PyResult<usize> {
        self.model.multiply_adds().map_err(|error| raise(py, error))
    }

    /// The channels that come and go together: for each group the rows of the tensors that make it.
    fn channel_groups(&self, py: Python<'_>) -> PyResult<Vec<Vec<(String, usize)>>> {
        py.detach(|| self.model.channel_groups()).map_err(|error| raise(py, error))
    }

    /// Writes it as ONNX, whole or not at all; the size in bytes.
    fn write_onnx(&self, py: Python<'_>, path: PathBuf) -> PyResult<u64> {
        py.detach(|| self.model.write_onnx(path)).map_err(|error| raise(py, error))
    }

    /// Reads an ONNX file; images whose size it leaves open are of `size`.
    #[staticmethod]
    #[pyo3(signature = (path, size=None))]
    fn read_onnx(py: Python<'_>, path: PathBuf, size: Option<[usize; 2]>) -> PyResult<Self> {
        py.detach(|| Model::read_onnx(path, size)).map(Self::of).map_err(|error| raise(py, error))
    }

    /// The scores of each class for each image, on so many threads (0: as many as there are cores).
    fn scores<'py>(
        &self,
        py: Python<'py>,
        images: PyReadonlyArrayDyn<'py, f32>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let images = images.as_array();
        let (count, shape) = match *images.shape() {
            [count, channels, height, width] => (count, [channels, height, width]),
            [count, length] => (count, [length, 1, 1]),
            _ => return Err(raise(py, Error::Data(format!("inputs of shape {:?}", images.shape())))),
        };
        let images: Vec<f32> = images.iter().copied().collect();
        let (scores, of_one) = work(py, threads, || {
            let engine = self.engine(shape)?;
            Ok((engine.run(&images)?, engine.output_shape().to_vec()))
        })?;
        let scores = ArrayD::from_shape_vec([&[count], &of_one[..]].concat(), scores);
        Ok(scores.map_err(|error| raise(py, Error::Data(error.to_string())))?.into_pyarray(py))
    }

    /// Images of bytes, resized and normalised as the network was trained.
    fn prepared<'py>(
        &self,
        py: Python<'py>,
        images: PyReadonlyArray4<'py, u8>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArrayDyn<f32>>> {
        let images = images.as_array();
        let &[count, channels, height, width] = images.shape() else { unreachable!("it has four dimensions") };
        let pixels: Vec<u8> = images.iter().copied().collect();
        let (shape, values) = work(py, threads, || {
            let Some(preprocessing) = &self.model.training().preprocessing else {
                return Err(Error::Data("does not tell how its images are prepared: give prepared floats".into()));
            };
            let images = Images::new([channels, height, width], pixels, None)?;
            Ok((preprocessing.shape(), preprocessing.apply(&images)?))
        })?;
        let values = ArrayD::from_shape_vec([&[count], &shape[..]].concat(), values);
        Ok(values.map_err(|error| raise(py, Error::Data(error.to_string())))?.into_pyarray(py))
    }

    /// The tensors by name.
    fn tensors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        arrays(py, self.model.weights())
    }

    /// The name that a parameter has in this network which PyTorch may know under another; None where it is of no use
    /// after training.
    fn parameter_name(&self, name: &str) -> Option<String> {
        match self.model.design() {
            Design::Known(architecture) => architecture.parameter_name(name),
            Design::Graph(_) => architecture::plain_name(name).map(str::to_owned),
        }
    }

    /// Family, channels of the first convolution, width, channels of the images, classes; None where it is none that is
    /// known by name.
    #[getter]
    fn architecture(&self) -> Option<(&'static str, usize, f64, usize, usize)> {
        let Design::Known(architecture) = self.model.design() else { return None };
        let name = architecture.kind().name();
        Some((name, architecture.base(), architecture.width(), architecture.channels(), architecture.classes()))
    }

    /// The shape of an input, without the batch.
    #[getter]
    fn input_shape(&self) -> Vec<usize> {
        self.model.network().input_shape().to_vec()
    }

    /// The shape of what comes out of such an input, without the batch.
    #[getter]
    fn output_shape(&self) -> Vec<usize> {
        self.model.output_shape().to_vec()
    }

    /// How images are prepared.
    #[getter]
    fn preprocessing(&self) -> Option<Preparation> {
        let preprocessing = self.model.training().preprocessing.clone();
        preprocessing.map(|Preprocessing { height, width, mean, std }| (height, width, mean, std))
    }

    /// The names of the classes; empty where they are just numbered.
    #[getter]
    fn labels(&self) -> Vec<String> {
        self.model.training().labels.clone()
    }

    fn __repr__(&self) -> String {
        self.model.design().to_string()
    }
}

impl Network {
    fn of(model: Model) -> Self {
        Self { model, engine: Mutex::default() }
    }

    /// The engine for images of a size.
    fn engine(&self, shape: [usize; 3]) -> Result<Arc<Engine>> {
        let asked = self.model.channels();
        if shape[0] != asked {
            return Err(Error::Data(format!("images of {} channels for a network that takes {asked}", shape[0])));
        }
        let mut kept = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(engine) if engine.shape() == shape => Ok(engine.clone()),
            _ => {
                let engine = Arc::new(Engine::new(&self.model, Kernels::Auto, [shape[1], shape[2]])?);
                *kept = Some(engine.clone());
                Ok(engine)
            }
        }
    }
}

/// The name of a parameter without what wrappers of PyTorch put before it; None where it is of no use after training.
#[pyfunction]
pub fn plain_name(name: &str) -> Option<&str> {
    architecture::plain_name(name)
}

/// Writes tensors of any network, rounded and compressed, whole or not at all; the size in bytes.
#[pyfunction]
pub fn write_tensors(py: Python<'_>, path: PathBuf, tensors: Tensors<'_>, values: &str) -> PyResult<usize> {
    let rounded = weights(tensors).and_then(|weights| Ok(weights.rounded(values.parse::<Values>()?)));
    let bytes = rounded.and_then(|weights| py.detach(|| weights.to_compressed()));
    let written = bytes.and_then(|bytes| {
        write_whole(&path, |out| out.write_all(&bytes))?;
        Ok(bytes.len())
    });
    written.map_err(|error| raise(py, error))
}

/// The tensors of a compressed network, whatever it is.
#[pyfunction]
pub fn read_tensors(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let read = py.detach(|| {
        let bytes = std::fs::read(&path).map_err(Error::reading(&path))?;
        Weights::from_compressed(&bytes).map_err(|error| error.of_file(&path))
    });
    arrays(py, &read.map_err(|error| raise(py, error))?)
}

fn weights(tensors: Tensors<'_>) -> Result<Weights> {
    let tensor = |array: PyReadonlyArrayDyn<'_, f32>| {
        let array = array.as_array();
        Tensor::new(array.shape(), array.iter().copied().collect())
    };
    tensors.into_iter().map(|(name, array)| Ok((name, tensor(array)?))).collect()
}

fn arrays<'py>(py: Python<'py>, weights: &Weights) -> PyResult<Bound<'py, PyDict>> {
    let arrays = PyDict::new(py);
    for (name, tensor) in weights.iter() {
        let array = ArrayD::from_shape_vec(tensor.shape(), tensor.data().to_vec());
        let array = array.map_err(|error| raise(py, Error::Data(error.to_string())))?;
        arrays.set_item(name, array.into_pyarray(py))?;
    }
    Ok(arrays)
}
