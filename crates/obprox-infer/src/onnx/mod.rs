//! ONNX ↔ [`Model`]. Only the messages that networks need are read and written, by hand: they are few, and nothing in
//! them nests without end.

mod export;
mod import;
mod operations;
mod proto;
mod wire;

use std::path::Path;

use obprox::output::write_whole;
use obprox::{Error, Result};

use crate::model::Model;

impl Model {
    /// Reads an ONNX file. What the engine cannot compute is refused by the name of the operation. Images whose size
    /// the file leaves open are taken to be of `size`.
    pub fn read_onnx(path: impl AsRef<Path>, size: Option<[usize; 2]>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(Error::reading(path))?;
        Self::from_onnx(&bytes, size).map_err(|error| error.of_file(path))
    }

    /// The same from the bytes of such a file.
    pub fn from_onnx(bytes: &[u8], size: Option<[usize; 2]>) -> Result<Self> {
        let flaw = |_| Error::Data("is no sound ONNX file: export it again from its source".into());
        let model = proto::Model::decode(bytes).map_err(flaw)?;
        import::model(model, size)
    }

    /// Writes an ONNX file, whole or not at all; its size in bytes.
    pub fn write_onnx(&self, path: impl AsRef<Path>) -> Result<u64> {
        let bytes = self.to_onnx()?;
        write_whole(path.as_ref(), |out| out.write_all(&bytes))?;
        Ok(bytes.len() as u64)
    }

    /// The bytes of such a file.
    pub fn to_onnx(&self) -> Result<Vec<u8>> {
        Ok(export::model(self)?.encode())
    }
}
