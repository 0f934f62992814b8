//! What is known of rows in shards between two jobs: n long, or as long as the working set.

use std::io::{self, Read, Write};
use std::ops::Range;

use super::change::{Change, Secant};
use crate::checkpoint::{read_array, read_exactly, write_array};
use crate::problem::{Point, Problem};
use crate::rows::between;

/// Where all rows are.
pub(crate) struct State {
    n_features: usize,
    outputs: usize,
    has_intercept: bool,
    sees_all: bool,
    pub set: Vec<u32>,
    /// The columns that parts have, which rise: all where a pass sees all, else those that were asked for, the set included.
    columns: Vec<u32>,
    pub point: Point,
    /// What was done since.
    pub changes: Vec<Change>,
    /// The steps whose secants are the least curvatures of the rows.
    secants: Vec<Secant>,
    times: Times,
}

/// Counts what was changed, so that a part knows what it has to catch up with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub columns: u64,
    pub set: u64,
    pub point: u64,
    /// The changes were begun anew.
    pub changes: u64,
}

impl Times {
    /// Before anything was done.
    pub const NEVER: Self = Self { columns: u64::MAX, set: u64::MAX, point: u64::MAX, changes: u64::MAX };
}

/// The same as parts need it: of their columns alone, by their indices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Local {
    pub sees_all: bool,
    pub columns: Vec<u32>,
    pub set: Vec<u32>,
    pub point: Point,
    pub changes: Vec<Change>,
    pub secants: Vec<Secant>,
    pub times: Times,
}

impl State {
    pub fn new(problem: &Problem, sees_all: bool) -> Self {
        let n_features = problem.n_features();
        Self {
            n_features,
            outputs: problem.outputs(),
            has_intercept: problem.has_intercept(),
            sees_all,
            set: Vec::new(),
            columns: if sees_all { (0..n_features as u32).collect() } else { Vec::new() },
            point: Point::zero(problem),
            changes: Vec::new(),
            secants: Vec::new(),
            times: Times::default(),
        }
    }

    /// What a part has to know.
    pub fn local(&self) -> Local {
        let on_columns = |secant: &Secant| Secant { at: self.on_columns(&secant.at), ..secant.clone() };
        let by_index = |change: &Change| match change {
            Change::Free(features) => Change::Free(self.indices(features)),
            other => other.clone(),
        };
        Local {
            sees_all: self.sees_all,
            columns: self.columns.clone(),
            set: self.indices(&self.set),
            point: self.on_columns(&self.point),
            changes: self.changes.iter().map(by_index).collect(),
            secants: self.secants.iter().map(on_columns).collect(),
            times: self.times,
        }
    }

    /// Where features are among the columns.
    pub fn indices(&self, features: &[u32]) -> Vec<u32> {
        features.iter().map(|feature| self.columns.partition_point(|column| column < feature) as u32).collect()
    }

    /// The point of the columns alone.
    pub fn on_columns(&self, point: &Point) -> Point {
        if self.sees_all {
            return point.clone();
        }
        let of = |&column: &u32| point.weights[column as usize * self.outputs..][..self.outputs].iter().copied();
        Point { weights: self.columns.iter().flat_map(of).collect(), intercept: point.intercept.clone() }
    }

    /// From now on parts have these columns too; whether that is news.
    pub fn need(&mut self, features: impl Iterator<Item = u32>) -> bool {
        let mut missing: Vec<u32> = features.filter(|feature| self.columns.binary_search(feature).is_err()).collect();
        if missing.is_empty() {
            return false;
        }
        missing.extend(&self.columns);
        missing.sort_unstable();
        missing.dedup();
        self.have(missing);
        true
    }

    /// From now on parts have these columns.
    fn have(&mut self, columns: Vec<u32>) {
        if self.columns != columns {
            self.columns = columns;
            self.times.columns += 1;
        }
        self.times.set += 1;
    }

    pub fn place(&mut self, point: &Point) -> bool {
        let news = self.need(self.support(point).into_iter());
        self.point = point.clone();
        self.moved();
        news
    }

    fn support(&self, point: &Point) -> Vec<u32> {
        let mut features: Vec<u32> = point.nonzeros().iter().map(|(at, _)| at / self.outputs as u32).collect();
        features.dedup();
        features
    }

    pub fn moved(&mut self) {
        self.times.point += 1;
        self.changes.clear();
    }

    pub fn select(&mut self, features: &[u32]) {
        self.set = features.to_vec();
        if !self.sees_all {
            let mut columns = self.support(&self.point);
            columns.extend(features);
            columns.sort_unstable();
            columns.dedup();
            self.have(columns);
        }
        self.times.set += 1;
    }

    /// Begins the list of changes anew.
    pub fn begin(&mut self, changes: Vec<Change>) {
        self.changes = changes;
        self.times.changes += 1;
    }

    /// The point after a share of the step that was named.
    pub fn after(&self, size: f64) -> Option<Point> {
        let Some(Change::Propose { outputs, x, z }) = self.step() else { return None };
        let mut point = self.point.clone();
        let width = self.set.len() + usize::from(self.has_intercept);
        for (at, &x) in between(x, z, size).iter().enumerate() {
            let (output, index) = (outputs.start + at / width, at % width);
            match self.set.get(index) {
                Some(&feature) => point.weights[feature as usize * self.outputs + output] = x,
                None => point.intercept[output] = x,
            }
        }
        Some(point)
    }

    fn step(&self) -> Option<&Change> {
        self.changes.iter().rev().find(|change| matches!(change, Change::Propose { .. }))
    }

    /// The outputs of the step that was named.
    pub fn step_outputs(&self) -> Option<Range<usize>> {
        match self.step() {
            Some(Change::Propose { outputs, .. }) => Some(outputs.clone()),
            _ => None,
        }
    }

    pub fn remember_secant(&mut self, after: Option<f64>) {
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

    pub fn save(&self, out: &mut dyn Write) -> io::Result<()> {
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

    pub fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        let corrupt = || io::Error::new(io::ErrorKind::InvalidData, "rows of another problem");
        let all = self.outputs;
        let width = (self.set.len() + usize::from(self.has_intercept)) * all;
        let zero = || Point { weights: vec![0.0; self.n_features * all], intercept: vec![0.0; all] };
        let mut point = zero();
        read_exactly(input, &mut point.weights)?;
        read_exactly(input, &mut point.intercept)?;
        let mut count = [0u64];
        read_exactly(input, &mut count)?;
        let mut secants = Vec::new();
        for _ in 0..count[0] {
            let (mut at, mut ends, mut after) = (zero(), [0u64; 2], [0.0]);
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
