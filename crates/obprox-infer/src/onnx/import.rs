//! ONNX → [`Model`]: nodes one after the other, each as the node or the few nodes of a network that it is.

use std::collections::{HashMap, HashSet};

use obprox::{Error, Result};

use super::export::METADATA_KEY;
use super::proto;
use crate::model::{Model, Training};
use crate::network::{Network, Node, NodeId, Op};
use crate::weights::{Tensor, Weights, element_count};

/// The oldest version of the operations whose meaning is known here, by and large.
const OLDEST: i64 = 7;

/// What is wrong with a node.
pub(super) type Flawed<T> = std::result::Result<T, String>;

pub fn model(model: proto::Model, size: Option<[usize; 2]>) -> Result<Model> {
    if model.graph.nodes.is_empty() {
        return Err(Error::Data("is no ONNX file, or one without a network".into()));
    }
    if model.opset < OLDEST {
        let version = model.opset;
        return Err(Error::Data(format!("has operations of version {version}: export it with {OLDEST} or later")));
    }
    let described = model.metadata.iter().find(|(key, _)| key == METADATA_KEY);
    let training: Training = described.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default();
    let proto::Graph { nodes, initializers, inputs, outputs } = model.graph;
    let mut constants = HashMap::new();
    for tensor in initializers {
        let name = tensor.name.clone();
        constants.insert(name.clone(), constant(&tensor).map_err(|flaw| Error::Data(format!("{name} {flaw}")))?);
    }
    let inputs: Vec<proto::Info> = inputs.into_iter().filter(|input| !constants.contains_key(&input.name)).collect();
    let ([input], [output]) = (&inputs[..], &outputs[..]) else {
        let (takes, gives) = (inputs.len(), outputs.len());
        return Err(Error::Data(format!("takes {takes} inputs and gives {gives} outputs: one of each can be served")));
    };
    let shape = input_shape(input, size)?;
    let mut importer = Importer {
        network: Network::new(&shape),
        shapes: vec![shape],
        values: HashMap::from([(input.name.clone(), 0)]),
        constants,
        weights: Weights::new(),
    };
    for (at, node) in nodes.iter().enumerate() {
        importer.node(node).map_err(|flaw| {
            let name = if node.name.is_empty() { format!("node {at}") } else { node.name.clone() };
            Error::Data(format!("{name} ({}): {flaw}", node.op))
        })?;
    }
    let Some(&output) = importer.values.get(&output.name) else {
        return Err(Error::Data(format!("no node makes the output {}", output.name)));
    };
    let network = reaching(&importer.network, output);
    let mut weights = importer.weights;
    let taken: HashSet<String> = network.uses().into_keys().map(str::to_owned).collect();
    let left_over: Vec<String> = weights.names().filter(|name| !taken.contains(*name)).map(str::to_owned).collect();
    left_over.iter().for_each(|name| drop(weights.remove(name)));
    Model::new(network, weights, training)
}

/// The shape of an input without its batch.
fn input_shape(input: &proto::Info, size: Option<[usize; 2]>) -> Result<Vec<usize>> {
    let open = || Error::Data(format!("leaves the size of {} open: say --size", input.name));
    let side = |at: usize, given: &Option<i64>| match (given, size) {
        (Some(size), _) if *size > 0 => Ok(*size as usize),
        (_, Some(sides)) if at > 0 => Ok(sides[at - 1]),
        _ => Err(open()),
    };
    match &input.shape[..] {
        [_, rest @ ..] if rest.len() == 1 || rest.len() == 3 => {
            rest.iter().enumerate().map(|(at, given)| side(at, given)).collect()
        }
        other => {
            let dimensions = other.len();
            let message = format!("{} has {dimensions} dimensions: (batch, channels, height, width)", input.name);
            Err(Error::Data(format!("{message} or (batch, length) can be served")))
        }
    }
}

/// The nodes that a value is made of, and no others.
fn reaching(network: &Network, output: NodeId) -> Network {
    let nodes = network.nodes();
    let mut reached = vec![false; nodes.len()];
    (reached[0], reached[output]) = (true, true);
    for id in (0..nodes.len()).rev().filter(|&id| id <= output) {
        if reached[id] {
            nodes[id].inputs.iter().for_each(|&input| reached[input] = true);
        }
    }
    let mut number = vec![0; nodes.len()];
    let mut kept: Vec<Node> = Vec::new();
    for (id, node) in nodes.iter().enumerate().filter(|(id, _)| reached[*id]) {
        number[id] = kept.len();
        kept.push(Node { inputs: node.inputs.iter().map(|&input| number[input]).collect(), ..node.clone() });
    }
    Network::of_nodes(kept)
}

/// A constant of the graph: floats, or whole numbers as shapes are told in.
#[derive(Clone)]
pub(super) enum Constant {
    Floats(Tensor),
    Numbers(Vec<i64>),
}

pub(super) fn constant(tensor: &proto::Tensor) -> Flawed<Constant> {
    if tensor.external {
        return Err("lies in another file: save the network in one file".into());
    }
    let shape: Option<Vec<usize>> = tensor.shape.iter().map(|&size| usize::try_from(size).ok()).collect();
    let shape = shape.ok_or("has a negative size")?;
    let len = element_count(&shape).ok_or("is too large")?;
    let raw = &tensor.raw;
    let constant = match tensor.kind {
        1 if !tensor.floats.is_empty() => Constant::Floats(floats(shape, tensor.floats.clone())?),
        1 => Constant::Floats(floats(shape, raw.as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect())?),
        6 if tensor.numbers.is_empty() => {
            Constant::Numbers(raw.as_chunks::<4>().0.iter().map(|&b| i32::from_le_bytes(b).into()).collect())
        }
        7 if tensor.numbers.is_empty() => {
            Constant::Numbers(raw.as_chunks::<8>().0.iter().map(|&b| i64::from_le_bytes(b)).collect())
        }
        6 | 7 => Constant::Numbers(tensor.numbers.clone()),
        other => return Err(format!("is of type {other}: floats of 32 bits and whole numbers are known")),
    };
    match &constant {
        Constant::Numbers(numbers) if numbers.len() != len => Err("has another size than it says".into()),
        _ => Ok(constant),
    }
}

fn floats(shape: Vec<usize>, data: Vec<f32>) -> Flawed<Tensor> {
    Tensor::new(shape, data).map_err(|error| error.to_string())
}

pub(super) struct Importer {
    pub network: Network,
    pub shapes: Vec<Vec<usize>>,
    /// The node that makes each value.
    pub values: HashMap<String, NodeId>,
    pub constants: HashMap<String, Constant>,
    pub weights: Weights,
}

impl Importer {
    fn node(&mut self, node: &proto::Node) -> Flawed<()> {
        if !node.domain.is_empty() && node.domain != "ai.onnx" {
            return Err(format!("is of {}, whose operations are not known", node.domain));
        }
        let output = node.outputs.first().ok_or("makes nothing")?.clone();
        if self.values.contains_key(&output) || self.constants.contains_key(&output) {
            return Err(format!("makes {output}, which is there already"));
        }
        match self.operation(node)? {
            Made::Value(id) => drop(self.values.insert(output, id)),
            Made::Constant(constant) => drop(self.constants.insert(output, constant)),
        }
        Ok(())
    }

    /// The value of an input that must be computed.
    pub fn input(&self, node: &proto::Node, at: usize) -> Flawed<NodeId> {
        let name = node.inputs.get(at).ok_or("lacks an input")?;
        match self.values.get(name) {
            Some(&id) => Ok(id),
            None if self.constants.contains_key(name) => Err(format!("takes the constant {name} where a value goes")),
            None => Err(format!("takes {name}, which no node before it makes")),
        }
    }

    /// The constant of an input, where it is there and is one.
    pub fn constant(&self, node: &proto::Node, at: usize) -> Option<&Constant> {
        node.inputs.get(at).and_then(|name| self.constants.get(name))
    }

    /// A weight that a node takes, now among those of the network.
    pub fn weight(&mut self, node: &proto::Node, at: usize) -> Flawed<String> {
        let name = node.inputs.get(at).ok_or("lacks a weight")?.clone();
        match self.constants.get(&name) {
            Some(Constant::Floats(tensor)) => {
                if self.weights.get(&name).is_none() {
                    self.weights.insert(&name, tensor.clone());
                }
                Ok(name)
            }
            _ => Err(format!("{name} is no constant of floats: weights that are computed are not known")),
        }
    }

    /// The same where it may be left out.
    pub fn optional(&mut self, node: &proto::Node, at: usize) -> Flawed<Option<String>> {
        match node.inputs.get(at) {
            Some(name) if !name.is_empty() => self.weight(node, at).map(Some),
            _ => Ok(None),
        }
    }

    /// Adds a tensor of our own.
    pub fn add_weight(&mut self, name: String, shape: &[usize], data: Vec<f32>) -> Flawed<String> {
        self.weights.insert(&name, floats(shape.to_vec(), data)?);
        Ok(name)
    }

    pub fn push(&mut self, name: &str, op: Op, inputs: &[NodeId]) -> Flawed<Made> {
        let id = self.network.push(name, op, inputs);
        let shape = self.network.shape_of(id, &self.shapes, &self.weights)?;
        self.shapes.push(shape);
        Ok(Made::Value(id))
    }
}

/// What came of a node.
pub(super) enum Made {
    Value(NodeId),
    Constant(Constant),
}
