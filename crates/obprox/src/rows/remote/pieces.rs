//! Wide replies, which are added up by ranges on their way.
//!
//! All replies of a pass over every column are shards × n numbers. An engine that can has each cut into pieces, those of the
//! same range added up in the order of the shards where they are, and the driver is sent sums alone, which it lines up: n
//! numbers, of the same bits as if it had added up whole replies.

use std::ops::Range;

use bytemuck::Pod;

use super::wire::{In, Out};
use super::{failed, opened};
use crate::Result;
use crate::huge::Huge;
use crate::rows::Sums;
use crate::rows::sharded::evaluation::Columns;
use crate::rows::sharded::task::Answer;

/// How the arrays of a reply are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pieces {
    /// How many pieces there are; the last takes what is left.
    pub count: usize,
    /// The numbers of each.
    pub width: usize,
}

impl Pieces {
    /// More of them would cost more messages than they save memory.
    const MOST: usize = 64;

    /// Those of an array of so many numbers; nothing where it is one piece.
    pub(super) fn of(len: usize, width: usize) -> Option<Self> {
        let width = width.max(len.div_ceil(Self::MOST)).max(1);
        (len > width).then(|| Self { count: len.div_ceil(width), width })
    }

    fn range(self, at: usize, len: usize) -> Range<usize> {
        let end = if at + 1 == self.count { len } else { (at + 1).saturating_mul(self.width).min(len) };
        at.saturating_mul(self.width).min(end)..end
    }
}

/// Cuts a reply to such a request into pieces; what is no array is in the first. One that says what went wrong is every piece.
pub fn cut(reply: &[u8], pieces: Pieces) -> Vec<Vec<u8>> {
    let answer = || -> Result<Answer> {
        let mut input = opened(reply)?;
        let answer = input.get()?;
        input.end().map(|()| answer)
    };
    match answer() {
        Ok(mut answer) => (0..pieces.count).map(|at| sent(&answer.piece(pieces, at))).collect(),
        Err(error) => vec![failed(error); pieces.count],
    }
}

/// Adds up pieces of one number, which are in the order of the shards. What went wrong first is the sum.
pub fn add<T: AsRef<[u8]>>(replies: &[T]) -> Vec<u8> {
    let next = |total: Answer, reply: &T| {
        let mut input: In = opened(reply.as_ref())?;
        let answer = input.get()?;
        input.end().map(|()| total.plus(answer))
    };
    match replies.iter().try_fold(Answer::default(), next) {
        Ok(answer) => sent(&answer),
        Err(error) => failed(error),
    }
}

fn sent(answer: &Answer) -> Vec<u8> {
    let mut out = Out::default();
    out.put(&0u8).put(answer);
    out.0
}

impl Answer {
    /// One of its pieces; the first has what is no array, which is taken.
    fn piece(&mut self, pieces: Pieces, at: usize) -> Self {
        let (evaluation, ahead) = (self.evaluation.take(), self.ahead.take());
        let numbers = std::mem::take(&mut self.sums.numbers);
        let part = |array: &Huge<f64>| array[pieces.range(at, array.len())].iter().copied().collect();
        let columns = self.columns.as_ref().map(|Columns { sums, most }| Columns {
            sums: part(sums),
            most: most[pieces.range(at, most.len())].iter().copied().collect(),
        });
        Self { sums: Sums { numbers, array: part(&self.sums.array) }, evaluation, columns, ahead }
    }

    /// The pieces lined up again.
    pub(super) fn joined(mut pieces: Vec<Self>) -> Self {
        let Some(first) = pieces.first_mut() else { return Self::default() };
        let (evaluation, ahead) = (first.evaluation.take(), first.ahead.take());
        let numbers = std::mem::take(&mut first.sums.numbers);
        let has_columns = first.columns.is_some();
        let array = line_up(pieces.iter_mut().map(|piece| std::mem::take(&mut piece.sums.array)).collect());
        let (mut sums, mut most) = (Vec::new(), Vec::new());
        for columns in pieces.into_iter().filter_map(|piece| piece.columns) {
            sums.push(columns.sums);
            most.push(columns.most);
        }
        let columns = has_columns.then(|| Columns { sums: line_up(sums), most: line_up(most) });
        Self { sums: Sums { numbers, array }, evaluation, columns, ahead }
    }
}

fn line_up<T: Pod + Send + Sync>(pieces: Vec<Huge<T>>) -> Huge<T> {
    let mut all = Huge::zeros(pieces.iter().map(|piece| piece.len()).sum());
    let mut at = 0;
    for piece in pieces {
        all[at..at + piece.len()].copy_from_slice(&piece);
        at += piece.len();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use crate::rows::sharded::evaluation::Evaluation;

    /// The answer of one of some shards: arrays with and without zeros, of lengths that no width divides.
    fn answer(shard: usize) -> Answer {
        let number = |at: usize| ((at * 37 + shard * 11) % 23) as f64 / 7.0 - 1.0;
        let numbers = |len: usize| (0..len).map(number).collect::<Vec<f64>>();
        let sparse =
            |len: usize| (0..len).map(|at| if (at + shard).is_multiple_of(5) { number(at) } else { 0.0 }).collect();
        let sums = |len: usize| Sums { numbers: numbers(3), array: sparse(len) };
        let evaluation =
            |len: usize| Evaluation { gradient: sums(len), slopes: Some((0..2, sums(4))), margins: Vec::new() };
        let most = (0..17).map(|at| number(at + 3).abs() as f32).collect();
        let columns = Some(Columns { sums: sparse(34), most });
        Answer { sums: sums(25), evaluation: Some(evaluation(6)), columns, ahead: Some(evaluation(0)) }
    }

    #[test]
    fn sums_of_pieces_are_the_pieces_of_the_sum() {
        let shards: Vec<Vec<u8>> = (0..4).map(|shard| sent(&answer(shard))).collect();
        let whole = sent(&(0..4).map(answer).fold(Answer::default(), Answer::plus));
        for width in [1, 4, 7, 33] {
            let pieces = Pieces::of(34, width).unwrap();
            let cut: Vec<Vec<Vec<u8>>> = shards.iter().map(|reply| cut(reply, pieces)).collect();
            let one = |at: usize| -> Vec<&Vec<u8>> { cut.iter().map(|shard| &shard[at]).collect() };
            let sums = (0..pieces.count).map(|at| opened(&add(&one(at))).unwrap().get().unwrap()).collect();
            assert!(sent(&Answer::joined(sums)) == whole, "{pieces:?}");
        }
        assert_eq!(Pieces::of(34, 34), None);
        assert!(Pieces::of(1 << 30, 4).unwrap().count <= Pieces::MOST);
    }

    #[test]
    fn what_went_wrong_first_is_told() {
        let pieces = Pieces { count: 3, width: 2 };
        let fault = |name: &str| failed(Error::file(name, "is damaged"));
        for replies in [vec![sent(&answer(0)), fault("b.obx"), fault("c.obx")], vec![fault("b.obx"), vec![7, 1]]] {
            let cut: Vec<_> = replies.iter().map(|reply| cut(reply, pieces)).collect();
            for at in 0..3 {
                let sum = add(&cut.iter().map(|shard| &shard[at]).collect::<Vec<_>>());
                let error = opened(&sum).err().unwrap().to_string();
                assert!(error.contains("b.obx"), "{error}");
            }
        }
    }
}
