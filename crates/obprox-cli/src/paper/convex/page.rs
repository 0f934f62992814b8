//! What the results come to: a Markdown page with its pictures, and every run as a line of CSV.

use std::fmt::Write;

use obprox::output::write_whole;
use obprox_report::chart::Figure;

use super::claims::claims;
use super::plots;
use super::rate::Measured;
use super::store::Store;
use super::support::{self, Identified};
use super::switching::Sweep;
use super::tables::{Table, named, tables};
use super::trial::{Outcome, Record};
use crate::failure::Failure;
use crate::paper::experiments::experiments;
use crate::show::trimmed;

/// Everything in the directory of results, ready to be shown.
pub struct Page {
    tables: Vec<Table>,
    /// What a reader must know about the data sets.
    notes: Vec<String>,
}

impl Page {
    /// Writes `convex.md` and `runs.csv` from what the directory has.
    pub fn write(store: &Store) -> Result<Self, Failure> {
        let records = store.records()?;
        let page =
            Self { tables: if records.is_empty() { Vec::new() } else { tables(&records) }, notes: notes(&records) };
        let mut text = page.markdown(&records);
        if !records.is_empty() {
            for (name, figure) in [
                ("objectives", plots::objectives(&records)),
                ("densities", plots::densities(&records)),
                ("runtimes", plots::runtimes(&records)),
            ] {
                text += &picture(store, name, &figure)?;
            }
        }
        text += &sweeps(store)?;
        write_whole(&store.path("convex.md"), |out| out.write_all(text.as_bytes()))?;
        write_whole(&store.path("runs.csv"), |out| out.write_all(csv(&records).as_bytes()))?;
        Ok(page)
    }

    /// The tables, as wide as they are.
    pub fn terminal(&self) -> String {
        let tables: Vec<String> = self.tables.iter().map(Table::terminal).collect();
        tables.join("\n") + "\n" + &self.notes.join("\n") + "\n"
    }

    fn markdown(&self, records: &[Record]) -> String {
        let recipe = &experiments().recipe;
        let gammas: Vec<String> = recipe.gammas.iter().map(|gamma| trimmed(*gamma)).collect();
        let mut text = format!(
            "# The paper's section on logistic regression\n\n\
             Written by `obprox paper convex`. λ = 1/N, batches of min(256, ⌈N/100⌉) rows, step size {} × {} an epoch, {} \
             epochs; OBProx-SG 5/5, OBProx-SG+ 15/∞; γ of RDA is the one of {} whose first run ends at the least F.\n\n",
            trimmed(recipe.step),
            trimmed(recipe.decay),
            recipe.epochs,
            gammas.join(", ")
        );
        if records.is_empty() {
            return text;
        }
        text += "## The tables\n\n";
        for table in &self.tables {
            text += &table.markdown();
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "* {note}");
        }
        text + "\n" + &claims(records) + "\n"
    }
}

/// Writes a picture; the line of the page that shows it.
fn picture(store: &Store, name: &str, figure: &Figure) -> Result<String, Failure> {
    let file = format!("{name}.svg");
    write_whole(&store.path(&file), |out| out.write_all(figure.to_svg().as_bytes()))?;
    Ok(format!("![{name}]({file})\n\n"))
}

/// Which sets are missing, and which are not what their name says.
fn notes(records: &[Record]) -> Vec<String> {
    let sets = &experiments().set;
    let mut notes = Vec::new();
    for record in records {
        let (rows, columns) = (record.whole, record.columns);
        match sets.iter().find(|set| set.name == record.name) {
            Some(set) if (set.rows, set.columns) != (rows, columns) => notes.push(format!(
                "{}: {rows} rows × {columns} features, where the paper's has {} × {}: not the paper's data set",
                record.name, set.rows, set.columns
            )),
            Some(_) => {}
            None => notes.push(format!("{}: no data set of the paper's", record.name)),
        }
        if let Some(batch) = record.batch {
            notes.push(format!("{}: batches of {batch} rows, which are not the paper's", record.name));
        }
        if let Some(share) = &record.share {
            notes.push(format!(
                "{}: {share} of its rows, {} of {rows}, evenly spaced; λ = 1/{}",
                record.name, record.rows, record.rows
            ));
        }
    }
    let missing: Vec<&str> =
        sets.iter().map(|set| &set.name[..]).filter(|name| records.iter().all(|record| record.name != *name)).collect();
    if !missing.is_empty() {
        notes.push(format!("missing: {}", missing.join(", ")));
    }
    notes
}

fn sweeps(store: &Store) -> Result<String, Failure> {
    let all = experiments();
    let mut text = String::new();
    if let Some(sweeps) = store.kept::<Vec<Sweep>>("switching", &all.switching)? {
        let _ = writeln!(
            text,
            "## N_P and N_O\n\nOBProx-SG; each run ends with the last whole cycle within {} epochs. The planted problem has {}.\n",
            all.switching.epochs,
            all.switching.planted.words()
        );
        for sweep in sweeps {
            text += &sweep.markdown();
            text.push('\n');
            text += &picture(store, &format!("switching-{}", sweep.name), &plots::switching(&sweep))?;
        }
    }
    if let Some(found) = store.kept::<Vec<Identified>>("support", &all.support)? {
        let _ = writeln!(
            text,
            "## The planted support\n\nPlanted: {}; step size {} × 0.995 an epoch.\n",
            all.support.planted.words(),
            all.support.step
        );
        text += &support::table(&all.support, &found);
        text.push('\n');
        text += &picture(store, "support", &plots::support(&all.support, &found))?;
    }
    if let Some(measured) = store.kept::<Measured>("rate", &all.rate)? {
        let _ = writeln!(
            text,
            "## Theorem 1\n\nLeast squares, planted: {}; λ = {} λ_max, constant step sizes, batches of {} rows, OBProx-SG with one Prox-SG step and one Orthant step in turn, means over {} seeds.\n",
            all.rate.planted.words(),
            all.rate.lambda,
            all.rate.batch,
            all.rate.seeds
        );
        text += &measured.table();
        text.push('\n');
        text += &picture(store, "rate", &plots::rate(&measured))?;
    }
    Ok(text)
}

/// Every run, in full.
fn csv(records: &[Record]) -> String {
    let mut text = "set,rows,columns,method,seed,gamma,status,F,f,density,nonzeros,distance,seconds\n".to_owned();
    for record in records {
        let best = record.optimum.as_ref().map(|optimum| optimum.objective);
        for run in record.optimum.iter().chain(&record.tuning).chain(&record.runs) {
            let Outcome { method, seed, gamma, status, objective, loss, density, nonzeros, seconds, .. } = run;
            let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
            let _ = writeln!(
                text,
                "{},{},{},{},{seed},{},{},{objective},{loss},{density},{nonzeros},{},{seconds}",
                named(record),
                record.rows,
                record.columns,
                method.name(),
                optional(*gamma),
                status.name(),
                optional(best.map(|best| (objective - best) / best)),
            );
        }
    }
    text
}
