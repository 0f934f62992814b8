//! Rows on a disk: parsed once into shards, which are read one after the other from then on.
//!
//! A cache directory holds, for each list of sources, a directory of `.obx` files of as many rows each, and `shards.json`,
//! which is written last: without it there are no shards. It knows the size and the time of every source, so that they are
//! parsed again when one has changed, and the sum of every shard, so that no other file is taken for it.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Instant, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::pieces::{Columns, each_piece};
use super::source::Source;
use super::standardise::Moments;
use super::{Buffer, Builder, Dataset, Matrix, ReadOptions, Recipe, Scaling, cache, with_rows, write_cache};
use crate::output::{lock_directory, write_whole};
use crate::{Error, Result, memory};

/// Where shards are kept, and how much memory their rows may have.
#[derive(Clone, Debug)]
pub struct Sharding {
    /// The directory of caches.
    pub cache: PathBuf,
    /// Bytes of memory for rows; the bits of a fit do not depend on it.
    pub memory: u64,
    /// Rows of a shard; about 16 MiB of them where nothing is said.
    pub rows: Option<usize>,
}

/// What the rows of a shard take in memory, about: large enough that a pass is not made of seeks, small enough that some
/// are in memory at a time.
const SHARD: usize = 16 << 20;
/// Rows of a shard, at the least and at the most.
const ROWS: Range<usize> = 1 << 8..1 << 20;
/// Shards that are in memory at a time: the one worked on, what is made of it, and the one that is read ahead.
const AT_A_TIME: u64 = 4;
/// The list of the shards.
const LIST: &str = "shards.json";
/// Changes when shards of an older version are of no use.
const VERSION: u32 = 2;

/// Rows in shards on a disk; cheap to clone.
#[derive(Clone, Debug)]
pub struct ShardedData {
    directory: PathBuf,
    list: Arc<List>,
    /// The first row of each shard, and the number of all.
    firsts: Arc<[usize]>,
    memory: u64,
    /// How the columns are scaled each time they are read, where they are.
    scaling: Option<Arc<Scaling>>,
    shared: Arc<Shared>,
}

/// What is done with shards, by everyone who reads them.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes of memory that a stochastic method holds between its passes.
    held: AtomicU64,
    /// Passes that were begun, and who hears of them.
    passes: AtomicU64,
    watch: OnceLock<Watch>,
}

/// Who hears of every shard that is read.
struct Watch(Box<dyn Fn(&Reading) + Send + Sync>);

impl fmt::Debug for Watch {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("Watch")
    }
}

/// How far a pass over shards has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The pass, counted from 1 since the shards were opened.
    pub pass: u64,
    /// Shards of it that were read.
    pub shard: usize,
    /// Shards it reads; those that stay in memory are not among them.
    pub shards: usize,
    /// Bytes that were read.
    pub bytes: u64,
    /// Bytes it reads.
    pub of_bytes: u64,
    /// Seconds since it was begun, the work on the shards included.
    pub seconds: f64,
}

impl Reading {
    /// Bytes a second.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 / self.seconds.max(1e-9)
    }

    /// Seconds until its last shard, if it goes on like this.
    pub fn seconds_left(&self) -> f64 {
        self.of_bytes.saturating_sub(self.bytes) as f64 / self.rate().max(1.0)
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct List {
    version: u32,
    made_from: Made,
    rows_a_shard: usize,
    n_cols: usize,
    names: Option<Vec<String>>,
    recipe: Option<Recipe>,
    shards: Vec<Shard>,
    /// The CRC-32 of all the rest.
    sum: u32,
}

/// What shards are made from: the sources as they are now, and how they are read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Made {
    sources: Vec<Stamp>,
    options: String,
    rows: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: u128,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Shard {
    rows: usize,
    entries: usize,
    bytes: u64,
    sum: u32,
}

impl ShardedData {
    /// The rows of some files, one after the other: from their shards where these are there and the files are as they were,
    /// else they are parsed into shards first. `tell` hears how many rows and shards there are so far.
    pub fn open(
        sources: &[PathBuf],
        options: &ReadOptions,
        sharding: &Sharding,
        tell: &mut dyn FnMut(usize, usize),
    ) -> Result<Self> {
        let made_from = Made::of(sources, options, sharding.rows)?;
        let directory = sharding.cache.join(made_from.name());
        let list = match read_list(&directory).filter(|list| list.is_sound() && list.made_from == made_from) {
            Some(list) => list,
            None => write(sources, options, &directory, made_from, tell)?,
        };
        let mut firsts = vec![0];
        list.shards.iter().for_each(|shard| firsts.push(shard.rows.saturating_add(firsts[firsts.len() - 1])));
        let data = Self {
            directory,
            list: list.into(),
            firsts: firsts.into(),
            memory: sharding.memory,
            scaling: None,
            shared: Arc::default(),
        };
        data.with_enough_memory()
    }

    fn with_enough_memory(self) -> Result<Self> {
        let least = self.least_memory();
        match self.memory < least {
            true => {
                Err(Error::parameter("memory", format!("shards of this data need {} or more", memory::shown(least))))
            }
            false => Ok(self),
        }
    }

    /// The same with columns that are scaled each time they are read: what every value takes in memory grows.
    pub(crate) fn scaled(self, scaling: Arc<Scaling>) -> Result<Self> {
        Self { scaling: Some(scaling), ..self }.with_enough_memory()
    }

    /// N.
    pub fn n_rows(&self) -> usize {
        self.firsts[self.list.shards.len()]
    }

    /// n.
    pub fn n_cols(&self) -> usize {
        self.list.n_cols
    }

    /// Entries that are not zero.
    pub fn nnz(&self) -> usize {
        self.list.shards.iter().fold(0, |sum, shard| shard.entries.saturating_add(sum))
    }

    /// Bytes that the shards take on the disk.
    pub fn bytes(&self) -> u64 {
        self.list.shards.iter().fold(0, |sum, shard| shard.bytes.saturating_add(sum))
    }

    /// Names of the columns, where the sources have them.
    pub fn names(&self) -> Option<&[String]> {
        self.list.names.as_deref()
    }

    /// How the features were made of a table's columns, where the sources are tables.
    pub fn recipe(&self) -> Option<&Recipe> {
        self.list.recipe.as_ref()
    }

    /// How many shards there are.
    pub fn n_shards(&self) -> usize {
        self.list.shards.len()
    }

    /// The rows of each.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.firsts.windows(2).map(|ends| ends[0]..ends[1])
    }

    /// Where they are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Tells someone of every shard that is read from now on, on the thread that works on it. The first who asks is told.
    pub fn watch(&self, watch: impl Fn(&Reading) + Send + Sync + 'static) {
        let _ = self.shared.watch.set(Watch(Box::new(watch)));
    }

    /// Bytes of memory for the shards that are being worked on: with no more all are read for every job.
    pub fn least_memory(&self) -> u64 {
        /// A column and a value where there may have been a column alone.
        const SCALED: u64 = 3;
        let largest = self.list.shards.iter().map(|shard| shard.bytes).max().unwrap_or(0);
        (if self.scaling.is_some() { SCALED } else { 1 }) * AT_A_TIME.saturating_mul(largest)
    }

    /// Bytes of memory that rows may have.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// How the columns would be scaled: two passes over the shards. They are centred where `centre` asks for it and every
    /// shard is dense, as rows in memory are.
    pub(crate) fn scaling(self: &Arc<Self>, centre: bool) -> Result<Scaling> {
        let mut moments = Moments::new(self.n_rows(), self.n_cols());
        let mut is_dense = true;
        for at in 0..self.n_shards() {
            let matrix = self.load(at)?.matrix.widened(self.n_cols());
            is_dense &= matches!(matrix, Matrix::Dense32(_) | Matrix::Dense64(_));
            moments.add(&matrix);
        }
        moments.have_means();
        for at in 0..self.n_shards() {
            moments.add_squares(&self.load(at)?.matrix);
        }
        Ok(moments.scaling(centre && is_dense))
    }

    /// Bytes of memory that rows may have beside those, and beside what is held.
    pub(crate) fn room(&self) -> u64 {
        (self.memory - self.least_memory()).saturating_sub(self.shared.held.load(Ordering::Relaxed))
    }

    /// Takes so many bytes of that for rows that stay, where there are as many.
    pub(crate) fn hold(&self, bytes: u64) -> bool {
        let fits = bytes <= self.room();
        self.shared.held.fetch_add(if fits { bytes } else { 0 }, Ordering::Relaxed);
        fits
    }

    /// Gives them back.
    pub(crate) fn release(&self, bytes: u64) {
        self.shared.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Leaves room for others that pass by in between, such as test data.
    pub fn leave_room_for(&self, others: &Self) {
        self.hold(others.least_memory().min(self.room()));
    }

    /// What tells these rows from others.
    pub(crate) fn sum(&self) -> u64 {
        let mix = |sum: u64, shard: &Shard| (sum ^ u64::from(shard.sum)).wrapping_mul(0x100_0000_01b3).rotate_left(17);
        self.list.shards.iter().fold(self.n_cols() as u64, mix)
    }

    /// The targets of all rows.
    pub fn targets(&self) -> Result<Buffer<f64>> {
        let bytes = 8 * self.n_rows() as u128;
        memory::check(bytes, || format!("{} targets", self.n_rows()))?;
        let mut targets = Vec::with_capacity(self.n_rows());
        for at in 0..self.n_shards() {
            targets.extend_from_slice(&self.load(at)?.targets);
        }
        Ok(targets.into())
    }

    /// The first row of each shard, and the number of all.
    pub(crate) fn firsts(&self) -> &[usize] {
        &self.firsts
    }

    /// Reads the shards that are wanted in that order, each with its rows' numbers and with some of the columns; a thread is one
    /// ahead.
    pub(crate) fn read(
        self: &Arc<Self>,
        columns: Option<Arc<[u32]>>,
        wanted: Vec<usize>,
    ) -> impl Iterator<Item = Result<(Range<usize>, Matrix)>> + use<> {
        let (sender, ahead) = sync_channel(1);
        let (data, order) = (Arc::clone(self), wanted.clone());
        let one = Arc::new(move |at: usize| {
            let matrix = data.load(at)?.matrix.widened(data.n_cols());
            let matrix = match &data.scaling {
                Some(scaling) => scaling.apply(&matrix),
                None => matrix,
            };
            let matrix = match &columns {
                Some(columns) => matrix.keep_columns(columns),
                None => matrix,
            };
            Ok((data.firsts[at]..data.firsts[at + 1], matrix.filled()))
        });
        let (read, all) = (Arc::clone(&one), wanted.clone());
        // Nobody listens any more where something else has failed.
        let read_ahead = move || all.into_iter().map(|at| read(at)).all(|shard| sender.send(shard).is_ok());
        let spawned = thread::Builder::new().name("obprox-read".into()).spawn(read_ahead);
        // Where there is no thread to be had, a shard is read when it is asked for, by the one that asks.
        let by_hand = if spawned.is_ok() { Vec::new() } else { wanted };
        let mut told = self.told(&order);
        ahead.into_iter().chain(by_hand.into_iter().map(move |at| one(at))).inspect(move |_| told())
    }

    /// Hears that one shard after the other of a pass was read.
    fn told(self: &Arc<Self>, order: &[usize]) -> impl FnMut() + use<> {
        let sizes: Vec<u64> = order.iter().map(|&at| self.list.shards[at].bytes).collect();
        let (data, begun) = (Arc::clone(self), Instant::now());
        // What reads nothing, since all is in memory, is none.
        let pass = self.shared.passes.fetch_add(u64::from(!order.is_empty()), Ordering::Relaxed) + 1;
        let mut reading =
            Reading { pass, shard: 0, shards: sizes.len(), bytes: 0, of_bytes: sizes.iter().sum(), seconds: 0.0 };
        move || {
            reading.bytes += sizes.get(reading.shard).copied().unwrap_or(0);
            reading.shard += 1;
            reading.seconds = begun.elapsed().as_secs_f64();
            data.shared.watch.get().into_iter().for_each(|watch| watch.0(&reading));
        }
    }

    fn load(&self, at: usize) -> Result<Dataset> {
        let (path, known) = (shard_path(&self.directory, at), &self.list.shards[at]);
        let advice = "remove the directory to parse the sources again";
        let (shard, sum) = cache::read_summed(&path).map_err(|error| match error {
            // What the system lacks is no fault of the shard.
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
                Error::file(path.display().to_string(), format!("the shard is missing: {advice}"))
            }
            Error::Io { .. } => error,
            error => Error::file(path.display().to_string(), format!("{error}: {advice}")),
        })?;
        let is_known = (shard.matrix.n_rows(), sum) == (known.rows, known.sum);
        match is_known && shard.matrix.n_cols() <= self.n_cols() {
            true => Ok(shard),
            false => {
                Err(Error::file(path.display().to_string(), format!("is another shard than was written: {advice}")))
            }
        }
    }
}

impl List {
    /// Whether it is one of ours; the shards are held against it when they are read.
    fn is_sound(&self) -> bool {
        let Self { version, shards, names, n_cols, .. } = self;
        let has_names = names.as_ref().is_none_or(|names| names.len() == *n_cols);
        *version == VERSION
            && !shards.is_empty()
            && *n_cols <= u32::MAX as usize
            && has_names
            && self.own_sum() == self.sum
    }

    fn own_sum(&self) -> u32 {
        let Self { version, made_from, rows_a_shard, n_cols, names, recipe, shards, sum: _ } = self;
        let rest = serde_json::to_vec(&(version, made_from, rows_a_shard, n_cols, names, recipe, shards));
        crc32fast::hash(&rest.unwrap_or_default())
    }
}

impl Made {
    fn of(sources: &[PathBuf], options: &ReadOptions, rows: Option<usize>) -> Result<Self> {
        let stamp = |path: &PathBuf| {
            let metadata = fs::metadata(path).map_err(Error::reading(path))?;
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let path = fs::canonicalize(path).map_err(Error::reading(path))?;
            Ok(Stamp { path, bytes: metadata.len(), modified: modified.map_or(0, |since| since.as_nanos()) })
        };
        let ReadOptions { format, label, header, n_cols, recipe, with_targets, .. } = options;
        // A recipe may be long, and what tells it from others will do.
        let recipe = recipe.as_ref().map(|recipe| crc32fast::hash(&serde_json::to_vec(&**recipe).unwrap_or_default()));
        let options = format!("{format:?} {label:?} {header:?} {n_cols:?} {recipe:?} {with_targets}");
        Ok(Self { sources: sources.iter().map(stamp).collect::<Result<_>>()?, options, rows })
    }

    /// The same for the same paths and options, so that a source that has changed leaves no old shards behind.
    fn name(&self) -> String {
        let mut hash = crc32fast::Hasher::new();
        self.sources.iter().for_each(|source| hash.update(source.path.as_os_str().as_encoded_bytes()));
        hash.update(self.options.as_bytes());
        let first = self.sources.first().and_then(|source| source.path.file_name()).unwrap_or_default();
        format!("{}-{:08x}-{}.shards", first.display(), hash.finalize(), self.rows.unwrap_or(0))
    }
}

fn shard_path(directory: &Path, at: usize) -> PathBuf {
    directory.join(format!("{at:06}.obx"))
}

fn read_list(directory: &Path) -> Option<List> {
    serde_json::from_slice(&fs::read(directory.join(LIST)).ok()?).ok()
}

/// Parses all sources into shards, then writes the list of them.
fn write(
    sources: &[PathBuf],
    options: &ReadOptions,
    directory: &Path,
    made_from: Made,
    tell: &mut dyn FnMut(usize, usize),
) -> Result<List> {
    let _lock = lock_directory(directory)?;
    for old in fs::read_dir(directory).map_err(Error::reading(directory))?.flatten() {
        let is_ours = |name: &str| name == LIST || name.ends_with(".obx");
        if old.file_name().to_str().is_some_and(is_ours) {
            fs::remove_file(old.path()).map_err(Error::writing(&old.path()))?;
        }
    }
    let mut out = Writer::new(directory, made_from.rows, tell);
    for source in sources {
        let columns = each_piece(Source::open(source)?, source, options, &mut |piece| out.push(&piece))?;
        out.agree_on(source, columns)?;
    }
    out.end_shard()?;
    if out.shards.is_empty() {
        return Err(Error::Data("there are no rows to learn from".into()));
    }
    let n_cols = out.n_cols.max(options.n_cols.unwrap_or(0));
    let rows_a_shard = out.rows_a_shard.unwrap_or(0);
    let Columns { names, recipe, .. } = out.columns.flatten().unwrap_or_default();
    let names = names.map(|mut names| {
        names.extend((names.len()..n_cols).map(|column| format!("column {}", column + 1)));
        names
    });
    let (shards, recipe) = (out.shards, recipe.map(Arc::unwrap_or_clone));
    let mut list = List { version: VERSION, made_from, rows_a_shard, n_cols, names, recipe, shards, sum: 0 };
    list.sum = list.own_sum();
    let text = serde_json::to_vec_pretty(&list).map_err(|error| Error::Data(error.to_string()))?;
    write_whole(&directory.join(LIST), |out| out.write_all(&text))?;
    Ok(list)
}

/// Rows on their way into shards.
struct Writer<'a> {
    directory: &'a Path,
    /// Told by the first rows where nothing was said.
    rows_a_shard: Option<usize>,
    rows: Builder,
    targets: Vec<f64>,
    shards: Vec<Shard>,
    n_cols: usize,
    /// Those of the files so far: none where these have rows of indices.
    columns: Option<Option<Columns>>,
    tell: &'a mut dyn FnMut(usize, usize),
}

impl<'a> Writer<'a> {
    fn new(directory: &'a Path, rows_a_shard: Option<usize>, tell: &'a mut dyn FnMut(usize, usize)) -> Self {
        let (rows, targets, shards) = (Builder::default(), Vec::new(), Vec::new());
        Self { directory, rows_a_shard, rows, targets, shards, n_cols: 0, columns: None, tell }
    }

    fn push(&mut self, piece: &Dataset) -> Result<()> {
        let matrix = &piece.matrix;
        self.n_cols = self.n_cols.max(matrix.n_cols());
        let rows_a_shard = *self.rows_a_shard.get_or_insert_with(|| {
            let rows = SHARD / (matrix.bytes() / matrix.n_rows().max(1)).max(1);
            (rows + 1).next_power_of_two().div_euclid(2).clamp(ROWS.start, ROWS.end)
        });
        for (row, &target) in piece.targets.iter().enumerate() {
            with_rows!(matrix, |matrix| super::Rows::for_each(matrix, row, |column, value| {
                self.rows.push(column as u32, value);
            }));
            self.rows.end_row();
            self.targets.push(target);
            if self.rows.n_rows() == rows_a_shard {
                self.end_shard()?;
            }
        }
        Ok(())
    }

    fn end_shard(&mut self) -> Result<()> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let matrix = std::mem::take(&mut self.rows).finish(Some(self.n_cols)).in_fewest_bytes();
        let (rows, entries) = (matrix.n_rows(), matrix.nnz());
        let path = shard_path(self.directory, self.shards.len());
        write_cache(&Dataset::new(matrix, std::mem::take(&mut self.targets)), &path)?;
        let (_, sum) = cache::read_summed(&path)?;
        let bytes = fs::metadata(&path).map_err(Error::reading(&path))?.len();
        self.shards.push(Shard { rows, entries, bytes, sum });
        (self.tell)(self.shards.iter().map(|shard| shard.rows).sum(), self.shards.len());
        Ok(())
    }

    /// Tables must have the same columns under the same names, and no rows of indices among them.
    fn agree_on(&mut self, source: &Path, columns: Option<Columns>) -> Result<()> {
        let refuse = |message: &str| Err(Error::file(source.display().to_string(), message));
        match (&self.columns, &columns) {
            (Some(Some(known)), Some(columns)) if !known.are(columns) => {
                refuse("has other columns than the files before it: give files of the same columns")
            }
            (Some(Some(_)), None) => {
                refuse("has rows of indices, the files before it are tables: give files of one kind")
            }
            (Some(None), Some(_)) => {
                refuse("is a table, the files before it have rows of indices: give files of one kind")
            }
            (Some(_), _) => Ok(()),
            (None, _) => {
                self.columns = Some(columns);
                Ok(())
            }
        }
    }
}
