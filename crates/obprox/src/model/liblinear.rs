//! LIBLINEAR's own model file, for its `predict` program.
//!
//! A header of `key value` lines, then one line a feature with one weight a class; a bias feature of value 1 comes last.
//! Of two classes only the first label's weights are stored: a positive margin means the first label.

use std::path::Path;

use super::Model;
use crate::loss::{Loss, Task};
use crate::output::write_whole;
use crate::{Error, Result};

impl Model {
    /// Writes the model in LIBLINEAR's format, whole or not at all.
    pub fn save_liblinear(&self, path: impl AsRef<Path>) -> Result<()> {
        let text = self.to_liblinear()?;
        write_whole(path.as_ref(), |out| out.write_all(text.as_bytes()))
    }

    /// Whether models of a loss and labels can be written in LIBLINEAR's format: to be asked before training.
    pub fn check_liblinear(loss: &dyn Loss, labels: &[f64]) -> Result<()> {
        solver_type(loss.task(), loss.name(), labels).map(drop)
    }

    /// The model as LIBLINEAR's text.
    pub fn to_liblinear(&self) -> Result<String> {
        let solver = solver_type(self.task, &self.loss, &self.labels)?;
        let labels: Vec<String> = match self.task {
            // +1, the larger label, is the class of positive margins.
            Task::Binary => self.labels.iter().rev().map(f64::to_string).collect(),
            _ => self.labels.iter().map(f64::to_string).collect(),
        };
        let mut text = format!("solver_type {solver}\nnr_class {}\n", self.labels.len().max(2));
        if !labels.is_empty() {
            text += &format!("label {}\n", labels.join(" "));
        }
        text += &format!("nr_feature {}\nbias 1\nw\n", self.n_features);
        let width = self.blocks.len();
        let mut next = vec![0; width];
        for feature in 0..self.n_features as u32 {
            for (block, at) in self.blocks.iter().zip(&mut next) {
                let found = block.indices.get(*at) == Some(&feature);
                let weight = if found { block.values[*at] } else { 0.0 };
                *at += usize::from(found);
                text += &format!("{weight} ");
            }
            text.push('\n');
        }
        for block in &self.blocks {
            text += &format!("{} ", block.intercept);
        }
        text.push('\n');
        Ok(text)
    }
}

/// LIBLINEAR's name for a solver of such models.
fn solver_type(task: Task, loss: &str, labels: &[f64]) -> Result<&'static str> {
    if labels.iter().any(|label| label.fract() != 0.0) {
        return Err(Error::parameter("format", "LIBLINEAR's labels are integers, and these are not"));
    }
    match (task, loss) {
        (Task::Binary, "squared-hinge") => Ok("L1R_L2LOSS_SVC"),
        (Task::Binary | Task::Classes, _) => Ok("L1R_LR"),
        (Task::Regression, _) => Ok("L2R_L2LOSS_SVR"),
        (Task::Counts, loss) => {
            let message = format!("LIBLINEAR has no model for the {loss} loss; write obprox's own format");
            Err(Error::parameter("format", message))
        }
    }
}
