//! Files → what the library wants, with names for messages.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use obprox::data::{Buffer, Dataset, Label, ReadOptions, ShardedData, read, read_pieces};
use obprox::metrics::Metrics;
use obprox::{Lambda, Model, Problem};

use crate::destination::{check_distinct, check_file};
use crate::failure::Failure;
use crate::flags::{DataFlags, MemoryFlags, ProblemFlags, TableFlags, sources};
use crate::{show, watch};

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
    let names = read_names(file)?;
    check_names(&names, data.matrix.n_cols(), file)?;
    data.widen(names.len());
    data.names = Some(names);
    Ok(())
}

/// The names of a file, a line each.
fn read_names(file: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(file).map_err(obprox::Error::reading(file))?;
    let names: Vec<String> = text.lines().map(str::to_owned).collect();
    match names.iter().position(|name| name.trim().is_empty()) {
        Some(line) => {
            Err(Failure::input(format!("--names {}:{}: is empty: each line names a feature", file.display(), line + 1)))
        }
        None => Ok(names),
    }
}

/// Refuses fewer names than the data has features.
fn check_names(names: &[String], has: usize, file: &Path) -> Result<(), Failure> {
    let (given, file) = (names.len(), file.display());
    match given < has {
        true => Err(Failure::input(format!("--names {file}: has {given} names, but the data has {has} features"))),
        false => Ok(()),
    }
}

/// Labels that are needed cannot be left out.
fn check_label(flags: &DataFlags) -> Result<(), Failure> {
    match flags.label {
        Some(Label::Absent) => Err(Failure::input("--label none: labels are needed here; only predict does without")),
        _ => Ok(()),
    }
}

/// Reads rows for a model and hands them out some at a time, so that files may be larger than memory: the columns of a
/// table are found by name, whatever their order, and made into features as in the training data. Labels are passed over
/// where they are not wanted.
pub fn for_model(
    model: &Model,
    data: &[PathBuf],
    flags: &DataFlags,
    with_targets: bool,
    each: &mut dyn FnMut(Dataset) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if with_targets {
        check_label(flags)?;
    }
    let recipe = model.table.clone().map(Arc::new);
    let options = ReadOptions { recipe, with_targets, ..flags.options() };
    let names = flags.names.as_deref().map(|file| read_names(file).map(|names| (names, file))).transpose()?;
    for path in sources(data)? {
        let (mut columns, mut is_first, mut failure) = (0, true, None);
        let mut take = |mut piece: Dataset| {
            columns = columns.max(piece.matrix.n_cols());
            if let Some((names, file)) = &names {
                check_names(names, columns, file)?;
                piece.names = is_first.then(|| names.clone());
            }
            check_names_of(model, &piece, &path)?;
            is_first = false;
            each(piece)
        };
        let outcome = read_pieces(&path, &options, &mut |piece| {
            // The library knows no failures of ours: this one ends the reading and is handed on below.
            take(piece).map_err(|error| {
                failure = Some(error);
                obprox::Error::Data(String::new())
            })
        });
        failure.map_or(Ok(()), Err)?;
        outcome?;
        if columns > model.n_features {
            let (file, knows) = (shown(&path), model.n_features);
            show::say(&format!("note: {file}: {columns} columns, the model knows the first {knows}"));
        }
    }
    Ok(())
}

/// Data to score a model on, in memory or in shards.
pub enum Test {
    Memory(Dataset),
    Shards(Arc<ShardedData>),
}

impl Test {
    /// How well a model does on it.
    pub fn measure(&self, model: &Model) -> obprox::Result<Metrics> {
        match self {
            Self::Memory(data) => model.evaluate(data),
            Self::Shards(data) => model.evaluate_shards(data),
        }
    }

    fn targets(&self) -> obprox::Result<Buffer<f64>> {
        match self {
            Self::Memory(data) => Ok(data.targets.clone()),
            Self::Shards(data) => data.targets(),
        }
    }
}

/// Reads training and test data and states the problem; everything that could be wrong with them is refused here.
pub fn problem(
    data: &Path,
    test: Option<&Path>,
    problem: &ProblemFlags,
    lambda: Lambda,
    (reading, table): (&DataFlags, &TableFlags),
    quiet: bool,
) -> Result<(Problem, Option<Test>), Failure> {
    check_label(reading)?;
    let rows = self::data(data, reading, table, quiet)?;
    let options = ReadOptions { recipe: rows.recipe.clone(), ..reading.options() };
    let test_rows = test.map(|path| read_as(path, reading, &options, quiet).map(Test::Memory)).transpose()?;
    let problem = problem.problem(rows, data, lambda, quiet)?;
    check_labels(&problem, test_rows.as_ref().zip(test))?;
    Ok((problem, test_rows))
}

/// The same of files that are read shard by shard, where `--memory` asks for that.
pub fn problem_of(
    data: &[PathBuf],
    test: Option<&Path>,
    problem: &ProblemFlags,
    lambda: Lambda,
    (reading, table, memory): (&DataFlags, &TableFlags, &MemoryFlags),
    quiet: bool,
) -> Result<(Problem, Option<Test>), Failure> {
    let Some(shards) = memory.shards(data, &reading.options(), quiet)? else {
        return self::problem(&data[0], test, problem, lambda, (reading, table), quiet);
    };
    let options = ReadOptions { recipe: shards.recipe().cloned().map(Arc::new), ..reading.options() };
    let of_test = |path: &Path| memory.shards(&[path.to_owned()], &options, quiet);
    let test_rows = test.map(of_test).transpose()?.flatten();
    test_rows.iter().for_each(|test| shards.leave_room_for(test));
    let problem = problem.problem_of_shards(shards, lambda, quiet)?;
    let test_rows = test_rows.map(Test::Shards);
    check_labels(&problem, test_rows.as_ref().zip(test))?;
    Ok((problem, test_rows))
}

/// Refuses test rows whose label the problem does not know, before any training.
fn check_labels(problem: &Problem, test: Option<(&Test, &Path)>) -> Result<(), Failure> {
    let Some((test, file)) = test.filter(|_| !problem.labels().is_empty()) else { return Ok(()) };
    let (known, targets) = (problem.labels(), test.targets()?);
    match targets.iter().position(|label| !known.contains(label)) {
        None => Ok(()),
        Some(row) => Err(Failure::input(format!(
            "{}: row {}: the label {} does not occur in the training data, which has {}",
            shown(file),
            row + 1,
            targets[row],
            crate::show::listed(known)
        ))),
    }
}

/// Compares the names of columns with those of a model, where both have them.
fn check_names_of(model: &Model, data: &Dataset, file: &Path) -> Result<(), Failure> {
    let Some(names) = &data.names else { return Ok(()) };
    for (feature, expected) in &model.names {
        match names.get(*feature as usize) {
            Some(found) if found != expected => {
                return Err(Failure::input(format!(
                    "{}: feature {} is named {found:?}, but {expected:?} in the model: the columns must have the order \
                     of the training data",
                    shown(file),
                    feature + 1
                )));
            }
            _ => {}
        }
    }
    Ok(())
}
