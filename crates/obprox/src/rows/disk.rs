//! Rows on a disk, in shards that stream through memory.
//!
//! What is known of the rows between two jobs is n long or as long as the working set: the point, the set, the step that was
//! named, what was done to the dual point. From that a shard that is read comes to the state that the job is done in: its
//! margins come from x, never from increments. So a job is a pass over the shards, and its sums are those of the shards
//! added up in their order. What is made of a shard, the columns of the working set and its margins, is kept for the
//! next job while there is room; it would be made again to the same bits, so these do not depend on the memory.
//!
//! A pass costs the reading of all shards, so it brings home more than it was asked for: whatever job comes first at a
//! point, it leaves f, its slopes and the margins there ([`Seen`]), and a full step that is tried leaves those at its end. A
//! Newton step is two passes, its Hessian and its trial. Margins are as long as the targets, which are in memory too: what
//! they alone decide needs no shard.

mod change;
mod seen;

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use self::change::{Change, Secant};
use self::seen::Seen;
use super::memory::centring::{self, Alike};
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
    /// The steps whose secants are the least curvatures of the rows.
    secants: Vec<Secant>,
    /// What was seen here, and at the end of the step that was named.
    seen: Option<Seen>,
    ahead: Option<Seen>,
    entries: Option<f64>,
    /// Counts sets and columns, and the points that rows were put at.
    times: Times,
    parts: Vec<Option<Part>>,
    /// Bytes left for parts that are kept.
    room: u64,
}

#[derive(Clone, Copy, Default, PartialEq)]
struct Times {
    set: u64,
    point: u64,
}

/// The columns of a shard that are worked on, and where its rows are.
struct Part {
    rows: Memory,
    times: Times,
    /// Changes that were made to it.
    changed: usize,
    has_secants: bool,
    bytes: u64,
}

/// More work on a shard, where it was read, and on what is made of it.
type OnShard<'a> = &'a mut dyn FnMut(&Disk, Option<&Problem>, &mut Part) -> Result<()>;

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
            secants: Vec::new(),
            seen: None,
            ahead: None,
            entries: None,
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
        (self.entries, self.ahead) = (None, None);
        self.times.set += 1;
    }

    fn support(&self, point: &Point) -> Vec<u32> {
        let outputs = self.problem.outputs() as u32;
        let mut features: Vec<u32> = point.nonzeros().iter().map(|(at, _)| at / outputs).collect();
        features.dedup();
        features
    }

    fn moved(&mut self) {
        (self.seen, self.ahead) = (None, None);
        self.times.point += 1;
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
        (self.entries, self.ahead) = (None, None);
        self.seen.iter_mut().for_each(|seen| seen.slopes = None);
        self.times.set += 1;
    }

    /// Takes a share of the step that was named.
    fn take(&mut self, size: f64) {
        let Some(to) = self.after(size) else { return };
        let ahead = self.ahead.take().filter(|_| size == 1.0);
        self.point = to;
        self.moved();
        self.seen = ahead;
    }

    /// The point after a share of the step that was named.
    fn after(&self, size: f64) -> Option<Point> {
        let Some(Change::Propose { outputs, x, z }) = self.step() else { return None };
        let mut point = self.point.clone();
        let all = self.problem.outputs();
        let width = self.set.len() + usize::from(self.problem.has_intercept());
        for (at, &x) in between(x, z, size).iter().enumerate() {
            let (output, index) = (outputs.start + at / width, at % width);
            match self.set.get(index) {
                Some(&feature) => point.weights[feature as usize * all + output] = x,
                None => point.intercept[output] = x,
            }
        }
        Some(point)
    }

    fn step(&self) -> Option<&Change> {
        self.changes.iter().rev().find(|change| matches!(change, Change::Propose { .. }))
    }

    fn remember_secant(&mut self, after: Option<f64>) {
        match (after, self.step()) {
            (None, _) if self.secants.is_empty() => return,
            (None, _) => self.secants.clear(),
            (Some(after), Some(Change::Propose { outputs, x, z })) => {
                let (outputs, x, z) = (outputs.clone(), x.clone(), z.clone());
                self.secants.push(Secant { at: self.point.clone(), outputs, x, z, after });
            }
            _ => return,
        }
        self.times.point += 1;
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
        let times = Times { set: u64::MAX, point: u64::MAX };
        Part { rows, times, changed: 0, has_secants: false, bytes }
    }

    /// Brings a part to where all rows are.
    fn bring(&self, part: &mut Part) -> Result<()> {
        let rows: &mut dyn Shards = &mut part.rows;
        if part.times.set != self.times.set {
            let index = |feature: &u32| self.columns.partition_point(|column| column < feature) as u32;
            rows.select(&self.set.iter().map(index).collect::<Vec<u32>>())?;
        }
        if part.times != self.times {
            if part.has_secants {
                rows.secants(None)?;
            }
            for Secant { at, outputs, x, z, after } in &self.secants {
                rows.place(&self.on_columns(at))?;
                rows.propose(outputs.clone(), x, z)?;
                rows.secants(Some(*after))?;
            }
            rows.place(&self.on_columns(&self.point))?;
            (part.times, part.changed, part.has_secants) = (self.times, 0, !self.secants.is_empty());
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
                let indices = indices_in(&own, order);
                let entry = |(a, b): (usize, usize)| hessian[a.max(b) * own.len() + a.min(b)];
                let line = |&a: &usize| indices.iter().map(move |&b| entry((a, b)));
                Ok(indices.iter().flat_map(line).collect::<Huge<f64>>().into())
            }
            Job::Squares { order } => {
                let own = rows.order(order.to_vec());
                let squares = rows.run(&Job::Squares { order: &own })?.numbers;
                Ok(indices_in(&own, order).iter().map(|&at| squares[at]).collect::<Vec<f64>>().into())
            }
            Job::Dual(DualJob::Free(features)) => {
                let index = |feature: &u32| self.columns.partition_point(|column| column < feature) as u32;
                let indices: Vec<u32> = features.iter().map(index).collect();
                rows.run(&Job::Dual(DualJob::Free(&indices)))
            }
            Job::Descend { .. } => Err(Error::Data("the columns of shards are in no one memory".into())),
            _ => rows.run(job),
        }
    }

    /// Does a job on every shard and adds up, and whatever else there is to do there.
    fn pass(&mut self, job: Option<&Job>, reads_all: bool, also: OnShard) -> Result<Sums> {
        let problem = Arc::clone(&self.problem);
        let is_missing: Vec<bool> = self.parts.iter().map(Option::is_none).collect();
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
            let sums = job.map_or_else(|| Ok(Sums::default()), |job| self.one(&mut part.rows, job))?;
            also(self, shard.as_ref(), &mut part)?;
            let is_largest = matches!(job, Some(Job::Dual(DualJob::Largest)));
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

    /// Σ vᵢdᵢ over every column, of numbers that rows have; and what is seen on the way.
    fn over_columns(&mut self, of: impl Fn(&mut Memory) -> &[f64]) -> Result<Huge<f64>> {
        let mut gradient = Huge::zeros(self.problem.n_features() * self.problem.outputs());
        let mut seen = self.seen.is_none().then(Seen::default);
        self.pass(None, true, &mut |disk, shard, part| {
            if let Some(seen) = &mut seen {
                seen.add(&mut part.rows, disk.shape.sees_all)?;
            }
            shard.into_iter().for_each(|shard| pass::add_gradient(shard, of(&mut part.rows), &mut gradient));
            Ok(())
        })?;
        self.seen = self.seen.take().or(seen);
        let share = 1.0 / self.problem.n_rows() as f64;
        gradient.iter_mut().for_each(|sum| *sum *= share);
        Ok(gradient)
    }

    /// What is seen here, with the slopes of some outputs where they are wanted.
    fn evaluate(&mut self, outputs: Option<&Range<usize>>) -> Result<&mut Seen> {
        let has_slopes =
            |seen: &Seen| outputs.is_none_or(|outputs| seen.slopes.as_ref().is_some_and(|(known, _)| known == outputs));
        let seen = match self.seen.take() {
            Some(seen) if has_slopes(&seen) => seen,
            Some(seen) => {
                let outputs = outputs.cloned().unwrap_or_default();
                let sums = self.pass(
                    Some(&Job::Slopes { outputs: outputs.clone(), features: true }),
                    false,
                    &mut |_, _, _| Ok(()),
                )?;
                Seen { slopes: Some((outputs, sums)), ..seen }
            }
            None => {
                let mut seen = Seen::with_slopes(outputs);
                self.pass(None, false, &mut |disk, _, part| seen.add(&mut part.rows, disk.shape.sees_all))?;
                seen
            }
        };
        Ok(self.seen.insert(seen))
    }

    /// f after a full step. While shards are read it is also seen what is there, which the next step will ask for.
    fn try_whole(&mut self) -> Result<Sums> {
        let (Some(Change::Propose { outputs, .. }), Some(to)) = (self.step(), self.after(1.0)) else {
            return self.pass(Some(&Job::Loss(1.0)), false, &mut |_, _, _| Ok(()));
        };
        let to = self.on_columns(&to);
        let mut ahead = self.parts.iter().any(Option::is_none).then(|| Seen::with_slopes(Some(outputs)));
        let sums = self.pass(Some(&Job::Loss(1.0)), false, &mut |disk, _, part| {
            let Some(ahead) = &mut ahead else { return Ok(()) };
            match disk.shape.sees_all {
                // It has been there.
                true => part.rows.run(&Job::Take(1.0)).map(drop)?,
                false => part.rows.run(&Job::Place(&to)).map(drop)?,
            }
            part.times.point = u64::MAX;
            ahead.add(&mut part.rows, disk.shape.sees_all)
        })?;
        self.ahead = ahead;
        Ok(sums)
    }

    /// What the margins say of the intercepts if these moved.
    fn centre(&mut self, shift: &[f64]) -> Result<Sums> {
        let problem = Arc::clone(&self.problem);
        let seen = self.evaluate(None)?;
        let alike = seen.alike.get_or_insert_with(|| Alike::of(&problem, &seen.margins));
        Ok(centring::pulls(&problem, &seen.margins, alike.as_ref(), shift).unwrap_or_default().into())
    }

    /// Whether the dual point is no longer what the margins say.
    fn has_moved_dual(&self) -> bool {
        self.changes.iter().any(|change| matches!(change, Change::Move(_) | Change::Correct(_)))
    }

    /// A job that asks for sums.
    fn sums(&mut self, job: &Job) -> Result<Sums> {
        let problem = Arc::clone(&self.problem);
        match job {
            Job::Gradient { columns: true } if !self.shape.sees_all => {
                let array = self.over_columns(Memory::row_gradients)?;
                Ok(Sums { numbers: self.evaluate(None)?.numbers(), array })
            }
            Job::Gradient { columns } => {
                let gradient = &self.evaluate(None)?.gradient;
                let array = if *columns { gradient.array.clone() } else { Huge::default() };
                Ok(Sums { numbers: gradient.numbers.clone(), array })
            }
            Job::Loss(0.0) => Ok(self.evaluate(None)?.numbers()[..1].to_vec().into()),
            Job::Loss(1.0) => self.try_whole(),
            Job::Slopes { outputs, features: true } => {
                let slopes = self.evaluate(Some(outputs))?.slopes.as_ref();
                Ok(slopes.map_or_else(Vec::new, |(_, sums)| sums.numbers.clone()).into())
            }
            Job::Slopes { outputs, features: false } => match problem.has_intercept() {
                true => Ok(self.evaluate(None)?.numbers()[1..][outputs.clone()].to_vec().into()),
                false => Ok(Sums::default()),
            },
            Job::Entries => {
                let entries = match self.entries {
                    Some(entries) => entries,
                    None => self.pass(Some(job), false, &mut |_, _, _| Ok(()))?.numbers[0],
                };
                self.entries = Some(entries);
                Ok(vec![entries].into())
            }
            Job::Centre(shift) => self.centre(shift),
            Job::Dual(DualJob::Value(scale)) if !self.has_moved_dual() => {
                let slopes = pass::row_gradients(&problem, &self.evaluate(None)?.margins);
                Ok(vec![pass::mean_conjugate(&problem, *scale, &slopes)].into())
            }
            Job::Dual(DualJob::Gradient) if !self.shape.sees_all => Ok(self.over_columns(Memory::dual_point)?.into()),
            _ => self.pass(Some(job), false, &mut |_, _, _| Ok(())),
        }
    }
}

/// Where the indices of an order are in another one, which has them all.
fn indices_in(own: &[usize], order: &[usize]) -> Vec<usize> {
    let mut indices = vec![usize::MAX; own.iter().max().map_or(0, |last| last + 1)];
    own.iter().enumerate().for_each(|(at, &index)| indices[index] = at);
    order.iter().map(|&index| indices[index]).collect()
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
            Job::Secants(after) => self.remember_secant(*after),
            Job::Propose { .. } => {
                // Whoever works on the dual point begins anew after a step.
                self.changes = Change::of(job).into_iter().collect();
                self.parts.iter_mut().flatten().for_each(|part| part.changed = 0);
                self.ahead = None;
            }
            // These change what there is and ask for nothing.
            Job::Dual(DualJob::Begin) => {
                self.changes.retain(|change| matches!(change, Change::Propose { .. }));
                self.changes.push(Change::Begin);
                self.parts.iter_mut().flatten().for_each(|part| part.changed = 0);
            }
            Job::Dual(DualJob::FreeReplace(_)) => self.changes.extend(Change::of(job)),
            job => {
                if let Job::Dual(DualJob::Free(features)) = job {
                    self.need(features.iter().copied());
                }
                let sums = self.sums(job)?;
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
        write_array(out, &[self.secants.len() as u64])?;
        for Secant { at, outputs, x, z, after } in &self.secants {
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
        let mut secants = Vec::new();
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
            secants.push(Secant { at, outputs, x, z, after: after[0] });
        }
        let mut needed = self.support(&point);
        secants.iter().for_each(|secant| needed.extend(self.support(&secant.at)));
        self.need(needed.into_iter());
        (self.point, self.secants) = (point, secants);
        self.moved();
        Ok(())
    }
}
