//! Rows out of a text, written where they belong.
//!
//! A text is looked at twice: how many rows and entries each piece of it can have is counted first, by its line ends and
//! colons. So every piece can be parsed straight into its part of the final arrays, side by side with the others, and
//! nothing is copied or grows. Sparse rows say the column of each entry, dense ones have them all.

use std::ops::Range;

use bytemuck::Pod;
use memchr::memchr_iter;
use rayon::prelude::*;

use super::builder::fits_f32;
use super::csr::Csr;
use super::dense::Dense;
use super::matrix::Matrix;
use crate::huge::Huge;
use crate::memory;

/// The rows so far and their targets; values are of the narrowest type that held all of them.
pub(super) struct Sheet<I> {
    /// Where each row ends.
    ends: Vec<u64>,
    targets: Vec<f64>,
    indices: Long<I>,
    values: Values,
    n_cols: u32,
}

enum Values {
    Ones(Long<()>),
    F32(Long<f32>),
    F64(Long<f64>),
}

/// What is kept of an entry's column.
pub(super) trait Index: Pod + Send + Sync {
    /// Whether an entry is kept that is zero.
    const KEEPS_ZEROS: bool;
    fn of(column: u32) -> Self;
}

/// Sparse rows.
impl Index for u32 {
    const KEEPS_ZEROS: bool = false;

    #[inline]
    fn of(column: u32) -> Self {
        column
    }
}

/// Dense rows: the column is told by the place.
impl Index for () {
    const KEEPS_ZEROS: bool = true;

    #[inline]
    fn of(_: u32) -> Self {}
}

impl<I: Index> Default for Sheet<I> {
    fn default() -> Self {
        // Zeros are no ones.
        let values = if I::KEEPS_ZEROS { Values::F32(Long::default()) } else { Values::Ones(Long::default()) };
        Self { ends: Vec::new(), targets: Vec::new(), indices: Long::default(), values, n_cols: 0 }
    }
}

/// At most so many rows and entries.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub rows: usize,
    pub entries: usize,
}

/// No fewer rows than a piece of text has: its lines, the last of which may lack its line end.
pub(super) fn most_rows(text: &[u8]) -> usize {
    memchr_iter(b'\n', text).count() + usize::from(!text.ends_with(b"\n"))
}

/// Room for the rows of one piece of text.
pub(super) struct Room<'a, W, I> {
    ends: &'a mut [u64],
    targets: &'a mut [f64],
    indices: &'a mut [I],
    values: &'a mut [W],
    used: Counts,
    n_cols: u32,
}

/// A value that the type of the others does not hold; whether single precision does.
pub(super) struct TooNarrow {
    single_is_enough: bool,
}

/// The types that values can have.
pub(super) trait Width: Pod + Send + Sync {
    fn of(value: f64) -> Option<Self>;
}

impl Width for () {
    #[inline]
    fn of(value: f64) -> Option<Self> {
        (value == 1.0).then_some(())
    }
}

impl Width for f32 {
    #[inline]
    fn of(value: f64) -> Option<Self> {
        fits_f32(value).then_some(value as f32)
    }
}

impl Width for f64 {
    #[inline]
    fn of(value: f64) -> Option<Self> {
        Some(value)
    }
}

impl<W: Width, I: Index> Room<'_, W, I> {
    /// Appends an entry to the row under way; columns count from 0 and rise. A zero leaves no entry in sparse rows but
    /// widens the matrix to its column.
    #[inline]
    pub fn push(&mut self, column: u32, value: f64) -> Result<(), TooNarrow> {
        self.n_cols = self.n_cols.max(column + 1);
        if !I::KEEPS_ZEROS && value == 0.0 {
            return Ok(());
        }
        // Turns −0 into 0, which is all that sparse rows know of.
        let value = value + 0.0;
        let Some(stored) = W::of(value) else { return Err(TooNarrow { single_is_enough: fits_f32(value) }) };
        let at = self.used.entries;
        (self.indices[at], self.values[at]) = (I::of(column), stored);
        self.used.entries += 1;
        Ok(())
    }

    /// What was written so far.
    pub fn used(&self) -> Counts {
        self.used
    }

    /// Forgets what was written after that.
    pub fn go_back(&mut self, used: Counts) {
        self.used = used;
    }

    /// Ends the row under way.
    #[inline]
    pub fn end_row(&mut self, target: f64) {
        self.ends[self.used.rows] = self.used.entries as u64;
        self.targets[self.used.rows] = target;
        self.used.rows += 1;
    }
}

/// A parser of pieces of text.
pub(super) trait Parser: Sync {
    type Flaw: Send;
    /// Sparse rows or dense ones.
    type Index: Index;
    /// No fewer rows and entries than the piece has.
    fn count(&self, text: &[u8]) -> Counts;
    /// Writes the rows of the piece.
    fn parse<W: Width>(&self, text: &[u8], room: &mut Room<W, Self::Index>) -> Result<(), Trouble<Self::Flaw>>;
}

/// Why a piece could not be parsed.
pub(super) enum Trouble<F> {
    /// Something is wrong with it.
    Flaw(F),
    /// It wants a wider type.
    TooNarrow(TooNarrow),
}

impl<F> From<TooNarrow> for Trouble<F> {
    fn from(narrow: TooNarrow) -> Self {
        Self::TooNarrow(narrow)
    }
}

/// Why rows could not be appended.
pub(super) enum Halt<F> {
    /// The first piece with a flaw, and the flaw.
    Flaw(usize, F),
    /// There is no memory for them.
    Short(crate::Error),
}

impl<I: Index> Sheet<I> {
    /// Appends the rows of some pieces of text. There will be `times_as_much` text in all, about.
    pub fn append<P: Parser<Index = I>>(
        &mut self,
        parser: &P,
        text: &[u8],
        pieces: &[Range<usize>],
        times_as_much: f64,
    ) -> Result<(), Halt<P::Flaw>> {
        let counts: Vec<Counts> = pieces.par_iter().map(|piece| parser.count(&text[piece.clone()])).collect();
        loop {
            let expected = self.expected(&counts, times_as_much).map_err(Halt::Short)?;
            let Self { ends, targets, indices, values, .. } = self;
            let mut sheet = Arrays { ends, targets, indices };
            let written = match values {
                Values::Ones(values) => sheet.write(values, parser, text, pieces, &counts, expected),
                Values::F32(values) => sheet.write(values, parser, text, pieces, &counts, expected),
                Values::F64(values) => sheet.write(values, parser, text, pieces, &counts, expected),
            };
            match written {
                Ok(n_cols) => {
                    self.n_cols = self.n_cols.max(n_cols);
                    return Ok(());
                }
                Err((piece, Trouble::Flaw(flaw))) => return Err(Halt::Flaw(piece, flaw)),
                // Happens twice at most, and most likely in the first block.
                Err((_, Trouble::TooNarrow(narrow))) => self.widen(narrow),
            }
        }
    }

    /// The rows and entries that room is made for where there is not enough: those of all the text, about, or no more
    /// than now where memory is short of that. An error where it is short of these too.
    fn expected(&self, counts: &[Counts], times_as_much: f64) -> crate::Result<Counts> {
        let mut now = Counts { rows: self.ends.len(), entries: self.indices.len };
        counts.iter().for_each(|count| (now.rows, now.entries) = (now.rows + count.rows, now.entries + count.entries));
        let (width, room) = match &self.values {
            Values::Ones(values) => (0, values.array.len()),
            Values::F32(values) => (size_of::<f32>(), values.array.len()),
            Values::F64(values) => (size_of::<f64>(), values.array.len()),
        };
        if now.rows <= self.ends.capacity() && now.entries <= self.indices.array.len().min(room) {
            return Ok(now);
        }
        let bytes = |counts: Counts| {
            let entry = size_of::<I>() + width;
            counts.rows as u128 * 16 + counts.entries as u128 * entry as u128
        };
        let all = |len: usize| (len as f64 * times_as_much * 1.02) as usize;
        let expected = Counts { rows: all(now.rows), entries: all(now.entries).max(2 * self.indices.len) };
        if memory::fits(bytes(expected)) {
            return Ok(expected);
        }
        memory::check(bytes(now), || format!("its first {} rows", now.rows))?;
        Ok(now)
    }

    #[cold]
    fn widen(&mut self, narrow: TooNarrow) {
        let len = self.indices.len;
        self.values = match &self.values {
            Values::Ones(_) if narrow.single_is_enough => Values::F32(Long::of(len, |_| 1.0)),
            Values::Ones(_) => Values::F64(Long::of(len, |_| 1.0)),
            Values::F32(values) => Values::F64(Long::of(len, |at| f64::from(values.array[at]))),
            Values::F64(_) => unreachable!("nothing is too wide for a double"),
        };
    }
}

impl Sheet<u32> {
    /// The matrix and the targets.
    pub fn finish(self) -> (Matrix, Vec<f64>) {
        let mut offsets = self.ends;
        offsets.insert(0, 0);
        let (n_cols, offsets, indices) = (self.n_cols as usize, offsets.into(), self.indices.finish());
        let matrix = match self.values {
            Values::Ones(_) => Matrix::Ones(Csr::new(n_cols, offsets, indices, ())),
            Values::F32(values) => Matrix::Sparse32(Csr::new(n_cols, offsets, indices, values.finish())),
            Values::F64(values) => Matrix::Sparse64(Csr::new(n_cols, offsets, indices, values.finish())),
        };
        (matrix, self.targets)
    }
}

impl Sheet<()> {
    /// Number of entries that are not zero, and of all.
    pub fn filled(&self) -> (usize, usize) {
        let not_zero = match &self.values {
            Values::Ones(values) => values.len,
            Values::F32(values) => values.array[..values.len].iter().filter(|&&value| value != 0.0).count(),
            Values::F64(values) => values.array[..values.len].iter().filter(|&&value| value != 0.0).count(),
        };
        (not_zero, self.indices.len)
    }

    /// The matrix of `n_cols` columns and the targets.
    pub fn finish(self, n_cols: usize) -> (Matrix, Vec<f64>) {
        let n_rows = self.targets.len();
        let matrix = match self.values {
            Values::Ones(_) => unreachable!("values that may be zero begin as single precision"),
            Values::F32(values) => Matrix::Dense32(Dense::new(n_rows, n_cols, values.finish())),
            Values::F64(values) => Matrix::Dense64(Dense::new(n_rows, n_cols, values.finish())),
        };
        (matrix, self.targets)
    }
}

/// All arrays but the values.
struct Arrays<'a, I> {
    ends: &'a mut Vec<u64>,
    targets: &'a mut Vec<f64>,
    indices: &'a mut Long<I>,
}

impl<I: Index> Arrays<'_, I> {
    /// Parses every piece into its place; the number of columns, or the first piece that could not be parsed and why.
    fn write<W: Width, P: Parser<Index = I>>(
        &mut self,
        values: &mut Long<W>,
        parser: &P,
        text: &[u8],
        pieces: &[Range<usize>],
        counts: &[Counts],
        expected: Counts,
    ) -> Result<u32, (usize, Trouble<P::Flaw>)> {
        let all = counts.iter().fold(Counts::default(), |all, count| Counts {
            rows: all.rows + count.rows,
            entries: all.entries + count.entries,
        });
        let (rows, before) = (self.ends.len(), self.indices.len);
        if self.ends.capacity() < rows + all.rows {
            let more = expected.rows.max(rows + all.rows) - rows;
            self.ends.reserve(more);
            self.targets.reserve(more);
        }
        self.ends.resize(rows + all.rows, 0);
        self.targets.resize(rows + all.rows, 0.0);

        let mut rest = Room {
            ends: &mut self.ends[rows..],
            targets: &mut self.targets[rows..],
            indices: self.indices.room(all.entries, expected.entries),
            values: values.room(all.entries, expected.entries),
            used: Counts::default(),
            n_cols: 0,
        };
        let mut tasks = Vec::with_capacity(pieces.len());
        for (piece, &count) in pieces.iter().zip(counts) {
            let (ends, rest_ends) = rest.ends.split_at_mut(count.rows);
            let (targets, rest_targets) = rest.targets.split_at_mut(count.rows);
            let (indices, rest_indices) = rest.indices.split_at_mut(count.entries);
            let (values, rest_values) = rest.values.split_at_mut(count.entries);
            tasks.push((piece.clone(), Room { ends, targets, indices, values, used: Counts::default(), n_cols: 0 }));
            (rest.ends, rest.targets) = (rest_ends, rest_targets);
            (rest.indices, rest.values) = (rest_indices, rest_values);
        }
        let parse = |(piece, mut room): (Range<usize>, Room<W, I>)| {
            parser.parse(&text[piece], &mut room).map(|()| (room.used, room.n_cols))
        };
        let parsed: Vec<_> = tasks.into_par_iter().map(parse).collect();
        let mut written = Vec::with_capacity(parsed.len());
        for (piece, outcome) in parsed.into_iter().enumerate() {
            match outcome {
                Ok(done) => written.push(done),
                Err(trouble) => {
                    self.ends.truncate(rows);
                    self.targets.truncate(rows);
                    return Err((piece, trouble));
                }
            }
        }

        // Where a piece had less than there was room for, the rest moves up.
        let (mut row, mut entry, mut n_cols) = (rows, before, 0);
        let (mut from_row, mut from_entry) = (rows, before);
        for (&(used, columns), count) in written.iter().zip(counts) {
            if row != from_row {
                self.ends.copy_within(from_row..from_row + used.rows, row);
                self.targets.copy_within(from_row..from_row + used.rows, row);
            }
            if entry != from_entry {
                self.indices.array.copy_within(from_entry..from_entry + used.entries, entry);
                values.array.copy_within(from_entry..from_entry + used.entries, entry);
            }
            self.ends[row..row + used.rows].iter_mut().for_each(|end| *end += entry as u64);
            (row, entry, n_cols) = (row + used.rows, entry + used.entries, columns.max(n_cols));
            (from_row, from_entry) = (from_row + count.rows, from_entry + count.entries);
        }
        self.ends.truncate(row);
        self.targets.truncate(row);
        (self.indices.len, values.len) = (entry, entry);
        Ok(n_cols)
    }
}

/// An array that grows at its end, on huge pages where it is large.
struct Long<T> {
    array: Huge<T>,
    len: usize,
}

impl<T> Default for Long<T> {
    fn default() -> Self {
        Self { array: Huge::default(), len: 0 }
    }
}

impl<T: Pod + Send + Sync> Long<T> {
    fn of(len: usize, value: impl Fn(usize) -> T) -> Self {
        let mut array = Huge::zeros(len);
        array.iter_mut().enumerate().for_each(|(at, slot)| *slot = value(at));
        Self { array, len }
    }

    /// Room for some more; where there is none, it is made for so many in all as are expected.
    fn room(&mut self, more: usize, expected: usize) -> &mut [T] {
        let needed = self.len + more;
        if needed > self.array.len() {
            self.array.grow(needed.max(expected));
        }
        &mut self.array[self.len..needed]
    }

    fn finish(self) -> crate::data::Buffer<T> {
        self.array.cut(self.len)
    }
}
