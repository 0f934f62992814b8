//! The messages of ONNX that networks need.

use super::wire::{Fields, Malformed, Message};

type Decoded<T> = Result<T, Malformed>;

#[derive(Default)]
pub struct Model {
    pub graph: Graph,
    /// Version of the operations.
    pub opset: i64,
    pub metadata: Vec<(String, String)>,
}

#[derive(Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub initializers: Vec<Tensor>,
    pub inputs: Vec<Info>,
    pub outputs: Vec<Info>,
}

#[derive(Default)]
pub struct Node {
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub name: String,
    pub op: String,
    pub domain: String,
    pub attributes: Vec<Attribute>,
}

#[derive(Default)]
pub struct Attribute {
    pub name: String,
    pub float: f32,
    pub number: i64,
    pub text: Vec<u8>,
    pub numbers: Vec<i64>,
    pub floats: Vec<f32>,
    pub tensor: Option<Tensor>,
    pub kind: i64,
}

/// An input or an output: its name and its dimensions, `None` where they are open.
#[derive(Default)]
pub struct Info {
    pub name: String,
    pub shape: Vec<Option<i64>>,
}

#[derive(Clone, Default)]
pub struct Tensor {
    pub name: String,
    pub shape: Vec<i64>,
    pub kind: i64,
    pub raw: Vec<u8>,
    pub floats: Vec<f32>,
    pub numbers: Vec<i64>,
    /// Whether its values are in another file.
    pub external: bool,
}

/// Types of attributes and tensors.
pub mod kind {
    pub const ATTRIBUTE_FLOAT: i64 = 1;
    pub const ATTRIBUTE_NUMBER: i64 = 2;
    pub const ATTRIBUTE_TEXT: i64 = 3;
    pub const ATTRIBUTE_NUMBERS: i64 = 7;
    pub const FLOAT: i64 = 1;
    pub const INT64: i64 = 7;
}

const IR_VERSION: i64 = 9;

impl Model {
    pub fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut model = Self::default();
        for field in Fields(bytes) {
            match field? {
                (7, value) => model.graph = Graph::decode(value.bytes()?)?,
                (8, value) => {
                    let (mut domain, mut version) = (String::new(), 0);
                    for field in Fields(value.bytes()?) {
                        match field? {
                            (1, value) => domain = value.text()?,
                            (2, value) => version = value.number()?,
                            _ => {}
                        }
                    }
                    if domain.is_empty() || domain == "ai.onnx" {
                        model.opset = version;
                    }
                }
                (14, value) => {
                    let mut entry = (String::new(), String::new());
                    for field in Fields(value.bytes()?) {
                        match field? {
                            (1, value) => entry.0 = value.text()?,
                            (2, value) => entry.1 = value.text()?,
                            _ => {}
                        }
                    }
                    model.metadata.push(entry);
                }
                _ => {}
            }
        }
        Ok(model)
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut message = Message::default();
        message.number(1, IR_VERSION);
        message.text(2, "obprox");
        message.message(7, self.graph.encode());
        let mut opset = Message::default();
        opset.number(2, self.opset);
        message.message(8, opset);
        for (key, value) in &self.metadata {
            let mut entry = Message::default();
            entry.text(1, key);
            entry.text(2, value);
            message.message(14, entry);
        }
        message.0
    }
}

impl Graph {
    fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut graph = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, value) => graph.nodes.push(Node::decode(value.bytes()?)?),
                (5, value) => graph.initializers.push(Tensor::decode(value.bytes()?)?),
                (11, value) => graph.inputs.push(Info::decode(value.bytes()?)?),
                (12, value) => graph.outputs.push(Info::decode(value.bytes()?)?),
                _ => {}
            }
        }
        Ok(graph)
    }

    fn encode(&self) -> Message {
        let mut message = Message::default();
        self.nodes.iter().for_each(|node| message.message(1, node.encode()));
        message.text(2, "obprox");
        self.initializers.iter().for_each(|tensor| message.message(5, tensor.encode()));
        self.inputs.iter().for_each(|info| message.message(11, info.encode()));
        self.outputs.iter().for_each(|info| message.message(12, info.encode()));
        message
    }
}

impl Node {
    fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut node = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, value) => node.inputs.push(value.text()?),
                (2, value) => node.outputs.push(value.text()?),
                (3, value) => node.name = value.text()?,
                (4, value) => node.op = value.text()?,
                (5, value) => node.attributes.push(Attribute::decode(value.bytes()?)?),
                (7, value) => node.domain = value.text()?,
                _ => {}
            }
        }
        Ok(node)
    }

    fn encode(&self) -> Message {
        let mut message = Message::default();
        // An input that is left out is an empty name, and must be there.
        self.inputs.iter().for_each(|input| message.bytes(1, input.as_bytes()));
        self.outputs.iter().for_each(|output| message.text(2, output));
        message.text(3, &self.name);
        message.text(4, &self.op);
        self.attributes.iter().for_each(|attribute| message.message(5, attribute.encode()));
        message
    }
}

impl Attribute {
    fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut attribute = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, value) => attribute.name = value.text()?,
                (2, value) => attribute.float = value.float()?,
                (3, value) => attribute.number = value.number()?,
                (4, value) => attribute.text = value.bytes()?.to_vec(),
                (5, value) => attribute.tensor = Some(Tensor::decode(value.bytes()?)?),
                (7, value) => value.push_floats(&mut attribute.floats)?,
                (8, value) => value.push_numbers(&mut attribute.numbers)?,
                (20, value) => attribute.kind = value.number()?,
                _ => {}
            }
        }
        Ok(attribute)
    }

    fn encode(&self) -> Message {
        let mut message = Message::default();
        message.text(1, &self.name);
        match self.kind {
            kind::ATTRIBUTE_FLOAT => message.float(2, self.float),
            kind::ATTRIBUTE_NUMBER => message.number(3, self.number),
            kind::ATTRIBUTE_TEXT => message.bytes(4, &self.text),
            _ => message.numbers(8, &self.numbers),
        }
        message.number(20, self.kind);
        message
    }
}

impl Info {
    fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut info = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, value) => info.name = value.text()?,
                (2, value) => {
                    let shape = inner(inner(value.bytes()?, 1)?, 2)?;
                    for field in Fields(shape) {
                        let (1, value) = field? else { continue };
                        let mut size = None;
                        for field in Fields(value.bytes()?) {
                            if let (1, value) = field? {
                                size = Some(value.number()?);
                            }
                        }
                        info.shape.push(size);
                    }
                }
                _ => {}
            }
        }
        Ok(info)
    }

    fn encode(&self) -> Message {
        let mut shape = Message::default();
        for size in &self.shape {
            let mut dimension = Message::default();
            match size {
                Some(size) => dimension.number(1, *size),
                None => dimension.text(2, "batch"),
            }
            shape.message(1, dimension);
        }
        let (mut tensor, mut of_type, mut message) = (Message::default(), Message::default(), Message::default());
        tensor.number(1, kind::FLOAT);
        tensor.message(2, shape);
        of_type.message(1, tensor);
        message.text(1, &self.name);
        message.message(2, of_type);
        message
    }
}

/// The last message of a number within a message; an empty one where there is none.
fn inner(bytes: &[u8], number: u64) -> Decoded<&[u8]> {
    Fields(bytes).try_fold(&[][..], |found, field| match field? {
        (field, value) if field == number => value.bytes(),
        _ => Ok(found),
    })
}

impl Tensor {
    fn decode(bytes: &[u8]) -> Decoded<Self> {
        let mut tensor = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, value) => value.push_numbers(&mut tensor.shape)?,
                (2, value) => tensor.kind = value.number()?,
                (4, value) => value.push_floats(&mut tensor.floats)?,
                (5 | 7, value) => value.push_numbers(&mut tensor.numbers)?,
                (8, value) => tensor.name = value.text()?,
                (9, value) => tensor.raw = value.bytes()?.to_vec(),
                (13, _) => tensor.external = true,
                _ => {}
            }
        }
        Ok(tensor)
    }

    fn encode(&self) -> Message {
        let mut message = Message::default();
        message.numbers(1, &self.shape);
        message.number(2, self.kind);
        message.text(8, &self.name);
        message.bytes(9, &self.raw);
        message
    }
}
