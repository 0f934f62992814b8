//! The table at the end of a fit.

use obprox::metrics::{Deviance, Metrics};
use obprox::{Certificate, Fit, Method, Model, Point, Problem, Settings, Status, certify};

use super::{bold, metrics, pairs, percent, plural, rough, seconds, signed, significant, sparkline, trimmed};

/// So many of the largest weights are shown.
const WEIGHTS: usize = 10;
/// Names longer than this are cut, to stay within 80 columns.
const NAME: usize = 48;

/// A finished run and what is worth telling of it.
pub struct Outcome<'a> {
    pub data: &'a str,
    pub problem: &'a Problem,
    pub settings: &'a Settings,
    pub batch: usize,
    pub fit: &'a Fit,
    /// How λ was found, where it was not given.
    pub search: Option<&'a str>,
    pub test: Option<(&'a str, &'a Metrics)>,
    pub written: &'a [String],
}

/// The whole page.
pub fn fit(outcome: &Outcome) -> String {
    let Outcome { data, problem, settings, fit, .. } = outcome;
    let cells = (problem.n_rows() as f64 * problem.n_features() as f64).max(1.0);
    let mut page = format!(
        "{}\n{} × {}, {} ({})\n",
        bold(data),
        plural(problem.n_rows() as u64, "row"),
        plural(problem.n_features() as u64, "feature"),
        plural(problem.nnz() as u64, "nonzero"),
        percent(problem.nnz() as f64 / cells)
    );
    page += &format!("{} loss, {}, {}", problem.loss().name(), settings.method.name(), rounds(fit, settings));
    if settings.method != Method::Auto {
        page += &format!(", batch {}, seed {}", outcome.batch, settings.seed);
    }
    page += "\n\n";
    page += &figures(problem, fit, outcome.search);
    page += &curves(fit);
    page += &format!("\n{}\n", in_words(fit, settings));
    if fit.epochs > 0 && fit.resumed_epochs == fit.epochs {
        page += "the run had ended before: nothing was left to do\n";
    }
    if let Some(hint) = hint(problem, fit) {
        page += &format!("{hint}\n");
    }
    if let Some((name, measured)) = outcome.test {
        page += &format!("\n{} {name}\n{}", bold("test:"), metrics(measured, &fit.model, false));
    }
    page += &largest_weights(&fit.model);
    if !outcome.written.is_empty() {
        page += &format!("\n{}\n", outcome.written.join("\n"));
    }
    page
}

fn figures(problem: &Problem, fit: &Fit, search: Option<&str>) -> String {
    let certificate = &fit.certificate;
    let gap = match (certificate.gap, certificate.relative_gap()) {
        (Some(gap), Some(relative)) => format!("{} (relative {})", rough(gap), rough(relative)),
        _ => "none for this loss and point".into(),
    };
    let of = match problem.outputs() {
        1 => problem.n_features().to_string(),
        outputs => {
            format!("{} ({} features × {outputs} classes)", problem.n_features() * outputs, problem.n_features())
        }
    };
    let l2 = problem.regularization().l2;
    let mut rows = vec![
        ("objective F", bold(&significant(certificate.objective))),
        ("mean loss f", significant(certificate.loss)),
        ("‖x‖₁", significant(certificate.l1)),
        ("nonzeros", format!("{} of {of}", certificate.nnz)),
        ("density", format!("{}{}", percent(certificate.density), intercept_words(problem))),
        ("λ", lambda(problem)),
    ];
    let explained = Deviance::of(problem).map(|deviance| percent(deviance.explained(certificate.loss)));
    rows.extend(explained.map(|share| ("deviance explained", share)));
    rows.extend(search.map(|how| ("chosen", how.to_owned())));
    rows.extend(problem.regularization().name().map(|name| ("penalty", name.to_owned())));
    if l2 > 0.0 {
        rows.push(("λ₂", trimmed(l2)));
    }
    rows.push(("duality gap", gap));
    rows.push(("KKT distance", rough(certificate.kkt)));
    rows.push(("training time", format!("{}, {}", seconds(fit.seconds), plural(fit.iterations, "step"))));
    pairs(rows)
}

/// F and density along the run, where there is enough of it to be a curve.
fn curves(fit: &Fit) -> String {
    let evaluated: Vec<&Certificate> = fit.trace.iter().filter_map(|record| record.certificate.as_ref()).collect();
    if evaluated.len() < 3 {
        return String::new();
    }
    let objective: Vec<f64> = evaluated.iter().map(|certificate| certificate.objective).collect();
    let density: Vec<f64> = evaluated.iter().map(|certificate| certificate.density).collect();
    format!("\n{}{}", sparkline("F", &objective), sparkline("density", &density))
}

/// λ, by itself and against λ_max.
fn lambda(problem: &Problem) -> String {
    let (lambda, max) = (problem.lambda(), problem.lambda_max());
    match max {
        0.0 => format!("{} (λ_max is 0)", trimmed(lambda)),
        _ => format!("{} = {} λ_max", trimmed(lambda), trimmed(lambda / max)),
    }
}

fn intercept_words(problem: &Problem) -> &'static str {
    if problem.has_intercept() && problem.coupled().is_none() { ", intercept counted" } else { "" }
}

/// How long it ran: a round of `auto` is no epoch.
fn rounds(fit: &Fit, settings: &Settings) -> String {
    plural(fit.epochs, if settings.method == Method::Auto { "round" } else { "epoch" })
}

/// How the run ended, in plain words.
pub fn in_words(fit: &Fit, settings: &Settings) -> String {
    let epochs = rounds(fit, settings);
    let (measure, value) = match fit.certificate.relative_gap() {
        Some(gap) => ("relative gap", gap),
        None => ("KKT distance", fit.certificate.kkt),
    };
    let reached = format!("{measure} {}", rough(value));
    match fit.status {
        Status::Converged => {
            format!("converged after {epochs}: {reached}, within the tolerance of {:e}", settings.tolerance)
        }
        Status::MaxEpochs | Status::Missed => {
            format!("stopped after {epochs}: {reached}, the optimum is not certified")
        }
        Status::Stopped => format!("interrupted after {epochs}: {reached}, the optimum is not certified"),
        Status::Stalled => {
            format!(
                "no progress any more after {epochs}: {reached}, the optimum is not certified to {:e}",
                settings.tolerance
            )
        }
        Status::Diverged => format!("diverged after {epochs}: these are the last good weights, {reached}"),
    }
}

/// A run that ends above its start took steps that were too long; figures alone do not show that to everyone.
fn hint(problem: &Problem, fit: &Fit) -> Option<&'static str> {
    let is_worse = || certify(problem, &Point::zero(problem)).is_ok_and(|at| fit.certificate.objective > at.objective);
    let worse = fit.status == Status::MaxEpochs && is_worse();
    worse.then_some("F is larger than at x = 0: try a smaller --step, --step auto or --standardize")
}

fn largest_weights(model: &Model) -> String {
    let mut weights: Vec<(f64, u32, usize)> = Vec::with_capacity(model.nnz());
    for (output, block) in model.blocks.iter().enumerate() {
        weights.extend(block.indices.iter().zip(&block.values).map(|(&feature, &value)| (value, feature, output)));
    }
    if weights.is_empty() {
        return String::new();
    }
    weights.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let shown = weights.len().min(WEIGHTS);
    let title = format!("largest weights ({shown} of {})", weights.len());
    let rows = weights[..shown].iter().map(|&(value, feature, output)| {
        let class = match model.blocks.len() {
            1 => String::new(),
            _ => format!("  class {}", model.label_name(model.labels[output])),
        };
        (name(model, feature), format!("{:>12}{class}", signed(value)))
    });
    format!("\n{}\n{}", bold(&title), pairs(rows))
}

/// A feature's name, or its number as LIBSVM files count.
fn name(model: &Model, feature: u32) -> String {
    match model.name(feature) {
        Some(name) if name.chars().count() > NAME => name.chars().take(NAME - 1).chain(['…']).collect(),
        Some(name) => name.to_owned(),
        None => format!("feature {}", u64::from(feature) + 1),
    }
}
