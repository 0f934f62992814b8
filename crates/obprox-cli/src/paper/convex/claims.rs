//! The paper's claims about its tables, put to the test on each data set.

use obprox::MethodKind;

use super::tables::named;
use super::trial::Record;
use crate::show::{digits, grid, markdown, rough};

/// How much worse an F may be and still count as comparable.
const COMPARABLE: f64 = 0.01;
/// How many times longer a run may take and still count as about as fast.
const ABOUT: f64 = 1.5;

/// A claim on a data set: whether it holds, and by what.
struct Verdict {
    holds: bool,
    by: String,
}

/// The claims as a Markdown table, and what counts as holding.
pub fn claims(records: &[Record]) -> String {
    let whole: Vec<&Record> = records.iter().filter(|record| is_whole(record)).collect();
    let header = [
        "data set",
        "OBProx-SG+ sparsest",
        "F comparable",
        "F better than RDA",
        "Prox-SG ≈ RDA ≈ OBProx-SG(+)",
        "≪ Prox-SVRG",
    ];
    let tests: [fn(&Record) -> Verdict; 5] = [sparsest, comparable, better_than_rda, alike, svrg_slowest];
    let rows = whole.iter().map(|record| {
        let said = tests.map(|test| {
            let Verdict { holds, by } = test(record);
            format!("{} {by}", if holds { "yes" } else { "**no**" })
        });
        [named(record)].into_iter().chain(said).collect()
    });
    let table = markdown(grid(header.map(str::to_owned).to_vec(), rows.collect()));
    format!(
        "### The claims on each data set\n\n\
         Sparsest: the least density of the five, with the factor to Prox-SG and to the sparsest of the others. \
         Comparable: F of OBProx-SG+ at most {:.0} % above the better of Prox-SG and Prox-SVRG; how far it is above. \
         About as fast: the slowest of the four takes at most {ABOUT} times the fastest; the factor. \
         ≪: Prox-SVRG takes more than {ABOUT} times the slowest of the others; the factor.\n\n{table}",
        100.0 * COMPARABLE
    )
}

fn is_whole(record: &Record) -> bool {
    MethodKind::PAPER.iter().all(|&method| record.of(method).next().is_some())
}

fn density(record: &Record, method: MethodKind) -> f64 {
    record.mean(method, |run| run.density)
}

fn objective(record: &Record, method: MethodKind) -> f64 {
    record.mean(method, |run| run.objective)
}

fn sparsest(record: &Record) -> Verdict {
    let plus = density(record, MethodKind::ObproxSgPlus);
    let others = MethodKind::PAPER[..4].iter().map(|&method| density(record, method)).fold(f64::INFINITY, f64::min);
    let factor = digits(density(record, MethodKind::ProxSg) / plus, 3);
    Verdict { holds: plus <= others, by: format!("({factor}×, {}×)", digits(others / plus, 3)) }
}

fn comparable(record: &Record) -> Verdict {
    let best = objective(record, MethodKind::ProxSg).min(objective(record, MethodKind::ProxSvrg));
    let above = objective(record, MethodKind::ObproxSgPlus) / best - 1.0;
    Verdict { holds: above <= COMPARABLE, by: format!("({:+.2} %)", 100.0 * above) }
}

fn better_than_rda(record: &Record) -> Verdict {
    let (plus, rda) = (objective(record, MethodKind::ObproxSgPlus), objective(record, MethodKind::Rda));
    Verdict { holds: plus < rda, by: format!("({:+.2} %)", 100.0 * (plus / rda - 1.0)) }
}

/// The shortest and the longest of the four that are said to be alike.
fn four(record: &Record) -> (f64, f64) {
    let four = [MethodKind::ProxSg, MethodKind::Rda, MethodKind::ObproxSg, MethodKind::ObproxSgPlus];
    let seconds = four.map(|method| record.seconds(method));
    (seconds.into_iter().fold(f64::INFINITY, f64::min), seconds.into_iter().fold(0.0, f64::max))
}

fn alike(record: &Record) -> Verdict {
    let (fastest, slowest) = four(record);
    Verdict { holds: slowest <= ABOUT * fastest, by: format!("({}×)", rough(slowest / fastest)) }
}

fn svrg_slowest(record: &Record) -> Verdict {
    let factor = record.seconds(MethodKind::ProxSvrg) / four(record).1;
    Verdict { holds: factor > ABOUT, by: format!("({}×)", rough(factor)) }
}
