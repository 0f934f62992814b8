//! `obprox paper convex`: the paper's section on logistic regression.
//!
//! Results go to a directory, run by run, and the page is written anew after each data set: what was done is never lost,
//! and the same command again goes on from there.

mod claims;
mod overlap;
mod page;
mod plots;
mod rate;
mod sets;
mod store;
mod support;
mod switching;
mod tables;
mod trial;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[cfg(feature = "net")]
pub use self::tables::title;

use self::page::Page;
use self::sets::{Found, Share, parse_share};
use self::store::Store;
use self::switching::Sweep;
use self::trial::Record;
use super::experiments::{Recipe, experiments};
use crate::destination::check_directory;
use crate::failure::Failure;
use crate::flags::count;
use crate::show;
use crate::threads;
use crate::watch::interrupt;

/// The paper's section on logistic regression: its tables, and its claims one by one
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Convex {
    /// The directory with the paper's data sets, named as in its table: see data get
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// More data sets, named as their files; they have no figures in the paper
    #[arg(long, value_name = "FILE")]
    also: Vec<PathBuf>,

    /// Where the results go, and where an earlier run is continued
    #[arg(long, value_name = "DIR", default_value = "paper-convex")]
    out: PathBuf,

    /// What to run
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_enum, default_values_t = Part::value_variants().iter().copied())]
    parts: Vec<Part>,

    /// Runs of each method, each with a seed of its own [default: 3]
    #[arg(long, value_name = "K", value_parser = count, allow_negative_numbers = true)]
    seeds: Option<u64>,

    /// Another batch size than the paper's min(256, ⌈N/100⌉), to see what depends on it
    #[arg(long, value_name = "ROWS", value_parser = count, allow_negative_numbers = true)]
    batch: Option<u64>,

    /// Use a share of the rows, evenly spaced: 1/20 of every set, or kdda=1/20 of one
    #[arg(long, value_name = "SHARE", value_delimiter = ',', value_parser = parse_share, allow_hyphen_values = true)]
    share: Vec<Share>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  obprox data get a9a w8a rcv1 --dir data
  obprox paper convex --data data
  obprox paper convex --data data --share kdda=1/20,url_combined=1/10
  obprox paper convex --parts switching,support,rate       planted problems, no data needed";

/// A part of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// F/f, density, runtime and distance to the optimum on the data sets
    Tables,
    /// A sweep over N_P and N_O
    Switching,
    /// Who finds a planted support
    Support,
    /// The linear rate and the floor of theorem 1
    Rate,
}

impl Convex {
    pub fn run(self) -> Result<(), Failure> {
        // ---- everything that can be refused before a file is read --------------------------------------------
        let (mut found, missing) = match &self.data {
            Some(directory) => sets::in_directory(directory)?,
            None => (Vec::new(), experiments().set.iter().map(|set| set.name.as_str()).collect()),
        };
        for path in &self.also {
            found.push(sets::beside(path)?);
        }
        self.check(&found, &missing)?;
        check_directory("--out", &self.out)?;
        interrupt::listen()?;
        threads::start(None)?;
        let store = Store::new(&self.out);
        let paper = &experiments().recipe;
        let batch = self.batch.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        let recipe = Recipe { seeds: self.seeds.unwrap_or(paper.seeds), batch, ..paper.clone() };

        // ---- the parts ---------------------------------------------------------------------------------------
        let done = self.run_parts(&found, &store, &recipe);
        // A failure must not lose the page of what was done before it.
        let page = if store.exists() { Some(Page::write(&store)?) } else { None };
        let done = done?;

        // ---- what a person sees ------------------------------------------------------------------------------
        if !done {
            show::note("interrupted: what was done is kept; the same command again goes on from there", self.quiet);
        }
        if let Some(page) = page.filter(|_| !self.quiet) {
            show::print(&page.terminal())?;
            show::print(&format!("\npage, figures and plots written to {}\n", self.out.display()))?;
        }
        Ok(())
    }

    fn check(&self, found: &[Found], missing: &[&str]) -> Result<(), Failure> {
        if let Some(name) = self
            .share
            .iter()
            .filter_map(|share| share.set.as_deref())
            .find(|name| found.iter().all(|found| found.name != **name) && !missing.contains(name))
        {
            return Err(Failure::input(format!("--share {name}=…: there is no such data set")));
        }
        for (at, second) in found.iter().enumerate() {
            if let Some(first) = found[..at].iter().find(|first| first.name == second.name) {
                let (first, second, name) = (first.path.display(), second.path.display(), &second.name);
                return Err(Failure::input(format!("--also {second}: has the same name, {name}, as {first}")));
            }
        }
        if !self.parts.contains(&Part::Tables) || !found.is_empty() {
            return Ok(());
        }
        Err(Failure::input(match &self.data {
            Some(directory) => format!(
                "--data {}: has none of the paper's data sets ({}): obprox data get NAME --dir DIR gets them",
                directory.display(),
                missing.join(", ")
            ),
            None => "--data: name the directory with the paper's data sets, or leave out tables by --parts".to_owned(),
        }))
    }

    /// False where Ctrl-C came before the end.
    fn run_parts(&self, found: &[Found], store: &Store, recipe: &Recipe) -> Result<bool, Failure> {
        let has = |part| self.parts.contains(&part);
        if has(Part::Tables) {
            for found in found {
                if !self.tables(found, store, recipe)? {
                    return Ok(false);
                }
                Page::write(store)?;
            }
        }
        let (support, rate) = (&experiments().support, &experiments().rate);
        Ok((!has(Part::Switching) || self.switching(found, store)?)
            && (!has(Part::Support) || store.keep("support", support, || support.run(self.quiet))?)
            && (!has(Part::Rate) || store.keep("rate", rate, || rate.run(self.quiet))?))
    }

    fn tables(&self, found: &Found, store: &Store, recipe: &Recipe) -> Result<bool, Failure> {
        let (path, share) = (store.of_set(&found.name), found.share(&self.share));
        let kept = path.exists().then(|| Record::read(&path)).transpose()?;
        if let Some(kept) = &kept {
            if !kept.is_of(found, share, recipe) {
                return Err(Failure::input(format!(
                    "{}: has results of another file, another share or other settings: delete it, or give another --out",
                    path.display()
                )));
            }
            if kept.is_done(recipe) {
                return Ok(true);
            }
        }
        let (problem, whole) = found.problem(share, self.quiet)?;
        let mut record = kept.unwrap_or_else(|| Record::fresh(found, &problem, whole, share, recipe));
        trial::complete(&mut record, store, &problem, recipe, self.quiet)
    }

    fn switching(&self, found: &[Found], store: &Store) -> Result<bool, Failure> {
        let switching = &experiments().switching;
        let mut sweeps: Vec<Sweep> = store.kept("switching", switching)?.unwrap_or_default();
        let real = found.iter().filter(|found| switching.sets.contains(&found.name)).map(Some);
        for found in [None].into_iter().chain(real) {
            let name = found.map_or("planted", |found| &found.name);
            if sweeps.iter().any(|sweep| sweep.name == name) {
                continue;
            }
            let problem = match found {
                None => switching.problem()?,
                Some(found) => found.problem(None, self.quiet)?.0,
            };
            let Some(sweep) = switching.sweep(name, &problem, self.quiet)? else { return Ok(false) };
            sweeps.push(sweep);
            store.save("switching", switching, &sweeps)?;
        }
        Ok(true)
    }
}
