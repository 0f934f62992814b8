//! `obprox data get`: the paper's data sets from where they are published.

mod fetch;

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;

use self::fetch::{Fetched, Wanted, fetch};
use crate::destination::check_directory;
use crate::failure::Failure;
use crate::paper::{Set, experiments};
use crate::show::{self, bold, bytes, grid, plural, tight};

/// Download the paper's data sets; without a name, list them
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Get {
    /// Which sets, or all
    #[arg(value_parser = names())]
    name: Vec<String>,

    /// The directory to put them in; each is named as in the paper's table
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// Get them from here: the URL of a directory with the published files, such as a mirror
    #[arg(long, value_name = "URL", value_parser = parse_url)]
    from: Option<String>,

    /// Say nothing but errors
    #[arg(long, short)]
    quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  obprox data get                          the eight sets, and what is known of each file
  obprox data get a9a w8a --dir data
  obprox data get kdda --dir data          again after an interruption: it goes on where it was";

const ALL: &str = "all";

fn names() -> PossibleValuesParser {
    PossibleValuesParser::new(experiments().set.iter().map(|set| set.name.as_str()).chain([ALL]))
}

fn parse_url(text: &str) -> Result<String, String> {
    match ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme)) {
        Some(rest) if !rest.is_empty() && !rest.contains(char::is_whitespace) => Ok(text.to_owned()),
        _ => Err("must begin with http:// or https://".into()),
    }
}

impl Get {
    pub fn run(self) -> Result<(), Failure> {
        let source = self.from.as_deref().unwrap_or(&experiments().published.source).trim_end_matches('/');
        if self.name.is_empty() {
            return show::print(&catalogue(source));
        }
        let wanted = |set: &&Set| self.name.iter().any(|name| *name == set.name || name == ALL);
        let sets: Vec<&Set> = experiments().set.iter().filter(wanted).collect();
        check_directory("--dir", &self.dir)?;
        std::fs::create_dir_all(&self.dir).map_err(obprox::Error::writing(&self.dir))?;
        for set in sets {
            let wanted = Wanted {
                url: format!("{source}/{}", set.file),
                path: self.dir.join(set.local_name()),
                bytes: set.bytes,
                sha256: set.sha256.as_deref(),
            };
            let fetched = fetch(&wanted, self.quiet)?;
            if !self.quiet {
                show::print(&said(&wanted, &fetched))?;
            }
        }
        Ok(())
    }
}

fn said(wanted: &Wanted, fetched: &Fetched) -> String {
    let Fetched { bytes: size, sha256, fresh } = fetched;
    let known = match wanted.sha256 {
        Some(_) => "size and checksum are as they should be".to_owned(),
        None => format!("no checksum is known to compare with; its SHA-256 is {sha256}"),
    };
    let before = if *fresh { "" } else { "was there already, " };
    format!("{}: {before}{}, {known}\n", bold(&wanted.path.display().to_string()), bytes(*size as usize))
}

fn catalogue(source: &str) -> String {
    let header = ["name", "rows", "features", "file", "size", "checksum"].map(str::to_owned).to_vec();
    let row = |set: &Set| {
        vec![
            set.name.clone(),
            set.rows.to_string(),
            set.columns.to_string(),
            set.file.clone(),
            set.bytes.map_or("unknown".into(), |size| bytes(size as usize)),
            if set.sha256.is_some() { "known" } else { "unknown" }.to_owned(),
        ]
    };
    let sets = &experiments().set;
    format!(
        "{}\n{source}/\n\n{}\nobprox data get NAME… downloads them; what is unknown cannot be verified\n",
        bold(&format!("the paper's {}", plural(sets.len() as u64, "data set"))),
        tight(grid(header, sets.iter().map(row).collect()))
    )
}
