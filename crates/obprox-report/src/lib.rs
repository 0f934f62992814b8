//! What people look at after a run: charts as SVG and PNG, from one description.
//!
//! A [`Chart`](chart::Chart) says what is drawn (series, axes, marks); a [`Figure`](chart::Figure) sets charts beside
//! each other and gives them as SVG or PNG. The crate never prints and never exits.

pub mod chart;
