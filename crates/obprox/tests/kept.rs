//! Work in many parts that is broken off and taken up again: to the same bits, and what was done is not done again.

use std::cell::Cell;

use obprox::cv::Validated;
use obprox::data::Synth;
use obprox::loss::LossKind;
use obprox::path::{Found, Steps, at_most, at_most_kept};
use obprox::{Control, CrossValidation, Lambdas, Observer, Path, Problem, Progress, Settings, Start, Terms};

fn problem(seed: u64) -> Problem {
    let data = Synth { rows: 150, cols: 60, per_row: 20.0, support: 8, seed, ..Synth::default() }.generate().unwrap();
    Problem::new(data.dataset, LossKind::Logistic.build(2), &Terms::default()).unwrap()
}

/// Counts runs, and breaks off in the last that it allows.
struct Patience<'a> {
    begun: &'a Cell<usize>,
    most: usize,
}

impl Observer for Patience<'_> {
    fn start(&mut self, _: &Start) {
        self.begun.set(self.begun.get() + 1);
    }

    fn step(&mut self, _: &Progress) -> Control {
        if self.begun.get() > self.most { Control::Stop } else { Control::Continue }
    }
}

fn bits(steps: &Steps) -> Vec<String> {
    steps
        .steps
        .iter()
        .map(|step| format!("{} {:?} {:?}", step.model.to_json(), step.status, step.certificate))
        .collect()
}

#[test]
fn a_path() {
    let (problem, begun) = (problem(1), Cell::new(0));
    let path = |directory: &std::path::Path, most, resume| {
        begun.set(0);
        let mut patience = Patience { begun: &begun, most };
        let lambdas = Lambdas::Spaced { count: 35, ratio: None };
        Path::new(&problem).lambdas(lambdas).observe(&mut patience).checkpoint(directory, resume).run().unwrap()
    };
    let whole = tempfile::tempdir().unwrap();
    let alone = path(whole.path(), 1000, false);
    for (most, done) in [(0, 0), (5, 0), (10, 10), (17, 10), (33, 30)] {
        let directory = tempfile::tempdir().unwrap();
        assert!(path(directory.path(), most, false).stopped);
        let resumed = path(directory.path(), 1000, true);
        assert_eq!(bits(&resumed), bits(&alone), "broken off at {most}");
        assert_eq!(begun.get(), 35 - done, "broken off at {most}");
    }
    // What is done is there to be looked at again, and a damaged part is done again.
    let again = path(whole.path(), 1000, true);
    assert!(begun.get() == 0 && bits(&again) == bits(&alone));
    assert_eq!(again.steps[3].seconds, alone.steps[3].seconds);
    let part = whole.path().join("path-1.obprox-part");
    let text = std::fs::read_to_string(&part).unwrap();
    std::fs::write(&part, text.replacen('1', "2", 40)).unwrap();
    assert!(bits(&path(whole.path(), 1000, true)) == bits(&alone) && begun.get() == 10);
}

#[test]
fn other_work_is_refused_or_replaced() {
    let (one, other) = (problem(1), problem(2));
    let directory = tempfile::tempdir().unwrap();
    let lambdas = |count| Lambdas::Spaced { count, ratio: None };
    let path =
        |problem, count, resume| Path::new(problem).lambdas(lambdas(count)).checkpoint(directory.path(), resume).run();
    path(&one, 12, true).unwrap();
    for refused in [path(&other, 12, true), path(&one, 13, true)] {
        assert!(refused.unwrap_err().to_string().contains("is of other work"));
    }
    let tolerant = Settings { tolerance: 1e-3, ..Settings::default() };
    let refused = Path::new(&one).settings(tolerant).lambdas(lambdas(12)).checkpoint(directory.path(), true).run();
    assert!(refused.is_err());
    // Anew, nothing of the old is left.
    path(&other, 3, false).unwrap();
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn folds() {
    let problem = problem(3);
    let directory = tempfile::tempdir().unwrap();
    let count = std::sync::atomic::AtomicUsize::new(0);
    let validate = |most: usize, resume| -> Validated {
        count.store(0, std::sync::atomic::Ordering::Relaxed);
        let watch = |_: &_| match count.load(std::sync::atomic::Ordering::Relaxed) >= most {
            true => Control::Stop,
            false => Control::Continue,
        };
        let visit = |_: usize, _: usize, _: &obprox::Fit| _ = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let lambdas = Lambdas::Spaced { count: 25, ratio: None };
        let validation = CrossValidation::new(&problem).folds(3).lambdas(lambdas).watch(&watch).visit(&visit);
        validation.checkpoint(directory.path(), resume).run().unwrap()
    };
    let alone = validate(usize::MAX, false);
    assert!(validate(40, false).stopped);
    let kept = std::fs::read_dir(directory.path()).unwrap().count() - 1;
    assert!(kept > 0, "a part of some fold was done");
    let resumed = validate(usize::MAX, true);
    assert_eq!(resumed.scores, alone.scores);
    assert_eq!((resumed.best, resumed.one_se, resumed.fold), (alone.best, alone.one_se, alone.fold));
}

#[test]
fn a_search_for_a_number_of_features() {
    let (problem, begun) = (problem(4), Cell::new(0));
    let settings = Settings::default();
    let directory = tempfile::tempdir().unwrap();
    let search = |most, resume| -> Found {
        begun.set(0);
        let mut patience = Patience { begun: &begun, most };
        at_most_kept(&problem, 7, &settings, Some(&mut patience), (directory.path(), resume)).unwrap()
    };
    let alone = at_most(&problem, 7, &settings, None).unwrap();
    search(4, false);
    let resumed = search(1000, true);
    assert_eq!((resumed.lambda, resumed.features, resumed.tried), (alone.lambda, alone.features, alone.tried));
    assert_eq!(resumed.fit.model, alone.fit.model);
    assert!(begun.get() <= alone.tried - 4, "{} of {} again", begun.get(), alone.tried);
}

/// Puts a directory where a part should be written, as a full disk would, and says what to do about it.
struct Obstacle {
    part: std::path::PathBuf,
    answer: Control,
    told: usize,
}

impl Observer for Obstacle {
    fn start(&mut self, _: &Start) {
        std::fs::create_dir_all(&self.part).unwrap();
    }

    fn unsaved(&mut self, error: &obprox::Error) -> Control {
        assert!(error.to_string().contains("cannot write"), "{error}");
        self.told += 1;
        self.answer
    }
}

#[test]
fn what_cannot_be_kept_ends_the_work_unless_the_observer_goes_on_without() {
    let problem = problem(3);
    let lambdas = || Lambdas::Spaced { count: 12, ratio: None };
    let alone = Path::new(&problem).lambdas(lambdas()).checkpoint(tempfile::tempdir().unwrap().path(), false).run();
    for answer in [Control::Stop, Control::Continue] {
        let directory = tempfile::tempdir().unwrap();
        let obstacle = |name: &str| Obstacle { part: directory.path().join(name), answer, told: 0 };

        let mut watch = obstacle("path-0.obprox-part");
        let path = Path::new(&problem).lambdas(lambdas()).observe(&mut watch).checkpoint(directory.path(), false).run();
        assert_eq!(path.is_ok(), answer == Control::Continue);
        path.into_iter().for_each(|path| assert_eq!(bits(&path), bits(alone.as_ref().unwrap())));
        assert_eq!(watch.told, 1);

        let mut watch = obstacle("nnz/nnz-0.obprox-part");
        let place = directory.path().join("nnz");
        let found = at_most_kept(&problem, 5, &Settings::default(), Some(&mut watch), (&place, false));
        assert_eq!((found.is_ok(), watch.told), (answer == Control::Continue, 1));

        let mut watch = obstacle("run/checkpoint.obprox");
        let run = obprox::Run::new(&problem, Settings::default()).observe(&mut watch);
        let fit = run.checkpoint(directory.path().join("run"), false).fit();
        assert_eq!((fit.is_ok(), watch.told > 0), (answer == Control::Continue, true));

        // Folds tell of it from several threads; here the first part of one is in the way.
        let place = directory.path().join("folds");
        let (unsaved, part) = (|_: &obprox::Error| answer, place.join("fold-1-0.obprox-part"));
        let watch = |_: &_| {
            std::fs::create_dir_all(&part).unwrap();
            Control::Continue
        };
        let folds = CrossValidation::new(&problem).lambdas(lambdas()).folds(3).watch(&watch).unsaved(&unsaved);
        assert_eq!(folds.checkpoint(&place, false).run().is_ok(), answer == Control::Continue);
    }
}
