//! What a path keeps of the λ that are done, with sums that fit.

use obprox::loss::LossKind;
use obprox::{Lambdas, Path, Problem};

use super::{problem, timeless};
use crate::{Reader, Scratch};

fn walk(problem: &Problem, scratch: &Scratch, resume: bool) -> obprox::Result<obprox::path::Steps> {
    let lambdas = Lambdas::Spaced { count: 3, ratio: Some(0.1) };
    Path::new(problem).lambdas(lambdas).checkpoint(scratch.directory.path(), resume).run()
}

/// The part is gone on from, or made again: the path comes to its end either way.
pub fn forged() -> Reader {
    let (problem, scratch) = (problem(LossKind::Logistic, 2), Scratch::new("path-0.obprox-part"));
    let whole = walk(&problem, &scratch, false).expect("the path is sound");
    let seed = std::fs::read(scratch.path()).expect("a part was kept");
    // Eight digits of a sum, the end of a line, then the fits.
    const SUM: usize = 9;
    Reader::new("part-forged", vec![timeless(&seed[SUM..])], move |json| {
        let text = [format!("{:08x}\n", crc32fast::hash(json)).as_bytes(), json].concat();
        scratch.holding(&text);
        let steps = walk(&problem, &scratch, true).expect("a part that is none is made again").steps;
        assert_eq!(steps.len(), whole.steps.len());
        assert!(steps.iter().all(|step| step.model.predict(problem.matrix()).len() == problem.n_rows()));
        // What is there now was written anew where it was not taken.
        std::fs::read(scratch.path()).is_ok_and(|now| now == text)
    })
}
