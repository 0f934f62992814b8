//! Names and shapes of parameters → the network they belong to.

use obprox::{Error, Result};

use super::{Architecture, Kind};
use crate::weights::Weights;

/// What wrappers of PyTorch put before every name: `DataParallel` and `torch.compile`.
const WRAPPERS: [&str; 2] = ["module.", "_orig_mod."];

/// Counted by every batch norm of PyTorch and of no use after training.
const BATCH_COUNTER: &str = ".num_batches_tracked";

/// Other names in use for parts of ResNet18.
const RESNET_ALIASES: [(&str, &str); 2] = [(".shortcut.", ".downsample."), ("linear.", "fc.")];

/// The name of a parameter without its wrappers; `None` where the parameter is of no use after training.
pub fn plain_name(name: &str) -> Option<&str> {
    let mut name = name;
    while let Some(rest) = WRAPPERS.iter().find_map(|wrapper| name.strip_prefix(wrapper)) {
        name = rest;
    }
    (!name.ends_with(BATCH_COUNTER)).then_some(name)
}

impl Architecture {
    /// The network that parameters of these names and shapes belong to. Known other names are changed to ours.
    pub fn recognise(weights: &mut Weights) -> Result<Self> {
        let kind = if weights.get("layer1.0.conv1.weight").is_some() {
            rename_aliases(weights);
            Kind::ResNet18
        } else if weights.get("layers.0.conv1.weight").is_some() {
            Kind::MobileNetV1
        } else if weights.get("conv3.weight").is_some() {
            Kind::SmallCnn
        } else {
            let known = Kind::ALL.map(Kind::name).join(", ");
            return Err(Error::Data(format!("its parameters are of no known network: {known}")));
        };
        let head = if kind == Kind::MobileNetV1 { "linear.weight" } else { "fc.weight" };
        let sizes = |name: &str| match weights.get(name).map(|tensor| tensor.shape()) {
            Some(&[outputs, inputs, ..]) => Ok((outputs, inputs)),
            _ => Err(Error::Data(format!("{kind} asks for a parameter {name} of two dimensions or more"))),
        };
        let ((base, channels), (classes, _)) = (sizes("conv1.weight")?, sizes(head)?);
        let architecture = Self { kind, base, channels, classes }.checked()?;
        architecture.check(weights)?;
        Ok(architecture)
    }

    /// The name that a parameter has here which PyTorch may know under another; `None` where it is of no use after
    /// training.
    pub fn parameter_name(&self, name: &str) -> Option<String> {
        let name = plain_name(name)?;
        Some(if self.kind == Kind::ResNet18 { without_aliases(name) } else { name.to_owned() })
    }

    /// That the parameters are exactly those of the network.
    pub fn check(&self, weights: &Weights) -> Result<()> {
        let parameters = self.graph().parameters();
        for parameter in &parameters {
            let name = &parameter.name;
            match weights.get(name) {
                None => return Err(Error::Data(format!("{self} asks for a parameter {name}, which is missing"))),
                Some(tensor) if tensor.shape() != parameter.shape => {
                    let (found, asked) = (tensor.shape(), &parameter.shape);
                    return Err(Error::Data(format!("{name} is of shape {found:?}, and {self} asks for {asked:?}")));
                }
                Some(_) => {}
            }
        }
        let foreign = weights.names().find(|name| parameters.iter().all(|parameter| parameter.name != *name));
        match foreign {
            Some(name) => Err(Error::Data(format!("{self} has no parameter {name}"))),
            None => Ok(()),
        }
    }
}

fn rename_aliases(weights: &mut Weights) {
    let names: Vec<String> = weights.names().map(str::to_owned).collect();
    for found in names {
        let name = without_aliases(&found);
        if name != found
            && let Some(tensor) = weights.remove(&found)
        {
            weights.insert(name, tensor);
        }
    }
}

fn without_aliases(name: &str) -> String {
    RESNET_ALIASES.iter().fold(name.to_owned(), |name, (alias, ours)| name.replace(alias, ours))
}
