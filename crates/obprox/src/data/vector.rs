//! A text of one number a line.

use super::blocks::{Flaw, parse_lines};
use super::number;
use super::source::Source;
use crate::Result;

const BLOCK: usize = 1 << 20;

/// Reads a whole stream.
pub(super) fn read(source: Source) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    parse_lines(source, BLOCK, 0, parse, |part| {
        all.extend_from_slice(&part);
    })?;
    Ok(all)
}

fn parse(text: &[u8]) -> std::result::Result<Vec<f64>, Flaw> {
    let mut values = Vec::new();
    for (line, field) in (0..).zip(text.split(|&byte| byte == b'\n')) {
        let column = field.len() - field.trim_ascii_start().len();
        let field = field.trim_ascii();
        if !field.is_empty() {
            values.push(number::parse(field).map_err(|message| Flaw { line, column, message })?);
        }
    }
    Ok(values)
}
