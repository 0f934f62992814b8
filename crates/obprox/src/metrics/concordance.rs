//! Harrell's concordance: of the pairs of rows whose order in time is known, the share in which the row whose event came
//! first has the larger score, equal scores counting half.
//!
//! The order of two rows is known where the earlier time is an event's; at one time an event is before a censored row, and two
//! events are no pair. One walk from the last time back, with the weights of the scores met so far in a tree of sums: O(N log N).

/// The concordance of scores with times that are negative where the row is censored; nothing where no pair is known.
pub fn concordance(scores: &[f64], times: &[f64], weight: impl Fn(usize) -> f64) -> Option<f64> {
    let mut order: Vec<usize> = (0..times.len()).filter(|&row| weight(row) > 0.0).collect();
    // The last time first; at one time those that are censored.
    let key = |row: usize| (times[row].abs(), times[row] > 0.0);
    order.sort_by(|&a, &b| key(b).0.total_cmp(&key(a).0).then(key(a).1.cmp(&key(b).1)));
    let mut distinct: Vec<f64> = order.iter().map(|&row| scores[row]).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let place = |row: usize| distinct.partition_point(|&score| score < scores[row]);
    let (mut later, mut total) = (Sums::new(distinct.len()), 0.0);
    let (mut right, mut pairs) = (0.0, 0.0);
    for rows in order.chunk_by(|&a, &b| key(a) == key(b)) {
        for &row in rows.iter().filter(|&&row| times[row] > 0.0) {
            let (below, up_to) = (later.before(place(row)), later.before(place(row) + 1));
            right += weight(row) * 0.5 * (below + up_to);
            pairs += weight(row) * total;
        }
        for &row in rows {
            later.add(place(row), weight(row));
            total += weight(row);
        }
    }
    (pairs > 0.0).then(|| right / pairs)
}

/// Sums of the first so many of numbers that change (Fenwick's tree).
struct Sums(Vec<f64>);

impl Sums {
    fn new(len: usize) -> Self {
        Self(vec![0.0; len + 1])
    }

    fn add(&mut self, at: usize, value: f64) {
        let mut at = at + 1;
        while at < self.0.len() {
            self.0[at] += value;
            at += at & at.wrapping_neg();
        }
    }

    fn before(&self, end: usize) -> f64 {
        let (mut at, mut sum) = (end, 0.0);
        while at > 0 {
            sum += self.0[at];
            at &= at - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, pair by pair.
    fn by_pairs(scores: &[f64], times: &[f64], weights: &[f64]) -> Option<f64> {
        let (mut right, mut pairs) = (0.0, 0.0);
        for i in 0..times.len() {
            for j in 0..times.len() {
                let (a, b) = (times[i].abs(), times[j].abs());
                if i != j && times[i] > 0.0 && (a < b || a == b && times[j] < 0.0) {
                    let weight = weights[i] * weights[j];
                    pairs += weight;
                    right += weight * if scores[i] > scores[j] { 1.0 } else { 0.5 * f64::from(scores[i] == scores[j]) };
                }
            }
        }
        (pairs > 0.0).then(|| right / pairs)
    }

    #[test]
    fn the_walk_counts_what_the_pairs_say() {
        for seed in 1..40usize {
            let number = |at: usize| (at * 7919 + seed * 104_729 + at * at * seed) % 1009;
            let rows = 1 + seed;
            let times: Vec<f64> = (0..rows)
                .map(|at| ((number(at) % 9) as f64 + 1.0) * if number(at + 50).is_multiple_of(3) { -1.0 } else { 1.0 })
                .collect();
            let scores: Vec<f64> = (0..rows).map(|at| (number(at + 100) % 7) as f64 - 3.0).collect();
            for weights in [vec![1.0; rows], (0..rows).map(|at| (number(at + 200) % 4) as f64).collect()] {
                let (found, expected) =
                    (concordance(&scores, &times, |row| weights[row]), by_pairs(&scores, &times, &weights));
                match (found, expected) {
                    (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12, "{found} {expected}"),
                    other => assert_eq!(other, (None, None)),
                }
            }
        }
        assert_eq!(concordance(&[1.0, 0.0], &[-1.0, -2.0], |_| 1.0), None);
    }
}
