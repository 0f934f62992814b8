//! What people look at after a run: run logs → tables, pictures and one self-contained page.
//!
//! ```
//! use obprox_report::{Report, log, page, table};
//!
//! let text = concat!(
//!     r#"{"event":"start","data":"train.svm","rows":120,"n_features":12,"solver":"auto","lambda":0.01}"#, "\n",
//!     r#"{"event":"epoch","epoch":1,"phase":"newton","F":0.5,"gap":1e-8,"density":0.25,"seconds":0.001}"#, "\n",
//!     r#"{"event":"end","status":"converged","F":0.5,"gap":1e-8,"density":0.25,"seconds":0.001}"#, "\n",
//! );
//! let report = Report::new(log::read(text.as_bytes(), "run.jsonl")?);
//! assert!(page::html(&report).starts_with("<!DOCTYPE html>"));
//! assert!(table::runs(&report.problems).to_csv().starts_with("solver,status,F,"));
//! # Ok::<(), obprox::Error>(())
//! ```
//!
//! The flow: [`log`] reads the lines that the command writes; [`Report`] sorts runs into problems and finds what is
//! known of F* ([`optimum`]); [`charts`] and [`table`] say what is shown; [`chart`] draws a chart as SVG or PNG, and
//! [`page`] sets everything on one page. The crate never prints and never exits.

pub mod chart;
pub mod charts;
pub mod log;
mod network;
pub mod optimum;
pub mod page;
mod report;
pub mod table;
pub mod terminal;
pub mod text;

pub use report::{Entry, Problem, Report};
