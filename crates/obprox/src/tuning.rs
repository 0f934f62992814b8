//! Tuned numbers: what each trades, and what set it.
//!
//! Only numbers that were chosen by measuring are here; those that follow from a format or from arithmetic stand where they
//! are used. `benches/README.md` has the tables.

// ---- shapes ----------------------------------------------------------------------------------------------------------

/// Features. Up to so many, rows stay as they are, one pass gives every slope, and all features make up the working set;
/// their sums stay in the nearest cache several times over. Above, working sets have columns. A larger number makes
/// Hessians of features that end as zeros, a smaller one takes columns out of rows that fit the cache as they are.
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
/// Coordinates. A model of more may have a Hessian that is hollow; below it does not matter.
pub(crate) const SMALL_HESSIAN: usize = 256;
/// Entries of a Hessian for each entry of its columns, from which on it is hollow and not formed. A thousand rows × 200,000
/// columns: 4.1 → 0.13 s at 0.1 λ_max.
pub(crate) const HOLLOW: f64 = 64.0;
/// Coordinates of all outputs together, up to which they are stepped on at once: one Hessian of them all against one of each.
pub(crate) const JOINTLY: usize = 600;

// ---- samples ---------------------------------------------------------------------------------------------------------

/// Rows. From so many on problems of many features begin with samples of their rows; below a round on all costs too little.
pub(crate) const MANY_ROWS: usize = 100_000;
/// Rows. The smallest sample of many features that is worth a look.
pub(crate) const LEAST_SAMPLE: usize = 8192;
