//! Tables with words and gaps: what they become, and that a model finds its columns again.

use std::sync::Arc;

use obprox::data::{Categorical, Dataset, Encoding, Label, Missing, ReadOptions, Recipe, read, read_from};
use obprox::loss::LossKind;
use obprox::{Lambda, Model, Problem, Result, Terms};
use proptest::prelude::*;

fn options(label: &str) -> ReadOptions {
    ReadOptions { label: label.parse().unwrap(), ..ReadOptions::default() }
}

fn all(label: &str, missing: Missing) -> ReadOptions {
    let categorical = Categorical { all: true, names: Vec::new() };
    ReadOptions { encoding: Encoding { categorical, missing, ..Encoding::default() }, ..options(label) }
}

fn from(text: &str, options: &ReadOptions) -> Result<Dataset> {
    read_from("table.csv", std::io::Cursor::new(text.to_owned().into_bytes()), options)
}

/// The rows as dense ones.
fn cells(data: &Dataset) -> Vec<Vec<f64>> {
    let row = |row: usize| {
        let mut cells = vec![0.0; data.matrix.n_cols()];
        data.matrix.for_each(row, |column, value| cells[column] = value);
        cells
    };
    (0..data.matrix.n_rows()).map(row).collect()
}

fn names(data: &Dataset) -> Vec<&str> {
    data.names.as_ref().unwrap().iter().map(String::as_str).collect()
}

const PEOPLE: &str = "\
age,country,plan,churn
31,FR,01,yes
45,DE,1,no
28,FR,\"a, b\",yes
60,US,1,no
";

#[test]
fn words_become_a_feature_for_each_value() {
    let data = from(PEOPLE, &all("churn", Missing::Refuse)).unwrap();
    // A value is its text: 01 and 1 are two. Classes with names are numbered in their order.
    assert_eq!(names(&data), ["age", "country=DE", "country=FR", "country=US", "plan=01", "plan=1", "plan=a, b"]);
    assert_eq!(
        cells(&data),
        [
            [31.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0],
            [45.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
            [28.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            [60.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0],
        ]
    );
    assert_eq!(data.targets[..], [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(data.recipe.unwrap().classes(), ["no", "yes"]);
}

#[test]
fn columns_are_chosen_by_name() {
    let with = |encoding: Encoding| from(PEOPLE, &ReadOptions { encoding, ..options("churn") });
    let categorical = |name: &str| Categorical { all: false, names: vec![name.into()] };
    let kept = with(Encoding { keep: Some(vec!["age".into()]), ..Encoding::default() }).unwrap();
    assert_eq!(names(&kept), ["age"]);
    let drop = vec!["country".into(), "plan".into()];
    assert_eq!(names(&with(Encoding { drop, ..Encoding::default() }).unwrap()), ["age"]);
    // Numbers are categories where their column is named.
    let drop = vec!["country".into(), "plan".into()];
    let ages = with(Encoding { categorical: categorical("age"), drop, ..Encoding::default() }).unwrap();
    assert_eq!(names(&ages), ["age=28", "age=31", "age=45", "age=60"]);

    let refused = |encoding: Encoding| with(encoding).unwrap_err().to_string();
    assert_eq!(
        refused(Encoding { categorical: categorical("city"), ..Encoding::default() }),
        "categorical: no column is named `city`; the columns are age, country, plan, churn"
    );
    assert_eq!(
        refused(Encoding { categorical: categorical("churn"), ..Encoding::default() }),
        "categorical: `churn` is the label's column"
    );
    let drop = ["age", "country", "plan"].map(String::from).to_vec();
    assert!(refused(Encoding { drop, ..Encoding::default() }).contains("no column for features"));
    assert_eq!(
        refused(Encoding { categorical: categorical("country"), ..Encoding::default() }),
        "table.csv:4:7: column `plan`: `a, b` is not a number: encode the column (categorical) or leave it out (drop)"
    );
    let twice = from("a,a,y\n1,2,x\n", &options("y")).unwrap_err().to_string();
    assert_eq!(twice, "table.csv: two columns are named `a`: give each a name of its own");
}

const GAPS: &str = "\
y,size,colour
1,2,red
2,,blue
1,NA,
2,6,red
";

#[test]
fn gaps_are_refused_or_filled() {
    let with = |missing| from(GAPS, &all("y", missing));
    let refused = with(Missing::Refuse).unwrap_err().to_string();
    assert!(refused.starts_with("table.csv: column `size`: 2 values are missing, the first in row 2: "), "{refused}");

    let zero = with(Missing::Zero).unwrap();
    assert_eq!(names(&zero), ["size", "colour=blue", "colour=red"]);
    assert_eq!(cells(&zero), [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [6.0, 0.0, 1.0]]);
    let mean = with(Missing::Mean).unwrap();
    assert_eq!(cells(&mean), [[2.0, 0.0, 1.0], [4.0, 1.0, 0.0], [4.0, 0.0, 0.0], [6.0, 0.0, 1.0]]);
    let indicator = with(Missing::Indicator).unwrap();
    assert_eq!(names(&indicator), ["size", "size:missing", "colour=blue", "colour=red", "colour:missing"]);
    assert_eq!(
        cells(&indicator),
        [[2.0, 0.0, 0.0, 1.0, 0.0], [4.0, 1.0, 1.0, 0.0, 0.0], [4.0, 1.0, 0.0, 0.0, 1.0], [6.0, 0.0, 0.0, 1.0, 0.0],]
    );

    // The mean of the training data stands for what is missing elsewhere, in columns that had no gap too.
    let again = ReadOptions { recipe: mean.recipe, ..ReadOptions::default() };
    let other = from("colour,size,y\nred,,1\ngreen,3,2\n", &again).unwrap();
    assert_eq!(cells(&other), [[4.0, 0.0, 1.0], [3.0, 0.0, 0.0]]);
    let nothing = from("y,a,b\n1,2,\n2,3,\n", &all("y", Missing::Mean)).unwrap_err().to_string();
    assert_eq!(nothing, "table.csv: column `b`: every value is missing: drop the column");
    let label = from("y,a\n1,2\n,3\n", &all("y", Missing::Mean)).unwrap_err().to_string();
    assert!(label.starts_with("table.csv: label column `y`: 1 value is missing, the first in row 2"), "{label}");
}

#[test]
fn a_plain_table_with_gaps_says_how_many() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "y,a,b\n1,2,3\n2,4,\n1,nan,\n").unwrap();
    let refused = read(file.path(), &options("y")).unwrap_err().to_string();
    assert!(refused.contains(": column `a`: 1 value is missing, the first in row 3: "), "{refused}");
}

#[test]
fn words_may_come_late() {
    // Numbers for much longer than the first look at the file.
    let mut text = String::from("y,code\n");
    (0..30_000).for_each(|row| text += &format!("{},{}\n", row % 2, row % 7));
    text += "1,late\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, &text).unwrap();
    let data = read(file.path(), &all("y", Missing::Refuse)).unwrap();
    assert_eq!(names(&data).len(), 8);
    assert_eq!(names(&data)[7], "code=late");
    // A stream cannot be read twice.
    let refused = from(&text, &all("y", Missing::Refuse)).unwrap_err().to_string();
    assert!(refused.starts_with("table.csv:30002:3: column `code`: `late` is not a number"), "{refused}");
}

#[test]
fn without_a_header_columns_are_numbers() {
    let text = "FR,3,1\nDE,4,2\nFR,5,1\n";
    let categorical = Categorical { all: false, names: vec!["1".into()] };
    let encoding = Encoding { categorical, ..Encoding::default() };
    let options = ReadOptions { header: Some(false), label: Label::Last, encoding, ..ReadOptions::default() };
    let data = from(text, &options).unwrap();
    assert_eq!(names(&data), ["1=DE", "1=FR", "2"]);
    let again = ReadOptions { recipe: data.recipe, header: Some(false), ..ReadOptions::default() };
    let other = from(text, &again).unwrap();
    assert_eq!(other.targets[..], [1.0, 2.0, 1.0]);
    let narrow = from("FR,3\n", &again).unwrap_err().to_string();
    assert!(narrow.contains("has 2 columns where the training data has 3"), "{narrow}");
}

/// A model of a table, through its file and back.
fn model(data: Dataset) -> Model {
    let terms = Terms { lambda: Lambda::OfMax(0.1), ..Terms::default() };
    let problem = Problem::new(data, LossKind::Logistic.build(2), &terms).unwrap();
    let model = problem.fit().unwrap().model;
    let again = Model::from_json(&model.to_json(), "model.json").unwrap();
    assert_eq!(again, model);
    again
}

fn for_model(model: &Model, text: &str) -> Result<Dataset> {
    let recipe = model.table.clone().map(Arc::new);
    from(text, &ReadOptions { recipe, with_targets: false, ..ReadOptions::default() })
}

#[test]
fn a_model_finds_its_columns_and_needs_no_others() {
    let mut text = String::from("id,country,noise,age,churn\n");
    for row in 0..200 {
        let (country, age) = (["DE", "FR", "US"][row % 3], row % 50);
        let churn = if (country == "FR") != (age > 40) { "yes" } else { "no" };
        text += &format!("{row},{country},{},{age},{churn}\n", row * 7 % 11);
    }
    let data = from(&text, &all("churn", Missing::Refuse)).unwrap();
    let model = model(data.clone());
    assert_eq!(model.label_names, ["no", "yes"]);
    assert!(model.names.iter().any(|(_, name)| name == "country=FR"));
    let used: Vec<&str> = model.table.as_ref().unwrap().columns().iter().map(|column| &column.name[..]).collect();
    assert!(!used.contains(&"noise"), "{used:?}");

    // Another order, other columns, no label, a country nobody knows.
    let other = "age,new,country,id\n45,x,FR,0\n3,y,DE,0\n3,z,XX,0\n";
    let rows = for_model(&model, other).unwrap();
    let margins = model.margins(&rows.matrix);
    let same = from(
        "id,country,noise,age,churn\n0,FR,1,45,no\n0,DE,1,3,yes\n",
        &ReadOptions { recipe: data.recipe.clone(), label: Label::Last, ..ReadOptions::default() },
    );
    let same = same.unwrap();
    assert_eq!(same.targets[..], [0.0, 1.0]);
    assert_eq!(margins[..2], model.margins(&same.matrix)[..]);
    let block = &model.blocks[0];
    let weight = |name: &str| {
        let of = |&(feature, ref known): &(u32, String)| (known == name).then_some(feature);
        let feature = model.names.iter().find_map(of)?;
        block.indices.iter().position(|&index| index == feature).map(|at| block.values[at])
    };
    let unknown = block.intercept + 3.0 * weight("age").unwrap_or(0.0);
    assert!((margins[2] - unknown).abs() < 1e-12);

    let refused = for_model(&model, "age,id\n1,2\n").unwrap_err().to_string();
    assert_eq!(refused, "table.csv: no column is named `country`, which the model uses; the columns are age, id");
    let words = for_model(&model, "age,country,id\nold,FR,1\n").unwrap_err().to_string();
    assert!(words.contains("`old` is not a number, but the training data has numbers there"), "{words}");
    let gap = for_model(&model, "age,country,id\n,FR,1\n").unwrap_err().to_string();
    assert!(gap.contains("column `age`: 1 value is missing, the first in row 1: the model does not know"), "{gap}");
}

#[test]
fn numbers_with_a_header_are_found_by_name_too() {
    let data = from("y,a,b\n1,0.5,0\n-1,0,2\n1,3,1\n-1,-1,1\n", &options("y")).unwrap();
    let model = model(data.clone());
    let turned = for_model(&model, "b,a\n0,0.5\n2,0\n").unwrap();
    assert_eq!(model.predict(&turned.matrix), [1.0, -1.0]);
    // Without a header their order says which is which.
    let plain = ReadOptions { recipe: data.recipe, ..ReadOptions::default() };
    let by_place = from("1,0.5,0\n-1,0,2\n", &plain).unwrap();
    assert_eq!(model.predict(&by_place.matrix), [1.0, -1.0]);
}

#[test]
fn a_forged_recipe_is_refused() {
    let data = from(PEOPLE, &all("churn", Missing::Indicator)).unwrap();
    let text = model(data).to_json();
    let refuse = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        let error = Model::from_json(&text.replacen(from, to, 1), "m").unwrap_err().to_string();
        assert!(error.starts_with("m: table: "), "{error}");
    };
    refuse("\"classes\":[\"no\",\"yes\"]", "\"classes\":[\"no\",\"yes\",\"z\"]");
    refuse("\"classes\":[\"no\",\"yes\"]", "\"classes\":[\"yes\",\"no\"]");
    refuse("\"number\":0", "\"number\":4294967295");
    refuse("\"number\":0", "\"list\":[0,4294967295]");
    refuse("\"columns\":[", "\"columns\":[{\"name\":\"age\",\"number\":0},");
    let recipe: Recipe = serde_json::from_str(r#"{"columns":[{"name":"a","number":0}]}"#).unwrap();
    assert!(recipe.is_plain() && recipe.label().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any table in blocks of any size is what a look at each cell says.
    #[test]
    fn equals_the_look_at_each_cell(
        rows in proptest::collection::vec((-9i32..9, 0usize..5, proptest::bool::weighted(0.2)), 1..60),
        block in 1usize..200,
    ) {
        // A column of nothing but gaps is refused.
        prop_assume!(rows.iter().any(|row| !row.2));
        const WORDS: [&str; 5] = ["x", "ü", "\"q\"\"\"", "a b", "7"];
        const MEANT: [&str; 5] = ["x", "ü", "q\"", "a b", "7"];
        let mut text = String::from("n,w,y\n");
        for &(number, word, gap) in &rows {
            let number = if gap { "NA".to_owned() } else { number.to_string() };
            text += &format!("{number},{},{}\n", WORDS[word], word % 2);
        }
        let categorical = Categorical { all: false, names: vec!["w".into()] };
        let encoding = Encoding { categorical, missing: Missing::Zero, ..Encoding::default() };
        let data = from(&text, &ReadOptions { block, encoding, ..options("y") }).unwrap();
        let mut known: Vec<&str> = rows.iter().map(|row| MEANT[row.1]).collect();
        known.sort_unstable();
        known.dedup();
        let cells = cells(&data);
        prop_assert_eq!(data.matrix.n_cols(), 1 + known.len());
        for (&(number, word, gap), cells) in rows.iter().zip(cells) {
            prop_assert_eq!(cells[0], if gap { 0.0 } else { f64::from(number) });
            let expected: Vec<f64> = known.iter().map(|&value| f64::from(u8::from(value == MEANT[word]))).collect();
            prop_assert_eq!(&cells[1..], &expected[..]);
        }
    }
}
