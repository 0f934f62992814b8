//! Files → what the library wants, with names for messages.

use std::path::Path;
use std::sync::Arc;

use obprox::data::{Dataset, Label, ReadOptions, ShardedData, read};
use obprox::{Lambda, Model, Problem};

use crate::destination::{check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{DataFlags, ProblemFlags, TableFlags};
use crate::watch;

/// The name of a data file as messages and tables show it.
pub fn shown(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() }
}

/// The files of a run that trains: standard input is read once at most, every output can be written, and none of them
/// is an input or another output.
pub fn check_paths(
    data: &Path,
    test: Option<&Path>,
    problem: &ProblemFlags,
    writes: &[(&str, Option<&Path>)],
) -> Result<(), Failure> {
    let reads = [
        ("DATA", Some(data)),
        ("--test", test),
        ("--weights", problem.weights.as_deref()),
        ("--offset", problem.offset.as_deref()),
        ("--feature-weights", problem.feature_weights.as_deref()),
        ("--bounds", problem.penalty.bounds.as_deref()),
        ("--groups", problem.penalty.groups_file()),
        ("--group-weight", problem.penalty.group_weight_file()),
    ];
    if test.is_some() && problem.offset.is_some() {
        return Err(Failure::input("--offset: --test has rows without offsets; measure with eval --offset"));
    }
    if reads.iter().filter_map(|(_, path)| *path).filter(|path| path.as_os_str() == "-").count() > 1 {
        return Err(Failure::input("-: standard input can be given for one file only"));
    }
    for (flag, path) in writes {
        if let Some(path) = path {
            check_file(flag, path)?;
        }
    }
    // One input at a time: two inputs may well be the same file.
    for read in reads {
        check_distinct(&[&[read], writes].concat())?;
    }
    Ok(())
}

/// Reads a data set whose columns become features as the flags say, with a sign of life on a terminal.
pub fn data(path: &Path, flags: &DataFlags, table: &TableFlags, quiet: bool) -> Result<Dataset, Failure> {
    read_as(path, flags, &ReadOptions { encoding: table.encoding(), ..flags.options() }, quiet)
}

fn read_as(path: &Path, flags: &DataFlags, options: &ReadOptions, quiet: bool) -> Result<Dataset, Failure> {
    let _waiting = watch::waiting(format!("reading {}", shown(path)), quiet);
    let mut data = read(path, options)?;
    if let Some(names) = &flags.names {
        name_features(&mut data, names)?;
    }
    Ok(data)
}

/// Gives the features the names of a file, a line each; features that only the names know of are empty columns.
fn name_features(data: &mut Dataset, file: &Path) -> Result<(), Failure> {
    let text = std::fs::read_to_string(file).map_err(obprox::Error::reading(file))?;
    let names: Vec<String> = text.lines().map(str::to_owned).collect();
    let (has, given, file) = (data.matrix.n_cols(), names.len(), file.display());
    if let Some(line) = names.iter().position(|name| name.trim().is_empty()) {
        return Err(Failure::input(format!("--names {file}:{}: is empty: each line names a feature", line + 1)));
    }
    if given < has {
        return Err(Failure::input(format!("--names {file}: has {given} names, but the data has {has} features")));
    }
    data.widen(given);
    data.names = Some(names);
    Ok(())
}

/// Labels that are needed cannot be left out.
fn check_label(flags: &DataFlags) -> Result<(), Failure> {
    match flags.label {
        Some(Label::Absent) => Err(Failure::input("--label none: labels are needed here; only predict does without")),
        _ => Ok(()),
    }
}

/// Reads rows for a model: the columns of a table are found by name, whatever their order, and made into features as in
/// the training data. Labels are passed over where they are not wanted.
pub fn for_model(model: &Model, path: &Path, flags: &DataFlags, with_targets: bool) -> Result<Dataset, Failure> {
    if with_targets {
        check_label(flags)?;
    }
    let recipe = model.table.clone().map(Arc::new);
    let data = read_as(path, flags, &ReadOptions { recipe, with_targets, ..flags.options() }, false)?;
    check_columns(model, &data, path)?;
    Ok(data)
}

/// Reads training and test data and states the problem; everything that could be wrong with them is refused here.
pub fn problem(
    data: &Path,
    test: Option<&Path>,
    problem: &ProblemFlags,
    lambda: Lambda,
    (reading, table): (&DataFlags, &TableFlags),
    quiet: bool,
) -> Result<(Problem, Option<Dataset>), Failure> {
    check_label(reading)?;
    let rows = self::data(data, reading, table, quiet)?;
    let options = ReadOptions { recipe: rows.recipe.clone(), ..reading.options() };
    let test_rows = test.map(|path| read_as(path, reading, &options, quiet)).transpose()?;
    let problem = problem.problem(rows, data, lambda, quiet)?;
    check_labels(&problem, test_rows.as_ref().zip(test))?;
    Ok((problem, test_rows))
}

/// The same of rows that are read shard by shard; the test data is in memory.
pub fn problem_of_shards(
    shards: Arc<ShardedData>,
    test: Option<&Path>,
    problem: &ProblemFlags,
    lambda: Lambda,
    (reading, table): (&DataFlags, &TableFlags),
    quiet: bool,
) -> Result<(Problem, Option<Dataset>), Failure> {
    check_label(reading)?;
    let rows = test.map(|path| self::data(path, reading, table, quiet)).transpose()?;
    let problem = problem.problem_of_shards(shards, lambda, quiet)?;
    check_labels(&problem, rows.as_ref().zip(test))?;
    Ok((problem, rows))
}

/// Refuses test rows whose label the problem does not know, before any training.
fn check_labels(problem: &Problem, test: Option<(&Dataset, &Path)>) -> Result<(), Failure> {
    let Some((test, file)) = test else { return Ok(()) };
    let known = problem.labels();
    let unknown = |label: &f64| !known.is_empty() && !known.contains(label);
    match test.targets.iter().position(unknown) {
        None => Ok(()),
        Some(row) => Err(Failure::input(format!(
            "{}: row {}: the label {} does not occur in the training data, which has {}",
            shown(file),
            row + 1,
            test.targets[row],
            crate::show::listed(known)
        ))),
    }
}

/// Compares the columns of data with those of a model: names must agree where both have them, and columns that the
/// model does not know are worth a word.
fn check_columns(model: &Model, data: &Dataset, file: &Path) -> Result<(), Failure> {
    if let Some(names) = &data.names {
        for (feature, expected) in &model.names {
            match names.get(*feature as usize) {
                Some(found) if found != expected => {
                    return Err(Failure::input(format!(
                        "{}: feature {} is named {found:?}, but {expected:?} in the model: the columns must have the \
                         order of the training data",
                        shown(file),
                        feature + 1
                    )));
                }
                _ => {}
            }
        }
    }
    let (has, knows) = (data.matrix.n_cols(), model.n_features);
    if has > knows {
        eprintln!("obprox: note: {}: {has} columns, the model knows the first {knows}", shown(file));
    }
    Ok(())
}
