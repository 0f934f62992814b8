//! λ: one, or many.

use clap::Args;
use obprox::{Lambda, Lambdas, Settings};

use super::{count, not_negative, positive};

/// The flag of every subcommand that trains at one λ.
#[derive(Args, Debug)]
#[command(next_help_heading = "The problem")]
pub struct LambdaFlag {
    /// λ, the weight of ‖x‖₁: 1/N, a share of λ_max such as 0.1max, or a number
    #[arg(long, value_name = "LAMBDA", default_value = "1/N", value_parser = parse_lambda, allow_hyphen_values = true)]
    pub lambda: Lambda,
}

/// The flags of every subcommand that goes a path.
#[derive(Args, Debug)]
#[command(next_help_heading = "The path")]
pub struct PathFlags {
    /// How many λ, from λ_max down, evenly spaced on a logarithmic scale
    #[arg(long, value_name = "N", default_value = "100", value_parser = parse_many, allow_negative_numbers = true)]
    lambdas: usize,

    /// The smallest λ as a share of λ_max [default: 1e-3; with fewer rows than features 1e-2]
    #[arg(long, value_name = "SHARE", value_parser = parse_ratio, allow_negative_numbers = true)]
    ratio: Option<f64>,

    /// These λ instead, each as fit --lambda takes it: 0.5max,0.1max,1/N,1e-4
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', value_parser = parse_lambda, allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["lambdas", "ratio"])]
    at: Vec<Lambda>,

    /// Also refit the features of each λ without penalty (relaxed fits); cv tries blends of the two and chooses one
    #[arg(long)]
    pub relax: bool,

    /// Stop each λ at this relative duality gap (KKT distance where the loss has no dual)
    #[arg(long, value_name = "GAP", default_value = "1e-6", value_parser = not_negative, allow_negative_numbers = true)]
    tol: f64,
}

impl PathFlags {
    /// Which λ.
    pub fn lambdas(&self) -> Lambdas {
        match self.at.is_empty() {
            true => Lambdas::Spaced { count: self.lambdas, ratio: self.ratio },
            false => Lambdas::Given(self.at.clone()),
        }
    }

    /// The default solver, to the tolerance asked for.
    pub fn settings(&self) -> Settings {
        Settings { tolerance: self.tol, ..Settings::default() }
    }
}

/// More than anyone can look at; a slip of the finger must not fill the memory.
const MOST: u64 = 100_000;

fn parse_many(text: &str) -> Result<usize, String> {
    match count(text)? {
        many @ ..=MOST => Ok(many as usize),
        _ => Err(format!("must be at most {MOST}")),
    }
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    positive(text).ok().filter(|ratio| *ratio < 1.0).ok_or("must lie between 0 and 1".into())
}

/// `1/N`, `max`, `0.1max` or a number.
fn parse_lambda(text: &str) -> Result<Lambda, String> {
    if text.eq_ignore_ascii_case("1/n") {
        return Ok(Lambda::OverN);
    }
    let wrong = |why| format!("{why}: give 1/N, a share of λ_max such as 0.1max, or a number");
    match text.strip_suffix("max") {
        Some("") => Ok(Lambda::OfMax(1.0)),
        Some(share) => not_negative(share).map(Lambda::OfMax).map_err(wrong),
        None => not_negative(text).map(Lambda::Value).map_err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lambda_is_a_share_or_a_number() {
        assert_eq!(parse_lambda("1/N"), Ok(Lambda::OverN));
        assert_eq!(parse_lambda("max"), Ok(Lambda::OfMax(1.0)));
        assert_eq!(parse_lambda("0.1max"), Ok(Lambda::OfMax(0.1)));
        assert_eq!(parse_lambda("1e-4"), Ok(Lambda::Value(1e-4)));
        assert!(["-1", "-0.1max", "nan", "inf", "1/M", "", "0.1min"].iter().all(|text| parse_lambda(text).is_err()));
    }

    #[test]
    fn paths_have_bounds() {
        assert_eq!(parse_many("100"), Ok(100));
        assert!(["0", "-1", "100001", "x"].iter().all(|text| parse_many(text).is_err()));
        assert_eq!(parse_ratio("1e-3"), Ok(1e-3));
        assert!(["0", "1", "-0.1", "nan"].iter().all(|text| parse_ratio(text).is_err()));
    }
}
