//! "A larger N_P helps to predict a better orthant face which hopefully covers the support of x*, and a larger N_O helps
//! to explore more sparsity": OBProx-SG over a grid of both, held against the support of the certified optimum.

use obprox::data::Task;
use obprox::loss::LossKind;
use obprox::switch::{Switch, Unit};
use obprox::{Method, Problem, Settings, Terms};
use serde::{Deserialize, Serialize};

use super::overlap::Overlap;
use crate::failure::Failure;
use crate::paper::attempt::attempt;
use crate::paper::experiments::{Rounds, Switching};
use crate::show::{grid, markdown, rough};

/// The sweep on one problem.
#[derive(Serialize, Deserialize)]
pub struct Sweep {
    pub name: String,
    /// The density of the certified optimum.
    pub density: f64,
    pub cells: Vec<Cell>,
}

/// One N_P and N_O.
#[derive(Serialize, Deserialize)]
pub struct Cell {
    pub prox: u64,
    /// Nothing stands for ∞.
    pub orthant: Option<u64>,
    /// (F − F*)/F*.
    pub distance: f64,
    pub density: f64,
    /// Of the certified optimum's support.
    #[serde(flatten)]
    pub overlap: Overlap,
}

impl Switching {
    /// The planted problem of the sweep.
    pub fn problem(&self) -> Result<Problem, Failure> {
        let data = self.planted.plant(Task::Classification, 0)?.dataset;
        Ok(Problem::new(data, LossKind::Logistic.build(2), &Terms::default())?)
    }

    /// Sweeps; nothing where Ctrl-C came first.
    pub fn sweep(&self, name: &str, problem: &Problem, quiet: bool) -> Result<Option<Sweep>, Failure> {
        let label = |what: String| format!("{name:<12} {what:<14}");
        let Some(best) = attempt(problem, Settings::default(), label("auto".into()), quiet)? else { return Ok(None) };
        let least = best.certificate.objective;
        let mut cells = Vec::new();
        for &orthant in &self.orthant {
            for &prox in &self.prox {
                let switch = Switch::Fixed { prox, orthant: orthant.0, unit: Unit::Epochs };
                let settings = Settings {
                    epochs: self.whole_cycles(prox, orthant),
                    tolerance: 0.0,
                    eval_every: u64::MAX,
                    ..Settings::with_method(Method::ObproxSg { switch })
                };
                let fit = attempt(problem, settings, label(format!("N_P {prox} N_O {orthant}")), quiet)?;
                let Some(fit) = fit else { return Ok(None) };
                cells.push(Cell {
                    prox,
                    orthant: orthant.0,
                    distance: (fit.certificate.objective - least) / least,
                    density: fit.certificate.density,
                    overlap: Overlap::of(&fit.point.weights, &best.point.weights),
                });
            }
        }
        Ok(Some(Sweep { name: name.to_owned(), density: best.certificate.density, cells }))
    }

    /// The epochs of the last whole cycle within the budget; of ∞, the budget.
    fn whole_cycles(&self, prox: u64, orthant: Rounds) -> u64 {
        orthant.0.map_or(self.epochs, |orthant| self.epochs / (prox + orthant) * (prox + orthant))
    }
}

impl Sweep {
    /// Three grids: N_P down, N_O across.
    pub fn markdown(&self) -> String {
        let density = |cell: &Cell| format!("{:.2}", 100.0 * cell.density);
        let recall = |cell: &Cell| format!("{:.3}", cell.overlap.recall);
        let precision = |cell: &Cell| format!("{:.3}", cell.overlap.precision);
        let distance = |cell: &Cell| rough(cell.distance);
        format!(
            "#### {}\n\nDensity in % (the certified optimum has {:.2}):\n\n{}\nShare of the certified optimum's support \
             that is found, with its signs:\n\n{}\nShare of what is found that belongs to it:\n\n{}\n(F − F*)/F*:\n\n{}",
            self.name,
            100.0 * self.density,
            self.table(density),
            self.table(recall),
            self.table(precision),
            self.table(distance)
        )
    }

    fn table(&self, text: impl Fn(&Cell) -> String) -> String {
        let columns = distinct(self.cells.iter().map(|cell| cell.orthant));
        let rows = distinct(self.cells.iter().map(|cell| cell.prox));
        let header = columns.iter().map(|&orthant| format!("N_O = {}", Rounds(orthant)));
        let header = ["".to_owned()].into_iter().chain(header).collect();
        let line = |prox: &u64| {
            let cells = self.cells.iter().filter(|cell| cell.prox == *prox).map(&text);
            [format!("N_P = {prox}")].into_iter().chain(cells).collect()
        };
        markdown(grid(header, rows.iter().map(line).collect()))
    }
}

/// Each value once, in order of appearance.
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut seen, value| {
        if !seen.contains(&value) {
            seen.push(value);
        }
        seen
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::experiments::{Kind, PlantedRecipe};

    fn small() -> Switching {
        Switching {
            sets: Vec::new(),
            prox: vec![1, 4],
            orthant: vec![Rounds(Some(1)), Rounds(Some(4)), Rounds(None)],
            epochs: 20,
            planted: PlantedRecipe {
                rows: 400,
                columns: 60,
                per_row: 12.0,
                support: 6,
                noise: 0.5,
                skew: 0.0,
                entries: Kind::Normal,
            },
        }
    }

    #[test]
    fn runs_end_with_orthant_steps() {
        let sweep = small();
        assert_eq!(sweep.whole_cycles(4, Rounds(Some(4))), 16);
        assert_eq!(sweep.whole_cycles(4, Rounds(Some(1))), 20);
        assert_eq!(sweep.whole_cycles(4, Rounds(None)), 20);
    }

    #[test]
    fn more_orthant_steps_leave_fewer_weights() {
        let sweep = small();
        let swept = sweep.sweep("planted", &sweep.problem().unwrap(), true).unwrap().unwrap();
        assert_eq!(swept.cells.len(), 6);
        let density = |prox, orthant| {
            let cell = swept.cells.iter().find(|cell| (cell.prox, cell.orthant) == (prox, orthant));
            cell.unwrap().density
        };
        for prox in [1, 4] {
            assert!(density(prox, None) <= density(prox, Some(4)) && density(prox, Some(4)) <= density(prox, Some(1)));
        }
        assert!(swept.cells.iter().all(|cell| cell.distance >= -1e-6));
        // A grid has a line for each N_P and a column for each N_O.
        let text = swept.table(|cell| format!("{}/{}", cell.prox, Rounds(cell.orthant)));
        assert!(text.contains("| N_P = 4 |     4/1 |     4/4 |     4/∞ |"), "{text}");
    }
}
