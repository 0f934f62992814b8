//! model.json.

use obprox::Model;
use obprox::loss::LossKind;

use super::problem;
use crate::Reader;

pub fn models() -> Reader {
    let problems = [problem(LossKind::Logistic, 2), problem(LossKind::Softmax, 3)];
    let json = |problem: &obprox::Problem| problem.fit().expect("it is sound").model.to_json().into_bytes();
    let seeds = problems.iter().map(json).collect();
    let [rows, _] = problems;
    Reader::new("model", seeds, move |bytes| {
        let Ok(text) = str::from_utf8(bytes) else { return false };
        let Ok(model) = Model::from_json(text, "model.json") else { return false };
        assert_eq!(model.predict(rows.matrix()).len(), rows.matrix().n_rows());
        // A model of a loss that is not known here has finite weights all the same, or was refused.
        assert!(model.blocks.iter().flat_map(|block| &block.values).all(|value| value.is_finite()));
        assert_eq!(Model::from_json(&model.to_json(), "again").expect("it was written here"), model);
        true
    })
}
