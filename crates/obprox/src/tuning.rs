//! Tuned numbers: what each trades, and what set it.
//!
//! Only numbers that were chosen by measuring are here; those that follow from a format or from arithmetic stand where they
//! are used, and so do the sizes of the kernels' tiles. `benches/README.md` has the tables.

// ---- shapes ----------------------------------------------------------------------------------------------------------

/// Features. Up to so many, rows stay as they are, one pass gives every slope, and all features make up the working set;
/// their sums stay in the nearest cache several times over. Above, working sets have columns. A larger number makes
/// Hessians of features that end as zeros, a smaller one takes columns out of rows that fit the cache as they are. a9a, w8a,
/// higgs_subset without columns: half to four fifths of the time.
pub(crate) const FEW: usize = 512;
/// Of λ_max. From this share on few features will be wanted of however few there are, and a set of all is too large.
pub(crate) const NEAR_MAX: f64 = 0.25;
/// Of λ_max. From this share down λ falls to its value with few features too: at once the face is anyone's guess
/// (`tests/hard.rs` has problems that are not solved otherwise). Above, the rounds that this takes save nothing.
pub(crate) const TINY: f64 = 1e-4;

// ---- models ----------------------------------------------------------------------------------------------------------

/// Coordinates. A working set of at most so many has its Hessian formed unless that is hollow. On text columns took two to
/// three times as long from 300 coordinates on.
pub(crate) const LARGE_HESSIAN: usize = 1500;
/// Coordinates. Up to so many it is formed where the columns have as many entries as it would have, as those of many rows
/// do; a larger one is walked by its columns. 525,484 rows of kdda's shape, 2262 features: 58 → 9 s for the last rounds; 20
/// Newsgroups, 2651 features of fewer entries: 5.9 → 12.9 s, were it formed.
pub(crate) const LARGEST_HESSIAN: usize = 4000;
/// The same of so many rows that a larger one is minimised by products. Its set keeps its rows and no columns.
pub(crate) const LARGEST_BEFORE_PRODUCTS: usize = 4000;
/// Coordinates. A model of more may have a Hessian that is hollow; below it does not matter.
pub(crate) const SMALL_HESSIAN: usize = 256;
/// Entries of a Hessian for each entry of its columns, from which on it is hollow and not formed. A thousand rows × 200,000
/// columns: 4.1 → 0.13 s at 0.1 λ_max.
pub(crate) const HOLLOW: f64 = 64.0;
/// Coordinates of all outputs together, up to which they are stepped on at once: one Hessian of them all against one of each.
pub(crate) const JOINTLY: usize = 600;

// ---- samples ---------------------------------------------------------------------------------------------------------

/// Rows. From so many on problems of many features begin with samples of their rows; below a round on all costs too little.
/// 525,484 rows of kdda's shape: 67 → 15 s, with the larger Hessians above.
pub(crate) const MANY_ROWS: usize = 100_000;
/// Rows. The smallest sample of many features that is worth a look.
pub(crate) const LEAST_SAMPLE: usize = 8192;

/// Rounds.
pub(crate) mod rounds {
    /// How many times smaller λ is with each of the first rounds: fewer rounds against sets that grow past the support. On text
    /// other falls made no difference beyond noise.
    pub(crate) const FALL: f64 = 4.0;
    /// A round that takes less of F than this share of it, and of the gap, brings nothing: there are not rounds enough.
    pub(crate) const PROGRESS: f64 = 1e-6;
    /// Times the gap asked for. One that is at most so large may be due to the intercept alone, which a pass can tell; above,
    /// that pass is wasted.
    pub(crate) const NEARLY: f64 = 1e5;
    /// Newton steps on one working set.
    pub(crate) const STEPS: usize = 30;
}

/// The working set.
pub(crate) mod select {
    /// What share of its λ_j a slope must have for its feature to be taken along to the next λ: a larger set and Hessian against
    /// another one made for each λ.
    /// Least squares that turn to a Hessian take their set as widely: 1000 × 2000 independent columns at 0.001 λ_max 0.50 → 0.42 s of
    /// processor time.
    pub(crate) const NEAR: f64 = 0.8;
    /// Features that may enter a small set at once: one out of so many there are, and at most so many.
    pub(crate) const ROOM: (usize, usize) = (8, 128);
    /// The same where sets are walked by their columns, and features that end as zeros cost little: fewer rounds. With the wide
    /// sets above, in processor time: 1000 × 2000 at 0.001 λ_max 0.42 → 0.30 s, 500 × 3000 correlated columns 0.57 → 0.41 s; unigrams
    /// at 0.01 λ_max up to a tenth more.
    pub(crate) const ROOM_ALONG_COLUMNS: (usize, usize) = (4, 600);
    /// A set grows where at most one in so many of its features would be new; more are cause for another one. The last rounds on
    /// text took a tenth of the time once they added lines to a Hessian instead of making one.
    pub(crate) const FEW_NEW: usize = 16;
}

/// Newton steps.
pub(crate) mod newton {
    /// What a model's minimum may violate of what violates before, relative to what the round is to leave of it: the minimum of
    /// a large one takes longer than the step that it spares, that of a small one does not. Unigrams at 0.01 λ_max, 0.01 → 0.03
    /// of large ones, with the descent of [`super::quadratic`]: 0.59 → 0.30 s.
    pub(crate) const ROUGHLY: f64 = 0.03;
    pub(crate) const CLOSELY: f64 = 0.01;
    pub(crate) const EXACTLY: f64 = 1e-9;
    /// Along columns each digit of the model's minimum costs as much as the one before: on the way it is rougher still.
    pub(crate) const ROUGHER: f64 = 10.0;
    /// A Hessian is kept while each step by it leaves at most this share of the violation: forming it anew costs as much as
    /// many steps.
    pub(crate) const SERVES: f64 = 0.5;
    /// The same with few features, whose Hessians cost less.
    pub(crate) const SERVES_FEW: f64 = 0.25;
    /// The same where a Hessian costs no more than a pass over the rows: where it has at most so many entries a row. 200,000 × 100
    /// at 0.1 λ_max: 6 → 3 steps, 55 → 43 ms.
    pub(crate) const SERVES_CHEAP: f64 = 0.02;
    pub(crate) const CHEAP: f64 = 3.0;
    /// After a step shorter than this the next knows of what stopped it: see [`crate::rows::Job::Secants`].
    pub(crate) const SHORT: f64 = 0.2;
    /// Steps of a round that promise less than the last bit of F: some of them still win digits of the slopes.
    pub(crate) const MOST_HIDDEN: usize = 3;
    /// A coordinate is left out of a step where it is zero and its slope is below this share of its λ: a smaller Hessian against
    /// one that lacks what turns out to be wanted.
    pub(crate) const ACTIVE: f64 = 0.7;
    /// Coordinates. A Hessian that lacks no more than that is given their lines; with more it is made anew on all threads.
    pub(crate) const MOST_MISSING: usize = 48;
    /// How much further steps go that need no new Hessian.
    pub(crate) const FURTHER: f64 = 0.03;
    /// The share of the gap asked for at which a foreseen one is good enough.
    pub(crate) const IN_SIGHT: f64 = 0.5;
    /// What a step missed at the λ before is scaled by at most this for the next; so corrected, steps of a path landed ten to
    /// thirty times nearer.
    pub(crate) const LONGEST: f64 = 4.0;
}

/// Hessians that are kept.
pub(crate) mod cached {
    /// Relative to the curvature. Dampings up to this one are all alike, and do not cost a Hessian.
    pub(crate) const NO_DAMPING: f64 = 1e-6;
}

/// The line search.
pub(crate) mod search {
    /// The share of what the model `expected` by which F falls after a full step that is not looked at further; a model that
    /// is right falls by half of it.
    pub(crate) const FALLS_AS_FORESEEN: f64 = 0.3;
}

/// Models with a Hessian.
pub(crate) mod quadratic {
    /// Coordinate descent goes on for as long as this many sweeps of all coordinates would take, at least. With the next two,
    /// unigrams: a path of 1.9–2.1 s takes 1.25–1.4.
    pub(crate) const FEWEST_SWEEPS: usize = 12;
    /// Of p coordinates a factor takes as long as p²/40 moves of one: it has all it needs in the cache, a move has not.
    pub(crate) const MOVES_OF_A_FACTOR: usize = 40;
    /// To visit a coordinate takes so many times less than to move it.
    pub(crate) const VISITS_OF_A_MOVE: usize = 16;
    /// Faces tried before the point found so far has to do.
    pub(crate) const FACES: usize = 40;
    /// Those in a row that do not halve the violation.
    pub(crate) const IDLE_FACES: usize = 5;
    /// From so many coordinates on a factor costs more than some conjugate steps that another preconditions, and sweeps of them
    /// all more than a scan for those to move.
    pub(crate) const LARGE: usize = 256;
    /// A face is nearly another where they differ in at most this part of their coordinates.
    pub(crate) const FEW_OF_A_FACE: usize = 16;
    /// Conjugate steps preconditioned by another face's factor before a new one is made. Here and along columns conjugate steps
    /// took 1,000 × 200,000 at 0.1 λ_max from 0.7 to 0.1 s, its path from 10 to 1.3.
    pub(crate) const CONJUGATE: usize = 8;
}

/// Models by products.
pub(crate) mod products {
    /// Faces in a row.
    pub(crate) const FACES: usize = 8;
    /// Conjugate steps on one face.
    pub(crate) const CONJUGATE: usize = 24;
    /// What a step on a face may leave of the largest violation.
    pub(crate) const LEFT: f64 = 0.1;
    /// What the minimum of a model by a sample of the rows may violate of what violates before. Neither this nor the next is
    /// tuned.
    pub(crate) const OF_SAMPLE: f64 = 0.05;
    /// Of the violation. Steps by a sample go on while each leaves at most this share of it.
    pub(crate) const SAMPLE_SERVES: f64 = 0.5;
}

/// Models along columns.
pub(crate) mod descent {
    /// Sweeps over the coordinates that move; between them all are scanned.
    pub(crate) const SWEEPS: usize = 10;
    /// Scans of all coordinates.
    pub(crate) const SCANS: usize = 20;
    /// Faces in a row, each smaller than the last, before coordinates are scanned again.
    pub(crate) const FACES: usize = 2;
    /// Sweeps after which a Hessian is worth its time where the model is f itself: so many, and one more for so many coordinates,
    /// of which each has a line to be made. Against a Hessian at once, in processor time: 1000 × 2000 independent columns at 0.01 λ_max
    /// 1.01 → 0.23 s, in groups of ten at 0.1 λ_max 0.66 → 0.18 s, 500 × 3000 correlated ones at 0.01 λ_max 1.05 → 0.69 s; 72 × 7129:
    /// 4 to 18 % more.
    pub(crate) const LEAST_SWEEPS: usize = 20;
    pub(crate) const COORDINATES_A_SWEEP: usize = 24;
    /// Coordinates. Blocks of at most so many go along columns, which takes a Hessian of each.
    pub(crate) const LARGEST_BLOCK: usize = 64;
    /// Conjugate steps on one face: with as many features as rows the last digits would take hundreds.
    pub(crate) const CONJUGATE: usize = 30;
}

/// Models with a penalty on blocks.
pub(crate) mod blockwise {
    /// Rounds of descent and of steps on the face.
    pub(crate) const FACES: usize = 60;
    /// Sweeps over all blocks in one of them, at least; else as many as a factor takes the time of.
    pub(crate) const SWEEPS: usize = 4;
    /// Proximal steps on a block before the next has its turn.
    pub(crate) const INNER: usize = 6;
    /// Newton steps on one face, and how often each is halved.
    pub(crate) const NEWTON: usize = 12;
    pub(crate) const HALVINGS: usize = 12;
    /// Rounds in a row that do not halve the violation.
    pub(crate) const IDLE: usize = 6;
    /// Accelerated steps.
    pub(crate) const ACCELERATED: usize = 300;
}

/// Features that are left out.
pub(crate) mod reduce {
    /// Rows are left as they are where the features that stay have more than this share of the entries: the first where the
    /// slopes of all features fit the cache, and a pass gains by fewer entries alone. Unigrams at half of λ_max: 17 → 12 ms.
    pub(crate) const MOST_KEPT: [f64; 2] = [0.4, 0.6];
    pub(crate) const FIT_THE_CACHE: usize = 1 << 17;
}

/// Samples of the rows.
pub(crate) mod sample {
    /// Rows of a sample for each feature, of few. w8a at 0.1 λ_max with a sample: 0.08 → 0.05 s; 200,000 × 100: 0.15 → 0.08.
    pub(crate) const ROWS_A_FEATURE: usize = 32;
    /// A sample for few features has at least so many rows, and at least this part of them.
    pub(crate) const LEAST: usize = 2048;
    pub(crate) const LEAST_PART: usize = 32;
    /// A sample is at most this part of the rows: or it would not save much. Each is so many times larger than the one before.
    pub(crate) const MOST_PART: usize = 4;
    /// λ on the sample for few features is at least this share of λ_max; that for many at most this one.
    pub(crate) const NOISE: f64 = 0.03;
    /// The relative gap that will do there, about, times the sample's share of the rows: steps on a large one cost nearly as
    /// much as those on all. Rounds before it has to do without.
    pub(crate) const ROUGHLY: f64 = 4.0;
    pub(crate) const ROUNDS: usize = 8;
}

/// Smoother losses.
pub(crate) mod smooth {
    /// The widest loss spans so many times what the margins may be expected to move by.
    pub(crate) const WIDEST: f64 = 4.0;
    /// How fast the width falls.
    pub(crate) const FALL: f64 = 4.0;
    /// Losses that differ by less than this width from the one at hand need no such start.
    pub(crate) const WORTH_IT: f64 = 16.0;
    /// A smoother loss lies up to ½·δ·width away: what its fit may be off by, relative to δ·width.
    pub(crate) const ROUGHLY: f64 = 0.02;
    /// Rounds on each.
    pub(crate) const ROUNDS: usize = 6;
}
