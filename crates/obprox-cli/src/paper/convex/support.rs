//! "Prox-SG produces an iterate close to x* … it may still have a large number of non-zero elements. The following
//! Orthant Steps will significantly promote the sparsity": who finds a planted support, at equal numbers of epochs.

use obprox::data::Task;
use obprox::loss::LossKind;
use obprox::schedule::StepSize;
use obprox::switch::{Switch, Unit};
use obprox::{Lambda, Method, MethodKind, Problem, Settings, Terms};
use serde::{Deserialize, Serialize};

use super::overlap::Overlap;
use super::tables::title;
use crate::failure::Failure;
use crate::paper::attempt::attempt;
use crate::paper::experiments::Support;
use crate::show::{grid, markdown, trimmed};

/// Agreement with the planted support, averaged over the seeds.
#[derive(Serialize, Deserialize)]
pub struct Identified {
    pub method: MethodKind,
    /// As a share of λ_max.
    pub lambda: f64,
    /// Epochs; 0 for the certified optimum, which has no budget.
    pub budget: u64,
    #[serde(flatten)]
    pub overlap: Overlap,
}

impl Support {
    /// Runs everything; nothing where Ctrl-C came first.
    pub fn run(&self, quiet: bool) -> Result<Option<Vec<Identified>>, Failure> {
        let mut all = Vec::new();
        let plants = (0..self.seeds).map(|seed| self.planted.plant(Task::Classification, seed));
        let plants = plants.collect::<obprox::Result<Vec<_>>>()?;
        for &lambda in &self.lambdas {
            let terms = Terms { lambda: Lambda::OfMax(lambda), ..Terms::default() };
            let problem = |seed: u64| {
                let data = plants[seed as usize].dataset.clone();
                Problem::new(data, LossKind::Logistic.build(2), &terms)
            };
            let problems = (0..self.seeds).map(problem).collect::<obprox::Result<Vec<_>>>()?;
            for (method, budget) in self.contenders() {
                let mut overlaps = Vec::new();
                for ((seed, problem), plant) in (0..).zip(&problems).zip(&plants) {
                    let settings = self.settings(method, budget, seed);
                    let name = format!("λ = {lambda} λ_max  {:<10}", title(method));
                    let Some(fit) = attempt(problem, settings, name, quiet)? else { return Ok(None) };
                    overlaps.push(Overlap::of(&fit.point.weights, &plant.weights));
                }
                all.push(Identified { method, lambda, budget, overlap: Overlap::mean(&overlaps) });
            }
        }
        Ok(Some(all))
    }

    fn contenders(&self) -> impl Iterator<Item = (MethodKind, u64)> {
        let methods = [MethodKind::ProxSg, MethodKind::ObproxSg, MethodKind::ObproxSgPlus].into_iter();
        let all = methods.flat_map(|method| self.budgets.iter().map(move |&budget| (method, budget)));
        all.chain([(MethodKind::Auto, 0)])
    }

    fn settings(&self, method: MethodKind, budget: u64, seed: u64) -> Settings {
        if method == MethodKind::Auto {
            return Settings::default();
        }
        let switch = Switch::Fixed { prox: budget.div_ceil(2), orthant: None, unit: Unit::Epochs };
        let method = match method {
            MethodKind::ObproxSgPlus => Method::ObproxSgPlus { switch },
            method => method.into(),
        };
        Settings {
            epochs: budget,
            step: StepSize::Value(self.step),
            tolerance: 0.0,
            seed,
            eval_every: u64::MAX,
            ..Settings::with_method(method)
        }
    }
}

/// Precision and recall, a line a method and λ, a column a budget.
pub fn table(support: &Support, found: &[Identified]) -> String {
    let header = support.budgets.iter().map(|budget| format!("{budget} epochs"));
    let header = ["λ/λ_max".to_owned(), "method".to_owned()].into_iter().chain(header).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for one in found {
        let text = format!("{:.3} / {:.3}", one.overlap.precision, one.overlap.recall);
        let heads = [trimmed(one.lambda), title(one.method).to_owned()];
        match rows.last_mut().filter(|row| row[..2] == heads) {
            Some(row) => row.push(text),
            None => rows.push(heads.into_iter().chain([text]).collect()),
        }
    }
    for row in &mut rows {
        // The optimum is what it is at any budget.
        row.resize(support.budgets.len() + 2, "".into());
    }
    format!(
        "Precision / recall of the planted support, means over {} seeds:\n\n{}",
        support.seeds,
        markdown(grid(header, rows))
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::experiments::{Kind, PlantedRecipe};

    #[test]
    fn orthant_steps_raise_precision_at_equal_budgets() {
        let support = Support {
            planted: PlantedRecipe {
                rows: 1000,
                columns: 200,
                per_row: 30.0,
                support: 8,
                noise: 0.5,
                skew: 0.0,
                entries: Kind::Normal,
            },
            lambdas: vec![0.1],
            budgets: vec![4, 10],
            step: 0.1,
            seeds: 2,
        };
        let found = support.run(true).unwrap().unwrap();
        assert_eq!(found.len(), 3 * 2 + 1);
        let precision = |method, budget| {
            let one = found.iter().find(|one| (one.method, one.budget) == (method, budget));
            one.unwrap().overlap.precision
        };
        for budget in [4, 10] {
            assert!(precision(MethodKind::ObproxSgPlus, budget) > precision(MethodKind::ProxSg, budget));
        }
        // The first five epochs of OBProx-SG are Prox-SG's.
        assert_eq!(precision(MethodKind::ObproxSg, 4), precision(MethodKind::ProxSg, 4));
        let text = table(&support, &found);
        assert_eq!(text.lines().filter(|line| line.contains("OBProx-SG+")).count(), 1, "{text}");
    }
}
