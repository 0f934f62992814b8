//! The `obprox` command.
fn main() {}
