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
        // Two classes share one column of weights, in which a positive margin means the first label: here the larger
        // one, as for +1. Two blocks of softmax are the same as their difference.
        let two = self.labels.len() == 2;
        let labels: Vec<String> = match two {
            true => self.labels.iter().rev().map(f64::to_string).collect(),
            false => self.labels.iter().map(f64::to_string).collect(),
        };
        let line = |weights: &[f64]| match *weights {
            [smaller, larger] if two => format!("{} \n", larger - smaller),
            _ => weights.iter().map(|weight| format!("{weight} ")).collect::<String>() + "\n",
        };
        let mut text = format!("solver_type {solver}\nnr_class {}\n", self.labels.len().max(2));
        if !labels.is_empty() {
            text += &format!("label {}\n", labels.join(" "));
        }
        text += &format!("nr_feature {}\nbias 1\nw\n", self.n_features);
        let mut next = vec![0; self.blocks.len()];
        let mut weights = vec![0.0; self.blocks.len()];
        for feature in 0..self.n_features as u32 {
            for ((block, at), weight) in self.blocks.iter().zip(&mut next).zip(&mut weights) {
                let found = block.indices.get(*at) == Some(&feature);
                *weight = if found { block.values[*at] } else { 0.0 };
                *at += usize::from(found);
            }
            text += &line(&weights);
        }
        text += &line(&self.blocks.iter().map(|block| block.intercept).collect::<Vec<_>>());
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
        (Task::Counts | Task::Survival, loss) => {
            let message = format!("LIBLINEAR has no model for the {loss} loss; write obprox's own format");
            Err(Error::parameter("format", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Block;

    #[test]
    fn two_classes_have_one_column() {
        let block = |intercept, value| Block { intercept, indices: vec![1], values: vec![value] };
        let mut model = Model {
            loss: "softmax".into(),
            loss_parameter: None,
            task: Task::Classes,
            n_features: 2,
            labels: vec![3.0, 8.0],
            label_names: Vec::new(),
            blocks: vec![block(0.25, -1.0), block(0.5, 2.0)],
            lambda: 0.1,
            l2: 0.0,
            penalty: None,
            names: Vec::new(),
            table: None,
            offset: false,
            certificate: None,
        };
        let expected = "solver_type L1R_LR\nnr_class 2\nlabel 8 3\nnr_feature 2\nbias 1\nw\n0 \n3 \n0.25 \n";
        assert_eq!(model.to_liblinear().unwrap(), expected);
        model.labels.push(9.0);
        model.blocks.push(block(0.0, 0.5));
        assert!(
            model
                .to_liblinear()
                .unwrap()
                .ends_with("label 3 8 9\nnr_feature 2\nbias 1\nw\n0 0 0 \n-1 2 0.5 \n0.25 0.5 0 \n")
        );
    }
}
