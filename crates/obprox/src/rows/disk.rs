//! Rows on a disk, in shards that stream through memory.
//!
//! What is known of the rows between two jobs is n long or as long as the working set: the point, the set, the step that was
//! named, what was done to the dual point. From that a shard that is read comes to the state that the job is done in: its
//! margins come from x, never from increments. So a job is a pass over the shards, and its sums are those of the shards
//! added up in their order. What is made of a shard, the columns of the working set and its margins, is kept for the
//! next job while there is room; it would be made again to the same bits, so these do not depend on the memory.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use super::memory::{Memory, pass};
use super::{DualJob, Job, Shape, Shards, Sums, between};
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::data::ShardedData;
use crate::huge::Huge;
use crate::problem::{Point, Problem};
use crate::{Error, Result};

/// Rows on a disk, and where they are.
pub(crate) struct Disk {
    problem: Arc<Problem>,
    shape: Shape,
    set: Vec<u32>,
    /// The columns that parts have, which rise: all where a pass sees all, else those that were asked for, the set included.
    columns: Vec<u32>,
    point: Point,
    /// What was done since.
    changes: Vec<Change>,
    /// The steps that rows bend along at the least.
    bends: Vec<Bend>,
    /// Counts sets and columns, and the places that rows were put at.
    times: Times,
    parts: Vec<Option<Part>>,
    /// Bytes left for parts that are kept.
    room: u64,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Times {
    set: u64,
    place: u64,
}

/// A change of state that a job made.
enum Change {
    Propose { outputs: Range<usize>, x: Vec<f64>, z: Vec<f64> },
    Begin,
    Move(f64),
    Free(Vec<u32>),
    Replace(Vec<(usize, Vec<f64>)>),
    Correct(Vec<f64>),
}

/// A step that had to be short: from which point, and after which share of it rows began to bend.
struct Bend {
    at: Point,
    outputs: Range<usize>,
    x: Vec<f64>,
    z: Vec<f64>,
    after: f64,
}

/// The columns of a shard that are worked on, and where its rows are.
struct Part {
    rows: Memory,
    times: Times,
    /// Changes that were made to it.
    changed: usize,
    bent: bool,
    bytes: u64,
}

/// Work on a shard with all its columns, and on its rows at the point.
type OnWhole<'a> = &'a mut dyn FnMut(&Problem, &mut Memory);

impl Change {
    /// What a job changes, beside what it adds up.
    fn of(job: &Job) -> Option<Self> {
        Some(match job {
            Job::Propose { outputs, x, z } => Self::Propose { outputs: outputs.clone(), x: x.to_vec(), z: z.to_vec() },
            Job::Dual(DualJob::Begin) => Self::Begin,
            Job::Dual(DualJob::Move(step)) => Self::Move(*step),
            Job::Dual(DualJob::Free(features)) => Self::Free(features.to_vec()),
            Job::Dual(DualJob::FreeReplace(by)) => Self::Replace(by.to_vec()),
            Job::Dual(DualJob::FreeCorrect(delta)) => Self::Correct(delta.to_vec()),
            _ => return None,
        })
    }

    fn job(&self) -> Job<'_> {
        match self {
            Self::Propose { outputs, x, z } => Job::Propose { outputs: outputs.clone(), x, z },
            Self::Begin => Job::Dual(DualJob::Begin),
            Self::Move(step) => Job::Dual(DualJob::Move(*step)),
            Self::Free(features) => Job::Dual(DualJob::Free(features)),
            Self::Replace(by) => Job::Dual(DualJob::FreeReplace(by)),
            Self::Correct(delta) => Job::Dual(DualJob::FreeCorrect(delta)),
        }
    }
}

impl Disk {
    /// The rows of a problem that is in shards, nowhere yet; as they are, where a pass is to see all.
    pub fn new(problem: Arc<Problem>, sees_all: bool) -> Self {
        let shards = problem.shards().expect("a problem in shards");
        let cells = problem.n_rows() as f64 * shards.n_cols() as f64;
        let columns = if sees_all { (0..problem.n_features() as u32).collect() } else { Vec::new() };
        Self {
            shape: Shape { filled: shards.nnz() as f64 / cells, sees_all },
            set: Vec::new(),
            columns,
            point: Point::zero(&problem),
            changes: Vec::new(),
            bends: Vec::new(),
            times: Times::default(),
            parts: (0..shards.n_shards()).map(|_| None).collect(),
            room: shards.room(),
            problem,
        }
    }

    /// From now on parts have these columns too.
    fn need(&mut self, features: impl Iterator<Item = u32>) {
        let mut missing: Vec<u32> = features.filter(|feature| self.columns.binary_search(feature).is_err()).collect();
        if !missing.is_empty() {
            missing.extend(&self.columns);
            missing.sort_unstable();
            missing.dedup();
            self.have(missing);
        }
    }

    /// From now on parts have these columns.
    fn have(&mut self, columns: Vec<u32>) {
        if self.columns != columns {
            self.columns = columns;
            self.parts.iter_mut().for_each(|part| *part = None);
            self.room = self.problem.shards().map_or(0, ShardedData::room);
        }
        self.times.set += 1;
    }

    fn support(&self, point: &Point) -> Vec<u32> {
        let outputs = self.problem.outputs() as u32;
        let mut features: Vec<u32> = point.nonzeros().iter().map(|(at, _)| at / outputs).collect();
        features.dedup();
        features
    }

    fn moved(&mut self) {
        self.times.place += 1;
        self.changes.clear();
    }

    fn select(&mut self, features: &[u32]) {
        self.set = features.to_vec();
        let mut columns = self.support(&self.point);
        columns.extend(features);
        columns.sort_unstable();
        columns.dedup();
        if !self.shape.sees_all {
            self.have(columns);
        }
        self.times.set += 1;
    }

    /// Takes a share of the step that was named.
    fn take(&mut self, size: f64) {
        let Some(Change::Propose { outputs, x, z }) = self.step() else { return };
        let (features, all) = (self.set.len(), self.problem.outputs());
        let width = features + usize::from(self.problem.has_intercept());
        let (first, to) = (outputs.start, between(x, z, size));
        for (at, &x) in to.iter().enumerate() {
            let (output, place) = (first + at / width, at % width);
            match self.set.get(place) {
                Some(&feature) => self.point.weights[feature as usize * all + output] = x,
                None => self.point.intercept[output] = x,
            }
        }
        self.moved();
    }

    fn step(&self) -> Option<&Change> {
        self.changes.iter().rev().find(|change| matches!(change, Change::Propose { .. }))
    }

    fn bend(&mut self, after: Option<f64>) {
        match (after, self.step()) {
            (None, _) if self.bends.is_empty() => return,
            (None, _) => self.bends.clear(),
            (Some(after), Some(Change::Propose { outputs, x, z })) => {
                let (outputs, x, z) = (outputs.clone(), x.clone(), z.clone());
                self.bends.push(Bend { at: self.point.clone(), outputs, x, z, after });
            }
            _ => return,
        }
        self.times.place += 1;
    }

    /// The point of a part's columns alone.
    fn on_columns(&self, point: &Point) -> Point {
        let outputs = self.problem.outputs();
        if self.shape.sees_all {
            return point.clone();
        }
        let of = |&column: &u32| point.weights[column as usize * outputs..][..outputs].iter().copied();
        Point { weights: self.columns.iter().flat_map(of).collect(), intercept: point.intercept.clone() }
    }

    /// What is to be worked on of a shard.
    fn part(&self, shard: &Problem) -> Part {
        /// Numbers that are kept for each row and output.
        const NUMBERS: u64 = 8;
        /// A set's columns lie as rows, one by one, and as lists.
        const COPIES: u64 = 3;
        let numbers = NUMBERS * 8 * (shard.n_rows() * shard.outputs()) as u64;
        let (problem, copies) = match self.shape.sees_all {
            true => (shard.clone(), 1),
            false => (shard.with_columns(&self.columns), COPIES),
        };
        let bytes = numbers + copies * problem.matrix().bytes() as u64;
        let rows = Memory::new(Arc::new(problem), self.shape.sees_all);
        let times = Times { set: u64::MAX, place: u64::MAX };
        Part { rows, times, changed: 0, bent: false, bytes }
    }

    /// Brings a part to where all rows are.
    fn bring(&self, part: &mut Part) -> Result<()> {
        let rows: &mut dyn Shards = &mut part.rows;
        if part.times.set != self.times.set {
            let place = |feature: &u32| self.columns.partition_point(|column| column < feature) as u32;
            rows.select(&self.set.iter().map(place).collect::<Vec<u32>>())?;
        }
        if part.times != self.times {
            if part.bent {
                rows.secants(None)?;
            }
            for Bend { at, outputs, x, z, after } in &self.bends {
                rows.place(&self.on_columns(at))?;
                rows.propose(outputs.clone(), x, z)?;
                rows.secants(Some(*after))?;
            }
            rows.place(&self.on_columns(&self.point))?;
            (part.times, part.changed, part.bent) = (self.times, 0, !self.bends.is_empty());
        }
        for change in &self.changes[part.changed..] {
            self.one(&mut part.rows, &change.job())?;
        }
        part.changed = self.changes.len();
        Ok(())
    }

    /// A job on the rows of one part.
    fn one(&self, rows: &mut Memory, job: &Job) -> Result<Sums> {
        match job {
            Job::Hessian { outputs, order } if outputs.len() == 1 => {
                let own = rows.order(order.to_vec());
                let hessian = rows.run(&Job::Hessian { outputs: outputs.clone(), order: &own })?.array;
                let places = places_in(&own, order);
                let entry = |(a, b): (usize, usize)| hessian[a.max(b) * own.len() + a.min(b)];
                let line = |&a: &usize| places.iter().map(move |&b| entry((a, b)));
                Ok(places.iter().flat_map(line).collect::<Huge<f64>>().into())
            }
            Job::Squares { order } => {
                let own = rows.order(order.to_vec());
                let squares = rows.run(&Job::Squares { order: &own })?.numbers;
                Ok(places_in(&own, order).iter().map(|&at| squares[at]).collect::<Vec<f64>>().into())
            }
            Job::Dual(DualJob::Free(features)) => {
                let place = |feature: &u32| self.columns.partition_point(|column| column < feature) as u32;
                let places: Vec<u32> = features.iter().map(place).collect();
                rows.run(&Job::Dual(DualJob::Free(&places)))
            }
            Job::Descend { .. } => Err(Error::Data("the columns of shards are in no one memory".into())),
            _ => rows.run(job),
        }
    }

    /// Does a job on every shard and adds up.
    fn pass(&mut self, job: &Job, mut whole: Option<OnWhole>) -> Result<Sums> {
        let problem = Arc::clone(&self.problem);
        let is_missing: Vec<bool> = self.parts.iter().map(Option::is_none).collect();
        let reads_all = whole.is_some();
        let mut read = problem.read_shards(move |at| reads_all || is_missing[at]);
        let mut total: Option<Sums> = None;
        for at in 0..self.parts.len() {
            let known = self.parts[at].take();
            let shard = match known.is_none() || reads_all {
                true => Some(read.next().expect("one for each that is wanted")?.1),
                false => None,
            };
            let is_new = known.is_none();
            let mut part = match (known, &shard) {
                (Some(part), _) => part,
                (None, Some(shard)) => self.part(shard),
                (None, None) => unreachable!("what is not known was read"),
            };
            self.bring(&mut part)?;
            let sums = self.one(&mut part.rows, job)?;
            if let (Some(whole), Some(shard)) = (&mut whole, &shard) {
                whole(shard, &mut part.rows);
            }
            let is_largest = matches!(job, Job::Dual(DualJob::Largest));
            total = Some(total.map_or_else(
                || Sums::default().plus(&sums),
                |total| match is_largest {
                    true => total.larger(&sums),
                    false => total.plus(&sums),
                },
            ));
            if !is_new || part.bytes <= self.room {
                self.room -= if is_new { part.bytes } else { 0 };
                self.parts[at] = Some(part);
            }
        }
        Ok(total.unwrap_or_default())
    }

    /// Σ vᵢdᵢ over every column, of numbers that rows have, along with the sums of a job.
    fn over_columns(&mut self, job: &Job, of: impl Fn(&mut Memory) -> &[f64]) -> Result<Sums> {
        let mut gradient = Huge::zeros(self.problem.n_features() * self.problem.outputs());
        let mut add = |shard: &Problem, rows: &mut Memory| pass::add_gradient(shard, of(rows), &mut gradient);
        let numbers = self.pass(job, Some(&mut add))?.numbers;
        let share = 1.0 / self.problem.n_rows() as f64;
        gradient.iter_mut().for_each(|sum| *sum *= share);
        Ok(Sums { numbers, array: gradient })
    }
}

/// Where the places of an order are in another one, which has them all.
fn places_in(own: &[usize], order: &[usize]) -> Vec<usize> {
    let find = |place: &usize| own.iter().position(|own| own == place).expect("an order that has all that is wanted");
    if own == order { (0..order.len()).collect() } else { order.iter().map(find).collect() }
}

impl Sums {
    fn plus(self, other: &Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    fn larger(self, other: &Self) -> Self {
        self.with(other, f64::max)
    }

    fn with(mut self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        self.numbers.resize(other.numbers.len(), 0.0);
        self.numbers.iter_mut().zip(&other.numbers).for_each(|(sum, value)| *sum = of(*sum, *value));
        if self.array.is_empty() {
            self.array = Huge::zeros(other.array.len());
        }
        self.array.iter_mut().zip(&other.array[..]).for_each(|(sum, value)| *sum = of(*sum, *value));
        self
    }
}

impl Shards for Disk {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn run(&mut self, job: &Job) -> Result<Sums> {
        match job {
            Job::Place(point) => {
                let support = self.support(point);
                self.need(support.into_iter());
                self.point = (*point).clone();
                self.moved();
            }
            Job::Shift(by) => {
                self.point.intercept.iter_mut().zip(*by).for_each(|(value, by)| *value += by);
                self.moved();
            }
            Job::Select(features) => self.select(features),
            Job::Take(size) => self.take(*size),
            Job::Secants(after) => self.bend(*after),
            Job::Propose { .. } => {
                self.changes.retain(|change| !matches!(change, Change::Propose { .. }));
                self.parts.iter_mut().flatten().for_each(|part| part.changed = part.changed.min(self.changes.len()));
                self.changes.extend(Change::of(job));
            }
            Job::Gradient { columns: true } if !self.shape.sees_all => {
                return self.over_columns(&Job::Gradient { columns: false }, |rows| rows.row_gradients());
            }
            Job::Dual(DualJob::Gradient) if !self.shape.sees_all => {
                let array = self.over_columns(&Job::Gradient { columns: false }, |rows| rows.dual_point())?.array;
                return Ok(array.into());
            }
            job => {
                if let Job::Dual(DualJob::Free(features)) = job {
                    self.need(features.iter().copied());
                }
                let sums = self.pass(job, None)?;
                if let Some(change) = Change::of(job) {
                    // Those at hand have it.
                    self.changes.push(change);
                    self.parts.iter_mut().flatten().for_each(|part| part.changed = self.changes.len());
                }
                return Ok(sums);
            }
        }
        Ok(Sums::default())
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        write_array(out, &self.point.weights)?;
        write_array(out, &self.point.intercept)?;
        write_array(out, &[self.bends.len() as u64])?;
        for Bend { at, outputs, x, z, after } in &self.bends {
            write_array(out, &at.weights)?;
            write_array(out, &at.intercept)?;
            write_array(out, &[outputs.start as u64, outputs.end as u64])?;
            write_array(out, x)?;
            write_array(out, z)?;
            write_array(out, &[*after])?;
        }
        Ok(())
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let corrupt = || io::Error::new(io::ErrorKind::InvalidData, "rows of another problem");
        let all = self.problem.outputs();
        let width = (self.set.len() + usize::from(self.problem.has_intercept())) * all;
        let mut point = Point::zero(&self.problem);
        read_exactly(input, &mut point.weights)?;
        read_exactly(input, &mut point.intercept)?;
        let mut count = [0u64];
        read_exactly(input, &mut count)?;
        let mut bends = Vec::new();
        for _ in 0..count[0] {
            let (mut at, mut ends, mut after) = (Point::zero(&self.problem), [0u64; 2], [0.0]);
            read_exactly(input, &mut at.weights)?;
            read_exactly(input, &mut at.intercept)?;
            read_exactly(input, &mut ends)?;
            let (x, z): (Vec<f64>, Vec<f64>) = (read_array(input, width)?, read_array(input, width)?);
            read_exactly(input, &mut after)?;
            let outputs = ends[0] as usize..ends[1] as usize;
            if x.len() != z.len() || outputs.end > all || x.len() * all != width * outputs.len() {
                return Err(corrupt());
            }
            bends.push(Bend { at, outputs, x, z, after: after[0] });
        }
        let mut needed = self.support(&point);
        bends.iter().for_each(|bend| needed.extend(self.support(&bend.at)));
        self.need(needed.into_iter());
        (self.point, self.bends) = (point, bends);
        self.moved();
        Ok(())
    }
}
