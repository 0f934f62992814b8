//! The rows behind one seam: nothing that is N long leaves them.
//!
//! A solver knows the n weights and its working set. Margins, the slopes and curvatures of rows, what a step does to the
//! margins and the dual point live where the rows live. It asks for [`Job`]s, which are plain data, and is given [`Sums`]
//! over all rows, 1/N included: those of shards are added up in their order, whoever computed them. So rows may lie in
//! this process's memory ([`Memory`]), on a disk ([`Disk`]) or on other machines ([`remote`]).
//!
//! Rows remember where the last job left them: [`Job::Place`] puts them at a point, [`Job::Propose`] names a step from
//! there, [`Job::Take`] takes some of it. The functions of [`dyn Shards`](Shards) are the jobs by name, with what each
//! returns.

mod disk;
pub(crate) mod full;
mod memory;
pub mod remote;
mod sharded;

use std::io::{self, Read, Write};
use std::ops::Range;

pub(crate) use self::disk::Disk;
pub(crate) use self::memory::scatter::FAR;
pub(crate) use self::memory::{Memory, at_zero, pass, stays_in_rows};
pub(crate) use self::remote::Remote;
pub(crate) use self::sharded::task::{Answer, Task};
use crate::Result;
use crate::auto::blockwise::InSet;
use crate::huge::Huge;
use crate::penalty::ElasticNet;
use crate::problem::Point;

/// Rows, wherever they are.
pub(crate) trait Shards: Send + Sync {
    /// What is known of them before any job.
    fn shape(&self) -> &Shape;
    /// Does a job on all rows.
    fn run(&mut self, job: &Job) -> Result<Sums>;
    /// The order in which a Hessian of these indices of the working set is made fastest. Others may come along.
    fn order(&mut self, wanted: Vec<usize>) -> Vec<usize> {
        wanted
    }
    /// Writes what a resumed run needs of the rows' state to come to the same bits.
    fn save(&self, out: &mut dyn Write) -> io::Result<()>;
    /// Reads it back.
    fn load(&mut self, input: &mut dyn Read) -> io::Result<()>;
}

/// What a solver plans by.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The share of the cells that is stored.
    pub filled: f64,
    /// Whether a pass gives every slope along with the losses: rows of few features, which stay as they are.
    pub sees_all: bool,
}

/// What rows are asked to do.
#[derive(Clone)]
pub(crate) enum Job<'a> {
    /// Goes to a point: margins from x alone, never from increments.
    Place(&'a Point),
    /// ℓ′ and ℓ″ of each output, summed over the rows, if the intercepts moved by so much; nothing where the loss has no ℓ″.
    Centre(&'a [f64]),
    /// Moves the intercepts.
    Shift(&'a [f64]),
    /// f and its slopes along the intercepts; those along every column only if asked for.
    Gradient { columns: bool },
    /// These features, which rise, are the working set from now on.
    Select(&'a [u32]),
    /// The entries of its columns.
    Entries,
    /// The slopes along the working set's coordinates of these outputs, or along the intercept alone.
    Slopes { outputs: Range<usize>, features: bool },
    /// The lower triangle of the Hessian on these coordinates of the working set, at least.
    Hessian { outputs: Range<usize>, order: &'a [usize] },
    /// Its diagonal, were every curvature 1.
    Squares { order: &'a [usize] },
    /// Its lines at a few indices, each over all of the working set.
    HessianLines { output: usize, indices: &'a [usize] },
    /// Minimises a model of the working set along its columns, which must be in one memory.
    Descend { output: usize, model: Model<'a>, tolerance: f64 },
    /// The diagonal of the Hessian on the working set, and its product with a vector, without forming it.
    Diagonal {
        outputs: Range<usize>,
        /// Of some of the rows alone, one out of about so many; 1 for all. Rows in shards give that of all.
        part: usize,
    },
    Product {
        outputs: Range<usize>,
        v: &'a [f64],
        /// The same.
        part: usize,
    },
    /// Names a step from x to z on the working set's coordinates of these outputs.
    Propose { outputs: Range<usize>, x: &'a [f64], z: &'a [f64] },
    /// f after such a share of the step.
    Loss(f64),
    /// Takes that share of it.
    Take(f64),
    /// From now on the curvature of a row is at least its secant over the step after this share; nothing: its own.
    Secants(Option<f64>),
    /// Work on the dual point.
    Dual(DualJob<'a>),
}

/// Work on the dual point θ, which begins as ℓ′ at the margins.
#[derive(Clone)]
pub(crate) enum DualJob<'a> {
    /// Begins anew.
    Begin,
    /// Σ ℓ*(s·θ), infinite outside the domain.
    Value(f64),
    /// Σ θd over every column.
    Gradient,
    /// Σ ℓ″, of one output.
    Curvature,
    /// θ ← θ − step·ℓ″, of one output; then Σ θ.
    Move(f64),
    /// The largest entry of each column. (A maximum, not a sum.)
    Largest,
    /// These features and the intercepts are the unpenalised coordinates A. Σ of the squares of their columns.
    Free(&'a [u32]),
    /// Σ |A·x|².
    FreeMargins(&'a [f64]),
    /// Σ AᵀA over one output.
    FreeGram,
    /// Subtracts from the columns of these indices such sums of all.
    FreeReplace(&'a [(usize, Vec<f64>)]),
    /// Σ Aᵀθ.
    FreeSlopes,
    /// Σ AᵀHA, without the rows that are held.
    FreeHessian,
    /// θ ← θ − H·Aδ; a row that would leave the domain keeps its θ and is held. How many rows that were.
    FreeCorrect(&'a [f64]),
}

/// The model of a Newton step: its coordinates, the intercept last.
#[derive(Clone)]
pub(crate) struct Model<'a> {
    pub terms: &'a [ElasticNet],
    pub x: &'a [f64],
    /// The slopes of the smooth part.
    pub u: &'a [f64],
    pub damping: f64,
    /// The penalty, where it is one on blocks.
    pub blocks: Option<&'a InSet>,
    /// Visits to columns that its minimum is worth.
    pub most: usize,
}

/// What a job adds up: a few numbers, and an array where there is a large one.
#[derive(Default)]
pub(crate) struct Sums {
    pub numbers: Vec<f64>,
    pub array: Huge<f64>,
}

impl From<Vec<f64>> for Sums {
    fn from(numbers: Vec<f64>) -> Self {
        Self { numbers, array: Huge::default() }
    }
}

impl From<Huge<f64>> for Sums {
    fn from(array: Huge<f64>) -> Self {
        Self { numbers: Vec::new(), array }
    }
}

/// The point after a share of a step; a full step lands on z itself, zeros included.
pub(crate) fn between(x: &[f64], z: &[f64], size: f64) -> Vec<f64> {
    if size == 1.0 {
        return z.to_vec();
    }
    x.iter().zip(z).map(|(x, z)| x + size * (z - x)).collect()
}

/// f at a point and how steep it is there.
#[derive(Default)]
pub(crate) struct Gradient {
    /// f.
    pub loss: f64,
    /// ∂f/∂b, one an output, whether or not there are intercepts.
    pub intercept: Vec<f64>,
    /// ∂f/∂x.
    pub weights: Huge<f64>,
}

impl dyn Shards + '_ {
    pub fn place(&mut self, point: &Point) -> Result<()> {
        self.run(&Job::Place(point)).map(drop)
    }

    pub fn shift(&mut self, by: &[f64]) -> Result<()> {
        self.run(&Job::Shift(by)).map(drop)
    }

    /// f and all its slopes.
    pub fn gradient(&mut self) -> Result<Gradient> {
        self.gradient_of(true)
    }

    /// f and its slopes along the intercepts.
    pub fn intercept_gradient(&mut self) -> Result<Gradient> {
        self.gradient_of(false)
    }

    fn gradient_of(&mut self, columns: bool) -> Result<Gradient> {
        let Sums { mut numbers, array } = self.run(&Job::Gradient { columns })?;
        let intercept = numbers.split_off(1);
        Ok(Gradient { loss: numbers[0], intercept, weights: array })
    }

    pub fn select(&mut self, features: &[u32]) -> Result<()> {
        self.run(&Job::Select(features)).map(drop)
    }

    pub fn entries(&mut self) -> Result<f64> {
        self.number(&Job::Entries)
    }

    pub fn slopes(&mut self, outputs: Range<usize>) -> Result<Vec<f64>> {
        self.numbers(&Job::Slopes { outputs, features: true })
    }

    /// The slope along the intercept of one output; nothing where there is none.
    pub fn intercept_slope(&mut self, output: usize) -> Result<Option<f64>> {
        Ok(self.numbers(&Job::Slopes { outputs: output..output + 1, features: false })?.first().copied())
    }

    pub fn hessian(&mut self, outputs: Range<usize>, order: &[usize]) -> Result<Huge<f64>> {
        self.array(&Job::Hessian { outputs, order })
    }

    pub fn squares(&mut self, order: &[usize]) -> Result<Vec<f64>> {
        self.numbers(&Job::Squares { order })
    }

    pub fn hessian_lines(&mut self, output: usize, indices: &[usize]) -> Result<Vec<Vec<f64>>> {
        let lines = self.array(&Job::HessianLines { output, indices })?;
        Ok(lines.chunks_exact(lines.len() / indices.len()).map(<[f64]>::to_vec).collect())
    }

    pub fn descend(&mut self, output: usize, model: Model, tolerance: f64) -> Result<Vec<f64>> {
        self.numbers(&Job::Descend { output, model, tolerance })
    }

    pub fn propose(&mut self, outputs: Range<usize>, x: &[f64], z: &[f64]) -> Result<()> {
        self.run(&Job::Propose { outputs, x, z }).map(drop)
    }

    pub fn loss(&mut self, size: f64) -> Result<f64> {
        self.number(&Job::Loss(size))
    }

    pub fn take(&mut self, size: f64) -> Result<()> {
        self.run(&Job::Take(size)).map(drop)
    }

    pub fn secants(&mut self, after: Option<f64>) -> Result<()> {
        self.run(&Job::Secants(after)).map(drop)
    }

    /// Work on the dual point that gives a few numbers.
    pub fn dual(&mut self, job: DualJob) -> Result<Vec<f64>> {
        self.numbers(&Job::Dual(job))
    }

    /// A job that gives one number.
    pub fn number(&mut self, job: &Job) -> Result<f64> {
        Ok(self.numbers(job)?[0])
    }

    /// A job that gives a few.
    pub fn numbers(&mut self, job: &Job) -> Result<Vec<f64>> {
        Ok(self.run(job)?.numbers)
    }

    /// A job that gives an array.
    pub fn array(&mut self, job: &Job) -> Result<Huge<f64>> {
        Ok(self.run(job)?.array)
    }
}
