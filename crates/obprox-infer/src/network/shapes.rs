//! The shape of every value, from that of the input and those of the tensors.

use obprox::{Error, Result};

use super::check::{check_node, check_shape};
use super::{Network, Node, NodeId, Op, Window};
use crate::weights::Weights;

/// The shape of each value, without the batch.
pub type Shapes = Vec<Vec<usize>>;

impl Network {
    /// The shape of every value for inputs of a shape. Checks that every node fits its inputs and its tensors.
    pub fn shapes(&self, weights: &Weights, input: &[usize]) -> Result<Shapes> {
        self.shapes_by(&|name| weights.get(name).map(|tensor| tensor.shape()), input)
    }

    /// The shape of the newest value, from those of all before it.
    pub(crate) fn shape_of(
        &self,
        id: NodeId,
        shapes: &[Vec<usize>],
        weights: &Weights,
    ) -> std::result::Result<Vec<usize>, String> {
        let node = &self.nodes()[id];
        check_node(id, node)?;
        let inputs: Vec<&[usize]> = node.inputs.iter().map(|&input| shapes[input].as_slice()).collect();
        let shape = shape_of(node, &inputs, &|name| weights.get(name).map(|tensor| tensor.shape()))?;
        check_shape(&shape)?;
        Ok(shape)
    }

    /// The same with the shapes of tensors alone, before anything is allocated for them.
    pub(crate) fn shapes_by<'a>(
        &self,
        tensor: &dyn Fn(&str) -> Option<&'a [usize]>,
        input: &[usize],
    ) -> Result<Shapes> {
        let mut shapes: Shapes = Vec::with_capacity(self.nodes().len());
        for (id, node) in self.nodes().iter().enumerate() {
            let of = |at: usize| shapes[node.inputs[at]].as_slice();
            let shape = match &node.op {
                Op::Input { shape } if shape.len() != input.len() || shape[0] != input[0] => {
                    Err(format!("takes {shape:?}, and is given {input:?}"))
                }
                Op::Input { .. } => Ok(input.to_vec()),
                _ => {
                    let inputs: Vec<&[usize]> = (0..node.inputs.len()).map(of).collect();
                    shape_of(node, &inputs, tensor)
                }
            };
            let shape = shape.and_then(|shape| check_shape(&shape).map(|()| shape));
            shapes.push(shape.map_err(|flaw| Error::Data(format!("{}: {flaw}", node.described(id))))?);
        }
        Ok(shapes)
    }
}

type Flawed<T> = std::result::Result<T, String>;

fn shape_of<'a>(node: &Node, inputs: &[&[usize]], tensor: &dyn Fn(&str) -> Option<&'a [usize]>) -> Flawed<Vec<usize>> {
    let given = inputs[0];
    let tensor = |name: &str| tensor(name).ok_or_else(|| format!("its tensor {name} is missing"));
    let vector = |name: &Option<String>, length: usize| match name {
        Some(name) if tensor(name)? != [length] => {
            Err(format!("{name} is of shape {:?} and should be of [{length}]", tensor(name)?))
        }
        _ => Ok(()),
    };
    match &node.op {
        Op::Conv { weight, bias, window, groups } => {
            let [channels, height, width] = image(given)?;
            let &[outputs, seen, rows, columns] = tensor(weight)? else {
                return Err(format!("{weight} is no weight of a convolution"));
            };
            if outputs == 0 || [rows, columns] != window.kernel {
                return Err(format!("{weight} is no kernel of {:?}", window.kernel));
            }
            if seen.checked_mul(*groups) != Some(channels) || outputs % groups != 0 {
                return Err(format!("{outputs} outputs in {groups} groups that see {seen} of {channels} channels"));
            }
            vector(bias, outputs)?;
            windowed(outputs, [height, width], window, false)
        }
        Op::Linear { weight, bias } => {
            let (&[length], &[outputs, inputs]) = (given, tensor(weight)?) else {
                return Err(format!("it takes a matrix and a vector, and is given {given:?}: flatten it before"));
            };
            if length != inputs || outputs == 0 {
                return Err(format!("{weight} takes {inputs} values, and is given {length}"));
            }
            vector(bias, outputs)?;
            Ok(vec![outputs])
        }
        Op::BatchNorm { weight, bias, mean, var, .. } => {
            for name in [weight.clone(), bias.clone(), Some(mean.clone()), Some(var.clone())] {
                vector(&name, given[0])?;
            }
            Ok(given.to_vec())
        }
        Op::Add | Op::Multiply => broadcast(given, inputs[1]),
        Op::Concat => concatenated(inputs),
        Op::MaxPool { window, ceil } | Op::AveragePool { window, ceil, .. } => {
            let [channels, height, width] = image(given)?;
            windowed(channels, [height, width], window, *ceil)
        }
        Op::AdaptiveAveragePool { size } => Ok(vec![image(given)?[0], size[0], size[1]]),
        Op::Upsample { scale } => {
            let [channels, height, width] = image(given)?;
            Ok(vec![channels, height * scale[0], width * scale[1]])
        }
        Op::Flatten => Ok(vec![given.iter().product()]),
        Op::Reshape { shape } if shape.iter().product::<usize>() != given.iter().product::<usize>() => {
            Err(format!("{given:?} cannot take the shape {shape:?}"))
        }
        Op::Reshape { shape } => Ok(shape.clone()),
        Op::Input { .. } => Err("is not the first node".into()),
        _ => Ok(given.to_vec()),
    }
}

fn image(shape: &[usize]) -> Flawed<[usize; 3]> {
    <[usize; 3]>::try_from(shape).map_err(|_| format!("is given {shape:?}, and takes [channels, height, width]"))
}

fn windowed(channels: usize, [height, width]: [usize; 2], window: &Window, ceil: bool) -> Flawed<Vec<usize>> {
    let sides = window.output_side(0, height, ceil).zip(window.output_side(1, width, ceil));
    let (rows, columns) = sides.ok_or_else(|| format!("images of {height}×{width} pixels are too small for it"))?;
    Ok(vec![channels, rows, columns])
}

fn broadcast(one: &[usize], two: &[usize]) -> Flawed<Vec<usize>> {
    let fits = |large: &[usize], small: &[usize]| {
        large == small || large.len() == 3 && small.len() == 3 && large[0] == small[0] && small[1..] == [1, 1]
    };
    match (fits(one, two), fits(two, one)) {
        (true, _) => Ok(one.to_vec()),
        (_, true) => Ok(two.to_vec()),
        _ => Err(format!("{one:?} and {two:?} do not go together")),
    }
}

fn concatenated(inputs: &[&[usize]]) -> Flawed<Vec<usize>> {
    let mut shape = inputs[0].to_vec();
    for input in &inputs[1..] {
        if input.len() != shape.len() || input[1..] != shape[1..] {
            return Err(format!("{shape:?} and {input:?} do not go together"));
        }
        shape[0] += input[0];
    }
    Ok(shape)
}
