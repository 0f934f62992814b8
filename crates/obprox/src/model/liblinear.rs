//! LIBLINEAR's own model file, for its `predict` program.
//!
//! A header of `key value` lines, then one line a feature with one weight a class; a bias feature of value 1 comes last.
//! Of two classes only one column of weights is stored, and a positive margin means the first label; a softmax of two
//! classes is the difference of its blocks.

use std::path::Path;

use super::Model;
use crate::loss::Task;
use crate::output::write_whole;
use crate::{Error, Result};

impl Model {
    /// Writes the model in LIBLINEAR's format, whole or not at all.
    pub fn save_liblinear(&self, path: impl AsRef<Path>) -> Result<()> {
        let text = self.to_liblinear()?;
        write_whole(path.as_ref(), |out| out.write_all(text.as_bytes()))
    }

    /// The model as LIBLINEAR's text.
    pub fn to_liblinear(&self) -> Result<String> {
        let solver = match (self.task, self.loss.as_str()) {
            (Task::Binary, "squared-hinge") => "L1R_L2LOSS_SVC",
            (Task::Binary | Task::Classes, _) => "L1R_LR",
            (Task::Regression, _) => "L2R_L2LOSS_SVR",
            (Task::Counts, loss) => {
                let message = format!("LIBLINEAR has no model for the {loss} loss; write obprox's own format");
                return Err(Error::parameter("format", message));
            }
        };
        let labels: Vec<String> = match self.task {
            // +1, the larger label, is the class of positive margins.
            Task::Binary => self.labels.iter().rev().map(f64::to_string).collect(),
            _ => self.labels.iter().map(f64::to_string).collect(),
        };
        if self.labels.iter().any(|label| label.fract() != 0.0) {
            return Err(Error::parameter("format", "LIBLINEAR's labels are integers, and these are not"));
        }
        let mut text = format!("solver_type {solver}\nnr_class {}\n", self.labels.len().max(2));
        if !labels.is_empty() {
            text += &format!("label {}\n", labels.join(" "));
        }
        text += &format!("nr_feature {}\nbias 1\nw\n", self.n_features);
        let mut next = vec![0; self.blocks.len()];
        for feature in 0..self.n_features as u32 {
            let weights = self.blocks.iter().zip(&mut next).map(|(block, at)| {
                let found = block.indices.get(*at) == Some(&feature);
                let weight = if found { block.values[*at] } else { 0.0 };
                *at += usize::from(found);
                weight
            });
            push_line(&mut text, weights.collect());
        }
        push_line(&mut text, self.blocks.iter().map(|block| block.intercept).collect());
        Ok(text)
    }
}

/// One line of weights: one a block, or the difference of two.
fn push_line(text: &mut String, mut weights: Vec<f64>) {
    if let [first, second] = weights[..] {
        weights = vec![first - second];
    }
    weights.iter().for_each(|weight| *text += &format!("{weight} "));
    text.push('\n');
}
