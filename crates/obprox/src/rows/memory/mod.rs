//! Rows in this process's memory.
//!
//! How they are laid out is decided here and nobody else's business. With few features they stay as they are, and one pass
//! at a point ([`pass::evaluate`]) gives the losses, every slope and every curvature. Otherwise a working set takes its columns
//! out of the rows, each once (`set`), margins are kept from step to step, and what a step does to them is known before
//! it is taken.

pub(crate) mod at_zero;
pub(crate) mod centring;
mod columns;
mod descent;
mod dual;
mod free;
mod gram;
mod joint;
mod lists;
mod narrow;
pub(crate) mod pass;
pub(crate) mod scatter;
mod set;

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use self::centring::Alike;
use self::descent::Descent;
use self::dual::Dual;
use self::pass::Evaluation;
use self::set::WorkingSet;
use super::{Job, Model, Shape, Shards, Sums, between};
use crate::Result;
use crate::checkpoint::{read_array, write_array};
use crate::huge::Huge;
use crate::problem::{Point, Problem};
use crate::tuning::FEW;

/// Rows in memory, and what they know of the point they were put at.
pub(crate) struct Memory {
    problem: Arc<Problem>,
    shape: Shape,
    /// Where they are, if a pass sees all.
    point: Option<Point>,
    /// x·d + b of each row, K a row; with [`Self::evaluation`] they are there.
    margins: Vec<f64>,
    evaluation: Option<Evaluation>,
    /// An evaluation before it, whose memory the next may have.
    spare: Option<Evaluation>,
    alike: Option<Option<Alike>>,
    set: Arc<WorkingSet>,
    slopes: Option<RowSlopes>,
    step: Option<Step>,
    /// The least curvature of each row; none where it is that of the loss. Where ℓ″ vanishes or jumps, as beyond Huber's δ,
    /// Newton steps lead too far; then the secants of the slopes along the step that was too long say what it ran into.
    secants: Vec<f64>,
    /// Memory for wᵢℓ″/N of each row.
    weighted: Vec<f64>,
    dual: Dual,
}

/// wᵢℓ′/N and wᵢℓ″/N of each row for one output.
struct RowSlopes {
    output: usize,
    slopes: Vec<f64>,
    curvatures: Vec<f64>,
}

/// A step that was named.
struct Step {
    x: Vec<f64>,
    z: Vec<f64>,
    /// What all of it adds to the margins, where that is known.
    shift: Vec<f64>,
    /// What is seen at its end, where someone looked.
    end: Option<Evaluation>,
}

/// Margins after a share of a step.
fn shifted(margins: &[f64], size: f64, shift: &[f64]) -> Vec<f64> {
    margins.iter().zip(shift).map(|(margin, shift)| margin + size * shift).collect()
}

/// Whether rows stay as they are, and a pass sees all: those of few features.
pub(crate) fn stays_in_rows(problem: &Problem) -> bool {
    problem.n_features() <= FEW && problem.outputs() == 1 && problem.columns().is_none()
}

impl Memory {
    /// The rows of a problem, nowhere yet; as they are, where a pass is to see all.
    pub fn new(problem: Arc<Problem>, sees_all: bool) -> Self {
        let matrix = problem.matrix();
        let cells = problem.n_rows() as f64 * problem.n_features() as f64;
        let filled = if matrix.is_dense() { 1.0 } else { matrix.nnz() as f64 / cells };
        Self {
            shape: Shape { filled, sees_all },
            problem,
            point: None,
            margins: Vec::new(),
            evaluation: None,
            spare: None,
            alike: None,
            set: Arc::default(),
            slopes: None,
            step: None,
            secants: Vec::new(),
            weighted: Vec::new(),
            dual: Dual::default(),
        }
    }

    /// Forgets all that was known of the point before.
    fn moved(&mut self) {
        if let Some(evaluation) = self.evaluation.take() {
            self.spare = Some(evaluation);
        }
        (self.alike, self.slopes, self.step) = (None, None, None);
        self.dual.forget();
    }

    fn place(&mut self, point: &Point) {
        self.moved();
        let (problem, outputs) = (Arc::clone(&self.problem), self.problem.outputs());
        let weights = point.nonzeros();
        if self.shape.sees_all {
            self.point = Some(point.clone());
            // The evaluation will see the rest.
            self.margins.clear();
            if weights.is_empty() {
                self.margins.resize(problem.n_rows(), point.intercept[0]);
            }
            return;
        }
        let index = |&(at, weight): &(u32, f64)| {
            let index = self.set.features.binary_search(&(at / outputs as u32)).ok()?;
            Some((at as usize % outputs, index, weight))
        };
        match weights.iter().map(index).collect::<Option<Vec<_>>>() {
            None if problem.columns().is_none() => self.margins = pass::margins(problem.matrix(), point),
            placed => {
                let mut features: Vec<u32> = weights.iter().map(|(at, _)| at / outputs as u32).collect();
                let placed = placed.unwrap_or_else(|| {
                    features.dedup();
                    self.set = WorkingSet::new(&problem, std::mem::take(&mut features), &self.set);
                    let index = |&(at, weight): &(u32, f64)| {
                        let index = self.set.features.partition_point(|&feature| feature < at / outputs as u32);
                        (at as usize % outputs, index, weight)
                    };
                    weights.iter().map(index).collect()
                });
                self.margins.resize(problem.n_rows() * outputs, 0.0);
                for row in self.margins.chunks_exact_mut(outputs) {
                    row.copy_from_slice(&point.intercept);
                }
                self.set.add_to(&problem, &placed, &mut self.margins);
            }
        }
    }

    /// Looks at the rows where they are, if that was not done.
    fn evaluation(&mut self) -> &Evaluation {
        let Self { problem, point, evaluation, spare, .. } = self;
        evaluation.get_or_insert_with(|| {
            pass::evaluate(problem, point.as_ref().expect("rows that were placed"), spare.take())
        })
    }

    /// x·d + b of each row.
    pub(crate) fn margins(&mut self) -> &[f64] {
        if self.evaluation.is_some() || self.margins.is_empty() { &self.evaluation().margins } else { &self.margins }
    }

    fn centre(&mut self, shift: &[f64]) -> Vec<f64> {
        let problem = Arc::clone(&self.problem);
        if self.alike.is_none() {
            self.alike = Some(Alike::of(&problem, self.margins()));
        }
        let alike = self.alike.take().flatten();
        let pulls = centring::pulls(&problem, self.margins(), alike.as_ref(), shift).unwrap_or_default();
        self.alike = Some(alike);
        pulls
    }

    fn shift(&mut self, by: &[f64]) {
        if let Some(point) = &mut self.point {
            point.intercept.iter_mut().zip(by).for_each(|(value, by)| *value += by);
        }
        self.moved();
        match self.shape.sees_all {
            true => self.margins.clear(),
            false => centring::shift_by(&mut self.margins, by),
        }
    }

    fn gradient(&mut self, columns: bool) -> Sums {
        let problem = Arc::clone(&self.problem);
        if self.shape.sees_all {
            let evaluation = self.evaluation();
            let array = if columns { evaluation.gradient.clone().into() } else { Huge::default() };
            return Sums { numbers: vec![evaluation.loss, evaluation.intercept_slope], array };
        }
        let mut numbers = vec![pass::mean_loss(&problem, &self.margins)];
        let slopes = self.row_gradients();
        numbers.extend(pass::intercept_gradient(&problem, slopes));
        let array = if columns { pass::gradient(&problem, slopes) } else { Huge::default() };
        Sums { numbers, array }
    }

    fn slopes(&mut self, outputs: Range<usize>, features: bool) -> Vec<f64> {
        let problem = Arc::clone(&self.problem);
        let with_intercept = problem.has_intercept();
        if self.shape.sees_all {
            let set = Arc::clone(&self.set);
            let evaluation = self.evaluation();
            let of_set = features.then(|| set.features.iter().map(|&feature| evaluation.gradient[feature as usize]));
            return of_set.into_iter().flatten().chain(with_intercept.then_some(evaluation.intercept_slope)).collect();
        }
        let set = Arc::clone(&self.set);
        let on_set = |slopes: &[f64]| {
            let mut on_set = if features { set.slopes(&problem, slopes) } else { Vec::new() };
            on_set.extend(with_intercept.then(|| slopes.iter().sum::<f64>()));
            on_set
        };
        if outputs.len() == 1 {
            let rows = self.row_slopes(outputs.start);
            let all = on_set(&rows.slopes);
            self.slopes = Some(rows);
            return all;
        }
        let duals = self.row_gradients();
        let (width, share) = (problem.outputs(), 1.0 / problem.total_rows() as f64);
        let pull = |row: usize, k: usize| pass::weighted(problem.row_weight(row), || share * duals[row * width + k]);
        let of_output = |k: usize| (0..problem.n_rows()).map(|row| pull(row, k)).collect::<Vec<f64>>();
        outputs.flat_map(|k| on_set(&of_output(k))).collect()
    }

    /// The slopes and curvatures of the rows for one output; whoever asks puts them back.
    fn row_slopes(&mut self, output: usize) -> RowSlopes {
        self.slopes.take().filter(|known| known.output == output).unwrap_or_else(|| {
            let (slopes, curvatures) = pass::expand(&self.problem, &self.margins, &self.secants, output);
            RowSlopes { output, slopes, curvatures }
        })
    }

    /// Hands wᵢℓ″/N of each row for one output to some work.
    fn with_curvatures<T>(&mut self, output: usize, work: impl FnOnce(&Self, &[f64]) -> T) -> T {
        if !self.shape.sees_all {
            let rows = self.row_slopes(output);
            let done = work(self, &rows.curvatures);
            self.slopes = Some(rows);
            return done;
        }
        let problem = Arc::clone(&self.problem);
        let mut curvatures = std::mem::take(&mut self.weighted);
        curvatures.clear();
        let share = 1.0 / problem.total_rows() as f64;
        match problem.row_weights() {
            None => curvatures.extend(self.evaluation().curvatures.iter().map(|h| share * h)),
            Some(weights) => {
                let of = |(h, &weight): (&f64, &f64)| pass::weighted(weight * share, || *h);
                curvatures.extend(self.evaluation().curvatures.iter().zip(weights).map(of));
            }
        }
        for (row, (h, secant)) in curvatures.iter_mut().zip(&self.secants).enumerate() {
            *h = h.max(pass::weighted(problem.row_weight(row) * share, || *secant));
        }
        let done = work(self, &curvatures);
        self.weighted = curvatures;
        done
    }

    fn hessian(&mut self, outputs: Range<usize>, order: &[usize]) -> Huge<f64> {
        if outputs.len() > 1 {
            return self.joint_hessian(order.len()).into();
        }
        self.with_curvatures(outputs.start, |rows, curvatures| rows.set.gram(&rows.problem, order, curvatures))
    }

    fn descend(&mut self, output: usize, model: &Model, tolerance: f64) -> Vec<f64> {
        let &Model { terms, x, u, damping, blocks, most } = model;
        self.with_curvatures(output, |rows, curvatures| {
            let columns = rows.set.contiguous_columns(&rows.problem);
            Descent { columns, terms, curvatures, damping, blocks, most }.solve(x, u, tolerance)
        })
    }

    fn propose(&mut self, outputs: Range<usize>, x: &[f64], z: &[f64]) {
        let change = x.iter().zip(z).map(|(x, z)| z - x);
        let shift = if self.shape.sees_all { Vec::new() } else { self.shift_of(outputs, change) };
        self.step = Some(Step { x: x.to_vec(), z: z.to_vec(), shift, end: None });
    }

    /// What a change of the working set's coordinates of these outputs adds to the margins.
    fn shift_of(&self, outputs: Range<usize>, change: impl Iterator<Item = f64>) -> Vec<f64> {
        let (features, all) = (self.set.features.len(), self.problem.outputs());
        let width = features + usize::from(self.problem.has_intercept());
        let mut shift = vec![0.0; self.problem.n_rows() * all];
        let mut weights = Vec::new();
        for (at, delta) in change.enumerate().filter(|(_, delta)| *delta != 0.0) {
            let (output, index) = (outputs.start + at / width, at % width);
            if index < features {
                weights.push((output, index, delta));
            } else {
                shift.iter_mut().skip(output).step_by(all).for_each(|shift| *shift = delta);
            }
        }
        self.set.add_to(&self.problem, &weights, &mut shift);
        shift
    }

    /// f after a share of the step.
    fn loss(&mut self, size: f64) -> f64 {
        let problem = Arc::clone(&self.problem);
        if size == 0.0 {
            return if self.shape.sees_all { self.evaluation().loss } else { pass::mean_loss(&problem, &self.margins) };
        }
        let Some(mut step) = self.step.take() else { return f64::NAN };
        let loss = if self.shape.sees_all && size == 1.0 {
            let evaluation = pass::evaluate(&problem, &self.all_features(&step.z), self.spare.take());
            step.end.insert(evaluation).loss
        } else {
            // What the full step would do to the margins is known: any part of it costs no pass over the data.
            self.complete(&mut step);
            pass::mean_loss(&problem, &shifted(self.margins(), size, &step.shift))
        };
        self.step = Some(step);
        loss
    }

    /// Sees to it that what a step adds to the margins is known.
    fn complete(&mut self, step: &mut Step) {
        if !step.shift.is_empty() {
            return;
        }
        let problem = Arc::clone(&self.problem);
        let to = match &step.end {
            Some(evaluation) => &evaluation.margins,
            None => &step.end.insert(pass::evaluate(&problem, &self.all_features(&step.z), self.spare.take())).margins,
        };
        step.shift = to.iter().zip(self.margins()).map(|(to, from)| to - from).collect();
    }

    /// The point of coordinates of a working set that is all features.
    fn all_features(&self, x: &[f64]) -> Point {
        let (weights, intercept) = x.split_at(self.problem.n_features());
        Point { weights: weights.to_vec(), intercept: vec![intercept.first().copied().unwrap_or(0.0)] }
    }

    fn take(&mut self, size: f64) {
        let Some(mut step) = self.step.take() else { return };
        if !self.shape.sees_all {
            self.margins = shifted(&self.margins, size, &step.shift);
            return self.moved();
        }
        let end = step.end.take();
        self.moved();
        self.margins.clear();
        self.point = Some(self.all_features(&between(&step.x, &step.z, size)));
        match end {
            Some(evaluation) if size == 1.0 => self.evaluation = Some(evaluation),
            Some(evaluation) => self.spare = Some(evaluation),
            None => {}
        }
    }

    /// How the slope of each row would have changed over the rest of the step after a share of it.
    fn secants(&mut self, after: Option<f64>) {
        let Some(size) = after else {
            if !self.secants.is_empty() {
                (self.secants, self.slopes) = (Vec::new(), None);
            }
            return;
        };
        let Some(mut step) = self.step.take() else { return };
        self.complete(&mut step);
        let problem = Arc::clone(&self.problem);
        let from = pass::row_gradients(&problem, &shifted(self.margins(), size, &step.shift));
        let to = pass::row_gradients(&problem, &shifted(self.margins(), 1.0, &step.shift));
        self.secants.resize(step.shift.len(), 0.0);
        for (at, secant) in self.secants.iter_mut().enumerate() {
            let now = (to[at] - from[at]) / ((1.0 - size) * step.shift[at]);
            *secant = if now.is_finite() { secant.max(now) } else { *secant };
        }
        // The slopes at hand are the same, their curvatures are not.
        self.slopes = None;
        self.step = Some(step);
    }
}

impl Memory {
    /// What a job adds up that moves nothing.
    fn sums(&mut self, job: &Job) -> Sums {
        match job {
            Job::Centre(shift) => self.centre(shift).into(),
            Job::Gradient { columns } => self.gradient(*columns),
            Job::Entries => vec![self.set.entries(&self.problem) as f64].into(),
            Job::Slopes { outputs, features } => self.slopes(outputs.clone(), *features).into(),
            Job::Hessian { outputs, order } => self.hessian(outputs.clone(), order).into(),
            Job::Squares { order } => {
                let gram = self.set.gram(&self.problem, order, &vec![1.0; self.problem.n_rows()]);
                gram.iter().step_by(order.len() + 1).copied().collect::<Vec<f64>>().into()
            }
            Job::HessianLines { output, indices } => {
                let lines = self.with_curvatures(*output, |rows, curvatures| {
                    rows.set.gram_lines(&rows.problem, indices, curvatures)
                });
                lines.into_iter().flatten().collect::<Huge<f64>>().into()
            }
            Job::Descend { output, model, tolerance } => self.descend(*output, model, *tolerance).into(),
            Job::Diagonal { outputs, part } => {
                let of = |output| self.with_curvatures(output, |rows, h| rows.set.diagonal(&rows.problem, h, *part));
                outputs.clone().flat_map(of).collect::<Vec<f64>>().into()
            }
            Job::Product { outputs, v, part } if outputs.len() == 1 => {
                self.with_curvatures(outputs.start, |rows, h| rows.set.product(&rows.problem, h, v, *part)).into()
            }
            Job::Product { v, .. } => self.joint_product(v).into(),
            Job::Loss(size) => vec![self.loss(*size)].into(),
            Job::Dual(job) => self.run_dual(job),
            Job::Place(_) | Job::Shift(_) | Job::Select(_) | Job::Propose { .. } | Job::Take(_) | Job::Secants(_) => {
                Sums::default()
            }
        }
    }
}

impl Shards for Memory {
    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn run(&mut self, job: &Job) -> Result<Sums> {
        match job {
            Job::Place(point) => self.place(point),
            Job::Shift(by) => self.shift(by),
            Job::Select(features) => self.set = WorkingSet::new(&self.problem, features.to_vec(), &self.set),
            Job::Propose { outputs, x, z } => self.propose(outputs.clone(), x, z),
            Job::Take(size) => self.take(*size),
            Job::Secants(after) => self.secants(*after),
            _ => return Ok(self.sums(job)),
        }
        Ok(Sums::default())
    }

    fn order(&mut self, wanted: Vec<usize>) -> Vec<usize> {
        self.set.order(&self.problem, wanted)
    }

    fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        // Margins could be computed anew, but not to the same bits. An evaluation can.
        write_array(out, if self.shape.sees_all { &[] } else { &self.margins })?;
        write_array(out, &self.secants)
    }

    fn load(&mut self, input: &mut dyn Read) -> io::Result<()> {
        self.moved();
        let rows = self.problem.n_rows();
        self.margins = read_array(input, rows * self.problem.outputs())?;
        self.secants = read_array(input, rows)?;
        let saved = if self.shape.sees_all { 0 } else { rows * self.problem.outputs() };
        match self.margins.len() == saved && [0, rows].contains(&self.secants.len()) {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "margins of other rows")),
        }
    }
}
