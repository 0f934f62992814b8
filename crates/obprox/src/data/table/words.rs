//! Words by number, in the order they are met.

use std::collections::HashMap;

use super::{Cells, NO_WORD};

/// A column of words that grows.
#[derive(Default)]
pub struct Words {
    known: HashMap<String, u32>,
    codes: Vec<u32>,
}

impl Words {
    /// Appends a word, or that it is missing.
    pub fn push(&mut self, word: Option<&str>) {
        let code = word.map_or(NO_WORD, |word| self.code(word));
        self.codes.push(code);
    }

    /// The number of a word.
    pub fn code(&mut self, word: &str) -> u32 {
        let next = self.known.len() as u32;
        match self.known.get(word) {
            Some(&code) => code,
            None => *self.known.entry(word.to_owned()).or_insert(next),
        }
    }

    /// Appends words that are numbered otherwise: word i of theirs is word `codes[i]` here.
    pub fn extend(&mut self, codes: &[u32], theirs: impl Iterator<Item = u32>) {
        self.codes.extend(theirs.map(|code| codes.get(code as usize).copied().unwrap_or(NO_WORD)));
    }

    /// Appends another such column.
    pub fn append(&mut self, other: Self) {
        let mut codes = vec![0; other.known.len()];
        other.known.into_iter().for_each(|(word, code)| codes[code as usize] = self.code(&word));
        self.extend(&codes, other.codes.into_iter());
    }

    /// The whole column.
    pub fn finish(self) -> Cells {
        let mut words = vec![String::new(); self.known.len()];
        self.known.into_iter().for_each(|(word, code)| words[code as usize] = word);
        Cells::Words { words, codes: self.codes }
    }
}
