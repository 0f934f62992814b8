//! model.json.

use obprox::Model;
use obprox::loss::LossKind;

use super::problem;
use crate::Reader;

pub fn models() -> Reader {
    let problems = [problem(LossKind::Logistic, 2), problem(LossKind::Softmax, 3)];
    let json = |problem: &obprox::Problem| problem.fit().expect("it is sound").model.to_json().into_bytes();
    let mut seeds: Vec<Vec<u8>> = problems.iter().map(json).collect();
    seeds.push(of_a_table());
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

/// A model that knows words, gaps and lists, though few of them fit its rows.
fn of_a_table() -> Vec<u8> {
    let columns = r#"{"name":"a","number":0,"missing":{"value":1.5,"indicator":1}},
        {"name":"b","categories":[[2,"x"],[4,"y"]]},{"name":"c","list":[5,7]}"#;
    let table = format!(r#"{{"label":"l","classes":["no","yes"],"columns":[{columns}]}}"#);
    let text = format!(
        r#"{{"format":"obprox-linear","version":1,"loss":"logistic","task":"binary","n_features":12,"intercept":0.5,
        "indices":[1,4],"values":[1.0,-2.0],"labels":[0.0,1.0],"label_names":["no","yes"],"lambda":0.1,
        "names":[[1,"a:missing"],[4,"b=y"]],"table":{table},"certificate":null}}"#
    );
    text.into_bytes()
}
