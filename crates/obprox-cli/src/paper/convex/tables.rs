//! The results in the paper's own form: F/f, density, relative runtime, each cell over the paper's figure; and what no
//! paper has, the distance to the certified optimum.

use obprox::{MethodKind, Status};

use super::trial::Record;
use crate::paper::experiments::{Set, experiments};
use crate::show::{digits, grid, markdown, rough, tight, trimmed};

/// A table, for a terminal or a Markdown page.
pub struct Table {
    title: &'static str,
    note: &'static str,
    header: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

/// What was found here, and the paper's figure for it.
#[derive(Default)]
struct Cell {
    ours: String,
    best: bool,
    paper: Option<String>,
}

impl Cell {
    fn new(ours: impl Into<String>) -> Self {
        Self { ours: ours.into(), ..Self::default() }
    }
}

/// A method as the paper writes it.
pub fn title(method: MethodKind) -> &'static str {
    match method {
        MethodKind::ProxSg => "Prox-SG",
        MethodKind::Rda => "RDA",
        MethodKind::ProxSvrg => "Prox-SVRG",
        MethodKind::ObproxSg => "OBProx-SG",
        MethodKind::ObproxSgPlus => "OBProx-SG+",
        MethodKind::Auto => "auto",
    }
}

/// All tables of the data sets that have results.
pub fn tables(records: &[Record]) -> Vec<Table> {
    vec![data_sets(records), objectives(records), densities(records), runtimes(records), distances(records)]
}

impl Table {
    /// The paper's figure stands below ours; a star marks the best of a row.
    pub fn terminal(&self) -> String {
        let star = |cell: &Cell| match (cell.best, self.marks()) {
            (true, _) => format!("{}*", cell.ours),
            (false, true) => format!("{} ", cell.ours),
            (false, false) => cell.ours.clone(),
        };
        let beside = if self.marks() { " " } else { "" };
        let text = |(column, cell): (usize, &Cell)| match &cell.paper {
            _ if column == 0 => cell.ours.clone(),
            Some(paper) => format!("{}\n{paper}{beside}", star(cell)),
            None => star(cell),
        };
        let rows = self.rows.iter().map(|row| {
            let mut row: Vec<String> = row.iter().enumerate().map(text).collect();
            if row.iter().skip(1).any(|cell| cell.contains('\n')) {
                row[0] += "\n  paper";
            }
            row
        });
        let header = self.header.iter().map(|name| (*name).to_owned()).collect();
        format!("{}\n{}", self.title, tight(grid(header, rows.collect())))
    }

    /// The paper's figure stands below ours in italics; the best of a row is bold.
    pub fn markdown(&self) -> String {
        let text = |cell: &Cell| {
            let ours = if cell.best { format!("**{}**", cell.ours) } else { cell.ours.clone() };
            cell.paper.as_ref().map_or(ours.clone(), |paper| format!("{ours}<br>*{paper}*"))
        };
        let header = self.header.iter().map(|name| (*name).to_owned()).collect();
        let rows = self.rows.iter().map(|row| row.iter().map(text).collect()).collect();
        format!("### {}\n\n{}\n\n{}", self.title, self.note, markdown(grid(header, rows)))
    }

    fn marks(&self) -> bool {
        self.rows.iter().flatten().any(|cell| cell.best)
    }
}

/// The data set's name, with the share of it that was used.
pub fn named(record: &Record) -> String {
    record.share.as_ref().map_or(record.name.clone(), |share| format!("{} ({share})", record.name))
}

/// A line of the paper's table, for its own data sets alone.
fn paper(record: &Record) -> Option<&'static Set> {
    experiments().set.iter().find(|set| set.name == record.name)
}

fn header(last: Option<&'static str>) -> Vec<&'static str> {
    ["data set"].into_iter().chain(MethodKind::PAPER.map(title)).chain(last).collect()
}

/// A row of the five methods: `text` writes a figure, and those that are written as the least one is are the best.
fn row(
    record: &Record,
    figure: impl Fn(MethodKind) -> f64,
    text: impl Fn(MethodKind) -> String,
    paper: impl Fn(usize) -> Option<String>,
) -> Vec<Cell> {
    let least = MethodKind::PAPER.into_iter().filter(|method| !figure(*method).is_nan());
    let least = least.min_by(|left, right| figure(*left).total_cmp(&figure(*right))).map(&text);
    let mut cells = vec![Cell::new(named(record))];
    for (at, method) in MethodKind::PAPER.into_iter().enumerate() {
        let text = text(method);
        let diverged = record.of(method).any(|run| run.status == Status::Diverged);
        let best = !diverged && least.as_ref() == Some(&text);
        let ours = match figure(method).is_nan() {
            true => "–".to_owned(),
            false => format!("{text}{}", if diverged { " diverged" } else { "" }),
        };
        cells.push(Cell { ours, best, paper: paper(at) });
    }
    cells
}

/// F* is known to the tolerance of its certificate; digits beyond it mean nothing.
fn beyond_doubt(relative: f64) -> String {
    let tolerance = experiments().recipe.tolerance;
    if relative < tolerance { format!("<{}", trimmed(tolerance)) } else { rough(relative) }
}

/// γ, and a sign where the best may lie beyond the grid.
fn gamma_words(record: &Record, gamma: f64) -> String {
    let tried = || record.tuning.iter().filter_map(|run| run.gamma);
    match gamma {
        _ if tried().all(|other| gamma <= other) => format!("≤ {}", trimmed(gamma)),
        _ if tried().all(|other| gamma >= other) => format!("≥ {}", trimmed(gamma)),
        _ => trimmed(gamma),
    }
}

fn data_sets(records: &[Record]) -> Table {
    let rows = records.iter().map(|record| {
        let optimum = record.optimum.as_ref();
        [
            named(record),
            record.rows.to_string(),
            record.columns.to_string(),
            record.nonzeros.to_string(),
            digits(record.lambda / record.lambda_max, 3),
            record.of(MethodKind::ProxSg).count().to_string(),
            record.best_gamma().map_or("–".into(), |gamma| gamma_words(record, gamma)),
            optimum.and_then(|optimum| optimum.relative_gap).map_or("–".into(), beyond_doubt),
        ]
        .map(Cell::new)
        .into()
    });
    Table {
        title: "The data sets",
        note: "γ is the one that RDA was tuned to, gap the relative duality gap to which `auto` certified F*.",
        header: vec!["data set", "N", "n", "nonzeros", "λ/λ_max", "seeds", "γ", "gap"],
        rows: rows.collect(),
    }
}

fn objectives(records: &[Record]) -> Table {
    let rows = records.iter().map(|record| {
        let figure = |method| record.mean(method, |run| run.objective);
        let both = |objective: f64, loss: f64| format!("{objective:.3}/{loss:.3}");
        let text = |method| both(figure(method), record.mean(method, |run| run.loss));
        let paper = |at: usize| paper(record).map(|set| both(set.objective[at], set.loss[at]));
        let mut cells = row(record, figure, text, paper);
        // The paper marks by F alone: f has its own least.
        let least = MethodKind::PAPER.map(figure).into_iter().fold(f64::INFINITY, f64::min);
        for (cell, method) in cells[1..].iter_mut().zip(MethodKind::PAPER) {
            cell.best = format!("{:.3}", figure(method)) == format!("{least:.3}");
        }
        let optimum = record.optimum.as_ref();
        cells.push(Cell::new(optimum.map_or("–".into(), |found| format!("{:.4}", found.objective))));
        cells
    });
    Table {
        title: "Final F/f",
        note: "Means over the seeds; below each the paper's figure. The last column is the certified optimum.",
        header: header(Some("F*")),
        rows: rows.collect(),
    }
}

fn densities(records: &[Record]) -> Table {
    // Two decimals as in the paper, more where they would not tell methods apart.
    let percent = |density: f64| match 100.0 * density {
        share if share < 0.1 => format!("{share:.4}"),
        share if share < 1.0 => format!("{share:.3}"),
        share => format!("{share:.2}"),
    };
    let rows = records.iter().map(|record| {
        let figure = |method| record.mean(method, |run| run.density);
        let paper = |at: usize| paper(record).map(|set| format!("{:.2}", set.density[at]));
        let mut cells = row(record, figure, |method| percent(figure(method)), paper);
        cells.push(Cell::new(record.optimum.as_ref().map_or("–".into(), |found| percent(found.density))));
        cells
    });
    Table {
        title: "Density of the solutions in %",
        note: "The intercept counts, as in the paper. The last column is the density of the certified optimum.",
        header: header(Some("at F*")),
        rows: rows.collect(),
    }
}

fn runtimes(records: &[Record]) -> Table {
    let rows = records.iter().map(|record| {
        let slowest = record.slowest();
        let figure = |method| record.seconds(method) / slowest;
        let mut cells = row(record, figure, |method| format!("{:.2}", figure(method)), |_| None);
        let auto = record.optimum.as_ref().filter(|_| slowest > 0.0);
        let auto = auto.map_or("–".into(), |found| format!("{:.2}", found.seconds / slowest));
        cells.push(Cell::new(auto));
        cells.push(Cell::new(if slowest > 0.0 { format!("{slowest:.3} s") } else { "–".into() }));
        cells
    });
    Table {
        title: "Relative runtime",
        note: "Of training alone, as a share of the slowest of the five; every epoch counts as long as it took in the seed \
               where it was shortest. The paper shows bars without numbers. `auto` is given in the same unit: it solves \
               to the certified optimum, on all cores.",
        header: [header(Some("auto")), vec!["slowest"]].concat(),
        rows: rows.collect(),
    }
}

fn distances(records: &[Record]) -> Table {
    let rows = records.iter().map(|record| {
        let figure = |method| record.distance(method).unwrap_or(f64::NAN);
        row(record, figure, |method| beyond_doubt(figure(method)), |_| None)
    });
    Table {
        title: "Distance to the certified optimum, (F − F*)/F*",
        note: "F* is that of `auto`, proved by its duality gap. No counterpart in the paper.",
        header: header(None),
        rows: rows.collect(),
    }
}
