//! `model.json`: written whole, read with every field checked.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Block, Model};
use crate::certificate::Certificate;
use crate::data::Recipe;
use crate::loss::{LossKind, Task};
use crate::output::write_whole;
use crate::{Error, Result};

const FORMAT: &str = "obprox-linear";
const VERSION: u32 = 1;

/// The file as it is written: one block in the open, or one a class.
#[derive(Serialize, Deserialize)]
struct ModelFile {
    format: String,
    version: u32,
    loss: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loss_parameter: Option<f64>,
    task: Task,
    n_features: usize,
    #[serde(flatten)]
    block: Option<Block>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    classes: Vec<ClassBlock>,
    labels: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    label_names: Vec<String>,
    lambda: f64,
    #[serde(default)]
    l2: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    penalty: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<(u32, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<Recipe>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    offset: bool,
    certificate: Option<Certificate>,
}

#[derive(Serialize, Deserialize)]
struct ClassBlock {
    label: f64,
    #[serde(flatten)]
    block: Block,
}

impl Model {
    /// The model as JSON text.
    pub fn to_json(&self) -> String {
        let single = self.task != Task::Classes;
        let file = ModelFile {
            format: FORMAT.into(),
            version: VERSION,
            loss: self.loss.clone(),
            loss_parameter: self.loss_parameter,
            task: self.task,
            n_features: self.n_features,
            block: single.then(|| self.blocks[0].clone()),
            classes: if single { Vec::new() } else { self.class_blocks() },
            labels: self.labels.clone(),
            label_names: self.label_names.clone(),
            lambda: self.lambda,
            l2: self.l2,
            penalty: self.penalty.clone(),
            names: self.names.clone(),
            table: self.table.clone(),
            offset: self.offset,
            certificate: self.certificate.clone(),
        };
        serde_json::to_string(&file).expect("a model has only finite numbers and strings") + "\n"
    }

    fn class_blocks(&self) -> Vec<ClassBlock> {
        let pairs = self.labels.iter().zip(&self.blocks);
        pairs.map(|(&label, block)| ClassBlock { label, block: block.clone() }).collect()
    }

    /// Reads JSON text; `file` is the name for messages.
    pub fn from_json(text: &str, file: &str) -> Result<Self> {
        let wrong = |message: String| Error::file(file, message);
        let read: ModelFile = serde_json::from_str(text).map_err(|error| Error::Parse {
            file: file.into(),
            line: error.line().max(1) as u64,
            column: error.column().max(1) as u64,
            // serde_json says the place again at the end.
            message: format!(
                "not an obprox model: {}",
                error.to_string().split(" at line ").next().unwrap_or_default()
            ),
        })?;
        if read.format != FORMAT || read.version != VERSION {
            let found = format!("{} version {}", read.format, read.version);
            return Err(wrong(format!("the format is {found}; this obprox reads {FORMAT} version {VERSION}")));
        }
        // A loss of a user's own has a name we do not know, and any task.
        let known = LossKind::from_name(&read.loss, read.loss_parameter);
        if known.is_some_and(|kind| kind.build(2).task() != read.task) {
            return Err(wrong(format!("the {} loss is not for the task it names", read.loss)));
        }
        let blocks: Vec<Block> = match (read.task, read.block) {
            (Task::Classes, _) => read.classes.into_iter().map(|class| class.block).collect(),
            (_, Some(block)) => vec![block],
            (_, None) => return Err(wrong("intercept, indices and values are missing".into())),
        };
        let expected = match read.task {
            Task::Binary => 2,
            Task::Classes if blocks.len() < 2 => return Err(wrong("several classes need a block each".into())),
            Task::Classes => blocks.len(),
            Task::Regression | Task::Counts | Task::Survival => 0,
        };
        if read.labels.len() != expected {
            return Err(wrong(format!("{} labels where {expected} are needed", read.labels.len())));
        }
        if !read.label_names.is_empty() && read.label_names.len() != expected {
            return Err(wrong(format!("{} names for {expected} labels", read.label_names.len())));
        }
        if !read.labels.windows(2).all(|pair| pair[0] < pair[1]) {
            return Err(wrong("labels must rise".into()));
        }
        if read.n_features > u32::MAX as usize {
            return Err(wrong(format!("{} features; at most {} are supported", read.n_features, u32::MAX)));
        }
        for block in &blocks {
            if block.indices.len() != block.values.len() {
                let (indices, values) = (block.indices.len(), block.values.len());
                return Err(wrong(format!("{indices} indices but {values} values")));
            }
            let rising = block.indices.windows(2).all(|pair| pair[0] < pair[1]);
            if !rising || block.indices.last().is_some_and(|&last| last as usize >= read.n_features) {
                return Err(wrong(format!("indices must rise and stay below {}", read.n_features)));
            }
            if !block.values.iter().chain([&block.intercept]).all(|value| value.is_finite()) {
                return Err(wrong("a weight is not a finite number".into()));
            }
        }
        if let Some(recipe) = &read.table {
            recipe.check(read.n_features, expected).map_err(|flaw| wrong(format!("table: {flaw}")))?;
        }
        Ok(Self {
            loss: read.loss,
            loss_parameter: read.loss_parameter,
            task: read.task,
            n_features: read.n_features,
            labels: read.labels,
            label_names: read.label_names,
            blocks,
            lambda: read.lambda,
            l2: read.l2,
            penalty: read.penalty,
            names: read.names,
            table: read.table,
            offset: read.offset,
            certificate: read.certificate,
        })
    }

    /// Writes `model.json`, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write_whole(path.as_ref(), |out| out.write_all(self.to_json().as_bytes()))
    }

    /// Reads `model.json`.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(Error::reading(path))?;
        Self::from_json(&text, &path.display().to_string())
    }
}
