//! Rows on other machines: the bits of a fit are those of the same shards on a disk, whoever has them and whatever is lost.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::shards::{LOSSES, dataset, write_text};
use obprox::data::{Buffer, ReadOptions, ShardedData, Sharding, read};
use obprox::loss::LossKind;
use obprox::penalty::{Bounds, Groups, Penalty};
use obprox::remote::{Engine, Pieces, RemoteData, Shard, add, cut, is_kept, work};
use obprox::{ClassWeights, Fit, Lambda, MethodKind, Problem, Result, Run, Settings, Terms};

/// Shards that are files, each asked by a thread of its own in no order that anyone knows.
struct Threads {
    files: Vec<PathBuf>,
    /// Weights of all rows.
    weights: Option<Vec<f64>>,
    /// Offsets of all rows.
    offsets: Option<Vec<f64>>,
    rows: usize,
    /// Numbers of a reply that are added up on their way.
    piece: Option<usize>,
    asked: Arc<AtomicUsize>,
    /// How often replies were added up, and the most bytes of one sum; of one reply where nothing is added up.
    added: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

impl Threads {
    fn new(files: Vec<PathBuf>, weights: Option<Vec<f64>>, rows: usize) -> Self {
        let (asked, added, most) = Default::default();
        Self { files, weights, offsets: None, rows, piece: None, asked, added, most }
    }

    fn shard(&self, at: usize) -> Result<Shard> {
        let shard = Shard::open(&self.files[at], &ReadOptions::default())?;
        let first = at * self.rows;
        let rows = first..first + shard.data.targets.len();
        let own = |all: &Option<Vec<f64>>| all.as_ref().map(|all| Buffer::from(all[rows.clone()].to_vec()));
        shard.beside(own(&self.weights), own(&self.offsets))
    }
}

impl Engine for Threads {
    fn map(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let replies: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let ask = |at: usize| scope.spawn(move || work(at, request, || self.shard(at)));
            let asked: Vec<_> = (0..self.files.len()).map(ask).collect();
            asked.into_iter().map(|reply| reply.join().unwrap()).collect()
        });
        replies.iter().try_for_each(|reply| {
            if self.piece.is_none() {
                self.most.fetch_max(reply.len(), Ordering::Relaxed);
            }
            each(reply)
        })
    }

    fn piece(&self) -> Option<usize> {
        self.piece
    }

    fn reduce(&self, request: &[u8], pieces: Pieces, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.added.fetch_add(1, Ordering::Relaxed);
        let ask = |at: usize| cut(&work(at, request, || self.shard(at)), pieces);
        let cut: Vec<Vec<Vec<u8>>> = (0..self.files.len()).map(ask).collect();
        // Pieces are added up in any order; those of one are in the order of the shards.
        let sum = |at: usize| add(&cut.iter().map(|shard| &shard[at]).collect::<Vec<_>>());
        let mut sums: Vec<Vec<u8>> = (0..pieces.count).rev().map(sum).collect();
        sums.reverse();
        sums.iter().try_for_each(|sum| {
            self.most.fetch_max(sum.len(), Ordering::Relaxed);
            each(sum)
        })
    }
}

fn on_disk(source: &Path, cache: &Path, rows: usize, n_cols: usize) -> Arc<ShardedData> {
    let options = ReadOptions { n_cols: Some(n_cols), ..ReadOptions::default() };
    let sharding = Sharding { cache: cache.into(), memory: 1 << 32, rows: Some(rows) };
    Arc::new(ShardedData::open(&[source.into()], &options, &sharding, &mut |_, _| {}).unwrap())
}

fn files_of(shards: &ShardedData) -> Vec<PathBuf> {
    (0..shards.n_shards()).map(|at| shards.directory().join(format!("{at:06}.obx"))).collect()
}

fn fit(problem: &Problem) -> Fit {
    Run::new(problem, Settings { tolerance: 1e-6, ..Settings::default() }).fit().unwrap()
}

fn same(a: &Fit, b: &Fit, what: &str) {
    let first = a.point.weights.iter().zip(&b.point.weights).position(|(a, b)| a.to_bits() != b.to_bits());
    assert_eq!(first, None, "{what}");
    assert!(a.point == b.point, "{what}: other intercepts, or other columns");
    assert_eq!(a.certificate, b.certificate, "{what}");
    assert_eq!((a.status, a.epochs, a.iterations), (b.status, b.epochs, b.iterations), "{what}");
}

const ROWS: usize = 100;

#[test]
fn every_loss_has_the_bits_of_the_shards_on_a_disk() {
    for (n_rows, n_cols) in [(300, 20), (260, 900)] {
        for loss in LOSSES {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("rows.svm");
            write_text(&dataset(loss, n_rows, n_cols), &path);
            let shards = on_disk(&path, directory.path(), ROWS, n_cols);
            let files = files_of(&shards);
            let cases = [(true, false, 0.0, 0), (false, true, 0.01, 1 << 30), (true, true, 0.0, 1 << 14)];
            for (intercept, weighted, l2, room) in cases {
                let what = format!("{loss:?}, {n_cols} columns, intercept {intercept}, weights {weighted}");
                let weights: Option<Vec<f64>> =
                    weighted.then(|| (0..n_rows).map(|row| (row % 4) as f64 * 0.3).collect());
                let classes = matches!(loss, LossKind::Logistic | LossKind::Softmax) && weighted;
                let class_weights = classes.then_some(ClassWeights::Balanced);
                let terms = Terms { lambda: Lambda::OfMax(0.05), l2, intercept, class_weights, ..Terms::default() };
                let engine = Threads::new(files.clone(), weights.clone(), ROWS);
                let remote = Arc::new(RemoteData::open(Box::new(engine), n_cols, room).unwrap());
                assert_eq!((remote.n_rows(), remote.nnz()), (n_rows, shards.nnz()), "{what}");
                assert_eq!(remote.notice(), None);
                let far = Problem::of_remote(Arc::clone(&remote), loss.build(4), &terms).unwrap();
                let terms = Terms { row_weights: weights, ..terms };
                let near = Problem::of_shards(Arc::clone(&shards), loss.build(4), &terms).unwrap();
                assert_eq!(far.lambda_max().to_bits(), near.lambda_max().to_bits(), "{what}");
                assert_eq!(far.total_weight().to_bits(), near.total_weight().to_bits(), "{what}");
                same(&fit(&far), &fit(&near), &what);
            }
        }
    }
}

#[test]
fn every_penalty_has_the_bits_of_the_shards_on_a_disk() {
    for (loss, n_cols) in [(LossKind::Logistic, 600), (LossKind::Squared, 15), (LossKind::Softmax, 40)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.svm");
        write_text(&dataset(loss, 240, n_cols), &path);
        let shards = on_disk(&path, directory.path(), 80, n_cols);
        let free = (0..n_cols).map(|feature| if feature % 40 == 3 { 0.0 } else { 1.0 }).collect();
        let groups: Vec<u32> = (0..n_cols as u32).map(|feature| feature / 3).collect();
        let bounds = Bounds::new(vec![0.0; n_cols], vec![0.4; n_cols]).unwrap();
        let penalties: [(_, Option<Arc<dyn Penalty>>); 3] = [
            (Some(free), None),
            (None, Some(Arc::new(Groups::new(groups).unwrap().with_l1_share(0.3).unwrap()))),
            (None, Some(Arc::new(bounds))),
        ];
        for (feature_weights, penalty) in penalties {
            let what = format!("{loss:?} {penalty:?}");
            let terms = Terms { lambda: Lambda::OfMax(0.1), feature_weights, penalty, ..Terms::default() };
            let engine = Threads::new(files_of(&shards), None, 80);
            let remote = Arc::new(RemoteData::open(Box::new(engine), n_cols, 1 << 30).unwrap());
            let far = Problem::of_remote(remote, loss.build(4), &terms).unwrap();
            let near = Problem::of_shards(Arc::clone(&shards), loss.build(4), &terms).unwrap();
            same(&fit(&far), &fit(&near), &what);
        }
    }
}

#[test]
fn a_run_resumes_to_the_same_bits() {
    for (loss, n_cols) in [(LossKind::Logistic, 700), (LossKind::SquaredHinge, 18), (LossKind::Huber(0.01), 700)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.svm");
        write_text(&dataset(loss, 400, n_cols), &path);
        let shards = on_disk(&path, directory.path(), 64, n_cols);
        let terms = Terms { lambda: Lambda::OfMax(0.02), ..Terms::default() };
        let stated = || {
            let engine = Threads::new(files_of(&shards), None, 64);
            let remote = RemoteData::open(Box::new(engine), 0, 1 << 20).unwrap();
            Problem::of_remote(Arc::new(remote), loss.build(2), &terms).unwrap()
        };
        let settings = |epochs| Settings { tolerance: 0.0, epochs, ..Settings::default() };
        let whole = Run::new(&stated(), settings(6)).fit().unwrap();
        let kept = directory.path().join("kept");
        Run::new(&stated(), settings(2)).checkpoint(&kept, false).fit().unwrap();
        // Another driver.
        let resumed = Run::new(&stated(), settings(6)).checkpoint(&kept, true).fit().unwrap();
        assert_eq!((resumed.resumed_epochs, resumed.point), (2, whole.point), "{loss:?}");
    }
}

#[test]
fn replies_that_are_added_up_on_their_way_have_the_same_bits() {
    for (loss, n_cols) in [(LossKind::Logistic, 3000), (LossKind::Softmax, 700), (LossKind::Huber(0.3), 900)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.svm");
        write_text(&dataset(loss, 400, n_cols), &path);
        let shards = on_disk(&path, directory.path(), ROWS, n_cols);
        let solved = |piece: Option<usize>| {
            let engine = Threads { piece, ..Threads::new(files_of(&shards), None, ROWS) };
            let seen = (Arc::clone(&engine.added), Arc::clone(&engine.most));
            let remote = Arc::new(RemoteData::open(Box::new(engine), n_cols, 1 << 30).unwrap());
            let terms = Terms { lambda: Lambda::OfMax(0.05), ..Terms::default() };
            let problem = Problem::of_remote(Arc::clone(&remote), loss.build(4), &terms).unwrap();
            (fit(&problem), remote.passes(), seen)
        };
        let (whole, passes, (none, widest)) = solved(None);
        assert_eq!(none.load(Ordering::Relaxed), 0);
        for piece in [16, 1 << 8] {
            let (fit, as_many, (added, most)) = solved(Some(piece));
            same(&fit, &whole, &format!("{loss:?}, {piece} numbers a piece"));
            assert_eq!(as_many, passes, "{loss:?}");
            assert!(added.load(Ordering::Relaxed) > 2, "{loss:?}: every pass over all columns is one");
            // What is left of a pass over all columns: replies too short to be cut, such as of a working set.
            assert!(
                3 * most.load(Ordering::Relaxed) < widest.load(Ordering::Relaxed),
                "{loss:?}: {most:?} of {widest:?}"
            );
        }
        let (few, _, (added, _)) = solved(Some(1 << 20));
        same(&few, &whole, "one piece");
        assert_eq!(added.load(Ordering::Relaxed), 0, "what is one piece comes as it is");
    }
}

#[test]
fn offsets_that_rows_have_with_them_are_those_of_the_shards_on_a_disk() {
    for (loss, n_rows, n_cols) in
        [(LossKind::Poisson, 300, 20), (LossKind::Logistic, 260, 900), (LossKind::Squared, 90, 40)]
    {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.svm");
        write_text(&dataset(loss, n_rows, n_cols), &path);
        let shards = on_disk(&path, directory.path(), 40, n_cols);
        let offsets: Vec<f64> = (0..n_rows).map(|row| (row % 7) as f64 * 0.2 - 0.5).collect();
        let engine =
            |offsets: &[f64]| Threads { offsets: Some(offsets.to_vec()), ..Threads::new(files_of(&shards), None, 40) };
        let terms = Terms { lambda: Lambda::OfMax(0.05), ..Terms::default() };
        let state = |offsets: &[f64]| {
            let remote = RemoteData::open(Box::new(engine(offsets)), n_cols, 1 << 30)?;
            assert!(remote.has_offsets());
            Problem::of_remote(Arc::new(remote), loss.build(2), &terms)
        };
        let far = state(&offsets).unwrap();
        let terms = Terms { offset: Some(offsets.clone()), ..terms.clone() };
        let near = Problem::of_shards(Arc::clone(&shards), loss.build(2), &terms).unwrap();
        let off = far.lambda_max() / near.lambda_max() - 1.0;
        assert!(off.abs() < 1e-12, "{loss:?}: λ_max is off by {off:e}");
        let [far, near] = [fit(&far), fit(&near)].map(|fit| fit.certificate);
        assert!((far.objective / near.objective - 1.0).abs() < 2e-6, "{loss:?}: {far:?} and {near:?}");
        assert!(far.within(1e-6), "{loss:?}: {far:?}");
        let mut wrong = offsets;
        wrong[50] = f64::NAN;
        let said = state(&wrong).unwrap_err().to_string();
        assert!(said.contains("000001.obx") && said.contains("number 11"), "{said}");
    }
}

#[test]
fn a_pass_brings_home_what_the_next_would_ask_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.svm");
    write_text(&dataset(LossKind::Logistic, 700, 20), &path);
    let shards = on_disk(&path, directory.path(), ROWS, 20);
    let engine = Threads::new(files_of(&shards), None, ROWS);
    let asked = Arc::clone(&engine.asked);
    let remote = Arc::new(RemoteData::open(Box::new(engine), 0, 1 << 30).unwrap());
    let terms = Terms { lambda: Lambda::OfMax(0.05), ..Terms::default() };
    let problem = Problem::of_remote(Arc::clone(&remote), LossKind::Logistic.build(2), &terms).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 3, "what it is, how the classes weigh, the columns at zero");
    fit(&problem);
    let passes = asked.load(Ordering::Relaxed);
    assert_eq!(remote.passes(), passes as u64);
    assert!(passes < 40, "{passes} passes");
}

#[test]
fn a_shard_that_is_not_what_it_was_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.svm");
    write_text(&dataset(LossKind::Squared, 200, 30), &path);
    let shards = on_disk(&path, &directory.path().join("cache"), 64, 30);
    let files = files_of(&shards);
    let remote = || RemoteData::open(Box::new(Threads::new(files.clone(), None, 64)), 0, 0);
    let state = |remote| Problem::of_remote(Arc::new(remote), LossKind::Squared.build(1), &Terms::default());
    let bytes = fs::read(&files[1]).unwrap();
    let problem = state(remote().unwrap()).unwrap();
    type Damage<'a> = &'a dyn Fn();
    let damages: [(&str, Damage, bool); 3] = [
        ("truncated", &|| fs::write(&files[1], &bytes[..bytes.len() / 2]).unwrap(), true),
        ("missing", &|| fs::remove_file(&files[1]).unwrap(), true),
        ("another", &|| fs::write(&files[1], fs::read(&files[0]).unwrap()).unwrap(), false),
    ];
    for (what, damage, is_seen_at_once) in damages {
        damage();
        let said = problem.fit().unwrap_err().to_string();
        assert!(said.contains("000001.obx"), "{what}: {said}");
        if is_seen_at_once {
            let said = remote().unwrap_err().to_string();
            assert!(said.contains("000001.obx"), "{what}: {said}");
        }
    }
    fs::write(&files[1], &bytes).unwrap();
    assert!(problem.fit().is_ok());
}

#[test]
fn tables_of_other_columns_and_targets_of_other_kinds_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let table = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let a = table("a.csv", "y,u,v\n1,0.5,2\n0,1.5,3\n");
    let b = table("b.csv", "y,u,w\n0,2.5,1\n");
    let said = RemoteData::open(Box::new(Threads::new(vec![a.clone(), b], None, 2)), 0, 0).unwrap_err().to_string();
    assert!(said.contains("b.csv: has other columns"), "{said}");
    let c = table("c.csv", "y,u,v\n-2,2.5,1\n");
    let remote = Arc::new(RemoteData::open(Box::new(Threads::new(vec![a, c], None, 2)), 0, 0).unwrap());
    let state = |loss: LossKind| {
        Problem::of_remote(Arc::clone(&remote), loss.build(2), &Terms::default()).unwrap_err().to_string()
    };
    let regression = Problem::of_remote(Arc::clone(&remote), LossKind::Squared.build(1), &Terms::default()).unwrap();
    let said = Run::new(&regression, Settings::with_method(MethodKind::ProxSg)).fit().unwrap_err().to_string();
    assert!(said.contains("needs the rows in memory"), "{said}");
    assert!(state(LossKind::Logistic).contains("3 distinct labels"), "{}", state(LossKind::Logistic));
    assert!(state(LossKind::Poisson).contains("row 1 of"), "{}", state(LossKind::Poisson));
}

#[test]
fn bytes_from_anywhere_are_an_error_at_worst() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.svm");
    write_text(&dataset(LossKind::Logistic, 60, 20), &path);
    struct Listening(PathBuf, Arc<std::sync::Mutex<Vec<Vec<u8>>>>);
    impl Engine for Listening {
        fn map(&self, request: &[u8], each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
            self.1.lock().unwrap().push(request.to_vec());
            each(&work(0, request, || Shard::open(&self.0, &ReadOptions::default())))
        }
    }
    let heard = Arc::<std::sync::Mutex<Vec<Vec<u8>>>>::default();
    let remote = RemoteData::open(Box::new(Listening(path.clone(), Arc::clone(&heard))), 0, 1 << 20).unwrap();
    let terms = Terms { lambda: Lambda::OfMax(0.05), ..Terms::default() };
    fit(&Problem::of_remote(Arc::new(remote), LossKind::Logistic.build(2), &terms).unwrap());
    let heard = heard.lock().unwrap().clone();
    let open = || Shard::open(&path, &ReadOptions::default());
    for request in &heard {
        assert!(!is_kept(1, request));
        for cut in [0, 7, 9, request.len() / 2, request.len() - 1] {
            assert_eq!(work(0, &request[..cut], open)[0], 1, "an error");
        }
    }
    let reply = work(0, heard.last().unwrap(), open);
    let pieces = Pieces { count: 3, width: 4 };
    assert!(cut(&reply, pieces).iter().all(|piece| piece[0] == 0));
    for end in [0, 1, 9, reply.len() / 2, reply.len() - 1] {
        assert!(cut(&reply[..end], pieces).iter().all(|piece| piece[0] == 1), "an error");
        assert_eq!(add(&[&reply, &reply[..end]])[0], 1, "an error");
    }
    // A driver of another version: the text of it is after the first bytes and a length.
    let mut other = heard[0].clone();
    other[16] = b'9';
    let reply = String::from_utf8_lossy(&work(0, &other, open)).into_owned();
    assert!(reply.contains("install the same on all machines"), "{reply}");
    assert!(read(&path, &ReadOptions::default()).is_ok());
}
