//! A text of one number a line.

use rayon::prelude::*;

use super::blocks::{Blocks, Flaw, cut};
use super::number;
use super::source::Source;
use crate::{Result, memory};

const BLOCK: usize = 1 << 20;

/// Reads a whole stream.
pub(super) fn read(source: Source) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    let mut blocks = Blocks::of(source, BLOCK, 0);
    while blocks.advance()? {
        let (text, pieces) = (blocks.text(), cut(blocks.text()));
        let parts: Vec<_> = pieces.par_iter().map(|piece| parse(&text[piece.clone()])).collect();
        memory::check(2 * size_of_val(&all[..]) as u128, || format!("{} numbers", all.len()))?;
        for (piece, part) in pieces.iter().zip(parts) {
            all.extend(part.map_err(|flaw| blocks.error(piece.start, flaw))?);
        }
    }
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
