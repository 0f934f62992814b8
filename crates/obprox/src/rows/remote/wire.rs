//! Requests and replies as bytes.
//!
//! Numbers are little-endian, arrays have their length before them. What is read is held against what is there, so that
//! bytes from anywhere are an error at worst.

use std::ops::Range;

use bytemuck::Pod;

use crate::huge::Huge;
use crate::problem::Point;
use crate::rows::sharded::change::{Change, Secant};
use crate::rows::sharded::evaluation::{Columns, Evaluation};
use crate::rows::sharded::state::{Local, Times};
use crate::rows::sharded::task::{Answer, Over, Task, Work};
use crate::rows::{DualJob, Job, Sums};
use crate::{Error, Result};

/// Bytes that grow.
#[derive(Default)]
pub(super) struct Out(pub Vec<u8>);

/// Bytes that are read.
pub(super) struct In<'a>(pub &'a [u8]);

/// What can be written and read again.
pub(super) trait Wire: Sized {
    fn put(&self, out: &mut Out);
    fn get(input: &mut In) -> Result<Self>;
}

fn cut() -> Error {
    Error::Data("a message between the driver and its workers is damaged".into())
}

impl Out {
    pub fn put<T: Wire>(&mut self, value: &T) -> &mut Self {
        value.put(self);
        self
    }

    pub fn array<T: Pod>(&mut self, values: &[T]) -> &mut Self {
        self.put(&(values.len() as u64));
        self.0.extend_from_slice(bytemuck::cast_slice(values));
        self
    }
}

impl In<'_> {
    pub fn get<T: Wire>(&mut self) -> Result<T> {
        T::get(self)
    }

    fn take(&mut self, bytes: usize) -> Result<&[u8]> {
        let (head, rest) = self.0.split_at_checked(bytes).ok_or_else(cut)?;
        self.0 = rest;
        Ok(head)
    }

    pub fn array<T: Pod>(&mut self) -> Result<Vec<T>> {
        let len = self.get::<u64>()? as usize;
        let bytes = self.take(len.checked_mul(size_of::<T>()).ok_or_else(cut)?)?;
        let mut values = vec![T::zeroed(); len];
        bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
        Ok(values)
    }

    pub fn end(&self) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { Err(cut()) }
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Wire for $number {
            fn put(&self, out: &mut Out) {
                out.0.extend_from_slice(&self.to_le_bytes());
            }
            fn get(input: &mut In) -> Result<Self> {
                let bytes = input.take(size_of::<Self>())?;
                Ok(Self::from_le_bytes(bytes.try_into().map_err(|_| cut())?))
            }
        }
    )*};
}
numbers!(u8, u32, u64, f64);

macro_rules! arrays {
    ($($number:ty),*) => {$(
        impl Wire for Vec<$number> {
            fn put(&self, out: &mut Out) {
                out.array(self);
            }
            fn get(input: &mut In) -> Result<Self> {
                input.array()
            }
        }
    )*};
}
arrays!(u8, u32, u64, f64);

impl Wire for bool {
    fn put(&self, out: &mut Out) {
        out.put(&u8::from(*self));
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(input.get::<u8>()? != 0)
    }
}

impl Wire for String {
    fn put(&self, out: &mut Out) {
        out.array(self.as_bytes());
    }
    fn get(input: &mut In) -> Result<Self> {
        Self::from_utf8(input.array()?).map_err(|_| cut())
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Out) {
        out.put(&self.is_some());
        self.iter().for_each(|value| value.put(out));
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(if input.get()? { Some(input.get()?) } else { None })
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Out) {
        out.put(&self.0).put(&self.1);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok((input.get()?, input.get()?))
    }
}

/// A list of what is no plain number.
pub(super) fn put_list<T: Wire>(out: &mut Out, list: &[T]) {
    out.put(&(list.len() as u64));
    list.iter().for_each(|value| value.put(out));
}

pub(super) fn get_list<T: Wire>(input: &mut In) -> Result<Vec<T>> {
    let len = input.get::<u64>()?;
    (0..len).map(|_| input.get()).collect()
}

impl Wire for Range<usize> {
    fn put(&self, out: &mut Out) {
        out.put(&(self.start as u64)).put(&(self.end as u64));
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(input.get::<u64>()? as usize..input.get::<u64>()? as usize)
    }
}

impl Wire for Point {
    fn put(&self, out: &mut Out) {
        put_sparse(out, &self.weights);
        out.put(&self.intercept);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self { weights: get_sparse(input)?.to_vec(), intercept: input.get()? })
    }
}

/// An array by what is not zero in it, where that is shorter.
fn put_sparse(out: &mut Out, values: &[f64]) {
    let nonzeros = values.iter().filter(|value| value.to_bits() != 0).count();
    out.put(&(values.len() as u64));
    let is_sparse = 3 * nonzeros < 2 * values.len();
    out.put(&is_sparse);
    if !is_sparse {
        out.array(values);
        return;
    }
    let indices: Vec<u32> = (0..values.len() as u32).filter(|&at| values[at as usize].to_bits() != 0).collect();
    let nonzeros: Vec<f64> = indices.iter().map(|&at| values[at as usize]).collect();
    out.array(&indices).array(&nonzeros);
}

fn get_sparse(input: &mut In) -> Result<Huge<f64>> {
    let len = input.get::<u64>()? as usize;
    if !input.get::<bool>()? {
        let values: Vec<f64> = input.array()?;
        return if values.len() == len { Ok(values.into()) } else { Err(cut()) };
    }
    let (indices, nonzeros): (Vec<u32>, Vec<f64>) = (input.array()?, input.array()?);
    if indices.len() != nonzeros.len() || len > u32::MAX as usize {
        return Err(cut());
    }
    crate::memory::check(8 * len as u128, || format!("the {len} sums of a shard"))?;
    let mut values = Huge::zeros(len);
    for (at, value) in indices.into_iter().zip(nonzeros) {
        *values.get_mut(at as usize).ok_or_else(cut)? = value;
    }
    Ok(values)
}

impl Wire for Change {
    fn put(&self, out: &mut Out) {
        match self {
            Self::Propose { outputs, x, z } => out.put(&0u8).put(outputs).put(x).put(z),
            Self::Begin => out.put(&1u8),
            Self::Move(step) => out.put(&2u8).put(step),
            Self::Free(features) => out.put(&3u8).put(features),
            Self::Replace(by) => {
                out.put(&4u8);
                put_replacements(out, by);
                out
            }
            Self::Correct(delta) => out.put(&5u8).put(delta),
        };
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(match input.get::<u8>()? {
            0 => Self::Propose { outputs: input.get()?, x: input.get()?, z: input.get()? },
            1 => Self::Begin,
            2 => Self::Move(input.get()?),
            3 => Self::Free(input.get()?),
            4 => Self::Replace(get_replacements(input)?),
            5 => Self::Correct(input.get()?),
            _ => return Err(cut()),
        })
    }
}

fn put_replacements(out: &mut Out, by: &[(usize, Vec<f64>)]) {
    out.put(&(by.len() as u64));
    for (index, sums) in by {
        out.put(&(*index as u64)).put(sums);
    }
}

fn get_replacements(input: &mut In) -> Result<Vec<(usize, Vec<f64>)>> {
    let len = input.get::<u64>()?;
    (0..len).map(|_| Ok((input.get::<u64>()? as usize, input.get()?))).collect()
}

impl Wire for Secant {
    fn put(&self, out: &mut Out) {
        let Self { at, outputs, x, z, after } = self;
        out.put(at).put(outputs).put(x).put(z).put(after);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self { at: input.get()?, outputs: input.get()?, x: input.get()?, z: input.get()?, after: input.get()? })
    }
}

impl Wire for Times {
    fn put(&self, out: &mut Out) {
        out.put(&self.columns).put(&self.set).put(&self.point).put(&self.changes);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self { columns: input.get()?, set: input.get()?, point: input.get()?, changes: input.get()? })
    }
}

impl Wire for Local {
    fn put(&self, out: &mut Out) {
        let Self { sees_all, columns, set, point, changes, secants, times } = self;
        out.put(sees_all).put(columns).put(set).put(point).put(times);
        put_list(out, changes);
        put_list(out, secants);
    }
    fn get(input: &mut In) -> Result<Self> {
        let (sees_all, columns, set) = (input.get()?, input.get()?, input.get()?);
        let (point, times) = (input.get()?, input.get()?);
        let (changes, secants) = (get_list(input)?, get_list(input)?);
        Ok(Self { sees_all, columns, set, point, changes, secants, times })
    }
}

/// A job that owns what it borrows elsewhere. Jobs that change the state come as changes, or not at all.
pub(super) enum Asked {
    Change(Change),
    Centre(Vec<f64>),
    Entries,
    Slopes(Range<usize>),
    Hessian(Range<usize>, Vec<usize>),
    Squares(Vec<usize>),
    HessianLines(usize, Vec<usize>),
    Diagonal(Range<usize>),
    Product(Range<usize>, Vec<f64>),
    Loss(f64),
    Dual(u8, Vec<f64>),
}

impl Asked {
    pub fn of(job: &Job) -> Result<Self> {
        if let Some(change) = Change::of(job) {
            return Ok(Self::Change(change));
        }
        let none = Vec::new;
        Ok(match job {
            Job::Centre(shift) => Self::Centre(shift.to_vec()),
            Job::Entries => Self::Entries,
            Job::Slopes { outputs, features: true } => Self::Slopes(outputs.clone()),
            Job::Hessian { outputs, order } => Self::Hessian(outputs.clone(), order.to_vec()),
            Job::Squares { order } => Self::Squares(order.to_vec()),
            Job::HessianLines { output, indices } => Self::HessianLines(*output, indices.to_vec()),
            Job::Diagonal { outputs, .. } => Self::Diagonal(outputs.clone()),
            Job::Product { outputs, v, .. } => Self::Product(outputs.clone(), v.to_vec()),
            Job::Loss(size) => Self::Loss(*size),
            Job::Dual(DualJob::Value(scale)) => Self::Dual(0, vec![*scale]),
            Job::Dual(DualJob::Gradient) => Self::Dual(1, none()),
            Job::Dual(DualJob::Curvature) => Self::Dual(2, none()),
            Job::Dual(DualJob::Largest) => Self::Dual(3, none()),
            Job::Dual(DualJob::FreeMargins(x)) => Self::Dual(4, x.to_vec()),
            Job::Dual(DualJob::FreeGram) => Self::Dual(5, none()),
            Job::Dual(DualJob::FreeSlopes) => Self::Dual(6, none()),
            Job::Dual(DualJob::FreeHessian) => Self::Dual(7, none()),
            _ => return Err(Error::Data("a job that shards on other machines do not know".into())),
        })
    }

    pub fn job(&self) -> Result<Job<'_>> {
        Ok(match self {
            Self::Change(change) => change.job(),
            Self::Centre(shift) => Job::Centre(shift),
            Self::Entries => Job::Entries,
            Self::Slopes(outputs) => Job::Slopes { outputs: outputs.clone(), features: true },
            Self::Hessian(outputs, order) => Job::Hessian { outputs: outputs.clone(), order },
            Self::Squares(order) => Job::Squares { order },
            Self::HessianLines(output, indices) => Job::HessianLines { output: *output, indices },
            Self::Diagonal(outputs) => Job::Diagonal { outputs: outputs.clone(), part: 1 },
            Self::Product(outputs, v) => Job::Product { outputs: outputs.clone(), v, part: 1 },
            Self::Loss(size) => Job::Loss(*size),
            Self::Dual(kind, numbers) => Job::Dual(match kind {
                0 => DualJob::Value(*numbers.first().ok_or_else(cut)?),
                1 => DualJob::Gradient,
                2 => DualJob::Curvature,
                3 => DualJob::Largest,
                4 => DualJob::FreeMargins(numbers),
                5 => DualJob::FreeGram,
                6 => DualJob::FreeSlopes,
                7 => DualJob::FreeHessian,
                _ => return Err(cut()),
            }),
        })
    }
}

impl Wire for Vec<usize> {
    fn put(&self, out: &mut Out) {
        out.array(&self.iter().map(|&index| index as u64).collect::<Vec<u64>>());
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(input.array::<u64>()?.into_iter().map(|index| index as usize).collect())
    }
}

impl Wire for Asked {
    fn put(&self, out: &mut Out) {
        match self {
            Self::Change(change) => out.put(&0u8).put(change),
            Self::Centre(shift) => out.put(&1u8).put(shift),
            Self::Entries => out.put(&2u8),
            Self::Slopes(outputs) => out.put(&3u8).put(outputs),
            Self::Hessian(outputs, order) => out.put(&4u8).put(outputs).put(order),
            Self::Squares(order) => out.put(&5u8).put(order),
            Self::HessianLines(output, indices) => out.put(&6u8).put(&(*output as u64)).put(indices),
            Self::Diagonal(outputs) => out.put(&7u8).put(outputs),
            Self::Product(outputs, v) => out.put(&8u8).put(outputs).put(v),
            Self::Loss(size) => out.put(&9u8).put(size),
            Self::Dual(kind, numbers) => out.put(&10u8).put(kind).put(numbers),
        };
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(match input.get::<u8>()? {
            0 => Self::Change(input.get()?),
            1 => Self::Centre(input.get()?),
            2 => Self::Entries,
            3 => Self::Slopes(input.get()?),
            4 => Self::Hessian(input.get()?, input.get()?),
            5 => Self::Squares(input.get()?),
            6 => Self::HessianLines(input.get::<u64>()? as usize, input.get()?),
            7 => Self::Diagonal(input.get()?),
            8 => Self::Product(input.get()?, input.get()?),
            9 => Self::Loss(input.get()?),
            10 => Self::Dual(input.get()?, input.get()?),
            _ => return Err(cut()),
        })
    }
}

/// A task that owns what it borrows elsewhere.
pub(super) enum Order {
    Work {
        job: Option<Asked>,
        conjugate: Option<f64>,
        evaluate: Option<Option<Range<usize>>>,
        over: Option<u8>,
        ahead: Option<(Point, Range<usize>)>,
    },
    Alike,
    AtZero(Vec<f64>),
    ColumnsAtZero(Vec<f64>, bool),
}

impl Order {
    pub fn of(task: &Task) -> Result<Self> {
        Ok(match task {
            Task::Work(work) => Self::Work {
                job: work.job.as_ref().map(Asked::of).transpose()?,
                conjugate: work.conjugate,
                evaluate: work.evaluate.clone(),
                over: work.over.map(|over| u8::from(over == Over::Dual)),
                ahead: work.ahead.clone(),
            },
            Task::Alike => Self::Alike,
            Task::AtZero(intercept) => Self::AtZero(intercept.to_vec()),
            Task::ColumnsAtZero { intercept, bounds } => Self::ColumnsAtZero(intercept.to_vec(), *bounds),
        })
    }

    pub fn task(&self) -> Result<Task<'_>> {
        Ok(match self {
            Self::Work { job, conjugate, evaluate, over, ahead } => Task::Work(Work {
                job: job.as_ref().map(Asked::job).transpose()?,
                conjugate: *conjugate,
                evaluate: evaluate.clone(),
                over: over.map(|dual| if dual == 1 { Over::Dual } else { Over::Slopes }),
                ahead: ahead.clone(),
            }),
            Self::Alike => Task::Alike,
            Self::AtZero(intercept) => Task::AtZero(intercept),
            Self::ColumnsAtZero(intercept, bounds) => Task::ColumnsAtZero { intercept, bounds: *bounds },
        })
    }
}

impl Wire for Order {
    fn put(&self, out: &mut Out) {
        match self {
            Self::Work { job, conjugate, evaluate, over, ahead } => {
                out.put(&0u8).put(job).put(conjugate).put(evaluate).put(over).put(ahead)
            }
            Self::Alike => out.put(&1u8),
            Self::AtZero(intercept) => out.put(&2u8).put(intercept),
            Self::ColumnsAtZero(intercept, bounds) => out.put(&3u8).put(intercept).put(bounds),
        };
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(match input.get::<u8>()? {
            0 => Self::Work {
                job: input.get()?,
                conjugate: input.get()?,
                evaluate: input.get()?,
                over: input.get()?,
                ahead: input.get()?,
            },
            1 => Self::Alike,
            2 => Self::AtZero(input.get()?),
            3 => Self::ColumnsAtZero(input.get()?, input.get()?),
            _ => return Err(cut()),
        })
    }
}

impl Wire for Sums {
    fn put(&self, out: &mut Out) {
        out.put(&self.numbers);
        put_sparse(out, &self.array);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self { numbers: input.get()?, array: get_sparse(input)? })
    }
}

impl Wire for Evaluation {
    fn put(&self, out: &mut Out) {
        out.put(&self.gradient).put(&self.slopes.is_some());
        if let Some((outputs, sums)) = &self.slopes {
            out.put(outputs).put(sums);
        }
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self { gradient: input.get()?, slopes: input.get()?, margins: Vec::new() })
    }
}

impl Wire for Columns {
    fn put(&self, out: &mut Out) {
        put_sparse(out, &self.sums);
        // Bounds are there where the column is.
        let indices: Vec<u32> = (0..self.most.len() as u32).filter(|&at| self.most[at as usize] != 0.0).collect();
        let most: Vec<f32> = indices.iter().map(|&at| self.most[at as usize]).collect();
        out.put(&(self.most.len() as u64)).array(&indices).array(&most);
    }
    fn get(input: &mut In) -> Result<Self> {
        let sums = get_sparse(input)?;
        let len = input.get::<u64>()? as usize;
        if len > sums.len() {
            return Err(cut());
        }
        let mut most = Huge::zeros(len);
        for (at, value) in input.array::<u32>()?.into_iter().zip(input.array::<f32>()?) {
            *most.get_mut(at as usize).ok_or_else(cut)? = value;
        }
        Ok(Self { sums, most })
    }
}

impl Wire for Answer {
    fn put(&self, out: &mut Out) {
        out.put(&self.sums).put(&self.evaluation).put(&self.columns).put(&self.ahead);
    }
    fn get(input: &mut In) -> Result<Self> {
        Ok(Self { sums: input.get()?, evaluation: input.get()?, columns: input.get()?, ahead: input.get()? })
    }
}
